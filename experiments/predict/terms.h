/*
 * The fitted model: an all-reduce keeps links and processors busy beside each other, and takes
 * about as long as the busier ones,
 *
 *     seconds = (network^4 + processors^4)^(1/4)
 *
 * a maximum without an edge: while one takes half as long as the other, it adds 1.5%. Each is a sum
 * of terms:
 *
 *     network         constant                                  times, of the shape
 *     latency         a: s a message that others wait for       steps, one after the other
 *     link            1/B: s a byte of the busiest link         bytes there, each way
 *     burst           s that a link saves each operation        -1: what a token bucket (or a
 *                                                               switch's buffer) lets through at
 *                                                               once; never more than the link
 *                                                               term, or than the link had rested:
 *                                                               between operations, and while
 *                                                               servers' other direction filled
 *     fill burst      s that a link saves while servers' links  -1, where there are servers; never
 *                     are used in one direction only            more than what they take then
 *     reduce          g: s to add a byte                        bytes added, one after the other
 *     message         s of a processor for a message            messages of the busiest process
 *
 *     processors      of the machine's cores together           of all processes, where all run on
 *     cpu message     s a message                               one machine; else of the busiest
 *     cpu byte        s a byte that is sent
 *
 * The multipliers of latency, link and reduce are those of the backend's own formula
 * (common/comm/cost.h), which is linear in a, 1/B and g: each is the formula where that constant is
 * 1 and the others are 0. Of a server's bytes, those that come in before it answers, and those that
 * go out once all is in, fill its pipeline: 1/K of them (ps/ps.h).
 */
#ifndef PSRING_EXPERIMENTS_PREDICT_TERMS_H
#define PSRING_EXPERIMENTS_PREDICT_TERMS_H

#include "common/comm/backend.h"

enum predict_term {
    TERM_LATENCY,
    TERM_LINK,
    TERM_BURST,
    TERM_FILL_BURST,
    TERM_REDUCE,
    TERM_MESSAGE,
    TERM_CPU_MESSAGE,
    TERM_CPU_BYTE,
    PREDICT_TERMS,
    TERM_PROCESSORS = TERM_CPU_MESSAGE /* the first of theirs */
};

extern const char *const predict_term_names[PREDICT_TERMS];    /* "latency_s", ... */
extern const char *const predict_term_meanings[PREDICT_TERMS]; /* for model.json */

/* Multipliers, constants, or seconds: all by enum predict_term. */
struct predict_terms {
    double of[PREDICT_TERMS];
    /* Of a shape's: */
    double rest_s;     /* how long links had rested before; 0: long enough, or not known */
    double fill_bytes; /* of the link's */
};

/* What an all-reduce is, as bench.csv and the command line say it. */
struct predict_shape {
    const struct backend *backend;
    struct topology topology;
    size_t count;               /* elements */
    const int *hosts;           /* cost_shape.hosts; NULL: one each */
    double nominal_bytes_per_s; /* as the run would be told (--link-rate); 0: not known */
    enum compress compress;
    bool one_machine; /* all processes share its cores: virtual cluster, loopback */
    double rest_s;    /* how long links rest before; 0: long enough, or not known */
};

/* false: the backend has no formula for it. */
bool predict_terms_of(const struct predict_shape *shape, struct predict_terms *terms);

/* How long servers' links are used in one direction only, and the other one rests: less what the
 * fill burst saves of it. */
double predict_fill_s(const struct predict_terms *terms, const struct predict_terms *constants);

/* Seconds of each term; the bursts' are negative. */
struct predict_terms predict_seconds(const struct predict_terms *terms,
                                     const struct predict_terms *constants);

/* Of predict_seconds: what the network takes, what the processors, and what that is together. */
struct predict_parts {
    double network, processors, together;
};

struct predict_parts predict_parts_of(const struct predict_terms *seconds);

/* The other part, where both together are `together`; 0: already `one` is more. */
double predict_other_part(double together, double one);

/*
 * How much a second of the network, or of the processors, counts in what they are together: its
 * derivative. As the whole is homogeneous, it is also their sum with these weights (Euler).
 */
struct predict_weights {
    double network, processors;
};

struct predict_weights predict_weights_of(struct predict_parts parts);

/*
 * The multipliers as they count near some constants: what predict_parts_of says together is about
 * their sum with these constants. Where a burst takes all of its part of the link's time, neither
 * says anything. Where it is cut to how long the link had rested, it counts for as much of it as
 * that is, and what fills servers' pipelines does not count: they rested meanwhile.
 */
struct predict_terms predict_linear_at(const struct predict_terms *terms,
                                       const struct predict_terms *constants,
                                       struct predict_weights weights);

#endif
