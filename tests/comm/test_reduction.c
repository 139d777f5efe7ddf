/* The table of reductions, compared with one number at a time. Covers every type and operation,
 * lengths around the width of vectors, and any alignment. */
#include "common/comm/reduce.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { LONGEST = 131, WORKERS = 3 };

/* An element of any type. */
union element {
    float f32;
    double f64;
    uint16_t f16;
    int32_t i32;
    int64_t i64;
    unsigned char bytes[8];
};

/* -------- numbers of 16 bits, from their definition ------------------------------------------- */

static double decode16(uint16_t code, int fraction_bits)
{
    int exponent_bits = 15 - fraction_bits, bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = code >> fraction_bits & ((1 << exponent_bits) - 1);
    int fraction = code & ((1 << fraction_bits) - 1);
    double sign = code & 0x8000 ? -1 : 1;
    if (exponent == (1 << exponent_bits) - 1)
        return fraction ? (double)NAN : sign * (double)INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, 1 - bias - fraction_bits);
    return sign * ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
}

/* The code nearest to `value`; ties go to the even code. Codes of one sign have their values'
 * order. */
static uint16_t encode16(double value, int fraction_bits)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0, infinity;
    infinity = (uint16_t)(((1 << (15 - fraction_bits)) - 1) << fraction_bits);
    double magnitude = fabs(value);
    if (isnan(value))
        return (uint16_t)(infinity | 1);
    uint16_t low = 0, high = infinity;
    while (high - low > 1) {
        uint16_t middle = (uint16_t)((low + high) / 2);
        if (decode16(middle, fraction_bits) <= magnitude)
            low = middle;
        else
            high = middle;
    }
    /* Above the largest number, infinity has the place of the next number. */
    double below = decode16(low, fraction_bits);
    double above = high == infinity ? 2 * below - decode16((uint16_t)(low - 1), fraction_bits)
                                    : decode16(high, fraction_bits);
    bool up = magnitude - below > above - magnitude ||
              (magnitude - below == above - magnitude && (low & 1) != 0);
    return (uint16_t)(sign | (up ? high : low));
}

static int fraction_bits(enum message_dtype dtype)
{
    return dtype == MESSAGE_FP16 ? 10 : 7;
}

/* -------- the reference ----------------------------------------------------------------------- */

static double of_floats(enum reduce_op op, double a, double b, bool single, int divisor)
{
    if (op == REDUCE_MIN)
        return isnan(a) || isnan(b) ? (double)NAN : fmin(a, b);
    if (op == REDUCE_MAX)
        return isnan(a) || isnan(b) ? (double)NAN : fmax(a, b);
    if (single) {
        float sum = (float)a + (float)b;
        return (double)(divisor > 1 ? sum / (float)divisor : sum);
    }
    return divisor > 1 ? (a + b) / divisor : a + b;
}

static int64_t of_whole(enum reduce_op op, int64_t a, int64_t b, bool narrow, int divisor)
{
    if (op == REDUCE_MIN)
        return a < b ? a : b;
    if (op == REDUCE_MAX)
        return a > b ? a : b;
    int64_t sum = narrow ? (int32_t)(uint32_t)((uint64_t)a + (uint64_t)b)
                         : (int64_t)((uint64_t)a + (uint64_t)b);
    return sum / divisor;
}

static union element expected(enum message_dtype dtype, enum reduce_op op, union element a,
                              union element b, int divisor)
{
    union element result = {.i64 = 0};
    int bits = fraction_bits(dtype);
    switch (dtype) {
    case MESSAGE_FLOAT32:
        result.f32 = (float)of_floats(op, (double)a.f32, (double)b.f32, true, divisor);
        break;
    case MESSAGE_FLOAT64:
        result.f64 = of_floats(op, a.f64, b.f64, false, divisor);
        break;
    case MESSAGE_INT32:
        result.i32 = (int32_t)of_whole(op, a.i32, b.i32, true, divisor);
        break;
    case MESSAGE_INT64:
        result.i64 = of_whole(op, a.i64, b.i64, false, divisor);
        break;
    default:
        result.f16 = encode16(
            of_floats(op, decode16(a.f16, bits), decode16(b.f16, bits), true, divisor), bits);
        break;
    }
    return result;
}

static bool is_nan(enum message_dtype dtype, union element value)
{
    if (dtype == MESSAGE_FLOAT32)
        return isnan(value.f32);
    if (dtype == MESSAGE_FLOAT64)
        return isnan(value.f64);
    return (dtype == MESSAGE_FP16 || dtype == MESSAGE_BF16) &&
           isnan(decode16(value.f16, fraction_bits(dtype)));
}

