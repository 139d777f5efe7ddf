/*
 * All-reduces that follow each other without a barrier, as those of psring bench --back-to-back and
 * of a training do. A worker then begins an operation while another one is still in the previous
 * one, or has not begun yet. Every backend over tcp and zmq must give exact sums in both cases,
 * with a different length in each operation. Events delay a worker, a different one in each
 * operation:
 *
 *     late     It begins an operation when all others wait in it.
 *     held     It stays in an operation, before its last message, until another one has begun the
 *              next operation.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "common/base/thread.h"
#include "common/comm/comm.h"
#include "common/net/world.h"
#include "ps/ps.h"
#include "ring/hierarchical.h"
#include "ring/ring.h"
#include "tests/lib/allreduce_lib.h"
#include "tests/lib/send_memory.h"
#include "tests/lib/spawn.h"

/* The progress of all workers, under the monitor: the last operation that each has begun, and the
 * last one in which it has waited for a message. */
static struct monitor monitor;
static int begun[SPAWN_RANKS_MOST], waited[SPAWN_RANKS_MOST];

/* This worker's. The thread of a server has no operation. */
static _Thread_local struct world *world;
static _Thread_local int worker, workers, operation = -1;
static _Thread_local int waits;   /* of this operation */
static _Thread_local int hold_at; /* the wait that is held; 0: none */

static void publish(int *progress)
{
    monitor_enter(&monitor);
    progress[worker] = operation;
    monitor_wake(&monitor);
    monitor_leave(&monitor);
}

/* How many other workers have reached `least`. */
static int count_others(const int *progress, int least)
{
    int count = 0;
    for (int w = 0; w < workers; w++)
        count += w != worker && progress[w] >= least;
    return count;
}

/* Returns once `others` other workers have reached the operation `least`. */
static void wait_for_others(const int *progress, int least, int others)
{
    monitor_enter(&monitor);
    while (count_others(progress, least) < others)
        monitor_wait(&monitor);
    monitor_leave(&monitor);
}

/* -------- waits for messages; the linker puts these in place of the transport's (CMakeLists.txt)
 */

static void note_wait(void)
{
    if (operation < 0)
        return;
    publish(waited);
    if (++waits == hold_at)
        wait_for_others(begun, operation + 1, 1);
}

enum status __real_transport_wait(struct transport *transport, struct transport_slot *slot);
enum status __wrap_transport_wait(struct transport *transport, struct transport_slot *slot);
enum status __wrap_transport_wait(struct transport *transport, struct transport_slot *slot)
{
    note_wait();
    return __real_transport_wait(transport, slot);
}

enum status __real_transport_wait_any(struct transport *transport,
                                      struct transport_slot *const *slots, size_t count,
                                      bool patient, size_t *which);
enum status __wrap_transport_wait_any(struct transport *transport,
                                      struct transport_slot *const *slots, size_t count,
                                      bool patient, size_t *which);
enum status __wrap_transport_wait_any(struct transport *transport,
                                      struct transport_slot *const *slots, size_t count,
                                      bool patient, size_t *which)
{
    note_wait();
    return __real_transport_wait_any(transport, slots, count, patient, which);
}

/* -------- one configuration ------------------------------------------------------------------- */

struct pattern {
    const int *late; /* progress of the others that the late worker awaits; NULL: none is late */
    int hold_at;     /* of the held worker; 0: none is held */
    const size_t *counts;
    size_t buckets;
    int operations;
};

static void run_worker(struct comm *comm, const struct pattern *pattern, float *data)
{
    workers = comm_workers(comm);
    worker = comm_rank(comm);
    begun[worker] = waited[worker] = -1;
    rank_assert_ok(comm_barrier(comm));
    for (int o = 0; o < pattern->operations; o++) {
        size_t bucket = (size_t)o % pattern->buckets, count = pattern->counts[bucket];
        bool delayed = o % workers == worker && workers > 1;
        if (delayed && pattern->late && count > 0)
            wait_for_others(pattern->late, o, workers - 1);
        operation = o;
        waits = 0;
        hold_at = delayed && o + 1 < pattern->operations ? pattern->hold_at : 0;
        publish(begun);
        allreduce_check_exact(comm, bucket, data, count, 1, o);
        rank_assert(hold_at == 0 || waits >= hold_at, "%d waits in operation %d, expected %d",
                    waits, o, hold_at);
        operation = -1;
    }
    rank_assert_ok(comm_finish(comm));
}

