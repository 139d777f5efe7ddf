/*
 * The model of cost: what one all-reduce of `count` elements moves and how long it takes, as pure
 * functions, so that measurements can be held against them.
 *
 * Bytes are exact, uneven chunks included. A vector of `count` elements is cut into P parts whose
 * lengths differ by at most one, the first count % P being the longer (common/base/chunk.h): P = W
 * chunks for the ring, P = S shards for the parameter server; with mixed placement shards are as
 * ps/shard.h cuts them. Only payload counts, and only what leaves a process: a colocated server and
 * its own worker exchange nothing here.
 *
 *     node                    sends                       receives
 *     ring, rank r            2M - L[r+1] - L[r+2]        2M - L[r] - L[r+1]     (indices mod W)
 *     rhd, rank r             M - L[r] + R[r]             as much
 *     ps, worker              M, less its own shard       M, less its own shard
 *     ps, server of shard s   L[s] to each worker that it does not share a process with; as much
 *                             is received
 *
 * with L[i] the bytes of part i and M their sum, and R[r] what rank r receives while halving
 * (ring/halving/halving_schedule.h): from each partner the chunks of its own half (third, ...),
 * over and over; (W-1)/W M if all chunks are equal. So about 2(W-1)/W M for a rank of the ring or
 * of rhd, W/S M for a dedicated server. Times are the usual latency-bandwidth model in real
 * numbers. Sources: Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters
 * of workstations", section 3 (bound and ring); Thakur, Rabenseifner and Gropp 2005, section 4
 * (rhd); Jiang et al. 2020, OSDI, section 2 (PS).
 */
#ifndef PSRING_EXPERIMENTS_COST_H
#define PSRING_EXPERIMENTS_COST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/net/topology.h"

enum cost_algorithm {
    COST_NOTHING, /* nothing is exchanged */
    COST_RING,    /* chunked reduce-scatter and all-gather around a ring */
    COST_HALVING, /* recursive halving, then recursive doubling */
    COST_PS,      /* push to and pull from the servers of `topology` */
    COST_LIBRARY, /* the library chooses (MPI_Allreduce): bytes and time are not known */
};

struct cost_shape {
    enum cost_algorithm algorithm;
    struct topology topology; /* servers == 0 but for COST_PS */
    size_t count;             /* elements of the message */
    size_t element_bytes;     /* of one on the wire: 4, or 2 if they are compressed */
};

/* A full-duplex link of every host, and how it is used. */
struct cost_link {
    double latency_s;         /* a: seconds a message */
    double bytes_per_s;       /* B: each way */
    double reduce_s_per_byte; /* g: seconds to add a byte of a contribution */
    int pipeline_chunks;      /* K: ps only; 1 = all pushes, then all pulls. At least 1. */
};

struct cost_traffic {
    uint64_t sent_bytes, received_bytes;
};

/* The algorithm of a backend, by its --backend name: "ring", "nccl" ring; "rhd" halving; "ps";
 * "mpi" library. */
enum cost_algorithm cost_algorithm_of(const char *backend);

/* Whether the byte counts of the shape are known; if not, those below are zero. */
bool cost_bytes_known(const struct cost_shape *shape);

/* Payload of one operation at `node` (as topology numbers them). */
struct cost_traffic cost_node_traffic(const struct cost_shape *shape, int node);

/* Maximum over the nodes of that role, sent and received apart; zeros if there are none. */
struct cost_traffic cost_role_traffic(const struct cost_shape *shape, enum node_role role);

/* Maximum over the ranks, that is, over hosts with one rank each: of a worker and the server beside
 * it together, or of a server on its own. What the busiest link carries. */
struct cost_traffic cost_rank_traffic(const struct cost_shape *shape);

/*
 * Predicted seconds of one operation; NAN for COST_LIBRARY.
 *     ring               2(W-1)a + 2(W-1)/W M/B + (W-1)/W M g
 *     rhd                2 F a + 2(W-1)/W M/B + (W-1)/W M g, with F = the number of W's prime
 *                        factors: lg W for a power of two, less for other W
 *     ps                 2a + (q + (2p - q)/K) M/B + (W-1)/S M g
 * p M: the busiest direction of a host's link while pushing, q M: pushing and pulling overlapped.
 *     dedicated          p = q = max(1, W/S): in all (1 + 1/K) max(1, W/S)
 *     colocated, S < W   p = (W-1)/S, q = (W+S-2)/S
 *     colocated, S = W   p = (W-1)/W, q = 2p: the ring's bytes, whatever K
 *     mixed              p = q = 2W(W-1)/(W^2 + kW - 2k) for 0 < k < W spare servers, the optimum
 * of Jiang et al.; none: as colocated, S = W; k >= W: 1 bench's column theory_time_us is this with
 * a = g = 0, K the number of chunks that ps/shard.h cuts this message into, and B the probed rate
 * (nominal where there was no probe).
 */
double cost_time_s(const struct cost_shape *shape, const struct cost_link *link);

/*
 * No all-reduce among the workers alone is faster: 2(W-1)/W M/B. Zero for one worker. Dedicated
 * servers, machines beside the workers, can be: as many servers as workers take M/B. For elements
 * of float32.
 */
double cost_bound_s(int workers, size_t count, double bytes_per_s);

#endif
