// One sensor: its own band within that of the joint set, its readings, its gaps, and the band that comes next.
function bandFrame(width, height) {
  return { left: 52, right: width - 14, top: 12, bottom: height - 24 };
}

function detailed(station, view) {
  // the part of the view whose rows are held sensor by sensor
  const held = [station.recent, station.past].filter((one) => one !== null && one.count > 0);
  const cut = held.map((one) => [Math.max(view.from, one.first), Math.min(view.to, one.first + one.count)]);
  return cut.reduce((best, one) => (one[1] - one[0] > best[1] - best[0] ? one : best), [view.to, view.to]);
}

function bandRange(station, sensor, from, to, ahead) {
  // readings and the sensor's own band fit in; the band of the joint set, which is far wider, may be cut
  let low = Infinity;
  let high = -Infinity;
  const meet = (value) => {
    if (value < low && value > -Infinity) low = value;
    if (value > high && value < Infinity) high = value;
  };
  for (let row = from; row < to; row++) {
    meet(station.cell("value", row, sensor));
    station.ownBand(row, sensor).forEach(meet);
  }
  for (const { own } of ahead) own.forEach((end) => meet(end[sensor]));
  if (low > high) return [0, 1];
  const spare = (station.own === null ? 0.06 : 0.18) * (high - low) || 1;
  return [low - spare, high + spare];
}

function drawBand(pen, width, height, ink, station, view, sensor) {
  const frame = bandFrame(width, height);
  const ahead = view.room ? station.next : [];
  const [from, to] = detailed(station, view);
  if (to <= from && !ahead.length) return write(pen, "Single readings of these rows are not held here.", width / 2, height / 2, { ink: ink.quiet, align: "center", size: 14 });
  const x = linear(view.from, Math.max(view.to + view.room, view.from + 1), frame.left, frame.right);
  const inner = { ...frame, left: x(from), right: Math.max(x(to), x(from) + 1) };
  const [low, high] = bandRange(station, sensor, from, to, ahead);
  const y = linear(low, high, frame.bottom, frame.top);
  valueAxis(pen, frame, y, y.ticks(Math.max(3, Math.floor(height / 45))), ink);
  pen.save();
  pen.beginPath();
  pen.rect(frame.left - 3, frame.top - 6, frame.right - frame.left + 6, frame.bottom - frame.top + 8);
  pen.clip();
  const across = to > from ? columns(from, to, inner) : [];
  paintBand(pen, across, inner, y, ink.band, (row) => [station.cell("lower", row, sensor), station.cell("upper", row, sensor)]);
  if (station.own !== null) paintBand(pen, across, inner, y, ink.own, (row) => station.ownBand(row, sensor));
  if (ahead.length) paintAhead(pen, ahead, sensor, x(view.to), y, ink, (x(view.to + view.room) - x(view.to)) / ahead.length);
  paintReadings(pen, station, sensor, across, frame, y, ink);
  pen.restore();
  timeAxis(pen, station, frame, (row) => x(row + 0.5), ink, view.from, Math.max(view.to, view.from + 1));
  const row = view.shown;
  if (row !== null && row >= view.from && row < view.to) paintCursor(pen, x(row + 0.5), frame.top - 4, frame.bottom, view.cursor !== null, ink);
}

function paintBand(pen, across, frame, y, ink, ends) {
  const half = across.length ? (frame.right - frame.left) / across.length / 2 : 0;
  const clip = (end) => Math.min(1e5, Math.max(-1e5, y(end)));
  pen.fillStyle = ink;
  let run = [];
  const close = () => {
    if (!run.length) return;
    pen.beginPath();
    run.forEach(([at, , upper], k) => (k ? pen.lineTo(at - half, upper) : pen.moveTo(at - half, upper), pen.lineTo(at + half, upper)));
    for (const [at, lower] of run.reverse()) pen.lineTo(at + half, lower), pen.lineTo(at - half, lower);
    pen.closePath();
    pen.fill();
    run = [];
  };
  for (const [at, start, stop] of across) {
    let low = Infinity;
    let high = -Infinity;
    for (let row = start; row < stop; row++) {
      const [lower, upper] = ends(row);
      low = Math.min(low, lower);
      high = Math.max(high, upper);
    }
    if (Number.isNaN(low) || Number.isNaN(high)) close();
    else run.push([at, clip(low), clip(high)]);
  }
  close();
}

function paintAhead(pen, ahead, sensor, start, y, ink, step) {
  const clip = (end) => Math.min(1e5, Math.max(-1e5, y(end)));
  const fill = (lower, upper, k, colour) => {
    pen.fillStyle = colour;
    pen.fillRect(start + k * step, clip(upper[sensor]), step + 0.5, clip(lower[sensor]) - clip(upper[sensor]));
  };
  ahead.forEach(({ lower, upper }, k) => fill(lower, upper, k, ink.band));
  ahead.forEach(({ own }, k) => fill(own[0], own[1], k, ink.own));
  pen.strokeStyle = ink.edge;
  pen.setLineDash([4, 3]);
  pen.lineWidth = 1.5;
  pen.beginPath();
  for (const side of [0, 1]) {
    ahead.forEach(({ own }, k) => {
      const at = clip(own[side][sensor]);
      if (k) pen.lineTo(start + k * step, at);
      else pen.moveTo(start, at);
      pen.lineTo(start + (k + 1) * step, at);
    });
  }
  pen.stroke();
  pen.setLineDash([]);
}

function paintReadings(pen, station, sensor, across, frame, y, ink) {
  const step = across.length > 1 ? across[1][0] - across[0][0] : 9;
  const dots = step >= 5;
  const dot = Math.min(3.4, Math.max(1.6, step));
  const line = new Path2D();
  const out = new Path2D();
  const gaps = new Path2D();
  let down = false;
  for (const [at, start, stop] of across) {
    let low = Infinity;
    let high = -Infinity;
    let outside = NaN;
    for (let row = start; row < stop; row++) {
      const value = station.cell("value", row, sensor);
      if (value < low) low = value;
      if (value > high) high = value;
      const [lower, upper] = station.ownBand(row, sensor);
      if (value < lower || value > upper) outside = value;
    }
    if (high === -Infinity) {
      gaps.rect(at - step / 2, frame.bottom - 5, Math.max(1.2, step), 5);
      down = false;
      continue;
    }
    if (down) line.lineTo(at, y(high));
    else line.moveTo(at, y(high));
    if (low !== high) line.lineTo(at, y(low));
    else if (!down) line.lineTo(at + 0.8, y(high));
    down = true;
    if (!Number.isNaN(outside)) {
      out.moveTo(at + dot, y(outside));
      out.arc(at, y(outside), dot, 0, 2 * Math.PI);
    } else if (dots) {
      line.moveTo(at + 1.2, y(high));
      line.arc(at, y(high), 1.2, 0, 2 * Math.PI);
      line.moveTo(at, y(high));
    }
  }
  pen.lineWidth = 1.6;
  pen.strokeStyle = ink.series;
  pen.stroke(line);
  pen.fillStyle = ink.alarm;
  pen.fill(out);
  pen.fillStyle = ink.care;
  pen.fill(gaps);
}
