/*
 * psring bench --model-gradients: steps that exchange the gradients of a published model
 * (models/published.h) in the order in which its backward pass would complete them. A timed wait
 * replaces the computation. Exchange and buckets are those of psring train
 * (experiments/train/gradient_sync.h). Exposed communication is the step's time beyond
 * --compute-ms. The scaling efficiency is --compute-ms over the step's time.
 *
 * The wait is spread over the tensors by the model's operations alone. On real devices a layer with
 * few operations per byte takes longer than that.
 */
#ifndef PSRING_EXPERIMENTS_BENCH_MODEL_GRADIENTS_H
#define PSRING_EXPERIMENTS_BENCH_MODEL_GRADIENTS_H

#include <stdbool.h>

#include "common/base/status.h"
#include "experiments/bench/connect.h"
#include "experiments/bench/measure.h"
#include "experiments/bench/row.h"
#include "experiments/config/config.h"
#include "experiments/train/gradient_sync.h"

/* The exchange, and what was measured. */
struct bench_model {
    struct net_layer *layers;
    float *host;   /* the gradients; NULL once they have been measured */
    bool shared;   /* the caller owns `host`, one for all ranks */
    float *device; /* the gradients in device memory; NULL: no device */
    struct gradient_sync sync;
    struct bench_connection connection; /* its comm is the exchange's */
    struct bench_buckets buckets;       /* the exchange's */
    struct bench_plan plan;
    struct bench_row_model row;
    double step_us;                     /* median of the slowest worker's */
    struct bench_measurement averaging; /* of all buckets, while nothing is computed */
};

/*
 * Collective over the world. Measures steps, then the averaging of the same buckets alone, and
 * checks every element of the latter. Connects with `options`. STATUS_NO_MEMORY on all ranks (rank
 * 0 logs it): a machine has not enough memory for its ranks. Needs bench_model_close also after an
 * error.
 */
enum status bench_model_measure(struct bench_model *model, const struct config *config,
                                struct world *world, const struct comm_options *options);

/*
 * Measures the steps alone. Afterwards the connection is open and still has the plan of the steps;
 * model->plan is that of averaging the same buckets. `shared`: one array as long as the model, with
 * any values, that all ranks use as gradients; NULL: each rank has one.
 */
enum status bench_model_steps(struct bench_model *model, const struct config *config,
                              struct world *world, const struct comm_options *options,
                              float *shared);

/* Adds the results of the steps to a row of the averaging alone (bench_describe). */
void bench_model_describe(const struct bench_model *model, const struct config *config,
                          struct bench_row *row);

void bench_model_close(struct bench_model *model);

#endif
