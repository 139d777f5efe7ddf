// Charts as SVG, drawn at the available width, so their text keeps its size. Arrow keys move from point to point. Each
// chart has a table with its numbers.

const SHAPES = {
  circle: "M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0Z", square: "M-5,-5H5V5H-5Z", triangle: "M0,-6L6,5H-6Z",
  down: "M0,6L6,-5H-6Z", diamond: "M0,-7L7,0L0,7L-7,0Z", cross: "M-6,-2H-2V-6H2V-2H6V2H2V6H-2V2H-6Z",
};
const SHAPE_OF = { 1: "square", 2: "down", 3: "triangle", 4: "diamond", 8: "cross", 9: "down", 10: "circle", 11: "triangle", 12: "diamond", 13: "square", 14: "cross", 15: "down" };
// On a point that may not show the network.
const crossOf = attributes => svg("path", { class: "cross", d: "M-7,-7L7,7M-7,7L7,-7", ...attributes });
const colourOf = series => ({ class: "of-series", style: `--own: var(--${series.colour === "none" ? "quiet" : `series-${series.colour}`})` });

function putAxes(root, x, y, spec, box) {
  for (const tick of y.ticks) {
    const at = y.place(tick);
    root.append(svg("line", { class: "grid", x1: box.left, x2: box.right, y1: at, y2: at }),
      svg("text", { x: box.left - 8, y: at + 4, "text-anchor": "end", class: "quiet" }, spec.y.format(tick)));
  }
  let last = -Infinity;
  for (const tick of x.ticks) {
    const at = x.place(tick), text = spec.x.format(tick);
    root.append(svg("line", { class: "axis", x1: at, x2: at, y1: box.bottom, y2: box.bottom + 5 }));
    if (at - last < 8 * text.length) continue;
    root.append(svg("text", { x: at, y: box.bottom + 20, "text-anchor": "middle", class: "quiet" }, text));
    last = at;
  }
  root.append(svg("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }),
    svg("text", { x: (box.left + box.right) / 2, y: box.bottom + 40, "text-anchor": "middle" }, spec.x.label),
    svg("text", { x: 2, y: 14 }, spec.y.label));
}

const pathOf = (points, x, y, value) =>
  points.filter(p => value(p) !== null && value(p) !== undefined).map((p, i) => `${i ? "L" : "M"}${x.place(p.x)},${y.place(value(p))}`).join("");

// A line through a single point has no length, so draw a short horizontal line.
function theoryOf(points, x, y) {
  const known = points.filter(p => isNumber(p.theory));
  return known.length === 1 ? `M${x.place(known[0].x) - 20},${y.place(known[0].theory)}h40` : pathOf(points, x, y, p => p.theory);
}

function putSeries(root, series, x, y) {
  const group = svg("g", colourOf(series));
  group.append(svg("path", { class: "theory", d: theoryOf(series.points, x, y) }));
  if (!series.dotted) group.append(svg("path", { class: "measured", d: pathOf(series.points, x, y, p => p.y) }));
  const shapes = series.points.map(p => {
    const at = x.place(p.x);
    if (p.low && p.high)
      group.append(svg("path", { class: "interval", d: `M${at},${y.place(p.low)}V${y.place(p.high)}M${at - 4},${y.place(p.low)}h8M${at - 4},${y.place(p.high)}h8` }));
    return p.y === null ? null : svg("path", { class: "point", d: SHAPES[SHAPE_OF[series.colour]], transform: `translate(${at},${y.place(p.y)})` });
  });
  group.append(...shapes.filter(shape => shape), ...series.points.filter(p => p.doubtful && p.y !== null).map(p => crossOf({ transform: `translate(${x.place(p.x)},${y.place(p.y)})` })));
  root.append(group);
  return shapes.map((shape, i) => ({ shape, words: series.points[i].words })).filter(entry => entry.shape);
}

// Pointing at an entry shows its text. Arrow keys move through the entries in their order.
function makePointable(root, entries) {
  let chosen = -1;
  const show = at => {
    if (chosen >= 0 && entries[chosen]) entries[chosen].shape.classList.remove("chosen");
    chosen = at;
    if (at < 0) return hideTip();
    entries[at].shape.classList.add("chosen");
    showTip(entries[at].words, entries[at].shape.getBoundingClientRect());
  };
  entries.forEach((entry, i) => {
    entry.shape.addEventListener("pointerenter", () => show(i));
    entry.shape.addEventListener("pointerleave", () => show(-1));
  });
  const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  root.addEventListener("keydown", event => {
    if (!(event.key in steps) || entries.length === 0) return;
    event.preventDefault();
    show((chosen + steps[event.key] + entries.length + (chosen < 0 && steps[event.key] < 0 ? 1 : 0)) % entries.length);
  });
  root.addEventListener("blur", () => show(-1));
}

function legendOf(chart) {
  const hint = chart.series.every(series => series.shown) ? null : el("span", { class: "hint" }, "struck through: hidden; click to show");
  return el("div", { class: "controls legend", role: "group", "aria-label": "Series" }, ...chart.series.map(series => {
    const button = el("button", { type: "button", "aria-pressed": String(series.shown), title: series.shown ? "shown; click to hide" : "hidden; click to show" },
      svg("svg", { viewBox: "-14 -8 28 16", "aria-hidden": "true" }, svg("g", colourOf(series),
        svg("path", { class: series.colour === "none" ? "theory" : "measured", d: "M-14,0H14" }), svg("path", { class: "point", d: SHAPES[SHAPE_OF[series.colour]] || "" }))), series.label);
    button.addEventListener("click", () => {
      chart.hidden[series.label] = series.shown;
      chart.update();
      [...chart.host.querySelectorAll(".legend button")].find(b => b.textContent === series.label).focus();
    });
    return button;
  }), chart.series.some(series => series.points.some(p => p.doubtful)) ? el("span", { class: "doubt" },
    svg("svg", { viewBox: "-8 -8 16 16", "aria-hidden": "true" }, crossOf({})), "CPU-limited, disturbed or not steady") : null, hint);
}

function drawLines(chart, width) {
  const { spec } = chart, place = (value, log) => isNumber(value) && (!log || value > 0) ? value : null;
  // Leave out values without a position: not a number, or not above 0 on a logarithmic axis.
  const shown = chart.series.filter(series => series.shown).map(series => ({ ...series, points: series.points.filter(p => place(p.x, spec.x.log) !== null).map(p => ({ ...p,
    y: place(p.y, chart.log), theory: place(p.theory, chart.log), low: place(p.low, chart.log), high: place(p.high, chart.log) })) })), points = shown.flatMap(series => series.points);
  const height = Math.max(280, Math.min(430, width * 0.55)), box = { left: 70, right: width - 14, top: 28, bottom: height - 48 };
  const root = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, tabindex: 0, role: "group", "aria-label": `${spec.label}. Arrow keys move from point to point.` });
  if (points.length === 0) return root;
  const heights = points.flatMap(p => [p.y, p.theory, p.low, p.high]).filter(v => v !== null).concat(spec.y.one ? [1] : []);
  const x = scaleOf(points.map(p => p.x), spec.x.log, box.left, box.right, spec.x.ticks && ascending(points.map(p => p.x)), true);
  const y = scaleOf(heights.length ? heights : [1], chart.log, box.bottom, box.top);
  putAxes(root, x, y, spec, box);
  if (spec.y.one) root.append(svg("line", { class: "mark", style: "stroke-width:1", x1: box.left, x2: box.right, y1: y.place(1), y2: y.place(1) }));
  makePointable(root, shown.flatMap(series => putSeries(root, series, x, y)));
  return root;
}