static void check(const struct shape *shape, const struct pattern *pattern)
{
    size_t most = 0;
    struct comm *comm = NULL;
    struct allreduce_setup setup = allreduce_setup(shape, pattern->counts, pattern->buckets, 1);
    allreduce_open(&comm, world, shape, &setup);
    for (size_t b = 0; b < pattern->buckets; b++)
        most = pattern->counts[b] > most ? pattern->counts[b] : most;
    if (comm_is_server(comm)) {
        rank_assert_ok(comm_serve(comm));
    } else {
        float *data = calloc(most, sizeof *data);
        run_worker(comm, pattern, data);
        free(data);
    }
    comm_close(&comm);
}

/* No element, fewer than workers, several segments or chunks in a window. */
static void check_late(const struct shape *shape, const int *late)
{
    static const size_t counts[] = {5, 30011, 0, 1, 131101, 64, 1000};
    enum { BUCKETS = sizeof counts / sizeof *counts };
    check(shape,
          &(struct pattern){
              .late = late, .counts = counts, .buckets = BUCKETS, .operations = 3 * BUCKETS});
}

/* Lengths of one message a chunk, so that the number of waits is known. After the last message but
 * one a worker owes the others nothing. */
static void check_held(const struct shape *shape, int waits_in_all)
{
    static const size_t counts[] = {5, 64, 7, 200, 8}; /* halving-doubling doubles them */
    enum { BUCKETS = sizeof counts / sizeof *counts };
    check(shape, &(struct pattern){.hold_at = waits_in_all,
                                   .counts = counts,
                                   .buckets = BUCKETS,
                                   .operations = 8 * BUCKETS});
}

/* -------- all of them ------------------------------------------------------------------------- */

static void check_servers(enum transport_kind transport)
{
    for (enum placement p = PLACEMENT_DEDICATED; p <= PLACEMENT_MIXED; p++) {
        for (int servers = 1; servers <= 2; servers++) {
            const struct shape ps = {
                .backend = &backend_ps, .transport = transport, .servers = servers, .placement = p};
            bool own_ranks = p != PLACEMENT_COLOCATED;
            if (world->size - (own_ranks ? servers : 0) < 2)
                continue;
            check_late(&ps, waited);
            check_held(&ps, 1); /* all is pushed, and no answer taken */
        }
    }
}

/* The workers of a host wait for each other in shared memory, which the wrapped calls do not see.
 */
static void check_hierarchical(enum transport_kind transport)
{
    for (int locals = 1; locals <= world->size; locals++) {
        const struct shape shape = {
            .backend = &backend_hierarchical, .transport = transport, .locals = locals};
        if (world->size % locals > 0)
            continue;
        allreduce_play_hosts(world, &shape);
        check_late(&shape, begun);
    }
}

static void check_rings(enum transport_kind transport)
{
    const struct shape ring = {.backend = &backend_ring, .transport = transport};
    const struct shape rhd = {.backend = &backend_rhd, .transport = transport};
    const int size = world->size;
    check_late(&ring, waited);
    check_late(&rhd, waited);
    check_held(&ring, size == 2 ? 1 : 2 * (size - 1)); /* two swap the whole vector */
    if (size == 2 || size == 4)
        check_held(&rhd, size / 2); /* doubles */
}

struct part {
    enum transport_kind transport;
    void (*check)(enum transport_kind transport);
};

static void run(struct world *of, void *context)
{
    const struct part *part = context;
    world = of;
    part->check(part->transport);
}

static void check_sizes(void (*checked)(enum transport_kind transport))
{
    monitor_init(&monitor);
    for (int ranks = 2; ranks <= 4; ranks++) {
        spawn(ranks, run, &(struct part){TRANSPORT_TCP, checked});
        spawn(ranks, run, &(struct part){TRANSPORT_ZMQ, checked});
    }
    monitor_fini(&monitor);
}

Test(run_ahead, ring_and_halving)
{
    check_sizes(check_rings);
}

Test(run_ahead, hierarchical)
{
    check_sizes(check_hierarchical);
}

Test(run_ahead, servers)
{
    check_sizes(check_servers);
}
