#include "ps/ps_cost.h"

#include <math.h>

#include "ps/shard.h"

/* -------- bytes ------------------------------------------------------------------------------- */

/* The process that hosts worker and server alike; -1 if the server has one of its own. */
static int worker_beside(const struct topology *topology, int server)
{
    return server < topology->servers - topology_spare(topology) ? server : -1;
}

static uint64_t shard_bytes(const struct cost_shape *shape, int server)
{
    return cost_bytes(shape, shard_of(&shape->topology, shape->count, server).count);
}

static struct cost_traffic ps_traffic(const struct cost_shape *shape, int node)
{
    const struct topology *topology = &shape->topology;
    uint64_t bytes;
    if (topology_role(topology, node) == NODE_SERVER) {
        int server = node - topology->workers;
        int remote_workers = topology->workers - (worker_beside(topology, server) >= 0);
        bytes = (uint64_t)remote_workers * shard_bytes(shape, server);
    } else {
        bool shares_process = node < topology->servers && worker_beside(topology, node) >= 0;
        bytes = cost_bytes(shape, shape->count);
        if (shares_process)
            bytes -= shard_bytes(shape, node);
    }
    return (struct cost_traffic){bytes, bytes};
}

/* -------- time -------------------------------------------------------------------------------- */

/* What the busiest host's link carries, in units of M: p and q of the header. Shares of the shards
 * in real numbers, so that the prediction is smooth in `count`. */
struct load {
    double pushing; /* the busier direction, while nothing is answered yet */
    double both;    /* each direction, pushes and answers together */
    double share;   /* the largest shard */
};

static struct load load_of(const struct topology *topology)
{
    double n = topology->workers, servers = topology->servers, k = topology_spare(topology);
    double inside = servers - k, beside = inside > 0 ? 1 / servers : 0, spare = k > 0 ? 1 / k : 0;
    if (topology->placement == PLACEMENT_MIXED) {
        double all = n * n + k * n - 2 * k;
        beside = k < n ? (n - k) / all : 0;
        spare = k == 0 ? 0 : k < n ? 2 * (n - 1) / all : 1 / k;
    }
    /* A worker with a server beside it, one without, a spare server. */
    double one_pushes = inside > 0 ? fmax(1 - beside, (n - 1) * beside) : 0;
    double one_both = inside > 0 ? 1 - beside + (n - 1) * beside : 0;
    double alone = inside < n ? 1 : 0;
    return (struct load){.pushing = fmax(fmax(one_pushes, alone), n * spare),
                         .both = fmax(fmax(one_both, alone), n * spare),
                         .share = fmax(beside, spare)};
}

static double ps_time_s(const struct cost_shape *shape, const struct cost_link *link)
{
    const struct topology *topology = &shape->topology;
    double bytes = (double)cost_bytes(shape, shape->count);
    struct load load = load_of(topology);
    if (load.both == 0) /* one worker and its own server */
        return 0;
    double links = load.both + (2 * load.pushing - load.both) / (double)shape->pipeline;
    return 2 * link->latency_s + links * bytes / link->bytes_per_s +
           (topology->workers - 1) * load.share * bytes * link->reduce_s_per_byte;
}

static size_t ps_pipeline(const struct topology *topology, size_t count,
                          const struct comm_options *options)
{
    struct shard_plan plan = shard_plan(topology, count, options);
    return shard_chunks_most(&plan, count);
}

const struct cost_formula ps_cost = {
    .traffic = ps_traffic, .time_s = ps_time_s, .pipeline = ps_pipeline};
