/* Numbers of 16 bits: every code, every rounding. Error feedback loses nothing. */
#include "common/comm/compress.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"

enum { CODES = 1 << 16 };

static const enum compress kinds[] = {COMPRESS_FP16, COMPRESS_BF16};

static int exponent_bits(enum compress kind)
{
    return kind == COMPRESS_FP16 ? 5 : 8;
}

/* The value of a code, from its definition, in double precision. */
static double meaning(enum compress kind, uint16_t code)
{
    int fraction_bits = 15 - exponent_bits(kind), bias = (1 << (exponent_bits(kind) - 1)) - 1;
    int exponent = (code & 0x7FFF) >> fraction_bits, fraction = code & ((1 << fraction_bits) - 1);
    double sign = code & 0x8000 ? -1 : 1;
    if (exponent == 2 * bias + 1)
        return fraction ? (double)NAN : sign * (double)INFINITY;
    double significand = (exponent ? 1 << fraction_bits : 0) + fraction;
    return sign * ldexp(significand, (exponent ? exponent : 1) - bias - fraction_bits);
}

static uint16_t encode_one(enum compress kind, float value)
{
    uint16_t code;
    compress_encode(kind, &code, &value, NULL, 1);
    return code;
}

static float decode_one(enum compress kind, uint16_t code)
{
    float value;
    compress_decode(kind, &value, &code, 1);
    return value;
}

/* The nearest number that has a code; of two equally near ones, the one with the even code. It is
 * found by search, because the codes of positive numbers have the order of the numbers. */
static double nearest(enum compress kind, double value)
{
    uint16_t low = 0, high = (uint16_t)(kind == COMPRESS_FP16 ? 0x7BFF : 0x7F7F);
    if (fabs(value) >= meaning(kind, high))
        return copysign(meaning(kind, high), value);
    while (high - low > 1) {
        uint16_t middle = (uint16_t)((low + high) / 2);
        if (meaning(kind, middle) <= fabs(value))
            low = middle;
        else
            high = middle;
    }
    double below = fabs(value) - meaning(kind, low), above = meaning(kind, high) - fabs(value);
    bool up = above < below || (above == below && low % 2);
    return copysign(meaning(kind, up ? high : low), value);
}

Test(compress, every_code_round_trips)
{
    for (size_t k = 0; k < 2; k++) {
        static uint16_t codes[CODES], again[CODES];
        static float values[CODES];
        for (int code = 0; code < CODES; code++)
            codes[code] = (uint16_t)code;
        compress_decode(kinds[k], values, codes, CODES);
        compress_encode(kinds[k], again, values, NULL, CODES);
        for (int code = 0; code < CODES; code++) {
            double expected = meaning(kinds[k], (uint16_t)code);
            if (isnan(expected)) { /* a NaN stays a NaN of the same sign; it may become quiet */
                cr_assert(isnan(values[code]));
                cr_assert(isnan(meaning(kinds[k], again[code])));
                cr_assert_eq(again[code] & 0x8000, code & 0x8000);
                continue;
            }
            cr_assert_eq((double)values[code], expected, "%s code %x", compress_names[kinds[k]],
                         (unsigned)code);
            cr_assert_eq(signbit(values[code]) != 0, code >> 15);
            cr_assert_eq(again[code], code);
        }
    }
}

static void expect_nearest(enum compress kind, float value)
{
    double found = meaning(kind, encode_one(kind, value));
    cr_assert_eq(found, nearest(kind, (double)value), "%s of %a: %a, expected %a",
                 compress_names[kind], (double)value, found, nearest(kind, (double)value));
    cr_assert_eq(signbit(found) != 0, signbit(value) != 0);
}

