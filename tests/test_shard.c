/* The parameter server's cut: every element in exactly one chunk of one shard, windows within
 * bounds. */
#include <criterion/criterion.h>

#include "ps/shard.h"

Test(shard, chunks_cover_every_element_once)
{
    static const size_t counts[] = {0, 1, 2, 3, 7, 100, 2048, 2049, 65537, 1199882};
    static const size_t chunk_bytes[] = {0, 4, 1000, 65536};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        for (int servers = 1; servers <= 8; servers++) {
            for (size_t b = 0; b < sizeof chunk_bytes / sizeof *chunk_bytes; b++) {
                struct shard_plan plan = shard_plan(4, servers, counts[c], chunk_bytes[b], 0);
                size_t at = 0;
                for (int s = 0; s < servers; s++) {
                    struct chunk shard = chunk_of(counts[c], (size_t)servers, (size_t)s);
                    for (size_t i = 0; i < shard_chunks(&plan, shard.count); i++) {
                        struct chunk chunk = shard_chunk(&plan, shard, i);
                        cr_assert_eq(chunk.offset, at);
                        cr_assert_gt(chunk.count, 0);
                        cr_assert_leq(chunk.count, plan.chunk_count);
                        at += chunk.count;
                    }
                }
                cr_assert_eq(at, counts[c]);
            }
        }
    }
}

/* Incast: what all workers may have on the way to one server fits in a switch port's queue. */
Test(shard, windows_stay_below_a_ports_queue)
{
    for (int workers = 1; workers <= 700; workers += 1 + workers / 8) {
        for (size_t count = 1; count < (64u << 20); count *= 3) {
            struct shard_plan plan = shard_plan(workers, 1, count, 0, 0);
            size_t flight =
                (size_t)workers * (size_t)plan.window * plan.chunk_count * sizeof(float);
            cr_assert_geq(plan.window, 2);
            cr_assert_leq(flight, 1536u << 10, "%d workers, %zu elements: %zu bytes", workers,
                          count, flight);
        }
    }
}

Test(shard, what_is_asked_for_is_taken)
{
    struct shard_plan plan = shard_plan(4, 2, 1 << 20, 4096, 3);
    cr_assert_eq(plan.chunk_count, 1024);
    cr_assert_eq(plan.window, 3);
}
