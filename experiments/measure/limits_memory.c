#include "experiments/measure/limits_memory.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/memory.h"
#include "common/comm/reduce.h"
#include "common/device/kernel.h"

enum { PASSES = 4 };

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

/* Of three arrays of so many bytes. */
static void keep_best(double *best, int64_t start_ns, size_t bytes)
{
    double seconds = (double)(clock_now_ns() - start_ns) * 1e-9;
    double rate = 3 * (double)bytes / seconds;
    *best = rate > *best ? rate : *best;
}

static void reduce_types(void *a, const void *b, size_t bytes,
                         double type_bytes_per_s[MESSAGE_DTYPES])
{
    for (enum message_dtype dtype = MESSAGE_FLOAT32; dtype < MESSAGE_DTYPES; dtype++) {
        size_t elements = bytes / message_element_bytes(dtype);
        int64_t start_ns = clock_now_ns();
        reduction_of(dtype, REDUCE_SUM)->combine(a, b, elements);
        keep_best(&type_bytes_per_s[dtype], start_ns, elements * message_element_bytes(dtype));
    }
}

enum status limits_memory(size_t count, double *add_bytes_per_s, double *reduce_bytes_per_s,
                          double type_bytes_per_s[MESSAGE_DTYPES])
{
    count = count > 0 ? count : default_count();
    float *a = memory_array(count * sizeof *a), *b = memory_array(count * sizeof *b);
    float *c = memory_array(count * sizeof *c);
    bool all = a && b && c;
    size_t bytes = count * sizeof(float);
    *add_bytes_per_s = *reduce_bytes_per_s = 0;
    memset(type_bytes_per_s, 0, MESSAGE_DTYPES * sizeof *type_bytes_per_s);
    for (int pass = 0; all && pass < PASSES; pass++) {
        int64_t start_ns = clock_now_ns();
        add(c, a, b, count);
        keep_best(add_bytes_per_s, start_ns, bytes);
        start_ns = clock_now_ns();
        reduce_add(a, b, count);
        keep_best(reduce_bytes_per_s, start_ns, bytes);
        reduce_types(a, b, bytes, type_bytes_per_s);
    }
    if (!all)
        log_error("the machine's limits: no memory for three arrays of %zu bytes; leave --limits "
                  "out",
                  bytes);
    free(a);
    free(b);
    free(c);
    return all ? STATUS_OK : STATUS_NO_MEMORY;
}
