/* Compares two ways to average, place by place. A way is faster if its 95% interval lies below the
 * other's. No claim covers a place that was not compared. */
#ifndef PSRING_EXPERIMENTS_PREDICT_CROSSOVER_H
#define PSRING_EXPERIMENTS_PREDICT_CROSSOVER_H

#include <stdbool.h>
#include <stdio.h>

#include "experiments/predict/forecast.h"

enum { PREDICT_POINTS_MOST = 256 };

/* Two ways at places `x`, ascending: the terms of each. */
struct predict_curves {
    double x[PREDICT_POINTS_MOST];
    struct predict_terms one[PREDICT_POINTS_MOST], other[PREDICT_POINTS_MOST];
    size_t count;
};

enum predict_faster { PREDICT_NOT_TOLD, PREDICT_ONE_FASTER, PREDICT_OTHER_FASTER };

/* faster: (count). False: too few errors are known to tell. */
bool predict_compare(const struct predict_fit *fit, const struct predict_curves *curves,
                     enum predict_faster faster[PREDICT_POINTS_MOST]);

/* The ring compared with one server, by size, and with servers on spare machines, by their number,
 * at each size: ranges. The rate from which a faster link shortens the ring by less than half. */
void predict_print_crossovers(FILE *out, const struct predict_model *model,
                              const struct predict_cluster *cluster, const uint64_t *sizes,
                              size_t size_count, uint64_t seed);

#endif
