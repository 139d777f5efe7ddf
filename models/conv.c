/* Convolution, with the relu and pooling that are fused into it. */
#include "common/base/status.h"
#include "models/layer.h"

static void conv_describe(struct layer *layer, const struct layer_spec *spec,
                          struct cnn_fused fused)
{
    struct conv2d *conv = &layer->of.conv;
    *conv = (struct conv2d){.height = layer->in.height,
                            .width = layer->in.width,
                            .channels = layer->in.channels,
                            .filters = spec->units,
                            .kernel = spec->kernel,
                            .padding = spec->padding,
                            .relu = fused.relu,
                            .pool = fused.pool};
    CHECK(conv->height + 2 * conv->padding >= conv->kernel);
    CHECK(conv->width + 2 * conv->padding >= conv->kernel);
    layer->out = (struct shape){conv2d_out_size(conv, conv->height),
                                conv2d_out_size(conv, conv->width), conv->filters};
    size_t window = conv->kernel * conv->kernel;
    layer->tensor_count = 2;
    layer->tensors[0] =
        (struct layer_tensor){.name = "weight",
                              .shape = {conv->kernel, conv->kernel, conv->channels, conv->filters},
                              .ndim = 4,
                              .fan_in = window * conv->channels,
                              .fan_out = window * conv->filters};
    layer->tensors[1] = (struct layer_tensor){.name = "bias", .shape = {conv->filters}, .ndim = 1};
    /* (output pixels x filters) sums of (kernel^2 x channels) products. dx and dw take the same
     * each. */
    size_t pixels = conv2d_window_size(conv, conv->height) * conv2d_window_size(conv, conv->width);
    layer->forward_flops = 2.0 * (double)(pixels * conv->filters * window * conv->channels);
    layer->dx_flops = layer->dw_flops = layer->forward_flops;
}

static enum status conv_prepare(struct layer *layer, size_t batch_max)
{
    enum status status = STATUS_OK;
    TRY(layer->device->ops->conv2d_prepare(layer->device, &layer->of.conv, batch_max));
    layer->kept = layer->of.conv.kept;
    if (layer->of.conv.pool) {
        void *memory;
        TRY(device_alloc(layer->device, "positions of maxima", batch_max * shape_count(layer->out),
                         &memory));
        layer->index = memory;
    }
out:
    return status;
}

static void conv_forward(struct layer *layer, const struct layer_pass *pass)
{
    layer->device->ops->conv2d_forward(layer->device, &layer->of.conv, pass->batch, pass->x,
                                       layer->parameters[0], layer->parameters[1], pass->y,
                                       layer->index);
}

static void conv_backward(struct layer *layer, const struct layer_pass *pass)
{
    struct backward backward = {.x = pass->x,
                                .w = layer->parameters[0],
                                .y = pass->y,
                                .index = layer->index,
                                .dy = pass->dy,
                                .dx = pass->dx,
                                .dw = layer->gradients[0],
                                .dbias = layer->gradients[1]};
    layer->device->ops->conv2d_backward(layer->device, &layer->of.conv, pass->batch, &backward);
}

const struct layer_ops conv_layer_ops = {
    .kind = "conv",
    .describe = conv_describe,
    .prepare = conv_prepare,
    .forward = conv_forward,
    .backward = conv_backward,
};
