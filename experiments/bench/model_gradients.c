#include "experiments/bench/model_gradients.h"

#include <math.h>
#include <stdlib.h>

#include "common/base/status.h"
#include "common/base/clock.h"
#include "common/base/util.h"
#include "common/base/stats.h"
#include "experiments/bench/measure.h"
#include "experiments/bench/info.h"
#include "experiments/train/gradient_sync.h"
#include "models/published.h"

/* -------- memory ------------------------------------------------------------------------------ */

/* The memory that a rank needs, its machine, and the memory available there. */
struct need {
    int32_t machine;
    double bytes, available_bytes;
};

/* The kernel's estimate of memory available without swapping; 0: not known. */
static double available_bytes(void)
{
    char text[64] = "";
    machine_read_field("/proc/meminfo", "MemAvailable", ':', text, sizeof text);
    return strtod(text, NULL) * 1024;
}

/* A worker's gradients, the residuals of compression, and a server's share of the gradients
 * (estimated as a quarter). */
static double needed_bytes(const struct config *config, size_t count)
{
    double each = (double)(count * sizeof(float));
    return each * (config->compress == COMPRESS_NONE ? 1.25 : 2.25);
}

static enum status check_memory(const struct config *config, struct world *world, size_t count)
{
    enum status status;
    struct need mine = {.machine = world->machine,
                        .bytes = needed_bytes(config, count),
                        .available_bytes = available_bytes()};
    struct need *all = calloc((size_t)world->size, sizeof *all);
    if (!all)
        return FAIL(STATUS_NO_MEMORY, "bench: no memory for %d ranks", world->size);
    TRY(world_gather(world, NULL, &mine, sizeof mine, all));
    for (int rank = 0; rank < world->size; rank++) {
        double needed = 0;
        int ranks = 0;
        for (int other = 0; other < world->size; other++) {
            bool here = all[other].machine == all[rank].machine;
            needed += here ? all[other].bytes : 0;
            ranks += here;
        }
        if (all[rank].available_bytes <= 0 || needed <= all[rank].available_bytes)
            continue;
        if (world->rank == 0)
            log_error("--model-gradients %s: %d ranks on the machine of %s need about %.1f GB, and "
                      "%.1f GB are free there; start fewer ranks on it, or choose a smaller model",
                      published_names[config->bench.model_gradients], ranks, world->hosts[rank],
                      needed * 1e-9, all[rank].available_bytes * 1e-9);
        status = STATUS_NO_MEMORY;
        goto out;
    }
out:
    free(all);
    return status;
}

/* -------- steps ------------------------------------------------------------------------------- */

/* Fills each gradient with numbers of its position, also on the device if there is one. */
static enum status fill_gradients(struct bench_model *model)
{
    enum status status = STATUS_OK;
    struct device *device = model->connection.options.device;
    size_t count = model->plan.count;
    struct comm *comm = model->sync.comm;
    bench_fill(model->host, count,
               bench_values(comm_workers(comm), model->connection.options.compress),
               comm_rank(comm), 0);
    if (device) {
        device_upload(device, model->device, model->host, count * sizeof *model->host);
        TRY(device_sync(device));
    }
out:
    return status;
}

/* Times each step from the end of the one before to its own end. A step leaves as much work to the
 * next one as it took over from the one before. */
static enum status time_steps(struct bench_model *model, const struct config *config,
                              double *times_us, int64_t first, int64_t end, int64_t *last_ns)
{
    enum status status = STATUS_OK;
    struct device *device = model->connection.options.device;
    struct world *world = model->connection.world;
    for (int64_t step = first; step < end; step++) {
        activity_set(world->activity, ACTIVITY_MAIN, ACTIVITY_MEASURE, (uint64_t)step, 0);
        TRY(pace_step(&model->sync, config->compute_ms));
        if (device)
            TRY(device_sync(device));
        int64_t now_ns = clock_now_ns();
        times_us[step] = (double)(now_ns - *last_ns) / (double)NS_PER_US;
        *last_ns = now_ns;
    }
    if (end > first)
        TRY(world_max(world, comm_group(model->sync.comm), times_us + first,
                      (size_t)(end - first)));
out:
    return status;
}

static double mean_of(const double *values, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += values[i];
    return sum / (double)count;
}

static enum status run_steps(struct bench_model *model, const struct config *config)
{
    enum status status;
    struct comm *comm = model->sync.comm;
    int64_t least = config->bench.iters > 0 ? config->bench.iters : BENCH_ITERS_LEAST,
            iters = least;
    int64_t warmup =
        config->bench.warmup > 0 ? config->bench.warmup : 1; /* the first one waits for nothing */
    int64_t room = warmup + (config->bench.iters > 0 ? config->bench.iters : BENCH_ITERS_MOST),
            last_ns;
    double *times_us = calloc((size_t)room, sizeof *times_us);
    if (!times_us)
        return FAIL(STATUS_NO_MEMORY, "bench: no memory for the times of %lld steps",
                    (long long)room);
    if (!model->shared)
        TRY(fill_gradients(model));
    TRY(comm_barrier(comm));
    last_ns = clock_now_ns();
    TRY(time_steps(model, config, times_us, 0, warmup + least, &last_ns));
    if (config->bench.iters == 0)
        iters = bench_auto_iters(mean_of(times_us + warmup, least));
    TRY(time_steps(model, config, times_us, warmup + least, warmup + iters, &last_ns));
    model->step_us = stats_median(times_us + warmup, (size_t)iters);
    TRY(gradient_sync_finish(&model->sync));
    TRY(comm_finish(comm));
out:
    free(times_us);
    return status;
}

