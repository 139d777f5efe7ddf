#include "common/comm/compress.h"

#include <float.h>
#include "common/base/status.h"
#include "common/comm/float16.h"

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

KERNEL_PART uint16_t code_of(enum compress compress, float value)
{
    return compress == COMPRESS_FP16 ? fp16_of(value, FP16_LARGEST) : bf16_of(value, BF16_LARGEST);
}

KERNEL_PART float value_of(enum compress compress, uint16_t code)
{
    return compress == COMPRESS_FP16 ? float_of_fp16(code) : float_of_bf16(code);
}

/* -------- many: one loop each, compiled twice with `compress` constant ------------------------ */

KERNEL_PART void encode(enum compress compress, any_float16 *restrict codes,
                        const float *restrict data, size_t count)
{
    for (size_t i = 0; i < count; i++)
        codes[i] = code_of(compress, data[i]);
}

KERNEL_PART void encode_feedback(enum compress compress, any_float16 *restrict codes,
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
                        const any_float16 *restrict codes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        into[i] = value_of(compress, codes[i]);
}

KERNEL_PART void add(enum compress compress, float *restrict into,
                     const any_float16 *restrict codes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        into[i] += value_of(compress, codes[i]);
}

KERNEL_PART void add_scale(enum compress compress, float *restrict into,
                           const any_float16 *restrict codes, size_t count, float scale)
{
    for (size_t i = 0; i < count; i++)
        into[i] = (into[i] + value_of(compress, codes[i])) * scale;
}

/* -------- the interface ----------------------------------------------------------------------- */

KERNEL void compress_encode(enum compress compress, void *codes, const float *data, float *residual,
                            size_t count)
{
    CHECK(compress != COMPRESS_NONE);
    if (residual && compress == COMPRESS_FP16)
        encode_feedback(COMPRESS_FP16, codes, data, residual, count);
    else if (residual)
        encode_feedback(COMPRESS_BF16, codes, data, residual, count);
    else if (compress == COMPRESS_FP16)
        encode(COMPRESS_FP16, codes, data, count);
    else
        encode(COMPRESS_BF16, codes, data, count);
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
