#include "ps/shard.h"

#include <limits.h>
#include <math.h>

#include "common/base/status.h"
#include "common/base/util.h"

enum {
    /* Least bytes of a chunk, for any number of workers. */
    CHUNK_BYTES_LEAST = 1 << 10,
    /* Least bytes of a chunk of a short shard, so that the shard has several chunks. */
    CHUNK_BYTES_MIN = 4 << 10,
    /* A chunk between the two sizes below gets the first. With its headers it is then a little
     * below the 8 KB that ZeroMQ passes to the kernel at once. The remainder of a longer chunk
     * would be a separate packet. */
    CHUNK_BYTES_BATCH = 8000,
    CHUNK_BYTES_OVER = 9000,
    /* Below 16 KB: from about that size on, tcp and mpi took longer (measured.csv). */
    CHUNK_BYTES_LONG = 15 << 10,
    /* With SERVERS_MANY servers or more a worker has many messages. A chunk is then at least an
     * eighth of a shard, bounded by CHUNK_BYTES_BATCH and _LONG; pushes and answers must still
     * overlap. It is CHUNK_BYTES_BATCH if the link takes more than CHUNK_MS_MANY for _LONG, because
     * a message's cost then matters less. */
    SERVERS_MANY = 5,
    CHUNKS_WANTED_MANY = 8,
    CHUNK_MS_MANY = 1,
    /* Servers get their chunks in turns if there are SERVERS_MANY or more and the link is slow: it
     * takes longer than TURN_US for CHUNK_BYTES_BATCH. ZeroMQ's thread may wait as long for a core.
     * Without turns it then sends everything for one server before it serves the next, and no first
     * sum is complete before nearly all windows have arrived. */
    TURN_US = 300,
    CHUNK_BYTES_MAX = 64 << 10,
    /* Chunks of a shard: push and pull do not overlap for 1/32 of it. */
    CHUNKS_WANTED = 32,
    /* Most bytes in flight to one host: half of the 3 MB queue of a switch's port. */
    ON_THE_WAY_BYTES_MAX = 1536 << 10,
    /* The bytes in flight to a host keep its link busy for this time. */
    ON_THE_WAY_MS = 10,
    /* A window is at most a tenth of a shard's chunks. With more, the first sum comes too late. */
    CHUNKS_A_WINDOW = 10,
    WINDOW_MIN = 2,
    /* With fewer chunks, pushes and answers alternate, and each link is used in one direction at a
     * time. */
    WINDOW_WANTED = 4,
    WINDOW_MAX = 8,
};

/* -------- shards ------------------------------------------------------------------------------ */

/* Elements of all servers that share a process with a worker. */
static size_t beside_workers(const struct topology *topology, size_t count)
{
    size_t n = (size_t)topology->workers, k = (size_t)topology_spare(topology);
    if (topology->placement != PLACEMENT_MIXED)
        return k > 0 ? 0 : count;
    if (k >= n)
        return 0;
    size_t all = n * n + k * n - 2 * k, beside = n * (n - k);
    return count / all * beside + count % all * beside / all; /* the product stays in 64 bits */
}

struct chunk shard_of(const struct topology *topology, size_t count, int server)
{
    CHECK(server >= 0 && server < topology->servers);
    size_t spare = (size_t)topology_spare(topology), inside = (size_t)topology->servers - spare;
    size_t first = beside_workers(topology, count), index = (size_t)server;
    if (index < inside)
        return chunk_of(first, inside, index);
    struct chunk shard = chunk_of(count - first, spare, index - inside);
    return (struct chunk){first + shard.offset, shard.count};
}

/* The longest shard of the same kind (in workers' processes, or spare): the first of that kind. */
static size_t longest_alike(const struct topology *topology, size_t count, int server)
{
    int inside = topology->servers - topology_spare(topology);
    return shard_of(topology, count, server < inside ? 0 : inside).count;
}

static size_t longest_shard(const struct topology *topology, size_t count)
{
    return size_larger(longest_alike(topology, count, 0),
                       longest_alike(topology, count, topology->servers - 1));
}

/* With mixed placement and at least as many spare servers as workers, servers in workers' processes
 * have no elements. */
static int servers_with_a_part(const struct topology *topology, size_t count)
{
    int servers = 0;
    for (int server = 0; server < topology->servers; server++)
        servers += shard_of(topology, count, server).count > 0;
    return servers;
}

