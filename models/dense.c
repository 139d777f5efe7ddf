/* Fully connected layer, with the relu that is fused into it. */
#include "models/layer.h"

static void dense_describe(struct layer *layer, const struct layer_spec *spec,
                           struct cnn_fused fused)
{
    size_t inputs = shape_count(layer->in), outputs = spec->units;
    layer->of.dense = (struct dense){.inputs = inputs, .outputs = outputs, .relu = fused.relu};
    layer->out = (struct shape){1, 1, outputs};
    layer->tensor_count = 2;
    layer->tensors[0] = (struct layer_tensor){.name = "weight",
                                              .shape = {inputs, outputs},
                                              .ndim = 2,
                                              .fan_in = inputs,
                                              .fan_out = outputs};
    layer->tensors[1] = (struct layer_tensor){.name = "bias", .shape = {outputs}, .ndim = 1};
    layer->forward_flops = 2.0 * (double)(inputs * outputs);
    layer->dx_flops = layer->dw_flops = layer->forward_flops;
    layer->dw_parts = (inputs + DENSE_BLOCK_INPUTS - 1) / DENSE_BLOCK_INPUTS;
}

static enum status dense_prepare(struct layer *layer, size_t batch_max)
{
    return layer->device->ops->dense_prepare(layer->device, &layer->of.dense, batch_max);
}

/* The rows of w before `end` that are computed next: all rows, unless the caller waits for a
 * part. */
static struct dense_rows rows_before(const struct layer *layer, const struct layer_pass *pass,
                                     size_t end)
{
    const struct dense *dense = &layer->of.dense;
    size_t rows = pass->ranges ? layer->device->ops->dense_rows(layer->device, dense) : end;
    return (struct dense_rows){(end - 1) / rows * rows, end};
}

static void dense_forward(struct layer *layer, const struct layer_pass *pass)
{
    const struct dense *dense = &layer->of.dense;
    for (size_t end = dense->inputs; end > 0;) {
        struct dense_rows rows = rows_before(layer, pass, end);
        layer_notify(pass->ranges, rows.first * dense->outputs);
        layer->device->ops->dense_forward(layer->device, dense, pass->batch, rows, pass->x,
                                          layer->parameters[0], layer->parameters[1], pass->y);
        end = rows.first;
    }
}

static void dense_backward(struct layer *layer, const struct layer_pass *pass)
{
    struct backward backward = {.x = pass->x,
                                .w = layer->parameters[0],
                                .y = pass->y,
                                .dy = pass->dy,
                                .dx = pass->dx,
                                .dw = layer->gradients[0],
                                .dbias = layer->gradients[1]};
    const struct dense *dense = &layer->of.dense;
    for (size_t end = dense->inputs; end > 0;) {
        struct dense_rows rows = rows_before(layer, pass, end);
        layer->device->ops->dense_backward(layer->device, dense, pass->batch, rows, &backward);
        layer_notify(pass->ranges, rows.first * dense->outputs);
        end = rows.first;
    }
}

const struct layer_ops dense_layer_ops = {
    .kind = "dense",
    .describe = dense_describe,
    .prepare = dense_prepare,
    .forward = dense_forward,
    .backward = dense_backward,
};
