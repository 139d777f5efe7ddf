#include "experiments/measure/limits_memory.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/memory.h"
#include "common/comm/reduce.h"
#include "common/device/kernel.h"

enum { PASSES = 6 };

KERNEL static void add(float *restrict c, const float *restrict a, const float *restrict b,
                       size_t count)
{
    for (size_t i = 0; i < count; i++)
        c[i] = a[i] + b[i];
}

static size_t default_count(void)
{
    const long least = 32L << 20, most = 128L << 20; /* bytes */
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    long bytes = cache > 0 ? 4 * cache : least;
    bytes = bytes < least ? least : bytes;
    return (size_t)(bytes > most ? most : bytes) / sizeof(float);
}

static void keep_best(double *best, int64_t start_ns, size_t count)
{
    double seconds = (double)(clock_now_ns() - start_ns) * 1e-9;
    double rate = 3 * sizeof(float) * (double)count / seconds;
    *best = rate > *best ? rate : *best;
}

enum status limits_memory(size_t count, double *add_bytes_per_s, double *reduce_bytes_per_s)
{
    count = count > 0 ? count : default_count();
    float *a = memory_array(count * sizeof *a), *b = memory_array(count * sizeof *b);
    float *c = memory_array(count * sizeof *c);
    bool all = a && b && c;
    *add_bytes_per_s = *reduce_bytes_per_s = 0;
    for (int pass = 0; all && pass < PASSES; pass++) {
        int64_t start_ns = clock_now_ns();
        add(c, a, b, count);
        keep_best(add_bytes_per_s, start_ns, count);
        start_ns = clock_now_ns();
        reduce_add(a, b, count);
        keep_best(reduce_bytes_per_s, start_ns, count);
    }
    if (!all)
        log_error("the machine's limits: no memory for three arrays of %zu bytes; leave --limits "
                  "out",
                  count * sizeof(float));
    free(a);
    free(b);
    free(c);
    return all ? STATUS_OK : STATUS_NO_MEMORY;
}
