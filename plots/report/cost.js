// The model of cost for hosts with one rank each: the formulas of ring/cost.c and ps/cost.c, for messages in several
// pieces.
// tests/report/test_page.sh compares the results with those of the program.
// link: latency_s (a, seconds per message), bytes_per_s (B, each way), reduce_s_per_byte (g).
// Each function returns the seconds of one all-reduce of `bytes` among `workers`.

// `pipeline`: segments of a chunk, or of two workers' vector (K). A step hides its latency while its chunk takes longer
// than a segment and the latency.
function ringTime(workers, bytes, pipeline, link) {
  const steps = 2 * (workers - 1), step = bytes / workers / link.bytes_per_s, pieces = Math.max(1, workers === 2 ? pipeline / 2 : pipeline);
  if (workers < 2) return 0;
  return steps * step + link.latency_s + (steps - 1) * Math.max(0, link.latency_s + step / pieces - step) +
    ((workers - 1) / workers) * bytes * link.reduce_s_per_byte;
}

// Into how many parts a step cuts a group of n: its largest divisor up to the radix, else the least.
function partsOf(n, radix) {
  let parts = Math.min(radix, n);
  while (n % parts) parts--;
  for (let least = 2; parts < 2; least++) if (n % least === 0) parts = least;
  return parts;
}

// `pipeline`: slices (K). A step hides its latency while it takes longer than a slice and the latency. The last is the
// mirror of the first.
function halvingTime(workers, bytes, pipeline, link, radix = 2) {
  if (workers < 2) return 0;
  let seconds = link.latency_s + ((workers - 1) / workers) * bytes * link.reduce_s_per_byte;
  for (let size = workers; size > 1;) {
    const parts = partsOf(size, radix), mirrors = size === workers ? 1 : 2;
    const step = (parts - 1) * (size / parts) / workers * bytes / link.bytes_per_s;
    seconds += 2 * step + mirrors * Math.max(0, link.latency_s + step / pipeline - step);
    size /= parts;
  }
  return seconds;
}

const DISTANT_S = 1e-3; // a round trip from which schedules cover the distance

// `pipeline`: segments of a half (K). The busiest link carries the vector twice from four workers on. A leaf has few
// segments under way, so a link waits if a segment takes less time than the latency. Distant leaves have enough.
function treeTime(workers, bytes, pipeline, link) {
  const steps = 2 * (31 - Math.clz32(workers)), sent = Math.min(2, workers / 2) * bytes / link.bytes_per_s;
  if (workers < 2) return 0;
  const near = 2 * link.latency_s < DISTANT_S, full = (workers & (workers + 1)) === 0;
  const first = (full ? steps : steps - 1) * bytes / link.bytes_per_s;
  return steps * link.latency_s + ((pipeline - 1) * sent + first) / pipeline +
    (near ? (pipeline - 1) * Math.max(0, link.latency_s - sent / pipeline) : 0) +
    Math.min(1, (workers - 1) / 2) * bytes * link.reduce_s_per_byte;
}

// Shares of the message: for a server inside a worker, and for one on a spare machine. `servers` counts both kinds,
// `spare` the latter. Source of mixed placement: BytePS (OSDI 2020).
function shares(workers, servers, spare) {
  if (spare === 0 || servers === spare) return { beside: spare ? 0 : 1 / servers, spare: spare ? 1 / spare : 0 };
  const all = workers * workers + spare * workers - 2 * spare;
  return spare < workers ? { beside: (workers - spare) / all, spare: 2 * (workers - 1) / all } : { beside: 0, spare: 1 / spare };
}

// `pipeline`: pieces of a shard (K); one is pushed while another is pulled. With a server in each worker,
// answers that leave while pushes are on their way hide a latency.
function serverTime(workers, servers, spare, bytes, pipeline, link) {
  const share = shares(workers, servers, spare), loads = [];
  const host = (inside, own) => loads.push([inside * (1 - own), (workers - inside) * own]);
  if (servers > spare) host(1, share.beside);
  if (servers - spare < workers) host(1, 0);
  if (spare > 0) host(0, share.spare);
  const pushing = Math.max(...loads.flat()), both = Math.max(...loads.map(([out, into]) => out + into));
  if (both === 0) return 0;
  const links = (both + (2 * pushing - both) / pipeline) * bytes / link.bytes_per_s;
  const hidden = both < 2 * pushing * (1 - 1e-9) ? 0 : Math.max(0, Math.min(link.latency_s, links / 2 * (1 - 1 / pipeline)));
  return 2 * link.latency_s + links - hidden +
    (workers - 1) * Math.max(share.beside, share.spare) * bytes * link.reduce_s_per_byte;
}
