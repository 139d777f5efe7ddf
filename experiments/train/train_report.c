#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/base/csv.h"
#include "common/base/stats.h"
#include "common/base/status.h"
#include "common/base/thread.h"
#include "common/comm/comm_options.h"
#include "common/base/range.h"
#include "experiments/config/backends.h"
#include "experiments/train/trainer.h"

/* -------- staleness --------------------------------------------------------------------------- */

struct staleness {
    double mean; /* missing steps of the slowest other worker */
    size_t most;
};

static void staleness_sum(const struct comm_progress *workers, size_t count,
                          struct comm_progress *sum)
{
    *sum = (struct comm_progress){0};
    for (size_t w = 0; workers && w < count; w++) {
        sum->done += workers[w].done;
        sum->left_out += workers[w].left_out;
        sum->dropped += workers[w].dropped;
        for (size_t s = 0; s <= COMM_STALENESS_MOST; s++)
            sum->staleness[s] += workers[w].staleness[s];
    }
}

static struct staleness staleness_of(const struct comm_progress *progress)
{
    struct staleness staleness = {0};
    for (size_t s = 0; s <= COMM_STALENESS_MOST; s++) {
        if (progress->staleness[s] == 0)
            continue;
        staleness.most = s;
        staleness.mean += (double)(s * progress->staleness[s]) / (double)progress->done;
    }
    return staleness;
}

static void print_worker(const struct comm_progress *worker, size_t number)
{
    printf("worker %zu: %llu steps, mean %.2f:", number, (unsigned long long)worker->done,
           staleness_of(worker).mean);
    for (size_t s = 0; s <= COMM_STALENESS_MOST; s++) {
        if (worker->staleness[s] > 0)
            printf(" %zu%s %.1f%%", s, s == COMM_STALENESS_MOST ? "+" : "",
                   100 * (double)worker->staleness[s] / (double)worker->done);
    }
    if (worker->left_out > 0)
        printf("; left out %llu", (unsigned long long)worker->left_out);
    if (worker->dropped > 0)
        printf("; dropped %.1f", worker->dropped);
    printf("\n");
}

static void staleness_print(const struct comm_progress *workers, size_t count, bool skips)
{
    struct comm_progress sum;
    printf("staleness: steps of the slowest other worker that parameters lacked, in %% of steps\n");
    for (size_t w = 0; w < count; w++)
        print_worker(&workers[w], w);
    staleness_sum(workers, count, &sum);
    if (sum.left_out > 0)
        printf("left out: steps that a late worker skipped, to catch up%s\n",
               skips ? "; with --late-steps keep it does them all" : "");
    if (sum.dropped > 0)
        printf("dropped: steps whose gradients came after the step was over; if only a part was "
               "late, that part\n");
}

enum status step_times_init(struct step_times *times, size_t capacity)
{
    *times = (struct step_times){.capacity = capacity};
    bool whole = (times->scratch = calloc(capacity + 1, sizeof(double))) != NULL;
    whole = (times->ended_ms = calloc(capacity + 1, sizeof(double))) && whole;
    for (int kind = 0; kind < STEP_TIME_KINDS; kind++)
        whole = (times->ms[kind] = calloc(capacity + 1, sizeof(double))) && whole;
    if (whole)
        return STATUS_OK;
    log_error("no memory for the times of %zu steps; use a smaller --log-steps", capacity);
    step_times_fini(times);
    return STATUS_NO_MEMORY;
}

void step_times_fini(struct step_times *times)
{
    for (int kind = 0; kind < STEP_TIME_KINDS; kind++)
        free(times->ms[kind]);
    free(times->scratch);
    free(times->ended_ms);
    *times = (struct step_times){0};
}

void step_times_add(struct step_times *times, int64_t ended_ns, const int64_t ns[STEP_TIME_KINDS])
{
    CHECK(times->count < times->capacity);
    for (int kind = 0; kind < STEP_TIME_KINDS; kind++)
        times->ms[kind][times->count] = (double)ns[kind] / (double)NS_PER_MS;
    times->ended_ms[times->count++] = (double)ended_ns / (double)NS_PER_MS;
}

