/*
 * Counts the work of the emulated device in a training step, for psring_counted: launches, copies,
 * and for each launch the bytes and the floating-point operations.
 *
 * Bytes read, written: 32 bytes for each sector of device memory that the launch loads from or
 * stores to, counted once a launch. This is the least traffic between memory and caches, reached if
 * the caches keep what the launch uses again. A copy counts its bytes as read. Kernels are compiled
 * as for ThreadSanitizer: the compiler inserts a call of the functions below at every load and
 * store. Registers and local memory are not seen. A library's product counts each operand once.
 *
 * flops: 2 m n k for a library's product, 2 for each fmaf of a kernel. Sums of partial sums,
 * comparisons and optimizers are not counted, because on a GPU they wait for memory.
 *
 * The file that EMULATED_COUNTS names gets lines "step,part,what,name,read,written,flops". The part
 * is the range (common/base/range.h) that began last. Work outside of steps is not counted.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/status.h"
#include "common/base/range.h"
#include "tests/emulation/watch.h"

enum { SECTOR = 32, REGIONS_MAX = 256, DEPTH_MAX = 16 };

/* -------- device memory ----------------------------------------------------------------------- */

/* For each sector: the last launch that read it, and the last launch that wrote it. */
struct region {
    uintptr_t begin, end;
    uint32_t *read_by, *written_by;
};
static struct region regions[REGIONS_MAX], *recent = regions;
static size_t region_count;

static uint32_t launch; /* number of the running launch; 0: none */
static uint64_t launches, read_sectors, written_sectors;

static void allocated(void *memory, size_t bytes)
{
    size_t sectors = bytes / SECTOR + 1;
    CHECK(region_count < REGIONS_MAX);
    struct region *region = &regions[region_count++];
    *region = (struct region){(uintptr_t)memory, (uintptr_t)memory + bytes,
                              calloc(sectors, sizeof(uint32_t)), calloc(sectors, sizeof(uint32_t))};
    CHECK(region->read_by && region->written_by);
}

static void freed(void *memory)
{
    for (size_t i = 0; i < region_count; i++) {
        if (regions[i].begin == (uintptr_t)memory) {
            free(regions[i].read_by);
            free(regions[i].written_by);
            regions[i] = regions[--region_count];
            recent = regions;
            return;
        }
    }
}

static struct region *region_of(uintptr_t at)
{
    if (at >= recent->begin && at < recent->end)
        return recent;
    for (size_t i = 0; i < region_count; i++) {
        if (at >= regions[i].begin && at < regions[i].end)
            return recent = &regions[i];
    }
    return NULL;
}

static void touch(const void *memory, size_t bytes, bool writes)
{
    uintptr_t at = (uintptr_t)memory;
    struct region *region = launch ? region_of(at) : NULL;
    if (!region)
        return;
    uint32_t *by = writes ? region->written_by : region->read_by;
    size_t last = (at + bytes - 1 - region->begin) / SECTOR;
    for (size_t sector = (at - region->begin) / SECTOR; sector <= last; sector++) {
        if (by[sector] == launch)
            continue;
        by[sector] = launch;
        *(writes ? &written_sectors : &read_sectors) += 1;
    }
}

/* The functions that the compiler calls instead of ThreadSanitizer's library. */
void __tsan_init(void);
void __tsan_init(void)
{
}

void __tsan_func_exit(void);
void __tsan_func_exit(void)
{
}

#define TSAN_ACCESS(name, bytes, writes)                                                           \
    void __tsan_##name(void *memory);                                                              \
    void __tsan_##name(void *memory)                                                               \
    {                                                                                              \
        touch(memory, bytes, writes);                                                              \
    }
