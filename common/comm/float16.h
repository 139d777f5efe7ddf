/*
 * Conversions between float32 and 16-bit numbers: fp16 (IEEE 754 binary16) and bf16 (the upper half
 * of a float32). Rounding is to nearest, ties to even. For the loops of a KERNEL.
 *
 * The code uses whole-number arithmetic and selections, no branches and no CPU-specific
 * instructions. The compiler can vectorise it, and every CPU gets the same bits. `magnitude` is a
 * float32 without its sign, as bits, which order like the numbers.
 */
#ifndef PSRING_COMMON_COMM_FLOAT16_H
#define PSRING_COMMON_COMM_FLOAT16_H

#include <stdint.h>
#include <string.h>

#include "common/device/kernel.h"

/* The code for a finite number beyond the largest one: the largest, or infinity. */
enum {
    FP16_LARGEST = 0x7BFF,
    FP16_INFINITY = FP16_LARGEST + 1,
    BF16_LARGEST = 0x7F7F,
    BF16_INFINITY = BF16_LARGEST + 1,
};

/* A code at any address and of any caller's type: the same vector loads without assuming
 * alignment. */
typedef uint16_t __attribute__((aligned(1), may_alias)) any_float16;

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

/* Drops the lower `dropped` bits: rounds to nearest, ties to even. */
KERNEL_PART uint32_t drop_bits(uint32_t bits, int dropped)
{
    uint32_t odd = bits >> dropped & 1;
    return (bits + (1u << (dropped - 1)) - 1 + odd) >> dropped;
}

/* For a finite number `rounded`, but at most `largest`; else infinity or a NaN. */
KERNEL_PART uint32_t at_the_ends(uint32_t magnitude, uint32_t rounded, uint32_t largest,
                                 uint32_t infinity, uint32_t nan)
{
    uint32_t finite = rounded < largest ? rounded : largest;
    uint32_t special = magnitude > INFINITY_BITS ? nan : infinity;
    return magnitude < INFINITY_BITS ? finite : special;
}

KERNEL_PART uint16_t bf16_of(float value, uint32_t largest)
{
    uint32_t bits = bits_of(value), magnitude = bits & 0x7FFFFFFF, sign = bits >> 16 & 0x8000;
    uint32_t nan = magnitude >> 16 | 0x40; /* quiet */
    return (uint16_t)(sign | at_the_ends(magnitude, drop_bits(magnitude, 16), largest,
                                         BF16_INFINITY, nan));
}

KERNEL_PART float float_of_bf16(uint16_t code)
{
    return float_of((uint32_t)code << 16);
}

/*
 * fp16's exponent is smaller by 127 - 15 = 112. Below 2^-14 its spacing is constant, 2^-24, which
 * is also the spacing of a float32 between 0.5 and 1. Adding 0.5 therefore makes the CPU round
 * there, and the code is the excess over 0.5. Decoding subtracts 2^-14 in the same way.
 */
KERNEL_PART uint16_t fp16_of(float value, uint32_t largest)
{
    uint32_t bits = bits_of(value), magnitude = bits & 0x7FFFFFFF, sign = bits >> 16 & 0x8000;
    uint32_t small = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);
    uint32_t normal = drop_bits(magnitude - (112u << 23), 13);
    uint32_t rounded = magnitude < 113u << 23 ? small : normal;
    uint32_t nan = 0x7E00 | (magnitude >> 13 & 0x3FF); /* quiet */
    return (uint16_t)(sign | at_the_ends(magnitude, rounded, largest, FP16_INFINITY, nan));
}

KERNEL_PART float float_of_fp16(uint16_t code)
{
    uint32_t sign = (uint32_t)(code & 0x8000) << 16, magnitude = (uint32_t)(code & 0x7FFF) << 13;
    uint32_t normal = magnitude + (112u << 23);
    uint32_t small = bits_of(float_of(magnitude + (113u << 23)) - float_of(113u << 23));
    uint32_t special = magnitude + (224u << 23); /* infinity and NaN keep the largest exponent */
    uint32_t finite = magnitude < 1u << 23 ? small : normal;
    return float_of(sign | (magnitude < 31u << 23 ? finite : special));
}

#endif
