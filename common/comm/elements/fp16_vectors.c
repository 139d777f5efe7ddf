#include "common/comm/elements/fp16_vectors.h"

#ifdef PSRING_F16C

#include <immintrin.h>
#include <stdint.h>

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

/* b where `chosen` says so, or b is a NaN; else a. */
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

size_t fp16_vectors(enum reduce_op op, void *restrict into, const void *restrict from, size_t count,
                    int workers)
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

size_t fp16_vectors(enum reduce_op op, void *restrict into, const void *restrict from, size_t count,
                    int workers)
{
    (void)op;
    (void)into;
    (void)from;
    (void)count;
    (void)workers;
    return 0;
}

#endif
