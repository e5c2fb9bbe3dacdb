// Scales from numbers to pixels, with their ticks.
function linear(low, high, from, to) {
  const scale = (v) => from + ((v - low) / (high - low || 1)) * (to - from);
  scale.ticks = (count) => {
    const rough = (high - low) / Math.max(count, 1) || 1;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((m) => m * power >= rough);
    const found = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) found.push(Number((k * step).toPrecision(12)));
    return found;
  };
  return scale;
}

function logarithmic(low, high, from, to) {
  const inner = linear(Math.log(low), Math.log(high), from, to);
  const scale = (v) => inner(Math.log(v));
  scale.ticks = (count) => {
    const found = [];
    for (let p = Math.floor(Math.log10(low)); p <= Math.ceil(Math.log10(high)); p++) [1, 2, 5].forEach((m) => found.push(Number((m * 10 ** p).toPrecision(3))));
    const inside = found.filter((v) => v >= low * 0.999 && v <= high * 1.001);
    const decades = inside.filter((v) => Number.isInteger(Math.round(Math.log10(v) * 1e6) / 1e6));
    if (inside.length < 2) return linear(low, high, from, to).ticks(count);
    return inside.length <= count + 2 || decades.length < 2 ? inside : decades.filter((_, i) => i % Math.ceil(decades.length / (count + 1)) === 0);
  };
  return scale;
}
