#include "experiments/config/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -------- placing ----------------------------------------------------------------------------- */

struct placing {
    const struct gpu_view *views;
    int ranks;
    int *index;
    bool *asked; /* by rank: this search has asked the rank to take another GPU */
};

static bool has(const struct placing *p, int rank, const struct gpu_view *view, int gpu)
{
    const struct gpu_view *other = &p->views[rank];
    return p->index[rank] >= 0 && other->machine == view->machine &&
           strcmp(other->ids[p->index[rank]], view->ids[gpu]) == 0;
}

/* The first rank from `from` on that has the GPU, or `ranks`. */
static int next_owner(const struct placing *p, const struct gpu_view *view, int gpu, int from)
{
    while (from < p->ranks && !has(p, from, view, gpu))
        from++;
    return from;
}

/* Gives `rank` a free GPU, or one whose owner can move to another GPU (augmenting paths). */
/* NOLINTNEXTLINE(misc-no-recursion): asks each rank once */
static bool take(struct placing *p, int rank)
{
    const struct gpu_view *view = &p->views[rank];
    for (int gpu = 0; gpu < view->count; gpu++) {
        if (next_owner(p, view, gpu, 0) == p->ranks) {
            p->index[rank] = gpu;
            return true;
        }
    }
    for (int gpu = 0; gpu < view->count; gpu++) {
        int owner = next_owner(p, view, gpu, 0);
        if (p->asked[owner])
            continue;
        p->asked[owner] = true;
        if (take(p, owner)) {
            p->index[rank] = gpu;
            return true;
        }
    }
    return false;
}

static void take_shared(struct placing *p, int rank)
{
    const struct gpu_view *view = &p->views[rank];
    int best = -1, fewest = p->ranks + 1;
    for (int gpu = 0; gpu < view->count; gpu++) {
        int owners = 0;
        for (int owner = next_owner(p, view, gpu, 0); owner < p->ranks;
             owner = next_owner(p, view, gpu, owner + 1))
            owners++;
        if (owners < fewest) {
            fewest = owners;
            best = gpu;
        }
    }
    p->index[rank] = best;
}

enum status gpus_place(const struct gpu_view *views, int ranks, bool share, int *index,
                       int *without)
{
    struct placing p = {.views = views, .ranks = ranks, .index = index};
    p.asked = calloc((size_t)ranks, sizeof *p.asked);
    if (!p.asked)
        return FAIL(STATUS_NO_MEMORY, "no memory for the GPUs of %d ranks", ranks);
    for (int rank = 0; rank < ranks; rank++)
        index[rank] = -1;
    for (int rank = 0; rank < ranks; rank++) {
        memset(p.asked, 0, (size_t)ranks * sizeof *p.asked);
        p.asked[rank] = true;
        if (views[rank].wanted)
            take(&p, rank);
    }
    free(p.asked);
    for (int rank = 0; rank < ranks; rank++) {
        if (share && views[rank].wanted && index[rank] < 0)
            take_shared(&p, rank);
    }
    *without = -1;
    for (int rank = ranks - 1; rank >= 0; rank--) {
        if (views[rank].wanted && index[rank] < 0)
            *without = rank;
    }
    return STATUS_OK;
}

/* -------- over the world ---------------------------------------------------------------------- */

static void complain(const struct gpu_view *views, int ranks, int without)
{
    const struct gpu_view *view = &views[without];
    int wanting = 0;
    for (int rank = 0; rank < ranks; rank++)
        wanting += views[rank].wanted && views[rank].machine == view->machine;
    if (view->count == 0)
        log_error("--device cuda: rank %d on %s sees no GPU; run nvidia-smi there, and check that "
                  "CUDA_VISIBLE_DEVICES does not hide it",
                  without, view->host);
    else
        log_error("--device cuda: rank %d on %s has no GPU of its own: it sees %d (%s%s), and %d "
                  "ranks of its machine need one each; start fewer ranks there, or add --share-gpu",
                  without, view->host, view->count, view->ids[0], view->count > 1 ? ", ..." : "",
                  wanting);
}

enum status gpus_choose(struct world *world, bool wanted, bool share, int *index)
{
    enum status status = STATUS_OK;
    size_t ranks = (size_t)world->size;
    int without;
    struct gpu_view mine = {.machine = world->machine, .wanted = wanted};
    struct gpu_view *views = calloc(ranks, sizeof *views);
    int *all = calloc(ranks, sizeof *all);
    *index = -1;
    if (!views || !all)
        TRY(FAIL(STATUS_NO_MEMORY, "no memory for the GPUs of %zu ranks", ranks));
    snprintf(mine.host, sizeof mine.host, "%s", world->host);
    if (wanted)
        mine.count = device_gpus(mine.ids);
    TRY(world_gather(world, NULL, &mine, sizeof mine, views));
    TRY(gpus_place(views, world->size, share, all, &without));
    *index = all[world->rank];
    if (without >= 0) {
        if (world->rank == 0)
            complain(views, world->size, without);
        status = STATUS_UNSUPPORTED;
    }
out:
    free(views);
    free(all);
    return status;
}