// Horizontal bars of adjacent parts. A mark is a vertical line, a dot one measurement.
function drawBars(chart, width) {
  const { spec } = chart, left = Math.min(250, width * 0.46), row = 30, top = 6, height = top + row * spec.bars.length + 48;
  const root = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, tabindex: 0, role: "group", "aria-label": `${spec.label}. Arrow keys move from bar to bar.` });
  const sum = bar => bar.parts.reduce((total, part) => total + (isNumber(part.value) ? part.value : 0), 0);
  const values = spec.bars.flatMap(bar => [sum(bar), bar.mark, bar.high, ...(bar.dots || [])]).filter(value => isNumber(value) && value > 0);
  const x = scaleOf(values.length ? values : [1], false, left, width - 14), bottom = top + row * spec.bars.length, entries = [];
  for (const tick of x.ticks)
    root.append(svg("line", { class: "grid", x1: x.place(tick), x2: x.place(tick), y1: top, y2: bottom }),
      svg("text", { x: x.place(tick), y: bottom + 18, "text-anchor": "middle", class: "quiet" }, spec.x.format(tick)));
  spec.bars.forEach((bar, i) => {
    const y = top + i * row;
    let from = 0;
    root.append(svg("text", { x: left - 8, y: y + 20, "text-anchor": "end" }, bar.label));
    for (const part of bar.parts) {
      const value = isNumber(part.value) ? part.value : 0;
      const shape = svg("rect", { class: "bar", x: x.place(from), y: y + 5, width: Math.max(0, x.place(from + value) - x.place(from)), height: row - 10 });
      root.append(svg("g", { ...colourOf(part), opacity: part.pale ? 0.4 : 1 }, shape));
      entries.push({ shape, words: part.words });
      from += value;
    }
    for (const dot of bar.dots || []) root.append(svg("circle", { cx: x.place(dot), cy: y + row / 2, r: 4.5, class: "dot" }));
    if (bar.low && bar.high) root.append(svg("path", { class: "mark", style: "stroke-width:1.5", d: `M${x.place(bar.low)},${y + row / 2}H${x.place(bar.high)}` }));
    if (isNumber(bar.mark) && bar.mark > 0) root.append(svg("line", { class: "mark", x1: x.place(bar.mark), x2: x.place(bar.mark), y1: y + 2, y2: y + row - 2 }));
  });
  root.append(svg("text", { x: width - 14, y: bottom + 40, "text-anchor": "end" }, spec.x.label));
  makePointable(root, entries);
  return root;
}

