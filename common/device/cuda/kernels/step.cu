/* Kernels: the loss, and the optimizers, each as one pass over the arena. */
#include "common/device/cuda/kernels/kernels.h"
#include "common/device/cuda/kernels/launch.h"
#include "common/device/cuda/kernels/tree.h"

/* -------- loss -------------------------------------------------------------------------------- */

enum { LOSS_PARTS = 8192 };

/* The loss of one image. Writes its row of dlogits. In double, as on the CPU: rows are short. */
static __device__ struct loss_sum loss_of(size_t classes, const float *row, uint8_t label,
                                          double divisor, float *dlogits)
{
    size_t best = 0;
    for (size_t j = 1; j < classes; j++) {
        if (row[j] > row[best])
            best = j;
    }
    double largest = (double)row[best], label_logit = (double)row[label], total = 0;
    for (size_t j = 0; j < classes; j++)
        total += exp((double)row[j] - largest);
    struct loss_sum sum = {log(total) - (label_logit - largest), best == label};
    if (dlogits) {
        for (size_t j = 0; j < classes; j++) {
            double p = exp((double)row[j] - largest) / total;
            dlogits[j] = (float)((p - (j == label ? 1.0 : 0.0)) / divisor);
        }
    }
    return sum;
}

struct loss_part {
    struct loss_sum sum;

    __device__ void operator+=(const loss_part &other)
    {
        sum.loss += other.sum.loss;
        sum.correct += other.sum.correct;
    }
};

/* Part p sums images p, p + parts, ..., in an order that depends on the batch alone. */
static __global__ void loss(size_t batch, size_t classes, double divisor, uint32_t parts,
                            const float *logits, const uint8_t *labels, float *dlogits,
                            struct loss_sum *sum, struct kernel_room room)
{
    for (EACH(p, parts)) {
        struct loss_part total = {};
        for (size_t n = p; n < batch; n += parts) {
            struct loss_part one = {loss_of(classes, logits + n * classes, labels[n], divisor,
                                            dlogits ? dlogits + n * classes : NULL)};
            total += one;
        }
        if (tree_sum(room, parts, 1, (uint32_t)p, 0, &total))
            *sum = total.sum;
    }
}

int kernel_softmax_cross_entropy(struct CUstream_st *stream, size_t batch, size_t classes,
                                 double divisor, const float *logits, const uint8_t *labels,
                                 float *dlogits, struct loss_sum *sum, struct kernel_room room)
{
    uint32_t parts = tree_groups(batch < LOSS_PARTS ? batch : (size_t)LOSS_PARTS, 1, 1);
    LAUNCH(loss, parts, stream, batch, classes, divisor, parts, logits, labels, dlogits, sum, room);
    return (int)cudaGetLastError();
}

/* -------- optimizers -------------------------------------------------------------------------- */

static __global__ void sgd_step(struct update s, size_t count, float *parameters,
                                const float *gradients, float *velocity)
{
    float lr = *s.lr_at;
    for (EACH(i, count)) {
        float p = parameters[i], g = gradients[i] + s.weight_decay * p;
        float v = s.momentum * velocity[i] + g;
        velocity[i] = v;
        parameters[i] = p - lr * (s.nesterov ? g + s.momentum * v : v);
    }
}

static __global__ void adagrad_step(struct update s, size_t count, float *parameters,
                                    const float *gradients, float *square)
{
    float lr = *s.lr_at;
    for (EACH(i, count)) {
        float p = parameters[i], g = gradients[i] + s.weight_decay * p;
        float a = square[i] + g * g;
        square[i] = a;
        parameters[i] = p - lr * g / (sqrtf(a) + s.epsilon);
    }
}

static __global__ void adadelta_step(struct update s, size_t count, float *parameters,
                                     const float *gradients, float *square, float *moved)
{
    float lr = *s.lr_at, rest = 1.0f - s.rho;
    for (EACH(i, count)) {
        float p = parameters[i], g = gradients[i] + s.weight_decay * p, u = moved[i];
        float a = s.rho * square[i] + rest * (g * g);
        float d = g * sqrtf(u + s.epsilon) / sqrtf(a + s.epsilon);
        square[i] = a;
        moved[i] = s.rho * u + rest * (d * d);
        parameters[i] = p - lr * d;
    }
}

