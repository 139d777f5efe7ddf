/* The reduction kernels and the rule of order give the same bits as plain loops. */
#include <criterion/criterion.h>
#include <string.h>

#include "common/base/util.h"
#include "common/comm/reduce.h"

enum { COUNT = 5003 };

static float value(int worker, size_t i)
{
    return 1.0f / (float)(1 + (i * 31 + (size_t)worker * 17) % 1009) - 0.01f * (float)worker;
}

static void fill(float *data, int worker, size_t count)
{
    for (size_t i = 0; i < count; i++)
        data[i] = value(worker, i);
}

/* A payload can be at any address of a receive buffer: every alignment gives the same bits. */
Test(reduce, any_alignment)
{
    static float into[COUNT], source[COUNT];
    static char shifted[sizeof source + 64];
    fill(source, 1, COUNT);
    for (size_t shift = 0; shift < 64; shift += 3) {
        memcpy(shifted + shift, source, sizeof source);
        fill(into, 0, COUNT);
        reduce_add(into, shifted + shift, COUNT);
        for (size_t i = 0; i < COUNT; i++)
            cr_assert_eq(into[i], value(0, i) + value(1, i));
        fill(into, 0, COUNT);
        reduce_add_scale(into, shifted + shift, COUNT, 1.0f / 3);
        for (size_t i = 0; i < COUNT; i++)
            cr_assert_eq(into[i], (value(0, i) + value(1, i)) * (1.0f / 3));
    }
}

static float expected(size_t i, int workers, int first, float scale)
{
    volatile float sum = value(first, i); /* volatile: added one by one, in this order */
    for (int k = 1; k < workers; k++)
        sum = sum + value((first + k) % workers, i);
    return sum * scale;
}

static int first_of(size_t i, int workers)
{
    for (int c = 0; c < workers; c++) {
        struct chunk chunk = chunk_of(COUNT, (size_t)workers, (size_t)c);
        if (i < chunk.offset + chunk.count)
            return c;
    }
    return -1;
}

/* The whole vector and odd spans of it, for both orders. */
Test(reduce, order)
{
    static float sources[8][COUNT], into[COUNT];
    for (int workers = 1; workers <= 8; workers++) {
        const void *pointers[8];
        for (int w = 0; w < workers; w++)
            fill(sources[w], w, COUNT);
        for (size_t offset = 0; offset < COUNT; offset += 701) {
            for (int w = 0; w < workers; w++)
                pointers[w] = sources[w] + offset;
            struct reduce_span span = {offset, (COUNT - offset) / (1 + offset % 3), COUNT,
                                       COMPRESS_NONE};
            float scale = 1.0f / (float)workers;
            reduce_in_order(into, pointers, workers, span, REDUCE_ORDER_RING, scale);
            for (size_t i = 0; i < span.count; i++)
                cr_assert_eq(into[i],
                             expected(offset + i, workers, first_of(offset + i, workers), scale));
            reduce_in_order(into, pointers, workers, span, REDUCE_ORDER_ANY, scale);
            for (size_t i = 0; i < span.count; i++)
                cr_assert_eq(into[i], expected(offset + i, workers, 0, scale));
        }
    }
}

/* Shows that the order matters for these values; otherwise the test above could not fail. */
Test(reduce, order_matters)
{
    static float sources[5][COUNT], ring[COUNT], any[COUNT];
    const void *pointers[5];
    for (int w = 0; w < 5; w++) {
        fill(sources[w], w, COUNT);
        pointers[w] = sources[w];
    }
    struct reduce_span span = {0, COUNT, COUNT, COMPRESS_NONE};
    reduce_in_order(ring, pointers, 5, span, REDUCE_ORDER_RING, 1.0f);
    reduce_in_order(any, pointers, 5, span, REDUCE_ORDER_ANY, 1.0f);
    cr_assert_arr_neq(ring, any, sizeof ring);
}
