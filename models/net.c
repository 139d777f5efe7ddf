/* Builds and runs nets: layers from their description, memory, initial parameters, passes. */
#include "models/net.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/range.h"
#include "common/base/status.h"
#include "common/device/inputs.h"
#include "models/cnn.h"
#include "models/layer.h"

enum { LAYERS_MAX = 64 };

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

static const struct layer_ops *const layer_ops_of[] = {
    [LAYER_CONV] = &conv_layer_ops,       [LAYER_POOL] = &pool_layer_ops,
    [LAYER_DENSE] = &dense_layer_ops,     [LAYER_RELU] = &relu_layer_ops,
    [LAYER_DROPOUT] = &dropout_layer_ops,
};

/* "conv2": the second of its kind. */
static void name_layer(const struct net *net, struct layer *layer)
{
    int number = 1;
    for (size_t i = 0; i < net->layer_count; i++)
        number += net->layers[i].ops == layer->ops;
    snprintf(layer->name, sizeof layer->name, "%s%d", layer->ops->kind, number);
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
        layer->ops = layer_ops_of[spec->kind];
        layer->device = net->device;
        layer->position = (uint16_t)(spec - cnn->layers);
        layer->in = shape;
        layer->dw_parts = 1;
        name_layer(net, layer);
        layer->ops->describe(layer, spec, fused);
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
        if (layer->ops->prepare)
            TRY(layer->ops->prepare(layer, net->batch_max));
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

/* A net's steps: forward, backward, and access to the results. */

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

static struct layer_ranges ranges_of(const struct net_layer *layer, net_range_hook *hook,
                                     void *context)
{
    return (struct layer_ranges){.hook = hook,
                                 .context = context,
                                 .first = layer->first,
                                 .end = layer->first + layer->count};
}

/* The weight is a layer's first tensor, so its elements have the same numbers as the layer's. The
 * bias follows it and belongs to the first notification. */
void layer_notify(struct layer_ranges *ranges, size_t first)
{
    if (!ranges || ranges->first + first >= ranges->end)
        return;
    size_t begin = ranges->first + first;
    ranges->hook(ranges->context, begin, ranges->end - begin);
    ranges->end = begin;
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
    net_range_hook *needs = step->training ? net->needs : NULL;
    for (size_t i = 0; i < net->layer_count; i++) {
        struct layer *layer = &net->layers[i];
        net->x[i] = x;
        if (layer->ops->training_only && !step->training)
            continue;
        struct layer_ranges ranges = ranges_of(&net->table[i], needs, net->needs_context);
        struct layer_pass pass = {.batch = batch,
                                  .step = &net->step,
                                  .step_at = net->step_at.memory,
                                  .x = x,
                                  .y = net->y[i],
                                  .ranges = needs ? &ranges : NULL};
        if (layer->dw_parts == 1)
            layer_notify(pass.ranges, 0);
        range_begin(layer->forward_range, &(struct range_about){.kind = RANGE_COMPUTE});
        layer->ops->forward(layer, &pass);
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
        struct layer *layer = &net->layers[i];
        struct layer_ranges ranges = ranges_of(&net->table[i], hook, context);
        /* Two buffers in turn: a layer reads one and writes the other. */
        struct layer_pass pass = {.batch = net->batch,
                                  .step = &net->step,
                                  .step_at = net->step_at.memory,
                                  .x = net->x[i],
                                  .y = net->y[i],
                                  .dy = dy,
                                  .dx = i > 0 ? net->dy[i % 2] : NULL,
                                  .ranges = hook ? &ranges : NULL};
        range_begin(layer->backward_range, &(struct range_about){.kind = RANGE_COMPUTE});
        layer->ops->backward(layer, &pass);
        range_end();
        if (net->watch)
            net->watch(net->watch_context, i, true);
        layer_notify(pass.ranges, 0);
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
