// The points and texts of each chart. `number` is a series of points; psring report classifies them (results_series in
// experiments/bench/results.h).

const SERIES = [
  { number: 1, colour: 1, shown: true }, { number: 3, colour: 3 }, { number: 4, colour: 4, shown: true }, { number: 5, colour: 2 },
  { number: 8, colour: 8, shown: true }, { number: 9, colour: 9 }, { number: 14, colour: 14 }, { number: 10, colour: 10, shown: true },
  { number: 11, colour: 11 }, { number: 15, colour: 15 }, { number: 13, colour: 13 }, { number: 12, colour: 12 },
].map(series => ({ ...series, label: (DATA.names || {})[series.number] || "" })); // psring compare has no series

// W/2 servers are one server if W is below 4. The series "1 server" then has the point.
const isOf = (series, row) => row.series.includes(series.number) && !(series.number === 3 && row.workers < 4);
const rowOf = (series, rows, workers, bytes) => rows.find(r => r.workers === workers && r.bytes === bytes && isOf(series, r));

const ms = us => us === null || us === undefined ? null : us / 1000;
const doubtOf = r => [r.state === "CPU-limited" || r.state === "disturbed" ? r.state : "", r.unsteady ? `not steady: ${r.unsteady}` : ""].filter(text => text).join("; ");
function timePoint(label, x, r) {
  const low = ms(r.time_us_median_low), high = ms(r.time_us_median_high), theory = ms(r.theory_time_us);
  return { x, y: ms(r.time_us_median), low, high, theory, row: r, doubtful: r.doubtful, words: `${label}, ${counted(r.workers, "worker")}, ${bytesText(r.bytes)}\n${timeText(ms(r.time_us_median))}` +
    (low ? ` (95% interval ${timeText(low)} to ${timeText(high)})` : "") + (r.starts ? `\n${counted(r.starts, "start")}` : "") + (theory ? `\ntheory ${timeText(theory)}` : "") +
    (r.efficiency ? `\nefficiency ${percentText(r.efficiency)}` : "") + (r.doubtful ? `\n${doubtOf(r)}` : "") };
}

// Series with a point for each of `xs` that has a row.
const seriesOver = (rows, xs, workersAt, bytesAt, point) => SERIES.map(s => ({ colour: s.colour, label: s.label, shown: Boolean(s.shown),
  points: xs.map(x => [x, rowOf(s, rows, workersAt(x), bytesAt(x))]).filter(([, r]) => r).map(([x, r]) => point(s.label, x, r)) })).filter(s => s.points.length);

const timeTable = series => ({ head: ["series", "workers", "message", "time", "95% interval", "starts", "theory", "efficiency", "state"],
  rows: series.flatMap(s => s.points.map(({ row: r }) => [s.label, r.workers, bytesText(r.bytes), timeText(ms(r.time_us_median)),
    r.time_us_median_low ? `${timeText(ms(r.time_us_median_low))} to ${timeText(ms(r.time_us_median_high))}` : "-",
    r.starts || "-", r.theory_time_us ? timeText(ms(r.theory_time_us)) : "-", r.efficiency ? percentText(r.efficiency) : "-", (r.doubtful ? doubtOf(r) : r.state) || "-"])) });

const WORKERS_AXIS = { label: "workers W", format: String, log: true, ticks: true };
const TIME_AXIS = { label: "time (ms)", format: v => short(v).replace(/\.0+$/, ""), choose: true };

// The size with the most numbers of workers. Among equals, the gradient of the model, or the largest.
function focusSize(rows) {
  const sizes = ascending(rows.map(r => r.bytes)), counts = bytes => unique(rows.filter(r => r.bytes === bytes).map(r => r.workers)).length;
  const most = Math.max(...sizes.map(counts)), whole = sizes.filter(bytes => counts(bytes) === most);
  return whole.includes(DATA.models[0][1]) ? DATA.models[0][1] : whole[whole.length - 1];
}

function benchCharts(put, rows) {
  if (rows.length === 0) return;
  const sizes = ascending(rows.map(r => r.bytes)), counts = ascending(rows.map(r => r.workers)), most = counts[counts.length - 1];
  const size = { name: "bytes", label: "Message", values: sizes, value: focusSize(rows), format: bytesText };
  const workers = { name: "workers", label: "Workers", values: counts, value: most, format: String };
  put("time_vs_workers", ({ bytes }) => {
    const series = seriesOver(rows, counts, w => w, () => bytes, timePoint);
    return { label: "Time of one all-reduce by workers", x: WORKERS_AXIS, y: TIME_AXIS, series, table: timeTable(series) };
  }, [size]);
  put("time_vs_size", ({ workers: w }) => {
    const series = seriesOver(rows, sizes, () => w, bytes => bytes, timePoint);
    return { label: "Time of one all-reduce by size", x: { label: "message (bytes)", format: bytesText, log: true }, y: { ...TIME_AXIS, log: true }, series, table: timeTable(series) };
  }, [workers]);
  if (rows.some(r => r.efficiency)) put("efficiency_vs_workers", ({ bytes }) => {
    const series = seriesOver(rows.filter(r => r.efficiency), counts, w => w, () => bytes, (label, x, r) => ({ ...timePoint(label, x, r), y: r.efficiency, low: null, high: null, theory: null }));
    return { label: "Efficiency by workers", x: WORKERS_AXIS, y: { label: "efficiency", format: v => `${Math.round(100 * v)}%`, one: true }, series, table: timeTable(series) };
  }, [size]);
  bytesChart(put, rows, size, workers);
}

