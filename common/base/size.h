/* Arithmetic of sizes. Pure. */
#ifndef PSRING_COMMON_BASE_SIZE_H
#define PSRING_COMMON_BASE_SIZE_H

#include <stddef.h>

static inline size_t size_smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t size_larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* How many parts of `b` hold `a`, the last one perhaps shorter; b > 0. */
static inline size_t size_divide_up(size_t a, size_t b)
{
    return (a + b - 1) / b;
}

#endif