/* Rounds a difference of times in ms to whole ns. */
static double whole_ns(double ms)
{
    return round(ms * (double)NS_PER_MS) / (double)NS_PER_MS;
}

/* Replaces the times of every step, on all ranks. ALL becomes the time from the last rank's
 * previous end to the last rank's end. Other kinds become those of the busiest rank. Among equally
 * busy ranks, the highest number wins. */
static enum status keep_busiest(struct step_times *times, struct world *world,
                                const struct group *group, double rank)
{
    enum status status;
    double *all = times->ms[STEP_TIME_ALL], *compute = times->ms[STEP_TIME_COMPUTE],
           *exposed = times->ms[STEP_TIME_EXPOSED], *data = times->ms[STEP_TIME_DATA],
           *busiest = times->scratch; /* first the highest own time, then its rank */
    for (size_t i = 0; i < times->count; i++)
        busiest[i] = compute[i] + data[i];
    TRY(world_max(world, group, busiest, times->count));
    for (size_t i = 0; i < times->count; i++)
        busiest[i] = compute[i] + data[i] >= busiest[i] ? rank : -1;
    TRY(world_max(world, group, busiest, times->count));
    for (int kind = STEP_TIME_ALL + 1; kind < STEP_TIME_KINDS; kind++) {
        if (kind == STEP_TIME_EXPOSED) /* computed below, as the remainder */
            continue;
        for (size_t i = 0; i < times->count; i++) {
            if (busiest[i] != rank)
                times->ms[kind][i] = 0;
        }
        TRY(world_sum(world, group, times->ms[kind], times->count));
    }
    memcpy(all, times->ended_ms, times->count * sizeof *all);
    TRY(world_max(world, group, all, times->count));
    for (size_t i = times->count; i-- > 0;) {
        all[i] = whole_ns(all[i] - (i > 0 ? all[i - 1] : 0));
        exposed[i] = fmax(whole_ns(all[i] - compute[i] - data[i]), 0);
    }
out:
    return status;
}

void step_times_own(struct step_times *times, double median_ms[STEP_TIME_KINDS])
{
    for (int kind = 0; kind < STEP_TIME_KINDS; kind++) {
        memcpy(times->scratch, times->ms[kind], times->count * sizeof *times->scratch);
        median_ms[kind] =
            times->count > 0 ? stats_median(times->scratch, times->count) : (double)NAN;
    }
}

enum status step_times_medians(struct step_times *times, struct world *world,
                               const struct group *group, size_t rank,
                               double median_ms[STEP_TIME_KINDS])
{
    enum status status = STATUS_OK;
    if (times->count > 0)
        TRY(keep_busiest(times, world, group, (double)rank));
    step_times_own(times, median_ms);
    times->count = 0;
out:
    return status;
}

/* Like step_times_medians, for ranks that share no step: the mean over the ranks of their median
 * times. */
static enum status step_times_medians_apart(struct step_times *times, struct world *world,
                                            const struct group *group,
                                            double median_ms[STEP_TIME_KINDS])
{
    enum status status = STATUS_OK;
    double sums[STEP_TIME_KINDS + 1] = {0}; /* the last: number of ranks that have taken a step */
    if (times->count > 0)
        step_times_own(times, sums);
    sums[STEP_TIME_KINDS] = times->count > 0;
    TRY(world_sum(world, group, sums, STEP_TIME_KINDS + 1));
    for (int kind = 0; kind < STEP_TIME_KINDS; kind++)
        median_ms[kind] = sums[kind] / sums[STEP_TIME_KINDS]; /* no rank: NAN */
    times->count = 0;
out:
    return status;
}

struct usage_watch {
    const struct device *device;
    struct thread thread;
    pthread_mutex_t lock; /* protects the fields below */
    pthread_cond_t ends_changed;
    bool ends;
    struct usage_samples samples;
};

