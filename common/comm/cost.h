/*
 * The cost model: the bytes and the time of one all-reduce of `count` elements, as pure functions,
 * to compare with measurements. Every backend has a formula next to its algorithm (ring/cost.c,
 * ps/cost.c). This file has their common parts.
 *
 * Bytes are exact, including uneven chunks. Only payload that leaves a process counts: a colocated
 * server and its own worker exchange nothing here. Times follow the usual latency-bandwidth model
 * in real numbers.
 */
#ifndef PSRING_COMMON_COMM_COST_H
#define PSRING_COMMON_COMM_COST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/comm/comm_options.h"
#include "common/net/topology.h"

struct cost_shape {
    struct topology topology; /* servers == 0 for a backend without them */
    size_t count;             /* elements of the message */
    size_t element_bytes;     /* of one on the wire: 4, or 2 if compressed */
    size_t pipeline;          /* K: pieces that overlap sending with receiving; 1: none */
    size_t window;            /* the most pieces that are unanswered at a time; 0: any number */
    /* (workers, then spare servers) The host of each; equal numbers mean one host. NULL: all
     * differ. */
    const int *hosts;
    enum reduce_order order;
    int radix; /* comm_options.radix */
    /* As in comm_options. Racks slow an operation down as much as their uplinks are busier than the
     * busiest host's link. */
    int rack_ranks;
    double oversubscribed;
};

/* The full-duplex link of each host. */
struct cost_link {
    double latency_s;         /* a: seconds per message */
    double bytes_per_s;       /* B: each way; above 0 */
    double reduce_s_per_byte; /* g: seconds to add a byte of a contribution */
};

struct cost_traffic {
    uint64_t sent_bytes, received_bytes;
};

/* Messages of one operation. busiest: sent by the process that sends most, which receives as many.
 * all: sent by all processes together. */
struct cost_messages {
    double busiest, all;
};

/* Takes bytes that node `from` sends to node `to`. */
typedef void cost_flow(void *context, int from, int to, uint64_t bytes);

struct cost_formula {
    /* (optional) Payload of one operation at `node`, in topology's numbering. Absent: unknown,
     * because the algorithm is a library's. */
    struct cost_traffic (*traffic)(const struct cost_shape *shape, int node);
    /* (optional) The payload of one operation by sender and receiver: calls `flow` for each pair,
     * maybe several times. Absent: no racks. */
    void (*flows)(const struct cost_shape *shape, cost_flow *flow, void *context);
    /* (optional) Seconds of one operation between equal links. Absent: unknown. */
    double (*time_s)(const struct cost_shape *shape, const struct cost_link *link);
    /* (optional) K of a shape with these options. Absent: 1. */
    size_t (*pipeline)(const struct topology *topology, size_t count,
                       const struct comm_options *options);
    /* (optional) The window of a shape with these options. Absent: none. */
    size_t (*window)(const struct topology *topology, size_t count,
                     const struct comm_options *options);
    /* (optional) Messages with these options. `hosts` as in struct cost_shape. Absent: unknown. */
    struct cost_messages (*messages)(const struct topology *topology, const int *hosts,
                                     size_t count, const struct comm_options *options);
};

/* The shape of an all-reduce of `count` elements with these options. `hosts` is borrowed. */
struct cost_shape cost_shape_of(const struct cost_formula *formula, const struct topology *topology,
                                const int *hosts, size_t count, const struct comm_options *options);

/* The number of hosts of the workers, and the number of pairs of neighbours around the ring (worker
 * w and w+1, the last and the first) that are on different hosts. */
int cost_hosts(const struct cost_shape *shape);
int cost_inter_host_hops(const struct cost_shape *shape);

/* Whether the bytes are known. If not, those below are zero. */
bool cost_bytes_known(const struct cost_formula *formula);

struct cost_traffic cost_node_traffic(const struct cost_formula *formula,
                                      const struct cost_shape *shape, int node);

/* Payload of one operation per element of `shapes`, which differ only in count: a step that
 * averages several buckets. Maximum over the nodes of that role, sent and received separately.
 * Zeros if there are none. */
struct cost_traffic cost_role_traffic(const struct cost_formula *formula,
                                      const struct cost_shape *shapes, size_t shape_count,
                                      enum node_role role);

/* The same as a maximum over the ranks, i.e. over hosts with one rank each: a worker together with
 * its colocated server, or a server alone. This is the load of the busiest link. */
struct cost_traffic cost_rank_traffic(const struct cost_formula *formula,
                                      const struct cost_shape *shapes, size_t shape_count);

/* The payload of one operation per element of `shapes` over the busiest uplink of a rack, in its
 * busier direction. 0 without racks. */
uint64_t cost_uplink_bytes(const struct cost_formula *formula, const struct cost_shape *shapes,
                           size_t shape_count);

/* How much longer the busiest uplink needs than the busiest host's link. 1: it needs less, or there
 * are no racks. Servers take W x S steps, other backends W lg W. */
double cost_uplink_delay(const struct cost_formula *formula, const struct cost_shape *shape);

/* Predicted seconds of one operation. NAN if the formula is unknown. */
double cost_time_s(const struct cost_formula *formula, const struct cost_shape *shape,
                   const struct cost_link *link);

/*
 * The lower bound of an all-reduce among the workers alone: 2(W-1)/W M/B. Zero for one worker.
 * Dedicated servers on further machines can be faster: as many servers as workers take M/B. For
 * float32 elements. Source: Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for
 * clusters of workstations", section 3.
 */
double cost_bound_s(int workers, size_t count, double bytes_per_s);

/* Keeps the larger value of each direction in *most. */
void cost_keep_most(struct cost_traffic *most, struct cost_traffic traffic);

/* -------- for formulas ------------------------------------------------------------------------ */

/* Whether two ranks are on one host. */
bool cost_same_host(const struct cost_shape *shape, int one, int other);

/* The shape for times, in which hosts mean links. If all ranks are on one host, no bytes use a
 * link, and each rank counts as having one. */
struct cost_shape cost_with_links(const struct cost_shape *shape);

/* The load of the busiest host's link in its busier direction, by flows, in units of a message that
 * can be cut evenly. */
double cost_host_load(const struct cost_formula *formula, const struct cost_shape *shape);

/* Bytes on the wire of `count` of the shape's elements. */
uint64_t cost_bytes(const struct cost_shape *shape, size_t count);

/* Bytes of part `index` of `parts` of the message (chunk_of); `index` is taken modulo `parts`. */
uint64_t cost_part_bytes(const struct cost_shape *shape, int parts, int index);

/*
 * The time of `steps` successive steps that need `link_s` of the busiest link in all. A step sends
 * its bytes in `pieces` messages, and a piece may leave as soon as the same piece of the step
 * before has arrived. With t = link_s / steps,
 *
 *     time = steps t + a + (steps - 1) max(0, a + t/pieces - t)
 *
 * A step whose bytes take longer than a piece and its latency hides the latency. Otherwise the link
 * waits for the first piece of every step.
 */
double cost_pipelined_time_s(double steps, double link_s, double pieces, double latency_s);

/* The formula of a backend for one worker: no bytes, no time. */
extern const struct cost_formula cost_of_nothing;

/* The formula of a library's own algorithms. */
extern const struct cost_formula cost_not_known;

#endif
