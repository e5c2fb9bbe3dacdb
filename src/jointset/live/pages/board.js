// The board: charts, map and panels of one network around one moment in time and one chosen sensor.
const SPANS = [["6 h", 21600], ["1 day", 86400], ["1 week", 604800]];
const ROW_SPANS = [["200 rows", 200], ["1,000 rows", 1000], ["5,000 rows", 5000]];
const LATELY = 6; // rows behind what the map shows while nobody points at a moment
const PACES = { scores: 0, band: 33, map: 100, words: 200 }; // milliseconds between two pictures of a part while rows come,
const SLOW = 500; // between two looks at what is text beside them,
const SLOWER = 2000; // at the table of sensors,
const SLOWEST = 10000; // and at their order, at hours and weekdays, unless somebody asked for something

class Board {
  constructor(root, station, { resting = "last", travel = null, act = null } = {}) {
    Object.assign(this, { root, station, resting, travel, act });
    this.view = { span: Infinity, end: null, from: 0, to: 0, room: 0, cursor: null, hover: null, shown: null, alarm: null };
    this.chosen = 0;
    this.hovered = -1;
    this.ailing = new Map();
    this.trust = undefined; // not known yet
    this.verdict = { light: "grey", word: "…", sentence: "" };
    this.words = "";
    this.wanted = "";
    this.told = this.tabled = this.clocked = -SLOWEST;
    this.drawn = {};
    this.asked = this.urgent = true;
    this.due = false;
    this.build();
  }

  build() {
    const panel = (kind, title, ...tools) => {
      const body = el("div", { class: "body" });
      const head = el("header", {}, el("h2", {}, title), el("div", { class: "tools" }, ...tools));
      this.boxes.append(el("section", { class: `panel ${kind}`, "aria-label": title }, head, body));
      return body;
    };
    this.banner = el("section", { class: "verdict", "aria-label": "Verdict" });
    this.boxes = el("div", { class: "board" });
    this.news = el("p", { class: "unseen", role: "status", "aria-live": "polite" });
    this.root.replaceChildren(this.banner, this.boxes, this.news);
    this.ranges = el("div", { class: "ranges", role: "group", "aria-label": "Range of the charts" });
    this.back = el("button", { type: "button", class: "back", onclick: () => this.release() }, this.resting === "last" ? "Back to now" : "All rows");
    const scores = panel("scores", "Score against radius", this.back, this.ranges);
    this.readout = el("p", { class: "readout" });
    const map = panel("map", this.station.mapped ? "Map of the sensors" : "Graph of the sensors");
    this.picker = el("select", { "aria-label": "Sensor", onchange: () => this.choose(Number(this.picker.value)) });
    choices(this.picker, this.station.sensors.map((name, i) => [i, name]));
    const band = panel("sensor", "Band of a sensor", this.picker);
    this.incidents = panel("incidents", "Incidents");
    this.trusted = panel("trust", "Trust");
    this.clock = panel("clock", "Hours and weekdays");
    this.search = el("input", { type: "search", placeholder: "find a sensor", "aria-label": "Find a sensor", oninput: () => this.find() });
    this.health = panel("sensors", "Sensors", this.search);
    this.sensors = new Health(this.health, this.station, (i) => this.choose(i));
    this.buildCharts(scores, map, band);
  }

  buildCharts(scores, map, band) {
    const holder = (body) => body.appendChild(el("div", { class: "sheet" }));
    this.scores = new Sheet(holder(scores), { tabindex: "0", role: "slider", "aria-label": "Time", "aria-valuemin": "1" }, (...on) => drawScores(...on, this.station, this.view));
    scores.append(this.readout);
    this.places = new SensorMap(this.station);
    this.map = new Sheet(holder(map), { tabindex: "0", role: "img" }, (...on) => this.places.paint(...on, this.mapped()));
    this.bandWords = el("p", { class: "readout" });
    this.band = new Sheet(holder(band), { role: "img" }, (...on) => drawBand(...on, this.station, this.view, this.chosen));
    band.append(this.bandWords);
    this.listen();
  }

