/*
 * The ring all-reduce, halving-doubling and the double binary tree over common/net/transport. Also
 * their costs and those of the hierarchical all-reduce. Read ring.c, then halving.c, then tree.c.
 *
 * Cost of the ring: a worker sends 2(N-1)/N of the vector in 2(N-1)K messages to one neighbour. To
 * the byte, it sends all chunks but one, twice. The ring allocates and copies nothing after open.
 * common/net/transport/transport.h says what the transport does.
 */
#ifndef PSRING_RING_RING_H
#define PSRING_RING_RING_H

#include "common/comm/backend.h"
#include "common/comm/codec.h"
#include "common/comm/cost.h"
#include "ring/schedule.h"

extern const struct backend backend_ring;

/*
 * Cost of halving-doubling: a worker sends as many bytes as it receives: 2(N-1)/N of the vector, in
 * at most 2 lg N steps. This holds for any number N of workers (uneven lengths:
 * halving_schedule.h). A short vector of N = 2, 4, 8, ... workers takes lg N steps and lg N times
 * its bytes. Nothing is allocated after open. The only copies are those of the transport. The sum
 * has the same bits on all workers. They are those of every run with the same radix and slices, and
 * of every run if all cuts are in halves and nothing is compressed (halving.c). Its order is a
 * tree, so REDUCE_ORDER_RING is refused with STATUS_UNSUPPORTED.
 */
extern const struct backend backend_rhd;

/* -------- listed messages (halving.c, for tree.c) --------------------------------------------- */

struct halving_schedule;

/* An algorithm that lists a worker's messages for each vector. halving.c moves them. */
struct halving_lister {
    const char *name; /* of the backend, for errors */
    /* Lists the messages for `count` elements. All vectors have the same exchanges. Errors are
     * logged. */
    enum status (*list)(struct halving_schedule *schedule, const struct backend_env *site,
                        size_t count);
    bool doubles; /* short vectors use recursive doubling instead of their list */
};

/* The functions of a backend whose messages are listed. `lister` is borrowed. */
enum status halving_open_lister(void **self, const struct backend_env *site,
                                const struct halving_lister *lister);
enum status halving_plan(void *self);
enum status halving_allreduce(void *self, size_t bucket, void *data);
float *halving_state(void *self, size_t index, size_t *count);
void halving_close(void *self);

/* -------- a ring of hosts (hierarchical.c) ---------------------------------------------------- */

/*
 * For a ring whose workers each contribute more than `data`: also the vectors of other workers of
 * the same host, which are in the caller's memory (hierarchical.c). The ring moves a part of the
 * vector's chunks. It calls these functions for the chunks' segments, on its own thread.
 */
struct ring_share {
    struct schedule_part part;
    void *context;
    /* The sum of `segment` starts here: write its initial value to data. */
    void (*begin)(void *context, void *data, struct chunk segment);
    /* A partial sum has arrived, and this worker's share must be added. With `completes` this is
     * the last addition of the sum. Prepares data and returns what the ring must still add to
     * it. */
    const void *(*add)(void *context, void *data, struct chunk segment, const void *partial,
                       bool completes);
    /* data holds the sum of `segment`. */
    void (*complete)(void *context, const void *data, struct chunk segment);
};

/* backend_ring.open with a share. Both pointers are borrowed. Pass *self to the other functions of
 * backend_ring. */
enum status ring_open_share(void **self, const struct backend_env *site,
                            const struct ring_share *share);

/* -------- for ring.c and pair.c --------------------------------------------------------------- */

/*
 * The ring's state for a layout of buckets: schedules, memory to compress into, and the slots in
 * which segments arrive. All of it is allocated here, so an all-reduce allocates nothing.
 */
struct ring_plan {
    struct transport *transport; /* borrowed */
    size_t buckets;
    struct schedule *schedules; /* (buckets) */
    struct codec *codecs;       /* (buckets): plain or compressed floats */
    uint64_t *tickets;          /* of the items (or pieces) sent, for the longest schedule */
    /* As many slots as a worker sends segments before it receives any, so MPI has a buffer ready
     * for each; but at least 8 and at most 64. Item i arrives in slots[i % slot_count]. */
    struct transport_slot *slots;
    size_t slot_count;
};

/* For site->layout, or a part of its chunks (schedule.h), with messages from node `previous`. Zero
 * *plan or call ring_plan_fini before. */
