/* max(x, 0) as a layer of its own; after a convolution or a dense layer it is fused into that. */
#include "models/layer.h"

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
