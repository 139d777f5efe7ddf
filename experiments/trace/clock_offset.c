#include "experiments/trace/timeline.h"

#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/status.h"

enum { ROUNDS_EACH = 12, ROUNDS_MOST = 1024 };

/* Delay of the late rank. All other ranks have entered by then. */
#define LATE_NS (NS_PER_MS / 2)

/* Largest drift between two clocks. Quartz is accurate to 50 ppm. */
enum { DRIFT_PPM = 100 };

struct bounds {
    int64_t least, most;
};

/* Narrows the bounds with the passages of rank 0 and another rank. */
static void narrow(struct bounds *bounds, const struct clock_passage *first,
                   const struct clock_passage *other, size_t rounds)
{
    for (size_t i = 0; i < rounds; i++) {
        int64_t least = first[i].entered_ns - other[i].left_ns;
        int64_t most = first[i].left_ns - other[i].entered_ns;
        bounds->least = least > bounds->least ? least : bounds->least;
        bounds->most = most < bounds->most ? most : bounds->most;
    }
}

struct clock_offset clock_offset_of(const struct clock_passage *all, const int *machines, int size,
                                    size_t rounds, int own)
{
    const struct clock_passage *mine = all + (size_t)own * rounds;
    struct bounds alone = {INT64_MIN, INT64_MAX}, shared = alone;
    narrow(&alone, all, mine, rounds);
    for (int rank = 0; rank < size; rank++) {
        if (machines[rank] == machines[own])
            narrow(&shared, all, all + (size_t)rank * rounds, rounds);
    }
    int64_t begin_ns = mine[0].entered_ns, end_ns = mine[rounds - 1].left_ns;
    int64_t at_ns = begin_ns + (end_ns - begin_ns) / 2;
    if (machines[own] == machines[0] && alone.least <= 0 && alone.most >= 0)
        return (struct clock_offset){.at_ns = at_ns};
    /* Bounds of different rounds may contradict each other by the drift between them. */
    int64_t drift_ns = (end_ns - begin_ns) * DRIFT_PPM / 1000000;
    const struct bounds *best = shared.least - shared.most <= drift_ns ? &shared : &alone;
    int64_t between_ns = best->most - best->least;
    int64_t twice_ns = between_ns + drift_ns > -between_ns ? between_ns + drift_ns : -between_ns;
    return (struct clock_offset){
        .at_ns = at_ns, .offset_ns = best->least + between_ns / 2, .error_ns = (twice_ns + 1) / 2};
}

static enum status pass_barriers(struct world *world, struct clock_passage *own, size_t rounds)
{
    enum status status;
    TRY(world_barrier(world, NULL));
    for (size_t i = 0; i < rounds; i++) {
        if (i % (size_t)world->size == (size_t)world->rank)
            clock_sleep_until_ns(clock_now_ns() + LATE_NS);
        own[i].entered_ns = clock_now_ns();
        TRY(world_barrier(world, NULL));
        own[i].left_ns = clock_now_ns();
    }
out:
    return status;
}

enum status clock_offset_measure(struct world *world, struct clock_offset *offset)
{
    enum status status = STATUS_OK;
    size_t size = (size_t)world->size, rounds = size * ROUNDS_EACH;
    rounds = rounds < ROUNDS_MOST ? rounds : ROUNDS_MOST;
    struct clock_passage *own = calloc(rounds, sizeof *own);
    struct clock_passage *all = calloc(rounds * size, sizeof *all);
    int *machines = calloc(size, sizeof *machines);
    if (!own || !all || !machines)
        TRY(FAIL(STATUS_NO_MEMORY, "timeline: no memory for the clocks of %zu ranks", size));
    TRY(world_gather(world, NULL, &world->machine, sizeof world->machine, machines));
    TRY(pass_barriers(world, own, rounds));
    TRY(world_gather(world, NULL, own, rounds * sizeof *own, all));
    *offset = clock_offset_of(all, machines, world->size, rounds, world->rank);
out:
    free(own);
    free(all);
    free(machines);
    return status;
}

int64_t clock_offset_apply(const struct clock_offset *before, const struct clock_offset *after,
                           int64_t ns)
{
    if (after->at_ns <= before->at_ns)
        return ns + before->offset_ns;
    double share = (double)(ns - before->at_ns) / (double)(after->at_ns - before->at_ns);
    double drifted = share * (double)(after->offset_ns - before->offset_ns);
    return ns + before->offset_ns + (int64_t)drifted;
}
