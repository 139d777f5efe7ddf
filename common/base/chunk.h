/* Cutting a vector into nearly equal, contiguous parts. Pure. */
#ifndef PSRING_COMMON_BASE_CHUNK_H
#define PSRING_COMMON_BASE_CHUNK_H

#include <stddef.h>

/* A run of elements. */
struct chunk {
    size_t offset;
    size_t count;
};

/*
 * Part `index` of `parts`: sizes differ by at most one element, the longer ones first. Any count,
 * also 0 and less than `parts` (the last parts are then empty).
 */
static inline struct chunk chunk_of(size_t count, size_t parts, size_t index)
{
    size_t whole = count / parts, longer = count % parts;
    struct chunk chunk = {index * whole + (index < longer ? index : longer),
                          whole + (index < longer)};
    return chunk;
}

/* The index of the part that holds element `offset`; offset < count. */
static inline size_t chunk_holding(size_t count, size_t parts, size_t offset)
{
    size_t whole = count / parts, longer = count % parts, in_longer = longer * (whole + 1);
    return offset < in_longer ? offset / (whole + 1) : longer + (offset - in_longer) / whole;
}

#endif
