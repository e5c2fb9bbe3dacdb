// Score against radius over time, with the strip of rows outside and of alarms beneath; it is also the slider of time.
const LANES = 2; // rows of alarms under the chart
const ALARM_INK = { change: "alarm", sustained: "alarm", sensor: "care", silent: "care", stuck: "care", coverage: "edge", drift: "edge", trust: "edge", miss: "alarm" };
const alarmInk = (alarm, ink) => ink[ALARM_INK[alarm.kind] || "alarm"];

function scoreFrame(width, height) {
  return { left: 52, right: width - 14, top: 12, bottom: height - 58 };
}

function scoreScale(station, from, to, frame) {
  // square roots, so that a peak does not flatten the rest; far above the radius it is cut off
  const stretch = [];
  let peak = 0;
  let least = Infinity;
  for (const [, start, stop] of columns(from, to, frame)) {
    stretch.push(station.radii[start]);
    for (let row = start; row < stop; row++) {
      const score = station.scores[row];
      if (score > peak && score < Infinity) peak = score;
      if (score < least) least = score;
    }
  }
  const usual = median(stretch) || peak || 1;
  const most = Math.min(Math.max(1.06 * peak, 1.35 * usual), 25 * usual);
  const base = 0.7 * Math.max(0, Math.min(least, usual));
  const root = linear(Math.sqrt(base), Math.sqrt(most), frame.bottom, frame.top);
  const scale = (score) => root(Math.sqrt(Math.min(Math.max(score, base), most)));
  const ticks = linear(base, most, 0, 1).ticks(most > 6 * usual ? 4 : 5);
  return { scale, ticks: ticks.filter((tick, i) => i === 0 || scale(tick) < scale(ticks[i - 1]) - 16), most };
}

function drawScores(pen, width, height, ink, station, view) {
  const frame = scoreFrame(width, height);
  const { from, to } = view;
  if (to <= from) return write(pen, "No rows yet: the first will appear here.", width / 2, height / 2, { ink: ink.quiet, align: "center", size: 14 });
  const { scale, ticks, most } = scoreScale(station, from, to, frame);
  const x = linear(from, to + view.room, frame.left, frame.right);
  const inner = { ...frame, right: x(to) };
  const across = columns(from, to, inner);
  valueAxis(pen, frame, scale, ticks, ink);
  paintSpells(pen, station, view, x, frame, ink);
  paintRadius(pen, station, across, scale, inner, ink);
  paintLine(pen, station, across, scale, ink);
  paintOutside(pen, station, across, scale, frame, ink, most);
  timeAxis(pen, station, { ...frame, bottom: height - 22 }, (row) => x(row + 0.5), ink, from, to);
  paintStrip(pen, station, across, frame, ink, (inner.right - inner.left) / across.length);
  paintAlarms(pen, station, view, x, frame, ink);
  const row = view.shown;
  if (row !== null && row >= from && row < to) paintCursor(pen, x(row + 0.5), frame.top - 6, height - 22, view.cursor !== null, ink);
}

function paintSpells(pen, station, view, x, frame, ink) {
  for (const alarm of station.alarms) {
    const [start, stop] = alarmRows(station, alarm);
    if (stop < view.from || start >= view.to || alarmInk(alarm, ink) !== ink.alarm) continue;
    pen.globalAlpha = 0.1;
    pen.fillStyle = ink.alarm;
    const left = Math.max(frame.left, x(start));
    pen.fillRect(left, frame.top, Math.max(2, Math.min(frame.right, x(stop + 1)) - left), frame.bottom - frame.top);
    pen.globalAlpha = 1;
  }
}

function paintRadius(pen, station, across, scale, frame, ink) {
  pen.beginPath();
  let down = false;
  const half = across.length > 1 ? (across[1][0] - across[0][0]) / 2 : (frame.right - frame.left) / 2;
  for (const [at, start] of across) {
    const radius = station.radii[start];
    if (Number.isNaN(radius)) {
      down = false;
      continue;
    }
    const y = scale(radius === Infinity ? 1e30 : radius);
    if (down) pen.lineTo(at - half, y);
    else pen.moveTo(at - half, y);
    pen.lineTo(at + half, y);
    down = true;
  }
  pen.lineWidth = 2;
  pen.strokeStyle = ink.edge;
  pen.stroke();
}

