/* Who wants to know what the emulated device is asked for (count.c). */
#ifndef PSRING_TESTS_EMULATION_WATCH_H
#define PSRING_TESTS_EMULATION_WATCH_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of one launch, as far as the one who launches knows: a library's product has all of it. A kernel
 * of ours has zeros: its loads, stores and fused multiply-adds are watched while it runs. */
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

/* NULL: nobody. Set before the device is opened. */
extern const struct emulation_watcher *emulation_watcher;

/* Calls of fmaf by kernels so far. */
extern unsigned long long emulation_fused;

#ifdef __cplusplus
}
#endif

#endif
