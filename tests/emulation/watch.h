/* An observer of the work on the emulated device (count.c). */
#ifndef PSRING_TESTS_EMULATION_WATCH_H
#define PSRING_TESTS_EMULATION_WATCH_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The cost of one launch as far as the caller knows it. A library's product knows all of it. For a
 * psring kernel it is zero: its loads, stores and fused multiply-adds are counted while it runs. */
struct emulation_cost {
    double flops, read_bytes, written_bytes;
};

struct emulation_watcher {
    void (*allocated)(void *memory, size_t bytes); /* device memory */
    void (*freed)(void *memory);
    void (*launch_begin)(const char *kernel, const struct emulation_cost *known);
    void (*launch_end)(void);
    void (*copied)(const char *direction, size_t bytes);
};

/* NULL: no observer. Set before the device is opened. */
extern const struct emulation_watcher *emulation_watcher;

/* The number of calls of fmaf by kernels so far. */
extern unsigned long long emulation_fused;

#ifdef __cplusplus
}
#endif

#endif
