/* For tests of libpsring: kinds of calls, and the result if two kinds meet. The ranks are
 * processes; the program that includes this connects them. */
#ifndef PSRING_TESTS_LIBRARY_PSRING_UNLIKE_H
#define PSRING_TESTS_LIBRARY_PSRING_UNLIKE_H

#include <psring.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNLIKE_COUNT = 1000, UNLIKE_LONG = 100000 };

struct unlike_call {
    const char *name; /* as psring_error prints it */
    enum psring_status (*run)(struct psring **world, const struct unlike_call *call);
    size_t count;
    enum psring_type type;
    enum psring_op op;
    int root;
};

static double unlike_memory[4 * UNLIKE_LONG];

static inline enum psring_status unlike_allreduce(struct psring **world,
                                                  const struct unlike_call *call)
{
    return psring_allreduce(*world, unlike_memory, call->count, call->type, call->op);
}

static inline enum psring_status unlike_reduce_scatter(struct psring **world,
                                                       const struct unlike_call *call)
{
    return psring_reduce_scatter(*world, unlike_memory, call->count, call->type, call->op);
}

static inline enum psring_status unlike_all_gather(struct psring **world,
                                                   const struct unlike_call *call)
{
    return psring_all_gather(*world, unlike_memory, call->count, call->type);
}

static inline enum psring_status unlike_broadcast(struct psring **world,
                                                  const struct unlike_call *call)
{
    return psring_broadcast(*world, unlike_memory, call->count, call->type, call->root);
}

static inline enum psring_status unlike_barrier(struct psring **world,
                                                const struct unlike_call *call)
{
    (void)call;
    return psring_barrier(*world);
}

static inline enum psring_status unlike_split(struct psring **world, const struct unlike_call *call)
{
    struct psring *group;
    (void)call;
    return psring_split(*world, 0, &group);
}

static inline enum psring_status unlike_finalize(struct psring **world,
                                                 const struct unlike_call *call)
{
    (void)call;
    return psring_finalize(world);
}

/* The last kind sends nothing, so its rank makes the next call too early. */
static const struct unlike_call unlike_calls[] = {
    {"psring_allreduce (1000 float32, sum)", unlike_allreduce, UNLIKE_COUNT, 0, 0, 0},
    {"psring_allreduce (1000 float32, maximum)", unlike_allreduce, UNLIKE_COUNT, 0, PSRING_MAX, 0},
    {"psring_allreduce (1000 int32, sum)", unlike_allreduce, UNLIKE_COUNT, PSRING_INT32, 0, 0},
    {"psring_allreduce (999 float32, sum)", unlike_allreduce, UNLIKE_COUNT - 1, 0, 0, 0},
    {"psring_allreduce (100000 float32, sum)", unlike_allreduce, UNLIKE_LONG, 0, 0, 0},
    {"psring_reduce_scatter (", unlike_reduce_scatter, UNLIKE_COUNT, 0, 0, 0},
    {"psring_all_gather (", unlike_all_gather, UNLIKE_COUNT, 0, 0, 0},
    {"psring_broadcast (1000 float32, root 0)", unlike_broadcast, UNLIKE_COUNT, 0, 0, 0},
    {"psring_broadcast (1000 float32, root 1)", unlike_broadcast, UNLIKE_COUNT, 0, 0, 1},
    {"psring_broadcast (100000 float32, root 1)", unlike_broadcast, UNLIKE_LONG, 0, 0, 1},
    {"psring_barrier,", unlike_barrier, 0, 0, 0, 0},
    {"psring_split,", unlike_split, 0, 0, 0, 0},
    {"psring_finalize,", unlike_finalize, 0, 0, 0, 0},
    {"psring_", unlike_allreduce, 0, 0, 0, 0},
};
enum { UNLIKE_CALLS = sizeof unlike_calls / sizeof *unlike_calls };

/* The number of pairs of different kinds. */
static inline int unlike_pairs(void)
{
    return UNLIKE_CALLS * (UNLIKE_CALLS - 1) / 2;
}

static inline _Noreturn void unlike_failed(const char *what, int rank, int size,
                                           const struct unlike_call *mine,
                                           const struct unlike_call *others)
{
    fprintf(stderr, "%s: rank %d of %d in '%s', others in '%s'; psring_error: %s\n", what, rank,
            size, mine->name, others->name, psring_error());
    exit(1);
}

/* After an equal call, one rank makes a different call than all others. Ends the world. */
static inline void unlike_meet(struct psring *world, int pair)
{
    int rank = psring_rank(world), size = psring_size(world), first = 0, second, left = pair;
    for (; left >= UNLIKE_CALLS - 1 - first; first++)
        left -= UNLIKE_CALLS - 1 - first;
    second = first + 1 + left;
    const struct unlike_call *of_one = &unlike_calls[pair % 2 ? first : second];
    const struct unlike_call *of_others = &unlike_calls[pair % 2 ? second : first];
    bool one = rank == pair % size;
    const struct unlike_call *mine = one ? of_one : of_others, *others = one ? of_others : of_one;
    enum psring_status status = psring_barrier(world); /* others may be ahead and have failed */
    if (status == PSRING_OK)
        status = mine->run(&world, mine);
    for (int more = 0; status == PSRING_OK && world && more < 4; more++) {
        float value = (float)(rank + more);
        status = psring_allreduce(world, &value, 1, PSRING_FLOAT32, PSRING_SUM);
        if (status == PSRING_OK && value != (float)(size * (size - 1) / 2 + more * size))
            unlike_failed("a wrong sum", rank, size, mine, others);
    }
    if (status == PSRING_OK && world) /* the end finds a message that no call takes */
        status = psring_finalize(&world);
    if (status != PSRING_ERROR_PROTOCOL)
        unlike_failed(psring_status_name(status), rank, size, mine, others);
    const char *calls = strstr(psring_error(), " is in psring_");
    if (!calls || !strstr(calls, " in psring_"))
        unlike_failed("psring_error() does not name two calls", rank, size, mine, others);
    if (world && psring_finalize(&world) != PSRING_OK)
        unlike_failed("the end", rank, size, mine, others);
}

#endif