static void add_sample(struct usage_watch *watch)
{
    struct device_usage usage;
    struct range range;
    range_detail_open(&range, "gpu", &(struct range_about){.kind = RANGE_GPU});
    device_usage(watch->device, &usage);
    if (!isfinite(usage.utilization))
        return;
    range.about.number = (uint64_t)lround(usage.utilization * 1000);
    range.about.bytes = usage.memory_bytes;
    range_detail_close(&range);
    pthread_mutex_lock(&watch->lock);
    watch->samples.count++;
    watch->samples.idle += usage.utilization < USAGE_WATCH_IDLE;
    watch->samples.utilization += usage.utilization;
    pthread_mutex_unlock(&watch->lock);
}

/* Waits until `at_ns` or until the watch must end. Returns whether it must end. */
static bool wait_until(struct usage_watch *watch, int64_t at_ns)
{
    struct timespec at = {.tv_sec = (time_t)(at_ns / NS_PER_S),
                          .tv_nsec = (long)(at_ns % NS_PER_S)};
    int woken = 0;
    pthread_mutex_lock(&watch->lock);
    while (!watch->ends && woken == 0)
        woken = pthread_cond_timedwait(&watch->ends_changed, &watch->lock, &at);
    bool ends = watch->ends;
    pthread_mutex_unlock(&watch->lock);
    return ends;
}

/* Samples at even intervals. Samples that a late one has missed are skipped. */
static void *sample(void *argument)
{
    struct usage_watch *watch = argument;
    const int64_t interval_ns = USAGE_WATCH_INTERVAL_MS * NS_PER_MS;
    int64_t next_ns = clock_now_ns() + interval_ns;
    while (!wait_until(watch, next_ns)) {
        add_sample(watch);
        int64_t now_ns = clock_now_ns();
        while (next_ns <= now_ns)
            next_ns += interval_ns;
    }
    return NULL;
}

/* Borrows `device`. Sets *out to NULL if this kind of device does not report its usage. */
static enum status usage_watch_new(struct usage_watch **out, const struct device *device)
{
    enum status status = STATUS_OK;
    pthread_condattr_t attributes;
    *out = NULL;
    if (!device->ops->usage)
        return STATUS_OK;
    struct usage_watch *watch = calloc(1, sizeof *watch);
    if (!watch)
        return FAIL(STATUS_NO_MEMORY, "no memory to watch how busy a device is");
    watch->device = device;
    pthread_mutex_init(&watch->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC); /* clock_now_ns */
    pthread_cond_init(&watch->ends_changed, &attributes);
    pthread_condattr_destroy(&attributes);
    *out = watch;
    TRY(thread_start(&watch->thread, "psring-usage", sample, watch));
out:
    if (status != STATUS_OK)
        usage_watch_free(out);
    return status;
}

struct usage_samples usage_watch_take(struct usage_watch *watch)
{
    struct usage_samples samples = {0};
    if (!watch)
        return samples;
    pthread_mutex_lock(&watch->lock);
    samples = watch->samples;
    watch->samples = (struct usage_samples){0};
    pthread_mutex_unlock(&watch->lock);
    return samples;
}

void usage_watch_free(struct usage_watch **out)
{
    struct usage_watch *watch = *out;
    if (!watch)
        return;
    *out = NULL;
    pthread_mutex_lock(&watch->lock);
    watch->ends = true;
    pthread_cond_signal(&watch->ends_changed);
    pthread_mutex_unlock(&watch->lock);
    thread_join(&watch->thread);
    pthread_cond_destroy(&watch->ends_changed);
    pthread_mutex_destroy(&watch->lock);
    free(watch);
}

static bool reports(const struct trainer *t)
{
    return t->rank == 0;
}

/* A single process has no communication. The host's clocks do not see transfers between GPUs. */
static bool sees_communication(const struct trainer *t)
{
    return !t->backend->single_process && !t->backend->device_memory;
}

/* Number of epochs begun, including the running one. */
static uint64_t epochs_begun(const struct trainer *t)
{
    return t->step > 0 ? trainer_epoch(t, t->step - 1) + 1 : 0;
}

