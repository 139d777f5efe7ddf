#include "common/comm/compress.h"

#include <float.h>
#include <stdint.h>
#include <string.h>

#include "common/base/check.h"
#include "common/device/kernel.h"

const char *const compress_names[] = {"none", "fp16", "bf16", NULL};

size_t compress_element_bytes(enum compress compress)
{
    return compress == COMPRESS_NONE ? sizeof(float) : sizeof(uint16_t);
}

size_t compress_float_bytes(enum compress compress, size_t bytes)
{
    return bytes * (sizeof(float) / compress_element_bytes(compress));
}

int compress_exact_integer(enum compress compress)
{
    static const int significand_bits[] = {
        [COMPRESS_NONE] = FLT_MANT_DIG, [COMPRESS_FP16] = 11, [COMPRESS_BF16] = 8};
    return 1 << significand_bits[compress];
}

/* -------- one number --------------------------------------------------------------------------
 *
 * Whole-number arithmetic and selections, no branches and no instructions of some CPUs only: the
 * compiler makes vectors of it, and every CPU gets the same bits. `magnitude` is a float32 without
 * its sign, as bits; they order like the numbers.
 */

/* A code anywhere in memory: see unaligned_float in reduce.c. */
typedef uint16_t __attribute__((aligned(1), may_alias)) unaligned_code;

enum { INFINITY_BITS = 0x7F800000 }; /* of a float32; a larger magnitude is a NaN */

KERNEL_PART uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

KERNEL_PART float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Drops the lower `dropped` bits: to nearest, ties to even. */
KERNEL_PART uint32_t drop_bits(uint32_t bits, int dropped)
{
    uint32_t odd = bits >> dropped & 1;
    return (bits + (1u << (dropped - 1)) - 1 + odd) >> dropped;
}

/* `rounded`, but at most `largest` if finite; else infinity, which is largest + 1, or a NaN. */
KERNEL_PART uint32_t at_the_ends(uint32_t magnitude, uint32_t rounded, uint32_t largest,
                                 uint32_t nan)
{
    uint32_t finite = rounded < largest ? rounded : largest;
    uint32_t special = magnitude > INFINITY_BITS ? nan : largest + 1;
    return magnitude < INFINITY_BITS ? finite : special;
}

KERNEL_PART uint16_t bf16_of(float value)
{
    uint32_t bits = bits_of(value), magnitude = bits & 0x7FFFFFFF, sign = bits >> 16 & 0x8000;
    uint32_t nan = magnitude >> 16 | 0x40; /* quiet */
    return (uint16_t)(sign | at_the_ends(magnitude, drop_bits(magnitude, 16), 0x7F7F, nan));
}

KERNEL_PART float float_of_bf16(uint16_t code)
{
    return float_of((uint32_t)code << 16);
}

/*
 * fp16's exponent is smaller by 127 - 15 = 112. Below 2^-14 its spacing is constant, 2^-24, as is
 * that of a float32 between 0.5 and 1: adding 0.5 makes the CPU round there, and the code is what
 * then stands above 0.5. Decoding takes 2^-14 away likewise.
 */
KERNEL_PART uint16_t fp16_of(float value)
{
    uint32_t bits = bits_of(value), magnitude = bits & 0x7FFFFFFF, sign = bits >> 16 & 0x8000;
    uint32_t small = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);
    uint32_t normal = drop_bits(magnitude - (112u << 23), 13);
    uint32_t rounded = magnitude < 113u << 23 ? small : normal;
    uint32_t nan = 0x7E00 | (magnitude >> 13 & 0x3FF); /* quiet */
    return (uint16_t)(sign | at_the_ends(magnitude, rounded, 0x7BFF, nan));
}

