#include "common/comm/reduce.h"

#include "common/base/check.h"
#include "common/comm/chunk.h"
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

/* Elements [at, at + count) relative to the span, all with the same first rank. */
static void reduce_piece(float *into, const void *const *sources, int workers, int first,
                         struct chunk piece, float scale)
{
    enum { BLOCK = 2048 }; /* 8 KB of `into` stay in the L1 cache while every source passes */
    for (size_t done = 0; done < piece.count; done += BLOCK) {
        size_t at = piece.offset + done;
        size_t count = piece.count - done < BLOCK ? piece.count - done : BLOCK;
        const char *from[2] = {(const char *)sources[first] + at * sizeof(float),
                               (const char *)sources[(first + 1) % workers] + at * sizeof(float)};
        if (workers == 1) {
            copy_scale(into + at, from[0], count, scale);
            continue;
        }
        /* Scaling is part of the last addition; by 1 it changes nothing. */
        add_two(into + at, from[0], from[1], count, workers == 2 ? scale : 1.0f);
        for (int k = 2; k < workers; k++) {
            const char *next = (const char *)sources[(first + k) % workers] + at * sizeof(float);
            if (k == workers - 1)
                reduce_add_scale(into + at, next, count, scale);
            else
                reduce_add(into + at, next, count);
        }
    }
}

void reduce_in_order(float *into, const void *const *sources, int workers, struct reduce_span span,
                     enum reduce_order order, float scale)
{
    CHECK(workers > 0 && span.offset + span.count <= span.total);
    if (order == REDUCE_ORDER_ANY) {
        reduce_piece(into, sources, workers, 0, (struct chunk){0, span.count}, scale);
        return;
    }
    size_t end = span.offset + span.count;
    for (int c = 0; c < workers; c++) {
        struct chunk chunk = chunk_of(span.total, (size_t)workers, (size_t)c);
        size_t from = chunk.offset > span.offset ? chunk.offset : span.offset;
        size_t to = chunk.offset + chunk.count < end ? chunk.offset + chunk.count : end;
        if (from < to)
            reduce_piece(into, sources, workers, c, (struct chunk){from - span.offset, to - from},
                         scale);
    }
}
