// The sensors as dots on a map or a layout of the graph, coloured by what each weighs in the score.
const NAMED = 6; // sensors to name that weigh most
const FEW = 26; // sensors up to which all are named where there is room

class SensorMap {
  constructor(station) {
    this.station = station;
    const xs = station.at.map(([x]) => x);
    const ys = station.at.map(([, y]) => y);
    this.box = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  }

  fit(width, height) {
    // one unit is as long to the right as up
    const [left, right, bottom, top] = this.box;
    const pad = { x: 34, top: 18, bottom: 46 };
    const spare = Math.max(right - left, top - bottom) || 1;
    const across = right - left || spare;
    const up = top - bottom || spare;
    const unit = Math.min((width - 2 * pad.x) / across, (height - pad.top - pad.bottom) / up);
    const shiftX = (width - unit * (right - left)) / 2;
    const shiftY = (height - pad.bottom + pad.top + unit * (top - bottom)) / 2;
    this.places = this.station.at.map(([x, y]) => [shiftX + unit * (x - left), shiftY - unit * (y - bottom)]);
    this.dot = Math.min(11, Math.max(3.2, Math.sqrt((width * height) / this.places.length) / 9));
  }

  nearest(x, y) {
    let best = -1;
    let least = 24 ** 2;
    this.places.forEach(([a, b], i) => {
      const far = (a - x) ** 2 + (b - y) ** 2;
      if (far < least) [best, least] = [i, far];
    });
    return best;
  }

  paint(pen, width, height, ink, { weights, top, chosen, ailing, alarmed, hovered, title }) {
    this.ground(pen, width, height, ink);
    const order = [...this.places.keys()].sort((a, b) => weights[a] - weights[b]);
    for (const i of alarmed) if (!ailing.has(i)) this.halo(pen, i, ink.alarm);
    for (const i of order) this.paintDot(pen, ink, i, weights[i] / top, ailing.get(i), weights[i] > 0.55 * top && weights[i] > 1.8 / weights.length);
    for (const i of alarmed) if (!ailing.has(i)) this.ring(pen, i, ink.alarm, 2);
    if (chosen >= 0) this.ring(pen, chosen, ink.cursor, 2.5, alarmed.has(chosen) ? 4 : 0);
    if (hovered >= 0 && hovered !== chosen) this.ring(pen, hovered, ink.quiet, 1.5);
    this.label(pen, width, height, ink, order, weights, top, [...new Set([chosen, hovered, ...[...alarmed].slice(0, NAMED), ...ailing.keys()])].filter((i) => i >= 0));
    this.legend(pen, width, height, ink, top, title);
  }

  ground(pen, width, height, ink) {
    // edges and the ramp of the legend: only another size or other colours change them, so they are drawn once and copied
    const ratio = pen.getTransform().a;
    const key = [width, height, ratio].join();
    if (this.under === undefined || this.under.key !== key || this.under.ink !== ink) {
      this.fit(width, height);
      const canvas = el("canvas", { width: Math.round(width * ratio), height: Math.round(height * ratio) });
      const own = canvas.getContext("2d");
      own.setTransform(ratio, 0, 0, ratio, 0, 0);
      this.paintEdges(own, ink);
      const { left, wide, y } = rampPlace(width, height);
      for (let k = 0; k < wide; k++) {
        own.fillStyle = heat(k / wide);
        own.fillRect(left + k, y, 1.5, 7);
      }
      this.under = { canvas, key, ink };
    }
    pen.drawImage(this.under.canvas, 0, 0, width, height);
  }

  paintEdges(pen, ink) {
    pen.strokeStyle = ink.strong;
    pen.globalAlpha = Math.min(0.5, Math.max(0.25, 90 / (this.station.edges.length + 1)));
    pen.lineWidth = 1;
    pen.beginPath();
    for (const [a, b] of this.station.edges) {
      pen.moveTo(...this.places[a]);
      pen.lineTo(...this.places[b]);
    }
    pen.stroke();
    pen.globalAlpha = 1;
  }