function paintLine(pen, station, across, scale, ink) {
  pen.beginPath();
  let down = false;
  for (const [at, start, stop] of across) {
    let low = Infinity;
    let high = -Infinity;
    for (let row = start; row < stop; row++) {
      const score = station.scores[row];
      if (score < low) low = score;
      if (score > high) high = score;
    }
    if (high === -Infinity) {
      down = false;
      continue;
    }
    if (down) pen.lineTo(at, scale(high));
    else pen.moveTo(at, scale(high));
    if (low !== high) pen.lineTo(at, scale(low));
    down = true;
  }
  pen.lineWidth = 1.4;
  pen.strokeStyle = ink.series;
  pen.stroke();
}

function paintOutside(pen, station, across, scale, frame, ink, most) {
  const single = across.length > 1 ? across[1][0] - across[0][0] : 9;
  const dot = Math.min(3.2, Math.max(1.4, single / 2));
  pen.fillStyle = ink.alarm;
  pen.beginPath();
  for (const [at, start, stop] of across) {
    let high = -Infinity;
    for (let row = start; row < stop; row++) if (station.inside[row] === 0 && station.scores[row] > high) high = station.scores[row];
    if (high === -Infinity) continue;
    if (high > most) {
      pen.moveTo(at - 5, frame.top + 2);
      pen.lineTo(at + 5, frame.top + 2);
      pen.lineTo(at, frame.top - 7);
      pen.closePath();
    } else {
      pen.moveTo(at + dot, scale(high));
      pen.arc(at, scale(high), dot, 0, 2 * Math.PI);
    }
  }
  pen.fill();
}

function paintStrip(pen, station, across, frame, ink, step) {
  // rows outside: the taller a mark, the larger their share in its stretch
  const top = frame.bottom + 4;
  const tall = 12;
  pen.fillStyle = ink.line;
  pen.globalAlpha = 0.45;
  pen.fillRect(frame.left, top, frame.right - frame.left, tall);
  pen.globalAlpha = 1;
  pen.fillStyle = ink.alarm;
  for (const [at, start, stop] of across) {
    const missed = station.misses(start, stop);
    if (!missed) continue;
    const high = 3 + (tall - 3) * (missed / (stop - start));
    pen.fillRect(at - step / 2, top + tall - high, Math.max(1.2, step - 0.4), high);
  }
  write(pen, "outside", frame.left - 8, top + tall - 2, { ink: ink.quiet, align: "right", size: 11 });
}

function alarmRows(station, alarm) {
  const start = alarm.row !== undefined ? alarm.row : station.rowAt(alarm.since);
  const stop = alarm.until === null ? station.last : alarm.end !== undefined ? alarm.end : station.rowAt(alarm.until);
  return [Math.min(start, station.last), Math.max(start, Math.min(stop, station.last))];
}

function paintAlarms(pen, station, view, x, frame, ink) {
  const top = frame.bottom + 19;
  const free = Array(LANES).fill(-Infinity);
  write(pen, "alarms", frame.left - 8, top + 10, { ink: ink.quiet, align: "right", size: 11 });
  const shown = [...station.alarms].sort((a, b) => alarmRows(station, a)[0] - alarmRows(station, b)[0]);
  for (const alarm of shown) {
    const [start, stop] = alarmRows(station, alarm);
    if (stop < view.from || start >= view.to) continue;
    const left = Math.max(frame.left, x(start));
    const right = Math.max(left + 4, Math.min(frame.right, x(stop + 1)));
    const lane = Math.max(0, free.findIndex((end) => end <= left));
    free[lane] = right + 1;
    pen.fillStyle = alarmInk(alarm, ink);
    pen.fillRect(left, top + lane * 7, right - left, 5);
    if (alarm === view.alarm) {
      pen.strokeStyle = ink.ink;
      pen.lineWidth = 1.5;
      pen.strokeRect(left - 1, top + lane * 7 - 1.5, right - left + 2, 8);
    }
  }
}

function paintCursor(pen, at, top, bottom, pinned, ink) {
  pen.strokeStyle = ink.cursor;
  pen.lineWidth = pinned ? 2 : 1;
  pen.setLineDash(pinned ? [] : [3, 3]);
  pen.beginPath();
  pen.moveTo(at, top);
  pen.lineTo(at, bottom);
  pen.stroke();
  pen.setLineDash([]);
  if (!pinned) return;
  pen.fillStyle = ink.cursor;
  pen.beginPath();
  pen.moveTo(at - 6, top - 2);
  pen.lineTo(at + 6, top - 2);
  pen.lineTo(at, top + 7);
  pen.closePath();
  pen.fill();
}
