// Axes and curves of the figures, drawn at the width they are shown at so that text keeps its size.
const EDGE = { top: 14, right: 14, bottom: 52, left: 72 };
const pen = document.createElement("canvas").getContext("2d");
pen.font = '14px system-ui, -apple-system, "Segoe UI", Arial, sans-serif';
const wideness = (text) => pen.measureText(text).width;

function canvas(holder, height, label) {
  const width = Math.max(260, Math.floor(holder.clientWidth - 18));
  const svg = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  return { svg, width, height, left: EDGE.left, right: width - EDGE.right, top: EDGE.top, bottom: height - EDGE.bottom };
}

function axes(box, x, y, { xTicks, yTicks, xText, yText, xTitle, yTitle }) {
  const parts = [];
  yTicks.forEach((tick) => {
    parts.push(draw("line", { class: "grid", x1: box.left, x2: box.right, y1: y(tick), y2: y(tick) }));
    parts.push(draw("text", { class: "quiet", x: box.left - 7, y: y(tick) + 5, "text-anchor": "end" }, yText(tick)));
  });
  xTicks.forEach((tick) => {
    const text = xText(tick);
    const half = wideness(text) / 2;
    const at = Math.min(Math.max(x(tick), half + 2), box.width - half - 2);
    parts.push(draw("line", { class: "axis", x1: x(tick), x2: x(tick), y1: box.bottom, y2: box.bottom + 5 }));
    parts.push(draw("text", { class: "quiet", x: at, y: box.bottom + 21, "text-anchor": "middle" }, text));
  });
  parts.push(draw("path", { class: "axis", d: `M${box.left} ${box.top}V${box.bottom}H${box.right}` }));
  parts.push(draw("text", { x: (box.left + box.right) / 2, y: box.height - 8, "text-anchor": "middle" }, xTitle));
  parts.push(draw("text", { transform: `translate(13 ${(box.top + box.bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, yTitle));
  box.svg.append(...parts);
}

function band(low, high, x, y, kind) {
  // the area between two curves over stretches; it has a gap wherever a stretch has no value
  let path = "";
  let run = [];
  const close = () => {
    if (run.length) {
      const flat = (i, height) => `${x(i).toFixed(1)} ${height.toFixed(1)}`;
      const there = run.map((i) => `${flat(i, y(high[i]) - 0.8)}L${flat(i + 1, y(high[i]) - 0.8)}`);
      const back = [...run].reverse().map((i) => `${flat(i + 1, y(low[i]) + 0.8)}L${flat(i, y(low[i]) + 0.8)}`);
      path += `M${there.join("L")}L${back.join("L")}Z`;
    }
    run = [];
  };
  low.forEach((v, i) => (Number.isNaN(v) || Number.isNaN(high[i]) ? close() : run.push(i)));
  close();
  return draw("path", { class: kind, d: path });
}

function curve(points, kind) {
  let path = "";
  let pen = "M";
  points.forEach(([a, b]) => {
    if (Number.isNaN(b)) pen = "M";
    else {
      path += `${pen}${a.toFixed(1)} ${b.toFixed(1)}`;
      pen = "L";
    }
  });
  return draw("path", { class: kind, d: path });
}

function stretched(envelope, count) {
  // [low, high] of every stretch; a flat curve is stored as one number
  if (Array.isArray(envelope)) return envelope.map((side) => side.map(value));
  return [Array(count).fill(value(envelope)), Array(count).fill(value(envelope))];
}
