// Size against coverage, one pair of charts a panel, and the curves of the audits.
const SHAPES = {
  static: ["fixed shape", (r) => `M0 ${-1.15 * r}L${1.1 * r} ${0.85 * r}H${-1.1 * r}Z`],
  conditional: ["shape follows the data", (r) => `M${-0.9 * r} ${-0.9 * r}H${0.9 * r}V${0.9 * r}H${-0.9 * r}Z`],
  filter: ["filter", (r) => `M${-r} 0A${r} ${r} 0 1 0 ${r} 0A${r} ${r} 0 1 0 ${-r} 0Z`],
  published: ["published method", (r) => `M0 ${-1.3 * r}L${1.3 * r} 0L0 ${1.3 * r}L${-1.3 * r} 0Z`],
};

function shape(group, x, y, radius = 5.5) {
  const kind = ["mark", group.reached ? "" : "hollow", group.reference ? "reference" : ""].filter(Boolean).join(" ");
  return draw("path", { class: kind, d: SHAPES[group.family][1](radius), transform: `translate(${x} ${y})` });
}

function legend() {
  const sample = (family, more) => {
    const svg = draw("svg", { width: 20, height: 18, viewBox: "0 0 20 18", "aria-hidden": "true" });
    svg.append(shape({ family, reached: true, ...more }, 10, 9));
    return svg;
  };
  const entries = Object.entries(SHAPES).map(([family, [text]]) => el("span", {}, sample(family), text));
  entries.push(el("span", {}, sample("filter", { reached: false }), "missed the target"));
  entries.push(el("span", {}, sample("static", { reference: true }), "static reference"));
  byId("legend").replaceChildren(...entries);
}

function scatter(holder, panel, groups, name, title, log) {
  const shown = groups.filter((g) => Number.isFinite(metric(g, name)) && (!log || metric(g, name) > 0));
  if (!shown.length) {
    holder.replaceChildren(el("figcaption", {}, `No ${title} of finite size.`));
    return;
  }
  const box = canvas(holder, 400, `${title} against joint coverage on ${panel.name}`);
  const target = 1 - panel.alpha;
  const joints = shown.map((g) => metric(g, "joint"));
  const floor = Math.max(Math.min(...joints, target - 0.02), target - 0.1);
  const low = Math.max(0, floor - 0.012);
  const high = Math.min(1, Math.max(...joints, target + 0.03) + 0.012);
  const sizes = shown.map((g) => metric(g, name));
  const [least, most] = [Math.min(...sizes), Math.max(...sizes)];
  const pad = Math.max((most - least) * 0.1, Math.abs(most) * 0.03, 1e-6);
  const x = linear(low, high, box.left, box.right - (box.width > 420 ? 80 : 40)); // room for names
  const y = log ? logarithmic(least * 0.9, most * 1.12, box.bottom, box.top) : linear(least - pad, most + pad, box.bottom, box.top);
  const edge = x(target - 0.005);
  box.svg.append(draw("rect", { class: "missed-side", x: box.left, y: box.top, width: Math.max(0, edge - box.left), height: box.bottom - box.top }));
  axes(box, x, y, {
    xTicks: x.ticks(Math.floor(box.width / 75)), yTicks: y.ticks(5), xText: (v) => `${Number((100 * v).toFixed(1))} %`, yText: brief,
    xTitle: "joint coverage", yTitle: log ? `${title} (log scale)` : title,
  });
  box.svg.append(draw("line", { class: "target", x1: edge, x2: edge, y1: box.top, y2: box.bottom }));
  const places = shown.map((g) => [Math.max(x(metric(g, "joint")), box.left + 6), y(metric(g, name))]);
  const names = shown.map((g) => `${g.label.length > 26 ? `${g.label.slice(0, 25)}…` : g.label}${metric(g, "joint") < low ? ` (${percent(metric(g, "joint"), 0)})` : ""}`);
  const nameless = label(box, shown, names, places, edge);
  shown.forEach((group, i) => {
    const [px, py] = places[i];
    const off = metric(group, "joint") < low ? " (left of the chart)" : "";
    const words = `${group.label}: joint ${percent(metric(group, "joint"))}${off}, width ${size(metric(group, "width"))}, log mean volume ${size(metric(group, "log_mean_volume"))}, worst ${Math.min(500, panel.steps)} steps ${percent(metric(group, "worst_window"))}`;
    const click = group.trace === null ? null : () => showCourse(data.groups.indexOf(group), true);
    const parts = [draw("title", {}, words), shape(group, px, py), draw("circle", { class: "hit", cx: px, cy: py, r: 11 })];
    box.svg.append(click ? draw("g", { class: "point", onclick: click }, ...parts) : draw("g", { class: "point" }, ...parts));
  });
  const left = groups.length - shown.length;
  const told = [left ? `${left} without a finite ${title} not shown.` : "", nameless ? `No room for ${nameless} of the names: point at a mark to read it.` : ""].filter(Boolean);
  holder.replaceChildren(box.svg, ...(told.length ? [el("figcaption", {}, told.join(" "))] : []));
}

