#include "experiments/train/trainer.h"

#include <math.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "experiments/config/backends.h"
#include "experiments/train/train_csv.h"

static bool reports(const struct trainer *t)
{
    return trainer_rank(t) == 0;
}

enum status train_report_open(struct trainer *t, uint64_t steps)
{
    enum status status = STATUS_OK;
    struct report *report = &t->report;
    TRY(step_times_init(&report->times, (size_t)steps));
    progress_init(&report->progress, &(struct progress_options){
                                         .stream = stderr,
                                         .rank = trainer_rank(t),
                                         .epochs = (t->total_steps + steps - 1) / steps,
                                         .steps_per_epoch = steps,
                                         .images_per_step = (uint64_t)t->config->batch * t->workers,
                                     });
    if (reports(t) && t->config->metrics)
        TRY(train_csv_open(&report->metrics, t->config->metrics));
out:
    return status;
}

void train_report_close(struct trainer *t)
{
    csv_close(&t->report.metrics);
    step_times_fini(&t->report.times);
}

/* One process adds up nothing that came from another; and what goes from GPU to GPU by itself, the
 * host's clocks do not see. */
static bool sees_communication(const struct trainer *t)
{
    return !t->backend->alone && !t->backend->device_memory;
}

static struct train_row row_of(const struct trainer *t, double train_loss,
                               const struct test_result *test)
{
    const struct config *config = t->config;
    uint64_t batch = (uint64_t)config->batch;
    return (struct train_row){
        .backend = t->backend->name,
        .transport = config_transport_name(config, t->backend),
        .device = config_device_name(config),
        .network = config->network,
        .compute = config->compute,
        .workers = t->workers,
        .servers = (uint64_t)t->config->servers,
        .placement = config_placement_name(config),
        .sync = config->sync,
        .model = config_model_name(config),
        .dataset = t->dataset ? t->dataset->name : "none",
        .epoch = (t->step + t->steps_per_epoch - 1) / t->steps_per_epoch,
        .step = t->step,
        .images = t->step * batch * t->workers,
        .seconds = t->report.trained_s,
        .images_per_s = t->report.images_per_s,
        .step_ms_median = t->report.times_median[STEP_TIME_ALL],
        .compute_ms_median = t->report.times_median[STEP_TIME_COMPUTE],
        .comm_ms_median =
            sees_communication(t) ? t->report.times_median[STEP_TIME_COMM] : (double)NAN,
        .exposed_comm_ms_median =
            sees_communication(t) ? t->report.times_median[STEP_TIME_EXPOSED] : (double)NAN,
        .train_loss = train_loss,
        .test_loss = test ? test->loss : (double)NAN,
        .test_accuracy = test ? test->accuracy : (double)NAN,
        .weights_sha256 = config->paced ? NULL : t->report.weights_sha256,
        .batch = batch,
        .optimizer = config->paced ? NULL : optimizer_kind_names[config->optimizer],
        .lr = config->paced ? (double)NAN : t->lr.peak,
        .seed = (uint64_t)config->seed,
        .reduce_order = config_reduce_order_name(config),
        .bucket_mb = config->bucket_mb,
        .threads = (uint64_t)t->threads,
        .compress = compress_names[config->compress],
        .error_feedback = config_error_feedback_name(config),
        .gpu = t->report.usage,
    };
}

/* The interval ends: `row` on rank 0. */
static enum status report_row(struct trainer *t, const struct train_row *row, bool tested)
{
    enum status status = STATUS_OK;
    uint64_t epochs = (t->total_steps + t->steps_per_epoch - 1) / t->steps_per_epoch;
    progress_clear(&t->report.progress);
    printf("epoch %llu/%llu  step %llu", (unsigned long long)row->epoch, (unsigned long long)epochs,
           (unsigned long long)row->step);
    if (isfinite(row->train_loss))
        printf("  loss %.4f", row->train_loss);
    if (tested && isfinite(row->test_accuracy))
        printf("  test loss %.4f  accuracy %.2f%%", row->test_loss, 100 * row->test_accuracy);
    if (isfinite(row->images_per_s))
        printf("  %.0f images/s", row->images_per_s);
    printf("  %.1f s\n", row->seconds);
    fflush(stdout);
    if (t->report.metrics)
        TRY(train_csv_write(t->report.metrics, row));
out:
    return status;
}

enum status train_report(struct trainer *t, const struct test_result *test)
{
    enum status status = STATUS_OK;
    const struct interval *interval = &t->report.interval;
    double seconds = (double)(interval->ended_ns - interval->started_ns) / (double)NS_PER_S;
    double sums[2] = {interval->loss_sum, (double)interval->images};
    TRY(world_sum(t->world, comm_group(t->exchange.comm), sums, 2));
    TRY(step_times_medians(&t->report.times, t->world, comm_group(t->exchange.comm),
                           trainer_rank(t), t->report.times_median));
    TRY(train_check_weights(t));
    t->report.trained_s += seconds;
    t->report.images_per_s = seconds > 0 ? sums[1] / seconds : (double)NAN;
    double train_loss = t->config->paced || sums[1] == 0 ? (double)NAN : sums[0] / sums[1];
    if (reports(t)) {
        struct train_row row = row_of(t, train_loss, test);
        TRY(report_row(t, &row, test != NULL));
    }
    t->report.interval = (struct interval){0};
out:
    return status;
}

void train_report_start(const struct trainer *t)
{
    const struct config *config = t->config;
    const char *transport = config_transport_name(config, t->backend);
    if (!reports(t))
        return;
    printf("%s", t->backend->name);
    if (t->backend->uses_transport)
        printf(" over %s", transport);
    if (config->compress != COMPRESS_NONE)
        printf(" in %s, error feedback %s", compress_names[config->compress],
               config_error_feedback_name(config));
    printf(": %zu %sworker%s", t->workers, config->virtual_workers > 0 ? "virtual " : "",
           t->workers == 1 ? "" : "s");
    if (config->placement == PLACEMENT_MIXED)
        printf(" with a server each + %d spare", topology_spare(&t->topology));
    else if (t->topology.servers > 0)
        printf(" + %d %s server%s", t->topology.servers, config_placement_name(config),
               t->topology.servers == 1 ? "" : "s");
    printf(", network %s\n", config->network);
    printf("%s: %zu parameters, batch %zu x %lld", config_model_name(config),
           net_parameter_count(t->net), t->workers, (long long)config->batch);
    if (config->paced)
        printf(", paced at %g ms a step\n", config->paced_ms);
    else
        printf(", %s with lr %g, data %s\n", optimizer_kind_names[config->optimizer], t->lr.peak,
               t->dataset->name);
    if (t->step > 0)
        printf("continues after step %llu\n", (unsigned long long)t->step);
    fflush(stdout);
}

void train_report_end(const struct trainer *t, const struct test_result *test)
{
    if (!reports(t))
        return;
    if (isfinite(test->accuracy))
        printf("test accuracy %.2f%% after step %llu\n", 100 * test->accuracy,
               (unsigned long long)t->step);
    if (t->report.times_median[STEP_TIME_ALL] > 0) {
        printf("step %.2f ms (median): compute %.2f", t->report.times_median[STEP_TIME_ALL],
               t->report.times_median[STEP_TIME_COMPUTE]);
        if (sees_communication(t))
            printf(", communication %.2f, of which exposed %.2f",
                   t->report.times_median[STEP_TIME_COMM],
                   t->report.times_median[STEP_TIME_EXPOSED]);
        printf("\n");
    }
    if (!t->config->paced)
        printf("weights sha256 %s\n", t->report.weights_sha256);
    fflush(stdout);
}
