#include "common/comm/reduce.h"

#include "common/base/status.h"
#include "common/base/util.h"
#include "common/device/kernel.h"

/* A float anywhere in memory: compiles to the same vector loads, without assuming alignment. */
typedef float __attribute__((aligned(1), may_alias)) unaligned_float;

KERNEL void reduce_add(float *restrict into, const void *restrict source, size_t count)
{
    const unaligned_float *from = source;
    for (size_t i = 0; i < count; i++)
        into[i] += from[i];
}

KERNEL void reduce_add_scale(float *restrict into, const void *restrict source, size_t count,
                             float scale)
{
    const unaligned_float *from = source;
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
    const unaligned_float *x = a, *y = b;
    for (size_t i = 0; i < count; i++)
        into[i] = (x[i] + y[i]) * scale;
}

KERNEL static void copy_scale(float *into, const void *source, size_t count, float scale)
{
    const unaligned_float *from = source;
    for (size_t i = 0; i < count; i++)
        into[i] = from[i] * scale;
}

/* A sum as reduce_in_order is asked for it. */
struct sum {
    float *into;
    const void *const *sources;
    int workers;
    enum compress compress;
    float scale;
};

/* Element `at` of the k-th source from `first` on. */
static const void *source_at(const struct sum *sum, int first, int k, size_t at)
{
    const char *source = sum->sources[(first + k) % sum->workers];
    return source + at * compress_element_bytes(sum->compress);
}

/* Scaling is part of the last addition; by 1 it changes nothing. */
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

/* The elements of `piece`, relative to the span: all with the same first rank. */
static void reduce_piece(const struct sum *sum, int first, struct chunk piece)
{
    enum { BLOCK = 2048 }; /* 8 KB of `into` stay in the L1 cache while every source passes */
    for (size_t done = 0; done < piece.count; done += BLOCK) {
        size_t left = piece.count - done;
        struct chunk block = {piece.offset + done, left < BLOCK ? left : BLOCK};
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
        size_t from = chunk.offset > span.offset ? chunk.offset : span.offset;
        size_t to = chunk.offset + chunk.count < end ? chunk.offset + chunk.count : end;
        if (from < to)
            reduce_piece(&sum, c, (struct chunk){from - span.offset, to - from});
    }
}
