/* Cutting a vector into nearly equal, contiguous parts. Pure. */
#ifndef PSRING_COMMON_COMM_CHUNK_H
#define PSRING_COMMON_COMM_CHUNK_H

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

#endif