/* Sums over all workers since the run began. */
static void list_progress(const struct trainer *t, struct fields *fields)
{
    bool updates = consistency_updates(&t->config->consistency);
    struct comm_progress sum;
    staleness_sum(t->report.reached, t->workers, &sum);
    struct staleness staleness = staleness_of(&sum);
    fields_text(fields, "straggler",
                t->config->train.straggler ? t->config->train.straggler : "none");
    fields_uint(fields, "backup_workers", (uint64_t)t->config->train.backup_workers);
    fields_double(fields, "staleness_mean", updates ? staleness.mean : (double)NAN);
    fields_uint_if(fields, "staleness_max", updates, staleness.most);
    fields_uint_if(fields, "steps_skipped", updates, sum.left_out);
    fields_double(fields, "steps_dropped", updates ? sum.dropped : (double)NAN);
}

/* The columns of train.csv, in order: a row per epoch or per logging interval. Readers rely on the
 * names, and on the order up to weights_sha256. NAN gives an empty field. `test` NULL: not
 * tested. */
static void list_fields(const struct trainer *t, double train_loss, const struct test_result *test,
                        struct fields *fields)
{
    const struct config *config = t->config;
    const struct report *report = &t->report;
    const struct usage_samples *samples = &report->usage_samples;
    const double *median_ms = report->times_median, unknown = (double)NAN;
    bool sees = sees_communication(t), trains = !config->train.paced;
    fields_start(fields);
    fields_text(fields, "backend", t->backend->name);
    fields_text(fields, "transport", config_transport_name(config, t->backend));
    fields_text(fields, "device", config_device_name(config));
    fields_text(fields, "network", config->network);
    fields_text(fields, "compute", config->train.compute);
    fields_uint(fields, "workers", t->workers);
    fields_uint(fields, "servers", (uint64_t)config->servers);
    fields_text(fields, "placement", config_placement_name(config));
    fields_text(fields, "sync", config->train.sync);
    fields_text(fields, "model", config_model_name(config));
    fields_text(fields, "dataset", t->dataset ? t->dataset->name : "none");
    fields_uint(fields, "epoch", epochs_begun(t));
    fields_uint(fields, "step", t->step); /* since the run began, like the next two */
    fields_uint(fields, "images", train_images(t));
    fields_double(fields, "seconds", report->trained_s);
    fields_double(fields, "images_per_s", report->images_per_s); /* of the interval; the next too */
    fields_double(fields, "step_ms_median", median_ms[STEP_TIME_ALL]);
    fields_double(fields, "compute_ms_median", median_ms[STEP_TIME_COMPUTE]);
    fields_double(fields, "comm_ms_median", sees ? median_ms[STEP_TIME_COMM] : unknown);
    fields_double(fields, "exposed_comm_ms_median", sees ? median_ms[STEP_TIME_EXPOSED] : unknown);
    fields_double(fields, "train_loss", train_loss);
    fields_double(fields, "test_loss", test ? test->loss : unknown);
    fields_double(fields, "test_accuracy", test ? test->accuracy : unknown);
    fields_text(fields, "weights_sha256", trains ? report->weights_sha256 : NULL);
    fields_uint(fields, "batch", (uint64_t)config->batch); /* per worker */
    fields_text(fields, "optimizer",
                trains ? optimizer_kind_names[config->learning.optimizer] : NULL);
    fields_double(fields, "lr", trains ? t->lr.peak : unknown);
    fields_uint(fields, "seed", (uint64_t)config->seed);
    fields_text(fields, "reduce_order", config_reduce_order_name(config));
    fields_double(fields, "bucket_mb", config->bucket_mb);
    fields_uint(fields, "threads", (uint64_t)t->threads); /* of worker 0, like the next two */
    fields_text(fields, "compress", compress_names[config->compress]);
    fields_text(fields, "error_feedback", config_error_feedback_name(config));
    fields_uint_if(fields, "gpu_memory_bytes", report->usage.memory_bytes > 0,
                   report->usage.memory_bytes);
    fields_double(fields, "gpu_utilization", report->usage.utilization);
    fields_text(fields, "recipe", config->learning.recipe ? config->learning.recipe : "none");
    fields_text(fields, "optimizer_options", trains ? t->optimizer_text : NULL);
    fields_text(fields, "lr_schedule", trains ? lr_shape_names[t->lr.shape] : NULL);
    fields_uint_if(fields, "lr_warmup_steps", trains, t->lr.warmup_steps);
    fields_double(fields, "data_ms_median", t->dataset ? median_ms[STEP_TIME_DATA] : unknown);
    const struct bottleneck *bottleneck = &report->bottleneck; /* of the interval, as the next */
    bool judged = bottleneck->cause != BOTTLENECK_NONE;
    fields_text(fields, "bottleneck", judged ? bottleneck_names[bottleneck->cause] : NULL);
    fields_uint_if(fields, "bottleneck_rank", bottleneck->cause == BOTTLENECK_RANK,
                   (uint64_t)bottleneck->rank);
    fields_double(fields, "bottleneck_ms", judged ? bottleneck->cost : unknown);
    fields_double(fields, "improved_step_ms", judged ? bottleneck->better : unknown);
    list_progress(t, fields);
    bool aims = config->train.target_accuracy > 0; /* written as a fraction, like test_accuracy */
    fields_double(fields, "target_accuracy", aims ? config->train.target_accuracy / 100 : unknown);
    fields_uint_if(fields, "target_reached", aims && test, t->target_reached);
    fields_double(fields, "gpu_utilization_mean", samples->utilization / samples->count);
    fields_double(fields, "gpu_idle_share", samples->idle / samples->count);
    fields_text(fields, "augment", config->train.augment);
    fields_uint(fields, "data_threads",
                (uint64_t)config->train.data_threads); /* of worker 0, as the next */
    fields_uint(fields, "prefetch_batches", trainer_prefetch(t));
    fields_double(fields, "judged_step_ms", judged ? bottleneck->step : unknown);
    fields_double(fields, "nominal_link_bytes_per_s",
                  config->link_rate > 0 ? config->link_rate / 8 : unknown);
    fields_text(fields, "settings_sha256", trains ? report->settings_sha256 : NULL);
}