/* Around every code: the number, the middle to the next one, and the floats next to the middle. */
Test(compress, rounds_to_nearest_even)
{
    for (size_t k = 0; k < 2; k++) {
        int last = kinds[k] == COMPRESS_FP16 ? 0x7BFF : 0x7F7F;
        for (int code = 0; code < last; code++) {
            double here = meaning(kinds[k], (uint16_t)code);
            float middle = (float)(here / 2 + meaning(kinds[k], (uint16_t)(code + 1)) / 2);
            expect_nearest(kinds[k], middle);
            expect_nearest(kinds[k], -middle);
            expect_nearest(kinds[k], nextafterf(middle, 0));
            expect_nearest(kinds[k], nextafterf(middle, INFINITY));
        }
    }
}

Test(compress, random_bits_round_to_nearest)
{
    struct rng_key key = rng_key(7, RNG_TEST, 0);
    for (uint64_t i = 0; i < 200000; i++) {
        struct rng_block random = rng_block(key, i, 0);
        for (int w = 0; w < 4; w++) {
            float value;
            memcpy(&value, &random.word[w], sizeof value);
            if (isfinite(value)) {
                expect_nearest(COMPRESS_FP16, value);
                expect_nearest(COMPRESS_BF16, value);
            }
        }
    }
}

Test(compress, saturates_and_shows_what_is_not_finite)
{
    for (size_t k = 0; k < 2; k++) {
        float largest = (float)nearest(kinds[k], 1e300);
        cr_expect_eq(decode_one(kinds[k], encode_one(kinds[k], 3.4028235e38f)), largest);
        cr_expect_eq(decode_one(kinds[k], encode_one(kinds[k], -3.4028235e38f)), -largest);
        cr_expect_eq(decode_one(kinds[k], encode_one(kinds[k], INFINITY)), INFINITY);
        cr_expect_eq(decode_one(kinds[k], encode_one(kinds[k], -INFINITY)), -INFINITY);
        cr_expect(isnan(decode_one(kinds[k], encode_one(kinds[k], NAN))));
        /* A NaN whose only set fraction bits are dropped. */
        uint32_t bits = 0x7F800001;
        float faint;
        memcpy(&faint, &bits, sizeof faint);
        cr_expect(isnan(decode_one(kinds[k], encode_one(kinds[k], faint))));
    }
    cr_expect_eq(decode_one(COMPRESS_FP16, encode_one(COMPRESS_FP16, 65519.99f)), 65504);
    cr_expect_eq(decode_one(COMPRESS_FP16, encode_one(COMPRESS_FP16, 1e6f)), 65504);
}

Test(compress, facts)
{
    cr_expect_eq(compress_element_bytes(COMPRESS_NONE), 4);
    for (size_t k = 0; k < 2; k++) {
        int exact = compress_exact_integer(kinds[k]);
        for (int n = -exact; n <= exact; n++)
            cr_assert_eq(decode_one(kinds[k], encode_one(kinds[k], (float)n)), (float)n);
        float beyond = (float)(exact + 1);
        cr_expect_neq(decode_one(kinds[k], encode_one(kinds[k], beyond)), beyond);
        cr_expect_eq(compress_element_bytes(kinds[k]), 2);
        cr_expect_eq(compress_float_bytes(kinds[k], 1000), 2000);
    }
    cr_expect_eq(compress_float_bytes(COMPRESS_NONE, 1001), 1001);
}

/* At every alignment the loops give the results of single numbers. */
Test(compress, adding_at_any_alignment)
{
    enum { COUNT = 1003 };
    static uint16_t codes[COUNT];
    static char shifted[sizeof codes + 64];
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < COUNT; i++)
            codes[i] = encode_one(kinds[k], 0.37f * (float)i - 91);
        for (size_t shift = 0; shift < 64; shift += 3) {
            float sums[COUNT], scaled[COUNT];
            memcpy(shifted + shift, codes, sizeof codes);
            for (size_t i = 0; i < COUNT; i++)
                sums[i] = scaled[i] = 1.0f / (float)(i + 1);
            compress_add(kinds[k], sums, shifted + shift, COUNT);
            compress_add_scale(kinds[k], scaled, shifted + shift, COUNT, 1.0f / 3);
            for (size_t i = 0; i < COUNT; i++) {
                float sum = 1.0f / (float)(i + 1) + decode_one(kinds[k], codes[i]);
                cr_assert_eq(sums[i], sum);
                cr_assert_eq(scaled[i], sum * (1.0f / 3));
            }
        }
    }
}

