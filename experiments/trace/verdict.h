/*
 * What limits a training, from what its ranks have measured, how much of a step it costs, and what
 * would help by how much. Pure functions of numbers.
 *
 * Averaging makes all ranks equally slow: how long a rank's step takes says nothing about that
 * rank. So each rank's own time counts (data and computation, without what it waits for others),
 * and how long its averaging takes: it is shortest on the rank that comes last, for which the
 * others wait.
 */
#ifndef PSRING_EXPERIMENTS_VERDICT_H
#define PSRING_EXPERIMENTS_VERDICT_H

#include <stdbool.h>
#include <stddef.h>

/* One worker's, in ms: medians over its steps. */
struct verdict_rank {
    double step;
    double exposed; /* the step waits for averaging, or averages itself */
    double data;    /* it gets its batch */
    double comm;    /* averaging, exposed or not, on whichever thread */
    double cpu;     /* it computes on a processor: without averaging and data; NAN: not known */
};

struct verdict_facts {
    const struct verdict_rank *ranks; /* (workers) */
    size_t workers;
    const char *backend;
    int loaders;            /* threads of a rank that make batches; 0: it makes them itself */
    int cores;              /* that a rank has for what it computes and loads; 0: not known */
    int threads;            /* of those cores, for computation */
    bool waits;             /* --compute paced: computes nothing, so processors do not count */
    bool dedicated_servers; /* averaging goes through servers with hosts of their own */
    bool compressed;        /* gradients travel as 16 bits */
    /* Of a host's link each way; 0: not known, then nothing of what follows is. */
    double link_bits_per_s, faster_bits_per_s;
    /* By the cost model, ms a step, all buckets: on this link, on the faster one, and with as many
     * dedicated servers as workers. */
    double model, model_faster, model_spread;
    double latencies; /* how many messages follow one another in a step */
};

enum verdict_limit {
    VERDICT_NONE, /* a single worker, or nothing is known */
    VERDICT_COMPUTATION,
    VERDICT_DATA,
    VERDICT_PROCESSORS, /* computation waits for a processor */
    VERDICT_RANK,       /* one is later than the others */
    VERDICT_NETWORK,
    VERDICT_SERVER,
    VERDICT_OVERHEAD, /* averaging costs messages, not bytes: there is too little in a step */
    VERDICT_LIMITS
};

extern const char *const verdict_names[VERDICT_LIMITS];

struct verdict {
    enum verdict_limit limit;
    int rank;        /* RANK: which worker; else -1 */
    double step;     /* ms, the slowest rank's, as the next ones */
    double cost;     /* what the limit costs of it */
    int loaders;     /* DATA: how many would help; 0: no number of them, or it is not known */
    double better;   /* what a step would take with what would help; NAN: not known */
    double fp16;     /* what --compress fp16 would save; NAN: not known, or it is on */
    double of_model; /* NETWORK, SERVER: the model's time over the time taken; NAN: not known */
    double too_fast; /* the same, if it is more than a link of that rate can: then what the link's
                        rate says is not believed; else 0 */
};

struct verdict verdict_of(const struct verdict_facts *facts);

/* One sentence or two, without a newline, into `text`. Returns it. */
const char *verdict_describe(const struct verdict_facts *facts, const struct verdict *verdict,
                             char *text, size_t size);

#endif
