/* Machine limits that need no peer. Those with peers: test_bench.sh. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/util.h"
#include "experiments/bench/baselines.h"

Test(limits, memory_has_a_speed)
{
    double add = 0, reduce = 0, types[MESSAGE_DTYPES];
    cr_assert_eq(limits_memory(1 << 16, &add, &reduce, types), STATUS_OK);
    for (enum message_dtype dtype = MESSAGE_FLOAT32; dtype < MESSAGE_DTYPES; dtype++)
        cr_expect(types[dtype] > 0 && isfinite(types[dtype]));
    cr_expect(add > 0 && isfinite(add));
    cr_expect(reduce > 0 && isfinite(reduce));
}

Test(limits, arrays_are_zeroed_and_aligned)
{
    const size_t sizes[] = {
        0, 1, 4096, MEMORY_HUGE_BYTES - 1, MEMORY_HUGE_BYTES, 3 * MEMORY_HUGE_BYTES + 1};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        unsigned char *memory = memory_array(sizes[s]);
        cr_assert(memory);
        cr_expect_eq((uintptr_t)memory % 64, 0);
        if (sizes[s] >= MEMORY_HUGE_BYTES)
            cr_expect_eq((uintptr_t)memory % MEMORY_HUGE_BYTES, 0);
        for (size_t i = 0; i < sizes[s]; i++)
            cr_assert_eq(memory[i], 0);
        memset(memory, 1, sizes[s]);
        free(memory);
    }
    cr_expect_null(memory_array(SIZE_MAX));
}
