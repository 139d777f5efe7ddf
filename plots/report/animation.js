// The replay: recorded messages of one step, all topologies on one clock. A message moves on its link from when the
// link is free for it until it arrives. Below: the use of each link over the whole replay.

const SPEEDS = [1, 5, 10, 20, 50, 100];
const BINS = 150;
const PLACE = { width: 420, height: 330, radius: 118, node: 27 };

// Prepares a replay for drawing: nodes with positions, links, and the use of each node's link in both directions.
function prepare(replay, end) {
  const workers = replay.workers.flatMap((is, rank) => is ? [rank] : []), servers = replay.workers.flatMap((is, rank) => is ? [] : [rank]);
  const centre = { x: PLACE.width / 2, y: PLACE.height / 2 };
  const around = (list, radius, start) => list.map((rank, i) => {
    const angle = start + (2 * Math.PI * i) / list.length;
    return { rank, x: centre.x + radius * Math.cos(angle), y: centre.y + radius * Math.sin(angle) };
  });
  const nodes = [...around(workers, PLACE.radius, -Math.PI * 0.75), ...around(servers, servers.length > 1 ? 35 : 0, 0)];
  const name = rank => replay.workers[rank] ? `worker ${workers.indexOf(rank)}` : servers.length > 1 ? `server ${servers.indexOf(rank)}` : "server";
  const nodeOf = Object.fromEntries(nodes.map(node => [node.rank, Object.assign(node, { name: name(node.rank), server: !replay.workers[node.rank] })]));
  // A message shorter than a microsecond is drawn in the microsecond before its arrival, so none ends after the replay.
  const messages = replay.messages.map(([from, to, begin, stop, bytes]) => {
    const arrival = Math.max(stop, 1);
    return { from: nodeOf[from], to: nodeOf[to], begin: Math.min(begin, arrival - 1), end: arrival, bytes };
  });
  for (const node of nodes) node.use = { out: new Array(BINS).fill(0), into: new Array(BINS).fill(0) };
  for (const m of messages) spread(m, end);
  return { ...replay, nodes, messages, links: linksOf(messages) };
}

// Distributes a message's bytes over the bins of its travel time.
function spread(message, end) {
  const bin = end / BINS;
  for (let i = Math.floor(message.begin / bin); i < BINS && i * bin < message.end; i++) {
    const share = (Math.min(message.end, (i + 1) * bin) - Math.max(message.begin, i * bin)) / (message.end - message.begin);
    message.from.use.out[i] += share * message.bytes;
    message.to.use.into[i] += share * message.bytes;
  }
}

// The links: each direction of a pair, drawn in parallel.
function linksOf(messages) {
  const links = new Map();
  for (const m of messages) {
    const key = `${m.from.rank}-${m.to.rank}`;
    if (!links.has(key)) {
      const length = Math.hypot(m.to.x - m.from.x, m.to.y - m.from.y), ux = (m.to.x - m.from.x) / length, uy = (m.to.y - m.from.y) / length;
      const put = (node, along) => ({ x: node.x + along * PLACE.node * ux - 9 * uy, y: node.y + along * PLACE.node * uy + 9 * ux });
      links.set(key, { start: put(m.from, 1), stop: put(m.to, -1) });
    }
    m.link = links.get(key);
  }
  return [...links.values()];
}

// The drawing of one replay. `show(time)` moves it to a time.
function panelOf(replay, end, rate) {
  const root = svg("svg", { viewBox: `0 0 ${PLACE.width} ${PLACE.height}`, role: "img", "aria-label": `Averaging by ${replay.name}: the nodes, and the messages on their links` });
  const group = svg("g", { class: "of-series", style: `--own: var(--series-${replay.nodes.some(n => n.server) ? 1 : 10})` });
  for (const link of replay.links) {
    link.line = svg("line", { class: "link", x1: link.start.x, y1: link.start.y, x2: link.stop.x, y2: link.stop.y });
    group.append(link.line);
  }
  for (const node of replay.nodes) group.append(svg("circle", { class: "node", cx: node.x, cy: node.y, r: PLACE.node }),
    svg("text", { x: node.x, y: node.y + 5, "text-anchor": "middle" }, node.server ? "server" : node.name.replace("worker ", "w")));
  const parts = svg("g", {}), clock = el("output", {}), strips = stripsOf(replay, end, rate);
  group.append(parts);
  root.append(group);
  const show = time => {
    const moving = replay.messages.filter(m => m.begin <= time && time < m.end);
    for (const link of replay.links) link.line.classList.toggle("busy", moving.some(m => m.link === link));
    while (parts.childElementCount < moving.length) parts.append(svg("circle", { class: "part", r: 7 }));
    while (parts.childElementCount > moving.length) parts.lastChild.remove();
    moving.forEach((m, i) => {
      const at = (time - m.begin) / (m.end - m.begin), { start, stop } = m.link;
      parts.children[i].setAttribute("transform", `translate(${start.x + at * (stop.x - start.x)},${start.y + at * (stop.y - start.y)})`);
    });
    clock.textContent = time >= replay.end_us ? `done after ${timeText(replay.end_us / 1000)}` : `${timeText(time / 1000)}`;
    strips.show(time);
  };
  return { show, moving: () => parts.childElementCount, node: el("section", { class: "panel" }, el("h3", {}, replay.name, clock), root, strips.node) };
}