enum status train_report_open(struct trainer *t, uint64_t steps)
{
    enum status status = STATUS_OK;
    struct report *report = &t->report;
    TRY(step_times_init(&report->times, (size_t)steps));
    TRY(usage_watch_new(&report->usage_watch, t->device));
    progress_init(&report->progress, &(struct progress_options){
                                         .stream = stderr,
                                         .rank = t->rank,
                                         .epochs = trainer_epoch(t, t->total_steps - 1) + 1,
                                         .steps_per_epoch = steps,
                                         .images_per_step = (uint64_t)t->config->batch * t->workers,
                                     });
    if (reports(t) && t->config->train.metrics) {
        struct fields fields;
        list_fields(t, 0, NULL, &fields);
        TRY(fields_csv_open(&fields, &report->metrics, t->config->train.metrics));
    }
out:
    return status;
}

void train_report_close(struct trainer *t)
{
    usage_watch_free(&t->report.usage_watch);
    csv_close(&t->report.metrics);
    free(t->report.reached);
    free(t->report.ranks);
    step_times_fini(&t->report.times);
}

/* Prints the line and writes the row of the interval. Only on rank 0. */
static enum status report_interval(struct trainer *t, double train_loss,
                                   const struct test_result *test)
{
    enum status status = STATUS_OK;
    const struct report *report = &t->report;
    uint64_t epochs = trainer_epoch(t, t->total_steps - 1) + 1;
    progress_clear(&t->report.progress);
    printf("epoch %llu/%llu  step %llu", (unsigned long long)epochs_begun(t),
           (unsigned long long)epochs, (unsigned long long)t->step);
    if (isfinite(train_loss))
        printf("  loss %.4f", train_loss);
    if (test && isfinite(test->accuracy))
        printf("  test loss %.4f  accuracy %.2f%%", test->loss, 100 * test->accuracy);
    if (isfinite(report->images_per_s))
        printf("  %.0f images/s", report->images_per_s);
    printf("  %.1f s\n", report->trained_s);
    fflush(stdout);
    if (report->metrics) {
        struct fields fields;
        list_fields(t, train_loss, test, &fields);
        TRY(fields_csv_write(&fields, report->metrics));
    }
out:
    return status;
}

