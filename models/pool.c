/* 2 x 2 max-pooling as a layer of its own; after a convolution it is fused into that instead. */
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
