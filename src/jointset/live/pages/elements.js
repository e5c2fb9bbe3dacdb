// Elements built without any HTML text, and numbers and times as words.
const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);
const value = (v) => (v === null || v === undefined ? NaN : v === "inf" ? Infinity : v === "-inf" ? -Infinity : v);

function build(make, attributes, children) {
  const element = make();
  for (const [key, held] of Object.entries(attributes || {})) {
    if (held === null || held === undefined || held === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), held);
    else element.setAttribute(key, held === true ? "" : held);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}
const el = (tag, attributes, ...children) => build(() => document.createElement(tag), attributes, children);
const draw = (tag, attributes, ...children) => build(() => document.createElementNS(SVG, tag), attributes, children);

function rewrite(element, text) {
  // the browser lays out and paints what is written, the same or not
  if (element.textContent !== text) element.textContent = text;
}

function percent(share, digits = 1) {
  return Number.isNaN(share) ? "–" : `${(100 * share).toFixed(digits)} %`;
}

function size(number) {
  if (Number.isNaN(number)) return "–";
  if (!Number.isFinite(number)) return number > 0 ? "∞" : "−∞";
  const large = Math.abs(number);
  if (large !== 0 && (large >= 1e7 || large < 5e-4)) return number.toExponential(1).replace("-", "−");
  const digits = large >= 1000 ? 0 : large >= 100 ? 1 : large >= 0.1 || large === 0 ? 3 : 4;
  const text = number.toLocaleString("en", { minimumFractionDigits: Math.min(digits, 3), maximumFractionDigits: digits });
  return text.replace("-", "−");
}
const brief = (number) => (Number.isFinite(number) ? String(Number(number.toPrecision(3))).replace("-", "−") : size(number));

function moment(seconds, withTime = true) {
  const date = new Date(1000 * seconds);
  if (Number.isNaN(date.getTime())) return String(seconds);
  const text = date.toISOString();
  return withTime ? text.slice(0, 16).replace("T", " ") : text.slice(0, 10);
}

function choices(select, options, chosen) {
  select.replaceChildren(...options.map(([key, label]) => el("option", { value: key }, label)));
  if (chosen !== undefined) select.value = chosen;
}
