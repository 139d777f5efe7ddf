/*
 * The fit: constants of the terms (experiments/predict/terms.h) from measured times, none of them
 * negative, by least squares of relative errors: a row counts by 1/variance, its own noise and 1%
 * of its time together. Where it is known how long cores were busy, that is a second measurement of
 * the row, of the processors' terms alone, with 20% (as far as messages and bytes describe it). An
 * outlier counts less the farther off it is (Huber 1964, "Robust estimation of a location
 * parameter"; iteratively reweighted). As the model is not linear where processors count as much as
 * the network, each round solves it as it is near the last constants (Gauss and Newton's method).
 *
 * Intervals of constants are the bootstrap's (Efron and Tibshirani 1993, section 13.3). That of a
 * prediction is from the errors of rows that were left out (all of one number of workers, of one
 * size, or every tenth row, at a time), at times near the predicted one. Split conformal prediction
 * takes the ceil(0.95 (n + 1))-th smallest of n errors. Fewer than 19 errors give no interval.
 * Source: Lei et al. 2018, "Distribution-free predictive inference for regression". The uncertainty
 * of the constants is added. All is a function of rows and seed.
 */
#ifndef PSRING_EXPERIMENTS_PREDICT_MODEL_H
#define PSRING_EXPERIMENTS_PREDICT_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "experiments/predict/rows.h"
#include "experiments/predict/terms.h"

/* Rows: of a fit, of one that others help, and from which on it needs no help. */
enum {
    PREDICT_FIT_LEAST = PREDICT_TERMS + 2,
    PREDICT_POOLED_LEAST = 3,
    PREDICT_FIT_ENOUGH = 15 * PREDICT_TERMS
};

struct predict_sample {
    struct predict_terms terms;
    double seconds, noise_s; /* measured: median and its standard error */
    double processors_s;     /* measured: what of it all cores were busy; 0: not known */
    uint64_t workers, bytes; /* what cross-validation groups by */
};

/* Of a row that was left out: what was predicted, and |log(measured / predicted)|. */
struct predict_error {
    double seconds, error;
};

struct predict_fit {
    struct predict_terms constants, low, high; /* 95% */
    double covariance[PREDICT_TERMS][PREDICT_TERMS];
    struct predict_error *errors; /* (error_count), by ascending seconds */
    size_t error_count;
};

/* 95%. With too few errors for an interval it holds every time: from 0 to INFINITY. */
struct predict_interval {
    double seconds, low, high;
};

bool predict_has_interval(struct predict_interval interval);

enum { PREDICT_INTERVAL_BYTES = 64 };

/* "[1.20, 3.40]": both ends times `scale`, with that number of decimals. "[no interval]" without
 * one. Returns text. */
const char *predict_interval_text(struct predict_interval interval, double scale, int decimals,
                                  char text[PREDICT_INTERVAL_BYTES]);

/* The number, from 1, of the error in ascending order that bounds 95%. 0: `count` are too few. */
size_t predict_conformal_rank(size_t count);

/*
 * At least PREDICT_FIT_LEAST samples. With `pooled`, the fit of the network's other transports,
 * whose links these samples' transport has, too, PREDICT_POOLED_LEAST: its constants count as
 * further measurements, the link's as one of 1%, the bursts' of 10 and 30%, others' of 100%, the
 * processors' of 1000% where samples know how long cores were busy. NULL: without.
 * STATUS_NO_MEMORY is logged. Needs predict_fit_free.
 */
enum status predict_fit(struct predict_fit *fit, const struct predict_sample *samples, size_t count,
                        const struct predict_fit *pooled, uint64_t seed);
void predict_fit_free(struct predict_fit *fit);

/* A measurement of such a shape lies in the interval with 95% probability; where the fitted ones
 * are medians of several runs, so must it be. */
struct predict_interval predict_time(const struct predict_fit *fit,
                                     const struct predict_terms *terms);

/*
 * Fitted models: one for each network and transport that rows were measured with (of MPI_Allreduce
 * one for each algorithm, as if it were a transport). And model.json, which holds them.
 */

/* What was fitted: beyond it a prediction is a guess. */
struct predict_range {
    uint64_t least, most;
};

struct predict_model {
    char network[PREDICT_WORD], transport[PREDICT_WORD]; /* or "mpi-ring": see above */
    double nominal_bytes_per_s;                          /* 0: not known */
    bool one_machine;
    struct predict_range workers, servers, bytes;
    size_t fitted, held_out;
    bool pooled; /* with the help of the network's other transports */
    struct predict_fit fit;
};

/* What choosing by the models has cost in the rows that were held out: predict.h. */
struct predict_held_out {
    size_t cases;       /* 0: none, and the rest is 0 */
    double mean, worst; /* chosen over the fastest measured, less 1 */
};

struct predict_models {
    struct predict_model *models;
    size_t count;
    struct predict_held_out choice;
};

/* NULL: there is none. */
const struct backend *predict_backend(const char *name);

/* What a row measured. `hosts` (PREDICT_WORKERS_MOST): filled where workers share hosts, and
 * borrowed then. false: no formula of ours says what it takes; *why in words. */
bool predict_shape_of(const struct predict_row *row, int *hosts, struct predict_shape *shape,
                      const char **why);

/* Whether the model was fitted and says something of all of psring's ways: it is of one of psring's
 * own transports. Those of MPI_Allreduce's algorithms have the formula of one topology only. */
bool predict_is_transport(const struct predict_model *model);

/* Whether no earlier model is of the same network. */
bool predict_is_first(const struct predict_models *models, size_t index);

/* Whether both are virtual clusters without a shape, which differ in their links' rate at most. */
bool predict_networks_alike(const char *network, const char *other);

/*
 * Fits a model to each group of rows that are PREDICT_FIT: of at least PREDICT_FIT_LEAST, or, with
 * the help of the network's other transports, of PREDICT_POOLED_LEAST. Marks what no formula is
 * known for PREDICT_NOT_USED, then joins runs of one point, which leaves fewer rows (rows.h),
 * then applies `hold_out`. STATUS_USAGE, STATUS_INPUT (no group has enough rows): logged. Needs
 * predict_models_free whatever it returns.
 */
enum status predict_models_fit(struct predict_models *models, struct predict_rows *rows,
                               const char *hold_out, uint64_t seed);
void predict_models_free(struct predict_models *models);

/* As result_write_json (experiments/bench/info.h): an earlier file stays whole if it fails. */
enum status predict_models_write(const struct predict_models *models, const char *path);
/* Errors: logged. A file that is no model.json: STATUS_INPUT. */
enum status predict_models_read(struct predict_models *models, const char *path);

#endif
