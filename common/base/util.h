/* Arithmetic of sizes, parts of a vector, and memory for large arrays. */
#ifndef PSRING_COMMON_BASE_UTIL_H
#define PSRING_COMMON_BASE_UTIL_H

#include <stddef.h>

/* For a function that only reads what `data` points to but takes a pointer without const. */
static inline void *without_const(const void *data)
{
    union {
        const void *in;
        void *out;
    } pointer = {data};
    return pointer.out;
}

static inline size_t size_smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t size_larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The number of parts of `b` that hold `a`; the last part may be shorter. b > 0. */
static inline size_t size_divide_up(size_t a, size_t b)
{
    return (a + b - 1) / b;
}

/* Cutting a vector into nearly equal, contiguous parts. Pure. */

/* A run of elements. */
struct chunk {
    size_t offset;
    size_t count;
};

/*
 * Part `index` of `parts`. Sizes differ by at most one element; the longer parts come first. Any
 * count is allowed, also 0 and less than `parts` (the last parts are then empty).
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

/*
 * Allocates `bytes` bytes (at least one), zeroed and aligned to 64. The caller frees them with
 * free(). Arrays of MEMORY_HUGE_BYTES or more are aligned to that size, and the system is asked for
 * pages of that size: a pass over 64 MB in pages of 4 KB misses the TLB 16,000 times. NULL: out of
 * memory, not logged.
 */
void *memory_array(size_t bytes);

enum { MEMORY_HUGE_BYTES = 2 << 20 };

/*
 * Makes `array`, which has room for *room elements of `each` bytes, hold more than `count`. Returns
 * `array` unchanged if it does already; else moves it, twice as long. NULL: out of memory (logged;
 * `what` names the elements), and `array` is unchanged.
 */
void *memory_grow(void *array, size_t *room, size_t count, size_t each, const char *what);

#endif