function bytesChart(put, rows, size, workers) {
  put("bytes_per_node", ({ bytes, workers: w }) => {
    const bars = [];
    for (const s of SERIES) {
      const r = rowOf(s, rows, w, bytes);
      if (!s.shown || !r || !r.worker_sent_bytes) continue;
      for (const role of r.server_sent_bytes ? ["server", "worker"] : ["worker"]) {
        const sent = r[`${role}_sent_bytes`], theory = r[`theory_${role}_sent_bytes`];
        bars.push({ label: role === "worker" && !r.server_sent_bytes ? s.label : `${s.label}: a ${role}`, mark: theory, parts: [{ colour: s.colour, value: sent,
          words: `${s.label}: a ${role} sends ${countText(sent)} bytes${theory ? `\ntheory ${countText(theory)}` : ""}` }] });
      }
    }
    return { label: "Bytes that one node sends", x: { label: "bytes sent in one all-reduce", format: bytesText }, bars,
      table: { head: ["node", "bytes sent", "theory"], rows: bars.map(b => [b.label, countText(b.parts[0].value), b.mark ? countText(b.mark) : "-"]) } };
  }, [size, workers]);
}

// Images/s of a worker that never waits: its batch / its computation time.
const aloneRate = r => r.batch > 0 && r.paced_ms > 0 ? 1000 * r.batch / r.paced_ms : null;

function trainCharts(put, rows) {
  if (rows.length === 0) return;
  const counts = ascending(rows.map(r => r.workers)), last = (s, w) => rows.find(r => r.workers === w && isOf(s, r));
  const alone = aloneRate(rows[rows.length - 1]);
  const trained = SERIES.map(s => ({ colour: s.colour, label: s.label, shown: Boolean(s.shown) || s.colour === 12, points: counts.map(w => last(s, w)).filter(r => r).map(r => ({
    x: r.workers, y: r.images_per_s, row: r, words: `${s.label}, ${counted(r.workers, "worker")}\n${short(r.images_per_s)} images/s` })) })).filter(s => s.points.length);
  if (trained.length === 0) return;
  put("throughput", () => {
    const free = { colour: "none", label: "if averaging were free", shown: true, dotted: true, points: counts.map(w => ({ x: w, y: null, theory: alone * w })) };
    return { label: "Images per second by workers", x: WORKERS_AXIS, y: { label: "images/s", format: v => countText(Math.round(v)), choose: true }, series: alone ? [free, ...trained] : trained,
      table: { head: ["series", "workers", "images/s", "step"], rows: trained.flatMap(s => s.points.map(p => [s.label, p.x, short(p.y), timeText(p.row.step_ms_median)])) } };
  });
  partsChart(put, rows, counts);
}

function partsChart(put, rows, counts) {
  put("step_parts", ({ workers: w }) => {
    const bars = [];
    for (const s of SERIES) {
      const r = rows.find(r => r.workers === w && isOf(s, r));
      if (!r || r.step_ms_median === null || r.exposed_comm_ms_median === null) continue;
      const computed = Math.min(r.compute_ms_median, r.step_ms_median), exposed = Math.min(r.exposed_comm_ms_median, r.step_ms_median - computed);
      bars.push({ label: s.label, row: r, parts: [["computing", computed, false], ["exposed communication", exposed, true]].map(([name, value, pale]) => ({
        colour: s.colour, value, pale, words: `${s.label}, ${counted(w, "worker")}\n${name} ${timeText(value)} of a step of ${timeText(r.step_ms_median)}` })) });
    }
    return { label: "Parts of a training step", x: { label: "ms of a step", format: v => short(v).replace(/\.0+$/, "") }, bars, key: [
      { colour: 10, name: "computing" }, { colour: 10, pale: true, name: "exposed communication: the step waits for averaging" }],
      table: { head: ["series", "step", "computing", "exposed communication"], rows: bars.map(b => [b.label, timeText(b.row.step_ms_median), ...b.parts.map(p => timeText(p.value))]) } };
  }, [{ name: "workers", label: "Workers", values: counts, value: counts[counts.length - 1], format: String }]);
}

