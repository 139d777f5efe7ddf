#include "common/comm/reduce.h"

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/base/util.h"
#include "common/comm/float16.h"
#include "common/device/kernel.h"

/*
 * Reductions of fp16 on CPUs that convert it in hardware (F16C of x86, since 2013). The code of
 * float16.h converts with whole numbers on every CPU, but a sum then costs three times the memory
 * traffic. Both give the same bits.
 */

#ifdef PSRING_F16C

#include <immintrin.h>

#define F16C __attribute__((target("avx2,f16c")))
#define F16C_PART static inline __attribute__((always_inline, target("avx2,f16c")))

enum { WIDTH_BYTES = 16 };

F16C_PART __m256 sum_of(__m256 a, __m256 b, __m256 workers)
{
    (void)workers;
    return _mm256_add_ps(a, b);
}

F16C_PART __m256 average_of(__m256 a, __m256 b, __m256 workers)
{
    return _mm256_div_ps(_mm256_add_ps(a, b), workers);
}

/* Selects b if `chosen` is set or b is a NaN, else a. */
F16C_PART __m256 choose(__m256 a, __m256 b, __m256 chosen)
{
    return _mm256_blendv_ps(a, b, _mm256_or_ps(chosen, _mm256_cmp_ps(b, b, _CMP_UNORD_Q)));
}

F16C_PART __m256 min_of(__m256 a, __m256 b, __m256 workers)
{
    (void)workers;
    return choose(a, b, _mm256_cmp_ps(b, a, _CMP_LT_OQ));
}

F16C_PART __m256 max_of(__m256 a, __m256 b, __m256 workers)
{
    (void)workers;
    return choose(a, b, _mm256_cmp_ps(b, a, _CMP_GT_OQ));
}

#define VECTORS(op)                                                                                \
    F16C static size_t op##_vectors(char *restrict x, const char *restrict y, size_t bytes,        \
                                    float divisor)                                                 \
    {                                                                                              \
        const __m256 workers = _mm256_set1_ps(divisor);                                            \
        size_t i = 0;                                                                              \
        for (; bytes - i >= WIDTH_BYTES; i += WIDTH_BYTES) {                                       \
            __m256 a = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i_u *)(x + i)));               \
            __m256 b = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i_u *)(y + i)));               \
            __m128i result = _mm256_cvtps_ph(op##_of(a, b, workers), _MM_FROUND_TO_NEAREST_INT);   \
            _mm_storeu_si128((__m128i_u *)(x + i), result);                                        \
        }                                                                                          \
        return i;                                                                                  \
    }
VECTORS(sum)
VECTORS(average)
VECTORS(min)
VECTORS(max)

/* Applies `op` to the first elements of both; divides an average by `workers`. Returns how many it
 * did: nearly all, or none if the CPU or the compiler lacks F16C. The caller does the remaining
 * ones. */
static size_t fp16_vectors(enum reduce_op op, void *restrict into, const void *restrict from,
                           size_t count, int workers)
{
    static size_t (*const vectors[REDUCE_OPS])(char *restrict, const char *restrict, size_t,
                                               float) = {[REDUCE_SUM] = sum_vectors,
                                                         [REDUCE_AVERAGE] = average_vectors,
                                                         [REDUCE_MIN] = min_vectors,
                                                         [REDUCE_MAX] = max_vectors};
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("f16c"))
        return 0;
    return vectors[op](into, from, count * sizeof(uint16_t), (float)workers) / sizeof(uint16_t);
}

#else

static size_t fp16_vectors(enum reduce_op op, void *restrict into, const void *restrict from,
                           size_t count, int workers)
{
    (void)op;
    (void)into;
    (void)from;
    (void)count;
    (void)workers;
    return 0;
}

#endif

/* Elements at any address and of any caller's type: the same vector loads without assuming
 * alignment. */
#define ANYWHERE __attribute__((aligned(1), may_alias))
typedef float ANYWHERE any_float32;
typedef double ANYWHERE any_float64;
typedef int32_t ANYWHERE any_int32;
typedef int64_t ANYWHERE any_int64;

/* -------- two numbers ------------------------------------------------------------------------- */

/* Floating point, in the type of the computation. */
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

/* Whole numbers: signed overflow is undefined in C, unsigned addition wraps. */
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

/* Equals bf16_of with BF16_INFINITY in half the instructions, because rounding up the largest value
 * gives infinity. */
KERNEL_PART uint16_t bf16_or_infinity(float value)
{
    uint32_t bits = bits_of(value), nan = bits >> 16 | 0x40;
    return (uint16_t)((bits & 0x7FFFFFFF) > INFINITY_BITS ? nan : drop_bits(bits, 16));
}

/* -------- many numbers ------------------------------------------------------------------------ */

