// Axes: from values to positions, and their ticks.

// Ticks at 1, 2 or 5 times a power of ten: about `count` of them from 0 or `low` to `high`.
function linearTicks(low, high, count) {
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(m => m * power).find(s => s >= rough);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high * (1 + 1e-9); i++) ticks.push(i === 0 ? 0 : i * step);
  return ticks;
}

function logTicks(low, high) {
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power++)
    for (const m of high / low > 1000 ? [1] : [1, 2, 5])
      if (m * 10 ** power >= low * 0.999 && m * 10 ** power <= high * 1.001) ticks.push(m * 10 ** power);
  return ticks;
}

// The scale of an axis over `values`, mapped to from..to. A linear axis starts at 0 unless `loose`.
function scaleOf(values, log, from, to, ticks, loose) {
  let low = Math.min(...values), high = Math.max(...values);
  if (log) {
    if (low === high) { low /= 2; high *= 2; }
    const margin = (high / low) ** 0.04, span = Math.log((high * margin) / (low / margin));
    const place = value => from + (to - from) * Math.log(value / (low / margin)) / span;
    return { place, ticks: ticks || logTicks(low / margin, high * margin) };
  }
  if (!loose) low = Math.min(0, low);
  if (low === high) high = low + 1;
  high += (high - low) * 0.05;
  if (loose || low < 0) low -= (high - low) * 0.05;
  return { place: value => from + (to - from) * (value - low) / (high - low), ticks: ticks || linearTicks(low, high, 5) };
}
