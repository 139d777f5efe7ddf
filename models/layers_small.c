/* 2 x 2 max-pooling as a separate layer. After a convolution it is fused instead. */
#include "models/layer.h"

static void pool_describe(struct layer *layer, const struct layer_spec *spec,
                          struct cnn_fused fused)
{
    (void)spec;
    (void)fused;
    layer->of.pool = (struct pool2d){layer->in.height, layer->in.width, layer->in.channels};
    layer->out = (struct shape){layer->in.height / 2, layer->in.width / 2, layer->in.channels};
    layer->forward_flops = (double)(3 * shape_count(layer->out)); /* comparisons */
}

static enum status pool_prepare(struct layer *layer, size_t batch_max)
{
    void *memory;
    enum status status = device_alloc(layer->device, "positions of maxima",
                                      batch_max * shape_count(layer->out), &memory);
    layer->index = status == STATUS_OK ? memory : NULL;
    return status;
}

static void pool_forward(struct layer *layer, const struct layer_pass *pass)
{
    layer->device->ops->maxpool_forward(layer->device, &layer->of.pool, pass->batch, pass->x,
                                        pass->y, layer->index);
}

static void pool_backward(struct layer *layer, const struct layer_pass *pass)
{
    if (pass->dx)
        layer->device->ops->maxpool_backward(layer->device, &layer->of.pool, pass->batch,
                                             layer->index, pass->dy, pass->dx);
}

const struct layer_ops pool_layer_ops = {
    .kind = "pool",
    .describe = pool_describe,
    .prepare = pool_prepare,
    .forward = pool_forward,
    .backward = pool_backward,
};

/* max(x, 0) as a separate layer. After a convolution or a dense layer it is fused instead. */

static void relu_describe(struct layer *layer, const struct layer_spec *spec,
                          struct cnn_fused fused)
{
    (void)spec;
    (void)fused;
    layer->out = layer->in;
    layer->forward_flops = layer->dx_flops = (double)shape_count(layer->out);
}

static void relu_forward(struct layer *layer, const struct layer_pass *pass)
{
    size_t count = pass->batch * shape_count(layer->out);
    layer->device->ops->relu_forward(layer->device, count, pass->x, pass->y);
}

static void relu_backward(struct layer *layer, const struct layer_pass *pass)
{
    size_t count = pass->batch * shape_count(layer->out);
    if (pass->dx)
        layer->device->ops->relu_backward(layer->device, count, pass->y, pass->dy, pass->dx);
}

const struct layer_ops relu_layer_ops = {
    .kind = "relu",
    .describe = relu_describe,
    .forward = relu_forward,
    .backward = relu_backward,
};

/*
 * Dropout sets random activations to 0 and scales the others so that the mean stays the same. The
 * mask is never stored. It is a function of (seed, rank, step, layer, element), and the backward
 * pass draws it again. Source: Srivastava et al. 2014, section 10 ("inverted" at training time).
 */

static void dropout_describe(struct layer *layer, const struct layer_spec *spec,
                             struct cnn_fused fused)
{
    (void)fused;
    layer->out = layer->in;
    layer->of.rate = spec->rate;
    layer->forward_flops = layer->dx_flops = (double)shape_count(layer->out);
}

/* The gradient is the same operation: the same mask times dy. */
static void apply(struct layer *layer, const struct layer_pass *pass, const float *from, float *to)
{
    struct dropout dropout = {.rate = layer->of.rate,
                              .key = rng_key(pass->step->seed, RNG_DROPOUT, pass->step->rank),
                              .step_at = pass->step_at,
                              .layer = layer->position};
    layer->device->ops->dropout(layer->device, &dropout, pass->batch * shape_count(layer->out),
                                from, to);
}

static void dropout_forward(struct layer *layer, const struct layer_pass *pass)
{
    apply(layer, pass, pass->x, pass->y);
}

static void dropout_backward(struct layer *layer, const struct layer_pass *pass)
{
    if (pass->dx)
        apply(layer, pass, pass->dy, pass->dx);
}

const struct layer_ops dropout_layer_ops = {
    .kind = "dropout",
    .describe = dropout_describe,
    .forward = dropout_forward,
    .backward = dropout_backward,
    .training_only = true,
};
