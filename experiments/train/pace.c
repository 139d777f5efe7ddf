#include "experiments/train/pace.h"

#include "common/base/clock.h"
#include "common/base/range.h"

enum pass { FORWARD, BACKWARD };

/* Waits for the time of a layer's pass, which needs its parameters, or makes its gradient final,
 * part by part. *deadline_ns: when what was before it had ended, and when it has. */
static void pace_layer(struct gradient_sync *sync, const struct net_layer *layer, enum pass pass,
                       double pass_ns, double *deadline_ns)
{
    size_t parts = layer->gradient_parts, end = layer->count;
    range_begin(layer->name, &(struct range_about){.kind = RANGE_COMPUTE});
    for (size_t part = parts; part-- > 0;) {
        int64_t blocked_ns = sync->blocked_ns;
        size_t first = layer->count / parts * part;
        if (pass == FORWARD && layer->count > 0)
            gradient_sync_need(sync, layer->first + first, end - first);
        *deadline_ns += pass_ns / (double)parts + (double)(sync->blocked_ns - blocked_ns);
        clock_sleep_until_ns((int64_t)*deadline_ns);
        blocked_ns = sync->blocked_ns;
        if (pass == BACKWARD && layer->count > 0)
            gradient_sync_start(sync, layer->first + first, end - first);
        *deadline_ns += (double)(sync->blocked_ns - blocked_ns); /* no computing meanwhile */
        end = first;
    }
    range_end();
}

enum status pace_step(struct gradient_sync *sync, double step_ms)
{
    const struct gradient_sync_model *model = &sync->model;
    double flops = 0, deadline_ns = (double)clock_now_ns();
    for (size_t l = 0; l < model->layer_count; l++)
        flops += model->layers[l].forward_flops + model->layers[l].backward_flops;
    double ns_per_flop = step_ms * (double)NS_PER_MS / flops;
    gradient_sync_begin(sync);
    for (size_t l = 0; l < model->layer_count; l++)
        pace_layer(sync, &model->layers[l], FORWARD, model->layers[l].forward_flops * ns_per_flop,
                   &deadline_ns);
    for (size_t l = model->layer_count; l-- > 0;)
        pace_layer(sync, &model->layers[l], BACKWARD, model->layers[l].backward_flops * ns_per_flop,
                   &deadline_ns);
    return gradient_sync_end(sync, 0);
}
