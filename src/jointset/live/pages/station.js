// One network in typed arrays: of every row its time, score, radius and outcome; of some rows every sensor.
const NONE = -1; // outcome of a row without a reading

class Detail {
  // Readings, ends of the band and shares of the score of consecutive rows, sensor by sensor.
  constructor(sensors, capacity) {
    this.n = sensors;
    this.capacity = capacity;
    this.first = 0;
    this.count = 0;
    for (const field of Detail.FIELDS) this[field] = new Float32Array(2 * capacity * sensors).fill(NaN);
  }

  has(row) {
    return row >= this.first && row < this.first + this.count;
  }

  place(row, sensor) {
    return (row - this.first) * this.n + sensor;
  }

  push(row, cells) {
    if (this.count && row !== this.first + this.count) this.count = 0; // a jump: what was held is not beside it
    if (!this.count) this.first = row;
    if (this.count === 2 * this.capacity) this.forget();
    const start = this.count * this.n;
    for (const field of Detail.FIELDS) this[field].set(cells[field], start);
    this.count += 1;
  }

  precede(rows, fields) {
    // take in the rows just before those held
    for (const field of Detail.FIELDS) {
      this[field].copyWithin(rows * this.n, 0, this.count * this.n);
      this[field].set(fields[field]);
    }
    this.first -= rows;
    this.count += rows;
  }

  forget() {
    const kept = this.capacity * this.n;
    for (const field of Detail.FIELDS) this[field].copyWithin(0, kept, 2 * kept);
    this.first += this.capacity;
    this.count = this.capacity;
  }
}
Detail.FIELDS = ["value", "lower", "upper", "share"];

class Station {
  constructor({ name, sensors, at, edges = [], mapped = false, alpha = 0.1, own = null }, kept = 2000) {
    Object.assign(this, { name, sensors, at, edges, mapped, alpha, own });
    this.index = new Map(sensors.map((sensor, i) => [sensor, i]));
    this.count = 0;
    this.numbers = new Float64Array(1024); // of the rows in the log of the service
    this.times = new Float64Array(1024);
    this.scores = new Float32Array(1024);
    this.radii = new Float32Array(1024);
    this.inside = new Int8Array(1024);
    this.recent = new Detail(sensors.length, kept);
    this.past = null; // rows that time travel asked for
    this.alarms = [];
    this.blame = null; // mean share of every sensor over the rows outside
    this.next = null; // the sets that are announced: a list of {lower, upper, own}, the next row's first
  }

  grow(rows) {
    if (rows <= this.times.length) return;
    const size = Math.max(rows, 2 * this.times.length);
    for (const field of ["numbers", "times", "scores", "radii", "inside"]) {
      const wider = new this[field].constructor(size);
      wider.set(this[field].subarray(0, this.count));
      this[field] = wider;
    }
  }

  push({ number, time, score, radius, inside }) {
    this.grow(this.count + 1);
    this.numbers[this.count] = number;
    this.times[this.count] = time;
    this.scores[this.count] = score;
    this.radii[this.count] = radius;
    this.inside[this.count] = inside;
    this.count += 1;
    return this.count - 1;
  }

  clear() {
    this.count = 0;
    this.recent.count = 0;
    this.past = null;
  }

  get last() {
    return this.count - 1;
  }

  get timed() {
    return this.count > 0 && !Number.isNaN(this.times[0]);
  }

  detail(row) {
    return this.recent.has(row) ? this.recent : this.past !== null && this.past.has(row) ? this.past : null;
  }

  cell(field, row, sensor) {
    const held = this.detail(row);
    return held === null ? NaN : held[field][held.place(row, sensor)];
  }

  alone(lower, upper, radius, sensor) {
    // the band of a sensor by itself, from that of the joint set; the latter where the method has no other
    if (this.own === null) return [lower, upper];
    const middle = (lower + upper) / 2;
    const half = (((upper - lower) / 2) * this.own.quantiles[sensor]) / radius ** this.own.power;
    return Number.isFinite(half) ? [middle - half, middle + half] : [lower, upper];
  }

  ownBand(row, sensor) {
    return this.alone(this.cell("lower", row, sensor), this.cell("upper", row, sensor), this.radii[row], sensor);
  }

  rowAt(time) {
    return firstFrom(this.times, this.count, time);
  }

  rowOf(number) {
    return firstFrom(this.numbers, this.count, number);
  }

  when(row, withTime = true) {
    if (row < 0 || row >= this.count) return "–";
    return this.timed ? moment(this.times[row], withTime) : `row ${(row + 1).toLocaleString("en")}`;
  }

  shares(row) {
    // what every sensor weighs in a row: its share of the score, less while the score is far inside the radius
    const held = this.detail(row);
    if (held === null) return null;
    const near = Math.min(1, Math.max(0, this.scores[row] / this.radii[row]) || 0);
    const start = held.place(row, 0);
    return Array.from(held.share.subarray(start, start + held.n), (share) => (share > 0 ? share * near : 0));
  }

  recentShares(row, rows) {
    // the mean of the last rows up to one, those nearer to the radius and beyond it counting more
    const sums = Array(this.sensors.length).fill(0);
    let total = 0;
    for (let k = Math.max(0, row - rows + 1); k <= row; k++) {
      const held = this.detail(k);
      const weight = Math.max(0, this.scores[k] / this.radii[k]) || 0;
      if (held === null || !Number.isFinite(weight)) continue;
      const start = held.place(k, 0);
      for (let i = 0; i < sums.length; i++) sums[i] += weight * Math.min(1, weight) * Math.max(0, held.share[start + i] || 0);
      total += weight;
    }
    return total ? sums.map((sum) => sum / total) : null;
  }

  misses(from, to) {
    let found = 0;
    for (let row = from; row < to; row++) found += this.inside[row] === 0 ? 1 : 0;
    return found;
  }
}

function ahead(steps) {
  // sets that are announced, as the service and the page of a model give them: null where a band has no end
  const end = (numbers, none) => numbers.map((number) => (number === null ? none : number));
  return steps.map(({ lower, upper, own }) => {
    const joint = [end(lower, -Infinity), end(upper, Infinity)];
    return { lower: joint[0], upper: joint[1], own: own === null ? joint : [end(own[0], -Infinity), end(own[1], Infinity)] };
  });
}

function firstFrom(sorted, count, wanted) {
  // place of the first of ascending numbers that is not smaller
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

function median(numbers) {
  const sorted = numbers.filter(Number.isFinite).sort((a, b) => a - b);
  return sorted.length ? sorted[sorted.length >> 1] : NaN;
}
