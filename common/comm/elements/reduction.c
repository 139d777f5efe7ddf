#include "common/comm/elements/reduction.h"

#include <stdint.h>

#include "common/base/status.h"
#include "common/comm/elements/float16.h"
#include "common/comm/elements/fp16_vectors.h"

/* Elements anywhere in memory, whatever type the caller has for them: see unaligned_float in
 * reduce.c. */
#define ANYWHERE __attribute__((aligned(1), may_alias))
typedef float ANYWHERE any_float32;
typedef double ANYWHERE any_float64;
typedef uint16_t ANYWHERE any_float16;
typedef int32_t ANYWHERE any_int32;
typedef int64_t ANYWHERE any_int64;

/* -------- two numbers ------------------------------------------------------------------------- */

/* Floating point, as they are computed with. */
#define FLOAT_OPERATIONS(number)                                                                   \
    KERNEL_PART number number##_add(number a, number b)                                            \
    {                                                                                              \
        return a + b;                                                                              \
    }                                                                                              \
    KERNEL_PART number number##_min(number a, number b)                                            \
    {                                                                                              \
        return b < a || b != b ? b : a;                                                            \
    }                                                                                              \
    KERNEL_PART number number##_max(number a, number b)                                            \
    {                                                                                              \
        return b > a || b != b ? b : a;                                                            \
    }
FLOAT_OPERATIONS(float)
FLOAT_OPERATIONS(double)

