#include "common/comm/cost.h"

#include <math.h>
#include <string.h>

#include "common/base/status.h"
#include "common/base/util.h"
#include "common/comm/compress.h"

struct cost_shape cost_shape_of(const struct cost_formula *formula, const struct topology *topology,
                                const int *hosts, size_t count, const struct comm_options *options)
{
    size_t pipeline = formula->pipeline ? formula->pipeline(topology, count, options) : 1;
    return (struct cost_shape){.topology = *topology,
                               .count = count,
                               .element_bytes = compress_element_bytes(options->compress),
                               .pipeline = pipeline > 1 ? pipeline : 1,
                               .window =
                                   formula->window ? formula->window(topology, count, options) : 0,
                               .hosts = hosts,
                               .order = options->reduce_order,
                               .radix = options->radix,
                               .rack_ranks = options->rack_ranks,
                               .oversubscribed = options->oversubscribed};
}

/* -------- hosts ------------------------------------------------------------------------------- */

bool cost_same_host(const struct cost_shape *shape, int one, int other)
{
    return shape->hosts ? shape->hosts[one] == shape->hosts[other] : one == other;
}

int cost_hosts(const struct cost_shape *shape)
{
    int hosts = 0;
    for (int worker = 0; worker < shape->topology.workers; worker++) {
        int first = 0;
        while (!cost_same_host(shape, first, worker))
            first++;
        hosts += first == worker;
    }
    return hosts;
}

int cost_inter_host_hops(const struct cost_shape *shape)
{
    int workers = shape->topology.workers, apart = 0;
    for (int worker = 0; worker < workers; worker++)
        apart += !cost_same_host(shape, worker, (worker + 1) % workers);
    return apart;
}

struct cost_shape cost_with_links(const struct cost_shape *shape)
{
    struct cost_shape links = *shape;
    int ranks = shape->topology.workers + topology_spare(&shape->topology), together = 1;
    while (together < ranks && cost_same_host(shape, 0, together))
        together++;
    if (together == ranks)
        links.hosts = NULL;
    return links;
}

/* -------- bytes ------------------------------------------------------------------------------- */

bool cost_bytes_known(const struct cost_formula *formula)
{
    return formula->traffic != NULL;
}

struct cost_traffic cost_node_traffic(const struct cost_formula *formula,
                                      const struct cost_shape *shape, int node)
{
    CHECK(node >= 0 && node < topology_nodes(&shape->topology));
    return formula->traffic ? formula->traffic(shape, node) : (struct cost_traffic){0};
}

void cost_keep_most(struct cost_traffic *most, struct cost_traffic traffic)
{
    if (traffic.sent_bytes > most->sent_bytes)
        most->sent_bytes = traffic.sent_bytes;
    if (traffic.received_bytes > most->received_bytes)
        most->received_bytes = traffic.received_bytes;
}

static void add_node(struct cost_traffic *sum, const struct cost_formula *formula,
                     const struct cost_shape *shapes, size_t shape_count, int node)
{
    for (size_t s = 0; s < shape_count; s++) {
        struct cost_traffic part = cost_node_traffic(formula, &shapes[s], node);
        sum->sent_bytes += part.sent_bytes;
        sum->received_bytes += part.received_bytes;
    }
}

struct cost_traffic cost_role_traffic(const struct cost_formula *formula,
                                      const struct cost_shape *shapes, size_t shape_count,
                                      enum node_role role)
{
    const struct topology *topology = &shapes[0].topology;
    struct cost_traffic most = {0};
    for (int node = 0; node < topology_nodes(topology); node++) {
        struct cost_traffic sum = {0};
        if (topology_role(topology, node) != role)
            continue;
        add_node(&sum, formula, shapes, shape_count, node);
        cost_keep_most(&most, sum);
    }
    return most;
}

struct cost_traffic cost_rank_traffic(const struct cost_formula *formula,
                                      const struct cost_shape *shapes, size_t shape_count)
{
    const struct topology *topology = &shapes[0].topology;
    struct cost_traffic most = {0};
    for (int rank = 0; rank < topology->workers + topology_spare(topology); rank++) {
        struct cost_traffic sum = {0};
        for (enum node_role role = NODE_WORKER; role <= NODE_SERVER; role++) {
            int node = topology_node(topology, rank, role);
            if (node >= 0)
                add_node(&sum, formula, shapes, shape_count, node);
        }
        cost_keep_most(&most, sum);
    }
    return most;
}

/* -------- racks ------------------------------------------------------------------------------- */

enum { ENDS_MOST = 1024 };

/* The bytes that pass the ends of links: the uplinks of racks, or the links of hosts. */
struct ends {
    const struct cost_shape *shape;
    int (*end_of)(const struct cost_shape *shape, int node); /* -1: the node is at no such end */
    int first, count; /* ends first .. first+ENDS_MOST-1 count; `count` is that of all ends */
    struct cost_traffic traffic[ENDS_MOST];
};

static int rack_of(const struct cost_shape *shape, int node)
{
    return topology_rack(&shape->topology, shape->rack_ranks, node);
}

