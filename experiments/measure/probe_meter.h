/* The rate of a TCP stream, and whether it was steady, from when its bytes arrived. */
#ifndef PSRING_EXPERIMENTS_PROBE_METER_H
#define PSRING_EXPERIMENTS_PROBE_METER_H

#include <stdint.h>

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

#endif
