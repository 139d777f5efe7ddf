/*
 * The fitted model. An all-reduce uses links and processors at the same time, so it takes about as
 * long as the busier of them:
 *
 *     seconds = (network^4 + processors^4)^(1/4)
 *
 * This is a smooth maximum: if one part takes half as long as the other, it adds 1.5%. Each part is
 * a sum of terms, constant x multiplier:
 *
 *     network         constant                                multiplier, from the shape
 *     latency         a: s per message of a chain             sequential steps
 *     link            1/B: s per byte of the busiest link     its bytes, each way
 *     burst           s that a link saves per operation       -1; at most the link term, and
 *                     (token bucket, switch buffer)           at most the link's idle time:
 *                                                             between operations, and while
 *                                                             servers' other direction filled
 *     fill burst      s that a link saves while servers use   -1 with servers; at most the
 *                     only one of its directions              time of that phase
 *     reduce          g: s to add a byte                      bytes added sequentially
 *     message         s of a processor per message            messages of the busiest process
 *
 *     processors      (s of all cores of the machine)         all processes if all run on
 *     cpu message     s per message                           one machine, otherwise the
 *     cpu byte        s per byte sent                         busiest process
 *
 * The multipliers of latency, link and reduce come from the backend's own formula
 * (common/comm/cost.h), which is linear in a, 1/B and g. Each multiplier is the formula with that
 * constant at 1 and the others at 0.
 * Distance is no constant, because its round trip is measured, and not linear. It adds the formula
 * with it, less the formula without it.
 * The fill bytes of a server are those that arrive before it answers, plus those that leave after
 * all have arrived: 1/K of its bytes (ps/ps.h).
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
    TERM_PROCESSORS = TERM_CPU_MESSAGE /* first processor term */
};

extern const char *const predict_term_names[PREDICT_TERMS];    /* "latency_s", ... */
extern const char *const predict_term_meanings[PREDICT_TERMS]; /* for model.json */

/* Multipliers, constants or seconds, indexed by enum predict_term. */
struct predict_terms {
    double of[PREDICT_TERMS];
    /* Only for the multipliers of a shape: */
    double rest_s;     /* idle time of the links before the operation; 0: long enough, or unknown */
    double fill_bytes; /* bytes of the fill phase on the busiest link */
    double distance_s; /* what the distance costs; a part of the latency's seconds */
};

/* The shape of an all-reduce, as bench.csv and the command line describe it. */
struct predict_shape {
    const struct backend *backend;
    struct topology topology;
    size_t count;               /* elements */
    const int *hosts;           /* cost_shape.hosts; NULL: one host each */
    double nominal_bytes_per_s; /* as --link-rate of the run; 0: unknown */
    enum compress compress;
    int radix;           /* of rhd; 0: 2 */
    bool one_machine;    /* all processes share one machine's cores: virtual cluster, loopback */
    double rest_s;       /* idle time of the links before it; 0: long enough, or unknown */
    double uplink_delay; /* cost_uplink_delay; 0: no racks */
    /* A distance that the constants do not contain, one way, and the constants: distance does not
     * add to them, because a chunk that is long enough hides it. 0: none. */
    double distance_s, latency_s, link_s_per_byte;
};

/* The uplink_delay of the shape in such racks (comm_options). */
double predict_uplink_delay(const struct predict_shape *shape, int rack_ranks,
                            double oversubscribed);

/* Computes the multipliers. Returns false if the backend has no formula for the shape. */
bool predict_terms_of(const struct predict_shape *shape, struct predict_terms *terms);

/* Seconds for which servers' links use one direction only while the other is idle, minus the saving
 * of the fill burst. */
double predict_fill_s(const struct predict_terms *terms, const struct predict_terms *constants);

/* Seconds of each term. Those of the bursts are negative. */
struct predict_terms predict_seconds(const struct predict_terms *terms,
                                     const struct predict_terms *constants);

/* The network time, the processor time, and both combined, from predict_seconds. */
struct predict_parts {
    double network, processors, together;
};

struct predict_parts predict_parts_of(const struct predict_terms *seconds);

/* The part that combines with `one` to `together`. 0 if `one` alone reaches it. */
double predict_other_part(double together, double one);

/*
 * Derivatives of the combined time by network time and by processor time. The combined time is
 * homogeneous, so it equals the sum of both parts times these weights (Euler).
 */
struct predict_weights {
    double network, processors;
};

struct predict_weights predict_weights_of(struct predict_parts parts);

/*
 * The multipliers, linearised at some constants: their sum with these constants, and distance_s, is
 * about predict_parts_of().together. If a burst covers all of its part of the link's time,
 * both drop out. If the burst is limited by the idle time of the links, its multiplier is scaled by
 * idle time / burst. The fill phase then drops out, because the links are idle during it.
 */
struct predict_terms predict_linear_at(const struct predict_terms *terms,
                                       const struct predict_terms *constants,
                                       struct predict_weights weights);

#endif
