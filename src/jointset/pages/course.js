// One method over the test block: score and radius, rolling coverage, worst windows, the sensors that miss.
const traced = data.groups.map((group, place) => [group, place]).filter(([group]) => group.trace !== null);

function showCourse(place, go) {
  const group = data.groups[place];
  byId("course-panel").value = group.panel;
  fillMethods(place);
  drawCourse();
  if (go) byId("course").scrollIntoView();
}

function fillMethods(chosen) {
  const panel = Number(byId("course-panel").value);
  const here = traced.filter(([group]) => group.panel === panel);
  const sharp = here.filter(([group]) => group.reached && Number.isFinite(metric(group, "width")));
  const best = [...(sharp.length ? sharp : here)].sort((a, b) => metric(a[0], "width") - metric(b[0], "width"))[0][1];
  const method = chosen === undefined ? best : chosen;
  choices(byId("course-method"), here.map(([group, place]) => [place, group.label]), method);
  const other = here.find(([group, place]) => group.reference && place !== method);
  choices(byId("course-other"), [["", "none"], ...here.map(([group, place]) => [place, group.label])], other ? other[1] : "");
}

function drawCourse() {
  const group = data.groups[Number(byId("course-method").value)];
  const trace = data.traces[group.trace];
  const compared = byId("course-other").value;
  const other = compared === "" || data.groups[Number(compared)] === group ? null : data.groups[Number(compared)];
  const reached = group.reached ? "at target" : "missed the target";
  byId("course-about").textContent = `${group.label} on ${panelOf(group).name}, seed ${trace.seed}: ${trace.steps.toLocaleString("en")} test steps. Over all seeds joint coverage ${percent(metric(group, "joint"))} (${reached}), width ${size(metric(group, "width"))}, log mean volume ${size(metric(group, "log_mean_volume"))}.`;
  scoreChart(byId("course-score"), trace);
  shareChart(byId("course-share"), group, trace, other);
  worstTable(trace);
  clockTable(trace, 1 - panelOf(group).alpha);
  bars(byId("course-outside"), trace, trace.outside, "No reading left the bounds of its sensor.");
  bars(byId("course-blame"), trace, trace.blame, "No joint miss.");
}

const count = (trace) => trace.missed.length;
const firstStep = (trace, bin) => Math.floor((bin * trace.steps) / count(trace));

function whenAxis(trace, box) {
  const x = linear(0, count(trace), box.left, box.right);
  const times = trace.axis === null ? null : data.axes[trace.axis];
  const many = Math.max(2, Math.floor(box.width / 150));
  if (!times) {
    const steps = linear(0, trace.steps, box.left, box.right);
    return { x, ticks: steps.ticks(many).map((step) => (step * count(trace)) / trace.steps), text: (bin) => Math.round((bin * trace.steps) / count(trace)).toLocaleString("en"), title: "test step" };
  }
  const days = (times[times.length - 1] - times[0]) / 86400;
  const ticks = [...Array(many).keys()].map((k) => Math.round((k * (times.length - 1)) / (many - 1)));
  return { x, ticks, text: (bin) => (days > 3 ? moment(times[bin], false) : moment(times[bin]).slice(5)), title: days > 3 ? "time (UTC)" : `time (UTC), ${moment(times[0], false).slice(0, 4)}` };
}

function stretchName(trace, bin) {
  const steps = `steps ${(firstStep(trace, bin) + 1).toLocaleString("en")} to ${firstStep(trace, bin + 1).toLocaleString("en")}`;
  return trace.axis === null ? steps : `${moment(data.axes[trace.axis][bin])}, ${steps}`;
}

function readout(box, trace, x, caption, hint, words) {
  caption.textContent = hint;
  const cursor = draw("line", { class: "cursor", y1: box.top, y2: box.bottom, x1: -9, x2: -9 });
  const move = (event) => {
    const frame = box.svg.getBoundingClientRect();
    const inside = ((event.clientX - frame.left) / frame.width) * box.width;
    const bin = Math.min(count(trace) - 1, Math.max(0, Math.floor(((inside - box.left) / (box.right - box.left)) * count(trace))));
    cursor.setAttribute("x1", x(bin + 0.5));
    cursor.setAttribute("x2", x(bin + 0.5));
    caption.textContent = `${stretchName(trace, bin)}: ${words(bin)}`;
  };
  const leave = () => {
    cursor.setAttribute("x1", -9);
    cursor.setAttribute("x2", -9);
    caption.textContent = hint;
  };
  box.svg.append(cursor, draw("rect", { class: "hit", x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top, onpointermove: move, onpointerdown: move, onpointerleave: leave }));
}

const between = (low, high, show) => (Number.isNaN(low) ? "no reading" : show(low) === show(high) ? show(low) : `${show(low)} to ${show(high)}`);

