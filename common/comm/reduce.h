/*
 * Adding contributions to a gradient. The kernels of every reduction, and the rule in which order
 * contributions are added: floating-point addition is not associative, so results are the same to
 * the bit only where the order is.
 *
 * Sources may have any alignment (a payload is reduced from wherever the transport holds it).
 * Cost: memory traffic only; see `psring bench`.
 */
#ifndef PSRING_COMMON_COMM_REDUCE_H
#define PSRING_COMMON_COMM_REDUCE_H

#include <stddef.h>

#include "common/comm/elements/compress.h"
#include "common/comm/reduce_order.h"

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

#endif
