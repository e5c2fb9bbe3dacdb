// The live page: the past of a network in columns, then every row as it comes; a line that breaks is caught up.
const HELD = 1500; // rows that are held sensor by sensor
const FIRST = 300; // of these, asked for before anything is drawn
const AROUND = 400; // rows on each side of a moment that time travel asks for
const LOOK = 2000; // milliseconds between two questions about trust and the next set

class Live {
  constructor(facts, drawing) {
    this.name = facts.name;
    this.station = new Station({ ...drawing, name: facts.name }, HELD);
    this.board = new Board(byId("board"), this.station, { resting: "last", travel: (row) => this.travel(row), act: (alarm, action) => this.act(alarm, action) });
    this.alarms = new Map();
    this.asked = 0;
    this.repaint = () => this.board.repaint();
    addEventListener("themed", this.repaint);
    byId("about").textContent = `${facts.sensors.length.toLocaleString("en")} sensors · ${percent(1 - drawing.alpha, 0)} sets`;
  }

  async start() {
    await this.load();
    if (this.stopped) return;
    this.line = new Line(this.name, () => Math.max(this.last - 1, 0), { heard: (message) => this.hear(message), state: (state) => this.show(state) });
    this.timer = setInterval(() => this.look(), LOOK);
  }

  stop() {
    this.stopped = true;
    removeEventListener("themed", this.repaint);
    clearInterval(this.timer);
    if (this.line) this.line.close();
  }

  get last() {
    return this.station.count ? this.station.numbers[this.station.last] : this.begun;
  }

  async load() {
    // the last rows are drawn at once, the rest of the past when it is there
    const [recent] = await Promise.all([service.columns(this.name, { limit: FIRST, detail: true }), this.recall()]);
    this.begun = 0;
    this.fill(recent);
    this.board.choose(this.leading());
    this.fresh = true;
    this.look();
    performance.mark("drawn");
    if (recent.rows === FIRST) await this.older(recent.numbers[0]);
    performance.mark("whole");
  }

  async recall() {
    // the alarms as they stand: one that has been open for longer than the store keeps changes is in none of these
    const told = await service.json(`/${this.name}/alarms?limit=100000`);
    this.alarms.clear();
    [...told.changes, ...told.alarms].forEach((change) => this.change(change));
  }

  async older(before) {
    const { station } = this;
    const [past, detail] = await Promise.all([service.columns(this.name, { before, limit: 100000 }), service.columns(this.name, { before, limit: HELD - FIRST, detail: true })]);
    const kept = ["numbers", "times", "scores", "radii", "inside"].map((field) => [field, station[field].slice(0, station.count)]);
    station.grow(station.count + past.rows);
    for (const [field, held] of kept) {
      station[field].set(past[field]);
      station[field].set(held, past.rows);
    }
    station.count += past.rows;
    station.recent.first += past.rows;
    station.recent.precede(detail.rows, detail.detail);
    this.board.showRanges();
    if (this.board.view.span === Infinity && station.count > 2000) this.board.span(this.usualSpan());
    this.board.asked = true; // hours, weekdays and the table are of all these rows
    this.board.changed();
  }

  usualSpan() {
    const day = Math.round(86400 / this.board.cadence());
    return day >= 100 && day < this.station.count ? day : 1000;
  }

  fill(columns) {
    const { station } = this;
    station.clear();
    for (let row = 0; row < columns.rows; row++) {
      station.push({ number: columns.numbers[row], time: columns.times[row], score: columns.scores[row], radius: columns.radii[row], inside: columns.inside[row] });
      const start = row * station.sensors.length;
      const cells = Object.fromEntries(Detail.FIELDS.map((field) => [field, columns.detail[field].subarray(start, start + station.sensors.length)]));
      station.recent.push(row, cells);
    }
  }

  leading() {
    // the sensor to look at first: one that an open alarm names, else the heaviest in the last row
    const open = this.station.alarms.filter((alarm) => alarm.until === null && alarm.sensors.length);
    if (open.length) return this.station.index.get(open.at(-1).sensors[0]) || 0;
    const shares = this.station.count ? this.station.shares(this.station.last) : null;
    return shares === null ? 0 : Math.max(0, shares.indexOf(Math.max(...shares)));
  }

  // ------------------------------------------------------------------ what comes over the line

  hear(message) {
    if (message.type === "hello") this.greeted(message);
    else if (message.type === "row") this.row(message);
    else if (message.type === "alarm") this.change(message, true);
    this.board.changed(true, message.type !== "row");
  }

  greeted({ row }) {
    // a store that is behind what was seen here is another one; one that is far ahead has more than a line gives
    if (row < this.last || row - this.last > 9000) this.load();
  }

  row(message) {
    const { station } = this;
    if (message.late || message.row <= this.last) return;
    const inside = { true: 1, false: 0 }[message.inside];
    const unending = message.infinite ? Infinity : NaN;
    const at = station.push({ number: message.row, time: seconds(message.time), score: value(message.score), radius: message.radius === null ? unending : message.radius, inside: inside === undefined ? NONE : inside });
    const cells = Object.fromEntries(Detail.FIELDS.map((field) => [field, new Float32Array(station.sensors.length).fill(NaN)]));
    station.sensors.forEach((sensor, i) => {
      const ends = message.bounds[sensor] || [];
      cells.value[i] = value(message.values[sensor]);
      cells.lower[i] = ends[0] === null ? -Infinity : value(ends[0]);
      cells.upper[i] = ends[1] === null ? Infinity : value(ends[1]);
      cells.share[i] = value(message.shares[sensor]) || 0;
    });
    station.recent.push(at, cells);
    this.fresh = true;
  }

