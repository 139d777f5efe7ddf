/*
 * Optimizers: one pass over a contiguous range of parameters, state in one contiguous arena, so
 * that a parameter server can run one on its shard and a checkpoint can hold it.
 *
 * The rate is no part of any state: SGD's velocity is v = m v + g, the step lr v. So a rate that
 * changes acts at once on all of the velocity, which is what Goyal et al. 2017 (section 3,
 * "momentum correction") add by hand where v = m v + lr g. Weight decay is added to the gradient
 * (L2).
 *
 * LARS needs the norms of whole tensors: all that it is given, arrays, shards of a server, ranges
 * of optimizer_step_range, must be cut where a tensor ends. Biases take no part in it: they have
 * SGD's step, with no trust ratio and no weight decay, as in MLPerf's reference (LARSOptimizer,
 * whose skip_list names them). The others update each element by itself and can be cut anywhere.
 */
#ifndef PSRING_MODELS_OPTIM_H
#define PSRING_MODELS_OPTIM_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/device/device.h"

enum optimizer_kind {
    OPTIMIZER_SGD,
    OPTIMIZER_ADAGRAD,
    OPTIMIZER_ADADELTA,
    OPTIMIZER_ADAM,
    OPTIMIZER_LARS
};

/* Names by enum optimizer_kind, ended by NULL: the choices of --optimizer. */
extern const char *const optimizer_kind_names[];

/* Elements [first, first + count) of the arrays. */
struct optimizer_tensor {
    size_t first, count;
    bool bias;
};

struct optimizer_parameters {
    float momentum;     /* sgd, lars */
    bool nesterov;      /* sgd */
    float rho;          /* adadelta */
    float beta1, beta2; /* adam */
    float epsilon;      /* adagrad, adadelta, adam; 0: 1e-10, 1e-7, 1e-8 */
    float trust;        /* lars: the coefficient of its trust ratio */
    float weight_decay;
    /* (tensor_count), in the arrays' order, covering them; read by optimizer_new. Only lars needs
     * them; net_optimizer_new (net.h) gives those of a net. */
    const struct optimizer_tensor *tensors;
    size_t tensor_count;
};

/* momentum .9; rho .95 and Adadelta's epsilon, Keras' defaults; betas .9 and .999 (Kingma and Ba
 * 2015); the epsilons of Adagrad and Adam, PyTorch's; trust .02 (NVIDIA Apex' LARC). */
extern const struct optimizer_parameters optimizer_parameters_default;

struct optimizer;

/* For `count` parameters; borrows `device`. `parameters` NULL = the defaults above. State is 0. */
enum status optimizer_new(struct optimizer **optimizer, struct device *device,
                          enum optimizer_kind kind, size_t count,
                          const struct optimizer_parameters *parameters);
void optimizer_free(struct optimizer **optimizer);

/* Whether ranges must be cut where a tensor ends: LARS. */
bool optimizer_needs_whole_tensors(enum optimizer_kind kind);

/* The learning rate of the next step; optimizer_step says it by itself, unless it is part of a step
 * that is repeated (device_repeat), where nothing may be uploaded. */
void optimizer_set_lr(struct optimizer *optimizer, float lr);

/* Updates (count) `parameters` from (count) `gradients`, both device memory, in one pass; LARS in
 * two. */
void optimizer_step(struct optimizer *optimizer, float *parameters, const float *gradients,
                    float lr);

/*
 * The same for elements [first, first + count) of the (whole) arrays only: ranges that cover them
 * once give the same bits as one step of all. Adam counts its steps: one begins with the range
 * that follows as many elements as there are.
 */
void optimizer_step_range(struct optimizer *optimizer, size_t first, size_t count,
                          float *parameters, const float *gradients, float lr);

/* All that an optimizer remembers between steps: device memory, to be saved and overwritten by
 * checkpoints. */
float *optimizer_state(struct optimizer *optimizer, size_t *count);

/* What decides its steps beside the rate, e.g. "momentum=0.9 nesterov weight-decay=0.0005": other
 * numbers, another text. At most OPTIMIZER_TEXT_BYTES with its end. */
enum { OPTIMIZER_TEXT_BYTES = 96 };
void optimizer_describe(enum optimizer_kind kind, const struct optimizer_parameters *parameters,
                        char text[OPTIMIZER_TEXT_BYTES]);

#endif
