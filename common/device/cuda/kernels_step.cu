/* Kernels: the loss, and optimizers as one pass over the arena. */
#include "common/device/cuda/kernels.h"
#include "common/device/cuda/launch.h"

/* -------- loss -------------------------------------------------------------------------------- */

/* The loss of one image; writes its row of dlogits. In double, as on the CPU: rows are short. */
static __device__ struct loss_sum loss_of(size_t classes, const float *row, uint8_t label,
                                          double batch, float *dlogits)
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
            dlogits[j] = (float)((p - (j == label ? 1.0 : 0.0)) / batch);
        }
    }
    return sum;
}

/* Part p sums images p, p + parts, ...: in an order that depends on the batch alone. */
static __global__ void loss_parts(size_t batch, size_t classes, size_t parts, const float *logits,
                                  const uint8_t *labels, float *dlogits, struct loss_sum *part)
{
    for (EACH(p, parts)) {
        struct loss_sum total = {0.0, 0};
        for (size_t n = p; n < batch; n += parts) {
            struct loss_sum one = loss_of(classes, logits + n * classes, labels[n], (double)batch,
                                          dlogits ? dlogits + n * classes : NULL);
            total.loss += one.loss;
            total.correct += one.correct;
        }
        part[p] = total;
    }
}

static __global__ void loss_total(size_t parts, const struct loss_sum *part, struct loss_sum *sum)
{
    for (EACH(one, 1)) {
        struct loss_sum total = part[one];
#pragma unroll 8
        for (size_t p = 1; p < parts; p++) {
            total.loss += part[p].loss;
            total.correct += part[p].correct;
        }
        *sum = total;
    }
}

int kernel_softmax_cross_entropy(struct CUstream_st *stream, size_t batch, size_t classes,
                                 const float *logits, const uint8_t *labels, float *dlogits,
                                 struct loss_sum *parts, struct loss_sum *sum)
{
    size_t count = batch < KERNEL_LOSS_PARTS ? batch : (size_t)KERNEL_LOSS_PARTS;
    LAUNCH(loss_parts, count, stream, batch, classes, count, logits, labels, dlogits, parts);
    LAUNCH(loss_total, 1, stream, count, parts, sum);
    return (int)cudaGetLastError();
}

/* -------- optimizers -------------------------------------------------------------------------- */

static __global__ void sgd_step(struct sgd s, size_t count, float *parameters,
                                const float *gradients, float *velocity)
{
    float lr = *s.lr_at;
    for (EACH(i, count)) {
        float v = s.momentum * velocity[i] + gradients[i];
        velocity[i] = v;
        parameters[i] -= lr * v;
    }
}

int kernel_sgd(struct CUstream_st *stream, const struct sgd *sgd, size_t count, float *parameters,
               const float *gradients, float *velocity)
{
    LAUNCH(sgd_step, count, stream, *sgd, count, parameters, gradients, velocity);
    return (int)cudaGetLastError();
}

static __global__ void adadelta_step(struct adadelta s, size_t count, float *parameters,
                                     const float *gradients, float *square, float *update)
{
    float lr = *s.lr_at, rest = 1.0f - s.rho;
    for (EACH(i, count)) {
        float g = gradients[i], u = update[i];
        float a = s.rho * square[i] + rest * (g * g);
        float d = g * sqrtf(u + s.epsilon) / sqrtf(a + s.epsilon);
        square[i] = a;
        update[i] = s.rho * u + rest * (d * d);
        parameters[i] -= lr * d;
    }
}

int kernel_adadelta(struct CUstream_st *stream, const struct adadelta *adadelta, size_t count,
                    float *parameters, const float *gradients, float *state)
{
    LAUNCH(adadelta_step, count, stream, *adadelta, count, parameters, gradients, state,
           state + (adadelta->apart ? adadelta->apart : count));
    return (int)cudaGetLastError();
}
