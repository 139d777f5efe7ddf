/*
 * The goodput of the hosts' links, measured: what a plain TCP stream carries, beside which the
 * times of all-reduces are judged. The nominal rate of a link cannot serve for that: headers and
 * acknowledgements take some percent of it, and on a real network nobody may know it.
 *
 * The hosts stand in a ring, one rank of each (all ranks, where there is one host only): every host
 * streams to the next while it receives from the one before, so that all links are full both ways
 * at once, as they are in an all-reduce. Neither ZeroMQ nor MPI touches the data. Of the hosts of a
 * virtual cluster only two take part: all of them together may need more CPU time than there is.
 *
 * A stream that pauses, because the machine was busy elsewhere or TCP waited for a retransmission,
 * tells too little, and what arrives after the pause at once too much. The rates of the parts of
 * its time must agree, or it is measured again, up to PROBE_ROUNDS times; the steadiest counts.
 */
#ifndef PSRING_EXPERIMENTS_BENCH_PROBE_H
#define PSRING_EXPERIMENTS_BENCH_PROBE_H

#include <stdint.h>

#include "common/base/status.h"
#include "common/net/address.h"
#include "common/net/world.h"

/* Of a stream's life, the part that counts: the first is the token bucket's savings and TCP's slow
 * start, which overshoots and has to recover. */
#define PROBE_SKIP_NS INT64_C(400000000)
#define PROBE_END_NS INT64_C(1000000000)

/* The part that counts is cut into so many, whose rates differ by this share of the fastest at most
 * where a stream is steady. */
enum { PROBE_PARTS = 3 };
#define PROBE_STEADY 0.04

/*
 * The steady rate of a stream that arrives in pieces. Measured from arrival to arrival rather than
 * over the whole interval: a stream that comes in bursts would else be off by up to a burst.
 */
struct probe_meter {
    uint64_t bytes; /* in all */
    struct probe_span {
        int64_t first_ns, last_ns;        /* arrivals that count; 0: none so far */
        uint64_t first_bytes, last_bytes; /* had arrived by then, those included */
    } whole, part[PROBE_PARTS];
};

/* `bytes` more have arrived, `since_start_ns` after the stream began. */
void probe_meter_add(struct probe_meter *meter, int64_t since_start_ns, uint64_t bytes);

/* 0 where too little arrived to tell: less than two pieces. */
double probe_meter_rate(const struct probe_meter *meter);

/* By how much the slowest part's rate lies below the fastest's: 0 for a steady stream, 1 where a
 * part got too little to tell. */
double probe_meter_spread(const struct probe_meter *meter);

/*
 * Collective over the world. `bytes_per_s`: the lowest rate of payload that any of the hosts
 * received at, on every rank alike; 0 where there is none: a world of one, or a link so slow that
 * too little arrives (then with a warning). `subnet` as in comm_options. A round takes
 * PROBE_END_NS, and until what is under way has arrived; one is enough where the stream is steady.
 * Waits in poll(2); warns where the CPUs were too busy or no round was steady. Errors: logged;
 * STATUS_TIMEOUT where a stream stays silent for `timeout_ms`.
 */
enum status probe_link(struct world *world, const char *subnet, int64_t timeout_ms,
                       double *bytes_per_s);

/*
 * Collective over the world. Rank 0 prints a line for every host: its name, address and interface,
 * its cores, by how much its clock is ahead of the first host's, the commit of its program, and
 * what a stream to the next host carries while all hosts send. `subnet` and `timeout_ms` as in
 * probe_link.
 */
enum status probe_hosts(struct world *world, const char *subnet, int64_t timeout_ms);

#endif
