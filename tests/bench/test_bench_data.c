/* The vectors of bench have exact sums, and its check detects each mistake of a backend. */
#include "experiments/bench/measure.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

enum { COUNT = 3000, WORKERS = 5 };

static struct bench_values of(int workers)
{
    return bench_values(workers, COMPRESS_NONE);
}

/* The exact sum of `workers` workers, added as floats in the order of `first`, `first` + 1, ... */
static void sum(float *data, int workers, int first, uint64_t round)
{
    float mine[COUNT];
    memset(data, 0, COUNT * sizeof *data);
    for (int w = 0; w < workers; w++) {
        bench_fill(mine, COUNT, of(workers), (first + w) % workers, round);
        for (size_t i = 0; i < COUNT; i++)
            data[i] += mine[i];
    }
}

Test(bench_data, any_order_gives_the_exact_sum)
{
    float data[COUNT];
    for (int workers = 1; workers <= 8; workers++) {
        for (int first = 0; first < workers; first++) {
            sum(data, workers, first, 7);
            cr_expect_eq(bench_count_wrong(data, COUNT, of(workers), 7), 0);
        }
    }
}

Test(bench_data, values_are_small_integers_of_both_signs)
{
    float data[COUNT];
    bool below = false, above = false;
    bench_fill(data, COUNT, of(WORKERS), 3, 11);
    for (size_t i = 0; i < COUNT; i++) {
        cr_assert_eq(data[i], floorf(data[i]));
        cr_assert(data[i] >= -512 && data[i] < 512);
        below |= data[i] < 0;
        above |= data[i] > 0;
    }
    cr_expect(below && above);
}

/* The sum of any number of workers is exact in 16 bits, too. */
Test(bench_data, compressed_sums_are_exact)
{
    static const int sizes[] = {1, 2, 3, 5, 8, 16, 100, 256};
    for (enum compress compress = COMPRESS_FP16; compress <= COMPRESS_BF16; compress++) {
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            struct bench_values values = bench_values(sizes[s], compress);
            float sums[COUNT] = {0}, mine[COUNT], decoded[COUNT];
            uint16_t codes[COUNT];
            for (int rank = 0; rank < sizes[s]; rank++) {
                bench_fill(mine, COUNT, values, rank, 5);
                for (size_t i = 0; i < COUNT; i++)
                    sums[i] += mine[i];
                compress_encode(compress, codes, sums, NULL, COUNT);
                compress_decode(compress, decoded, codes, COUNT);
                cr_assert_arr_eq(decoded, sums, sizeof sums);
            }
            cr_assert_eq(bench_count_wrong(sums, COUNT, values, 5), 0);
        }
    }
}

Test(bench_data, bits)
{
    cr_expect_eq(bench_values(1, COMPRESS_NONE).bits, 10);
    cr_expect_eq(bench_values(32768, COMPRESS_NONE).bits, 10);
    cr_expect_eq(bench_values(4, COMPRESS_FP16).bits, 10);
    cr_expect_eq(bench_values(5, COMPRESS_FP16).bits, 9);
    cr_expect_eq(bench_values(2048, COMPRESS_FP16).bits, 1);
    cr_expect_eq(bench_values(2049, COMPRESS_FP16).bits, 0);
    cr_expect_eq(bench_values(4, COMPRESS_BF16).bits, 7);
    cr_expect_eq(bench_values(256, COMPRESS_BF16).bits, 1);
    cr_expect_eq(bench_values(257, COMPRESS_BF16).bits, 0);
}

Test(bench_data, one_element_off)
{
    float data[COUNT];
    sum(data, WORKERS, 0, 1);
    data[COUNT - 1] += 1;
    cr_expect_eq(bench_count_wrong(data, COUNT, of(WORKERS), 1), 1);
    data[0] = nanf("");
    data[1500] = -data[1500] - 1;
    cr_expect_eq(bench_count_wrong(data, COUNT, of(WORKERS), 1), 3);
}

/* Nearly every element is wrong. About one value in a thousand may be right by chance. */
static void expect_mostly_wrong(const float *data, const char *what)
{
    uint64_t wrong = bench_count_wrong(data, COUNT, of(WORKERS), 1);
    cr_expect_gt(wrong, COUNT * 95 / 100, "%s: only %ju of %d elements wrong", what,
                 (uintmax_t)wrong, COUNT);
}

Test(bench_data, mistakes_of_a_backend_show)
{
    float data[COUNT], mine[COUNT];

    sum(data, WORKERS, 0, 0);
    expect_mostly_wrong(data, "the result of the round before");

    sum(data, WORKERS - 1, 0, 1);
    expect_mostly_wrong(data, "a contribution missing");

    sum(data, WORKERS, 0, 1);
    bench_fill(mine, COUNT, of(WORKERS), 2, 1);
    for (size_t i = 0; i < COUNT; i++)
        data[i] += mine[i];
    expect_mostly_wrong(data, "a contribution twice");

    bench_fill(data, COUNT, of(WORKERS), 0, 1);
    expect_mostly_wrong(data, "nothing was added");

    sum(data, WORKERS, 0, 1);
    memmove(data, data + 1, (COUNT - 1) * sizeof *data);
    expect_mostly_wrong(data, "off by one element");

    sum(data, WORKERS, 0, 1);
    memcpy(mine, data, sizeof mine);
    memcpy(data, mine + COUNT / 2, COUNT / 2 * sizeof *data);
    memcpy(data + COUNT / 2, mine, COUNT / 2 * sizeof *data);
    expect_mostly_wrong(data, "two chunks swapped");
}

Test(bench_data, nothing)
{
    cr_expect_eq(bench_count_wrong(NULL, 0, of(3), 0), 0);
}
