/*
 * Dropout: a random part of the activations becomes 0, and what is kept grows so that the mean
 * stays. The mask is never stored: it is a function of (seed, rank, step, layer, element), drawn
 * again by the backward pass. Source: Srivastava et al. 2014, section 10 ("inverted" at training
 * time).
 */
#include "models/layer.h"

static void dropout_describe(struct layer *layer, const struct layer_spec *spec,
                             struct cnn_fused fused)
{
    (void)fused;
    layer->out = layer->in;
    layer->of.rate = spec->rate;
    layer->forward_flops = layer->dx_flops = (double)shape_count(layer->out);
}

/* The operation is its own gradient: the same mask times dy. */
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
