/*
 * Reductions of fp16 (reduction.h) by CPUs that convert it themselves (F16C of x86, since 2013): in
 * whole numbers, as float16.h does for all, a sum costs three times what memory does. Every result
 * has the same bits.
 */
#ifndef PSRING_COMMON_COMM_ELEMENTS_FP16_VECTORS_H
#define PSRING_COMMON_COMM_ELEMENTS_FP16_VECTORS_H

#include <stddef.h>

#include "common/comm/elements/reduction.h"

/* `op` on the first elements of both, an average divided by `workers`. How many: nearly all, or
 * none where the CPU, or the compiler, cannot; the caller does the rest. */
size_t fp16_vectors(enum reduce_op op, void *restrict into, const void *restrict from, size_t count,
                    int workers);

#endif