function scoreChart(figure, trace) {
  const box = canvas(figure, 380, "score and radius over time");
  const [low, high] = stretched(trace.score, count(trace));
  const [least, most] = stretched(trace.radius, count(trace));
  const finite = (values) => values.filter((v) => Number.isFinite(v));
  const radii = finite([...least, ...most]);
  const all = finite([...low, ...high, ...radii]);
  const top = all.length ? Math.max(...all) : 1;
  const log = radii.length > 0 && Math.min(...radii) > 0 && top > 5 * Math.max(...radii); // peaks far above the radius
  const positive = all.filter((v) => v > 0);
  const base = log ? Math.max(Math.min(...positive), Math.min(...radii) / 30) * 0.8 : Math.min(0, ...all);
  const strip = 34;
  const plot = { ...box, bottom: box.bottom - strip };
  const scale = log ? logarithmic(base, Math.max(top, base * 2) * 1.15, plot.bottom, plot.top) : linear(base, (top || 1) * 1.05, plot.bottom, plot.top);
  const y = (v) => Math.min(plot.bottom, Math.max(plot.top, v === Infinity ? plot.top : v === -Infinity ? plot.bottom : log && v <= base ? plot.bottom : scale(v)));
  const when = whenAxis(trace, box);
  axes(box, when.x, y, { xTicks: when.ticks, yTicks: scale.ticks(5), xText: when.text, yText: brief, xTitle: when.title, yTitle: log ? "score (log scale)" : "score" });
  box.svg.append(band(low, high, when.x, y, "band"));
  if (most.some((v, i) => v !== least[i])) box.svg.append(band(least, most, when.x, y, "area"));
  const middle = least.flatMap((v, i) => [[when.x(i), (y(v) + y(most[i])) / 2], [when.x(i + 1), (y(v) + y(most[i])) / 2]]);
  box.svg.append(curve(middle.map(([a, b]) => [a, b]), "line"));
  const step = (box.right - box.left) / count(trace);
  const floor = box.bottom - 2;
  trace.missed.forEach((missed, bin) => {
    if (!missed) return;
    const share = missed / Math.max(1, firstStep(trace, bin + 1) - firstStep(trace, bin));
    const tall = 4 + share * (strip - 10);
    const mark = draw("rect", { class: "misses", x: when.x(bin), y: floor - tall, width: Math.max(1, step - 0.4), height: tall });
    box.svg.append(mark);
  });
  box.svg.append(draw("line", { class: "axis", x1: box.left, x2: box.right, y1: plot.bottom, y2: plot.bottom }));
  box.svg.append(draw("text", { class: "quiet", x: box.left - 7, y: box.bottom - 8, "text-anchor": "end" }, "misses"));
  const caption = el("figcaption");
  const endless = [...least, ...most].some((v) => v === Infinity) ? " Where the radius was infinite the line runs along the top." : "";
  const hint = `Line: radius; grey: scores; red: misses.${endless} Point at the chart to read it.`;
  readout(box, trace, when.x, caption, hint, (bin) => `score ${between(low[bin], high[bin], brief)}, radius ${between(least[bin], most[bin], brief)}, ${trace.missed[bin]} missed`);
  figure.replaceChildren(box.svg, caption);
}

function shareChart(figure, group, trace, other) {
  const box = canvas(figure, 300, "rolling coverage over time");
  const [low, high] = stretched(trace.share, count(trace));
  const second = other === null ? null : data.traces[other.trace];
  const [otherLow, otherHigh] = second === null ? [[], []] : stretched(second.share, count(second));
  const seen = [...low, ...otherLow, trace.band[0]].filter((v) => !Number.isNaN(v));
  const target = 1 - panelOf(group).alpha;
  const scale = linear(Math.max(0, Math.min(...seen) - 0.03), 1, box.bottom, box.top);
  const when = whenAxis(trace, box);
  box.svg.append(draw("rect", { class: "missed-side", x: box.left, y: scale(trace.band[1]), width: box.right - box.left, height: scale(trace.band[0]) - scale(trace.band[1]) }));
  axes(box, when.x, scale, { xTicks: when.ticks, yTicks: scale.ticks(5), xText: when.text, yText: (v) => `${Number((100 * v).toFixed(1))} %`, xTitle: when.title, yTitle: `inside, last ${trace.window} steps` });
  box.svg.append(draw("line", { class: "target", x1: box.left, x2: box.right, y1: scale(target), y2: scale(target) }));
  const line = (lows, highs, x, more) => {
    const points = lows.map((v, i) => [x(i + 0.5), scale((v + highs[i]) / 2)]);
    box.svg.append(band(lows, highs, x, scale, `area${more}`), curve(points, `line${more}`));
  };
  if (second) line(otherLow, otherHigh, linear(0, count(second), box.left, box.right), " second");
  line(low, high, when.x, "");
  const caption = el("figcaption");
  const pair = other === null ? "" : ` Solid: ${group.label}; dashed: ${other.label}.`;
  const hint = `Straight dashed line: target; grey band: where 95 % of windows would lie if steps were independent.${pair}`;
  readout(box, trace, when.x, caption, hint, (bin) => `${between(low[bin], high[bin], percent)} of the last ${trace.window} steps inside`);
  figure.replaceChildren(box.svg, caption);
}

