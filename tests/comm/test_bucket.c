/* The gradients that share a bucket: worked examples, and rules that hold for any layers. */
#include <criterion/criterion.h>
#include <stdint.h>

#include "common/comm/bucket.h"

enum { BUCKETS_MAX = 4096, MEGA = (1 << 20) / sizeof(float) };

static struct bucket buckets[BUCKETS_MAX];

struct example {
    size_t bytes;
    bool cut;
    size_t used, first[8]; /* start of each; each ends where the one before begins */
};

static void check_example(const size_t *counts, size_t layers, const struct example *example)
{
    struct bucket_limits limits = {.bytes = example->bytes, .cut = example->cut};
    size_t end = 0;
    for (size_t l = 0; l < layers; l++)
        end += counts[l];
    size_t used = bucket_plan(counts, layers, &limits, buckets);
    cr_assert_eq(used, example->used, "%zu bytes: %zu buckets", example->bytes, used);
    for (size_t b = 0; b < used; b++) {
        cr_expect_eq(buckets[b].first, example->first[b], "%zu bytes, bucket %zu: from %zu",
                     example->bytes, b, buckets[b].first);
        cr_expect_eq(buckets[b].first + buckets[b].count, end);
        end = buckets[b].first;
    }
}

Test(bucket, small_layers_are_fused)
{
    static const size_t counts[] = {10, 0, 30, 20, 0, 5};
    static const struct example examples[] = {
        {0, false, 1, {0}},             /* all layers in one */
        {1, false, 4, {60, 40, 10, 0}}, /* a bucket a layer */
        {100, false, 3, {40, 10, 0}},   /* 25 elements, 30, then the rest */
        {140, false, 2, {10, 0}},       /* 25 are too few, 55 enough */
        {1000, false, 1, {0}},
        {100, true, 4, {40, 25, 10, 0}},    /* 30 are more than 25: two of 15; the rest */
        {60, true, 5, {50, 40, 25, 10, 0}}, /* 5 and 10 of 20; the other 10 */
        {0, true, 1, {0}},
    };
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
        check_example(counts, sizeof counts / sizeof *counts, &examples[i]);
}

/* keras-cnn: the first bucket is 1 MB of dense1. The rest of dense1 makes two; then the
 * convolutions. */
Test(bucket, the_first_is_small)
{
    static const size_t counts[] = {320, 18496, 1179776, 1290};
    size_t all = 320 + 18496 + 1179776 + 1290, first = all - MEGA, rest = first - 18816;
    struct example cut = {2 << 20, true, 4, {first, 18816 + rest - rest / 2, 18816, 0}};
    check_example(counts, 4, &cut);
    struct example whole = {2 << 20, false, 2, {18816, 0}};
    check_example(counts, 4, &whole);
    static const size_t even[] = {MEGA, MEGA, MEGA, MEGA, MEGA, MEGA, MEGA};
    struct example equal = {2 << 20, false, 4, {6 * MEGA, 4 * MEGA, 2 * MEGA, 0}};
    check_example(even, 7, &equal);
}

Test(bucket, no_parameters)
{
    static const size_t none[] = {0, 0};
    struct example example = {64, true, 1, {0}};
    check_example(none, 2, &example);
    cr_expect_eq(buckets[0].count, 0);
}

/* Any layers: the buckets cover them once from the end, and none is empty. If buckets may be cut,
 * none is twice as large as the limit. */
Test(bucket, any_layers)
{
    static const size_t limits_bytes[] = {4, 100, 4096, 1 << 20, 3 << 20, 100 << 20};
    uint32_t seed = 1;
    for (int round = 0; round < 200; round++) {
        size_t counts[12], layers = 1 + (size_t)round % 12, end = 0;
        for (size_t l = 0; l < layers; l++) {
            seed = seed * 1664525u + 1013904223u; /* Numerical Recipes' generator */
            counts[l] = (seed >> 8) % (round % 3 ? 1000 : 1000000);
            end += counts[l];
        }
        for (size_t i = 0; i < sizeof limits_bytes / sizeof *limits_bytes; i++) {
            struct bucket_limits limits = {.bytes = limits_bytes[i], .cut = round % 2};
            size_t used = bucket_plan(counts, layers, &limits, NULL), at = end;
            if (used > BUCKETS_MAX)
                continue;
            cr_assert_eq(bucket_plan(counts, layers, &limits, buckets), used);
            for (size_t b = 0; b < used; b++) {
                cr_assert(buckets[b].count > 0 || end == 0);
                cr_assert_eq(buckets[b].first + buckets[b].count, at);
                if (limits.cut)
                    cr_assert_lt(buckets[b].count * sizeof(float), 2 * limits.bytes + 1);
                at = buckets[b].first;
            }
            cr_assert_eq(at, 0);
        }
    }
}
