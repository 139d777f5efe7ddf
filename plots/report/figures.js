// Which rows each chart shows, and in which words. The series are those of plots/points.awk.

const SERIES = [
  { colour: 1, label: "1 server", shown: true, has: (r, w) => r.placement === "dedicated" && r.servers === 1 },
  { colour: 3, label: "W/2 servers", has: (r, w) => r.placement === "dedicated" && w > 3 && r.servers === Math.floor(w / 2) },
  { colour: 4, label: "W servers", shown: true, has: (r, w) => r.placement === "dedicated" && r.servers === w && w > 1 },
  { colour: 2, label: "1 server in a worker", has: (r, w) => r.placement === "colocated" && r.servers === 1 },
  { colour: 8, label: "servers in all workers", shown: true, has: (r, w) => r.placement === "colocated" && r.servers === w && w > 1 },
  { colour: 9, label: "in workers + W/2 spare", has: (r, w) => r.placement === "mixed" && r.servers === Math.floor(w / 2) },
  { colour: 10, label: "ring", shown: true, has: r => r.backend === "ring" },
  { colour: 11, label: "halving-doubling", has: r => r.backend === "rhd" },
  { colour: 12, label: "MPI_Allreduce, fastest", has: r => r.backend === "mpi" },
];

// Each backend over its own transport, the first that it was measured with; no compression, library or shared hosts.
function plainRows(rows) {
  const own = {};
  return rows.filter(r => r.network !== "time-slicing" && r.device !== "cuda" && r.api !== "library" && !r.model_gradients &&
    !(r.hosts > 1 && r.hosts < r.workers)).filter(r => {
    own[r.backend] = own[r.backend] || r.transport;
    return r.transport === own[r.backend] && (!r.compress || r.compress === "none");
  });
}

// The row of a series there: of several the last, as in summary.txt; of MPI_Allreduce's algorithms the fastest.
function rowOf(series, rows, workers, bytes) {
  const found = rows.filter(r => r.workers === workers && r.bytes === bytes && series.has(r, workers));
  const last = Object.values(Object.fromEntries(found.map(r => [r.mpi_algorithm || "", r])));
  return last.reduce((best, r) => !best || r.time_us_median < best.time_us_median ? r : best, null);
}

const ms = us => us === null || us === undefined ? null : us / 1000;
function timePoint(label, x, r) {
  const low = ms(r.time_us_median_low), high = ms(r.time_us_median_high), theory = ms(r.theory_time_us);
  return { x, y: ms(r.time_us_median), low, high, theory, row: r, words: `${label}, ${counted(r.workers, "worker")}, ${bytesText(r.bytes)}\n${timeText(ms(r.time_us_median))}` +
    (low ? ` (95% interval ${timeText(low)} to ${timeText(high)})` : "") + (theory ? `\ntheory ${timeText(theory)}` : "") +
    (r.efficiency ? `\nefficiency ${percentText(r.efficiency)}` : "") + (r.cpu_busy > 0.85 ? `\nCPUs ${percentText(r.cpu_busy)} busy${r.cpu_other >= 0.1 && r.cpu_busy - r.cpu_other <= 0.85 ? `, ${percentText(r.cpu_other)} with other work` : ""}: may be their time` : "") };
}

// Series with a point for each of `xs` that there is a row for.
const seriesOver = (rows, xs, workersAt, bytesAt, point) => SERIES.map(s => ({ colour: s.colour, label: s.label, shown: Boolean(s.shown),
  points: xs.map(x => [x, rowOf(s, rows, workersAt(x), bytesAt(x))]).filter(([, r]) => r).map(([x, r]) => point(s.label, x, r)) })).filter(s => s.points.length);

const timeTable = series => ({ head: ["series", "workers", "message", "time", "95% interval", "theory", "efficiency"],
  rows: series.flatMap(s => s.points.map(({ row: r }) => [s.label, r.workers, bytesText(r.bytes), timeText(ms(r.time_us_median)),
    r.time_us_median_low ? `${timeText(ms(r.time_us_median_low))} to ${timeText(ms(r.time_us_median_high))}` : "-",
    r.theory_time_us ? timeText(ms(r.theory_time_us)) : "-", r.efficiency ? percentText(r.efficiency) : "-"])) });

const WORKERS_AXIS = { label: "workers W", format: String, log: true, ticks: true };
const TIME_AXIS = { label: "time (ms)", format: v => short(v).replace(/\.0+$/, ""), choose: true };

