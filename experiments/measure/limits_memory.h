/* How fast one core adds arrays that no cache holds: the half of limits.h that needs no peer. */
#ifndef PSRING_EXPERIMENTS_LIMITS_MEMORY_H
#define PSRING_EXPERIMENTS_LIMITS_MEMORY_H

#include <stddef.h>

#include "common/base/status.h"
#include "common/comm/elements/reduction.h"

/*
 * bytes/s, 12 an element: the best of some passes of c = a + b and of reduce_add (a += b), which
 * take turns; and of the sum of each other type, three of its elements' bytes. `count` floats an
 * array; 0: four times the last-level cache, as STREAM asks, within bounds. Errors:
 * STATUS_NO_MEMORY, logged.
 */
enum status limits_memory(size_t count, double *add_bytes_per_s, double *reduce_bytes_per_s,
                          double type_bytes_per_s[MESSAGE_DTYPES]);

#endif
