/*
 * The model of cost: what one all-reduce of `count` elements moves and how long it takes, as pure
 * functions, so that measurements can be held against them. Every backend has its own formula,
 * beside its algorithm (ring/cost.c, ring/cost.c, ps/cost.c); here is what
 * they have in common.
 *
 * Bytes are exact, uneven chunks included. Only payload counts, and only what leaves a process: a
 * colocated server and its own worker exchange nothing here. Times are the usual latency-bandwidth
 * model in real numbers.
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
    size_t element_bytes;     /* of one on the wire: 4, or 2 if they are compressed */
    size_t pipeline;          /* K: pieces of which one goes out while the next comes in; 1 */
    /* (workers, then spare servers) Which host each is on: equal numbers, one host. NULL: each on
     * one of its own. */
    const int *hosts;
    enum reduce_order order;
};

/* A full-duplex link of every host. */
struct cost_link {
    double latency_s;         /* a: seconds a message */
    double bytes_per_s;       /* B: each way; above 0 */
    double reduce_s_per_byte; /* g: seconds to add a byte of a contribution */
};

struct cost_traffic {
    uint64_t sent_bytes, received_bytes;
};

/* Of one operation: what the process with the most of them sends, and as many it receives; and what
 * all processes send together. */
struct cost_messages {
    double busiest, all;
};

struct cost_formula {
    /* (optional) Payload of one operation at `node`, as topology numbers them. Absent: not known,
     * because the algorithm is a library's. */
    struct cost_traffic (*traffic)(const struct cost_shape *shape, int node);
    /* (optional) Seconds of one operation. Absent: not known. */
    double (*time_s)(const struct cost_shape *shape, const struct cost_link *link);
    /* (optional) K of a shape, as these options have it. Absent: 1. */
    size_t (*pipeline)(const struct topology *topology, size_t count,
                       const struct comm_options *options);
    /* (optional) As these options cut them. Absent: not known. */
    struct cost_messages (*messages)(const struct topology *topology, size_t count,
                                     const struct comm_options *options);
};

/* The shape of an all-reduce of `count` elements with these options. `hosts` is borrowed. */
struct cost_shape cost_shape_of(const struct cost_formula *formula, const struct topology *topology,
                                const int *hosts, size_t count, const struct comm_options *options);

/* How many hosts the workers are on, and how many neighbours around the ring (worker w and w+1, the
 * last and the first) are on two. */
int cost_hosts(const struct cost_shape *shape);
int cost_inter_host_hops(const struct cost_shape *shape);

/* Whether the bytes are known; if not, those below are zero. */
bool cost_bytes_known(const struct cost_formula *formula);

struct cost_traffic cost_node_traffic(const struct cost_formula *formula,
                                      const struct cost_shape *shape, int node);

/* Payload of an operation of each of `shapes`, which differ in nothing but their count: of a step
 * that averages several buckets. Maximum over the nodes of that role, sent and received apart;
 * zeros if there are none. */
struct cost_traffic cost_role_traffic(const struct cost_formula *formula,
                                      const struct cost_shape *shapes, size_t shape_count,
                                      enum node_role role);

/* The same, maximum over the ranks, that is, over hosts with one rank each: of a worker and the
 * server beside it together, or of a server on its own. What the busiest link carries. */
struct cost_traffic cost_rank_traffic(const struct cost_formula *formula,
                                      const struct cost_shape *shapes, size_t shape_count);

/* Predicted seconds of one operation; NAN where the formula does not say. */
double cost_time_s(const struct cost_formula *formula, const struct cost_shape *shape,
                   const struct cost_link *link);

/*
 * No all-reduce among the workers alone is faster: 2(W-1)/W M/B. Zero for one worker. Dedicated
 * servers, machines beside the workers, can be: as many servers as workers take M/B. For elements
 * of float32. Source: Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for
 * clusters of workstations", section 3.
 */
double cost_bound_s(int workers, size_t count, double bytes_per_s);

/* The larger of each direction is kept in *most. */
void cost_keep_most(struct cost_traffic *most, struct cost_traffic traffic);

/* -------- for formulas ------------------------------------------------------------------------ */

/* Whether two ranks are on one host. */
bool cost_same_host(const struct cost_shape *shape, int one, int other);

/* As it is for times, for which hosts are links: where all ranks are on one host, nothing goes over
 * any, and each rank counts as having one. */
struct cost_shape cost_with_links(const struct cost_shape *shape);

/* Bytes on the wire of so many of the shape's elements. */
uint64_t cost_bytes(const struct cost_shape *shape, size_t count);

/* Bytes of part `index` of `parts` of the message (chunk_of); `index` is taken modulo `parts`. */
uint64_t cost_part_bytes(const struct cost_shape *shape, int parts, int index);

/* The bytes of the lower bound, in `steps` steps one after the other, each element added once:
 * steps a + 2(W-1)/W M/B + (W-1)/W M g. */
double cost_optimal_time_s(const struct cost_shape *shape, double steps,
                           const struct cost_link *link);

/* Of a backend for one worker: nothing moves, in no time. */
extern const struct cost_formula cost_of_nothing;

/* Of a library's own algorithms. */
extern const struct cost_formula cost_not_known;

#endif