// The size that fewest measurements leave out, and of those the model's gradient or the largest.
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
    return { label: "Time of one all-reduce against workers", x: WORKERS_AXIS, y: TIME_AXIS, series, table: timeTable(series) };
  }, [size]);
  put("time_vs_size", ({ workers: w }) => {
    const series = seriesOver(rows, sizes, () => w, bytes => bytes, timePoint);
    return { label: "Time of one all-reduce against its size", x: { label: "message (bytes)", format: bytesText, log: true }, y: { ...TIME_AXIS, log: true }, series, table: timeTable(series) };
  }, [workers]);
  if (rows.some(r => r.efficiency)) put("efficiency_vs_workers", ({ bytes }) => {
    const series = seriesOver(rows.filter(r => r.efficiency), counts, w => w, () => bytes, (label, x, r) => ({ ...timePoint(label, x, r), y: r.efficiency, low: null, high: null, theory: null }));
    return { label: "Efficiency against workers", x: WORKERS_AXIS, y: { label: "efficiency", format: v => `${Math.round(100 * v)}%`, one: true }, series, table: timeTable(series) };
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

const paced = r => String(r.compute).startsWith("paced");

// Images a second of a worker that waits for nobody: its batch in the time that it is told to compute.
function aloneRate(rows, counts) {
  const r = rows[rows.length - 1], seconds = Number(String(r.compute).slice("paced:".length)) / 1000;
  return r.batch > 0 && seconds > 0 ? r.batch / seconds : counts[0] === 1 ? Math.max(...rows.filter(r => r.workers === 1).map(r => r.images_per_s)) : null;
}

function trainCharts(put, all) {
  const rows = all.filter(r => paced(r) && r.device !== "cuda");
  if (rows.length === 0) return;
  const counts = ascending(rows.map(r => r.workers)), last = (s, w) => rows.filter(r => r.workers === w && (s.has(r, w) || (w === 1 && r.servers === 1 && s.colour === (r.placement === "dedicated" ? 4 : 8)))).pop();
  const alone = aloneRate(rows, counts);
  const trained = SERIES.map(s => ({ colour: s.colour, label: s.label, shown: Boolean(s.shown) || s.colour === 12, points: counts.map(w => last(s, w)).filter(r => r).map(r => ({
    x: r.workers, y: r.images_per_s, row: r, words: `${s.label}, ${counted(r.workers, "worker")}\n${short(r.images_per_s)} images/s` })) })).filter(s => s.points.length);
  if (trained.length === 0) return;
  put("throughput", () => {
    const free = { colour: "none", label: "if averaging were free", shown: true, dotted: true, points: counts.map(w => ({ x: w, y: null, theory: alone * w })) };
    return { label: "Images a second against workers", x: WORKERS_AXIS, y: { label: "images/s", format: v => countText(Math.round(v)), choose: true }, series: alone ? [free, ...trained] : trained,
      table: { head: ["series", "workers", "images/s", "step"], rows: trained.flatMap(s => s.points.map(p => [s.label, p.x, short(p.y), timeText(p.row.step_ms_median)])) } };
  });
  partsChart(put, all, counts);
}

function partsChart(put, all, counts) {
  put("step_parts", ({ workers: w }) => {
    const bars = [];
    for (const s of SERIES) {
      const r = all.filter(r => paced(r) && r.workers === w && s.has(r, w)).pop();
      if (!r || r.step_ms_median === null || r.exposed_comm_ms_median === null) continue;
      const computed = Math.min(r.compute_ms_median, r.step_ms_median), exposed = Math.min(r.exposed_comm_ms_median, r.step_ms_median - computed);
      bars.push({ label: s.label, row: r, parts: [["computing", computed, false], ["exposed communication", exposed, true]].map(([name, value, pale]) => ({
        colour: s.colour, value, pale, words: `${s.label}, ${counted(w, "worker")}\n${name} ${timeText(value)} of a step of ${timeText(r.step_ms_median)}` })) });
    }
    return { label: "A training step taken apart", x: { label: "ms of a step", format: v => short(v).replace(/\.0+$/, "") }, bars, key: [
      { colour: 10, name: "computing" }, { colour: 10, pale: true, name: "exposed communication: the step waits for averaging" }],
      table: { head: ["series", "step", "computing", "exposed communication"], rows: bars.map(b => [b.label, timeText(b.row.step_ms_median), ...b.parts.map(p => timeText(p.value))]) } };
  }, [{ name: "workers", label: "Workers", values: counts, value: counts[counts.length - 1], format: String }]);
}

function consistencyChart(put, rows) {
  const stragglers = unique(rows.map(r => r.straggler));
  if (rows.length) put("consistency", ({ straggler }) => {
    const here = rows.filter(r => r.straggler === straggler), bars = unique(here.map(r => r.mode)).map(mode => {
      const runs = here.filter(r => r.mode === mode), reached = runs.filter(r => r.on_target === 1).map(r => r.seconds);
      // A run that has not reached it took for ever, as in summary.txt.
      const middle = median(runs.map(r => r.on_target === 1 ? r.seconds : Infinity)), never = !isNumber(middle), value = never ? 0 : middle;
      const words = `${mode}: ${never ? "never, as the median" : timeText(1000 * value)}\n${reached.length} of ${runs.length} runs reached ${percentText(runs[0].target_accuracy)}`;
      return { label: never ? `${mode}: never` : mode, mode, never, reached, dots: reached, words, parts: [{ colour: mode === "ring" ? 10 : mode === "bsp" ? 1 : mode === "backup" ? 9 : 2, value, words }], runs };
    });
    return { label: "Seconds to the target accuracy", x: { label: `seconds to ${percentText(here[0].target_accuracy)} of the test images`, format: v => short(v).replace(/\.0+$/, "") }, bars,
      table: { head: ["mode", "seconds, median", "reached", "images/s"], rows: bars.map(b => [b.mode, b.never ? "never" : short(b.parts[0].value), `${b.reached.length}/${b.runs.length}`, short(median(b.runs.map(r => r.images_per_s)))]) } };
  }, [{ name: "straggler", label: "Slow worker", values: stragglers, value: stragglers[stragglers.length - 1], format: s => s === "none" ? "none" : `rank ${String(s).replace(":", ", ")} times slower` }]);
}

// Predicted beside measured: the error of each row, those that were held out apart from those that were fitted.
function predictChart(put, rows) {
  const used = rows.filter(r => r.use === "fitted" || r.use === "held-out");
  if (used.length === 0) return;
  const series = [["held-out", "held out", 10], ["fitted", "fitted", 2]].map(([use, label, colour]) => ({ colour, label, shown: true, dotted: true,
    points: used.filter(r => r.use === use).map(r => ({ x: ms(r.measured_us), y: r.error, row: r, words: `${r.backend} over ${r.transport}, ${counted(r.workers, "worker")}, ` +
      `${r.servers ? `${counted(r.servers, "server")} ${r.placement}, ` : ""}${bytesText(r.bytes)}, ${label}\nmeasured ${timeText(ms(r.measured_us))}, predicted ${timeText(ms(r.predicted_us))} ` +
      `(95% interval ${timeText(ms(r.predicted_us_low))} to ${timeText(ms(r.predicted_us_high))})\nerror ${percentText(r.error)}` })) })).filter(s => s.points.length);
  put("predict", () => ({ label: "Error of each prediction", x: { label: "measured time (ms)", format: v => short(v).replace(/\.0+$/, ""), log: true },
    y: { label: "predicted over measured, less 100%", format: v => `${Math.round(1000 * v) / 10}%` }, series,
    table: { head: ["backend", "transport", "workers", "servers", "message", "use", "measured", "predicted", "error"], rows: used.map(r => [r.backend, r.transport, r.workers,
      r.servers ? `${r.servers} ${r.placement}` : "-", bytesText(r.bytes), r.use, timeText(ms(r.measured_us)), timeText(ms(r.predicted_us)), percentText(r.error)]) } }));
}

// simulate.csv has the columns of bench.csv; each network that was simulated is a choice.
function simulateChart(put, rows) {
  if (rows.length === 0) return;
  const networks = unique(rows.map(r => r.network)), sizes = ascending(rows.map(r => r.bytes));
  put("simulate", ({ network, bytes }) => {
    const here = rows.filter(r => r.network === network), series = seriesOver(here, ascending(here.map(r => r.workers)), w => w, () => bytes, timePoint);
    return { label: "Simulated time of one all-reduce against workers", x: WORKERS_AXIS, y: { ...TIME_AXIS, log: true }, series, table: timeTable(series) };
  }, [{ name: "network", label: "Network", values: networks, value: networks[0], format: String }, { name: "bytes", label: "Message", values: sizes, value: focusSize(rows), format: bytesText }]);
}

// psring compare: times after over before, a bar each; those without a difference are pale.
function compareChart(put, pairs) {
  if (pairs.length === 0) return;
  const counts = ascending(pairs.map(p => p.workers)), sizes = ascending(pairs.map(p => p.bytes));
  const colours = { ps: 1, ring: 10, rhd: 11, mpi: 12 };
  put("compare", ({ workers, bytes }) => {
    const here = pairs.filter(p => p.workers === workers && p.bytes === bytes);
    const words = p => `${p.name}, ${counted(p.workers, "worker")}, ${bytesText(p.bytes)}\nbefore ${timeText(ms(p.before_us))}, after ${timeText(ms(p.after_us))}\n` +
      `after / before ${p.words}`;
    return { label: "Time after over time before", x: { label: "time after, of the time before", format: v => `${Math.round(100 * v)}%` },
      bars: here.map(p => ({ label: p.name, mark: 1, low: p.low, high: p.high, parts: [{ colour: colours[p.backend] || 4, value: p.ratio, pale: !p.differs, words: words(p) }] })),
      table: { head: ["all-reduce", "before", "after", "after / before (both intervals allow)"], rows: here.map(p => [p.name, timeText(ms(p.before_us)), timeText(ms(p.after_us)), p.words]) } };
  }, [{ name: "workers", label: "Workers", values: counts, value: counts[counts.length - 1], format: String },
    { name: "bytes", label: "Message", values: sizes, value: sizes[sizes.length - 1], format: bytesText }]);
}
