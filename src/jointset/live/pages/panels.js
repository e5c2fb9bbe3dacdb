// What stands beside the charts as text and tables: verdict, trust, incidents, hours, the health of every sensor.
const LIGHTS = {
  green: { sign: "●", word: "As promised" },
  amber: { sign: "▲", word: "Use with care" },
  red: { sign: "■", word: "Do not rely on it" },
  grey: { sign: "○", word: "Nothing to judge yet" },
};
const KINDS = { change: "Sustained change", sustained: "Sustained change", sensor: "Sensor to blame", silent: "Sensor silent", stuck: "Sensor stuck", coverage: "Coverage lost", drift: "Scores have drifted", trust: "Coverage lost", miss: "Outside the set" };
const JUDGED = 600; // rows behind what the table says of a sensor
const DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

function showVerdict(holder, { light, word, sentence }, facts) {
  const lamp = LIGHTS[light] || LIGHTS.grey;
  holder.className = `verdict ${light}`;
  const told = el("div", { class: "told" }, el("strong", {}, word || lamp.word), el("p", {}, sentence));
  const numbers = facts.map(([label, number, note]) => el("div", { class: "fact" }, el("span", { class: "label" }, label), el("span", { class: "number" }, number), el("span", { class: "label" }, note || "")));
  holder.replaceChildren(el("span", { class: "lamp", "aria-hidden": "true" }, lamp.sign), told, el("div", { class: "facts" }, ...numbers));
}

function showTrust(holder, trust, target) {
  if (!trust) return holder.replaceChildren(el("p", { class: "about" }, trust === undefined ? "Asking…" : "This model has no verdict on itself."));
  const seen = value(trust.recent_coverage);
  const low = 0.5;
  const place = (share) => `${(100 * Math.min(1, Math.max(0, (share - low) / (1 - low)))).toFixed(1)}%`;
  const gauge = el("div", { class: "gauge", role: "img", "aria-label": `Target ${percent(target, 0)}, expected ${percent(trust.band[0], 0)} to ${percent(trust.band[1], 0)}, seen lately ${percent(seen)}` });
  const part = (kind, left, right) => {
    const made = el("span", { class: kind });
    made.style.left = place(left);
    if (right !== undefined) made.style.width = `calc(${place(right)} - ${place(left)})`;
    gauge.append(made);
  };
  part("expected", trust.band[0], trust.band[1]);
  part("target", target);
  if (!Number.isNaN(seen)) part(`seen${trust.coverage_alarm ? " far" : ""}`, seen);
  const scale = el("div", { class: "gauge-scale", "aria-hidden": "true" }, el("span", {}, "50 %"), el("span", {}, "75 %"), el("span", {}, "100 %"));
  const drift = Math.abs(trust.drift) >= 1 ? (trust.drift > 0 ? "scores have grown" : "scores have shrunk") : "none";
  const entries = [
    ["inside, last 200 rows", Number.isNaN(seen) ? "no rows yet" : percent(seen)],
    ["to be expected", `${percent(trust.band[0], 0)} to ${percent(trust.band[1], 0)}`],
    ["calibration is worth", `${Math.round(trust.effective_size).toLocaleString("en")} of ${trust.n_calibration.toLocaleString("en")} rows`],
    ["drift", `${drift} (${Math.abs(trust.drift).toFixed(2)} of the limit)`],
  ];
  const list = el("dl", { class: "pairs" }, ...entries.flatMap(([label, text]) => [el("dt", {}, label), el("dd", {}, text)]));
  holder.replaceChildren(gauge, scale, el("p", { class: "key" }, "Diamond: rows seen lately. Bar: what calibration makes one expect. Line: the target."), list);
}

function lasting(station, alarm) {
  const [start, stop] = alarmRows(station, alarm);
  const open = alarm.until === null;
  const rows = stop - start + 1;
  const since = `since ${station.when(start)}`;
  return open ? `${since} · ${rows.toLocaleString("en")} rows, still going on` : `${station.when(start)} · ${rows.toLocaleString("en")} rows`;
}

