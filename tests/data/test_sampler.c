#include <stdbool.h>

#include "common/data/sampler.h"
#include "tests/lib/capture.h"

enum { SAMPLES = 1000 };

static const size_t worlds[] = {1, 2, 3, 4, 7};

/* From an independent implementation of Philox and of the shuffle: every version of psring must use
 * the same samples in the same order. */
Test(sampler, permutations_are_these)
{
    static const uint32_t seed1_epoch0[12] = {3, 2, 9, 5, 7, 11, 10, 6, 0, 1, 8, 4};
    static const uint32_t seed1_epoch1[12] = {11, 8, 3, 10, 1, 5, 0, 6, 2, 4, 9, 7};
    static const uint32_t seed2_epoch0[12] = {7, 6, 5, 11, 9, 2, 3, 10, 8, 1, 4, 0};
    uint32_t order[12];
    sampler_permute(1, 0, order, 12);
    cr_assert_arr_eq(order, seed1_epoch0, sizeof order);
    sampler_permute(1, 1, order, 12);
    cr_assert_arr_eq(order, seed1_epoch1, sizeof order);
    sampler_permute(2, 0, order, 12);
    cr_assert_arr_eq(order, seed2_epoch0, sizeof order);
}

Test(sampler, every_sample_is_in_a_permutation_once)
{
    static const size_t sizes[] = {0, 1, 2, 3, 4, 5, SAMPLES};
    uint32_t order[SAMPLES];
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        bool seen[SAMPLES] = {false};
        sampler_permute(7, 3, order, sizes[s]);
        for (size_t i = 0; i < sizes[s]; i++) {
            cr_assert(order[i] < sizes[s] && !seen[order[i]]);
            seen[order[i]] = true;
        }
    }
}

/* All 24 orders of four samples are equally frequent over many epochs: chi-squared with 23 degrees
 * of freedom is below its 99.9% quantile, 49.7. The seed is fixed, and so is the result. */
Test(sampler, permutations_are_uniform)
{
    enum { EPOCHS = 24000, ORDERS = 24 };
    size_t count[256] = {0}, kinds = 0;
    double chi_squared = 0;
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
        uint32_t order[4];
        sampler_permute(5, epoch, order, 4);
        count[order[0] << 6 | order[1] << 4 | order[2] << 2 | order[3]]++;
    }
    for (size_t k = 0; k < 256; k++) {
        double expected = (double)EPOCHS / ORDERS, off = (double)count[k] - expected;
        kinds += count[k] > 0;
        chi_squared += count[k] > 0 ? off * off / expected : 0;
    }
    cr_assert(kinds == ORDERS);
    cr_assert(chi_squared < 49.7, "chi-squared is %g", chi_squared);
}

/* The samples of W workers in a step, in order, are those of one process with batch W B. */
Test(sampler, workers_together_see_what_one_process_sees)
{
    enum { BATCH = 6 };
    for (size_t w = 0; w < sizeof worlds / sizeof worlds[0]; w++) {
        size_t world = worlds[w], steps, steps_alone;
        cr_assert(sampler_steps(SAMPLES, world, BATCH, &steps) == STATUS_OK);
        cr_assert(sampler_steps(SAMPLES, 1, world * BATCH, &steps_alone) == STATUS_OK);
        cr_assert(steps == steps_alone && steps == SAMPLES / (world * BATCH));
        for (size_t step = 0; step < steps; step++) {
            struct chunk alone = sampler_slice(1, 0, world * BATCH, step);
            size_t at = alone.offset;
            for (size_t rank = 0; rank < world; rank++) {
                struct chunk slice = sampler_slice(world, rank, BATCH, step);
                cr_assert(slice.offset == at && slice.count == BATCH);
                at += slice.count;
            }
            cr_assert(at == alone.offset + alone.count && at <= SAMPLES);
        }
    }
}

Test(sampler, an_epoch_without_a_step_is_refused)
{
    size_t steps;
    cr_assert(sampler_steps(12, 3, 4, &steps) == STATUS_OK && steps == 1);
    assert_refused(sampler_steps(11, 3, 4, &steps), STATUS_USAGE,
                   "11 samples has no whole step of 3 workers x batch 4");
    assert_refused(sampler_steps(11, SIZE_MAX, SIZE_MAX, &steps), STATUS_USAGE,
                   "--last-batch partial");
}

static struct sampler open_sampler(enum sampler_order order, size_t samples, size_t batch,
                                   size_t world, size_t rank)
{
    struct sampler sampler;
    cr_assert(sampler_init(&sampler, &(struct sampler_options){.order = order,
                                                               .samples = samples,
                                                               .batch = batch,
                                                               .world = world,
                                                               .rank = rank,
                                                               .seed = 42}) == STATUS_OK);
    return sampler;
}

/* The permutations of different workers and of different epochs have different numbers. */
Test(sampler, workers_that_go_through_all_have_orders_of_their_own)
{
    enum { EPOCHS = 20, RANKS = 14 };
    static const size_t ranks[RANKS] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 255, 256, 65535};
    for (uint64_t epoch = 1; epoch < EPOCHS; epoch++) {
        for (size_t r = 0; r < RANKS; r++) {
            uint64_t number = sampler_own_epoch(epoch, ranks[r]);
            cr_assert(number > sampler_own_epoch(epoch - 1, 65535));
            cr_assert(r == 0 || number > sampler_own_epoch(epoch, ranks[r - 1]));
        }
    }
    cr_assert_eq(sampler_own_epoch(0, 0), 0); /* a single worker starts like one that shares */
}

