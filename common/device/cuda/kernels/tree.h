/*
 * Sums over many threads within one launch (.cu only). Each group of rows has one sum per column.
 * The sums go up a tree. Up to TREE_FAN neighbours share a node. The thread that arrives there last
 * adds all their sums, from the first to the last, and continues one level up. This thread differs
 * from run to run, but its additions and their order do not. For example, 2,000 groups need three
 * levels of at most 16 additions; one thread per column would add 2,000 numbers.
 *
 * The last thread must see the values of all its neighbours. Each thread writes, passes a fence and
 * increments a counter. The last one sees the full count, passes a fence and reads. This is the
 * pattern of the CUDA Programming Guide, "Memory fence functions", with a thread in place of a
 * block.
 */
#ifndef PSRING_COMMON_DEVICE_CUDA_KERNELS_TREE_H
#define PSRING_COMMON_DEVICE_CUDA_KERNELS_TREE_H

#include "common/device/cuda/kernels/kernels.h"

enum { TREE_FAN = 16 };

/* The number of groups of `rows` rows: about `least` rows each, but no more groups than the memory
 * holds. */
static inline uint32_t tree_groups(size_t rows, size_t columns, size_t least)
{
    size_t groups = (rows + least - 1) / least, most = KERNEL_ROOM_ITEMS / columns;
    groups = groups < most ? groups : most;
    return groups > 0 ? (uint32_t)groups : 1;
}

/* The first row of a group. Group `groups` gives the end. */
static __device__ inline uint32_t tree_row(uint32_t rows, uint32_t groups, uint32_t group)
{
    return (uint32_t)((uint64_t)group * rows / groups);
}

static __device__ inline bool tree_arrives_last(unsigned *arrived, unsigned all)
{
    __threadfence();
    if (atomicAdd(arrived, 1u) + 1 < all)
        return false;
    *arrived = 0; /* for the next launch */
    __threadfence();
    return true;
}

/* Each (group, column) calls this once with its sum. Returns true in one thread per column, whose
 * *value is then the sum of all groups. */
template <class T>
static __device__ bool tree_sum(struct kernel_room room, uint32_t groups, uint32_t columns,
                                uint32_t group, uint32_t column, T *value)
{
    static_assert(sizeof(T) <= KERNEL_ROOM_ITEM_BYTES, "the room is too small");
    T *sums = (T *)room.sums;
    unsigned *arrived = room.arrived;
    while (groups > 1) {
        uint32_t above = group / TREE_FAN, first = above * TREE_FAN;
        uint32_t count = groups - first < TREE_FAN ? groups - first : (uint32_t)TREE_FAN;
        T *of_column = sums + column;
        of_column[group * columns] = *value;
        if (!tree_arrives_last(&arrived[above * columns + column], count))
            return false;
        *value = of_column[first * columns];
#pragma unroll 4
        for (uint32_t n = 1; n < count; n++)
            *value += of_column[(first + n) * columns];
        sums += groups * columns;
        groups = (groups + TREE_FAN - 1) / TREE_FAN;
        arrived += groups * columns;
        group = above;
    }
    return true;
}

#endif
