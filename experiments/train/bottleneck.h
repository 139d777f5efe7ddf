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

/* One worker's, in ms: medians over its steps. */
struct bottleneck_rank {
    double step;
    double exposed; /* the step waits for averaging, or averages itself */
    double data;    /* it gets its batch */
    double comm;    /* averaging, exposed or not, on whichever thread */
    double cpu;     /* it computes on a processor: without averaging and data; NAN: not known */
};

struct bottleneck_facts {
    const struct bottleneck_rank *ranks; /* (workers) */
    size_t workers;
    const char *backend;
    int loaders; /* threads of a rank that make batches; 0: it makes them itself */
    int cores;   /* that a rank has for what it computes and loads; 0: not known */
    int threads; /* of those cores, for computation */
    bool waits;  /* --compute paced: computes nothing, so a rank that sleeps has no work */
    bool dedicated_servers; /* averaging goes through servers on further hosts */
    bool compressed;        /* gradients travel as 16 bits */
    /* Shares of a machine's cores while its ranks waited for averaging, of the busiest machine:
     * that were busy, and that other processes had. 0 or less: not known. */
    double cpu_busy, cpu_other;
    /* A host's link each way. 0: not known, and then the model's times are not known either. */
    double link_bits_per_s, faster_bits_per_s;
    /* By the cost model, ms a step, all buckets: on this link, on the faster one, and with as many
     * dedicated servers as workers. */
    double model, model_faster, model_spread;
};

enum bottleneck_cause {
    BOTTLENECK_NONE, /* no step was measured */
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
    int rank;        /* RANK: which worker; else -1 */
    double step;     /* ms, the slowest rank's, as the next ones */
    double cost;     /* what the cause costs of it */
    bool starved;    /* PROCESSORS: ranks that could compute did not run; else: cores were busy
                        while ranks averaged */
    int loaders;     /* LOADER: how many would help; 0: no number of them, or it is not known */
    double better;   /* what a step would take without the cause; NAN: not known */
    double fp16;     /* LINK, SERVER: what --compress fp16 would save; NAN: it is on */
    double of_model; /* averaging: the model's time over the time taken; NAN: not known */
    double too_fast; /* the same, if it is more than a link of that rate can carry: then that rate
                        is not this link's; else 0 */
};

struct bottleneck bottleneck_of(const struct bottleneck_facts *facts);

/* One sentence or two, without a newline, into `text`. Returns it. */
const char *bottleneck_describe(const struct bottleneck_facts *facts,
                                const struct bottleneck *bottleneck, char *text, size_t size);

#endif
