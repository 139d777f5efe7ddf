/* A net's steps: forward, backward, and what others read of it. */
#include "models/net.h"

#include "common/base/status.h"
#include "common/device/inputs.h"
#include "common/obs/range.h"
#include "models/net_parts.h"

/* Of the last forward pass; waits for the device. */
static enum status read_loss(struct net *net, struct net_loss *loss)
{
    struct loss_sum sum;
    enum status status = device_download(net->device, &sum, net->sum, sizeof sum);
    if (status == STATUS_OK)
        *loss = (struct net_loss){.loss_sum = sum.loss, .correct = sum.correct};
    return status;
}

static void say_passed(const struct net *net, size_t layer, bool backward)
{
    if (net->watch)
        net->watch(net->watch_context, layer, backward);
}

void net_watch(struct net *net, net_pass_hook *hook, void *context)
{
    net->watch = hook;
    net->watch_context = context;
}

void net_download_loss(struct net *net, struct loss_sum *to)
{
    device_download_async(net->device, NULL, to, net->sum, sizeof *to);
}

enum status net_expect(struct net *net, size_t batch)
{
    enum status status = STATUS_OK;
    CHECK(batch > 0 && batch <= net->batch_max);
    for (size_t i = 0; i < net->layer_count; i++) {
        if (net->layers[i].ops->expect)
            TRY(net->layers[i].ops->expect(&net->layers[i], batch));
    }
out:
    return status;
}

void net_set_step(struct net *net, uint64_t step)
{
    if (step == net->step_set)
        return;
    net->step_set = step;
    device_input_set(net->device, net->step_at, &step, sizeof step);
}

static struct layer_ranges ranges_of(const struct net_layer *layer, net_range_hook *hook,
                                     void *context)
{
    return (struct layer_ranges){.hook = hook,
                                 .context = context,
                                 .first = layer->first,
                                 .end = layer->first + layer->count};
}

/* The weight is a layer's first tensor, so its elements are numbered as the layer's are; what comes
 * after it, the bias, goes with what is told first. */
void layer_tell(struct layer_ranges *ranges, size_t first)
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
                        const struct net_step *step, struct net_loss *loss)
{
    CHECK(batch > 0 && batch <= net->batch_max);
    net->step = *step;
    net->batch = batch;
    if (step->training)
        net_set_step(net, step->step);
    device_inputs_send(net->device);
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
                                  .step_at = net->step_at,
                                  .x = x,
                                  .y = net->y[i],
                                  .ranges = needs ? &ranges : NULL};
        if (layer->dw_parts == 1)
            layer_tell(pass.ranges, 0);
        range_begin(layer->forward_range, &(struct range_about){.kind = RANGE_COMPUTE});
        layer->ops->forward(layer, &pass);
        range_end();
        say_passed(net, i, false);
        x = net->y[i];
    }
    range_begin("loss", &(struct range_about){.kind = RANGE_COMPUTE});
    double divisor = step->divisor > 0 ? step->divisor : (double)batch;
    net->device->ops->softmax_cross_entropy(net->device, batch, shape_count(net->output), divisor,
                                            x, labels, step->training ? net->dlogits : NULL,
                                            net->sum);
    range_end();
    say_passed(net, net->layer_count, false);
    return loss ? read_loss(net, loss) : STATUS_OK;
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
                                  .step_at = net->step_at,
                                  .x = net->x[i],
                                  .y = net->y[i],
                                  .dy = dy,
                                  .dx = i > 0 ? net->dy[i % 2] : NULL,
                                  .ranges = hook ? &ranges : NULL};
        range_begin(layer->backward_range, &(struct range_about){.kind = RANGE_COMPUTE});
        layer->ops->backward(layer, &pass);
        range_end();
        say_passed(net, i, true);
        layer_tell(pass.ranges, 0);
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