function consistencyChart(put, rows) {
  const stragglers = unique(rows.map(r => r.straggler));
  if (rows.length) put("consistency", ({ straggler }) => {
    const here = rows.filter(r => r.straggler === straggler), bars = here.map(r => {
      const never = r.seconds === null, value = never ? 0 : r.seconds;
      const words = `${r.mode}: ${never ? "never (median)" : timeText(1000 * value)}\n${r.reached} of ${r.runs} runs reached ${percentText(r.target)}`;
      return { label: never ? `${r.mode}: never` : r.mode, never, dots: r.dots, words, parts: [{ colour: r.mode === "ring" ? 10 : r.mode === "bsp" ? 1 : r.mode === "backup" ? 9 : 2, value, words }], row: r };
    });
    return { label: "Seconds to the target accuracy", x: { label: `seconds to ${percentText(here[0].target)} of the test images`, format: v => short(v).replace(/\.0+$/, "") }, bars,
      table: { head: ["mode", "seconds, median", "reached", "images/s"], rows: bars.map(b => [b.row.mode, b.never ? "never" : short(b.parts[0].value), `${b.row.reached}/${b.row.runs}`, short(b.row.images_per_s)]) } };
  }, [{ name: "straggler", label: "Slow worker", values: stragglers, value: stragglers[stragglers.length - 1], format: s => s === "none" ? "none" : `rank ${String(s).replace(":", ", ")} times slower` }]);
}

// Predicted and measured: the error of each row, in separate series for held-out and fitted rows.
function predictChart(put, rows) {
  const used = rows.filter(r => r.use === "fitted" || r.use === "held-out");
  if (used.length === 0) return;
  const series = [["held-out", "held out", 10], ["fitted", "fitted", 2]].map(([use, label, colour]) => ({ colour, label, shown: true, dotted: true,
    points: used.filter(r => r.use === use).map(r => ({ x: ms(r.measured_us), y: r.error, row: r, words: `${r.backend} over ${r.transport}, ${counted(r.workers, "worker")}, ` +
      `${r.servers ? `${counted(r.servers, "server")} ${r.placement}, ` : ""}${bytesText(r.bytes)}, ${label}\nmeasured ${timeText(ms(r.measured_us))}, predicted ${timeText(ms(r.predicted_us))} ` +
      `(95% interval ${timeText(ms(r.predicted_us_low))} to ${timeText(ms(r.predicted_us_high))})\nerror ${percentText(r.error)}` })) })).filter(s => s.points.length);
  put("predict", () => ({ label: "Error of each prediction", x: { label: "measured time (ms)", format: v => short(v).replace(/\.0+$/, ""), log: true },
    y: { label: "predicted / measured - 100%", format: v => `${Math.round(1000 * v) / 10}%` }, series,
    table: { head: ["backend", "transport", "workers", "servers", "message", "use", "measured", "predicted", "error"], rows: used.map(r => [r.backend, r.transport, r.workers,
      r.servers ? `${r.servers} ${r.placement}` : "-", bytesText(r.bytes), r.use, timeText(ms(r.measured_us)), timeText(ms(r.predicted_us)), percentText(r.error)]) } }));
}

// simulate.csv has the columns of bench.csv. Each simulated network is a choice.
function simulateChart(put, rows) {
  if (rows.length === 0) return;
  const networks = unique(rows.map(r => r.network)), sizes = ascending(rows.map(r => r.bytes));
  put("simulate", ({ network, bytes }) => {
    const here = rows.filter(r => r.network === network), series = seriesOver(here, ascending(here.map(r => r.workers)), w => w, () => bytes, timePoint);
    return { label: "Simulated time of one all-reduce by workers", x: WORKERS_AXIS, y: { ...TIME_AXIS, log: true }, series, table: timeTable(series) };
  }, [{ name: "network", label: "Network", values: networks, value: networks[0], format: String }, { name: "bytes", label: "Message", values: sizes, value: focusSize(rows), format: bytesText }]);
}

// psring compare: time after / before, one bar each. Bars without a difference are pale.
function compareChart(put, pairs) {
  if (pairs.length === 0) return;
  const counts = ascending(pairs.map(p => p.workers)), sizes = ascending(pairs.map(p => p.bytes));
  const colours = { ps: 1, ring: 10, rhd: 11, tree: 13, mpi: 12 };
  put("compare", ({ workers, bytes }) => {
    const here = pairs.filter(p => p.workers === workers && p.bytes === bytes);
    const words = p => `${p.name}, ${counted(p.workers, "worker")}, ${bytesText(p.bytes)}\nbefore ${timeText(ms(p.before_us))}, after ${timeText(ms(p.after_us))}\n` +
      `after / before ${p.words}`;
    return { label: "Time after / time before", x: { label: "time after / time before", format: v => `${Math.round(100 * v)}%` },
      bars: here.map(p => ({ label: p.name, mark: 1, low: p.low, high: p.high, parts: [{ colour: colours[p.backend] || 4, value: p.ratio, pale: !p.differs, words: words(p) }] })),
      table: { head: ["all-reduce", "before", "after", "after / before (both intervals allow)"], rows: here.map(p => [p.name, timeText(ms(p.before_us)), timeText(ms(p.after_us)), p.words]) } };
  }, [{ name: "workers", label: "Workers", values: counts, value: counts[counts.length - 1], format: String },
    { name: "bytes", label: "Message", values: sizes, value: sizes[sizes.length - 1], format: bytesText }]);
}
