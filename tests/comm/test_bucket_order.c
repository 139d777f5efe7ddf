/* The order in which buckets are sent: worked examples, and rules that hold for any layers. */
#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/comm/bucket.h"

enum { BUCKETS_MAX = 256 };

static void check(const struct bucket_layer *layers, size_t layer_count, size_t elements,
                  const size_t *expected, size_t expected_count)
{
    size_t counts[16], order[BUCKETS_MAX];
    struct bucket buckets[BUCKETS_MAX];
    struct bucket_limits limits = {.bytes = elements * sizeof(float), .cut = true};
    for (size_t l = 0; l < layer_count; l++)
        counts[l] = layers[l].count;
    size_t used = bucket_plan(counts, layer_count, &limits, buckets);
    cr_assert_eq(used, expected_count, "%zu buckets", used);
    bucket_order(buckets, used, layers, layer_count, order);
    for (size_t i = 0; i < used; i++)
        cr_expect_eq(order[i], expected[i], "place %zu: bucket %zu, expected %zu", i, order[i],
                     expected[i]);
}

/* Two layers of four buckets. Buckets 0 to 3 of the later layer are ready at times 1 to 4; buckets
 * 4 to 7 are ready at 5 to 8. Sending a bucket takes 1.5. Bucket 2 is under way when bucket 4 is
 * ready. From then on the first layer's buckets go first, as soon as they are ready. */
Test(bucket_order, what_is_needed_first_overtakes)
{
    static const struct bucket_layer layers[] = {{40, 4, 2, 4}, {40, 4, 2, 4}};
    static const size_t expected[] = {0, 1, 2, 4, 5, 6, 7, 3};
    check(layers, 2, 10, expected, 8);
}

/* Without parts, no bucket of the later layer can go before the whole layer is ready. */
Test(bucket_order, layers_without_parts)
{
    static const struct bucket_layer layers[] = {{40, 1, 2, 4}, {40, 1, 2, 4}};
    static const size_t expected[] = {0, 1, 2, 4, 5, 6, 7, 3};
    check(layers, 2, 10, expected, 8);
}

Test(bucket_order, one_layer_keeps_its_order)
{
    static const struct bucket_layer layer = {50, 5, 1, 2};
    static const size_t expected[] = {0, 1, 2, 3, 4};
    check(&layer, 1, 10, expected, 5);
}

Test(bucket_order, no_parameters)
{
    static const struct bucket_layer layers[] = {{0, 1, 0, 0}};
    static const size_t expected[] = {0};
    check(layers, 1, 10, expected, 1);
}

/* Any layers: every bucket occurs once. */
Test(bucket_order, any_layers_give_a_permutation)
{
    uint32_t seed = 1;
    for (int round = 0; round < 200; round++) {
        struct bucket_layer layers[12];
        size_t counts[12], count = 1 + (size_t)round % 12, order[BUCKETS_MAX];
        struct bucket buckets[BUCKETS_MAX];
        for (size_t l = 0; l < count; l++) {
            seed = seed * 1664525u + 1013904223u; /* Numerical Recipes' generator */
            counts[l] = (seed >> 8) % 1000;
            layers[l] =
                (struct bucket_layer){counts[l], 1 + (seed >> 20) % 7, (double)((seed >> 4) % 100),
                                      (double)((seed >> 12) % 300)};
        }
        struct bucket_limits limits = {.bytes = 400, .cut = true};
        size_t used = bucket_plan(counts, count, &limits, NULL);
        cr_assert_leq(used, BUCKETS_MAX);
        bucket_plan(counts, count, &limits, buckets);
        bucket_order(buckets, used, layers, count, order);
        bool seen[BUCKETS_MAX] = {false};
        for (size_t i = 0; i < used; i++) {
            cr_assert_lt(order[i], used);
            cr_assert(!seen[order[i]]);
            seen[order[i]] = true;
        }
    }
}