function label(box, groups, names, places, edge) {
  // names where there is room, with a thin line to those that stand apart; gives how many found none
  // at-target methods first, sharpest first
  const taken = places.map(([x, y]) => [x - 7, y - 7, x + 7, y + 7]);
  const clear = (r, line) => r[0] > box.left + 2 && r[2] < box.width - 1 && r[1] > 0 && r[3] < box.bottom && (!line || r[2] < edge - 1 || r[0] > edge + 1) && taken.every((t) => r[2] < t[0] || r[0] > t[2] || r[3] < t[1] || r[1] > t[3]);
  const order = groups.map((_, i) => i).sort((a, b) => groups[b].reference - groups[a].reference || groups[b].reached - groups[a].reached || places[b][1] - places[a][1]);
  let nameless = 0;
  order.forEach((i) => {
    const [x, y] = places[i];
    const wide = wideness(names[i]) + 2;
    const spots = [[x + 10, y - 8], [x - 10 - wide, y - 8], [x - wide / 2, y - 25], [x - wide / 2, y + 9], [x + 8, y - 22], [x + 8, y + 6], [x - 8 - wide, y + 6], [x - 8 - wide, y - 22]];
    const free = (line) => spots.find(([a, b]) => clear([a, b, a + wide, b + 16], line));
    const near = free(true) || free(false); // across the line at the target only where there is no other place
    const apart = near ? null : faraway(x, y, wide).find(([a, b]) => clear([a, b, a + wide, b + 16], false));
    const spot = near || apart;
    if (!spot) {
      nameless += 1;
      return;
    }
    if (apart) box.svg.append(draw("line", { class: "leader", x1: x, y1: y, x2: Math.min(Math.max(x, apart[0]), apart[0] + wide), y2: Math.min(Math.max(y, apart[1]), apart[1] + 16) }));
    taken.push([spot[0], spot[1], spot[0] + wide, spot[1] + 16]);
    box.svg.append(draw("text", { class: "name", x: spot[0], y: spot[1] + 13 }, names[i]));
  });
  return nameless;
}

function faraway(x, y, wide) {
  // places for a name around a mark, the nearest first
  const angles = [...Array(16).keys()].map((k) => (k * Math.PI) / 8);
  return [30, 44, 60, 78, 98].flatMap((far) => angles.map((angle) => {
    const [a, b] = [x + far * Math.cos(angle), y + far * Math.sin(angle)];
    return [Math.cos(angle) > 0.3 ? a : Math.cos(angle) < -0.3 ? a - wide : a - wide / 2, b - 8];
  }));
}

function drawScatters() {
  const holder = byId("scatter");
  holder.replaceChildren();
  data.panels.forEach((panel, place) => {
    const groups = data.groups.filter((g) => g.panel === place && g.seeds.length);
    if (!groups.length) return;
    const [first, second] = [el("figure"), el("figure")];
    holder.append(el("h3", {}, panel.name), el("div", { class: "columns" }, first, second));
    scatter(first, panel, groups, "width", "width", true);
    scatter(second, panel, groups, "log_mean_volume", "log mean volume", false);
  });
}

function drawAudits() {
  document.querySelectorAll(".audit-curves").forEach((holder) => {
    const byName = new Map();
    data.audits[Number(holder.dataset.audit)].curves.forEach((one) => byName.set(one.name, [...(byName.get(one.name) || []), one]));
    holder.replaceChildren(...[...byName].map(() => el("figure")));
    if (!holder.clientWidth) return; // folded: drawn when it is opened
    [...byName].forEach(([name, curves], place) => auditChart(holder.children[place], name, curves.slice(0, 3)));
  });
}

function auditChart(figure, name, curves) {
  const box = canvas(figure, 300, `curve of ${name}`);
  const all = (side) => curves.flatMap((one) => one[side]);
  const [ys, xs] = [all("y"), all("x")];
  const positive = ys.every((v) => v > 0) && Math.max(...ys) > 20 * Math.min(...ys);
  const [least, most] = [Math.min(...ys), Math.max(...ys)];
  const x = linear(Math.min(...xs), Math.max(...xs), box.left, box.right);
  const y = positive ? logarithmic(least, most, box.bottom, box.top) : linear(Math.min(0, least), most || 1, box.bottom, box.top);
  const short = (v) => (Math.abs(v) > 0 && (Math.abs(v) < 1e-3 || Math.abs(v) >= 1e5) ? v.toExponential(0).replace("-", "−") : brief(v));
  axes(box, x, y, {
    xTicks: x.ticks(Math.floor(box.width / 90)), yTicks: y.ticks(5), xText: short, yText: short,
    xTitle: curves[0].xlabel, yTitle: (curves[0].ylabel || name) + (positive ? " (log scale)" : ""),
  });
  const kinds = ["line", "line second", "line third"];
  curves.forEach((one, i) => {
    const path = curve(one.x.map((v, k) => [x(v), y(one.y[k])]), kinds[i]);
    path.append(draw("title", {}, one.label));
    box.svg.append(path);
  });
  const looks = ["solid", "dashed", "dotted"];
  figure.replaceChildren(box.svg, el("figcaption", {}, curves.map((one, i) => (curves.length > 1 ? `${looks[i]}: ${one.label}` : one.label)).join("; ")));
}
