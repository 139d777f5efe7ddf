#include <math.h>

#include "ps/ps.h"
#include "ps/shard.h"

/* -------- bytes ------------------------------------------------------------------------------- */

/* The process that contains both a worker and this server; -1 if the server has a process to
 * itself. */
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

static void ps_flows(const struct cost_shape *shape, cost_flow *flow, void *context)
{
    int workers = shape->topology.workers;
    for (int server = 0; server < shape->topology.servers; server++) {
        uint64_t bytes = shard_bytes(shape, server);
        for (int worker = 0; worker < workers; worker++) {
            if (worker == worker_beside(&shape->topology, server))
                continue;
            flow(context, worker, workers + server, bytes);
            flow(context, workers + server, worker, bytes);
        }
    }
}

/* -------- time -------------------------------------------------------------------------------- */

/* Load of the busiest host's link, in units of M: p and q of the header. Shares are real numbers,
 * so that the prediction is smooth in `count`. */
struct ps_load {
    double pushing; /* the busier direction, before any answer */
    double both;    /* each direction, pushes and answers together */
    double share;   /* the largest shard */
};

/* Shares of M: `beside` of a server in a worker's process, `spare` of a spare server. 0 if there is
 * no such server. */
struct ps_shares {
    double beside, spare;
};

static struct ps_shares shares_of(const struct topology *topology)
{
    double n = topology->workers, servers = topology->servers, k = topology_spare(topology);
    struct ps_shares shares = {servers > k ? 1 / servers : 0, k > 0 ? 1 / k : 0};
    if (topology->placement == PLACEMENT_MIXED) {
        double all = n * n + k * n - 2 * k;
        shares.beside = k < n ? (n - k) / all : 0;
        shares.spare = k == 0 ? 0 : k < n ? 2 * (n - 1) / all : 1 / k;
    }
    return shares;
}

/* A server in the switch uses only the links of the workers. */
static bool has_a_link(const struct topology *topology, int rank)
{
    return topology->placement != PLACEMENT_SWITCH || rank < topology->workers;
}

/* Adds the host of rank `first`. Each of its workers pushes the shards that servers elsewhere own.
 * Each worker elsewhere pushes the shards of this host's servers. */
static void add_host(struct ps_load *load, const struct cost_shape *shape, struct ps_shares shares,
                     int first)
{
    const struct topology *topology = &shape->topology;
    int spare = topology_spare(topology), inside = topology->servers - spare;
    double workers = 0, share = 0;
    int from = shape->hosts ? 0 : first; /* without hosts: only this rank, on its own host */
    int end = shape->hosts ? topology->workers + spare : first + 1;
    for (int rank = from; rank < end; rank++) {
        if (!cost_same_host(shape, first, rank) || !has_a_link(topology, rank))
            continue;
        workers += rank < topology->workers;
        share += rank >= topology->workers ? shares.spare : rank < inside ? shares.beside : 0;
    }
    double out = workers * (1 - share), in = (topology->workers - workers) * share;
    load->pushing = fmax(load->pushing, fmax(out, in));
    load->both = fmax(load->both, out + in);
}

static struct ps_load load_of(const struct cost_shape *shape)
{
    struct ps_shares shares = shares_of(&shape->topology);
    struct ps_load load = {.share = fmax(shares.beside, shares.spare)};
    for (int rank = 0; rank < shape->topology.workers + topology_spare(&shape->topology); rank++)
        add_host(&load, shape, shares, rank);
    return load;
}

/* The time for which links wait because the window is shorter than the distance. A window of w
 * pieces of t seconds leaves; the next one may follow when the first answer is back. */
static double stall_s(const struct cost_shape *shape, double links_s, double latency_s)
{
    double pieces = (double)shape->pipeline, window = (double)shape->window;
    if (window <= 0 || window >= pieces)
        return 0;
    double piece_s = links_s / pieces;
    return (pieces / window - 1) * fmax(0, 2 * latency_s + piece_s - window * piece_s);
}

/* The part of a latency that links are busy for, if pushes and answers load each direction alike.
 * Answers leave while pushes are on their way. The last push and its answers hide nothing. */
static double hidden_s(const struct cost_shape *shape, struct ps_load load, double links_s,
                       double latency_s)
{
    if (load.both < 2 * load.pushing * (1 - 1e-9))
        return 0;
    double answers_s = links_s / 2, last_s = answers_s / (double)shape->pipeline;
    return fmax(fmin(latency_s, answers_s - last_s), 0);
}

static double ps_time_s(const struct cost_shape *shape, const struct cost_link *link)
{
    const struct topology *topology = &shape->topology;
    const struct cost_shape with_links = cost_with_links(shape);
    double bytes = (double)cost_bytes(shape, shape->count);
    struct ps_load load = load_of(&with_links);
    if (load.both == 0) /* one worker and a server in its process */
        return 0;
    double links = load.both + (2 * load.pushing - load.both) / (double)shape->pipeline;
    double links_s = links * bytes / link->bytes_per_s;
    return 2 * link->latency_s + links_s - hidden_s(shape, load, links_s, link->latency_s) +
           stall_s(shape, links_s, link->latency_s) +
           (topology->workers - 1) * load.share * bytes * link->reduce_s_per_byte;
}

static size_t ps_pipeline(const struct topology *topology, size_t count,
                          const struct comm_options *options)
{
    struct shard_plan plan = shard_plan(topology, count, options);
    return shard_chunks_most(&plan, count);
}

static size_t ps_window(const struct topology *topology, size_t count,
                        const struct comm_options *options)
{
    return (size_t)shard_plan(topology, count, options).window;
}

/* A worker pushes every chunk of every shard. A server answers each of its chunks to every worker.
 * Messages within a process count too. */
static struct cost_messages ps_messages(const struct topology *topology, const int *hosts,
                                        size_t count, const struct comm_options *options)
{
    (void)hosts;
    struct shard_plan plan = shard_plan(topology, count, options);
    double all = 0, most = 0, workers = topology->workers;
    for (int server = 0; server < topology->servers; server++)
        all += (double)shard_chunks(&plan, count, server);
    for (int server = 0; server < topology->servers; server++) {
        bool beside = worker_beside(topology, server) >= 0;
        most =
            fmax(most, workers * (double)shard_chunks(&plan, count, server) + (beside ? all : 0));
    }
    return (struct cost_messages){fmax(most, all), 2 * workers * all};
}

const struct cost_formula ps_cost = {
    .traffic = ps_traffic,
    .flows = ps_flows,
    .time_s = ps_time_s,
    .pipeline = ps_pipeline,
    .window = ps_window,
    .messages = ps_messages,
};