  listen() {
    const { canvas } = this.scores;
    const row = (event) => this.rowUnder(this.scores.at(event)[0]);
    canvas.addEventListener("pointermove", (event) => (event.buttons ? this.pin(row(event)) : this.hover(row(event))));
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.pin(row(event));
    });
    canvas.addEventListener("pointerleave", () => this.hover(null));
    canvas.addEventListener("keydown", (event) => this.key(event));
    const over = (event) => this.places.nearest(...this.map.at(event));
    this.map.canvas.addEventListener("pointermove", (event) => {
      this.hovered = over(event);
      this.changed(false);
    });
    this.map.canvas.addEventListener("pointerleave", () => {
      this.hovered = -1;
      this.changed(false);
    });
    this.map.canvas.addEventListener("click", (event) => over(event) >= 0 && this.choose(over(event)));
    this.map.canvas.addEventListener("keydown", (event) => this.mapKey(event));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.repaint());
  }

  // ------------------------------------------------------------------ time

  rowUnder(at) {
    const frame = scoreFrame(this.scores.width, this.scores.height);
    const share = (at - frame.left) / (frame.right - frame.left);
    const { from, to } = this.view;
    return Math.min(to - 1, Math.max(from, Math.floor(from + share * (to + this.view.room - from))));
  }

  hover(row) {
    this.view.hover = row;
    this.changed(false);
  }

  pin(row) {
    const { view, station } = this;
    if (!station.count) return;
    this.asked = true;
    view.cursor = Math.min(station.last, Math.max(0, row));
    view.hover = null;
    if (view.cursor < view.from || view.cursor >= view.to) view.end = Math.min(station.count, Math.round(view.cursor + view.span / 2));
    else if (view.end === null && this.resting === "last") view.end = view.to; // the picture stands while time is looked at
    if (this.travel !== null && station.detail(view.cursor) === null) this.travel(view.cursor);
    this.changed();
  }

  release() {
    this.asked = true;
    Object.assign(this.view, { cursor: null, hover: null, end: null, alarm: null });
    this.changed();
  }

  key(event) {
    const { view, station } = this;
    const now = view.cursor === null ? station.last : view.cursor;
    const page = Math.max(1, Math.round((view.to - view.from) / 10));
    const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -page, PageUp: page };
    if (event.key in steps) this.pin(now + steps[event.key] * (event.shiftKey ? 10 : 1));
    else if (event.key === "Home") this.pin(view.from);
    else if (event.key === "End") this.pin(view.to - 1);
    else if (event.key === "Escape") this.release();
    else return;
    event.preventDefault();
  }

  span(rows) {
    this.view.span = rows;
    const { cursor } = this.view;
    this.view.end = cursor === null ? null : Math.min(this.station.count, Math.round(cursor + rows / 2)) || null;
    this.showRanges();
    this.changed();
  }

  cadence() {
    const { station } = this;
    const steps = [];
    for (let row = Math.max(1, station.count - 50); row < station.count; row++) steps.push(station.times[row] - station.times[row - 1]);
    return station.timed ? median(steps) : NaN;
  }

  showRanges() {
    const cadence = this.cadence();
    const spans = cadence > 0 ? SPANS.map(([label, seconds]) => [label, Math.round(seconds / cadence)]) : ROW_SPANS;
    const offered = [...spans.filter(([, rows]) => rows >= 12 && rows < this.station.count), ["all", Infinity]];
    const key = offered.map(([label]) => label).join() + this.view.span;
    if (key === this.offered) return;
    this.offered = key;
    this.ranges.replaceChildren(...offered.map(([label, rows]) => el("button", { type: "button", "aria-pressed": String(rows === this.view.span), onclick: () => this.span(rows) }, label)));
  }

  // ------------------------------------------------------------------ sensors and alarms

  choose(sensor) {
    this.asked = true;
    this.chosen = sensor;
    this.picker.value = sensor;
    this.changed();
  }

  find() {
    this.asked = true;
    this.wanted = this.search.value.trim().toLowerCase();
    this.tell();
  }

  mapKey(event) {
    const turn = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (turn === undefined) return;
    const { weights } = this.mapped();
    const order = [...weights.keys()].sort((a, b) => weights[b] - weights[a] || a - b);
    this.choose(order[(order.indexOf(this.chosen) + turn + order.length) % order.length]);
    event.preventDefault();
  }

  open(alarm) {
    this.view.alarm = alarm;
    const [start, stop] = alarmRows(this.station, alarm);
    let worst = start;
    for (let row = start; row <= stop; row++) if (this.station.scores[row] > this.station.scores[worst]) worst = row;
    const first = (alarm.sensors || []).map((name) => this.station.index.get(name)).find((i) => i !== undefined);
    if (first !== undefined) this.choose(first);
    this.pin(ALARM_INK[alarm.kind] === "care" ? start : worst);
  }

  mapped() {
    // what the map shows: one row, or where no row was chosen all rows outside together
    const { station, view } = this;
    const n = station.sensors.length;
    const overall = view.cursor === null && view.hover === null && this.resting === "blame";
    const resting = view.cursor === null && view.hover === null;
    const found = overall ? station.blame : view.shown === null ? null : resting ? station.recentShares(view.shown, LATELY) : station.shares(view.shown);
    const weights = found || Array(n).fill(0);
    const top = overall ? Math.max(2 / n, ...weights) : Math.min(0.5, Math.max(0.1, 5 / n));
    const title = overall ? "mean share of the score, rows outside" : resting ? `share of the score, last ${LATELY} rows` : "share of the score";
    return { weights, top, title, chosen: this.chosen, hovered: this.hovered, ailing: this.ailing, alarmed: this.alarmed() };
  }

  alarmed() {
    // sensors that the alarms of the moment name; those that are ill have marks of their own
    const { station, view } = this;
    const named = view.cursor === null ? station.alarms.filter((alarm) => alarm.until === null) : view.alarm === null ? [] : [view.alarm];
    return new Set(named.filter(({ kind }) => !["silent", "stuck"].includes(kind)).flatMap((alarm) => alarm.sensors || []).map((name) => station.index.get(name)));
  }

  blame() {
    const { station } = this;
    const held = station.recent;
    const sums = Array(held.n).fill(0);
    let rows = 0;
    for (let k = 0; k < held.count; k++) {
      if (station.inside[held.first + k] !== 0) continue;
      rows += 1;
      for (let i = 0; i < held.n; i++) sums[i] += held.share[k * held.n + i] || 0;
    }
    station.blame = sums.map((sum) => (rows ? sum / rows : 0));
  }

  // ------------------------------------------------------------------ drawing

  repaint() {
    inks = null;
    this.changed();
  }

  changed(told = true, urgent = true) {
    // draw once before the next picture of the screen, however often things change; rows alone are not urgent
    if (told) this.stale = true;
    if (urgent) this.urgent = true;
    if (this.due) return;
    this.due = true;
    requestAnimationFrame((now) => {
      this.due = false;
      this.draw(now);
    });
  }

  draw(now) {
    const { view, station } = this;
    view.to = view.end === null ? station.count : Math.min(view.end, station.count);
    view.from = Math.max(0, view.to - view.span);
    view.to = Math.min(station.count, Math.max(view.to, Math.min(view.from + view.span, station.count)));
    const ahead = station.next !== null && view.to === station.count ? station.next.length : 0;
    view.room = ahead ? Math.max(ahead, Math.ceil(0.03 * (view.to - view.from))) : 0; // rows to come, on the right
    view.shown = view.hover !== null ? view.hover : view.cursor !== null ? view.cursor : this.resting === "last" && station.count ? station.last : null;
    const parts = { scores: () => this.scores.draw(), band: () => this.band.draw(), map: () => this.map.draw(), words: () => this.read() };
    for (const [part, show] of Object.entries(parts)) {
      if (!this.urgent && now - this.drawn[part] < PACES[part]) this.again(PACES.words);
      else {
        this.drawn[part] = now;
        show();
      }
    }
    this.urgent = false;
    if (!this.stale) return;
    if (now - this.told < SLOW) return this.again(SLOW);
    this.told = now;
    this.stale = false;
    this.tell();
  }

  again(wait) {
    // one more picture of what was left out, should nothing else ask for one before
    const at = performance.now() + wait;
    if (this.later !== undefined && this.expected <= at) return;
    clearTimeout(this.later);
    this.expected = at;
    this.later = setTimeout(() => {
      this.later = undefined;
      this.changed(false, false);
    }, wait);
  }

  read() {
    const { view, station } = this;
    this.back.hidden = view.cursor === null;
    const row = view.shown;
    const bands = station.own === null ? "band of the joint set" : "dark: its own band; light: that of the joint set, which holds all sensors at once";
    if (row === null || row < 0) {
      this.readout.textContent = "Point at the chart to read it, click to look at that moment; arrow keys move it.";
      this.bandWords.textContent = `${station.sensors[this.chosen]}: readings, ${bands}.`;
      return;
    }
    const outcome = { 0: "outside", 1: "inside", [NONE]: "no reading" }[station.inside[row]];
    const text = `${station.when(row)}${station.timed ? " UTC" : ""} · score ${brief(station.scores[row])} · radius ${brief(station.radii[row])} · ${outcome}`;
    rewrite(this.readout, text);
    const { canvas } = this.scores;
    canvas.setAttribute("aria-valuemax", station.count);
    canvas.setAttribute("aria-valuenow", row + 1);
    canvas.setAttribute("aria-valuetext", text);
    const reading = station.cell("value", row, this.chosen);
    const [lower, upper] = station.ownBand(row, this.chosen);
    const ends = Number.isNaN(lower) ? "" : ` · band ${brief(lower)} to ${brief(upper)}`;
    rewrite(this.bandWords, `${station.sensors[this.chosen]} · ${Number.isNaN(reading) ? "no reading" : `reads ${brief(reading)}`}${ends} · ${percent(station.cell("share", row, this.chosen) || 0)} of the score`);
  }

  facts() {
    const { view, station } = this;
    const scored = Math.max(1, view.to - view.from);
    const inside = 1 - station.misses(view.from, view.to) / scored;
    const row = view.cursor === null ? station.last : view.cursor;
    const open = station.alarms.filter((alarm) => alarm.until === null).length;
    if (!station.count) return [];
    const now = this.resting === "last" || view.cursor !== null;
    return [
      ...(now ? [["score", brief(station.scores[row]), `radius ${brief(station.radii[row])}`]] : []),
      ["inside", percent(inside), `target ${percent(1 - station.alpha, 0)}`],
      ["alarms", String(now ? open : station.alarms.length), now ? "open" : "in all"],
    ];
  }

  tell() {
    const { station } = this;
    this.showRanges();
    if (this.resting === "blame" || station.blame === null) this.blame();
    showVerdict(this.banner, this.verdict, this.facts());
    showTrust(this.trusted, this.trust, 1 - station.alpha);
    this.showIncidents();
    const { weights } = this.mapped();
    const now = performance.now();
    const table = this.asked || now - this.tabled > SLOWER;
    const anew = this.asked || now - this.clocked > SLOWEST;
    if (!anew) {
      this.stale = true; // what is left out now comes later, also if no row does
      this.again(table ? SLOWEST : SLOWER);
    }
    if (table) {
      if (anew) {
        this.clocked = now;
        showClock(this.clock, station, this.words);
      }
      this.tabled = now;
      this.asked = false;
      this.sensors.show(this.ailing, weights, this.chosen, this.wanted, anew);
    }
    const leading = [...weights.keys()].sort((a, b) => weights[b] - weights[a]).slice(0, 3);
    const named = [...this.alarmed()].map((i) => station.sensors[i]).join(", ");
    const shares = leading.map((i) => `${station.sensors[i]} ${percent(weights[i])}`).join(", ");
    this.map.canvas.setAttribute("aria-label", `Sensors by their share of the score: ${shares}. Arrow keys go through them.${named ? ` Named by an alarm: ${named}.` : ""}`);
    this.band.canvas.setAttribute("aria-label", this.bandWords.textContent);
  }

  showIncidents() {
    // the list is built anew where an alarm has changed; else only how long each has lasted is written
    const { station, view } = this;
    const key = JSON.stringify([station.alarms, station.alarms.indexOf(view.alarm)]);
    if (key === this.listed) return keepLasting(this.incidents, station);
    keepingPlace(this.incidents, () => {
      this.listed = key;
      showIncidents(this.incidents, station, view.alarm, (alarm) => this.open(alarm), this.act);
    });
  }
}