/* -------- data -------------------------------------------------------------------------------- */

/* Any bits for whole numbers and those of 16 bits, including NaN and infinity. Floats are in a
 * range where additions round, and sometimes NaN. */
static union element element_of(enum message_dtype dtype, uint64_t seed)
{
    union element element = {.i64 = 0};
    uint64_t bits = (seed + 1) * UINT64_C(0x9E3779B97F4A7C15);
    bits ^= bits >> 29;
    double value = ldexp((double)(int32_t)(bits >> 32), (int)(bits & 31) - 31);
    if (seed % 37 == 5)
        value = seed % 2 ? (double)NAN : (double)INFINITY;
    if (dtype == MESSAGE_FLOAT32)
        element.f32 = (float)value;
    else if (dtype == MESSAGE_FLOAT64)
        element.f64 = value;
    else
        memcpy(element.bytes, &bits, message_element_bytes(dtype));
    return element;
}

static void check(enum message_dtype dtype, enum reduce_op op, size_t count, size_t shift,
                  bool last)
{
    static unsigned char into_memory[(LONGEST + 2) * 8], from_memory[(LONGEST + 2) * 8];
    const struct reduction *reduction = reduction_of(dtype, op);
    size_t bytes = message_element_bytes(dtype);
    unsigned char *into = into_memory + shift, *from = from_memory + 2 * shift;
    cr_assert(reduction->dtype == dtype);
    for (size_t i = 0; i < count; i++) {
        union element a = element_of(dtype, 2 * i), b = element_of(dtype, 2 * i + 77);
        memcpy(into + i * bytes, a.bytes, bytes);
        memcpy(from + i * bytes, b.bytes, bytes);
    }
    memset(into + count * bytes, 0xA5, 8);
    if (last)
        reduction->complete(into, from, count, WORKERS);
    else
        reduction->combine(into, from, count);
    for (size_t i = 0; i < count; i++) {
        union element a = element_of(dtype, 2 * i), b = element_of(dtype, 2 * i + 77);
        union element found = {.i64 = 0};
        memcpy(found.bytes, into + i * bytes, bytes);
        union element wanted =
            expected(dtype, op, a, b, last && op == REDUCE_AVERAGE ? WORKERS : 1);
        if (is_nan(dtype, wanted))
            cr_assert(is_nan(dtype, found), "type %d, op %d, element %zu", dtype, op, i);
        else
            cr_assert_eq(memcmp(found.bytes, wanted.bytes, bytes), 0,
                         "type %d, op %d, element %zu of %zu: found %llx, expected %llx", dtype, op,
                         i, count, (unsigned long long)found.i64, (unsigned long long)wanted.i64);
    }
    for (size_t i = 0; i < 8; i++)
        cr_assert_eq(into[count * bytes + i], 0xA5, "written beyond the end");
}

Test(reduction, every_type_and_operation_is_as_one_number_at_a_time)
{
    for (enum message_dtype dtype = MESSAGE_FLOAT32; dtype < MESSAGE_DTYPES; dtype++) {
        for (enum reduce_op op = REDUCE_SUM; op < REDUCE_OPS; op++) {
            for (size_t count = 0; count <= LONGEST; count += count < 5 ? 1 : 21) {
                check(dtype, op, count, 0, false);
                check(dtype, op, count, 1, true);
                check(dtype, op, count, 3, false);
            }
        }
    }
}

static uint16_t sum16(enum message_dtype dtype, uint16_t a, uint16_t b)
{
    reduction_of(dtype, REDUCE_SUM)->combine(&a, &b, 1);
    return a;
}

Test(reduction, numbers_of_16_bits_at_the_ends)
{
    cr_expect_eq(sum16(MESSAGE_FP16, 0x7BFF, 0x7BFF), 0x7C00, "65504 + 65504 is infinity");
    cr_expect_eq(sum16(MESSAGE_FP16, 0x7BFF, 0x4BFF), 0x7BFF, "65504 + 15.99 rounds down");
    cr_expect_eq(sum16(MESSAGE_FP16, 0x7BFF, 0x4C00), 0x7C00, "65504 + 16 is halfway: to even");
    cr_expect_eq(sum16(MESSAGE_FP16, 0x0001, 0x0001), 0x0002, "the smallest numbers");
    cr_expect_eq(sum16(MESSAGE_BF16, 0x7F7F, 0x7F7F), 0x7F80);
    cr_expect_eq(sum16(MESSAGE_BF16, 0x3F80, 0x3B80), 0x3F80, "1 + 2^-8 is halfway: to even");
    cr_expect_eq(sum16(MESSAGE_BF16, 0x3F81, 0x3B80), 0x3F82);
}

