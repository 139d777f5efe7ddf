/* Where one way to average becomes faster than another. Intervals: 95% of what comes out where the
 * constants are drawn from their covariance and both times have errors as rows had that were not
 * fitted. */
#ifndef PSRING_EXPERIMENTS_PREDICT_CROSSOVER_H
#define PSRING_EXPERIMENTS_PREDICT_CROSSOVER_H

#include <stdio.h>

#include "experiments/predict/forecast.h"

enum { PREDICT_POINTS_MOST = 256 };

/* Two ways at places `x`, ascending: the terms of each, first of the one that may be faster up to
 * the crossing. */
struct predict_curves {
    double x[PREDICT_POINTS_MOST];
    struct predict_terms one[PREDICT_POINTS_MOST], other[PREDICT_POINTS_MOST];
    size_t count;
};

/* Up to where `one` is faster, between places in proportion. -INFINITY: nowhere, INFINITY:
 * everywhere. */
struct predict_crossing {
    double at, low, high;
};

struct predict_crossing predict_cross(const struct predict_fit *fit,
                                      const struct predict_curves *curves, uint64_t seed);

/* One server against the ring by size; servers on spare machines against the ring by their number,
 * at each size; and the rate from which a faster link shortens the ring by less than half. */
void predict_print_crossovers(FILE *out, const struct predict_model *model,
                              const struct predict_cluster *cluster, const uint64_t *sizes,
                              size_t size_count, uint64_t seed);

#endif