/* -------- the whole --------------------------------------------------------------------------- */

static enum status open_layers(struct bench_model *model, const struct config *config,
                               size_t *layer_count)
{
    enum status status;
    double forward = 0, backward = 0;
    TRY(published_layers(config->bench.model_gradients, &model->layers, layer_count));
    for (size_t l = 0; l < *layer_count; l++) {
        model->plan.count += model->layers[l].count;
        model->row.tensors += model->layers[l].count > 0;
        forward += model->layers[l].forward_flops;
        backward += model->layers[l].backward_flops;
    }
    model->row.name = published_names[config->bench.model_gradients];
    model->row.input = published_input(config->bench.model_gradients);
    model->row.backward_us = config->compute_ms * 1e3 * backward / (forward + backward);
out:
    return status;
}

static enum status open_gradients(struct bench_model *model, struct device *device)
{
    enum status status = STATUS_OK;
    size_t bytes = model->plan.count * sizeof(float);
    if (model->shared)
        return STATUS_OK;
    model->host = memory_array(bytes);
    if (!model->host)
        return FAIL(STATUS_NO_MEMORY, "bench: no memory for %zu bytes of gradients", bytes);
    if (device) {
        void *memory;
        TRY(device_alloc(device, "gradients", bytes, &memory));
        model->device = memory;
    }
out:
    return status;
}

static void close_gradients(struct bench_model *model)
{
    if (model->device)
        device_free(model->connection.options.device, model->device);
    if (!model->shared)
        free(model->host);
    model->device = model->host = NULL;
}

static enum status open_exchange(struct bench_model *model, const struct config *config,
                                 size_t layer_count, int workers)
{
    enum status status;
    struct bench_connection *connection = &model->connection;
    struct comm_options *options = &connection->options;
    struct gradient_sync *sync = &model->sync;
    const struct gradient_sync_model gradients = {
        .layers = model->layers,
        .layer_count = layer_count,
        .gradients = model->device ? model->device : model->host,
    };
    TRY(gradient_sync_open(sync, &gradients, NULL,
                           &(struct gradient_sync_options){
                               .world = connection->world,
                               .backend = connection->backend,
                               .comm = options,
                               .scale = 1.0f / (float)workers,
                               .bucket_bytes = (size_t)(config->bucket_mb * 1048576),
                               .may_defer = !connection->backend->single_process &&
                                            !options->device && !config->bench.sync_step,
                           }));
    connection->comm = sync->comm;
    model->buckets = (struct bench_buckets){sync->buckets, sync->counts, sync->order, sync->count};
    model->row.buckets = sync->count;
    model->plan.buckets = &model->buckets;
out:
    return status;
}

enum status bench_model_steps(struct bench_model *model, const struct config *config,
                              struct world *world, const struct comm_options *options,
                              float *shared)
{
    enum status status;
    size_t layer_count;
    struct topology topology;
    *model = (struct bench_model){
        .connection = {.world = world, .backend = config_backend(config), .options = *options},
        .plan = {.iters = config->bench.iters, .warmup = config->bench.warmup},
        .host = shared,
        .shared = shared != NULL,
    };
    TRY(topology_init(&topology, world->size, (int)config->servers, config->placement));
    TRY(open_layers(model, config, &layer_count));
    if (!shared)
        TRY(check_memory(config, world, model->plan.count));
    if (world->rank < topology.workers)
        TRY(open_gradients(model, options->device));
    TRY(open_exchange(model, config, layer_count, topology.workers));
    if (comm_is_server(model->sync.comm))
        TRY(comm_serve(model->sync.comm));
    else
        TRY(run_steps(model, config));
out:
    return status;
}

enum status bench_model_measure(struct bench_model *model, const struct config *config,
                                struct world *world, const struct comm_options *options)
{
    enum status status;
    struct bench_connection *connection = &model->connection;
    TRY(bench_model_steps(model, config, world, options, NULL));
    close_gradients(model); /* the averaging allocates other vectors */
    if (!comm_is_server(connection->comm))
        TRY(bench_start_init(&connection->start, world, comm_group(connection->comm)));
    status = bench_measure(&model->averaging, &model->connection, &model->plan);
    model->sync.comm = model->connection.comm; /* closed after an error */
out:
    return status;
}

void bench_model_describe(const struct bench_model *model, const struct config *config,
                          struct bench_row *row)
{
    row->model = model->row;
    row->overlap = true;
    row->compute_us_median = config->compute_ms * 1e3;
    row->exposed_us_median = fmax(model->step_us - row->compute_us_median, 0);
}

void bench_model_close(struct bench_model *model)
{
    bench_measurement_free(&model->averaging);
    gradient_sync_close(&model->sync);
    close_gradients(model);
    free(model->layers);
    *model = (struct bench_model){0};
}
