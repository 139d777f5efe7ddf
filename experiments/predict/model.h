/*
 * The fit: estimates the constants of the terms (experiments/predict/terms.h) from measured times
 * by least squares of relative errors. No constant is negative. A row's weight is 1/variance: its
 * own noise plus 1% of its time.
 *
 * If a row knows how long the cores were busy, that is a second measurement, of the processor terms
 * alone. Its error is 20%, the accuracy with which messages and bytes describe it.
 *
 * The farther off an outlier is, the less it counts (Huber 1964, "Robust estimation of a location
 * parameter"; iteratively reweighted). The model is not linear where processors count as much as
 * the network. Each round therefore solves it linearised at the last constants (Gauss-Newton).
 *
 * The bootstrap gives the intervals of the constants (Efron and Tibshirani 1993, section 13.3). The
 * interval of a prediction comes from the errors of left-out rows at times near the predicted one.
 * One number of workers, one size, or every tenth row is left out at a time. Split conformal
 * prediction takes the ceil(0.95 (n + 1))-th smallest of n errors. Fewer than 19 errors give no
 * interval. Source: Lei et al. 2018, "Distribution-free predictive inference for regression". The
 * uncertainty of the constants is added. The result depends only on rows and seed.
 */
#ifndef PSRING_EXPERIMENTS_PREDICT_MODEL_H
#define PSRING_EXPERIMENTS_PREDICT_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "experiments/predict/rows.h"
#include "experiments/predict/terms.h"

/* Minimum rows: of a fit alone, of a fit helped by other transports, and of a fit that needs no
 * help. */
enum {
    PREDICT_FIT_LEAST = PREDICT_TERMS + 2,
    PREDICT_POOLED_LEAST = 3,
    PREDICT_FIT_ENOUGH = 15 * PREDICT_TERMS
};

struct predict_sample {
    struct predict_terms terms;
    double seconds, noise_s; /* measured: median and its standard error */
    double processors_s;     /* measured time for which all cores were busy, or 0 */
    uint64_t workers, bytes; /* groups of the cross-validation */
};

/* A left-out row: its predicted time, and |log(measured / predicted)|. */
struct predict_error {
    double seconds, error;
};

struct predict_fit {
    struct predict_terms constants, low, high; /* 95% */
    double covariance[PREDICT_TERMS][PREDICT_TERMS];
    struct predict_error *errors; /* (error_count), sorted by seconds */
    size_t error_count;
};

/* A time with its 95% interval. With too few errors the interval is 0 to INFINITY. */
struct predict_interval {
    double seconds, low, high;
};

bool predict_has_interval(struct predict_interval interval);

enum { PREDICT_INTERVAL_BYTES = 64 };

/* Formats both ends times `scale` with `decimals` decimals: "[1.20, 3.40]", or "[no interval]".
 * Returns text. */
const char *predict_interval_text(struct predict_interval interval, double scale, int decimals,
                                  char text[PREDICT_INTERVAL_BYTES]);

/* Index, from 1, of the error in ascending order that bounds 95%. 0: `count` errors are too few. */
size_t predict_conformal_rank(size_t count);

/*
 * Fits the constants to at least PREDICT_FIT_LEAST samples. With `pooled`, at least
 * PREDICT_POOLED_LEAST.
 * `pooled` is the fit of the network's other transports, which use the same links; NULL: none. Its
 * constants count as additional measurements: the link's with an error of 1%, the bursts' of 10 and
 * 30%, all others of 100%. The processors' error is 1000% if samples know how long the cores were
 * busy.
 * STATUS_NO_MEMORY is logged. Needs predict_fit_free.
 */
enum status predict_fit(struct predict_fit *fit, const struct predict_sample *samples, size_t count,
                        const struct predict_fit *pooled, uint64_t seed);
void predict_fit_free(struct predict_fit *fit);

/* Predicts the time of a shape. A measurement lies in the interval with 95% probability. If the
 * fitted rows are medians of several runs, this holds for such a median. */
struct predict_interval predict_time(const struct predict_fit *fit,
                                     const struct predict_terms *terms);

/*
 * Fitted models and model.json, which stores them. There is one model for each network and
 * transport; each algorithm of MPI_Allreduce counts as a transport.
 */

/* The fitted range. Outside it a prediction is extrapolated. */
struct predict_range {
    uint64_t least, most;
};

struct predict_model {
    char network[PREDICT_WORD], transport[PREDICT_WORD]; /* transport, or "mpi-ring" (see above) */
    double nominal_bytes_per_s;                          /* 0: unknown */
    bool one_machine;
    struct predict_range workers, servers, bytes;
    size_t fitted, held_out;
    bool pooled;       /* fitted with help from the network's other transports */
    double distance_s; /* one way, not in the constants: terms.h */
    int rack_ranks;    /* as in comm_options; 0: no racks */
    double oversubscribed;
    struct predict_fit fit;
};

/* The regret of choosing by the models in held-out cases (predict.h). */
struct predict_held_out {
    size_t cases;       /* 0: none; the other fields are 0 */
    double mean, worst; /* regret, as shares */
};

struct predict_models {
    struct predict_model *models;
    size_t count;
    struct predict_held_out choice;
};

/* The backend of that name, or NULL. */
const struct backend *predict_backend(const char *name);

/* The shape of the measured all-reduce. If workers share hosts, fills `hosts`
 * (PREDICT_WORKERS_MOST), and the shape borrows it. Returns false, with the reason in *why, if no
 * formula describes the row. */
bool predict_shape_of(const struct predict_row *row, int *hosts, struct predict_shape *shape,
                      const char **why);

/* Whether the model was fitted and can predict all topologies of psring: its transport is one of
 * psring's own. A model of an MPI_Allreduce algorithm has the formula of one topology only. */
bool predict_is_transport(const struct predict_model *model);

/* Whether no earlier model is of the same network. */
bool predict_is_first(const struct predict_models *models, size_t index);

/* Whether both are virtual clusters without a shape, and of one latency and loss ("+50ms+loss1"):
 * they may differ only in their link rate. */
bool predict_networks_alike(const char *network, const char *other);

/*
 * Fits one model to each group of rows (network and transport). A group needs PREDICT_FIT_LEAST
 * rows, or PREDICT_POOLED_LEAST with help from the network's other transports.
 * Marks rows without a known formula PREDICT_NOT_USED, then joins the runs of one point, which
 * leaves fewer rows (rows.h), then applies `hold_out`. Errors: STATUS_USAGE, STATUS_INPUT (no group
 * has enough rows), logged. Always needs predict_models_free.
 */
enum status predict_models_fit(struct predict_models *models, struct predict_rows *rows,
                               const char *hold_out, uint64_t seed);
void predict_models_free(struct predict_models *models);

/* Writes like result_write_json (experiments/bench/info.h): if it fails, an earlier file stays
 * intact. */
enum status predict_models_write(const struct predict_models *models, const char *path);
/* STATUS_INPUT (logged): the file is not a model.json. */
enum status predict_models_read(struct predict_models *models, const char *path);

#endif
