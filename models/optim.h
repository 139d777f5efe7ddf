/*
 * Optimizers: one pass over a contiguous range of parameters, state in one contiguous arena, so
 * that a parameter server can run one on its shard and a checkpoint can hold it.
 */
#ifndef PSRING_MODELS_OPTIM_H
#define PSRING_MODELS_OPTIM_H

#include <stddef.h>

#include "common/base/status.h"
#include "common/device/device.h"

enum optimizer_kind { OPTIMIZER_SGD, OPTIMIZER_ADADELTA };

/* Names by enum optimizer_kind, ended by NULL: the choices of --optimizer. */
extern const char *const optimizer_kind_names[];

struct optimizer_parameters {
    float momentum; /* sgd */
    float rho;      /* adadelta */
    float epsilon;  /* adadelta */
};

/* momentum .9; rho .95 and epsilon 1e-7, Keras' defaults. */
extern const struct optimizer_parameters optimizer_parameters_default;

struct optimizer;

/* For `count` parameters; borrows `device`. `parameters` NULL = the defaults above. State is 0. */
enum status optimizer_new(struct optimizer **optimizer, struct device *device,
                          enum optimizer_kind kind, size_t count,
                          const struct optimizer_parameters *parameters);
void optimizer_free(struct optimizer **optimizer);

/* Tells the device the learning rate of the next step; optimizer_step does it by itself, unless it
 * is part of a step that is repeated (device_repeat), where nothing may be uploaded. */
void optimizer_set_lr(struct optimizer *optimizer, float lr);

/* Updates (count) `parameters` from (count) `gradients`, both device memory, in one pass. */
void optimizer_step(struct optimizer *optimizer, float *parameters, const float *gradients,
                    float lr);

/* The same for elements [first, first + count) of the (whole) arrays only: ranges that cover them
 * once give the same bits as one step of all. */
void optimizer_step_range(struct optimizer *optimizer, size_t first, size_t count,
                          float *parameters, const float *gradients, float lr);

/* All that an optimizer remembers: device memory, to be saved and overwritten by checkpoints. */
float *optimizer_state(struct optimizer *optimizer, size_t *count);

#endif