/* -------- error feedback ---------------------------------------------------------------------- */

enum { STEPS = 1000, WIDTH = 67 };

/* Whole multiples of 2^-20 below 2: sums of them with residuals are exact in float32. */
static float gradient(int step, int i)
{
    uint32_t hash = ((uint32_t)step * WIDTH + (uint32_t)i + 1) * 0x9E3779B1u;
    return ((float)(hash >> 12) - (1 << 19)) * 0x1p-20f + 0.3e-2f * (float)(i % 3);
}

static float on_grid(float value)
{
    return (float)(ldexp(rint(ldexp((double)value, 20)), -20));
}

/* At every step the sum of all sent values and the residual equals the exact sum, bit by bit. */
Test(compress, feedback_sends_everything_in_the_end)
{
    for (size_t k = 0; k < 2; k++) {
        float residual[WIDTH] = {0};
        double sent[WIDTH] = {0}, wanted[WIDTH] = {0};
        for (int step = 0; step < STEPS; step++) {
            float data[WIDTH], decoded[WIDTH];
            uint16_t codes[WIDTH];
            for (int i = 0; i < WIDTH; i++)
                data[i] = on_grid(gradient(step, i));
            compress_encode(kinds[k], codes, data, residual, WIDTH);
            compress_decode(kinds[k], decoded, codes, WIDTH);
            for (int i = 0; i < WIDTH; i++) {
                sent[i] += (double)decoded[i];
                wanted[i] += (double)data[i];
                cr_assert_eq(wanted[i] - sent[i], (double)residual[i]);
                /* Half a unit in the last place of a number below 1. */
                cr_assert_leq(fabsf(residual[i]), kinds[k] == COMPRESS_FP16 ? 0x1p-12f : 0x1p-9f);
            }
        }
    }
}

/* Without feedback, a value below half of the smallest number is lost at every step. */
Test(compress, feedback_keeps_what_rounding_loses)
{
    const float small = 1e-8f; /* fp16: a third of half of 2^-24 */
    float residual = 0;
    double with = 0, without = 0;
    for (int step = 0; step < STEPS; step++) {
        uint16_t code;
        compress_encode(COMPRESS_FP16, &code, &small, &residual, 1);
        with += (double)decode_one(COMPRESS_FP16, code);
        without += (double)decode_one(COMPRESS_FP16, encode_one(COMPRESS_FP16, small));
    }
    cr_expect_eq(without, 0);
    cr_expect_float_eq(with, STEPS * (double)small, 0x1p-24);
}

/* Values that are not finite are sent unchanged and leave no residual. A value above the largest
 * number is cut off, and the remainder is sent later. */
Test(compress, feedback_after_what_does_not_fit)
{
    const float nothing = 0, large = 70000;
    for (size_t k = 0; k < 2; k++) {
        float bad[2] = {NAN, -INFINITY}, residual[2] = {0, 0};
        uint16_t codes[2];
        compress_encode(kinds[k], codes, bad, residual, 2);
        cr_expect(isnan(decode_one(kinds[k], codes[0])));
        cr_expect_eq(decode_one(kinds[k], codes[1]), -INFINITY);
        cr_expect(residual[0] == 0 && residual[1] == 0);
    }
    float residual = 0;
    uint16_t code;
    compress_encode(COMPRESS_FP16, &code, &large, &residual, 1);
    cr_expect_eq(decode_one(COMPRESS_FP16, code), 65504);
    compress_encode(COMPRESS_FP16, &code, &nothing, &residual, 1);
    cr_expect_eq(decode_one(COMPRESS_FP16, code), 70000 - 65504);
    cr_expect_eq(residual, 0);
}