/* One operation on elements of type `stored`, computed as `number`. */
#define COMBINE(name, op, stored, number, load, store)                                             \
    KERNEL static void name##_##op(void *restrict into, const void *restrict from, size_t count)   \
    {                                                                                              \
        stored *restrict x = into; /* NOLINT(bugprone-macro-parentheses): a type */                \
        const stored *restrict y = from;                                                           \
        for (size_t i = 0; i < count; i++)                                                         \
            x[i] = store(number##_##op(load(x[i]), load(y[i])));                                   \
    }

/* The last step of an operation whose steps are all alike. */
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
        stored *restrict x = into; /* NOLINT(bugprone-macro-parentheses): a type */                \
        const stored *restrict y = from;                                                           \
        number divisor = (number)workers;                                                          \
        for (size_t i = 0; i < count; i++)                                                         \
            x[i] = store((number)(number##_add(load(x[i]), load(y[i])) / divisor));                \
    }

/* A processor divides whole numbers four to ten times slower than memory delivers them, so this
 * multiplies. Take m = (2^n - 1) / divisor, rounded down, and a magnitude u of at most 2^(n-1).
 * Then u m / 2^n is less than the quotient by at most 1/2. Rounded down, it is right or one too
 * small. */
#define AVERAGE_WHOLE(name, stored, number, wide)                                                  \
    KERNEL static void name##_average(void *restrict into, const void *restrict from,              \
                                      size_t count, int workers)                                   \
    {                                                                                              \
        stored *restrict x = into; /* NOLINT(bugprone-macro-parentheses): a type */                \
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

/* fp16 by the CPU's conversions as far as they go; float16.h does the remainder. */
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

/* Whole numbers commute. The minimum of 0 and -0 depends on their order. */
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

void reduce_add(float *restrict into, const void *restrict source, size_t count)
{
    float32_add(into, source, count);
}

KERNEL void reduce_add_scale(float *restrict into, const void *restrict source, size_t count,
                             float scale)
{
    const any_float32 *from = source;
    for (size_t i = 0; i < count; i++)
        into[i] = (into[i] + from[i]) * scale;
}

KERNEL void reduce_scale(float *data, size_t count, float scale)
{
    for (size_t i = 0; i < count; i++)
        data[i] *= scale;
}

KERNEL static void add_two(float *restrict into, const void *restrict a, const void *restrict b,
                           size_t count, float scale)
{
    const any_float32 *x = a, *y = b;
    for (size_t i = 0; i < count; i++)
        into[i] = (x[i] + y[i]) * scale;
}

KERNEL static void copy_scale(float *into, const void *source, size_t count, float scale)
{
    const any_float32 *from = source;
    for (size_t i = 0; i < count; i++)
        into[i] = from[i] * scale;
}

/* The arguments of reduce_in_order. */
struct sum {
    float *into;
    const void *const *sources;
    int workers;
    enum compress compress;
    float scale;
};

/* Element `at` of source first + k (modulo the number of workers). */
static const void *source_at(const struct sum *sum, int first, int k, size_t at)
{
    const char *source = sum->sources[(first + k) % sum->workers];
    return source + at * compress_element_bytes(sum->compress);
}

/* The last addition includes the scaling. A scale of 1 changes nothing. */
static void reduce_floats(const struct sum *sum, int first, struct chunk block)
{
    size_t at = block.offset, count = block.count;
    float *into = sum->into + at;
    if (sum->workers == 1) {
        copy_scale(into, source_at(sum, first, 0, at), count, sum->scale);
        return;
    }
    add_two(into, source_at(sum, first, 0, at), source_at(sum, first, 1, at), count,
            sum->workers == 2 ? sum->scale : 1.0f);
    for (int k = 2; k < sum->workers; k++) {
        if (k == sum->workers - 1)
            reduce_add_scale(into, source_at(sum, first, k, at), count, sum->scale);
        else
            reduce_add(into, source_at(sum, first, k, at), count);
    }
}

static void reduce_compressed(const struct sum *sum, int first, struct chunk block)
{
    size_t at = block.offset, count = block.count;
    float *into = sum->into + at;
    compress_decode(sum->compress, into, source_at(sum, first, 0, at), count);
    for (int k = 1; k < sum->workers - 1; k++)
        compress_add(sum->compress, into, source_at(sum, first, k, at), count);
    if (sum->workers == 1)
        reduce_scale(into, count, sum->scale);
    else
        compress_add_scale(sum->compress, into, source_at(sum, first, sum->workers - 1, at), count,
                           sum->scale);
}

/* Reduces `piece` (relative to the span), whose elements all start at rank `first`. */
static void reduce_piece(const struct sum *sum, int first, struct chunk piece)
{
    enum { BLOCK = 2048 }; /* 8 KB of `into` stay in the L1 cache for all sources */
    for (size_t done = 0; done < piece.count; done += BLOCK) {
        struct chunk block = {piece.offset + done, size_smaller(piece.count - done, BLOCK)};
        if (sum->compress == COMPRESS_NONE)
            reduce_floats(sum, first, block);
        else
            reduce_compressed(sum, first, block);
    }
}

void reduce_in_order(float *into, const void *const *sources, int workers, struct reduce_span span,
                     enum reduce_order order, float scale)
{
    const struct sum sum = {into, sources, workers, span.compress, scale};
    CHECK(workers > 0 && span.offset + span.count <= span.total);
    if (order == REDUCE_ORDER_ANY) {
        reduce_piece(&sum, 0, (struct chunk){0, span.count});
        return;
    }
    size_t end = span.offset + span.count;
    for (int c = 0; c < workers; c++) {
        struct chunk chunk = chunk_of(span.total, (size_t)workers, (size_t)c);
        size_t from = size_larger(chunk.offset, span.offset);
        size_t to = size_smaller(chunk.offset + chunk.count, end);
        if (from < to)
            reduce_piece(&sum, c, (struct chunk){from - span.offset, to - from});
    }
}
