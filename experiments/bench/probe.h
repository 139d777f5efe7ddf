/*
 * Measures the goodput of the hosts' links: the rate of a plain TCP stream. Times of all-reduces
 * are compared with it. The nominal rate of a link does not suffice: headers and acknowledgements
 * take some percent of it, and on a real network it may be unknown.
 *
 * The hosts form a ring, with one rank of each (or all ranks, if there is one host only). Every
 * host streams to the next while it receives from the one before. All links are full both ways at
 * once, as in an all-reduce. Neither ZeroMQ nor MPI touches the data. In a virtual cluster only two
 * hosts take part, because all of them together may need more CPU time than the machine has.
 *
 * A stream can pause, because the machine was busy or TCP waited for a retransmission. The rate
 * during the pause is too low, and that of the burst after it is too high. Therefore the probe
 * compares the rates of the stream's parts. If they differ it measures again, up to PROBE_ROUNDS
 * times, and takes the steadiest round.
 */
#ifndef PSRING_EXPERIMENTS_BENCH_PROBE_H
#define PSRING_EXPERIMENTS_BENCH_PROBE_H

#include <stdint.h>

#include "common/base/status.h"
#include "common/net/address.h"
#include "common/net/world.h"

/* The interval of a stream that counts: PROBE_LENGTH_NS, after PROBE_SKIP_NS and PROBE_SKIP_TRIPS
 * round trips. Before it, the token bucket's burst and TCP's slow start (which overshoots and
 * recovers) distort the rate. Slow start takes a round trip to double what is under way, or to add
 * half to it if the receiver acknowledges every second packet. */
#define PROBE_SKIP_NS INT64_C(400000000)
#define PROBE_LENGTH_NS INT64_C(600000000)
enum { PROBE_SKIP_TRIPS = 16 };

/* The interval that counts has PROBE_PARTS parts. The stream is steady if their rates differ by at
 * most this share of the fastest. */
enum { PROBE_PARTS = 3 };
#define PROBE_STEADY 0.04

/*
 * The steady rate of a stream that arrives in pieces, measured from arrival to arrival. The rate
 * over the whole interval would be wrong by up to a burst.
 */
struct probe_meter {
    int64_t skip_ns; /* start of the interval that counts, since the start of the stream */
    uint64_t bytes;  /* in all */
    struct probe_span {
        int64_t first_ns, last_ns;        /* first and last arrival that count; 0: none so far */
        uint64_t first_bytes, last_bytes; /* bytes that had arrived by then, inclusive */
    } whole, part[PROBE_PARTS];
};

/* The meter of a stream between hosts of this round trip (0: not known). */
struct probe_meter probe_meter_for(double round_trip_s);

/* Adds `bytes` that arrived `since_start_ns` after the start of the stream. */
void probe_meter_add(struct probe_meter *meter, int64_t since_start_ns, uint64_t bytes);

/* bytes/s; 0 if fewer than two pieces arrived. */
double probe_meter_rate(const struct probe_meter *meter);

/* How far the slowest part's rate lies below the fastest's, as a share: 0 for a steady stream, 1 if
 * a part has no rate. */
double probe_meter_spread(const struct probe_meter *meter);

/*
 * Collective over the world. `bytes_per_s`: the lowest rate at which a host received payload, equal
 * on every rank. It is 0 for a world of one, and, with a warning, on a link so slow that too little
 * arrives. `subnet` as in comm_options. A round takes the meter's interval, and the time until all
 * data under way has arrived. One round suffices if the stream is steady. Waits in poll(2). Warns
 * if the CPUs were too busy or no round was steady. Errors: logged; STATUS_TIMEOUT if a stream is
 * silent for `timeout_ms`.
 */
enum status probe_link(struct world *world, const char *subnet, int64_t timeout_ms,
                       double *bytes_per_s);

/*
 * Collective over the world. Rank 0 prints a line for every host: name, address, interface, cores,
 * lead of its clock over the first host's, and commit of its program. The last column is the rate
 * of a stream to the next host while all hosts send. `subnet` and `timeout_ms` as in probe_link.
 */
enum status probe_hosts(struct world *world, const char *subnet, int64_t timeout_ms);

#endif
