/*
 * Averaging on a thread of its own, so that buckets travel while the caller computes the next ones.
 * The thread does one bucket at a time, since their bytes share one link: in the order of
 * overlap_start, or in one that was given, because all ranks must take the same.
 */
#ifndef PSRING_COMMON_COMM_OVERLAP_H
#define PSRING_COMMON_COMM_OVERLAP_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

struct overlap;

/* What the thread does with a bucket. */
typedef enum status overlap_function(void *context, size_t bucket, float *data);

/* Starts the thread. At most `buckets` buckets, numbered from 0, are under way at a time. `order`:
 * all of them as they are to be done, round after round, whenever they are started; copied. NULL:
 * as started. */
enum status overlap_new(struct overlap **overlap, overlap_function *work, void *context,
                        size_t buckets, const size_t *order);

/* Hands a bucket over; returns at once. Its memory is the thread's until overlap_wait. */
void overlap_start(struct overlap *overlap, size_t bucket, float *data);

/* Returns once the bucket is done, with its status. After a failure no further bucket is begun. */
enum status overlap_wait(struct overlap *overlap, size_t bucket);

/* Time that the thread has spent working since overlap_new, in ns. Call it between steps. */
int64_t overlap_busy_ns(struct overlap *overlap);

/* Ends the thread once it has done what was started. Frees *overlap, sets it to NULL. */
void overlap_free(struct overlap **overlap);

#endif