function worstTable(trace) {
  const rows = trace.worst.map(([start, stop, share], i) => {
    const times = trace.times === null ? [] : [el("td", { class: "left" }, moment(trace.times[i][0])), el("td", { class: "left" }, moment(trace.times[i][1]))];
    return el("tr", {}, el("td", { class: "left" }, `${(start + 1).toLocaleString("en")} to ${stop.toLocaleString("en")}`), ...times, el("td", {}, percent(value(share))));
  });
  const times = trace.times === null ? [] : [el("th", { class: "left" }, "from (UTC)"), el("th", { class: "left" }, "to (UTC)")];
  const head = el("thead", {}, el("tr", {}, el("th", { class: "left" }, "test steps"), ...times, el("th", {}, `inside, of ${trace.window}`)));
  byId("course-worst").replaceChildren(el("table", {}, head, el("tbody", {}, ...rows)));
}

function clockTable(trace, target) {
  byId("course-clock").hidden = trace.clock === null;
  if (trace.clock === null) return;
  const rows = data.clocks[trace.clock.rows];
  const missed = trace.clock.missed;
  byId("clock-words").textContent = `${trace.clock.words ? `Inside ${trace.clock.words}.` : "No hour and no weekday differs by more than chance explains."} Share of the steps inside in per cent; red: under the target, blue: above it. Hours are UTC.`;
  const days = ["Mo", "Tu", "We", "Th", "Fr", "Sa", "Su"];
  const sum = (table, hour) => table.reduce((total, line) => total + line[hour], 0);
  const cell = (lost, steps) => {
    if (!steps) return el("td", { class: "none" });
    const share = 1 - lost / steps;
    const made = el("td", { title: `${steps - lost} of ${steps} steps` }, (100 * share).toFixed(0));
    const strength = share < target ? Math.min((target - share) / 0.4, 1) : (share - target) / Math.max(1 - target, 1e-9);
    made.style.background = `rgba(${share < target ? "178,24,43" : "33,102,172"},${(0.6 * strength).toFixed(2)})`;
    return made;
  };
  const lines = [...Array(24).keys()].filter((hour) => sum(rows, hour) > 0).map((hour) => el("tr", {}, el("th", {}, String(hour).padStart(2, "0")), ...rows.map((line, day) => cell(missed[day][hour], line[hour])), cell(sum(missed, hour), sum(rows, hour))));
  const head = el("tr", {}, el("th", {}, "h"), ...days.map((day) => el("th", {}, day)), el("th", {}, "all"));
  byId("clock-table").replaceChildren(el("thead", {}, head), el("tbody", {}, ...lines));
}

function bars(holder, trace, shares, nothing) {
  const sensors = data.sensors[trace.sensors];
  if (shares === null || !shares.length) {
    holder.replaceChildren(el("p", { class: "about" }, shares === null ? "No joint miss, or not known for this method." : nothing));
    return;
  }
  const most = Math.max(...shares.map(([, share]) => share));
  const rows = shares.map(([i, share]) => {
    const fill = el("div", { class: "fill" });
    fill.style.width = `${(100 * share) / most}%`;
    const name = sensors[i] === undefined ? `sensor ${i}` : sensors[i];
    return el("div", { class: "bar" }, el("span", { class: "name", title: name }, name), el("div", { class: "track" }, fill), el("span", { class: "share" }, percent(share)));
  });
  const all = sensors.length > shares.length ? [el("p", { class: "about" }, `The ${shares.length} largest of ${sensors.length} sensors.`)] : [];
  holder.replaceChildren(...rows, ...all);
}

function startCourse() {
  if (!traced.length) {
    byId("course-body").replaceChildren(el("p", {}, "No course over time was stored with these results."));
    return;
  }
  const panels = [...new Set(traced.map(([group]) => group.panel))];
  choices(byId("course-panel"), panels.map((place) => [place, data.panels[place].name]));
  byId("course-panel").addEventListener("change", () => {
    fillMethods();
    drawCourse();
  });
  ["course-method", "course-other"].forEach((id) => byId(id).addEventListener("change", drawCourse));
  fillMethods();
  drawCourse();
  redrawn.push(drawCourse);
}

startTable();
legend();
drawScatters();
startCourse();
drawAudits();
document.querySelectorAll("details.audit").forEach((one) => one.addEventListener("toggle", drawAudits));
redrawn.push(drawScatters, drawAudits);
