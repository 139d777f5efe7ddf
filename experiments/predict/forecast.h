/* What was not measured: an all-reduce by backend and size, and where one becomes faster than
 * another. */
#ifndef PSRING_EXPERIMENTS_PREDICT_FORECAST_H
#define PSRING_EXPERIMENTS_PREDICT_FORECAST_H

#include <stdbool.h>
#include <stdio.h>

#include "experiments/predict/model.h"

/* A cluster that is described. */
struct predict_cluster {
    int workers, spare;     /* machines: of the workers, and beside them */
    double bytes_per_s;     /* nominal, of a link each way; 0: that of the fitted network */
    bool shares_cores;      /* on one machine, where the fitted network is */
    double added_latency_s; /* to a message */
};

/* A way to average there. */
struct predict_way {
    const char *backend; /* "ring", "rhd", "ps" */
    enum placement placement;
    int servers;
};

enum { PREDICT_WAYS_MOST = 12 };

/* What the cluster has machines for: ring, rhd, one server, as many as workers, inside workers or
 * on spare machines; *count of them. */
void predict_ways(const struct predict_cluster *cluster, struct predict_way *ways, size_t *count);

/* "ps dedicated 1" */
void predict_way_words(const struct predict_way *way, char *text, size_t size);

/*
 * The model as it would be of that cluster: a link of another rate lets as many bytes through at
 * once and has the same share of headers. Unless the cluster shares its cores, each process has a
 * machine of its own, whose cores are to be those of the fitted one. Borrows the model's errors.
 */
struct predict_model predict_model_on(const struct predict_model *model,
                                      const struct predict_cluster *cluster);

/* The terms of an all-reduce. `hosts`: cost_shape.hosts, or NULL: one each. false: it cannot be,
 * such as more colocated servers than workers. */
bool predict_way_terms(const struct predict_model *model, const struct predict_way *way,
                       int workers, const int *hosts, size_t count, enum compress compress,
                       struct predict_terms *terms);

/* Where the model was not fitted, in words: "4.0 times the most workers (8)"; "" inside. Of
 * all-reduces of `least` to `most` bytes. */
void predict_outside(const struct predict_model *model, const struct predict_cluster *cluster,
                     int servers, uint64_t least, uint64_t most, char *text, size_t size);

/* A table: each way at each size, and the crossovers. One way is the fastest only if its interval
 * lies below all others. Otherwise each way whose interval overlaps that of the shortest is marked.
 */
void predict_print_forecast(FILE *out, const struct predict_model *model,
                            const struct predict_cluster *cluster, const uint64_t *sizes,
                            size_t size_count, uint64_t seed);

/* Compares two ways to average, place by place. A way is faster if its 95% interval lies below the
 * other's. No claim covers a place that was not compared. */

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

#endif