static enum status find_medians(struct trainer *t)
{
    struct report *report = &t->report;
    const struct group *group = comm_group(t->sync.comm);
    if (comm_updates_on_server(t->sync.comm))
        return step_times_medians_apart(&report->times, t->world, group, report->times_median);
    return step_times_medians(&report->times, t->world, group, t->rank, report->times_median);
}

uint64_t train_images(const struct trainer *t)
{
    struct comm_progress sum;
    if (!consistency_updates(&t->config->consistency))
        return trainer_images(t);
    staleness_sum(t->report.reached, t->workers, &sum);
    double images = ((double)sum.done - sum.dropped) * (double)trainer_step_images(t);
    return t->report.images_before + (uint64_t)llround(images);
}

/* `images`: of the interval. If workers do not end together, the time is that of the last worker.
 * Images whose gradients the servers dropped do not count. */
static enum status count_images(struct trainer *t, double images, double *seconds)
{
    enum status status = STATUS_OK;
    struct report *report = &t->report;
    TRY(train_gather_progress(t));
    if (comm_updates_on_server(t->sync.comm)) {
        TRY(world_max(t->world, comm_group(t->sync.comm), seconds, 1));
        images = (double)(train_images(t) - report->images);
    }
    report->images = train_images(t);
    report->trained_s += *seconds;
    report->images_per_s = *seconds > 0 ? images / *seconds : (double)NAN;
out:
    return status;
}

enum status train_report(struct trainer *t, const struct test_result *test)
{
    enum status status = STATUS_OK;
    const struct interval *interval = &t->report.interval;
    double seconds = (double)(interval->ended_ns - interval->started_ns) / (double)NS_PER_S;
    struct usage_samples *samples = &t->report.usage_samples;
    double sums[5] = {interval->loss_sum, (double)interval->images, samples->count, samples->idle,
                      samples->utilization};
    TRY(world_sum(t->world, comm_group(t->sync.comm), sums, 5));
    *samples = (struct usage_samples){sums[2], sums[3], sums[4]};
    if (!comm_updates_on_server(t->sync.comm)) /* train_bottleneck compares ranks within one step */
        TRY(train_bottleneck(t));
    TRY(find_medians(t));
    TRY(train_check_weights(t));
    TRY(count_images(t, sums[1], &seconds));
    double train_loss = t->config->train.paced || sums[1] == 0 ? (double)NAN : sums[0] / sums[1];
    if (reports(t))
        TRY(report_interval(t, train_loss, test));
    t->report.interval = (struct interval){0};
out:
    return status;
}

/* A generation that is not the first which this process describes: prints what has changed. */
static void describe_change(const struct trainer *t)
{
    printf("continues after step %llu with %zu worker%s: batch %zu x %lld",
           (unsigned long long)t->step, t->workers, t->workers == 1 ? "" : "s", t->workers,
           (long long)t->config->batch);
    if (t->config->train.paced)
        printf("\n");
    else
        printf(", lr %g\n", t->lr.peak);
    fflush(stdout);
}

