/*
 * The bottleneck of a training: the cause that costs most of a step, judged from what the ranks
 * measured. One judge serves the last line of psring train, train.csv and psring trace. Pure
 * functions of numbers.
 *
 * A cause is named only with this evidence:
 *
 *   computation   nothing else costs 15% of a step
 *   loader        ranks wait for their batch
 *   processors    a rank that has work does not run; or the cores are busy while ranks average
 *   rank          one rank takes longer than the others before it averages
 *   link          averaging takes little more than its bytes take a link of a known rate
 *   server        the same, and that link is a server's: more servers would share the bytes
 *   averaging     ranks wait for averaging, and none of the above is measured
 *
 * Only a link of a known rate allows a projection of the time of averaging. `averaging` and
 * `processors` have no projection.
 *
 * Averaging makes all ranks equally slow, so the time of a rank's step says nothing about that
 * rank. The judge uses each rank's own time (data and computation, without waits for other ranks)
 * and the averaging of the rank that comes last. That rank waits for no other.
 */
#ifndef PSRING_EXPERIMENTS_TRAIN_BOTTLENECK_H
#define PSRING_EXPERIMENTS_TRAIN_BOTTLENECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One worker's medians over its steps, in ms. */
struct bottleneck_rank {
    double step;
    double exposed; /* time in which the step waits for averaging or averages itself */
    double data;    /* time to get the batch */
    double comm;    /* averaging, exposed or not, on any thread */
    double cpu;     /* computing on a processor, without averaging and data; NAN: not known */
};

struct bottleneck_facts {
    const struct bottleneck_rank *ranks; /* (workers) */
    size_t workers;
    uint64_t steps; /* of each median; no cause is named below STATS_INTERVAL_LEAST */
    const char *backend;
    int loaders; /* threads of a rank that make batches; 0: the training thread makes them */
    int cores;   /* of a rank, for computing and loading; 0: not known */
    int threads; /* compute threads of a rank */
    bool waits;  /* --compute paced: computes nothing, so a rank that sleeps has no work */
    bool dedicated_servers; /* averaging goes through servers on extra hosts */
    bool compressed;        /* gradients travel as 16 bits */
    /* Shares of the busiest machine's cores while its ranks waited for averaging: busy cores, and
     * cores used by other processes. 0 or less: not known. */
    double cpu_busy, cpu_other;
    /* Rate of a host's link in each direction. 0: not known; then the model's times are unknown,
     * too. */
    double link_bits_per_s, faster_bits_per_s;
    /* Times by the cost model, in ms per step for all buckets: on this link, on the faster link,
     * and with as many dedicated servers as workers. */
    double model, model_faster, model_spread;
};

enum bottleneck_cause {
    BOTTLENECK_NONE, /* too few steps were measured */
    BOTTLENECK_COMPUTATION,
    BOTTLENECK_LOADER,
    BOTTLENECK_PROCESSORS,
    BOTTLENECK_RANK,
    BOTTLENECK_LINK,
    BOTTLENECK_SERVER,
    BOTTLENECK_AVERAGING,
    BOTTLENECK_CAUSES
};

extern const char *const bottleneck_names[BOTTLENECK_CAUSES];

struct bottleneck {
    enum bottleneck_cause cause;
    int rank;        /* RANK: the worker's number; else -1 */
    double step;     /* ms, of the slowest rank, like the times below */
    double cost;     /* the part of `step` that the cause costs */
    bool starved;    /* PROCESSORS: ranks that could compute did not run; if false, cores were busy
                        while ranks averaged */
    int loaders;     /* LOADER: the number that would help; 0: none would, or not known */
    double better;   /* time of a step without the cause; NAN: not known */
    double fp16;     /* LINK, SERVER: time that --compress fp16 would save; NAN: it is already on */
    double of_model; /* averaging: the model's time / the measured time; NAN: not known */
    double too_fast; /* the same ratio, if a link of this rate cannot carry so much (--link-rate is
                        wrong); else 0 */
};

struct bottleneck bottleneck_of(const struct bottleneck_facts *facts);

/* Writes one or two sentences, without a newline, to `text`. Returns `text`. */
const char *bottleneck_describe(const struct bottleneck_facts *facts,
                                const struct bottleneck *bottleneck, char *text, size_t size);

#endif
