/* A worker's part if servers own the parameters. Worker 0 stores the first parameters on the
 * servers. All workers fetch parameters where they meet, and run the steps between two meetings. If
 * servers only sum, these functions do nothing. */
#include "experiments/train/trainer.h"

#include <stdlib.h>

static bool updates_on_server(const struct trainer *t)
{
    return comm_updates_on_server(t->sync.comm);
}

typedef enum status move_function(struct comm *comm, size_t bucket, size_t array, float *data);

/* Moves all buckets of an array from or to `host` (parameters). */
static enum status move_array(const struct trainer *t, move_function *move, size_t array,
                              float *host)
{
    enum status status = STATUS_OK;
    for (size_t b = 0; b < t->sync.count; b++)
        TRY(move(t->sync.comm, b, array, host + t->sync.buckets[b].first));
out:
    return status;
}

/* Moves the optimizer's arrays from or to `host`. */
static enum status move_states(const struct trainer *t, move_function *move, float *host)
{
    enum status status = STATUS_OK;
    size_t states, parameters = net_parameter_count(t->net);
    optimizer_state(t->optimizer, &states);
    for (size_t i = 0; i < states / parameters; i++)
        TRY(move_array(t, move, COMM_STATES + i, host + i * parameters));
out:
    return status;
}

/* The trained parameters. In a paced run gradients take their place. */
static float *trained(const struct trainer *t)
{
    return t->config->train.paced ? net_gradients(t->net) : net_parameters(t->net);
}

enum status train_store(struct trainer *t)
{
    enum status status = STATUS_OK;
    size_t states, parameters = net_parameter_count(t->net);
    if (!updates_on_server(t))
        return STATUS_OK;
    if (t->rank == 0) {
        TRY(device_download(t->device, t->host, trained(t), parameters * sizeof *t->host));
        TRY(move_array(t, comm_store, COMM_PARAMETERS, t->host));
        if (t->optimizer) {
            const float *state = optimizer_state(t->optimizer, &states);
            TRY(device_download(t->device, t->host, state, states * sizeof *t->host));
            TRY(move_states(t, comm_store, t->host));
        }
    }
    TRY(comm_barrier(t->sync.comm));
out:
    return status;
}

enum status train_meet(struct trainer *t)
{
    enum status status = STATUS_OK;
    if (!updates_on_server(t))
        return STATUS_OK;
    TRY(comm_barrier(t->sync.comm));
    TRY(move_array(t, comm_fetch, COMM_PARAMETERS, t->host));
    device_upload(t->device, trained(t), t->host, net_parameter_count(t->net) * sizeof *t->host);
    TRY(device_sync(t->device));
out:
    return status;
}

enum status train_fetch_state(struct trainer *t)
{
    enum status status = STATUS_OK;
    size_t states;
    if (!updates_on_server(t) || !t->config->train.checkpoint)
        return STATUS_OK;
    if (t->rank == 0) {
        float *state = optimizer_state(t->optimizer, &states);
        TRY(move_states(t, comm_fetch, t->host));
        device_upload(t->device, state, t->host, states * sizeof *t->host);
        TRY(device_sync(t->device));
    }
    TRY(comm_barrier(t->sync.comm)); /* no worker pushes before worker 0 has all */
out:
    return status;
}

enum status train_begin_steps(struct trainer *t, uint64_t end)
{
    return updates_on_server(t) ? comm_begin_steps(t->sync.comm, t->step, end) : STATUS_OK;
}

void train_go_on(struct trainer *t)
{
    t->step = updates_on_server(t) ? comm_progress(t->sync.comm)->step : t->step + 1;
}

bool train_all_at_step(const struct trainer *t, uint64_t end)
{
    return !updates_on_server(t) || t->step == end;
}

/* -------- how fresh, how far ------------------------------------------------------------------ */

enum status train_gather_progress(struct trainer *t)
{
    struct report *report = &t->report;
    const struct group *group = comm_group(t->sync.comm);
    if (!updates_on_server(t))
        return STATUS_OK;
    if (!report->reached)
        report->reached = calloc(t->workers, sizeof *report->reached);
    if (!report->reached)
        return FAIL(STATUS_NO_MEMORY, "no memory for the progress of %zu workers", t->workers);
    return world_gather(t->world, group, comm_progress(t->sync.comm), sizeof *report->reached,
                        report->reached);
}
