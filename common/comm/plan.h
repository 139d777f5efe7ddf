/* What a comm keeps for one layout of buckets, from one comm_plan to the next. */
#ifndef PSRING_COMMON_COMM_PLAN_H
#define PSRING_COMMON_COMM_PLAN_H

#include "common/comm/comm.h"
#include "common/comm/overlap.h"
#include "common/comm/staging.h"
#include "common/obs/range.h"

/* What profilers and timelines call a bucket on its way, and its averaging. */
struct bucket_ranges {
    char name[32], allreduce[48];
    struct range open; /* between start and wait */
    uint64_t step;     /* the caller's, at the start */
};

struct plan {
    struct comm_layout layout; /* our copy, with the scale that is left to the backend */
    size_t *counts, *order;
    bool *started; /* by bucket: between start and wait */
    struct bucket_ranges *ranges;
    struct overlap *overlap; /* NULL: comm_start does the work */
    struct staging *staging; /* NULL: buckets are averaged where they are */
    int64_t busy_ns;         /* without overlap */
    struct comm_counters before;
    bool running; /* not finished */
};

/* Copies `layout`, whose buckets have at most `counts_max` elements; the rest is zero. */
enum status plan_init(struct plan *plan, const struct comm_layout *layout, size_t counts_max);

/* Ends the thread, once it has done what was started, and the staging. Frees all; zeros `plan`. */
void plan_fini(struct plan *plan);

#endif