function inOrder(station) {
  const open = (alarm) => (alarm.until === null ? 1 : 0);
  return [...station.alarms].sort((a, b) => open(b) - open(a) || alarmRows(station, b)[0] - alarmRows(station, a)[0]).slice(0, 60);
}

function keepLasting(holder, station) {
  const lines = holder.querySelectorAll(".since");
  inOrder(station).forEach((alarm, i) => rewrite(lines[i], lasting(station, alarm)));
}

function showIncidents(holder, station, chosen, choose, act) {
  if (!station.alarms.length) {
    return holder.replaceChildren(el("p", { class: "about empty" }, "No alarm. Single rows outside their set are expected: about one in ", String(Math.round(1 / station.alpha)), "."));
  }
  const items = inOrder(station).map((alarm) => {
    const who = (alarm.sensors || []).slice(0, 5);
    const more = (alarm.sensors || []).length - who.length;
    const names = who.map((name) => el("span", { class: "chip" }, name));
    if (more > 0) names.push(el("span", { class: "more" }, `and ${more} more`));
    const ink = ALARM_INK[alarm.kind] || "alarm";
    const body = [
      el("span", { class: `mark ${ink}`, "aria-hidden": "true" }),
      el("span", { class: "what" }, KINDS[alarm.kind] || alarm.kind, alarm.until === null ? el("span", { class: "live-tag" }, "now") : null),
      el("span", { class: "since" }, lasting(station, alarm)),
      el("span", { class: "who" }, ...names),
      alarm.where ? el("span", { class: "text" }, `around ${alarm.where}`) : null,
      alarm.text && !who.length ? el("span", { class: "text" }, alarm.text) : null,
    ];
    const button = el("button", { type: "button", class: alarm === chosen ? "incident chosen" : "incident", onclick: () => choose(alarm) }, ...body);
    return el("li", {}, button, act === null || alarm.until !== null ? null : actions(alarm, act));
  });
  holder.replaceChildren(el("ul", { class: "incident-list" }, ...items));
}

function actions(alarm, act) {
  // what an operator can do about an alarm that is open
  const does = (action, text, done) => el("button", { type: "button", disabled: done, onclick: () => act(alarm, action) }, text);
  const seen = does("acknowledge", alarm.acknowledged ? "Seen" : "I have seen it", alarm.acknowledged);
  const quiet = does("silence", alarm.silenced ? "Silent" : "Silence for an hour", alarm.silenced);
  return el("div", { class: "actions", role: "group", "aria-label": KINDS[alarm.kind] || alarm.kind }, seen, quiet, does("clear", "End it", false));
}

function clockTables(station) {
  const rows = DAYS.map(() => Array(24).fill(0));
  const hits = DAYS.map(() => Array(24).fill(0));
  for (let row = 0; row < station.count; row++) {
    if (station.inside[row] === NONE) continue;
    const time = station.times[row];
    const day = (Math.floor(time / 86400) + 3) % 7;
    const hour = Math.floor(time / 3600) % 24;
    rows[day][hour] += 1;
    hits[day][hour] += station.inside[row];
  }
  return { rows, hits };
}

function showClock(holder, station, words) {
  if (!station.timed) return holder.replaceChildren(el("p", { class: "about" }, "The rows have no time stamps."));
  const { rows, hits } = clockTables(station);
  const target = 1 - station.alpha;
  const heading = el("tr", {}, el("td", {}), ...[...Array(24).keys()].map((hour) => el("th", { scope: "col" }, hour % 3 ? "" : String(hour).padStart(2, "0"))));
  const lines = DAYS.map((name, day) => el("tr", {}, el("th", { scope: "row" }, name), ...rows[day].map((count, hour) => clockCell(count, hits[day][hour], target, `${name} ${String(hour).padStart(2, "0")} h`))));
  const key = el("p", { class: "key" }, words || "Share of rows inside by hour (UTC) and weekday.", " Orange: under the target; blue: above it; empty: no rows.");
  holder.replaceChildren(el("table", { class: "hours" }, el("thead", {}, heading), el("tbody", {}, ...lines)), key);
}

