#include "experiments/train/train.h"

#include <math.h>

#include "common/base/clock.h"
#include "common/obs/range.h"
#include "experiments/train/trainer.h"

static double ms_between(int64_t from_ns, int64_t to_ns)
{
    return (double)(to_ns - from_ns) / (double)NS_PER_MS;
}

static void log_diverged(const struct trainer *t, const char *of, uint64_t step)
{
    log_error("training diverged: the loss of %sstep %llu is not a finite number; start again with "
              "a smaller --lr (it is %g)",
              of, (unsigned long long)step, t->lr.peak);
}

/* Of the steps of the interval whose loss is known. */
static double mean_loss(const struct trainer *t)
{
    const struct interval *i = &t->interval;
    double images_each = (double)i->images / (double)i->steps;
    return i->losses > 0 ? i->loss_sum / (images_each * (double)i->losses) : (double)NAN;
}

/* One step on this rank's share of the data, with the times of its parts. With `finishes` the
 * weights are complete after it; else what the next step waits for counts as that step's. */
static enum status step(struct trainer *t, bool finishes)
{
    enum status status = STATUS_OK;
    struct batch batch;
    struct net_loss loss = {0};
    int64_t start_ns = clock_now_ns();
    range_begin("step");
    if (t->interval.started_ns == 0)
        t->interval.started_ns = start_ns;

    bool has_data = t->train_loader && loader_next(t->train_loader, &batch);
    int64_t data_ns = clock_now_ns();
    t->exchange = (struct exchange){.finishes = finishes};
    int64_t busy_ns = comm_busy_ns(t->comm);
    TRY(t->step_once(t, has_data ? &batch : NULL, &loss));
    int64_t end_ns = clock_now_ns();

    double exposed_ms = ms_between(0, t->exchange.blocked_ns);
    step_times_add(&t->times, (double[STEP_TIME_KINDS]){
                                  [STEP_TIME_ALL] = ms_between(start_ns, end_ns),
                                  [STEP_TIME_COMPUTE] = ms_between(data_ns, end_ns) - exposed_ms,
                                  [STEP_TIME_COMM] = ms_between(busy_ns, comm_busy_ns(t->comm)),
                                  [STEP_TIME_EXPOSED] = exposed_ms,
                              });
    t->interval.ended_ns = end_ns;
    t->interval.steps++;
    t->interval.images += has_data ? batch.count : (uint64_t)t->config->batch;
    t->interval.loss_sum += loss.loss_sum;
    t->interval.losses = t->interval.steps - loss_queue_length(&t->losses);
    t->step++;

    /* Averaging spreads a NaN to all ranks within a step: it is enough that one looks. */
    if (trainer_rank(t) == 0 && !isfinite(loss.loss_sum)) {
        progress_clear(&t->progress);
        log_diverged(t, "", t->step - loss_queue_length(&t->losses));
        TRY(train_finish_buckets(t)); /* the others count on this rank for what is under way */
        status = STATUS_DIVERGED;
        goto out;
    }
    progress_update(&t->progress, end_ns, (t->step - 1) / t->steps_per_epoch,
                    (t->step - 1) % t->steps_per_epoch,
                    t->config->paced ? (double)NAN : mean_loss(t));
out:
    range_end();
    return status;
}

/* The interval's steps end. How busy they kept the device is asked before a test does. */
static enum status settle(struct trainer *t)
{
    enum status status = train_settle(t);
    if (status == STATUS_OK && trainer_rank(t) == 0)
        device_usage(t->device, &t->usage);
    return status;
}

static enum status settle_and_report(struct trainer *t)
{
    enum status status = STATUS_OK;
    TRY(settle(t));
    TRY(train_report(t, NULL));
out:
    return status;
}

/* From t->step to the end of its epoch, or of the run. */
static enum status epoch(struct trainer *t, struct test_result *test)
{
    enum status status = STATUS_OK;
    uint64_t index = t->step / t->steps_per_epoch;
    uint64_t end = (index + 1) * t->steps_per_epoch;
    uint64_t log_steps = (uint64_t)t->config->log_steps;
    if (end > t->total_steps)
        end = t->total_steps;
    if (t->train_loader)
        loader_start_epoch_at(t->train_loader, index, (size_t)(t->step % t->steps_per_epoch));

    while (t->step < end) {
        bool ends = t->step + 1 == end || (log_steps > 0 && (t->step + 1) % log_steps == 0);
        TRY(step(t, ends));
        if (ends && t->step < end)
            TRY(settle_and_report(t));
    }
    TRY(settle(t));
    TRY(train_test(t, test));
    if (t->test_loader && !isfinite(test->loss)) {
        if (trainer_rank(t) == 0)
            log_diverged(t, "the test after ", t->step);
        TRY(world_barrier(t->world, comm_group(t->comm))); /* who fails ends those who speak */
        return STATUS_DIVERGED;
    }
    TRY(train_report(t, test));
    TRY(train_save(t));
out:
    return status;
}

static enum status work(struct trainer *t)
{
    enum status status = STATUS_OK;
    struct test_result test;
    TRY(train_share_state(t));
    train_report_start(t);
    if (t->step >= t->total_steps) {
        TRY(train_test(t, &test));
        TRY(train_report(t, &test));
    }
    while (t->step < t->total_steps)
        TRY(epoch(t, &test));
    TRY(comm_finish(t->comm));
    train_report_end(t, &test);
out:
    return status;
}

enum status train_run(struct config *config, struct world *world)
{
    enum status status = STATUS_OK;
    struct trainer trainer;
    TRY(trainer_open(&trainer, config, world));
    status = trainer.is_server ? comm_serve(trainer.comm) : work(&trainer);
out:
    progress_clear(&trainer.progress);
    trainer_close(&trainer);
    return status;
}