Test(sampler, shuffled_batches_are_slices_of_the_permutation)
{
    enum { BATCH = 4 };
    uint32_t order[SAMPLES];
    size_t count;
    for (size_t w = 0; w < sizeof worlds / sizeof worlds[0]; w++) {
        size_t world = worlds[w], rank = world - 1;
        struct sampler sampler = open_sampler(SAMPLER_SHUFFLED, SAMPLES, BATCH, world, rank);
        cr_assert(!sampler_next(&sampler, &count)); /* no epoch was started */
        for (uint64_t epoch = 0; epoch < 20; epoch++) {
            size_t step = epoch % (sampler.steps + 1);
            const uint32_t *samples;
            sampler_start_epoch(&sampler, epoch + 1000, 0); /* left immediately */
            sampler_start_epoch(&sampler, epoch, step);
            sampler_permute(42, epoch, order, SAMPLES);
            for (; (samples = sampler_next(&sampler, &count)); step++) {
                cr_assert(count == BATCH);
                for (size_t i = 0; i < BATCH; i++)
                    cr_assert(samples[i] == order[(step * world + rank) * BATCH + i]);
            }
            cr_assert(step == SAMPLES / (world * BATCH) && count == 0);
        }
        sampler_fini(&sampler);
    }
}

/* Four workers begin an epoch, three continue it and five end it. The present workers take the next
 * samples, each sample once. */
Test(sampler, rest_of_an_epoch_goes_to_those_who_are_there)
{
    enum { BATCH = 3 };
    static const struct {
        size_t world, steps;
    } parts[] = {{4, 2}, {3, 1}, {5, SIZE_MAX}};
    uint32_t order[SAMPLES];
    size_t used = 0, count;
    sampler_permute(42, 7, order, SAMPLES);
    for (size_t p = 0; p < sizeof parts / sizeof parts[0]; p++) {
        size_t world = parts[p].world, taken = 0, end = used;
        for (size_t rank = 0; rank < world; rank++) {
            struct sampler sampler = open_sampler(SAMPLER_SHUFFLED, SAMPLES, BATCH, world, rank);
            const uint32_t *samples;
            sampler_start_rest(&sampler, 7, used);
            for (size_t step = 0;
                 step < parts[p].steps && (samples = sampler_next(&sampler, &count)); step++) {
                size_t at = used + (step * world + rank) * BATCH;
                cr_assert(count == BATCH && at + BATCH <= SAMPLES);
                for (size_t i = 0; i < BATCH; i++)
                    cr_assert(samples[i] == order[at + i]);
                taken += BATCH;
                end = at + BATCH > end ? at + BATCH : end;
            }
            sampler_fini(&sampler);
        }
        cr_assert(taken > 0 && end == used + taken); /* without a gap */
        used = end;
    }
    cr_assert(used <= SAMPLES && SAMPLES - used < 5 * BATCH);
}

/* The last step takes the remaining samples. Every sample is used once, also if a share is empty.
 * Shares differ by at most one, and all ranks know the total. */
Test(sampler, a_joined_last_step_takes_the_rest)
{
    static const size_t sizes[] = {1, 2, 12, 13, 23, 24, 25, SAMPLES};
    enum { BATCH = 4, WORLD = 3 };
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        size_t samples = sizes[s], taken = 0, counts[WORLD] = {0};
        bool seen[SAMPLES] = {false};
        struct sampler samplers[WORLD];
        for (size_t rank = 0; rank < WORLD; rank++) {
            cr_assert(sampler_init(&samplers[rank], &(struct sampler_options){.samples = samples,
                                                                              .batch = BATCH,
                                                                              .world = WORLD,
                                                                              .rank = rank,
                                                                              .joins = true}) ==
                      STATUS_OK);
            sampler_start_epoch(&samplers[rank], 5, 0);
        }
        size_t steps = samplers[0].steps;
        cr_assert_eq(steps, (samples + WORLD * BATCH - 1) / (WORLD * BATCH));
        for (size_t step = 0; step < steps; step++) {
            size_t sum = 0;
            for (size_t rank = 0; rank < WORLD; rank++) {
                const uint32_t *given = sampler_next(&samplers[rank], &counts[rank]);
                for (size_t i = 0; i < counts[rank]; i++) {
                    cr_assert(!seen[given[i]]);
                    seen[given[i]] = true;
                }
                sum += counts[rank];
            }
            for (size_t rank = 0; rank < WORLD; rank++) {
                cr_assert_eq(samplers[rank].global_count, sum);
                cr_assert(counts[rank] == sum / WORLD || counts[rank] == sum / WORLD + 1);
            }
            cr_assert(step + 1 == steps || sum == WORLD * BATCH);
            taken += sum;
        }
        cr_assert_eq(taken, samples);
        for (size_t rank = 0; rank < WORLD; rank++) {
            cr_assert(!sampler_next(&samplers[rank], &counts[rank]));
            sampler_fini(&samplers[rank]);
        }
    }
}

Test(sampler, sequential_batches_cover_all_exactly_once)
{
    for (size_t w = 0; w < sizeof worlds / sizeof worlds[0]; w++) {
        for (size_t samples = 1; samples < 50; samples++) {
            size_t at = 0;
            for (size_t rank = 0; rank < worlds[w]; rank++) {
                struct sampler sampler =
                    open_sampler(SAMPLER_SEQUENTIAL, samples, 7, worlds[w], rank);
                size_t steps = 0, count;
                const uint32_t *found;
                sampler_start_epoch(&sampler, 0, 0);
                for (; (found = sampler_next(&sampler, &count)); steps++) {
                    cr_assert(count == 7 || (count < 7 && steps + 1 == sampler.steps));
                    for (size_t i = 0; i < count; i++)
                        cr_assert(found[i] == at++);
                }
                cr_assert(steps == sampler.steps);
                sampler_fini(&sampler);
            }
            cr_assert(at == samples);
        }
    }
}