function clockCell(count, hits, target, name) {
  const made = el("td", { title: count ? `${name}: ${hits} of ${count} rows inside` : `${name}: no rows` });
  if (!count) return made;
  const share = hits / count;
  const sure = Math.min(1, count / 12); // a cell of few rows says little
  const strength = sure * (share < target ? Math.min(1, (target - share) / 0.4) : (0.75 * (share - target)) / Math.max(1 - target, 1e-9));
  made.className = share < target ? "under" : "above";
  made.style.setProperty("--strength", `${Math.round(100 * strength)}%`);
  made.append(el("span", { class: "unseen" }, `${Math.round(100 * share)} %`));
  return made;
}

function sensorFacts(station) {
  // of every sensor, over the last rows: share of readings inside its own band, share of rows without a reading
  const held = station.recent;
  const rows = Math.min(JUDGED, held.count);
  const seen = new Float64Array(held.n);
  const inside = new Float64Array(held.n);
  const reach = station.own === null ? new Float64Array(held.n).fill(1) : Float64Array.from(station.own.quantiles, (c) => (c === null ? Infinity : c));
  for (let row = held.count - rows; row < held.count; row++) {
    const scale = station.own === null ? 1 : station.radii[held.first + row] ** -station.own.power;
    for (let i = 0, place = row * held.n; i < held.n; i++, place++) {
      const reading = held.value[place];
      if (Number.isNaN(reading)) continue;
      seen[i] += 1;
      const off = Math.abs(2 * reading - held.lower[place] - held.upper[place]);
      if (!(off > (held.upper[place] - held.lower[place]) * reach[i] * scale)) inside[i] += 1;
    }
  }
  return station.sensors.map((name, i) => ({ i, name, inside: seen[i] ? inside[i] / seen[i] : NaN, missing: rows ? 1 - seen[i] / rows : NaN }));
}

class Health {
  // the table of all sensors: a line is made once, and moved and rewritten where something changed
  constructor(holder, station, choose) {
    this.station = station;
    this.lines = station.sensors.map((name, i) => this.line(name, () => choose(i)));
    this.body = el("tbody");
    const title = ["sensor", "state", "share", "inside", "missing"].map((text) => el("th", { scope: "col" }, text));
    holder.replaceChildren(el("table", { class: "health" }, el("thead", {}, el("tr", {}, ...title)), this.body));
    this.order = "";
  }

  line(name, choose) {
    const [state, inside, missing] = ["state", "", ""].map((kind) => el("td", { class: kind || null }));
    const bar = el("span", { class: "bar" });
    const button = el("button", { type: "button", class: "pick", onclick: choose }, name);
    const row = el("tr", {}, el("th", { scope: "row" }, button), state, el("td", { class: "weight" }, bar), inside, missing);
    return { row, button, state, bar, inside, missing };
  }

  show(ailing, weights, chosen, wanted, anew) {
    const facts = sensorFacts(this.station);
    const most = Math.max(...weights, 1e-9);
    for (const { i, inside, missing } of facts) {
      const line = this.lines[i];
      const ill = ailing.get(i);
      const bar = ((100 * weights[i]) / most).toFixed(0);
      const told = [ill, bar, percent(inside), missing ? percent(missing) : "none", i === chosen];
      if (line.told === told.join()) continue; // the browser lays out what is written, the same or not
      line.told = told.join();
      line.state.textContent = ill ? `▲ ${ill}` : "● reads";
      line.state.className = ill ? "state ill" : "state";
      line.bar.style.width = `${bar}%`;
      [, , line.inside.textContent, line.missing.textContent] = told;
      line.row.className = i === chosen ? "chosen" : "";
      line.button.setAttribute("aria-pressed", String(i === chosen));
    }
    if (!anew && this.ill === [...ailing.keys()].join()) return;
    this.ill = [...ailing.keys()].join();
    const listed = facts.filter(({ name }) => name.toLowerCase().includes(wanted));
    listed.sort((a, b) => ailing.has(b.i) - ailing.has(a.i) || weights[b.i] - weights[a.i] || a.i - b.i);
    const order = listed.map(({ i }) => i).join();
    if (order === this.order || this.body.matches(":active, :focus-within")) return;
    this.order = order;
    this.body.replaceChildren(...listed.map(({ i }) => this.lines[i].row));
  }
}
