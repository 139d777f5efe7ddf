/* Builds and runs nets: layers from their description, memory, initial parameters, passes. */
#include "models/net.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/range.h"
#include "common/base/status.h"
#include "common/device/inputs.h"
#include "models/cnn.h"

enum {
    LAYERS_MAX = 64,
    LAYER_TENSORS = 2, /* weight and bias */
    LAYER_NAME_BYTES = 16,
    LAYER_RANGE_BYTES = LAYER_NAME_BYTES + sizeof "backward",
};

/* A parameter tensor as its layer describes it. Fans of 0: it starts as zeros. */
struct layer_tensor {
    const char *name; /* "weight" */
    size_t shape[NET_TENSOR_DIMS];
    int ndim;
    size_t fan_in, fan_out;
};

struct layer {
    enum layer_kind kind;
    char name[LAYER_NAME_BYTES];
    char forward_range[LAYER_RANGE_BYTES], backward_range[LAYER_RANGE_BYTES]; /* see base/range.h */
    uint16_t position; /* in the description: selects the layer's dropout numbers, fused or not */
    struct shape in, out;

    size_t tensor_count;
    struct layer_tensor tensors[LAYER_TENSORS];
    float *parameters[LAYER_TENSORS], *gradients[LAYER_TENSORS]; /* in the arenas */

    double forward_flops, dx_flops, dw_flops; /* for one image; backward is dw plus dx, if wanted */
    size_t dw_parts;                          /* parts in which dw becomes final, in turn */
    /* Forward keeps them for backward, besides x and y; device memory. */
    uint8_t *index; /* positions of maxima, with pooling */
    void *kept;     /* conv2d.kept */
    union {
        struct conv2d conv;
        struct pool2d pool;
        struct dense dense;
        float rate;
    } of;
};

struct net {
    struct device *device;
    struct shape input, output;
    size_t batch_max;

    size_t layer_count;
    struct layer *layers; /* (LAYERS_MAX) */
    struct net_layer table[LAYERS_MAX];
    size_t tensor_count;
    struct net_tensor tensors[LAYERS_MAX * LAYER_TENSORS];

    size_t parameter_count;
    float *parameters, *gradients; /* the arenas; device memory, as all below */
    float *y[LAYERS_MAX];          /* (batch_max, out) of each layer */
    float *dlogits;                /* (batch_max, output) */
    float *dy[2];                  /* gradients by activations, in turn: (batch_max, largest) */
    struct loss_sum *sum;
    struct device_input step_at; /* uint64_t: the step, for dropout */

    net_pass_hook *watch; /* NULL: no hook */
    void *watch_context;
    net_range_hook *needs; /* NULL: the parameters are there */
    void *needs_context;

    /* State of the last net_forward, for net_backward. */
    struct net_step step;
    size_t batch;
    const float *x[LAYERS_MAX]; /* input of each layer */
};

/* -------- description ------------------------------------------------------------------------- */

static const char *const kind_names[] = {
    [LAYER_CONV] = "conv", [LAYER_POOL] = "pool",       [LAYER_DENSE] = "dense",
    [LAYER_RELU] = "relu", [LAYER_DROPOUT] = "dropout",
};