static int host_of(const struct cost_shape *shape, int node)
{
    int rank = topology_rank(&shape->topology, node);
    if (shape->topology.placement == PLACEMENT_SWITCH && node >= shape->topology.workers)
        return -1;
    return shape->hosts ? shape->hosts[rank] : rank;
}

static void pass_ends(void *context, int from, int to, uint64_t bytes)
{
    struct ends *ends = context;
    int out = ends->end_of(ends->shape, from), in = ends->end_of(ends->shape, to);
    if (out == in)
        return;
    ends->count = out >= ends->count ? out + 1 : ends->count;
    ends->count = in >= ends->count ? in + 1 : ends->count;
    if (out >= ends->first && out < ends->first + ENDS_MOST)
        ends->traffic[out - ends->first].sent_bytes += bytes;
    if (in >= ends->first && in < ends->first + ENDS_MOST)
        ends->traffic[in - ends->first].received_bytes += bytes;
}

/* The bytes of one operation per shape at the busiest end, in its busier direction. */
static uint64_t busiest_end(const struct cost_formula *formula, const struct cost_shape *shapes,
                            size_t shape_count,
                            int (*end_of)(const struct cost_shape *shape, int node))
{
    struct cost_traffic most = {0};
    for (struct ends ends = {.end_of = end_of}; ends.first == 0 || ends.first < ends.count;
         ends.first += ENDS_MOST) {
        memset(ends.traffic, 0, sizeof ends.traffic);
        for (size_t s = 0; s < shape_count; s++) {
            ends.shape = &shapes[s];
            formula->flows(&shapes[s], pass_ends, &ends);
        }
        for (int end = 0; end < ENDS_MOST; end++)
            cost_keep_most(&most, ends.traffic[end]);
    }
    return most.sent_bytes > most.received_bytes ? most.sent_bytes : most.received_bytes;
}

uint64_t cost_uplink_bytes(const struct cost_formula *formula, const struct cost_shape *shapes,
                           size_t shape_count)
{
    const struct topology *topology = &shapes[0].topology;
    bool racks = shapes[0].rack_ranks > 0 && formula->flows &&
                 shapes[0].rack_ranks < topology->workers + topology_spare(topology);
    return racks ? busiest_end(formula, shapes, shape_count, rack_of) : 0;
}

double cost_host_load(const struct cost_formula *formula, const struct cost_shape *shape)
{
    struct cost_shape even = cost_with_links(shape);
    even.count = 2 * (size_t)shape->topology.workers; /* trees cut a message into two halves */
    even.element_bytes = 1;
    even.pipeline = 2; /* not a short one */
    return (double)busiest_end(formula, &even, 1, host_of) / (double)even.count;
}

double cost_uplink_delay(const struct cost_formula *formula, const struct cost_shape *shape)
{
    int hosts = 0;
    struct cost_shape links = cost_with_links(shape);
    double uplink_bytes = (double)cost_uplink_bytes(formula, shape, 1);
    if (uplink_bytes == 0)
        return 1;
    for (int rank = 0; rank < shape->rack_ranks && rank < shape->topology.workers; rank++) {
        int first = 0;
        while (!cost_same_host(&links, first, rank))
            first++;
        hosts += first == rank;
    }
    double host_bytes = (double)busiest_end(formula, &links, 1, host_of);
    return fmax(uplink_bytes * shape->oversubscribed / (hosts * host_bytes), 1);
}

uint64_t cost_bytes(const struct cost_shape *shape, size_t count)
{
    CHECK(shape->element_bytes > 0);
    return (uint64_t)count * shape->element_bytes;
}

uint64_t cost_part_bytes(const struct cost_shape *shape, int parts, int index)
{
    struct chunk part = chunk_of(shape->count, (size_t)parts, (size_t)(index % parts));
    return cost_bytes(shape, part.count);
}

/* -------- time -------------------------------------------------------------------------------- */

double cost_time_s(const struct cost_formula *formula, const struct cost_shape *shape,
                   const struct cost_link *link)
{
    struct cost_link slower = *link;
    CHECK(shape->pipeline >= 1 && link->bytes_per_s > 0);
    if (shape->rack_ranks > 0 && !isinf(link->bytes_per_s))
        slower.bytes_per_s /= cost_uplink_delay(formula, shape);
    return formula->time_s ? formula->time_s(shape, &slower) : (double)NAN;
}

double cost_pipelined_time_s(double steps, double link_s, double pieces, double latency_s)
{
    double step_s = link_s / steps;
    if (steps <= 0)
        return 0;
    return link_s + latency_s + (steps - 1) * fmax(0, latency_s + step_s / pieces - step_s);
}

double cost_bound_s(int workers, size_t count, double bytes_per_s)
{
    double bytes = (double)count * sizeof(float);
    return 2.0 * (workers - 1) / workers * bytes / bytes_per_s;
}

/* -------- no communication -------------------------------------------------------------------- */

static struct cost_traffic no_traffic(const struct cost_shape *shape, int node)
{
    (void)shape;
    (void)node;
    return (struct cost_traffic){0};
}

static double no_time_s(const struct cost_shape *shape, const struct cost_link *link)
{
    (void)shape;
    (void)link;
    return 0;
}

const struct cost_formula cost_of_nothing = {.traffic = no_traffic, .time_s = no_time_s};

const struct cost_formula cost_not_known = {0};