KERNEL_PART float float_of_fp16(uint16_t code)
{
    uint32_t sign = (uint32_t)(code & 0x8000) << 16, magnitude = (uint32_t)(code & 0x7FFF) << 13;
    uint32_t normal = magnitude + (112u << 23);
    uint32_t small = bits_of(float_of(magnitude + (113u << 23)) - float_of(113u << 23));
    uint32_t special = magnitude + (224u << 23); /* infinity, NaN: the largest exponent stays it */
    uint32_t finite = magnitude < 1u << 23 ? small : normal;
    return float_of(sign | (magnitude < 31u << 23 ? finite : special));
}

KERNEL_PART uint16_t code_of(enum compress compress, float value)
{
    return compress == COMPRESS_FP16 ? fp16_of(value) : bf16_of(value);
}

KERNEL_PART float value_of(enum compress compress, uint16_t code)
{
    return compress == COMPRESS_FP16 ? float_of_fp16(code) : float_of_bf16(code);
}

/* -------- many: one loop each, made twice with `compress` as a constant ----------------------- */

KERNEL_PART void encode(enum compress compress, unaligned_code *restrict codes,
                        const float *restrict data, size_t count)
{
    for (size_t i = 0; i < count; i++)
        codes[i] = code_of(compress, data[i]);
}

KERNEL_PART void encode_feedback(enum compress compress, unaligned_code *restrict codes,
                                 const float *restrict data, float *restrict residual, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float value = data[i] + residual[i];
        uint16_t code = code_of(compress, value);
        uint32_t left = bits_of(value - value_of(compress, code));
        codes[i] = code;
        residual[i] = float_of((bits_of(value) & 0x7FFFFFFF) < INFINITY_BITS ? left : 0);
    }
}

KERNEL_PART void decode(enum compress compress, float *restrict into,
                        const unaligned_code *restrict codes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        into[i] = value_of(compress, codes[i]);
}

KERNEL_PART void add(enum compress compress, float *restrict into,
                     const unaligned_code *restrict codes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        into[i] += value_of(compress, codes[i]);
}

KERNEL_PART void add_scale(enum compress compress, float *restrict into,
                           const unaligned_code *restrict codes, size_t count, float scale)
{
    for (size_t i = 0; i < count; i++)
        into[i] = (into[i] + value_of(compress, codes[i])) * scale;
}

/* -------- the interface ----------------------------------------------------------------------- */

KERNEL static void encode_plain(enum compress compress, void *codes, const float *data,
                                size_t count)
{
    if (compress == COMPRESS_FP16)
        encode(COMPRESS_FP16, codes, data, count);
    else
        encode(COMPRESS_BF16, codes, data, count);
}

KERNEL static void encode_with_feedback(enum compress compress, void *codes, const float *data,
                                        float *residual, size_t count)
{
    if (compress == COMPRESS_FP16)
        encode_feedback(COMPRESS_FP16, codes, data, residual, count);
    else
        encode_feedback(COMPRESS_BF16, codes, data, residual, count);
}

void compress_encode(enum compress compress, void *codes, const float *data, float *residual,
                     size_t count)
{
    CHECK(compress != COMPRESS_NONE);
    if (residual)
        encode_with_feedback(compress, codes, data, residual, count);
    else
        encode_plain(compress, codes, data, count);
}

KERNEL void compress_decode(enum compress compress, float *into, const void *codes, size_t count)
{
    if (compress == COMPRESS_FP16)
        decode(COMPRESS_FP16, into, codes, count);
    else
        decode(COMPRESS_BF16, into, codes, count);
}

KERNEL void compress_add(enum compress compress, float *into, const void *codes, size_t count)
{
    if (compress == COMPRESS_FP16)
        add(COMPRESS_FP16, into, codes, count);
    else
        add(COMPRESS_BF16, into, codes, count);
}

KERNEL void compress_add_scale(enum compress compress, float *into, const void *codes, size_t count,
                               float scale)
{
    if (compress == COMPRESS_FP16)
        add_scale(COMPRESS_FP16, into, codes, count, scale);
    else
        add_scale(COMPRESS_BF16, into, codes, count, scale);
}
