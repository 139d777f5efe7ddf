/*
 * psring bench --model-gradients: steps that exchange the gradients of a published model
 * (models/published.h), in the order in which its backward pass would complete them, beside a wait
 * as long as computing them would take; by the exchange and the buckets of psring train
 * (experiments/train/gradient_sync.h). What a step takes beyond --compute-ms is exposed
 * communication, --compute-ms over the step the scaling efficiency.
 *
 * How the wait is spread over the tensors follows from the model's operations alone: on real
 * devices a layer with few operations a byte takes longer than that.
 */
#ifndef PSRING_EXPERIMENTS_BENCH_MODEL_GRADIENTS_H
#define PSRING_EXPERIMENTS_BENCH_MODEL_GRADIENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
    bool shared;   /* `host` is the caller's, the same for all ranks */
    float *device; /* the same in device memory; NULL: there is none */
    struct gradient_sync sync;
    struct bench_connection connection; /* its comm is the exchange's */
    struct bench_buckets buckets;       /* the exchange's */
    struct bench_plan plan;
    struct bench_row_model row;
    double step_us;                     /* median of the slowest worker's */
    struct bench_measurement averaging; /* of all buckets, while nothing is computed */
};

/*
 * Collective over the world: measures steps, and then the averaging of the same buckets alone, of
 * which every element is checked. `connection` is not connected: its options and device are what
 * is used. STATUS_NO_MEMORY, logged by rank 0, on all ranks: a machine has not enough for all of
 * its ranks. Needs bench_model_close whatever it returns.
 */
enum status bench_model_measure(struct bench_model *model, const struct config *config,
                                struct world *world, const struct comm_options *options);

/*
 * The steps alone, at whose end the connection is open, and planned as they had it; model->plan is
 * that of averaging the same buckets. `shared`: gradients that all ranks have in common, whatever
 * they hold, as long as the model; NULL: each has its own.
 */
enum status bench_model_steps(struct bench_model *model, const struct config *config,
                              struct world *world, const struct comm_options *options,
                              float *shared);

/* What the steps say, into a row of the averaging alone (bench_describe). */
void bench_model_describe(const struct bench_model *model, const struct config *config,
                          struct bench_row *row);

void bench_model_close(struct bench_model *model);

#endif
