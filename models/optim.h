/*
 * Optimizers. A step is one pass over a contiguous range of parameters, with its state in one
 * contiguous arena. A parameter server can therefore run an optimizer on its shard, and a
 * checkpoint can save the state.
 *
 * The rate is not part of any state: SGD's velocity is v = m v + g, and the step is lr v. A new
 * rate thus applies to all of the velocity at once. With v = m v + lr g, Goyal et al. 2017 (section
 * 3, "momentum correction") must add this separately. Weight decay is added to the gradient (L2).
 *
 * LARS needs the norms of whole tensors. Arrays, shards of a server and ranges of
 * optimizer_step_range must therefore be cut at the end of a tensor. Biases are excluded: they take
 * SGD's step, without trust ratio and weight decay, as in MLPerf's reference (LARSOptimizer, whose
 * skip_list names them). The other optimizers update each element separately, so ranges can be cut
 * anywhere.
 */
#ifndef PSRING_MODELS_OPTIM_H
#define PSRING_MODELS_OPTIM_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/device/device.h"

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
     * them. net_optimizer_new (net.h) passes those of a net. */
    const struct optimizer_tensor *tensors;
    size_t tensor_count;
};

/* momentum .9; rho .95 and Adadelta's epsilon: Keras' defaults. betas .9 and .999: Kingma and Ba
 * 2015. The epsilons of Adagrad and Adam: PyTorch's. trust .02: NVIDIA Apex' LARC. */
extern const struct optimizer_parameters optimizer_parameters_default;

struct optimizer;

/* For `count` parameters; borrows `device`. `parameters` NULL = the defaults above. State is 0. */
enum status optimizer_new(struct optimizer **optimizer, struct device *device,
                          enum optimizer_kind kind, size_t count,
                          const struct optimizer_parameters *parameters);
void optimizer_free(struct optimizer **optimizer);

/* Whether ranges must be cut at the end of a tensor: true for LARS. */
bool optimizer_needs_whole_tensors(enum optimizer_kind kind);

/* Sets the learning rate of the next step. Usually optimizer_step calls it. Within a repeated step
 * (device_repeat) nothing may be uploaded, so the caller that repeats the step calls this before.
 */
void optimizer_set_lr(struct optimizer *optimizer, float lr);

/* Updates (count) `parameters` from (count) `gradients`, both in device memory, in one pass (LARS:
 * two). */
void optimizer_step(struct optimizer *optimizer, float *parameters, const float *gradients,
                    float lr);

/*
 * The same for elements [first, first + count) of the whole arrays only. Ranges that cover the
 * arrays once give the same bits as one step of the whole. Adam counts its steps: a new step begins
 * after ranges with as many elements as the arrays have.
 */
void optimizer_step_range(struct optimizer *optimizer, size_t first, size_t count,
                          float *parameters, const float *gradients, float lr);

/* The state between steps, in device memory. Checkpoints save and overwrite it. */
float *optimizer_state(struct optimizer *optimizer, size_t *count);

/* The settings that determine the steps besides the rate, such as "momentum=0.9 nesterov
 * weight-decay=0.0005". Different settings give different texts of at most OPTIMIZER_TEXT_BYTES,
 * including the terminating 0. */
enum { OPTIMIZER_TEXT_BYTES = 96 };
void optimizer_describe(enum optimizer_kind kind, const struct optimizer_parameters *parameters,
                        char text[OPTIMIZER_TEXT_BYTES]);

#endif