function keepingPlace(holder, renew) {
  // new content with the focus and the scrolled position of the old, unless a finger is on it
  if (holder.matches(":active")) return;
  const had = holder.contains(document.activeElement) ? [...holder.querySelectorAll("button")].indexOf(document.activeElement) : -1;
  const { scrollTop } = holder;
  renew();
  holder.scrollTop = scrollTop;
  if (had >= 0) holder.querySelectorAll("button")[had]?.focus();
}

function themeButton() {
  // light, dark, or as the system has it; kept for the next visit
  const kept = (theme) => {
    try {
      if (theme === undefined) return localStorage.getItem("theme") || "";
      localStorage.setItem("theme", theme);
    } catch {
      return ""; // a browser that keeps nothing
    }
    return theme;
  };
  const button = el("button", { type: "button", class: "theme" });
  const apply = (theme) => {
    document.documentElement.dataset.theme = theme;
    inks = null;
    const dark = theme === "dark" || (theme === "" && matchMedia("(prefers-color-scheme: dark)").matches);
    button.textContent = dark ? "Light" : "Dark";
    button.setAttribute("aria-label", dark ? "Use light colours" : "Use dark colours");
    button.onclick = () => {
      apply(kept(dark ? "light" : "dark") || (dark ? "light" : "dark"));
      dispatchEvent(new Event("themed"));
    };
  };
  apply(kept());
  return button;
}
