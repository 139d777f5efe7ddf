#include "common/comm/codec.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/status.h"
#include "common/comm/backend.h"
#include "common/comm/reduce.h"

enum status codec_init(struct codec *codec, const struct backend_env *site, size_t bucket,
                       size_t count)
{
    const struct comm_options *options = site->options;
    *codec = (struct codec){.compress = options->compress,
                            .reduction = options->reduction,
                            .workers = site->workers,
                            .bucket = (uint32_t)bucket,
                            .count = count};
    CHECK(options->compress == COMPRESS_NONE || !options->reduction);
    if (options->compress == COMPRESS_NONE)
        return STATUS_OK;
    codec->image = calloc(count + 1, sizeof *codec->image);
    if (options->error_feedback)
        codec->residual = calloc(count + 1, sizeof *codec->residual);
    if (codec->image && (codec->residual || !options->error_feedback))
        return STATUS_OK;
    log_error("no memory to compress a bucket of %zu elements", count);
    codec_fini(codec);
    return STATUS_NO_MEMORY;
}

void codec_fini(struct codec *codec)
{
    free(codec->image);
    free(codec->residual);
    *codec = (struct codec){0};
}

enum status codecs_new(struct codec **codecs, const struct backend_env *site)
{
    enum status status = STATUS_OK;
    const struct comm_layout *layout = site->layout;
    *codecs = calloc(layout->buckets + 1, sizeof **codecs);
    if (!*codecs)
        return FAIL(STATUS_NO_MEMORY, "no memory for %zu buckets", layout->buckets);
    for (size_t b = 0; status == STATUS_OK && b < layout->buckets; b++)
        status = codec_init(&(*codecs)[b], site, b, layout->counts[b]);
    return status;
}

void codecs_free(struct codec *codecs, size_t buckets)
{
    for (size_t b = 0; codecs && b < buckets; b++)
        codec_fini(&codecs[b]);
    free(codecs);
}

float *codecs_state(const struct codec *codecs, size_t buckets, size_t index, size_t *count)
{
    if (index >= buckets)
        return NULL;
    *count = codecs[index].count;
    return codecs[index].residual;
}

enum message_dtype codec_dtype(enum compress compress)
{
    static const enum message_dtype dtypes[] = {[COMPRESS_NONE] = MESSAGE_FLOAT32,
                                                [COMPRESS_FP16] = MESSAGE_FP16,
                                                [COMPRESS_BF16] = MESSAGE_BF16};
    return dtypes[compress];
}

size_t codec_element_bytes(const struct comm_options *options)
{
    return options->reduction ? message_element_bytes(options->reduction->dtype)
                              : compress_element_bytes(options->compress);
}

size_t codec_memory_bytes(const struct comm_options *options)
{
    return options->reduction ? message_element_bytes(options->reduction->dtype) : sizeof(float);
}

static enum message_dtype dtype_of(const struct codec *codec)
{
    return codec->reduction ? codec->reduction->dtype : codec_dtype(codec->compress);
}

/* The address of element `offset` of uncompressed data. */
static void *element_at(const struct codec *codec, void *data, size_t offset)
{
    return (char *)data + offset * message_element_bytes(dtype_of(codec));
}

struct message codec_message(const struct codec *codec, enum message_kind kind, uint64_t step,
                             struct chunk span)
{
    enum message_dtype dtype = dtype_of(codec);
    size_t bytes = message_element_bytes(dtype);
    return (struct message){.kind = kind,
                            .step = step,
                            .bucket = codec->bucket,
                            .dtype = dtype,
                            .offset = span.offset * bytes,
                            .length = span.count * bytes};
}

static float *residual_of(const struct codec *codec, size_t offset)
{
    return codec->residual ? codec->residual + offset : NULL;
}

const void *codec_encode(struct codec *codec, const void *data, struct chunk span)
{
    CHECK(span.offset + span.count <= codec->count);
    if (codec->compress == COMPRESS_NONE)
        return (const char *)data + span.offset * message_element_bytes(dtype_of(codec));
    uint16_t *codes = codec->image + span.offset;
    compress_encode(codec->compress, codes, (const float *)data + span.offset,
                    residual_of(codec, span.offset), span.count);
    return codes;
}

void *codec_wire(const struct codec *codec, void *data, struct chunk span)
{
    if (codec->compress == COMPRESS_NONE)
        return element_at(codec, data, span.offset);
    return codec->image + span.offset;
}

void codec_add(const struct codec *codec, void *data, struct chunk span, const void *payload)
{
    if (codec->reduction)
        codec->reduction->combine(element_at(codec, data, span.offset), payload, span.count);
    else if (codec->compress == COMPRESS_NONE)
        reduce_add((float *)data + span.offset, payload, span.count);
    else
        compress_add(codec->compress, (float *)data + span.offset, payload, span.count);
}

void codec_complete(struct codec *codec, void *data, struct chunk span, const void *payload,
                    float scale)
{
    enum { BLOCK = 2048 }; /* 8 KB stay in the L1 cache from the sum to its rounding */
    const char *codes = payload;
    if (codec->reduction) {
        codec->reduction->complete(element_at(codec, data, span.offset), payload, span.count,
                                   codec->workers);
        return;
    }
    if (codec->compress == COMPRESS_NONE) {
        reduce_add_scale((float *)data + span.offset, payload, span.count, scale);
        return;
    }
    for (size_t done = 0; done < span.count; done += BLOCK) {
        struct chunk block = {span.offset + done, size_smaller(span.count - done, BLOCK)};
        compress_add_scale(codec->compress, (float *)data + block.offset,
                           codes + done * sizeof(uint16_t), block.count, scale);
        codec_take(codec, data, block, codec_encode(codec, data, block));
    }
}

void codec_alone(const struct codec *codec, void *data, float scale)
{
    if (!codec->reduction) /* the average of one value is the value */
        reduce_scale(data, codec->count, scale);
}

void codec_take(const struct codec *codec, void *data, struct chunk span, const void *payload)
{
    void *wire = codec_wire(codec, data, span);
    if (payload != wire && span.count > 0)
        memcpy(wire, payload, span.count * message_element_bytes(dtype_of(codec)));
    if (codec->compress != COMPRESS_NONE)
        compress_decode(codec->compress, (float *)data + span.offset, wire, span.count);
}