/* All numbers of 16 bits: many at a time, for which CPUs may have special instructions, and one by
 * one. Both give the same bits. If both numbers are NaN, either may be the result. */
Test(reduction, all_numbers_of_16_bits_by_many_as_one_by_one)
{
    enum { CODES = 1 << 16, PARTNERS = 23 };
    static uint16_t from[CODES], many[CODES];
    for (enum message_dtype dtype = MESSAGE_FP16; dtype <= MESSAGE_BF16; dtype++) {
        for (unsigned partner = 0; partner < PARTNERS * REDUCE_OPS; partner++) {
            const struct reduction *reduction = reduction_of(dtype, partner % REDUCE_OPS);
            int bits = fraction_bits(dtype);
            for (unsigned code = 0; code < CODES; code++) {
                many[code] = (uint16_t)code;
                from[code] =
                    (uint16_t)(partner < REDUCE_OPS ? code : code * (2 * partner + 1) + partner);
            }
            reduction->complete(many, from, CODES, WORKERS);
            for (unsigned code = 0; code < CODES; code++) {
                uint16_t one = (uint16_t)code;
                reduction->complete(&one, &from[code], 1, WORKERS);
                bool nans =
                    isnan(decode16((uint16_t)code, bits)) && isnan(decode16(from[code], bits));
                cr_assert(one == many[code] || (nans && isnan(decode16(many[code], bits))),
                          "type %d, op %u, %04x and %04x: %04x, one by one %04x", dtype,
                          partner % REDUCE_OPS, code, from[code], many[code], one);
            }
        }
    }
}

/* Averages of whole numbers use a multiplication instead of a division. Tests quotients, the
 * numbers next to them, and the extremes. */
Test(reduction, averages_of_whole_numbers_are_divisions)
{
    static const int64_t ends[] = {INT64_MIN, INT64_MAX, INT32_MIN, INT32_MAX, 0};
    for (int workers = 2; workers < 1100; workers += workers < 70 ? 1 : 103) {
        for (int64_t k = -70; k <= 70; k++) {
            for (size_t end = 0; end < sizeof ends / sizeof *ends; end++) {
                int64_t multiple = (ends[end] / workers + (ends[end] > 0 ? -1 : 1) * 35) * workers;
                int64_t values[] = {multiple + k, (int64_t)((uint64_t)ends[end] + (uint64_t)k)};
                for (size_t v = 0; v < 2; v++) {
                    int64_t found = values[v], nothing = 0;
                    int32_t narrow = (int32_t)values[v], found_narrow = narrow, no = 0;
                    reduction_of(MESSAGE_INT64, REDUCE_AVERAGE)
                        ->complete(&found, &nothing, 1, workers);
                    reduction_of(MESSAGE_INT32, REDUCE_AVERAGE)
                        ->complete(&found_narrow, &no, 1, workers);
                    cr_assert_eq(found, values[v] / workers);
                    cr_assert_eq(found_narrow, narrow / workers);
                }
            }
        }
    }
}

Test(reduction, whole_numbers_wrap_and_their_average_is_cut_off)
{
    int32_t a = INT32_MAX, b = 1;
    reduction_of(MESSAGE_INT32, REDUCE_SUM)->combine(&a, &b, 1);
    cr_expect_eq(a, INT32_MIN);
    int64_t c = -7, d = 3;
    reduction_of(MESSAGE_INT64, REDUCE_AVERAGE)->complete(&c, &d, 1, 3);
    cr_expect_eq(c, -1);
}

/* If the table says that an operation commutes, two ranks get the same bits in either order. */
Test(reduction, what_commutes)
{
    for (enum message_dtype dtype = MESSAGE_FLOAT32; dtype < MESSAGE_DTYPES; dtype++) {
        for (enum reduce_op op = REDUCE_SUM; op < REDUCE_OPS; op++) {
            const struct reduction *reduction = reduction_of(dtype, op);
            for (uint64_t seed = 0; reduction->commutes && seed < 1000; seed++) {
                union element a = element_of(dtype, seed), b = element_of(dtype, 5 * seed + 1);
                union element ab = a, ba = b;
                reduction->complete(&ab, &b, 1, 2);
                reduction->complete(&ba, &a, 1, 2);
                cr_assert(is_nan(dtype, ab) ? is_nan(dtype, ba) : ab.i64 == ba.i64);
            }
        }
    }
    cr_expect(reduction_of(MESSAGE_FP16, REDUCE_AVERAGE)->commutes);
    cr_expect_not(reduction_of(MESSAGE_FLOAT32, REDUCE_MIN)->commutes, "0 and -0");
}