// A key for the parts of bars. They cannot be hidden.
function keyOf(key) {
  return el("div", { class: "controls" }, ...key.map(part => el("span", {}, svg("svg", { width: 16, height: 12, "aria-hidden": "true" },
    svg("g", { ...colourOf(part), opacity: part.pale ? 0.4 : 1 }, svg("rect", { class: "bar", width: 14, height: 12 }))), ` ${part.name} `)));
}

const charts = {};

// Puts a chart into `host`, before its caption. `make(settings)` returns the spec, with `series` of points or with
// `bars`. `choices` are settings that the reader can change.
function putChart(name, host, make, choices) {
  const chart = { name, host, hidden: {}, settings: Object.fromEntries((choices || []).map(c => [c.name, c.value])) };
  const body = el("div", { class: "chart" });
  chart.draw = () => {
    const width = Math.max(280, Math.floor(host.clientWidth)), old = body.querySelector(":scope > svg");
    const drawn = chart.spec.bars ? drawBars(chart, width) : drawLines(chart, width);
    if (old) old.replaceWith(drawn); else body.append(drawn);
    chart.width = width;
  };
  chart.update = () => {
    const spec = chart.spec = make(chart.settings);
    if (chart.log === undefined) chart.log = Boolean(spec.y && spec.y.log);
    chart.series = (spec.series || []).map(series => ({ ...series, shown: series.label in chart.hidden ? !chart.hidden[series.label] : series.shown }));
    const controls = el("div", { class: "controls" }, ...(choices || []).filter(c => c.values.length > 1).map(c =>
      choice(c.label, c.values, chart.settings[c.name], c.format, value => { chart.settings[c.name] = value; chart.update(); })));
    if (spec.y && spec.y.choose) controls.append(el("button", { type: "button", onclick: () => { chart.log = !chart.log; chart.update(); } },
      chart.log ? "Linear axis" : "Logarithmic axis"));
    body.replaceChildren(controls, ...(spec.series ? [legendOf(chart)] : []), ...(spec.key ? [keyOf(spec.key)] : []));
    chart.draw();
    body.append(el("details", {}, el("summary", {}, "Table"), tableOf(spec.table.head, spec.table.rows)));
  };
  chart.update(); // before the next line: if drawing fails, the picture stays
  host.querySelector("img")?.remove();
  host.prepend(body);
  new ResizeObserver(() => { if (Math.floor(host.clientWidth) !== chart.width) chart.draw(); }).observe(host);
  charts[name] = chart;
}
