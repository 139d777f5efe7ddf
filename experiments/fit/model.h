/*
 * Fitted models: one for each network and transport that rows were measured with (of MPI_Allreduce
 * one for each algorithm, as if it were a transport). And model.json, which holds them.
 */
#ifndef PSRING_EXPERIMENTS_FIT_MODEL_H
#define PSRING_EXPERIMENTS_FIT_MODEL_H

#include "experiments/fit/fit.h"
#include "experiments/fit/rows.h"

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

/* What choosing by the models has cost in the rows that were held out: regret.h. */
struct predict_held_out {
    size_t cases;       /* 0: none, and the rest is 0 */
    double mean, worst; /* chosen over the fastest measured, less 1 */
};

struct predict_models {
    struct predict_model *models;
    size_t count;
    struct predict_held_out choice;
};

/* What a row measured. `hosts` (PREDICT_WORKERS_MOST): filled where workers share hosts, and
 * borrowed then. false: no formula of ours says what it takes; *why in words. */
bool predict_shape_of(const struct predict_row *row, int *hosts, struct predict_shape *shape,
                      const char **why);

/* Whether the model was fitted and says something of all of psring's ways: it is of one of psring's
 * own transports. Those of MPI_Allreduce's algorithms have the formula of one topology only. */
bool predict_is_transport(const struct predict_model *model);

/* Whether all processes of such rows ran on one machine. */
bool predict_one_machine(const char *network);

/* Whether both are virtual clusters without a shape, which differ in their links' rate at most. */
bool predict_networks_alike(const char *network, const char *other);

/*
 * Fits a model to each group of rows that are PREDICT_FIT: of at least PREDICT_FIT_LEAST, or, with
 * the help of the network's other transports, of PREDICT_POOLED_LEAST. Marks what no formula is
 * known for PREDICT_NOT_USED, then joins runs of one point, which leaves fewer rows (fit/runs.h),
 * then applies `hold_out`. STATUS_USAGE, STATUS_INPUT (no group has enough rows): logged. Needs
 * predict_models_free whatever it returns.
 */
enum status predict_models_fit(struct predict_models *models, struct predict_rows *rows,
                               const char *hold_out, uint64_t seed);
void predict_models_free(struct predict_models *models);

/* As result_write_json (experiments/measure/info.h): an earlier file stays whole if it fails. */
enum status predict_models_write(const struct predict_models *models, const char *path);
/* Errors: logged. A file that is no model.json: STATUS_INPUT. */
enum status predict_models_read(struct predict_models *models, const char *path);

#endif
