/*
 * What a collective operation does with two contributions: a table of kernels by element type and
 * operation, for those that are more than the sum of float32 (reduce.h).
 *
 * Sums of whole numbers wrap around. Numbers of 16 bits are computed with as float32 and rounded
 * after every step, to nearest, ties to even; what is too large becomes infinity. An average is the
 * sum, in the type of the elements, and its last step divided by the number of contributions: whole
 * numbers towards zero. The minimum and maximum of a NaN and anything is a NaN. Results depend on
 * the order of the contributions only by the rounding of sums.
 *
 * Pointers may have any alignment; the two do not overlap. Cost: memory traffic. Pure.
 */
#ifndef PSRING_COMMON_COMM_ELEMENTS_REDUCTION_H
#define PSRING_COMMON_COMM_ELEMENTS_REDUCTION_H

#include <stdbool.h>
#include <stddef.h>

#include "common/net/transport/message.h"

enum reduce_op { REDUCE_SUM, REDUCE_AVERAGE, REDUCE_MIN, REDUCE_MAX, REDUCE_OPS };

struct reduction {
    enum message_dtype dtype; /* of the elements, in memory as on the wire */
    enum reduce_op op;
    bool commutes; /* with the two exchanged the bits are the same (of which of two NaNs apart) */
    /* into[i] = the operation on into[i] and from[i], but for the last of the contributions */
    void (*combine)(void *into, const void *from, size_t count);
    /* for the last of `workers` contributions, at least two */
    void (*complete)(void *into, const void *from, size_t count, int workers);
};

/* Of every type but MESSAGE_ANY_DTYPE. Static. */
const struct reduction *reduction_of(enum message_dtype dtype, enum reduce_op op);

#endif
