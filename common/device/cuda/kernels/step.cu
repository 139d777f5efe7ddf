/* Kernels: the loss, and optimizers as one pass over the arena. */
#include "common/device/cuda/kernels/kernels.h"
#include "common/device/cuda/kernels/launch.h"

/* -------- loss -------------------------------------------------------------------------------- */

/* The loss of one image; writes its row of dlogits. In double, as on the CPU: rows are short. */
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

/* Part p sums images p, p + parts, ...: in an order that depends on the batch alone. */
static __global__ void loss_parts(size_t batch, size_t classes, double divisor, size_t parts,
                                  const float *logits, const uint8_t *labels, float *dlogits,
                                  struct loss_sum *part)
{
    for (EACH(p, parts)) {
        struct loss_sum total = {0.0, 0};
        for (size_t n = p; n < batch; n += parts) {
            struct loss_sum one = loss_of(classes, logits + n * classes, labels[n], divisor,
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
                                 double divisor, const float *logits, const uint8_t *labels,
                                 float *dlogits, struct loss_sum *parts, struct loss_sum *sum)
{
    size_t count = batch < KERNEL_LOSS_PARTS ? batch : (size_t)KERNEL_LOSS_PARTS;
    LAUNCH(loss_parts, count, stream, batch, classes, divisor, count, logits, labels, dlogits,
           parts);
    LAUNCH(loss_total, 1, stream, count, parts, sum);
    return (int)cudaGetLastError();
}

/* -------- optimizers -------------------------------------------------------------------------- */

static __global__ void sgd_step(struct sgd s, size_t count, float *parameters,
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

int kernel_sgd(struct CUstream_st *stream, const struct sgd *sgd, size_t count, float *parameters,
               const float *gradients, float *velocity)
{
    LAUNCH(sgd_step, count, stream, *sgd, count, parameters, gradients, velocity);
    return (int)cudaGetLastError();
}

static __global__ void adagrad_step(struct adagrad s, size_t count, float *parameters,
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

int kernel_adagrad(struct CUstream_st *stream, const struct adagrad *adagrad, size_t count,
                   float *parameters, const float *gradients, float *a)
{
    LAUNCH(adagrad_step, count, stream, *adagrad, count, parameters, gradients, a);
    return (int)cudaGetLastError();
}

static __global__ void adadelta_step(struct adadelta s, size_t count, float *parameters,
                                     const float *gradients, float *square, float *update)
{
    float lr = *s.lr_at, rest = 1.0f - s.rho;
    for (EACH(i, count)) {
        float p = parameters[i], g = gradients[i] + s.weight_decay * p, u = update[i];
        float a = s.rho * square[i] + rest * (g * g);
        float d = g * sqrtf(u + s.epsilon) / sqrtf(a + s.epsilon);
        square[i] = a;
        update[i] = s.rho * u + rest * (d * d);
        parameters[i] = p - lr * d;
    }
}

int kernel_adadelta(struct CUstream_st *stream, const struct adadelta *adadelta, size_t count,
                    float *parameters, const float *gradients, float *state)
{
    LAUNCH(adadelta_step, count, stream, *adadelta, count, parameters, gradients, state,
           state + adadelta->apart);
    return (int)cudaGetLastError();
}

static __global__ void adam_corrections(struct adam s)
{
    for (EACH(one, 1)) {
        float step = s.step[one] + 1.0f;
        s.step[one] = step;
        s.correction[0] = (float)(1.0 - pow((double)s.beta1, (double)step));
        s.correction[1] = (float)(1.0 - pow((double)s.beta2, (double)step));
    }
}

int kernel_adam_count(struct CUstream_st *stream, const struct adam *adam)
{
    LAUNCH(adam_corrections, 1, stream, *adam);
    return (int)cudaGetLastError();
}

static __global__ void adam_step(struct adam s, size_t count, float *parameters,
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

int kernel_adam(struct CUstream_st *stream, const struct adam *adam, size_t count,
                float *parameters, const float *gradients, float *state)
{
    LAUNCH(adam_step, count, stream, *adam, count, parameters, gradients, state,
           state + adam->apart);
    return (int)cudaGetLastError();
}

/* -------- LARS: norms of a whole tensor, then its step ---------------------------------------- */

/* Part p sums elements p, p + parts, ...: in an order that depends on the count alone. */
static __global__ void square_parts(size_t count, size_t parts, const float *parameters,
                                    const float *gradients, double *part)
{
    for (EACH(p, parts)) {
        double w = 0.0, g = 0.0;
        for (size_t i = p; i < count; i += parts) {
            w += (double)parameters[i] * (double)parameters[i];
            g += (double)gradients[i] * (double)gradients[i];
        }
        part[2 * p] = w;
        part[2 * p + 1] = g;
    }
}

/* Sum s is of parts s, s + sums, ... */
static __global__ void square_sums(size_t parts, size_t sums, const double *part, double *sum)
{
    for (EACH(s, sums)) {
        double w = 0.0, g = 0.0;
#pragma unroll 8
        for (size_t p = s; p < parts; p += sums) {
            w += part[2 * p];
            g += part[2 * p + 1];
        }
        sum[2 * s] = w;
        sum[2 * s + 1] = g;
    }
}

static __global__ void lars_step(struct lars s, size_t count, const double *squares,
                                 float *parameters, const float *gradients, float *velocity)
{
    double w = sqrt(squares[0]), g_norm = sqrt(squares[1]);
    float lr = *s.lr_at, trust = 1.0f;
    if (w > 0 && g_norm > 0)
        trust = (float)((double)s.coefficient * w / (g_norm + (double)s.weight_decay * w));
    for (EACH(i, count)) {
        float p = parameters[i];
        float v = s.momentum * velocity[i] + trust * (gradients[i] + s.weight_decay * p);
        velocity[i] = v;
        parameters[i] = p - lr * v;
    }
}

int kernel_lars(struct CUstream_st *stream, const struct lars *lars, size_t count,
                float *parameters, const float *gradients, float *velocity, double *squares)
{
    size_t parts = count < KERNEL_SQUARE_PARTS ? count : (size_t)KERNEL_SQUARE_PARTS;
    size_t groups = parts < KERNEL_SQUARE_GROUPS ? parts : (size_t)KERNEL_SQUARE_GROUPS;
    double *group = squares + (size_t)2 * KERNEL_SQUARE_PARTS;
    double *all = group + (size_t)2 * KERNEL_SQUARE_GROUPS;
    LAUNCH(square_parts, parts, stream, count, parts, parameters, gradients, squares);
    LAUNCH(square_sums, groups, stream, parts, groups, squares, group);
    LAUNCH(square_sums, 1, stream, groups, 1, group, all);
    LAUNCH(lars_step, count, stream, *lars, count, all, parameters, gradients, velocity);
    return (int)cudaGetLastError();
}
