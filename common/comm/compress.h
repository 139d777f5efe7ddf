/*
 * 16-bit numbers on the wire. A float32 is rounded to *fp16* (IEEE 754 binary16: 11 significand
 * bits, 6e-8 to 65504) or to *bf16* (the upper half of a float32: 8 bits, the range of a float32).
 * Half the bytes. Only data on the wire is rounded; sums are computed in float32.
 *
 * Rounding is to nearest, ties to even, with the same bits on every CPU and for every alignment. A
 * finite number beyond the largest one becomes the largest one, never infinity. Infinity and NaN
 * stay unchanged, so that they remain visible.
 *
 * Error feedback. A gradient that is rounded at every step loses the same small numbers at every
 * step: they are below the rounding, or below 6e-8. Therefore the rank that rounds keeps the
 * rounding error, the *residual*, and adds it to the value that it rounds at its next step:
 *
 *    v = x[t] + e[t];   sent[t] = round(v);   e[t+1] = v - sent[t]
 *
 * In sum, sent[0] + ... + sent[t] = x[0] + ... + x[t] - e[t+1]. After any number of steps the sum
 * sent differs from the exact sum by one step's rounding, not by t of them. SGD therefore converges
 * as without rounding. Sources: Seide et al. 2014, "1-bit stochastic gradient descent and its
 * application to data-parallel distributed training of speech DNNs"; Karimireddy et al. 2019,
 * "Error feedback fixes SignSGD and other gradient compression schemes".
 *
 * Pointers to 16-bit numbers may have any alignment. Cost: memory traffic. Pure.
 */
#ifndef PSRING_COMMON_COMM_COMPRESS_H
#define PSRING_COMMON_COMM_COMPRESS_H

#include <stddef.h>

enum compress { COMPRESS_NONE, COMPRESS_FP16, COMPRESS_BF16 };

/* By enum compress, ended by NULL: the choices of --compress. */
extern const char *const compress_names[];

/* Bytes of a number on the wire: 4 or 2. */
size_t compress_element_bytes(enum compress compress);

/* The size as float32 of a payload of `bytes`. */
size_t compress_float_bytes(enum compress compress, size_t bytes);

/* The largest n for which all whole numbers -n..n are exact on the wire. */
int compress_exact_integer(enum compress compress);

/* The functions below accept COMPRESS_FP16 and COMPRESS_BF16 only. */

/*
 * codes[i] = round(data[i] + residual[i]); residual[i] becomes the rounding error (0 if the sum is
 * not finite). Without feedback `residual` is NULL and counts as zeros.
 */
void compress_encode(enum compress compress, void *codes, const float *data, float *residual,
                     size_t count);

/* into[i] = codes[i] */
void compress_decode(enum compress compress, float *into, const void *codes, size_t count);

/* into[i] += codes[i] */
void compress_add(enum compress compress, float *into, const void *codes, size_t count);

/* into[i] = (into[i] + codes[i]) * scale */
void compress_add_scale(enum compress compress, float *into, const void *codes, size_t count,
                        float scale);

#endif
