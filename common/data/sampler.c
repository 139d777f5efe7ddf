#include "common/data/sampler.h"

#include "common/base/check.h"
#include "common/base/rng.h"

enum status sampler_steps(size_t samples, size_t world, size_t batch, size_t *steps)
{
    CHECK(world > 0 && batch > 0);
    /* Divided one after the other: world * batch could overflow. */
    *steps = samples / world / batch;
    if (*steps > 0)
        return STATUS_OK;
    log_error("an epoch of %zu samples has no whole step of %zu workers x batch %zu, expected at "
              "least one; lower --batch or the number of workers",
              samples, world, batch);
    return STATUS_USAGE;
}

void sampler_permute(uint64_t seed, uint64_t epoch, uint32_t *order, size_t samples)
{
    CHECK(samples <= UINT32_MAX);
    struct rng_key key = rng_key(seed, RNG_SHUFFLE, epoch);
    struct rng_block block = {{0}};
    for (size_t i = 0; i < samples; i++) {
        if (i % 4 == 0)
            block = rng_block(key, i / 4, 0);
        /* The "inside-out" form: order[0..i] is a uniform permutation of 0..i after every turn. */
        uint32_t j = rng_below(block.word[i % 4], (uint32_t)i + 1);
        order[i] = (uint32_t)i;
        order[i] = order[j];
        order[j] = (uint32_t)i;
    }
}

struct sampler_range sampler_slice(size_t world, size_t rank, size_t batch, size_t step)
{
    CHECK(rank < world);
    return (struct sampler_range){(step * world + rank) * batch, batch};
}

struct sampler_range sampler_shard(size_t samples, size_t world, size_t rank)
{
    CHECK(rank < world);
    size_t share = samples / world, larger = samples % world; /* the first ranks have one more */
    size_t first = rank * share + (rank < larger ? rank : larger);
    return (struct sampler_range){first, share + (rank < larger ? 1 : 0)};
}
