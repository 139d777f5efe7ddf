/*
 * Worker 0 can read the residuals of error feedback between two all-reduces, and give them back.
 * For every backend that compresses, over tcp and zmq. A comm that gets the residuals continues
 * with the same bits. The bytes of this exchange are not counted as averaging.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/comm/comm.h"
#include "common/net/world.h"
#include "ps/ps.h"
#include "ring/hierarchical.h"
#include "ring/ring.h"
#include "tests/lib/allreduce_lib.h"
#include "tests/lib/spawn.h"

enum { LONG = 70001, SHORT = 300, BUCKETS = 2, HALF = 2 }; /* the long bucket takes two pieces */

static const size_t counts[BUCKETS] = {LONG, SHORT};
static _Thread_local struct world *world;

struct run {
    const struct shape *shape;
    struct comm *comm;
    float data[BUCKETS][LONG];
    float *state; /* worker 0: the state that was read last */
    size_t count;
    uint64_t sent_bytes, received_bytes; /* by the worker, until run_close */
};

static void run_open(struct run *run)
{
    struct allreduce_setup setup = allreduce_setup(run->shape, counts, BUCKETS, 0.5f);
    setup.layout.overlap = true;
    allreduce_open(&run->comm, world, run->shape, &setup);
}

/* A dedicated server serves here until the workers call run_close. Returns whether it is one. */
static bool run_serves(struct run *run)
{
    if (!comm_is_server(run->comm))
        return false;
    rank_assert_ok(comm_serve(run->comm));
    comm_close(&run->comm);
    return true;
}

static void run_half(struct run *run)
{
    for (int operation = 0; operation < HALF; operation++) {
        for (size_t b = 0; b < BUCKETS; b++) {
            allreduce_fill_rough(run->data[b], comm_rank(run->comm), counts[b]);
            rank_assert_ok(comm_start(run->comm, b, run->data[b]));
        }
        for (size_t b = 0; b < BUCKETS; b++)
            rank_assert_ok(comm_wait(run->comm, b));
    }
}

static void run_read(struct run *run)
{
    free(run->state);
    rank_assert_ok(comm_state_read(run->comm, &run->state, &run->count));
    if (run->shape->feedback && comm_rank(run->comm) == 0)
        rank_assert(run->state && run->count >= LONG + SHORT);
    else if (comm_rank(run->comm) > 0)
        rank_assert(!run->state && run->count == 0);
}

static void run_close(struct run *run)
{
    struct comm_counters counters;
    rank_assert_ok(comm_finish(run->comm));
    comm_counters(run->comm, &counters);
    run->sent_bytes = counters.worker.sent_bytes;
    run->received_bytes = counters.worker.received_bytes;
    comm_close(&run->comm);
}

/* Returns whether both runs have the same averages and the same state. */
static bool run_equals(const struct run *run, const struct run *other)
{
    bool equal = run->count == other->count;
    for (size_t b = 0; b < BUCKETS; b++)
        equal = equal && memcmp(run->data[b], other->data[b], counts[b] * sizeof(float)) == 0;
    return equal &&
           (run->count == 0 || memcmp(run->state, other->state, run->count * sizeof(float)) == 0);
}

static void check_shape(const struct shape *shape)
{
    static _Thread_local struct run whole, half;
    bool fits, feedback = shape->feedback;
    whole = (struct run){.shape = shape};
    half = (struct run){.shape = shape};
    /* Reading the state in between does not change the result. */
    run_open(&whole);
    bool server = run_serves(&whole);
    for (int i = 0; !server && i < 2; i++) {
        run_half(&whole);
        run_read(&whole);
    }
    if (!server)
        run_close(&whole);

    /* Two comms: the second gets the state of the first. Further comms get no state, or too little.
     * All move the bytes of a comm that neither reads nor writes its state. */
    enum { UNASKED, FIRST, GIVEN, ANEW, TOO_LITTLE, COMMS };
    uint64_t sent_bytes = 0, received_bytes = 0;
    for (int i = UNASKED; i < COMMS; i++) {
        run_open(&half);
        if (run_serves(&half))
            continue;
        if (i == GIVEN || i == TOO_LITTLE) {
            size_t given = half.count - (i == TOO_LITTLE && half.count > 0);
            rank_assert_ok(comm_state_write(half.comm, half.state, given, &fits));
            rank_assert_eq(fits, feedback && i == GIVEN);
        }
        run_half(&half);
        if (i != UNASKED)
            run_read(&half);
        if (i == GIVEN)
            rank_assert(run_equals(&half, &whole));
        else if (i != UNASKED)
            rank_assert(!feedback || comm_rank(half.comm) > 0 || !run_equals(&half, &whole));
        run_close(&half);
        sent_bytes = i == UNASKED ? half.sent_bytes : sent_bytes;
        received_bytes = i == UNASKED ? half.received_bytes : received_bytes;
        rank_assert_eq(half.sent_bytes, sent_bytes);
        rank_assert_eq(half.received_bytes, received_bytes);
    }
    free(whole.state);
    free(half.state);
}

static void all_shapes(struct world *of, void *context)
{
    const enum transport_kind *transport = context;
    int size = of->size;
    struct shape shapes[] = {
        {.backend = &backend_ring},
        {.backend = &backend_rhd},
        {.backend = &backend_tree},
        {.backend = &backend_hierarchical, .locals = size == 4 ? 2 : 1, .any_order = true},
        {.backend = &backend_ps, .servers = 1, .placement = PLACEMENT_COLOCATED},
        {.backend = &backend_ps, .servers = size, .placement = PLACEMENT_COLOCATED},
        {.backend = &backend_ps, .servers = 1, .placement = PLACEMENT_DEDICATED},
        {.backend = &backend_ps, .servers = 2, .placement = PLACEMENT_DEDICATED},
        {.backend = &backend_ps, .servers = 1, .placement = PLACEMENT_MIXED},
    };
    world = of;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        struct shape *shape = &shapes[s];
        shape->transport = *transport;
        if (shape->placement != PLACEMENT_COLOCATED && shape->servers > size - 2)
            continue; /* one worker has nothing to average with */
        if (shape->locals > 0)
            allreduce_play_hosts(world, shape);
        shape->compress = COMPRESS_BF16;
        /* Without feedback the state is always empty; the first shape shows it. */
        for (int feedback = s > 0; feedback < 2; feedback++) {
            shape->feedback = feedback;
            check_shape(shape);
        }
    }
}

Test(residual, over_tcp)
{
    enum transport_kind transport = TRANSPORT_TCP;
    spawn_sizes(2, 4, all_shapes, &transport);
}

Test(residual, over_zmq)
{
    enum transport_kind transport = TRANSPORT_ZMQ;
    spawn_sizes(2, 4, all_shapes, &transport);
}
