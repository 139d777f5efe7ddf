/* The order in which contributions to an element are added. Floating point is not associative. */
#ifndef PSRING_COMMON_COMM_REDUCE_H
#define PSRING_COMMON_COMM_REDUCE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/comm/compress.h"
#include "common/net/transport/message.h"

enum reduce_order {
    REDUCE_ORDER_ANY,  /* the fastest for the backend */
    REDUCE_ORDER_RING, /* chunk c starts at rank c, then c+1, ...: the ring's order */
};

/*
 * Adding contributions to a gradient: the kernels of every reduction, and the rule for the order of
 * contributions. Floating-point addition is not associative, so only equal orders give equal bits.
 *
 * Sources may have any alignment (a payload is reduced where the transport holds it). Cost: memory
 * traffic only; see `psring bench`.
 */

/* into[i] += source[i] */
void reduce_add(float *into, const void *source, size_t count);

/* into[i] = (into[i] + source[i]) * scale: the last addition of a scaled sum. */
void reduce_add_scale(float *into, const void *source, size_t count, float scale);

/* data[i] *= scale */
void reduce_scale(float *data, size_t count, float scale);

/*
 * into = scale * (sources[0] + ... + sources[workers-1]), computed in float32 for every type of
 * source. Covers the elements [offset, offset + count) of a vector of `total` elements; into and
 * sources point at element `offset`. ANY adds in order of rank. RING adds an element of chunk c
 * (chunk_of(total, workers, c)) from rank c, then c+1, ..., c-1, as the ring does. `into` may be
 * one of the sources only if workers == 1.
 */
struct reduce_span {
    size_t offset, count, total;
    enum compress compress; /* the type of a source's elements */
};
void reduce_in_order(float *into, const void *const *sources, int workers, struct reduce_span span,
                     enum reduce_order order, float scale);

/*
 * The operations of collectives on two contributions: a table of kernels by element type and
 * operation.
 *
 * Sums of whole numbers wrap around. 16-bit numbers are computed as float32 and rounded after every
 * step, to nearest, ties to even; too large values become infinity. An average is the sum in the
 * type of the elements, and the last step divides it by the number of contributions, whole numbers
 * towards zero. The minimum or maximum of a NaN and any value is a NaN. Results depend on the order
 * of the contributions only through the rounding of sums.
 *
 * Pointers may have any alignment; the two must not overlap. Cost: memory traffic. Pure.
 */

enum reduce_op { REDUCE_SUM, REDUCE_AVERAGE, REDUCE_MIN, REDUCE_MAX, REDUCE_OPS };

struct reduction {
    enum message_dtype dtype; /* of the elements, in memory as on the wire */
    enum reduce_op op;
    bool commutes; /* exchanging the two gives the same bits, except which of two NaNs results */
    /* into[i] = the operation on into[i] and from[i], for all contributions but the last */
    void (*combine)(void *into, const void *from, size_t count);
    /* for the last of `workers` contributions, at least two */
    void (*complete)(void *into, const void *from, size_t count, int workers);
};

/* For every type except MESSAGE_ANY_DTYPE. Static. */
const struct reduction *reduction_of(enum message_dtype dtype, enum reduce_op op);

#endif