#define TSAN_SIZE(bytes)                                                                           \
    TSAN_ACCESS(read##bytes, bytes, false)                                                         \
    TSAN_ACCESS(write##bytes, bytes, true)                                                         \
    TSAN_ACCESS(unaligned_read##bytes, bytes, false)                                               \
    TSAN_ACCESS(unaligned_write##bytes, bytes, true)
#define TSAN_RANGE(name, writes)                                                                   \
    void __tsan_##name(void *memory, size_t bytes);                                                \
    void __tsan_##name(void *memory, size_t bytes)                                                 \
    {                                                                                              \
        touch(memory, bytes, writes);                                                              \
    }
TSAN_ACCESS(func_entry, 0, false) /* the address of code: in no region */
TSAN_SIZE(1)
TSAN_SIZE(2)
TSAN_SIZE(4)
TSAN_SIZE(8)
TSAN_SIZE(16)
TSAN_RANGE(read_range, false)
TSAN_RANGE(write_range, true)

/* -------- where in the step ------------------------------------------------------------------- */

static _Thread_local const char *parts[DEPTH_MAX];
static _Thread_local int depth;
static _Thread_local uint64_t step;
static FILE *file;

static void part_begin(const char *name, const struct range_about *about, int64_t now_ns)
{
    (void)now_ns;
    CHECK(depth < DEPTH_MAX);
    if (about->kind == RANGE_STEP)
        step = about->number + 1;
    parts[depth++] = name;
}

static void part_end(int64_t now_ns)
{
    (void)now_ns;
    CHECK(depth > 0);
    if (--depth == 0)
        step = 0;
}

static void range_opened(struct range *range)
{
    range->begin_ns = 0;
}

static void range_closed(const struct range *range)
{
    (void)range;
}

static void moment(const char *name, const struct range_about *about)
{
    (void)name;
    (void)about;
}

static void at_step(uint64_t number)
{
    (void)number;
}

static const struct range_listener listener = {
    .begin = part_begin,
    .end = part_end,
    .open = range_opened,
    .close = range_closed,
    .moment = moment,
    .at_step = at_step,
};

/* -------- launches and copies ----------------------------------------------------------------- */

static char kernel[32];
static struct emulation_cost cost;
static unsigned long long fused_before;

static void say(const char *what, const char *name, double read, double written, double flops)
{
    if (step)
        fprintf(file, "%llu,%s,%s,%s,%.0f,%.0f,%.0f\n", (unsigned long long)step, parts[depth - 1],
                what, name, read, written, flops);
}

/* Keeps "lower" of "lower<N>". */
static void keep_name(const char *name)
{
    size_t bytes = 0;
    name += *name == '(';
    while (name[bytes] && name[bytes] != '<' && bytes < sizeof kernel - 1)
        bytes++;
    snprintf(kernel, sizeof kernel, "%.*s", (int)bytes, name);
}

static void launch_begin(const char *name, const struct emulation_cost *known)
{
    keep_name(name);
    cost = *known;
    read_sectors = written_sectors = 0;
    fused_before = emulation_fused;
    launch = (uint32_t)++launches;
}

static void launch_end(void)
{
    launch = 0;
    say("launch", kernel, cost.read_bytes + SECTOR * (double)read_sectors,
        cost.written_bytes + SECTOR * (double)written_sectors,
        cost.flops + 2 * (double)(emulation_fused - fused_before));
}

static void copied(const char *direction, size_t bytes)
{
    say("copy", direction, (double)bytes, 0, 0);
}

static const struct emulation_watcher watcher = {
    .allocated = allocated,
    .freed = freed,
    .launch_begin = launch_begin,
    .launch_end = launch_end,
    .copied = copied,
};

static void close_file(void)
{
    CHECK(fclose(file) == 0);
}

__attribute__((constructor)) static void start(void)
{
    const char *path = getenv("EMULATED_COUNTS");
    if (!path)
        return;
    file = fopen(path, "w");
    if (!file) {
        perror(path);
        exit(1);
    }
    atexit(close_file);
    emulation_watcher = &watcher;
    atomic_store(&range_listener, &listener);
}
