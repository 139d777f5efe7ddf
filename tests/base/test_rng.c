/* Philox4x32-10, compared with the known answers that its authors publish with Random123. */
#include <criterion/criterion.h>

#include "common/base/rng.h"

static void expect_block(struct rng_key key, uint64_t low, uint64_t high, const uint32_t answer[4])
{
    struct rng_block block = rng_block(key, low, high);
    for (int i = 0; i < 4; i++)
        cr_expect_eq(block.word[i], answer[i], "word %d: %08x, expected %08x", i, block.word[i],
                     answer[i]);
}

Test(rng, known_answers)
{
    expect_block((struct rng_key){{0, 0}}, 0, 0,
                 (const uint32_t[]){0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    expect_block((struct rng_key){{0xffffffff, 0xffffffff}}, UINT64_MAX, UINT64_MAX,
                 (const uint32_t[]){0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    expect_block((struct rng_key){{0xa4093822, 0x299f31d0}}, UINT64_C(0x85a308d3243f6a88),
                 UINT64_C(0x0370734413198a2e),
                 (const uint32_t[]){0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

Test(rng, uniform_is_in_range)
{
    cr_expect_eq(rng_uniform(0), 0.0f);
    cr_expect_lt(rng_uniform(UINT32_MAX), 1.0f);
    for (uint32_t bound = 1; bound < 1000; bound += 37) {
        cr_expect_eq(rng_below(0, bound), 0);
        cr_expect_eq(rng_below(UINT32_MAX, bound), bound - 1);
    }
}

Test(rng, keys_of_different_purposes_differ)
{
    struct rng_key a = rng_key(1, RNG_INIT, 0), b = rng_key(1, RNG_DROPOUT, 0);
    struct rng_key c = rng_key(1, RNG_INIT, 1), d = rng_key(2, RNG_INIT, 0);
    cr_expect(a.word[0] != b.word[0] || a.word[1] != b.word[1]);
    cr_expect(a.word[0] != c.word[0] || a.word[1] != c.word[1]);
    cr_expect(a.word[0] != d.word[0] || a.word[1] != d.word[1]);
}