enum status ring_plan_init(struct ring_plan *plan, const struct backend_env *site, int previous,
                           const struct schedule_part *part);
void ring_plan_fini(struct ring_plan *plan);

/* A vector of at most this many pieces is short. */
enum { PAIR_WHOLE = 8 };

/* All-reduce number `step` of a bucket of two workers. Each worker sends schedule.pieces messages.
 * A long vector takes an even number, so it may take one message more, or fewer where halves are
 * empty. */
enum status pair_allreduce(struct ring_plan *plan, size_t bucket, void *data, uint64_t step,
                           float scale);

/* -------- the double binary tree (tree.c) ----------------------------------------------------- */

/*
 * Cost: a worker sends as many bytes as it receives, at most twice the vector (by place: tree.c). A
 * segment passes at most 2 lg N edges. This holds for any number N of workers. Nothing is allocated
 * after open. The only copies are those of the transport. The sum has the same bits on all workers
 * and in every run. Its order is a tree, so REDUCE_ORDER_RING is refused with STATUS_UNSUPPORTED.
 */
extern const struct backend backend_tree;

/*
 * The trees as arithmetic: parents, children, and which worker sends which elements when. Pure,
 * except for the memory of the lists. There are two trees over all workers, number 0 and 1. Tree t
 * moves half t of the vector (chunk_of(count, TREES, t)). Each half is cut into K *segments*. A
 * segment travels as one message over each edge of its tree, first up, then down.
 *
 * Source: Sanders, Speck, Traeff 2009, "Two-tree algorithms for full bandwidth broadcast, reduction
 * and scan", Parallel Computing 35, sections 2 and 3.
 */
enum { TREES = 2, TREE_CHILDREN = 2 };

/* A leaf has at most this many segments of a tree under way, and `stride` for each edge up and
 * down. Simulations with more are slower: parts go ahead of the sums, and these come late. */
enum { TREE_SEGMENTS_UNDER_WAY = 4 };

/* A worker's place in one tree. */
struct tree_place {
    int parent; /* -1: this worker is the root */
    int children[TREE_CHILDREN];
    int child_count; /* 0: a leaf */
    int depth;       /* edges between this worker and the root */
};

/* Cost: lg W steps. Every worker is a leaf of at least one tree. */
struct tree_place tree_place_of(int workers, int tree, int rank);

/* The edges from the root to the deepest leaf, of either tree: lg W, rounded down. No binary tree
 * over W workers has fewer. */
int tree_height(int workers);

/* K, 0 for an empty vector. `segment_bytes`: wanted size of a message; 0: chosen here. */
size_t tree_segments(size_t count, size_t segment_bytes);

/*
 * Steps for which a segment is on its way over one edge: 1 for near workers. A worker sends the
 * next segments meanwhile. In a step the busiest link carries a segment over each edge of its
 * worker: Q/K M in Q/K M/B seconds. Q is 1 for two workers, 3/2 for three, 2 for more. Distant
 * workers need steps for the latency a, too:
 *
 *     stride = 1 + a / (Q/K M/B), rounded up; K at most
 *
 * Memory: no more of ours. A leaf may be 2h stride + TREE_SEGMENTS_UNDER_WAY segments of a half
 * ahead of its parent: 1 MB for four workers, 4.8 MB, 25 MB/s and 50 ms. They wait in the transport
 * as those of halving_under_way do.
 */
size_t tree_stride(int workers, size_t count, const struct comm_options *options);

/*
 * The messages of `rank`, in the form of halving_schedule.h, so that halving.c can move them. Slice
 * TREES k + t is segment k of tree t. The number of steps is twice the height. `stride` is at least
 * 1. STATUS_NO_MEMORY is logged. Free with halving_schedule_fini.
 */
enum status tree_schedule_init(struct halving_schedule *schedule, int workers, int rank,
                               size_t count, size_t segment_bytes, size_t stride);

/* -------- costs (cost.c) ---------------------------------------------------------------------- */

extern const struct cost_formula ring_cost;

/* The time of any ring in which every worker has its own link. For workers that share a host's link
 * use ring_cost's time: that of the link that most workers send over. */
double ring_cost_time_s(const struct cost_shape *shape, const struct cost_link *link);

extern const struct cost_formula halving_cost;
extern const struct cost_formula tree_cost;

/* Hosts with unequal numbers of workers have no such all-reduce: the result is no bytes and NAN
 * seconds. */
extern const struct cost_formula hierarchical_cost;

#endif