void train_report_start(const struct trainer *t)
{
    const struct config *config = t->config;
    const char *transport = config_transport_name(config, t->backend);
    if (!reports(t))
        return;
    if (t->generation && t->generation->described) {
        describe_change(t);
        return;
    }
    if (t->generation)
        t->generation->described = true;
    printf("%s", t->backend->name);
    if (t->backend->uses_transport)
        printf(" over %s", transport);
    if (config->compress != COMPRESS_NONE)
        printf(" in %s, error feedback %s", compress_names[config->compress],
               config_error_feedback_name(config));
    printf(": %zu %sworker%s", t->workers, config->train.virtual_workers > 0 ? "virtual " : "",
           t->workers == 1 ? "" : "s");
    if (config->placement == PLACEMENT_MIXED)
        printf(" with a server each + %d spare", topology_spare(&t->topology));
    else if (t->topology.servers > 0)
        printf(" + %d %s server%s", t->topology.servers, config_placement_name(config),
               t->topology.servers == 1 ? "" : "s");
    if (consistency_updates(&config->consistency))
        printf(", %s%s", config->train.sync,
               config->train.late_steps == CONFIG_LATE_KEEP ? ", late steps kept" : "");
    if (config->train.backup_workers > 0)
        printf(" with %lld backup worker%s", (long long)config->train.backup_workers,
               config->train.backup_workers == 1 ? "" : "s");
    printf(", network %s\n", config->network);
    printf("%s: %zu parameters, batch %zu x %lld", config_model_name(config),
           net_parameter_count(t->net), t->workers, (long long)config->batch);
    if (config->train.paced)
        printf(", paced at %g ms a step\n", config->train.paced_ms);
    else
        printf(", %s with lr %g, data %s\n", optimizer_kind_names[config->learning.optimizer],
               t->lr.peak, t->dataset->name);
    if (!config->train.paced && t->lr.warmup_steps > 0)
        printf("%s; lr from %g in %llu steps, then %s\n", t->optimizer_text, t->lr.start,
               (unsigned long long)t->lr.warmup_steps, lr_shape_names[t->lr.shape]);
    else if (!config->train.paced)
        printf("%s; lr %s\n", t->optimizer_text, lr_shape_names[t->lr.shape]);
    if (!config->train.paced && t->lr.warmup_steps >= t->total_steps &&
        lr_at(&t->lr, t->total_steps - 1) < t->lr.peak)
        printf("the run ends in its warm-up, at a rate of %.3g; to reach %g give fewer "
               "--warmup-epochs, or more --steps\n",
               lr_at(&t->lr, t->total_steps - 1), t->lr.peak);
    if (t->step > 0)
        printf("continues after step %llu\n", (unsigned long long)t->step);
    fflush(stdout);
}

enum { GUESSING_STEPS = 50 }; /* after fewer steps such a loss is normal */

void train_report_end(struct trainer *t, const struct test_result *test)
{
    if (!reports(t))
        return;
    if (isfinite(test->accuracy))
        printf("test accuracy %.2f%% after step %llu\n", 100 * test->accuracy,
               (unsigned long long)t->step);
    if (t->step >= GUESSING_STEPS && test->loss > 0.98 * log(DATASET_CLASSES))
        printf(
            "no better than guessing: the test loss is %.2f, and ln %d is %.2f; a lower --lr, or a "
            "warm-up, may help\n",
            test->loss, DATASET_CLASSES, log(DATASET_CLASSES));
    if (t->config->train.target_accuracy > 0)
        printf("target accuracy %g%% %s after step %llu, %.1f s of steps\n",
               t->config->train.target_accuracy, t->target_reached ? "reached" : "not reached",
               (unsigned long long)t->step, t->report.trained_s);
    if (t->report.times_median[STEP_TIME_ALL] > 0) {
        printf("step %.2f ms (median%s): compute %.2f", t->report.times_median[STEP_TIME_ALL],
               t->report.judged_steps > 0 ? ", from last worker to last worker" : "",
               t->report.times_median[STEP_TIME_COMPUTE]);
        if (t->dataset)
            printf(", waiting for data %.2f", t->report.times_median[STEP_TIME_DATA]);
        if (sees_communication(t))
            printf(", communication %.2f, exposed %.2f", t->report.times_median[STEP_TIME_COMM],
                   t->report.times_median[STEP_TIME_EXPOSED]);
        printf("\n");
    }
    if (t->report.judged_steps > 0)
        printf("limited by %s\n", t->report.bottleneck_text);
    else if (comm_updates_on_server(t->sync.comm))
        printf("no bottleneck is named: workers that do not wait for each other share no step that "
               "one of them could delay\n");
    if (t->report.reached)
        staleness_print(t->report.reached, t->workers, t->config->train.backup_workers == 0);
    if (!t->config->train.paced)
        printf("weights sha256 %s\n", t->report.weights_sha256);
    fflush(stdout);
}
