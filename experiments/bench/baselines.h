/*
 * The limits of this machine, measured in the same run as the all-reduces, which are compared with
 * them. The limits are the rate at which a core reads and writes memory, and the round trip of a
 * message through ZeroMQ and on a plain socket. Others are the rate of plain TCP streams, and the
 * time of a server on plain sockets.
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
    /* One core, arrays much larger than its caches: c = a + b, and the reduction's kernel a += b on
     * the same arrays. Both count 12 bytes an element as STREAM does: two floats read and one
     * written. Source: McCalpin 1995, "Memory bandwidth and machine balance in current high
     * performance computers". */
    double add_bytes_per_s, reduce_bytes_per_s;
    /* Index: enum message_dtype. The sum of such elements (reduce.h), two read and one written. */
    double type_bytes_per_s[MESSAGE_DTYPES];
    double round_trip_us;  /* 4 bytes, DEALER to ROUTER and back, rank 0 and rank 1; the median */
    double socket_trip_us; /* the same on a plain TCP socket; both ranks poll without sleeping */
    double stream_bytes_per_s; /* one way of plain TCP, both ways at once (probe.h) */
    double server_us;          /* of this row's size: limits_server */
    int server_workers;        /* in that time */
};

/*
 * Collective over the world: fills `limits` on every rank. Rank 0 measures memory while the other
 * ranks wait. Then rank 0 and rank 1 exchange messages. `streams` adds a probe (about 1 s); without
 * it stream_bytes_per_s is unchanged. A world of one measures memory alone. Takes about 1 s without
 * the probe. Errors: logged.
 */
enum status limits_measure(struct limits *limits, struct world *world, const char *subnet,
                           int64_t timeout_ms, bool streams);

/*
 * Collective over the world: sets server_us on every rank; 0 in a world of one. It is the time in
 * which rank 0 receives `bytes` bytes of float32 from each other rank, adds, and sends each the
 * sum. It uses plain TCP sockets and one loop over poll(2), without messages of a protocol. The
 * time is the median of 7 series without a barrier between their turns, each of the slowest worker.
 * Two turns are checked. Takes 10 turns, or up to 73 if they are short. Memory: a vector of each
 * worker at the server. A turn that takes longer
 * than `timeout_ms` is an error. Errors: logged, with the rank that is missing or has ended;
 * STATUS_WRONG if a sum is not exact.
 */
enum status limits_server(struct limits *limits, struct world *world, const char *subnet,
                          int64_t timeout_ms, size_t bytes);

/* Prints lines that start with '#', to stand above the table. Prints nothing if nothing was
 * measured. */
void limits_print(FILE *out, const struct limits *limits);

/*
 * Measures bytes/s of one core, the first three of `limits`: the best of several passes. c = a + b
 * and reduce_add (a += b) alternate and count 12 bytes an element. The sum of each other type
 * counts three of its elements. `count`: floats an array; 0 chooses four times the last-level
 * cache, as STREAM requires, within bounds. Errors: STATUS_NO_MEMORY, logged.
 */
enum status limits_memory(size_t count, struct limits *limits);

#endif