static __global__ void adam_corrections(struct update s)
{
    for (EACH(one, 1)) {
        float step = s.step[one] + 1.0f;
        s.step[one] = step;
        s.correction[0] = (float)(1.0 - pow((double)s.beta1, (double)step));
        s.correction[1] = (float)(1.0 - pow((double)s.beta2, (double)step));
    }
}

int kernel_adam_count(struct CUstream_st *stream, const struct update *adam)
{
    LAUNCH(adam_corrections, 1, stream, *adam);
    return (int)cudaGetLastError();
}

static __global__ void adam_step(struct update s, size_t count, float *parameters,
                                 const float *gradients, float *mean, float *square)
{
    float rate = *s.lr_at / s.correction[0], correction = s.correction[1];
    float rest1 = 1.0f - s.beta1, rest2 = 1.0f - s.beta2;
    for (EACH(i, count)) {
        float p = parameters[i], g = gradients[i] + s.weight_decay * p;
        float m = s.beta1 * mean[i] + rest1 * g;
        float v = s.beta2 * square[i] + rest2 * (g * g);
        mean[i] = m;
        square[i] = v;
        parameters[i] = p - rate * m / (sqrtf(v / correction) + s.epsilon);
    }
}

/* -------- LARS: norms of a whole tensor, then its step ---------------------------------------- */

enum { SQUARE_PARTS = 16384 };

struct squares {
    double w, g; /* sums of squares, of parameters and of gradients */

    __device__ void operator+=(const squares &other)
    {
        w += other.w;
        g += other.g;
    }
};

/* Part p sums elements p, p + parts, ..., in an order that depends on the count alone. */
static __global__ void square_sums(size_t count, uint32_t parts, const float *parameters,
                                   const float *gradients, double *sums, struct kernel_room room)
{
    for (EACH(p, parts)) {
        struct squares total = {};
        for (size_t i = p; i < count; i += parts) {
            total.w += (double)parameters[i] * (double)parameters[i];
            total.g += (double)gradients[i] * (double)gradients[i];
        }
        if (tree_sum(room, parts, 1, (uint32_t)p, 0, &total)) {
            sums[0] = total.w;
            sums[1] = total.g;
        }
    }
}

static __global__ void lars_step(struct update s, size_t count, const double *sums,
                                 float *parameters, const float *gradients, float *velocity)
{
    double w = sqrt(sums[0]), g_norm = sqrt(sums[1]);
    float lr = *s.lr_at, ratio = 1.0f;
    if (w > 0 && g_norm > 0)
        ratio = (float)((double)s.trust * w / (g_norm + (double)s.weight_decay * w));
    for (EACH(i, count)) {
        float p = parameters[i];
        float v = s.momentum * velocity[i] + ratio * (gradients[i] + s.weight_decay * p);
        velocity[i] = v;
        parameters[i] = p - lr * v;
    }
}

/* -------- all kinds --------------------------------------------------------------------------- */

int kernel_update(struct CUstream_st *stream, const struct update *update, size_t count,
                  float *parameters, const float *gradients, float *state, double *sums,
                  struct kernel_room room)
{
    float *second = state + update->stride;
    uint32_t parts = tree_groups(count < SQUARE_PARTS ? count : (size_t)SQUARE_PARTS, 1, 1);
    switch (update->kind) {
    case OPTIMIZER_SGD:
        LAUNCH(sgd_step, count, stream, *update, count, parameters, gradients, state);
        break;
    case OPTIMIZER_ADAGRAD:
        LAUNCH(adagrad_step, count, stream, *update, count, parameters, gradients, state);
        break;
    case OPTIMIZER_ADADELTA:
        LAUNCH(adadelta_step, count, stream, *update, count, parameters, gradients, state, second);
        break;
    case OPTIMIZER_ADAM:
        LAUNCH(adam_step, count, stream, *update, count, parameters, gradients, state, second);
        break;
    case OPTIMIZER_LARS:
        LAUNCH(square_sums, parts, stream, count, parts, parameters, gradients, sums, room);
        LAUNCH(lars_step, count, stream, *update, count, sums, parameters, gradients, state);
        break;
    }
    return (int)cudaGetLastError();
}