/* Whole numbers: a signed sum that does not fit is undefined in C, an unsigned one wraps. */
#define WHOLE_OPERATIONS(number)                                                                   \
    KERNEL_PART number number##_add(number a, number b)                                            \
    {                                                                                              \
        return (number)((u##number)a + (u##number)b);                                              \
    }                                                                                              \
    KERNEL_PART number number##_min(number a, number b)                                            \
    {                                                                                              \
        return b < a ? b : a;                                                                      \
    }                                                                                              \
    KERNEL_PART number number##_max(number a, number b)                                            \
    {                                                                                              \
        return b > a ? b : a;                                                                      \
    }
WHOLE_OPERATIONS(int32_t)
WHOLE_OPERATIONS(int64_t)

/* -------- from memory and back ---------------------------------------------------------------- */

#define SAME(number)                                                                               \
    KERNEL_PART number number##_same(number value)                                                 \
    {                                                                                              \
        return value;                                                                              \
    }
SAME(float)
SAME(double)
SAME(int32_t)
SAME(int64_t)

KERNEL_PART uint16_t fp16_or_infinity(float value)
{
    return fp16_of(value, FP16_INFINITY);
}

/* As bf16_of with BF16_INFINITY, which is where rounding up the largest ends by itself: half the
 * instructions. */
KERNEL_PART uint16_t bf16_or_infinity(float value)
{
    uint32_t bits = bits_of(value), nan = bits >> 16 | 0x40;
    return (uint16_t)((bits & 0x7FFFFFFF) > INFINITY_BITS ? nan : drop_bits(bits, 16));
}

/* -------- many numbers ------------------------------------------------------------------------ */

/* One operation on elements `stored` that are computed with as `number`. */
#define COMBINE(name, op, stored, number, load, store)                                             \
    KERNEL static void name##_##op(void *restrict into, const void *restrict from, size_t count)   \
    {                                                                                              \
        stored *restrict x = into;                                                                 \
        const stored *restrict y = from;                                                           \
        for (size_t i = 0; i < count; i++)                                                         \
            x[i] = store(number##_##op(load(x[i]), load(y[i])));                                   \
    }

/* The last step of one that is as the others. */
#define COMPLETE(name, op)                                                                         \
    static void name##_complete_##op(void *into, const void *from, size_t count, int workers)      \
    {                                                                                              \
        (void)workers;                                                                             \
        name##_##op(into, from, count);                                                            \
    }

#define COMBINE_ALL(name, stored, number, load, store)                                             \
    COMBINE(name, add, stored, number, load, store)                                                \
    COMBINE(name, min, stored, number, load, store)                                                \
    COMBINE(name, max, stored, number, load, store)

#define COMPLETE_ALL(name)                                                                         \
    COMPLETE(name, add)                                                                            \
    COMPLETE(name, min)                                                                            \
    COMPLETE(name, max)

#define AVERAGE(name, stored, number, load, store)                                                 \
    KERNEL static void name##_average(void *restrict into, const void *restrict from,              \
                                      size_t count, int workers)                                   \
    {                                                                                              \
        stored *restrict x = into;                                                                 \
        const stored *restrict y = from;                                                           \
        number divisor = (number)workers;                                                          \
        for (size_t i = 0; i < count; i++)                                                         \
            x[i] = store((number)(number##_add(load(x[i]), load(y[i])) / divisor));                \
    }

/* A processor divides whole numbers four to ten times slower than memory brings them. So multiply:
 * with m = (2^n - 1) / divisor rounded down and a magnitude u of at most 2^(n-1), u m / 2^n is less
 * than the quotient by at most 1/2; rounded down, it is right or one too small. */
#define AVERAGE_WHOLE(name, stored, number, wide)                                                  \
    KERNEL static void name##_average(void *restrict into, const void *restrict from,              \
                                      size_t count, int workers)                                   \
    {                                                                                              \
        stored *restrict x = into;                                                                 \
        const stored *restrict y = from;                                                           \
        const u##number divisor = (u##number)workers, inverse = (u##number) ~0 / divisor;          \
        for (size_t i = 0; i < count; i++) {                                                       \
            number sum = number##_add(x[i], y[i]);                                                 \
            u##number magnitude = sum < 0 ? 0 - (u##number)sum : (u##number)sum;                   \
            u##number quotient = (u##number)((wide)magnitude * inverse >> 8 * sizeof sum);         \
            quotient += magnitude - quotient * divisor >= divisor;                                 \
            x[i] = (number)(sum < 0 ? 0 - quotient : quotient);                                    \
        }                                                                                          \
    }
__extension__ typedef unsigned __int128 wide_of_64;

#define KERNELS(name, stored, number)                                                              \
    COMBINE_ALL(name, stored, number, number##_same, number##_same)                                \
    COMPLETE_ALL(name)

KERNELS(float32, any_float32, float)
AVERAGE(float32, any_float32, float, float_same, float_same)
KERNELS(float64, any_float64, double)
AVERAGE(float64, any_float64, double, double_same, double_same)
KERNELS(int32, any_int32, int32_t)
AVERAGE_WHOLE(int32, any_int32, int32_t, uint64_t)
KERNELS(int64, any_int64, int64_t)
AVERAGE_WHOLE(int64, any_int64, int64_t, wide_of_64)
COMBINE_ALL(bf16, any_float16, float, float_of_bf16, bf16_or_infinity)
AVERAGE(bf16, any_float16, float, float_of_bf16, bf16_or_infinity)
COMPLETE_ALL(bf16)
COMBINE_ALL(fp16_each, any_float16, float, float_of_fp16, fp16_or_infinity)
AVERAGE(fp16_each, any_float16, float, float_of_fp16, fp16_or_infinity)

/* fp16 by the CPU's own conversions as far as they go, the rest by ours. */
#define FP16_COMBINE(op, code)                                                                     \
    static void fp16_##op(void *restrict into, const void *restrict from, size_t count)            \
    {                                                                                              \
        size_t done = fp16_vectors(code, into, from, count, 1);                                    \
        fp16_each_##op((any_float16 *)into + done, (const any_float16 *)from + done,               \
                       count - done);                                                              \
    }
FP16_COMBINE(add, REDUCE_SUM)
FP16_COMBINE(min, REDUCE_MIN)
FP16_COMBINE(max, REDUCE_MAX)
COMPLETE_ALL(fp16)

static void fp16_average(void *restrict into, const void *restrict from, size_t count, int workers)
{
    size_t done = fp16_vectors(REDUCE_AVERAGE, into, from, count, workers);
    fp16_each_average((any_float16 *)into + done, (const any_float16 *)from + done, count - done,
                      workers);
}

/* Whole numbers commute in all. The minimum of 0 and -0 is whichever comes first. */
#define ROW(code, name, whole)                                                                     \
    [code] = {[REDUCE_SUM] = {code, REDUCE_SUM, true, name##_add, name##_complete_add},            \
              [REDUCE_AVERAGE] = {code, REDUCE_AVERAGE, true, name##_add, name##_average},         \
              [REDUCE_MIN] = {code, REDUCE_MIN, whole, name##_min, name##_complete_min},           \
              [REDUCE_MAX] = {code, REDUCE_MAX, whole, name##_max, name##_complete_max}}

static const struct reduction reductions[MESSAGE_DTYPES][REDUCE_OPS] = {
    ROW(MESSAGE_FLOAT32, float32, false), ROW(MESSAGE_FP16, fp16, false),
    ROW(MESSAGE_BF16, bf16, false),       ROW(MESSAGE_FLOAT64, float64, false),
    ROW(MESSAGE_INT32, int32, true),      ROW(MESSAGE_INT64, int64, true),
};

const struct reduction *reduction_of(enum message_dtype dtype, enum reduce_op op)
{
    CHECK(dtype > MESSAGE_ANY_DTYPE && dtype < MESSAGE_DTYPES && op < REDUCE_OPS);
    return &reductions[dtype][op];
}
