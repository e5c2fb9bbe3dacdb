// The table of all results: sorted by its headings, filtered by the form above it, seeds folded in.
const COLUMNS = [
  { title: "method", key: (g) => g.label, words: true },
  { title: "cell", key: (g) => panelOf(g).name, words: true },
  { title: "target", key: (g) => (g.seeds.length ? (g.reached ? "yes" : "no") : "–"), words: true },
  { title: "joint", metric: "joint", show: percent },
  { title: "worst 500", metric: "worst_window", show: percent },
  { title: "lowest hour", metric: "worst_hour", show: percent },
  { title: "gap 100", metric: "gap_100_p90" },
  { title: "off 30", metric: "off_30", show: percent },
  { title: "longest", metric: "longest_misses" },
  { title: "joint score", metric: "joint_score" },
  { title: "width", metric: "width" },
  { title: "log mean vol", metric: "log_mean_volume" },
  { title: "log-volume", metric: "log_volume" },
  { title: "full width", metric: "width_full" },
  { title: "marginal", metric: "marginal", show: percent },
  { title: "Winkler", metric: "winkler" },
  { title: "infinite", metric: "infinite_share", show: percent },
  { title: "fit", metric: "fit_seconds" },
  { title: "predict", metric: "predict_seconds" },
  { title: "memory", metric: "peak_mb", show: (mb) => (Number.isNaN(mb) ? "–" : Math.round(mb).toLocaleString("en")) },
  { title: "protocol", key: (g) => panelOf(g).protocol, words: true },
  { title: "backbone", key: (g) => g.backbone, words: true },
];
const sorting = { column: 1, direction: 1 };
const opened = new Set();
const names = new Intl.Collator("en", { numeric: true });

function keyOf(column, group) {
  return column.metric ? metric(group, column.metric) : column.key(group);
}

const around = (mean, spread) => spread.toFixed(Math.abs(mean) >= 1000 ? 0 : Math.abs(mean) >= 100 ? 1 : 3); // digits of `size`

function compare(column, direction) {
  return (a, b) => {
    const one = keyOf(column, a);
    const two = keyOf(column, b);
    if (column.words) return direction * names.compare(one, two);
    if (Number.isNaN(one) || Number.isNaN(two)) return Number.isNaN(one) - Number.isNaN(two); // no number: last
    return one === two ? 0 : direction * (one < two ? -1 : 1);
  };
}

function wanted() {
  const cell = byId("filter-cell").value;
  const protocol = byId("filter-protocol").value;
  const backbone = byId("filter-backbone").value;
  const text = byId("filter-method").value.trim().toLowerCase();
  const reached = byId("filter-target").checked;
  return data.groups.filter(
    (g) =>
      (!cell || panelOf(g).cell === cell) &&
      (!protocol || panelOf(g).protocol === protocol) &&
      (!backbone || g.backbone === backbone) &&
      (!text || g.label.toLowerCase().includes(text)) &&
      (!reached || g.reached)
  );
}

function heading(column, place) {
  const click = () => {
    sorting.direction = sorting.column === place ? -sorting.direction : 1;
    sorting.column = place;
    fillTable();
  };
  const active = sorting.column === place;
  const state = active ? (sorting.direction > 0 ? "ascending" : "descending") : "none";
  const kind = place === 0 ? "first" : column.words ? "left" : null;
  return el("th", { scope: "col", "aria-sort": state, class: kind }, el("button", { type: "button", onclick: click }, column.title));
}

function resultRow(group, place) {
  const many = group.seeds.length > 1;
  const open = () => {
    if (!opened.delete(place)) opened.add(place);
    fillTable();
    document.querySelector(`[data-opener="${place}"]`).focus();
  };
  const named = group.trace === null ? el("span", {}, group.label) : el("button", { type: "button", class: "goto", onclick: () => showCourse(place, true) }, group.label);
  const opener = many
    ? el("button", { type: "button", class: "opener", "data-opener": place, "aria-expanded": String(opened.has(place)), "aria-label": `seeds of ${group.label}`, onclick: open }, opened.has(place) ? "▾" : "▸")
    : el("span", { class: "opener" }, " ");
  const cells = COLUMNS.slice(1).map((column) => {
    if (column.words) return el("td", { class: "left clip", title: column.title === "cell" ? panelOf(group).cell : null }, keyOf(column, group));
    const spread = value(group.spread[data.metrics.indexOf(column.metric)]);
    const text = (column.show || size)(keyOf(column, group));
    const share = column.show === percent;
    const shown = many && Number.isFinite(spread) && ["joint", "worst_window", "width", "log_volume", "log_mean_volume", "width_full"].includes(column.metric);
    const marked = column.metric === "joint" && group.note ? el("abbr", { title: group.note }, "†") : null;
    return el("td", {}, text, marked, shown ? el("span", { class: "spread" }, ` ± ${share ? (100 * spread).toFixed(1) : around(keyOf(column, group), spread)}`) : null);
  });
  return el("tr", { class: group.reached ? null : "below", "data-method": group.label }, el("td", { class: "first", title: group.label }, opener, " ", named), ...cells);
}

function seedRows(group) {
  return group.seeds.map((seed) => {
    const cells = COLUMNS.slice(1).map((column) => {
      if (column.words) return el("td", {}, "");
      return el("td", {}, (column.show || size)(value(seed[1 + data.metrics.indexOf(column.metric)])));
    });
    return el("tr", { class: "seed" }, el("td", { class: "first" }, el("span", { class: "opener" }, " "), ` seed ${seed[0]}`), ...cells);
  });
}

function messageRows(group) {
  const seeds = new Map();
  group.errors.forEach(([seed, text]) => seeds.set(text, [...(seeds.get(text) || []), seed]));
  return [...seeds].map(([text, failed]) => {
    const which = failed.length > 1 ? `seeds ${failed.join(", ")}` : `seed ${failed[0]}`;
    return el("tr", { class: "message" }, el("td", { colspan: COLUMNS.length }, el("div", {}, `${group.label} failed (${which}): ${text}`)));
  });
}

function fillTable() {
  const head = byId("table").tHead;
  const focused = head.contains(document.activeElement) ? [...head.querySelectorAll("button")].indexOf(document.activeElement) : -1;
  head.replaceChildren(el("tr", {}, ...COLUMNS.map(heading)));
  if (focused >= 0) head.querySelectorAll("button")[focused].focus();
  const rows = wanted().sort(compare(COLUMNS[sorting.column], sorting.direction));
  const shown = rows.flatMap((group) => {
    const place = data.groups.indexOf(group);
    return [resultRow(group, place), ...(opened.has(place) ? seedRows(group) : []), ...messageRows(group)];
  });
  byId("table").tBodies[0].replaceChildren(...shown);
  byId("count").textContent = `${rows.length} of ${data.groups.length} results shown`;
}

function startTable() {
  const distinct = (key) => [...new Set(data.groups.map(key))].sort(names.compare);
  const cells = new Map(data.panels.map((panel) => [panel.cell, panel.short]));
  choices(byId("filter-cell"), [["", "all"], ...[...cells].map(([cell, short]) => [cell, short])]);
  choices(byId("filter-protocol"), [["", "all"], ...distinct((g) => panelOf(g).protocol).map((one) => [one, one])]);
  choices(byId("filter-backbone"), [["", "all"], ...distinct((g) => g.backbone).map((one) => [one, one])]);
  byId("filters").addEventListener("input", fillTable);
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  if (data.panels.length === 1) sorting.column = COLUMNS.findIndex((column) => column.metric === "width");
  fillTable();
}
