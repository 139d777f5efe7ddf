/*
 * Many worlds in one process, one after the other: psring_init, operations of several lengths, a
 * group, psring_finalize. After the first ones the process has no more descriptors, threads or
 * memory than before. PSRING_TEST_LONG=1 takes 1,000 worlds of each kind.
 */
#include "tests/lib/psring_ranks.h"

#include <dirent.h>
#include <malloc.h>
#include <stdlib.h>

/* The allocator keeps SLACK_BYTES for itself, and a few bytes for each world. */
enum { FEW = 150, MANY = 1000, FIRST = 10, LENGTH = 20000, SLACK_BYTES = 16384, WORLD_BYTES = 16 };

struct usage {
    int descriptors, threads;
    size_t heap_bytes; /* 0: a sanitizer has replaced malloc */
};

static int count_in(const char *path)
{
    int count = 0;
    DIR *folder = opendir(path);
    MUST(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static struct usage usage(void)
{
    struct usage now = {.descriptors = count_in("/proc/self/fd"),
                        .threads = count_in("/proc/self/task")};
    now.heap_bytes = mallinfo2().uordblks + mallinfo2().hblkhd;
    return now;
}

static void average(struct psring *world, size_t count)
{
    static float data[LENGTH];
    int rank = psring_rank(world), size = psring_size(world);
    for (size_t i = 0; i < count; i++)
        data[i] = (float)(rank + (int)(i % 7));
    MUST(psring_allreduce(world, data, count, PSRING_FLOAT32, PSRING_SUM) == PSRING_OK);
    for (size_t i = 0; i < count; i++) /* exact: small whole numbers */
        MUST(data[i] == (float)(size * (size - 1) / 2 + size * (int)(i % 7)));
}

static void live_once(const struct psring_options *options)
{
    struct psring *world = begin(options), *group = NULL;
    for (size_t count = 1; count <= LENGTH; count *= 27)
        average(world, count);
    MUST(psring_split(world, options->rank % 2, &group) == PSRING_OK);
    average(group, 1000);
    MUST(psring_free(&group) == PSRING_OK);
    average(world, LENGTH);
    MUST(psring_finalize(&world) == PSRING_OK);
}

static int worlds(void)
{
    const char *is_long = getenv("PSRING_TEST_LONG");
    return is_long && strcmp(is_long, "1") == 0 ? MANY : FEW;
}

static void live_often(const struct psring_options *options)
{
    struct usage before = {0}, after;
    alarm(worlds() > FEW ? 1800 : 300);
    for (int i = 0; i < worlds(); i++) {
        if (i == FIRST)
            before = usage();
        live_once(options);
    }
    /* A thread that was joined may be in /proc for a moment longer. */
    for (after = usage(); after.threads > before.threads; after = usage())
        usleep(1000);
    MUST(after.descriptors == before.descriptors);
    if (after.heap_bytes > before.heap_bytes + SLACK_BYTES + (size_t)worlds() * WORLD_BYTES) {
        fprintf(stderr, "the heap grew from %zu to %zu bytes\n", before.heap_bytes,
                after.heap_bytes);
        _exit(1);
    }
}

static void check(int size, const char *backend, const char *transport)
{
    run_ranks(&(struct job){.options = {.size = size, .backend = backend, .transport = transport},
                            .run = live_often},
              0);
}

Test(often, worlds_of_one)
{
    check(1, "auto", "auto");
}

Test(often, worlds_over_tcp)
{
    check(3, "ring", "tcp");
}

Test(often, worlds_over_zmq)
{
    check(3, "ring", "zmq");
}

Test(often, worlds_that_choose)
{
    check(3, "auto", "auto");
}