static void describe_conv(struct layer *layer, const struct layer_spec *spec,
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

static void describe_dense(struct layer *layer, const struct layer_spec *spec,
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

/* Sets out, tensors, flops and `of`; `in` is set. `fused` names the following layers of the
 * description that are part of this one. */
static void describe_layer(struct layer *layer, const struct layer_spec *spec,
                           struct cnn_fused fused)
{
    layer->kind = spec->kind;
    layer->out = layer->in;
    layer->dw_parts = 1;
    switch (spec->kind) {
    case LAYER_CONV:
        describe_conv(layer, spec, fused);
        break;
    case LAYER_POOL:
        layer->of.pool = (struct pool2d){layer->in.height, layer->in.width, layer->in.channels};
        layer->out = (struct shape){layer->in.height / 2, layer->in.width / 2, layer->in.channels};
        layer->forward_flops = (double)(3 * shape_count(layer->out)); /* comparisons */
        break;
    case LAYER_DENSE:
        describe_dense(layer, spec, fused);
        break;
    case LAYER_RELU:
    case LAYER_DROPOUT:
        layer->of.rate = spec->rate;
        layer->forward_flops = layer->dx_flops = (double)shape_count(layer->out);
        break;
    case LAYER_END:
        break;
    }
}

/* "conv2": the second of its kind. */
static void name_layer(const struct net *net, struct layer *layer)
{
    int number = 1;
    for (size_t i = 0; i < net->layer_count; i++)
        number += net->layers[i].kind == layer->kind;
    snprintf(layer->name, sizeof layer->name, "%s%d", kind_names[layer->kind], number);
    snprintf(layer->forward_range, sizeof layer->forward_range, "forward %s", layer->name);
    snprintf(layer->backward_range, sizeof layer->backward_range, "backward %s", layer->name);
}

/* Appends a layer's tensors to the table, without gaps in the arena. */
static void add_tensors(struct net *net, const struct layer *layer)
{
    for (size_t i = 0; i < layer->tensor_count; i++) {
        const struct layer_tensor *from = &layer->tensors[i];
        struct net_tensor *tensor = &net->tensors[net->tensor_count++];
        snprintf(tensor->name, sizeof tensor->name, "%s.%.15s", layer->name, from->name);
        tensor->ndim = from->ndim;
        tensor->offset = net->parameter_count;
        tensor->count = 1;
        for (int d = 0; d < from->ndim; d++) {
            tensor->shape[d] = from->shape[d];
            tensor->count *= from->shape[d];
        }
        net->parameter_count += tensor->count;
    }
}

static void describe(struct net *net, const struct cnn *cnn, bool fuse)
{
    struct shape shape = cnn->input;
    for (const struct layer_spec *spec = cnn->layers; spec->kind != LAYER_END;) {
        CHECK(net->layer_count < LAYERS_MAX);
        struct cnn_fused fused = {0};
        if (fuse)
            fused = cnn_fusible(spec);
        struct layer *layer = &net->layers[net->layer_count];
        layer->position = (uint16_t)(spec - cnn->layers);
        layer->in = shape;
        describe_layer(layer, spec, fused);
        name_layer(net, layer);
        shape = layer->out;

        struct net_layer *entry = &net->table[net->layer_count];
        size_t first = net->parameter_count;
        add_tensors(net, layer);
        size_t count = net->parameter_count - first;
        bool dx = net->layer_count > 0;
        *entry =
            (struct net_layer){.name = layer->name,
                               .first = first,
                               .count = count,
                               .in_count = shape_count(layer->in),
                               .out_count = shape_count(layer->out),
                               .forward_flops = layer->forward_flops,
                               .backward_flops = layer->dw_flops + (dx ? layer->dx_flops : 0.0),
                               .gradient_parts = layer->dw_parts};
        net->layer_count++;
        spec += 1 + fused.relu + fused.pool;
    }
    net->output = shape;
}

/* -------- parameters -------------------------------------------------------------------------- */

/*
 * Uniform in +-sqrt(6 / (fan_in + fan_out)), biases 0. Source: Glorot and Bengio 2010, equation 16
 * (as in Keras). Each tensor draws from a separate stream, so its values depend only on the seed
 * and its position.
 */
static void initialise(const struct layer_tensor *layer_tensor, size_t count, struct rng_key key,
                       float *values)
{
    float limit = 0.0f;
    if (layer_tensor->fan_in)
        limit = sqrtf(6.0f / (float)(layer_tensor->fan_in + layer_tensor->fan_out));
    for (size_t i = 0; i < count; i++) {
        struct rng_block block = rng_block(key, i / 4, 0);
        values[i] = limit * (2.0f * rng_uniform(block.word[i % 4]) - 1.0f);
    }
}

static enum status fill_parameters(struct net *net, uint64_t seed)
{
    float *host = malloc(net->parameter_count * sizeof *host);
    if (!host)
        return FAIL(STATUS_NO_MEMORY, "%zu initial parameters: out of memory",
                    net->parameter_count);
    size_t position = 0;
    for (size_t i = 0; i < net->layer_count; i++) {
        for (size_t t = 0; t < net->layers[i].tensor_count; t++, position++) {
            const struct net_tensor *tensor = &net->tensors[position];
            initialise(&net->layers[i].tensors[t], tensor->count, rng_key(seed, RNG_INIT, position),
                       host + tensor->offset);
        }
    }
    device_upload(net->device, net->parameters, host, net->parameter_count * sizeof *host);
    free(host);
    return device_sync(net->device);
}

/* -------- memory ------------------------------------------------------------------------------ */

static enum status allocate_floats(struct net *net, const char *what, size_t count, float **memory)
{
    void *p = NULL;
    enum status status = device_alloc(net->device, what, count * sizeof **memory, &p);
    *memory = p;
    return status;
}

/* Only layers with maxima and convolutions keep something. */
static enum status allocate_kept(struct device *device, struct layer *layer, size_t batch_max)
{
    enum status status = STATUS_OK;
    bool pools = layer->kind == LAYER_POOL;
    if (layer->kind == LAYER_DENSE)
        TRY(device->ops->dense_prepare(device, &layer->of.dense, batch_max));
    if (layer->kind == LAYER_CONV) {
        TRY(device->ops->conv2d_prepare(device, &layer->of.conv, batch_max));
        layer->kept = layer->of.conv.kept;
        pools = layer->of.conv.pool;
    }
    if (pools) {
        void *memory;
        TRY(device_alloc(device, "positions of maxima", batch_max * shape_count(layer->out),
                         &memory));
        layer->index = memory;
    }
out:
    return status;
}

static enum status allocate(struct net *net)
{
    enum status status = STATUS_OK;
    size_t largest = 0, position = 0;
    void *sum;
    TRY(allocate_floats(net, "parameters", net->parameter_count, &net->parameters));
    TRY(allocate_floats(net, "gradients", net->parameter_count, &net->gradients));
    net->device->ops->fill(net->device, net->gradients, 0.0f, net->parameter_count);
    for (size_t i = 0; i < net->layer_count; i++) {
        struct layer *layer = &net->layers[i];
        size_t count = net->batch_max * shape_count(layer->out);
        largest = count > largest ? count : largest;
        TRY(allocate_floats(net, "activations", count, &net->y[i]));
        for (size_t t = 0; t < layer->tensor_count; t++, position++) {
            layer->parameters[t] = net->parameters + net->tensors[position].offset;
            layer->gradients[t] = net->gradients + net->tensors[position].offset;
        }
        TRY(allocate_kept(net->device, layer, net->batch_max));
    }
    TRY(allocate_floats(net, "gradients by activations", largest, &net->dy[0]));
    TRY(allocate_floats(net, "gradients by activations", largest, &net->dy[1]));
    TRY(allocate_floats(net, "gradients by logits", net->batch_max * shape_count(net->output),
                        &net->dlogits));
    TRY(device_alloc(net->device, "the loss", sizeof *net->sum, &sum));
    net->sum = sum;
    TRY(device_input_new(net->device, "the number of the step", sizeof(uint64_t), &net->step_at));
out:
    return status;
}

enum status net_new_cnn(struct net **out_net, struct device *device, const struct cnn *cnn,
                        size_t batch_max, uint64_t seed, bool fuse)
{
    enum status status = STATUS_OK;
    CHECK(batch_max > 0);
    struct net *net = calloc(1, sizeof *net);
    if (net)
        net->layers = calloc(LAYERS_MAX, sizeof *net->layers);
    if (!net || !net->layers)
        TRY(FAIL(STATUS_NO_MEMORY, "%s: out of memory", cnn->name));
    net->device = device;
    net->input = cnn->input;
    net->batch_max = batch_max;
    describe(net, cnn, fuse);
    TRY(allocate(net));
    TRY(fill_parameters(net, seed));
out:
    if (status != STATUS_OK)
        net_free(&net);
    *out_net = net;
    return status;
}

enum status net_new(struct net **net, struct device *device, const char *model, size_t batch_max,
                    uint64_t seed)
{
    const struct cnn *cnn = cnn_find(model);
    *net = NULL;
    if (!cnn)
        return FAIL(STATUS_USAGE, "model '%s': not known; psring train --help lists the models",
                    model);
    return net_new_cnn(net, device, cnn, batch_max, seed, true);
}

enum status net_optimizer_new(struct optimizer **optimizer, const struct net *net,
                              enum optimizer_kind kind,
                              const struct optimizer_parameters *parameters)
{
    struct optimizer_tensor tensors[LAYERS_MAX * LAYER_TENSORS];
    struct optimizer_parameters all = parameters ? *parameters : optimizer_parameters_default;
    for (size_t t = 0; t < net->tensor_count; t++)
        tensors[t] = (struct optimizer_tensor){.first = net->tensors[t].offset,
                                               .count = net->tensors[t].count,
                                               .bias = net->tensors[t].ndim == 1};
    all.tensors = tensors;
    all.tensor_count = net->tensor_count;
    return optimizer_new(optimizer, net->device, kind, net->parameter_count, &all);
}

void net_free(struct net **net)
{
    struct net *n = *net;
    *net = NULL;
    if (!n)
        return;
    for (size_t i = 0; i < n->layer_count; i++) {
        device_free(n->device, n->layers[i].index);
        device_free(n->device, n->layers[i].kept);
        device_free(n->device, n->y[i]);
    }
    device_free(n->device, n->sum);
    device_free(n->device, n->dlogits);
    device_free(n->device, n->dy[0]);
    device_free(n->device, n->dy[1]);
    device_free(n->device, n->gradients);
    device_free(n->device, n->parameters);
    free(n->layers);
    free(n);
}

/* -------- one layer --------------------------------------------------------------------------- */

/* State of notifications about one layer's parameters or gradients (net_range_hook): the caller of
 * the pass has been notified of all elements from `end` on. */
struct layer_ranges {
    net_range_hook *hook; /* NULL: the caller needs no notification */
    void *context;
    size_t first, end; /* elements of the arena; `first`: the layer's first one */
};

static struct layer_ranges ranges_of(const struct net_layer *layer, net_range_hook *hook,
                                     void *context)
{
    return (struct layer_ranges){hook, context, layer->first, layer->first + layer->count};
}

/* Notifies the caller of the pass of the layer's elements from `first` on, except those that it has
 * been notified of. The weight is a layer's first tensor, so its elements have the same numbers as
 * the layer's. The bias follows it and belongs to the first notification. */
static void notify(struct layer_ranges *ranges, size_t first)
{
    size_t begin = ranges->first + first;
    if (!ranges->hook || begin >= ranges->end)
        return;
    ranges->hook(ranges->context, begin, ranges->end - begin);
    ranges->end = begin;
}

/* The rows of a dense layer's weight before `end` that are computed next: all rows, unless the
 * caller waits for a part. */
static struct dense_rows rows_before(const struct net *net, const struct dense *dense, size_t end,
                                     const struct layer_ranges *ranges)
{
    size_t rows = ranges->hook ? net->device->ops->dense_rows(net->device, dense) : end;
    return (struct dense_rows){(end - 1) / rows * rows, end};
}

/*
 * Dropout sets random activations to 0 and scales the others so that the mean stays the same. The
 * mask is never stored. It is a function of (seed, rank, step, layer, element), and the backward
 * pass draws it again: the gradient is the same mask times dy. Source: Srivastava et al. 2014,
 * section 10 ("inverted" at training time).
 */
static void drop_out(const struct net *net, const struct layer *layer, size_t count,
                     const float *from, float *to)
{
    struct dropout dropout = {.rate = layer->of.rate,
                              .key = rng_key(net->step.seed, RNG_DROPOUT, net->step.rank),
                              .step_at = net->step_at.memory,
                              .layer = layer->position};
    net->device->ops->dropout(net->device, &dropout, count, from, to);
}

/* From x (batch, in) to y (batch, out), both in device memory. */
static void forward(const struct net *net, const struct layer *layer, const float *x, float *y,
                    struct layer_ranges *ranges)
{
    struct device *device = net->device;
    const struct device_ops *ops = device->ops;
    const float *w = layer->parameters[0], *bias = layer->parameters[1];
    size_t batch = net->batch, count = batch * shape_count(layer->out);
    switch (layer->kind) {
    case LAYER_CONV:
        ops->conv2d_forward(device, &layer->of.conv, batch, x, w, bias, y, layer->index);
        break;
    case LAYER_POOL:
        ops->maxpool_forward(device, &layer->of.pool, batch, x, y, layer->index);
        break;
    case LAYER_DENSE:
        for (size_t end = layer->of.dense.inputs; end > 0;) {
            const struct dense_rows rows = rows_before(net, &layer->of.dense, end, ranges);
            notify(ranges, rows.first * layer->of.dense.outputs);
            ops->dense_forward(device, &layer->of.dense, batch, rows, x, w, bias, y);
            end = rows.first;
        }
        break;
    case LAYER_RELU:
        ops->relu_forward(device, count, x, y);
        break;
    case LAYER_DROPOUT:
        drop_out(net, layer, count, x, y);
        break;
    case LAYER_END:
        break;
    }
}

/* From pass->dy to pass->dx, if it is wanted, and to the layer's gradients. */
static void backward(const struct net *net, const struct layer *layer, const struct backward *pass,
                     struct layer_ranges *ranges)
{
    struct device *device = net->device;
    const struct device_ops *ops = device->ops;
    size_t batch = net->batch, count = batch * shape_count(layer->out);
    switch (layer->kind) {
    case LAYER_CONV:
        ops->conv2d_backward(device, &layer->of.conv, batch, pass);
        break;
    case LAYER_POOL:
        if (pass->dx)
            ops->maxpool_backward(device, &layer->of.pool, batch, pass->index, pass->dy, pass->dx);
        break;
    case LAYER_DENSE:
        for (size_t end = layer->of.dense.inputs; end > 0;) {
            const struct dense_rows rows = rows_before(net, &layer->of.dense, end, ranges);
            ops->dense_backward(device, &layer->of.dense, batch, rows, pass);
            notify(ranges, rows.first * layer->of.dense.outputs);
            end = rows.first;
        }
        break;
    case LAYER_RELU:
        if (pass->dx)
            ops->relu_backward(device, count, pass->y, pass->dy, pass->dx);
        break;
    case LAYER_DROPOUT:
        if (pass->dx)
            drop_out(net, layer, count, pass->dy, pass->dx);
        break;
    case LAYER_END:
        break;
    }
}

/* -------- all layers -------------------------------------------------------------------------- */

void net_watch(struct net *net, net_pass_hook *hook, void *context)
{
    net->watch = hook;
    net->watch_context = context;
}

void net_download_loss(struct net *net, struct loss_sum *to)
{
    device_download_async(net->device, NULL, to, net->sum, sizeof *to);
}

void net_set_step(struct net *net, uint64_t step)
{
    *(uint64_t *)net->step_at.host = step;
}

void net_before_forward(struct net *net, net_range_hook *hook, void *context)
{
    net->needs = hook;
    net->needs_context = context;
}

enum status net_forward(struct net *net, const float *images, const uint8_t *labels, size_t batch,
                        const struct net_step *step, struct loss_sum *loss)
{
    CHECK(batch > 0 && batch <= net->batch_max);
    net->step = *step;
    net->batch = batch;
    if (step->training)
        net_set_step(net, step->step);
    const float *x = images;
    for (size_t i = 0; i < net->layer_count; i++) {
        const struct layer *layer = &net->layers[i];
        struct layer_ranges ranges =
            ranges_of(&net->table[i], step->training ? net->needs : NULL, net->needs_context);
        net->x[i] = x;
        if (layer->kind == LAYER_DROPOUT && !step->training) /* the identity */
            continue;
        if (layer->dw_parts == 1)
            notify(&ranges, 0);
        range_begin(layer->forward_range, &(struct range_about){.kind = RANGE_COMPUTE});
        forward(net, layer, x, net->y[i], &ranges);
        range_end();
        if (net->watch)
            net->watch(net->watch_context, i, false);
        x = net->y[i];
    }
    range_begin("loss", &(struct range_about){.kind = RANGE_COMPUTE});
    double divisor = step->divisor > 0 ? step->divisor : (double)batch;
    net->device->ops->softmax_cross_entropy(net->device, batch, shape_count(net->output), divisor,
                                            x, labels, step->training ? net->dlogits : NULL,
                                            net->sum);
    range_end();
    if (net->watch)
        net->watch(net->watch_context, net->layer_count, false);
    return loss ? device_download(net->device, loss, net->sum, sizeof *loss) : STATUS_OK;
}

enum status net_backward(struct net *net, net_range_hook *hook, void *context)
{
    CHECK(net->step.training && net->batch > 0);
    float *dy = net->dlogits;
    for (size_t i = net->layer_count; i-- > 0;) {
        const struct layer *layer = &net->layers[i];
        struct layer_ranges ranges = ranges_of(&net->table[i], hook, context);
        const struct backward pass = {
            .x = net->x[i],
            .w = layer->parameters[0],
            .y = net->y[i],
            .index = layer->index,
            .dy = dy,
            .dx = i > 0 ? net->dy[i % 2] : NULL, /* in turn: a layer reads one, writes the other */
            .dw = layer->gradients[0],
            .dbias = layer->gradients[1],
        };
        range_begin(layer->backward_range, &(struct range_about){.kind = RANGE_COMPUTE});
        backward(net, layer, &pass, &ranges);
        range_end();
        if (net->watch)
            net->watch(net->watch_context, i, true);
        notify(&ranges, 0);
        dy = pass.dx;
    }
    return STATUS_OK;
}

/* -------- what others read -------------------------------------------------------------------- */

float *net_parameters(struct net *net)
{
    return net->parameters;
}

float *net_gradients(struct net *net)
{
    return net->gradients;
}

size_t net_parameter_count(const struct net *net)
{
    return net->parameter_count;
}

const struct net_tensor *net_tensors(const struct net *net, size_t *count)
{
    *count = net->tensor_count;
    return net->tensors;
}

const struct net_layer *net_layers(const struct net *net, size_t *count)
{
    *count = net->layer_count;
    return net->table;
}