  change(change, news = false) {
    const before = this.alarms.get(change.id) || { id: change.id };
    const over = change.event === "cleared";
    Object.assign(before, { kind: change.kind, since: change.since, until: over ? change.time : null, sensors: change.who, where: (change.neighbourhood || []).length > 1 ? change.neighbourhood[0] : "", text: change.words, severity: change.severity, acknowledged: change.acknowledged, silenced: change.event === "silenced" || (Boolean(before.silenced) && change.muted !== false) });
    this.alarms.set(change.id, before);
    this.station.alarms = [...this.alarms.values()];
    if (!news) return;
    this.judge();
    const { news: spoken, view } = this.board;
    spoken.textContent = over ? `Alarm over: ${change.words}` : `Alarm ${change.event}: ${change.words}`;
    const first = this.station.index.get((change.who || [])[0]);
    if (["raised", "reopened"].includes(change.event) && view.cursor === null && first !== undefined) this.board.choose(first);
  }

  // ------------------------------------------------------------------ questions

  async look() {
    if (this.fresh === false) return;
    this.fresh = false;
    try {
      const [trust, next] = await Promise.all([service.json(`/${this.name}/trust`), service.json(`/${this.name}/announced`)]);
      this.trusted(trust);
      this.station.next = ahead(next.steps);
      this.board.changed();
    } catch {
      this.fresh = true; // the line says that the service is away
    }
  }

  trusted(trust) {
    const { board, station } = this;
    board.trust = trust.n_calibration === undefined ? null : trust; // older models have none
    this.light = trust.light;
    this.words = trust.verdict;
    board.words = trust.by_clock ? `Inside ${trust.by_clock}.` : "";
    board.ailing = new Map([...(trust.silent || []).map((name) => [station.index.get(name), "silent"]), ...(trust.stuck || []).map((name) => [station.index.get(name), "stuck"])]);
    this.judge();
  }

  judge() {
    const open = this.station.alarms.filter((alarm) => alarm.until === null);
    const grave = open.filter((alarm) => ALARM_INK[alarm.kind] !== "care");
    const light = grave.length || this.light === "red" ? "red" : open.length || this.light === "amber" ? "amber" : this.light || "grey";
    const word = { red: "Alarm", amber: "Look at it", green: "All quiet", grey: "Nothing to judge yet" }[light];
    const told = open.length ? open.map((alarm) => alarm.text).join("; ") : this.words || "";
    this.board.verdict = { light, word, sentence: sentence(told) };
    document.title = `${open.length ? `(${open.length}) ` : ""}${this.name} · jointset`;
  }

  async act(alarm, action) {
    // what an operator does about an alarm; what became of it comes over the line
    try {
      await service.post(`/${this.name}/alarms/${encodeURIComponent(alarm.id)}/${action}`);
    } catch (error) {
      this.board.news.textContent = error.message;
    }
  }

  async travel(row) {
    // the readings around a moment of the past, unless they are on their way
    const { station } = this;
    const number = station.numbers[row];
    if (this.coming !== undefined && Math.abs(this.coming - row) < AROUND / 2) return;
    this.coming = row;
    try {
      const found = await service.columns(this.name, { after: Math.max(0, number - AROUND), before: number + AROUND, limit: 2 * AROUND, detail: true });
      if (!found.rows) return;
      const held = new Detail(station.sensors.length, found.rows);
      held.first = station.rowOf(found.numbers[0]);
      held.count = found.rows;
      for (const field of Detail.FIELDS) held[field].set(found.detail[field]);
      station.past = held;
      this.board.changed();
    } finally {
      this.coming = undefined;
    }
  }

  show(state) {
    const words = { live: "live", connecting: "connecting", lost: "no connection: trying again" };
    const pill = byId("status");
    pill.textContent = words[state];
    pill.className = `status ${state}`;
  }
}

function seconds(time) {
  const number = Number(time);
  if (Number.isFinite(number)) return number > 1e11 ? number / 1000 : number;
  return Date.parse(/[zZ]|[+-]\d\d:?\d\d$/.test(time) ? time : `${time.replace(" ", "T")}Z`) / 1000;
}

function sentence(text) {
  return text ? `${text[0].toUpperCase()}${text.slice(1)}.` : "";
}

let shown = null;

async function open(facts) {
  if (shown !== null) shown.stop();
  byId("name").textContent = facts.name;
  shown = new Live(facts, await service.json(`/${facts.name}/drawing`));
  await shown.start();
}

async function begin() {
  byId("token-form").hidden = true;
  try {
    const { networks } = await service.json("/networks");
    const wanted = networks.find((one) => one.name === location.hash.slice(1)) || networks[0];
    if (networks.length > 1) {
      const choice = el("select", { "aria-label": "Network", onchange: () => (location.hash = choice.value) });
      choices(choice, networks.map((one) => [one.name, one.name]), wanted.name);
      byId("tools").prepend(choice);
      addEventListener("hashchange", () => open(networks.find((one) => one.name === location.hash.slice(1)) || networks[0]));
    }
    await open(wanted);
  } catch (error) {
    if (error instanceof Unknown) byId("token-form").hidden = false;
    else setTimeout(begin, 2000);
    byId("status").textContent = error.message;
    byId("status").className = "status lost";
  }
}

byId("tools").append(themeButton());
byId("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", byId("token").value);
  begin();
});
begin();
