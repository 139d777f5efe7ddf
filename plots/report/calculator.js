// The calculator: times by the model of cost for the values of its sliders, redrawn while they move.

// The source of the constants: the fit of the run if there is one, otherwise theory with the probed rate.
function constantsOf() {
  const fit = fittedConstants();
  if (fit) return fit;
  const probed = DATA.link_bytes_per_s;
  return { latency_s: 100e-6, bytes_per_s: probed || 125e6, reduce_s_per_byte: 0,
    words: `Constants: theory. ${probed ? `The rate starts at the measured rate of this run's links, ${rateText(probed * 8)}` : "The rate starts at 1 Gbit/s, because none was measured"}; a latency of 100 us is assumed, and addition is free.` };
}

// The fit in model.json (psring predict): that of the ring's transport if possible. null: no fit.
function fittedConstants() {
  const ring = rowsOf("bench").find(r => r.backend === "ring");
  const all = DATA.model && Array.isArray(DATA.model.models) ? DATA.model.models : [];
  const models = all.filter(m => m && m.constants && m.constants.link_s_per_byte && m.constants.link_s_per_byte.value > 0);
  const fit = models.find(m => ring && m.transport === ring.transport) || models[0];
  if (!fit) return null;
  const value = name => fit.constants[name] && fit.constants[name].value > 0 ? fit.constants[name].value : 0;
  return { latency_s: value("latency_s"), bytes_per_s: 1 / value("link_s_per_byte"), reduce_s_per_byte: value("reduce_s_per_byte"),
    words: `Constants: fitted to this run's measurements over ${fit.transport} (model.json): latency, rate and addition. These formulas leave out ` +
      `the processor time of messages and the bursts of links, which psring predict includes.` };
}

const PIPELINE = 32; // pieces of a server's shard, about psring's choice for long messages

// The pieces of a fast link, as comm_fast_piece_bytes chooses them. 0: the link is slow.
function fastPiece(bytes, rate) {
  if (rate <= 130e6) return 0;
  return Math.min(bytes / Math.max(1, Math.floor(bytes / Math.sqrt(bytes * rate * 15e-6))), 524288);
}

// The ring in segments about as psring chooses them: eight of a chunk, but none below 32 KB.
const ringOf = (workers, bytes, link) => {
  const chunk = bytes / workers, fast = workers > 2 ? fastPiece(chunk, link.bytes_per_s) : 0;
  return ringTime(workers, bytes, Math.ceil(chunk / Math.max(chunk / 8, 32768, fast)) * (workers === 2 ? 2 : 1), link);
};

// Halving-doubling in slices about as psring chooses them: 128, whose first messages have 32 to 256 KB.
const halvingOf = (workers, bytes, link, radix = 2) => {
  const whole = bytes / (workers > 1 ? partsOf(workers, radix) : 1), fast = fastPiece(whole, link.bytes_per_s);
  const slow = Math.min(Math.max(whole / 128, 32768), 262144);
  return halvingTime(workers, bytes, fast >= whole ? 1 : Math.ceil(whole / Math.max(slow, Math.min(fast, 131072))), link, radix);
};

// The tree in segments about as psring chooses them: 64 of a half, but of 32 to 256 KB.
const treeOf = (workers, bytes, link) =>
  treeTime(workers, bytes, Math.ceil(bytes / 2 / Math.min(Math.max(bytes / 2 / 64, 32768), 262144)), link);

// Colour and name of a series in the other charts.
const lookOf = number => { const { colour, label } = SERIES.find(s => s.number === number); return { colour, label }; };

// The options, with their seconds and machines.
function optionsOf(state) {
  const { workers: w, servers, spare, bytes } = state, link = state, time = (s, k) => serverTime(w, s, k, bytes, PIPELINE, link);
  const options = [
    { ...lookOf(1), seconds: time(1, 1), machines: w + 1 },
    { colour: 4, label: `${servers} servers`, seconds: time(servers, servers), machines: w + servers },
    { ...lookOf(5), seconds: time(1, 0), machines: w },
    { ...lookOf(8), seconds: time(w, 0), machines: w },
    { colour: 9, label: `W in workers + ${spare}`, seconds: time(w + spare, spare), machines: w + spare },
    { ...lookOf(10), seconds: ringOf(w, bytes, link), machines: w },
    { ...lookOf(11), seconds: halvingOf(w, bytes, link), machines: w },
    { ...lookOf(15), seconds: halvingOf(w, bytes, link, w), machines: w },
    { ...lookOf(13), seconds: treeOf(w, bytes, link), machines: w },
  ];
  return options.filter((option, i) => !(i === 4 && spare === 0) && !(i === 1 && servers === 1));
}

// The smallest number from which `holds` is true for all numbers up to `high`. null: it is false at `high`.
function leastFrom(low, high, holds) {
  let least = null;
  for (let i = high; i >= low && holds(i); i--) least = i;
  return least;
}

const SIZES = [1, 1e12]; // the range of bytes in which one server and the ring are compared

// The bytes below which one server, with the message in one piece, is faster than the ring. 0: for none of SIZES.
// Infinity: for all.
function smallMessages({ workers: w, ...link }) {
  const slower = bytes => serverTime(w, 1, 1, bytes, 1, link) >= ringOf(w, bytes, link);
  let [low, high] = SIZES;
  if (slower(low)) return 0;
  if (!slower(high)) return Infinity;
  while (high / low > 1.0005) { const middle = Math.sqrt(low * high); if (slower(middle)) high = middle; else low = middle; }
  return low;
}

function adviceOf(state) {
  const { workers: w, spare, bytes } = state, options = optionsOf(state), ring = ringOf(w, bytes, state), lines = [];
  const fastest = list => list.reduce((best, o) => o.seconds < best.seconds ? o : best);
  const within = options.filter(o => o.machines <= w + spare), best = fastest(within);
  const alike = within.filter(o => o !== best && o.seconds <= best.seconds * 1.02).map(o => o.label);
  lines.push(`With ${counted(w, "worker")} and ${counted(spare, "spare machine")}: ${best.label}, ${timeText(best.seconds * 1000)} for an all-reduce of ${bytesText(bytes)}` +
    (alike.length ? `; within 2% of it: ${alike.join(", ")}.` : "."));
  lines.push(`One dedicated server takes ${short(options[0].seconds / ring)} times as long as the ring.`);
  const small = smallMessages(state);
  lines.push(small === 0 || small === Infinity ? `One server is ${small === 0 ? "not " : ""}faster than the ring from ${SIZES.map(bytesText).join(" to ")}.` : `One server is faster than the ring below ${bytesText(small)}.`);
  const own = leastFrom(1, w, s => serverTime(w, s, s, bytes, PIPELINE, state) < ring), mixed = leastFrom(1, w, k => serverTime(w, w + k, k, bytes, PIPELINE, state) < ring);
  lines.push(own === null ? `${counted(w, "server")} on spare machines alone are not faster than the ring.` : `Servers on spare machines alone are faster than the ring from ${own} to ${w} of them.`);
  if (mixed !== null) lines.push(`Servers in all workers and on spare machines are faster than the ring from ${mixed} to ${w} spare ones.`);
  return lines;
}

const calculator = { state: null, draw: null };

function startCalculator(host) {
  if (!host) return;
  const constants = constantsOf(), state = calculator.state = { workers: 8, servers: 4, spare: 4, bytes: DATA.models[0][1], ...constants };
  const sliders = el("div", { class: "sliders" }), advice = el("div", { class: "advice", "aria-live": "polite" }), chartHost = el("figure", {});
  // A slider over powers of `base`, or over whole numbers from `low` to `high()`.
  const slide = (name, text, low, high, set, get, format) => {
    const output = el("span", {}), input = el("input", { type: "range", min: low, max: high(), step: "any", value: get(), "data-name": name });
    const say = () => { output.textContent = format(); input.setAttribute("aria-valuetext", format()); };
    input.addEventListener("input", () => { set(Number(input.value)); calculator.draw(); });
    sliders.append(el("label", {}, el("span", {}, text), output, input));
    return { say: () => { input.max = high(); input.value = get(); say(); }, input };
  };
  const log = (name, text, low, high, format, factor) => slide(name, text, Math.log10(low), () => Math.log10(high), v => { state[name] = 10 ** v / factor; }, () => Math.log10(state[name] * factor), () => format(state[name]));
  const whole = (name, text, low, high) => {
    const made = slide(name, text, low, high, v => { state[name] = Math.round(v); }, () => state[name], () => String(state[name]));
    made.input.step = 1;
    return made;
  };
  const made = [
    slide("workers", "Workers W", 1, () => 10, v => { state.workers = Math.round(2 ** v); }, () => Math.log2(state.workers), () => String(state.workers)),
    whole("servers", "Dedicated servers S", 1, () => state.workers),
    whole("spare", "Spare machines", 0, () => state.workers),
    log("bytes_per_s", "Rate of a link, each way", 1e7, 4e11, v => rateText(v * 8), 8),
    log("latency_s", "Latency of a message", 1, 2000, v => timeText(v * 1000), 1e6),
  ];
  const models = el("select", { "data-name": "model", onchange: () => { state.bytes = DATA.models[models.selectedIndex][1]; calculator.draw(); } },
    ...DATA.models.map(([name, bytes]) => el("option", {}, `${name}, ${bytesText(bytes)} of gradients`)));
  sliders.append(el("label", {}, el("span", {}, "Model"), models));
  const make = () => ({ label: "Time of one all-reduce by topology", x: { label: "ms of one all-reduce, by the model of cost", format: v => short(v).replace(/\.0+$/, "") },
    bars: optionsOf(state).map(o => ({ label: o.label, parts: [{ colour: o.colour, value: o.seconds * 1000, words: `${o.label}: ${timeText(o.seconds * 1000)}, ${o.machines} machines` }] })),
    table: { head: ["topology", "time", "machines", "/ ring"], rows: optionsOf(state).map(o => [o.label, timeText(o.seconds * 1000), o.machines, `${short(o.seconds / ringOf(state.workers, state.bytes, state))} times`]) } });
  calculator.draw = () => {
    state.servers = Math.min(state.servers, state.workers);
    state.spare = Math.min(state.spare, state.workers);
    for (const slider of made) slider.say();
    advice.replaceChildren(...adviceOf(state).map(line => el("p", {}, line)));
    if (charts.calculator) charts.calculator.update();
  };
  host.replaceChildren(el("p", {}, constants.words + " Each machine has one link without other traffic."), sliders, advice, chartHost);
  calculator.draw();
  putChart("calculator", chartHost, make);
}
