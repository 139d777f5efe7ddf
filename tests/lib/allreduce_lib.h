/*
 * For tests of all-reduces: the workers' data, the expected result, and the bytes that every node
 * must have moved. The formulas of bytes come from the definitions. They are independent of the
 * backends' formulas (common/comm/cost.h), which test_node_bytes.c tests. Checks are
 * rank_assert()s (spawn.h).
 */
#ifndef PSRING_TESTS_LIB_ALLREDUCE_LIB_H
#define PSRING_TESTS_LIB_ALLREDUCE_LIB_H

#include <stdbool.h>
#include <stddef.h>

#include "common/comm/backend.h"

/* A way to average. Zeros mean: no servers, automatic segments, no compression. */
struct shape {
    const struct backend *backend;
    enum transport_kind transport;
    int servers; /* as in comm_options; with mixed placement the spare servers */
    enum placement placement;
    size_t segment_bytes;
    int radix; /* of rhd; 0: 2 */
    enum compress compress;
    bool feedback;
    int locals;     /* workers on each host (allreduce_play_hosts); 0: the real hosts */
    bool dealt_out; /* ranks are dealt to the hosts in turn, not host by host */
    bool any_order; /* any order of addition, though the backend has the ring's */
};

/* From now on the world's hosts are those of the shape. */
void allreduce_play_hosts(struct world *world, const struct shape *shape);

/* The options and the layout of a comm. */
struct allreduce_setup {
    struct comm_options options;
    struct comm_layout layout;
};

/* The setup of a shape with `buckets` buckets; borrows counts. A wait of 20 s is an error. */
struct allreduce_setup allreduce_setup(const struct shape *shape, const size_t *counts,
                                       size_t buckets, float scale);

/* Opens and plans. */
void allreduce_open(struct comm **comm, struct world *world, const struct shape *shape,
                    const struct allreduce_setup *setup);

/* Whole numbers, -30 to 30: sums over up to 8 workers are exact in any order, in bf16 too. */
float allreduce_element(int worker, size_t i, int operation);

/* data (count): numbers that no type holds exactly, whose sums show the order of addition. */
void allreduce_fill_rough(float *data, int worker, size_t count);

/* The sum over the workers of their rough numbers' element i. */
double allreduce_rough_sum(int workers, size_t i);

/* Starts the bucket and waits for it. */
void allreduce_average(struct comm *comm, size_t bucket, float *data);

/* Averages elements of `operation` in data (count) and compares every one with the exact sum. */
void allreduce_check_exact(struct comm *comm, size_t bucket, float *data, size_t count, float scale,
                           int operation);

/* Collective over the workers. Checks that all have the same bits in data (count). */
void allreduce_check_same(struct comm *comm, const float *data, size_t count);

/* After comm_finish, for the present plan: checks that this rank's worker and server have moved
 * exactly the bytes of `operations` operations on `count` elements. */
void allreduce_check_bytes(const struct shape *shape, struct comm *comm, const struct world *world,
                           size_t count, int operations);

#endif
