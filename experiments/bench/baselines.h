/*
 * What this machine can do at best, measured in the same run as the all-reduces that are held
 * against it: how fast a core reads and writes memory, the time that a message through ZeroMQ and
 * on a plain socket takes there and back, and what plain TCP streams carry.
 */
#ifndef PSRING_EXPERIMENTS_BENCH_BASELINES_H
#define PSRING_EXPERIMENTS_BENCH_BASELINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/status.h"
#include "common/comm/reduce.h"
#include "common/net/world.h"

/* 0: not measured. */
struct limits {
    /* Of one core, over arrays much larger than its caches: 12 bytes an element, two floats read
     * and one written, as STREAM counts. c = a + b, and the reduction's kernel, a += b, on the same
     * arrays. Source: McCalpin 1995, "Memory bandwidth and machine balance in current high
     * performance computers". */
    double add_bytes_per_s, reduce_bytes_per_s;
    /* By enum message_dtype: the sum of such elements (reduce.h), two read and one written. */
    double type_bytes_per_s[MESSAGE_DTYPES];
    double round_trip_us;  /* 4 bytes, DEALER to ROUTER and back, rank 0 and rank 1; the median */
    double socket_trip_us; /* the same on a plain TCP socket, and nobody sleeps */
    double stream_bytes_per_s; /* one way of plain TCP, both ways at once (probe.h) */
};

/*
 * Collective over the world: fills `limits` on every rank. Rank 0 measures memory while the others
 * wait; then messages go between rank 0 and rank 1. `streams`: with a probe (about
 * 1 s), else stream_bytes_per_s stays as it is. A world of one measures memory alone. About 1 s
 * besides the probe. Errors: logged.
 */
enum status limits_measure(struct limits *limits, struct world *world, const char *subnet,
                           int64_t timeout_ms, bool streams);

/* As lines that start with '#', above the table. Nothing where nothing was measured. */
void limits_print(FILE *out, const struct limits *limits);

/*
 * bytes/s, 12 an element: the best of some passes of c = a + b and of reduce_add (a += b), which
 * take turns; and of the sum of each other type, three of its elements' bytes. `count` floats an
 * array; 0: four times the last-level cache, as STREAM asks, within bounds. Errors:
 * STATUS_NO_MEMORY, logged.
 */
enum status limits_memory(size_t count, double *add_bytes_per_s, double *reduce_bytes_per_s,
                          double type_bytes_per_s[MESSAGE_DTYPES]);

#endif