/* -------- chunks and windows ------------------------------------------------------------------ */

_Static_assert((long)COMM_UNKNOWN_BYTES_PER_S == ON_THE_WAY_BYTES_MAX * 1000L / ON_THE_WAY_MS,
               "a link of unknown rate has two rates");

static size_t clamp(size_t value, size_t least, size_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* Bytes in flight to one host without distance. They are in its link's queue. */
static size_t bytes_on_the_way(double link_bytes_per_s)
{
    double bytes = link_bytes_per_s * ON_THE_WAY_MS / 1000;
    return bytes > 0 && bytes < ON_THE_WAY_BYTES_MAX ? (size_t)bytes : ON_THE_WAY_BYTES_MAX;
}

/*
 * The number of times that the bytes of a chunk cross the busiest link, for each chunk of the
 * longest shard. That link carries it from all workers to a server, or from a worker to all
 * servers.
 */
static size_t link_uses(const struct topology *topology, size_t count, size_t longest)
{
    size_t out = longest > 0 ? size_divide_up(count, longest) : 1;
    if (topology->placement == PLACEMENT_SWITCH)
        return out; /* the server's link is no limit */
    return clamp(out, (size_t)topology->workers, (size_t)-1);
}

static size_t least_of_many(size_t shard_bytes, double link_bytes_per_s)
{
    if (shard_bytes <= CHUNK_BYTES_OVER)
        return CHUNK_BYTES_OVER; /* whole shard */
    if (link_bytes_per_s > 0 && CHUNK_BYTES_LONG / link_bytes_per_s > CHUNK_MS_MANY / 1e3)
        return CHUNK_BYTES_BATCH;
    return clamp(shard_bytes / CHUNKS_WANTED_MANY, CHUNK_BYTES_BATCH, CHUNK_BYTES_LONG);
}

/* The chunk of a fast link. 0: the link is slow, or its rate unknown. */
static size_t fast_chunk_bytes(const struct topology *topology, size_t shard_bytes, size_t uses,
                               double link_bytes_per_s)
{
    bool beside = topology->servers > topology_spare(topology); /* a worker shares its processor */
    size_t best = comm_fast_piece_bytes(
        link_bytes_per_s, beside ? COMM_MESSAGE_IN_WORKER_S : COMM_MESSAGE_S, shard_bytes);
    bool whole = best >= shard_bytes && shard_bytes <= ON_THE_WAY_BYTES_MAX / uses;
    size_t fits = whole ? best : ON_THE_WAY_BYTES_MAX / (uses * WINDOW_MIN);
    return isinf(link_bytes_per_s) ? best : size_smaller(best, fits);
}

static size_t choose_chunk_bytes(const struct topology *topology, size_t shard_bytes, size_t uses,
                                 double link_bytes_per_s, int servers)
{
    size_t chunk = clamp(bytes_on_the_way(link_bytes_per_s) / (uses * WINDOW_WANTED),
                         CHUNK_BYTES_LONG, CHUNK_BYTES_MAX);
    size_t least =
        servers >= SERVERS_MANY ? least_of_many(shard_bytes, link_bytes_per_s) : CHUNK_BYTES_MIN;
    size_t pipelined = clamp(shard_bytes / CHUNKS_WANTED, least, CHUNK_BYTES_MAX);
    if (pipelined < CHUNK_BYTES_OVER)
        pipelined = size_smaller(pipelined, CHUNK_BYTES_BATCH);
    size_t fits = ON_THE_WAY_BYTES_MAX / (uses * WINDOW_MIN); /* many workers: shorter chunks */
    chunk = pipelined < chunk ? pipelined : chunk;
    chunk = clamp(chunk, CHUNK_BYTES_LEAST, clamp(fits, CHUNK_BYTES_LEAST, CHUNK_BYTES_MAX));
    return size_larger(chunk, fast_chunk_bytes(topology, shard_bytes, uses, link_bytes_per_s));
}

/* `chunks`: of the longest shard. `link_bytes`: of each on the busiest link. */
static int choose_window(size_t chunks, size_t link_bytes, size_t on_the_way, size_t held)
{
    size_t most = clamp(chunks / CHUNKS_A_WINDOW, WINDOW_MIN, WINDOW_MAX);
    size_t least = clamp(ON_THE_WAY_BYTES_MAX / link_bytes, WINDOW_MIN, WINDOW_WANTED);
    size_t near = clamp(on_the_way / link_bytes, least < most ? least : most, most);
    size_t far = near + size_divide_up(held, link_bytes);
    size_t all = size_smaller(size_larger(near, chunks), INT_MAX);
    return (int)(held > 0 ? clamp(far, near, all) : near);
}

struct shard_plan shard_plan(const struct topology *topology, size_t count,
                             const struct comm_options *options)
{
    /* If servers own the parameters, only gradients are compressed; parameters travel as
     * float32. */
    size_t longest = longest_shard(topology, count),
           element_bytes = consistency_updates(&options->consistency)
                               ? sizeof(float)
                               : compress_element_bytes(options->compress);
    size_t uses = link_uses(topology, count, longest),
           on_the_way = bytes_on_the_way(options->link_bytes_per_s);
    int servers = servers_with_a_part(topology, count);
    size_t chunk_bytes = options->segment_bytes > 0
                             ? options->segment_bytes
                             : choose_chunk_bytes(topology, longest * element_bytes, uses,
                                                  options->link_bytes_per_s, servers);
    size_t chunk_count = clamp(chunk_bytes / element_bytes, 1, longest > 0 ? longest : 1);
    size_t chunks = size_divide_up(longest, chunk_count);
    double turn_bytes = options->link_bytes_per_s * TURN_US / 1e6;
    bool by_turns = turn_bytes > 0 && turn_bytes < CHUNK_BYTES_BATCH && servers >= SERVERS_MANY;
    int window = options->window > 0 ? options->window
                                     : choose_window(chunks, uses * chunk_count * element_bytes,
                                                     on_the_way, comm_bytes_held(options));
    return (struct shard_plan){*topology, chunk_count, window, by_turns};
}

struct shard_plan shard_plan_of(const struct topology *topology, const struct comm_layout *layout,
                                const struct comm_options *options)
{
    size_t most = 0;
    for (size_t b = 0; b < layout->buckets; b++)
        most = layout->counts[b] > most ? layout->counts[b] : most;
    return shard_plan(topology, most, options);
}

size_t shard_chunks_most(const struct shard_plan *plan, size_t count)
{
    return size_divide_up(longest_shard(&plan->topology, count), plan->chunk_count);
}

size_t shard_chunks(const struct shard_plan *plan, size_t count, int server)
{
    size_t length = shard_of(&plan->topology, count, server).count;
    size_t halves =
        size_divide_up(2 * longest_alike(&plan->topology, count, server), plan->chunk_count);
    return size_smaller(length, size_smaller(halves, shard_chunks_most(plan, count)));
}

size_t shard_due(size_t index, size_t chunks, size_t most)
{
    return (2 * index + 1) * most / (2 * chunks);
}

struct chunk shard_chunk(struct chunk shard, size_t chunks, size_t index)
{
    CHECK(index < chunks);
    struct chunk chunk = chunk_of(shard.count, chunks, index);
    return (struct chunk){shard.offset + chunk.offset, chunk.count};
}

/* -------- what may be pushed ------------------------------------------------------------------ */

size_t shard_pushes_begin(struct shard_pushes *pushes, const struct shard_plan *plan, size_t count)
{
    size_t chunks = 0;
    for (int server = 0; server < plan->topology.servers; server++) {
        pushes[server] = (struct shard_pushes){.shard = shard_of(&plan->topology, count, server),
                                               .chunks = shard_chunks(plan, count, server)};
        chunks += pushes[server].chunks;
    }
    return chunks;
}

struct push_window push_window(const struct shard_pushes *pushes, const struct shard_plan *plan)
{
    struct push_window window = {0, 0};
    for (int server = 0; server < plan->topology.servers; server++)
        window.most = size_larger(window.most, pushes[server].chunks);
    size_t first = window.most;
    for (int server = 0; server < plan->topology.servers; server++) {
        const struct shard_pushes *with = &pushes[server];
        if (with->answered < with->chunks)
            first = size_smaller(first, shard_due(with->answered, with->chunks, window.most));
    }
    window.end = first + (size_t)plan->window;
    return window;
}

bool push_window_has(struct push_window window, const struct shard_pushes *pushes)
{
    return pushes->pushed < pushes->chunks &&
           shard_due(pushes->pushed, pushes->chunks, window.most) < window.end;
}
