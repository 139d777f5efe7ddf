#include "common/data/sampler.h"

#include <stdlib.h>

#include "common/base/status.h"
#include "common/base/rng.h"

enum status sampler_steps(size_t samples, size_t world, size_t batch, size_t *steps)
{
    CHECK(world > 0 && batch > 0);
    /* Two divisions, because world * batch could overflow. */
    *steps = samples / world / batch;
    if (*steps > 0)
        return STATUS_OK;
    return FAIL(STATUS_USAGE,
                "an epoch of %zu samples has no whole step of %zu workers x batch %zu, expected at "
                "least one; lower --batch or the number of workers, or train on the remainder with "
                "--last-batch partial (only in bsp, without --join)",
                samples, world, batch);
}

void sampler_permute(uint64_t seed, uint64_t epoch, uint32_t *order, size_t samples)
{
    CHECK(samples <= UINT32_MAX);
    struct rng_key key = rng_key(seed, RNG_SHUFFLE, epoch);
    struct rng_block block = {{0}};
    for (size_t i = 0; i < samples; i++) {
        if (i % 4 == 0)
            block = rng_block(key, i / 4, 0);
        /* The "inside-out" form: after every round order[0..i] is a uniform permutation of 0..i. */
        uint32_t j = rng_below(block.word[i % 4], (uint32_t)i + 1);
        order[i] = (uint32_t)i;
        order[i] = order[j];
        order[j] = (uint32_t)i;
    }
}

struct chunk sampler_slice(size_t world, size_t rank, size_t batch, size_t step)
{
    CHECK(rank < world);
    return (struct chunk){(step * world + rank) * batch, batch};
}

static size_t whole_steps(const struct sampler_options *options)
{
    return options->samples / options->world / options->batch;
}

static enum status count_steps(struct sampler *sampler)
{
    const struct sampler_options *options = &sampler->options;
    if (options->order == SAMPLER_SHUFFLED && options->joins) {
        size_t left = options->samples - whole_steps(options) * options->world * options->batch;
        sampler->steps = whole_steps(options) + (left > 0);
        return STATUS_OK;
    }
    if (options->order == SAMPLER_SHUFFLED)
        return sampler_steps(options->samples, options->world, options->batch, &sampler->steps);
    sampler->share = chunk_of(options->samples, options->world, options->rank);
    sampler->steps = size_divide_up(sampler->share.count, options->batch);
    return STATUS_OK;
}

enum status sampler_init(struct sampler *sampler, const struct sampler_options *options)
{
    enum status status = STATUS_OK;
    CHECK(options->batch > 0 && options->rank < options->world);
    *sampler = (struct sampler){.options = *options};
    TRY(count_steps(sampler));
    sampler->next = sampler->end = sampler->steps;
    sampler->order = malloc(options->samples * sizeof *sampler->order);
    if (!sampler->order)
        return FAIL(STATUS_NO_MEMORY, "no memory for the order of %zu samples", options->samples);
    for (size_t i = 0; i < options->samples; i++)
        sampler->order[i] = (uint32_t)i;
out:
    return status;
}

void sampler_fini(struct sampler *sampler)
{
    free(sampler->order);
    *sampler = (struct sampler){0};
}

void sampler_start_epoch(struct sampler *sampler, uint64_t epoch, size_t first_step)
{
    const struct sampler_options *options = &sampler->options;
    CHECK(first_step <= sampler->steps);
    if (options->order == SAMPLER_SHUFFLED)
        sampler_permute(options->seed, epoch, sampler->order, options->samples);
    sampler->used = 0;
    sampler->next = first_step;
    sampler->end = sampler->steps;
}

void sampler_start_rest(struct sampler *sampler, uint64_t epoch, size_t used)
{
    const struct sampler_options *options = &sampler->options;
    CHECK(options->order == SAMPLER_SHUFFLED && !options->joins && used <= options->samples);
    sampler_start_epoch(sampler, epoch, 0);
    sampler->used = used;
    sampler->end = (options->samples - used) / options->world / options->batch;
}

/* The place in `order` of the samples of batch `step`. */
static struct chunk range_of(const struct sampler *sampler, size_t step)
{
    const struct sampler_options *options = &sampler->options;
    if (options->order == SAMPLER_SHUFFLED && options->joins && step == whole_steps(options)) {
        size_t done = step * options->world * options->batch;
        struct chunk part = chunk_of(options->samples - done, options->world, options->rank);
        return (struct chunk){done + part.offset, part.count};
    }
    if (options->order == SAMPLER_SHUFFLED) {
        struct chunk slice = sampler_slice(options->world, options->rank, options->batch, step);
        return (struct chunk){sampler->used + slice.offset, slice.count};
    }
    size_t done = step * options->batch;
    return (struct chunk){sampler->share.offset + done,
                          size_smaller(sampler->share.count - done, options->batch)};
}

const uint32_t *sampler_next(struct sampler *sampler, size_t *count)
{
    *count = 0;
    if (sampler->next == sampler->end)
        return NULL;
    const struct sampler_options *options = &sampler->options;
    bool joined = options->joins && sampler->next == whole_steps(options);
    size_t whole = options->world * options->batch;
    sampler->global_count = joined ? options->samples - sampler->next * whole : whole;
    struct chunk range = range_of(sampler, sampler->next++);
    *count = range.count;
    return sampler->order + range.offset;
}
