/* Predictions of what was not measured: an all-reduce by backend and size, and the crossovers
 * between backends. */
#ifndef PSRING_EXPERIMENTS_PREDICT_FORECAST_H
#define PSRING_EXPERIMENTS_PREDICT_FORECAST_H

#include <stdbool.h>
#include <stdio.h>

#include "experiments/predict/model.h"

/* A described cluster. */
struct predict_cluster {
    int workers, spare;     /* machines of the workers; spare machines */
    int inside;             /* servers inside workers; 0: any number */
    int in_switch;          /* servers where the links meet */
    bool shares_hosts;      /* some workers share a host, but not all */
    double bytes_per_s;     /* nominal rate of a link, each way; 0: that of the fitted network */
    bool shares_cores;      /* runs on one machine if the fitted network did */
    double added_latency_s; /* seconds added to each message */
    int rack_ranks;         /* as in comm_options; 0: as in the fitted network */
    double oversubscribed;
};

/* The backends of ways that every cluster allows: "ring", "rhd", "tree", and "ps" last. */
enum { PREDICT_TOPOLOGIES = 4, PREDICT_PS = PREDICT_TOPOLOGIES - 1 };
extern const char *const predict_topologies[PREDICT_TOPOLOGIES];

/* The index of the backend's name in predict_topologies, or PREDICT_TOPOLOGIES. */
int predict_topology(const char *backend);

/* A way to average. */
struct predict_way {
    const char *backend; /* of predict_topologies, or "hierarchical" */
    enum placement placement;
    int servers;
    int radix;           /* of rhd; 0: 2 */
    double uplink_delay; /* predict_shape.uplink_delay; 0: from the model's racks, if it has some */
};

enum { PREDICT_WAYS_MOST = 32 };

/*
 * Lists the ways that the cluster has machines for:
 *
 *     ring, tree
 *     rhd                 of radix 2, 4, 16 and W
 *     hierarchical        if hosts have several workers
 *     ps in workers       1, 2, 4, ..., half of the workers, and all workers; or `inside`
 *     ps on spare ones    1, half, and all of them
 *     ps mixed            all spare machines, and one server in each worker
 *     ps in the switch    `in_switch` servers
 *
 * Writes *count of them.
 */
void predict_ways(const struct predict_cluster *cluster, struct predict_way *ways, size_t *count);

/* "ps dedicated 1", "rhd radix 16" */
void predict_way_words(const struct predict_way *way, char *text, size_t size);

/* Sets uplink_delay for vectors of any length in such racks (comm_options). Otherwise
 * predict_way_terms computes it for each length, which is slow for many workers and servers. */
void predict_way_set_racks(struct predict_way *way, int workers, const int *hosts, int rack_ranks,
                           double oversubscribed);

/*
 * Scales a fitted model to another cluster. A link of another rate has a burst of the same bytes
 * and the same share of headers. Unless the cluster shares its cores, each process has its own
 * machine, with cores like those of the fitted machine. The result borrows the model's errors.
 */
struct predict_model predict_model_on(const struct predict_model *model,
                                      const struct predict_cluster *cluster);

/* Computes the terms of an all-reduce. `hosts` is cost_shape.hosts, or NULL for one host each.
 * Returns false if the way is impossible, for example more colocated servers than workers. */
bool predict_way_terms(const struct predict_model *model, const struct predict_way *way,
                       int workers, const int *hosts, size_t count, enum compress compress,
                       struct predict_terms *terms);

/* Describes how far all-reduces of `least` to `most` bytes lie outside the fitted range: "4 times
 * the most workers fitted (8)". Writes "" inside it. */
void predict_outside(const struct predict_model *model, const struct predict_cluster *cluster,
                     int servers, uint64_t least, uint64_t most, char *text, size_t size);

/* Prints a table of each way at each size, and the crossovers. A way is marked the fastest only if
 * its interval lies below all other intervals. Otherwise each way whose interval overlaps that of
 * the shortest is marked. */
void predict_print_forecast(FILE *out, const struct predict_model *model,
                            const struct predict_cluster *cluster, const uint64_t *sizes,
                            size_t size_count, uint64_t seed);

/* Compares two ways to average, place by place. A way is faster if its 95% interval lies below the
 * other's. No claim covers a place that was not compared. */

enum { PREDICT_POINTS_MOST = 256 };

/* The terms of two ways at the places `x`, ascending. */
struct predict_curves {
    double x[PREDICT_POINTS_MOST];
    struct predict_terms one[PREDICT_POINTS_MOST], other[PREDICT_POINTS_MOST];
    size_t count;
};

enum predict_faster { PREDICT_NOT_TOLD, PREDICT_ONE_FASTER, PREDICT_OTHER_FASTER };

/* Fills faster (count). Returns false if too few errors are known for intervals. */
bool predict_compare(const struct predict_fit *fit, const struct predict_curves *curves,
                     enum predict_faster faster[PREDICT_POINTS_MOST]);

#endif