  paintDot(pen, ink, i, strength, ailment, glowing) {
    const [x, y] = this.places[i];
    const radius = this.dot * (1 + 0.7 * Math.min(1, strength));
    if (glowing) {
      const shade = (share) => heat(strength).replace("rgb", "rgba").replace(")", `,${share})`);
      this.shine(pen, i, radius, 3.2 * radius, shade(0.45), shade(0));
    }
    pen.beginPath();
    if (ailment === "stuck") pen.rect(x - radius, y - radius, 2 * radius, 2 * radius);
    else pen.arc(x, y, radius, 0, 2 * Math.PI);
    pen.fillStyle = ailment === "silent" ? ink.sheet : heat(strength);
    pen.fill();
    pen.strokeStyle = ailment === undefined ? ink.sheet : ink.care;
    pen.lineWidth = ailment === undefined ? 1 : 2.5;
    pen.stroke();
  }

  halo(pen, i, colour) {
    // light around a sensor that an alarm names: what it weighs in the score may be little
    const shade = (strength) => `rgba(${rgb(colour).join(",")},${strength})`;
    this.shine(pen, i, this.dot, 5 * this.dot, shade(0.6), shade(0));
  }

  shine(pen, i, from, to, inner, outer) {
    const [x, y] = this.places[i];
    const light = pen.createRadialGradient(x, y, from, x, y, to);
    light.addColorStop(0, inner);
    light.addColorStop(1, outer);
    pen.fillStyle = light;
    pen.beginPath();
    pen.arc(x, y, to, 0, 2 * Math.PI);
    pen.fill();
  }

  ring(pen, i, colour, width, beyond = 0) {
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.beginPath();
    pen.arc(...this.places[i], this.dot * 1.7 + 3 + beyond, 0, 2 * Math.PI);
    pen.stroke();
  }

  label(pen, width, height, ink, order, weights, top, always) {
    const hot = [...order].reverse().filter((i) => weights[i] >= 0.3 * top).slice(0, NAMED);
    const some = this.places.length <= FEW ? [...order].reverse() : [];
    const taken = this.places.map(([x, y]) => [x - this.dot, y - this.dot, x + this.dot, y + this.dot]);
    taken.push([0, height - 38, width, height]);
    const meets = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
    for (const i of new Set([...always, ...hot, ...some])) {
      const strong = always.includes(i) || hot.includes(i);
      const text = this.station.sensors[i];
      pen.font = `${strong ? 600 : 400} 12px ${FONT}`;
      const wide = pen.measureText(text).width;
      const [x, y] = this.places[i];
      const gap = this.dot * 1.7 + 6;
      const spots = [[x + gap, y - 8], [x - gap - wide, y - 8], [x - wide / 2, y - gap - 15], [x - wide / 2, y + gap], [x + gap * 0.7, y - gap - 11], [x + gap * 0.7, y + gap - 4], [x - gap * 0.7 - wide, y - gap - 11], [x - gap * 0.7 - wide, y + gap - 4]];
      const boxes = spots.map(([left, up]) => [left - 2, up, left + wide + 2, up + 15]).filter((box) => box[0] > 0 && box[2] < width && box[1] > 0);
      const crowding = boxes.map((box) => taken.reduce((sum, other, k) => sum + (k !== i && meets(box, other) ? (k >= this.places.length ? 50 : 1) : 0), 0));
      const best = crowding.indexOf(Math.min(...crowding));
      if (best < 0 || crowding[best] >= 50 || (crowding[best] > 0 && !strong)) continue;
      taken.push(boxes[best]);
      write(pen, text, boxes[best][0] + 2, boxes[best][1] + 12, { ink: strong ? ink.ink : ink.quiet, weight: strong ? 600 : 400, halo: ink.sheet });
    }
  }

  legend(pen, width, height, ink, top, title) {
    const { left, wide, y } = rampPlace(width, height);
    write(pen, title, left, y - 6, { ink: ink.quiet, size: 11 });
    write(pen, "0", left, y + 19, { ink: ink.quiet, size: 11 });
    write(pen, percent(top, 0), left + wide, y + 19, { ink: ink.quiet, size: 11, align: "right" });
    this.marks(pen, width, y, ink);
  }

  marks(pen, width, y, ink) {
    const at = width - 138;
    if (at < 190) return;
    pen.lineWidth = 2;
    pen.strokeStyle = ink.care;
    pen.beginPath();
    pen.arc(at, y + 4, 5, 0, 2 * Math.PI);
    pen.stroke();
    pen.strokeRect(at + 62, y - 1, 10, 10);
    write(pen, "silent", at + 11, y + 8, { ink: ink.quiet, size: 11 });
    write(pen, "stuck", at + 78, y + 8, { ink: ink.quiet, size: 11 });
  }
}

function rampPlace(width, height) {
  return { left: 16, wide: Math.min(150, width / 3), y: height - 22 };
}
