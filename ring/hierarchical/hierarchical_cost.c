#include "ring/hierarchical/hierarchical_cost.h"

#include <math.h>

#include "ring/hierarchical/hosts.h"
#include "ring/ring_cost.h"

/* Workers on each host; 0: not as many on all. */
static int locals_of(const struct cost_shape *shape)
{
    int workers = shape->topology.workers;
    return hosts_uneven(shape->hosts, workers) < 0 ? hosts_locals(shape->hosts, workers, 0) : 0;
}

static struct cost_traffic hierarchical_traffic(const struct cost_shape *shape, int worker)
{
    int workers = shape->topology.workers, locals = locals_of(shape);
    int hosts = locals > 0 ? workers / locals : 1;
    if (hosts == 1)
        return (struct cost_traffic){0};
    struct hosts_place at = hosts_place_of(shape->hosts, worker);
    uint64_t all = 0, chunk[3]; /* ours, and the next two */
    for (int i = 0; i < hosts; i++)
        all += cost_part_bytes(shape, workers, i * locals + at.local);
    for (int i = 0; i < 3; i++)
        chunk[i] = cost_part_bytes(shape, workers, (at.across + i) % hosts * locals + at.local);
    struct cost_traffic traffic = {2 * all - chunk[1], 2 * all - chunk[0]};
    if (shape->order == REDUCE_ORDER_ANY || at.local == 0) {
        traffic.sent_bytes -= chunk[2];
        traffic.received_bytes -= chunk[1];
    }
    return traffic;
}

static double hierarchical_time_s(const struct cost_shape *shape, const struct cost_link *link)
{
    int locals = locals_of(shape);
    if (locals == 0)
        return (double)NAN;
    if (locals == 1)
        return ring_cost.time_s(shape, link);
    double workers = shape->topology.workers, hosts = workers / locals;
    double bytes = (double)cost_bytes(shape, shape->count);
    double hops = 2 * (hosts - 1), steps = hops;
    if (shape->order == REDUCE_ORDER_RING && hosts > 1) {
        hops += (locals - 1.0) / locals;
        steps++;
    }
    return steps * link->latency_s + hops / hosts * bytes / link->bytes_per_s +
           (workers - 1) / workers * bytes * link->reduce_s_per_byte;
}

/* Of the ring that it is with one worker a host. */
static size_t hierarchical_pipeline(const struct topology *topology, size_t count,
                                    const struct comm_options *options)
{
    return ring_cost.pipeline(topology, count, options);
}

static struct cost_messages hierarchical_messages(const struct topology *topology, size_t count,
                                                  const struct comm_options *options)
{
    return ring_cost.messages(topology, count, options);
}

const struct cost_formula hierarchical_cost = {.traffic = hierarchical_traffic,
                                               .time_s = hierarchical_time_s,
                                               .pipeline = hierarchical_pipeline,
                                               .messages = hierarchical_messages};