// One strip per node and direction: the used share of the link's rate, and the current time.
function stripsOf(replay, end, rate) {
  const width = 420, left = 112, right = 52, high = 20, row = 25, cursors = [];
  const list = replay.nodes.flatMap(node => [["out", "sends"], ["into", "receives"]].map(([way, verb]) => ({ node, verb, use: node.use[way] })));
  const root = svg("svg", { viewBox: `0 0 ${width} ${list.length * row + 26}`, role: "img", "aria-label": `Use of the links by ${replay.name}: ` +
    list.map(s => `${s.node.name} ${s.verb} at ${percentText(meanUse(s.use, replay, end, rate))}`).join(", ") });
  list.forEach((strip, i) => {
    const y = i * row, x = b => left + ((width - left - right) * b) / BINS;
    const tall = strip.use.map(bytes => Math.min(1, bytes / (rate * end / BINS / 1e6)) * high);
    const path = tall.map((h, b) => `L${x(b)},${y + high - h}L${x(b + 1)},${y + high - h}`).join("");
    root.append(svg("text", { x: left - 6, y: y + 15, "text-anchor": "end" }, `${strip.node.name.replace("worker ", "w")} ${strip.verb}`),
      svg("rect", { x: left, y, width: width - left - right, height: high, fill: "var(--raised)" }),
      svg("g", { class: "of-series", style: `--own: var(--series-${replay.nodes.some(n => n.server) ? 1 : 10})` }, svg("path", { class: "use", d: `M${left},${y + high}${path}V${y + high}Z` })),
      svg("text", { x: width - right + 6, y: y + 15 }, `${Math.round(100 * meanUse(strip.use, replay, end, rate))}%`));
  });
  const cursor = svg("line", { class: "cursor", y1: 0, y2: list.length * row });
  root.append(cursor, svg("text", { class: "quiet", x: left, y: list.length * row + 16 }, "0"),
    svg("text", { class: "quiet", x: width - right, y: list.length * row + 16, "text-anchor": "end" }, `${timeText(end / 1000)}; right: mean use`));
  return { node: root, show: time => { const at = left + (width - left - right) * Math.min(1, time / end); cursor.setAttribute("x1", at); cursor.setAttribute("x2", at); } };
}

const meanUse = (use, replay, end, rate) => use.reduce((sum, bytes) => sum + bytes, 0) / (rate * replay.end_us / 1e6);

const animation = { time: 0, end: 0, playing: false, ended: false, speed: 10 };

function startAnimation(host) {
  const replays = DATA.replays || [];
  if (replays.length === 0 || !host) return;
  const end = animation.end = Math.max(...replays.map(r => r.end_us));
  const prepared = replays.map(r => prepare(r, end));
  const busiest = Math.max(...prepared.flatMap(r => r.nodes.flatMap(n => [...n.use.out, ...n.use.into]))) / (end / BINS / 1e6);
  const rate = DATA.link_bytes_per_s || busiest;
  animation.panels = prepared.map(r => panelOf(r, end, rate));
  const arrivals = ascending(prepared.flatMap(r => r.messages.map(m => m.end)));
  const play = el("button", { type: "button" }, "Play"), slider = el("input", { type: "range", min: 0, max: end, step: 1, "aria-label": "Time of the replay" });
  const clock = el("output", {}, "");
  const show = time => {
    animation.time = Math.max(0, Math.min(end, time));
    animation.ended = animation.time >= end;
    slider.value = animation.time;
    slider.setAttribute("aria-valuetext", timeText(animation.time / 1000));
    clock.textContent = `${timeText(animation.time / 1000)} of ${timeText(end / 1000)}`;
    for (const panel of animation.panels) panel.show(animation.time);
  };
  const set = playing => {
    animation.playing = playing;
    play.textContent = playing ? "Pause" : "Play";
    if (!playing) return;
    if (animation.ended) show(0);
    let last = performance.now();
    const frame = now => {
      if (!animation.playing) return;
      show(animation.time + ((now - last) * 1000) / animation.speed);
      last = now;
      if (animation.ended) set(false); else requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  };
  const step = by => { set(false); show(by > 0 ? arrivals.find(t => t > animation.time) ?? end : [...arrivals].reverse().find(t => t < animation.time) ?? 0); };
  play.addEventListener("click", () => set(!animation.playing));
  slider.addEventListener("input", () => { set(false); show(Number(slider.value)); });
  const keys = { " ": () => set(!animation.playing), ArrowRight: () => step(1), ArrowLeft: () => step(-1), Home: () => { set(false); show(0); }, End: () => { set(false); show(end); } };
  const panels = el("div", { class: "panels", tabindex: 0, role: "group", "aria-label": "Replay. Space plays and pauses, arrow keys step, Home and End jump to the begin and the end." }, ...animation.panels.map(p => p.node));
  panels.addEventListener("keydown", event => { if (keys[event.key]) { event.preventDefault(); keys[event.key](); } });
  host.replaceChildren(el("div", { class: "controls" }, play, el("button", { type: "button", onclick: () => step(-1) }, "Step back"),
    el("button", { type: "button", onclick: () => step(1) }, "Step"), choice("Speed", SPEEDS, animation.speed, s => s === 1 ? "real time" : `1/${s}`, s => { animation.speed = s; }), slider, clock), panels,
    el("p", { class: "quiet" }, `Use: share of ${rateText(rate * 8)} each way, ${DATA.link_bytes_per_s ? "the measured rate of a link" : "the highest rate in this replay"}. ` +
      `Space plays and pauses, arrow keys step from arrival to arrival.`));
  Object.assign(animation, { show, set, step });
  show(0);
}
