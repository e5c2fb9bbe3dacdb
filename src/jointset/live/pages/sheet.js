// A canvas drawn at the size it is shown at, in the colours of the page; axes and labels that do not run into each other.
const FONT = 'Inter, "Segoe UI", "Helvetica Neue", Helvetica, Arial, "Liberation Sans", sans-serif';
const INKS = ["ink", "quiet", "line", "strong", "sheet", "series", "band", "own", "edge", "alarm", "care", "good", "calm", "warm", "hot", "glow", "cursor"];
let inks = null;

function colours() {
  if (inks === null) {
    const style = getComputedStyle(document.documentElement);
    inks = Object.fromEntries(INKS.map((ink) => [ink, style.getPropertyValue(`--${ink}`).trim()]));
    inks.ramp = [inks.calm, inks.warm, inks.hot, inks.glow].map(rgb);
  }
  return inks;
}

function rgb(text) {
  const digits = parseInt(text.slice(1), 16);
  return [digits >> 16, (digits >> 8) & 255, digits & 255];
}

function heat(strength) {
  // a colour between calm and glowing; lightness moves one way only, so that it is read without telling hues apart
  const ramp = colours().ramp;
  const place = Math.min(1, Math.max(0, strength)) * (ramp.length - 1);
  const low = Math.min(ramp.length - 2, Math.floor(place));
  const mix = ramp[low].map((channel, i) => Math.round(channel + (place - low) * (ramp[low + 1][i] - channel)));
  return `rgb(${mix.join(",")})`;
}

class Sheet {
  constructor(holder, attributes, paint) {
    this.canvas = el("canvas", attributes);
    this.paint = paint;
    this.holder = holder;
    holder.append(this.canvas);
    this.size();
    new ResizeObserver(() => {
      this.size();
      this.draw();
    }).observe(holder);
  }

  size() {
    const ratio = devicePixelRatio || 1;
    this.width = Math.max(200, Math.floor(this.holder.clientWidth));
    this.height = Math.max(120, Math.floor(this.holder.clientHeight));
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.pen = this.canvas.getContext("2d");
    this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  draw() {
    this.pen.clearRect(0, 0, this.width, this.height);
    this.pen.lineJoin = "round";
    this.paint(this.pen, this.width, this.height, colours());
  }

  at(event) {
    const frame = this.canvas.getBoundingClientRect();
    return [event.clientX - frame.left, event.clientY - frame.top];
  }
}

function write(pen, text, x, y, { ink, align = "left", base = "alphabetic", size = 12, weight = 400, halo = null } = {}) {
  pen.font = `${weight} ${size}px ${FONT}`;
  pen.textAlign = align;
  pen.textBaseline = base;
  if (halo !== null) {
    pen.lineWidth = 3.5;
    pen.strokeStyle = halo;
    pen.strokeText(text, x, y);
  }
  pen.fillStyle = ink;
  pen.fillText(text, x, y);
}

const CLOCK_STEPS = [60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 1209600, 2592000, 7776000, 31536000];

function timeTicks(station, from, to, most) {
  // rows at round times, with a label each; at round row numbers where rows have no time
  if (!station.timed) return linear(from, to, 0, 1).ticks(most).filter((row) => Number.isInteger(row) && row < to).map((row) => [row, (row + 1).toLocaleString("en")]);
  const first = station.times[from];
  const span = station.times[to - 1] - first;
  const step = CLOCK_STEPS.find((one) => span / one <= most) || span;
  const found = [];
  let day = "";
  for (let time = Math.ceil(first / step) * step; time <= first + span; time += step) {
    const text = moment(time);
    const date = `${Number(text.slice(8, 10))} ${MONTHS[Number(text.slice(5, 7)) - 1]}`;
    const midnight = text.slice(11) === "00:00";
    found.push([station.rowAt(time), step >= 86400 || midnight ? date : text.slice(11), date !== day && !midnight && step < 86400 ? date : ""]);
    day = date;
  }
  return found;
}
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

function timeAxis(pen, station, frame, x, ink, from, to) {
  let free = -Infinity;
  pen.strokeStyle = ink.strong;
  pen.lineWidth = 1;
  for (const [row, label] of timeTicks(station, from, to, Math.max(2, Math.floor((frame.right - frame.left) / 90)))) {
    const at = Math.round(x(row)) + 0.5;
    pen.beginPath();
    pen.moveTo(at, frame.bottom);
    pen.lineTo(at, frame.bottom + 4);
    pen.stroke();
    pen.font = `400 12px ${FONT}`;
    const half = pen.measureText(label).width / 2;
    const middle = Math.min(Math.max(at, frame.left + half), frame.right - half);
    if (middle - half < free + 10) continue;
    free = middle + half;
    write(pen, label, middle, frame.bottom + 17, { ink: ink.quiet, align: "center" });
  }
}

function valueAxis(pen, frame, y, ticks, ink, text = brief) {
  pen.lineWidth = 1;
  for (const tick of ticks) {
    const at = Math.round(y(tick)) + 0.5;
    pen.strokeStyle = ink.line;
    pen.beginPath();
    pen.moveTo(frame.left, at);
    pen.lineTo(frame.right, at);
    pen.stroke();
    write(pen, text(tick), frame.left - 8, at, { ink: ink.quiet, align: "right", base: "middle" });
  }
}

function columns(from, to, frame) {
  // [x, first row, end] of every stretch of rows that shares a column of pixels
  const rows = to - from;
  const width = frame.right - frame.left;
  const count = Math.min(rows, Math.max(1, Math.floor(width)));
  const found = new Array(count);
  for (let k = 0; k < count; k++) {
    const start = from + Math.floor((k * rows) / count);
    found[k] = [frame.left + ((k + 0.5) * width) / count, start, from + Math.floor(((k + 1) * rows) / count)];
  }
  return found;
}
