/* In which order the contributions to an element are added: floating point is not associative. */
#ifndef PSRING_COMMON_COMM_REDUCE_H
#define PSRING_COMMON_COMM_REDUCE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/comm/compress.h"
#include "common/net/transport/message.h"

enum reduce_order {
    REDUCE_ORDER_ANY,  /* whatever is fastest for the backend */
    REDUCE_ORDER_RING, /* chunk c starts at rank c, then c+1, ...: as the ring adds */
};

/*
 * Adding contributions to a gradient. The kernels of every reduction, and the rule in which order
 * contributions are added: floating-point addition is not associative, so results are the same to
 * the bit only where the order is.
 *
 * Sources may have any alignment (a payload is reduced from wherever the transport holds it).
 * Cost: memory traffic only; see `psring bench`.
 */

/* into[i] += source[i] */
void reduce_add(float *into, const void *source, size_t count);

/* into[i] = (into[i] + source[i]) * scale: the last addition of a scaled sum. */
void reduce_add_scale(float *into, const void *source, size_t count, float scale);

/* data[i] *= scale */
void reduce_scale(float *data, size_t count, float scale);

/*
 * into = scale * (sources[0] + ... + sources[workers-1]), in float32 whatever the sources are, for
 * the elements [offset, offset + count) of a vector of `total` elements; into and sources point at
 * element `offset`. ANY: added in order of rank. RING: an element of chunk c (chunk_of(total,
 * workers, c)) is added starting at rank c, then c+1, ..., c-1: the order in which the ring does
 * it. `into` may be one of the sources only if workers == 1.
 */
struct reduce_span {
    size_t offset, count, total;
    enum compress compress; /* what an element of a source is */
};
void reduce_in_order(float *into, const void *const *sources, int workers, struct reduce_span span,
                     enum reduce_order order, float scale);

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
