/*
 * Which GPU a rank takes. Ranks of one machine share its GPUs, whatever their hosts are called: the
 * namespaces and containers of a machine are hosts of their own, its GPUs are not. A GPU is known
 * by its PCI bus id, because its number differs between processes: a launcher that binds one GPU to
 * each task (srun --gpus-per-task=1) lets every rank see another GPU as number 0.
 */
#ifndef PSRING_EXPERIMENTS_GPU_GPUS_H
#define PSRING_EXPERIMENTS_GPU_GPUS_H

#include <stdbool.h>

#include "common/device/device.h"
#include "common/net/world.h"

/* What one rank says of itself. Plain data: ranks exchange it. */
struct gpu_view {
    int machine;                                    /* equal numbers: the same machine */
    bool wanted;                                    /* the rank computes on a GPU */
    int count;                                      /* GPUs that it sees */
    char ids[DEVICE_GPUS_MAX][DEVICE_GPU_ID_BYTES]; /* by their numbers in that process */
    char host[64];
};

/*
 * index[r]: the number, as rank r sees it, of the GPU that it takes; -1 if it wants none or none is
 * left. Pure, and the same on all ranks. Each GPU has one rank at most; where all ranks of a
 * machine see the same GPUs, they take them in the order of ranks. With `share`, ranks that are
 * left get the GPU that the fewest have. *without: the first rank that wants a GPU and has none, or
 * -1. Fails only without memory.
 */
enum status gpus_place(const struct gpu_view *views, int ranks, bool share, int *index,
                       int *without);

/*
 * Collective over the world: this rank's number of its GPU in *index. `wanted` as in gpu_view. All
 * ranks fail alike, with STATUS_UNSUPPORTED, where one is left without; rank 0 logs it.
 */
enum status gpus_choose(struct world *world, bool wanted, bool share, int *index);

#endif
