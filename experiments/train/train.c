#include "experiments/train/train.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/data/batches.h"
#include "experiments/train/gradient_sync.h"
#include "experiments/train/trainer.h"

static void log_diverged(const struct trainer *t, const char *of, uint64_t step)
{
    log_error("training diverged: the loss of %sstep %llu is not a finite number; start again with "
              "a smaller --lr (it is %g)",
              of, (unsigned long long)step, t->lr.peak);
}

/* The mean loss over those steps of the interval whose loss is known. */
static double mean_loss(const struct trainer *t)
{
    const struct interval *i = &t->report.interval;
    double images_each = (double)i->images / (double)i->steps;
    return i->losses > 0 ? i->loss_sum / (images_each * (double)i->losses) : (double)NAN;
}

/* -------- one step ---------------------------------------------------------------------------- */

/* A straggler's hook of the backward pass, before gradient_sync_start: it delays the worker once
 * per range. The first layer's range comes last. */
static void start_delayed(void *context, size_t first, size_t count)
{
    struct trainer *t = context;
    straggler_delay(&t->straggler, t->device, t->sync.exposed.ns, first == 0);
    gradient_sync_start(&t->sync, first, count);
}

/*
 * Forward, backward, average, update. With `loss` NULL the loss is read later, from the queue. This
 * function then uploads nothing. Without other processes it also waits for nothing. A device may
 * therefore record it and repeat the record without a call. After a failed recording the device may
 * call it again for the same step. Host state of a step is therefore reset here.
 */
static enum status run_step(struct trainer *t, struct loss_sum *loss)
{
    enum status status = STATUS_OK;
    size_t batch = (size_t)t->step_images;
    /* The all-reduce averages over workers, so the divisor is (images of all) / workers. */
    double workers = t->config->train.no_shard ? 1 : (double)t->workers;
    struct net_step step = {.training = true,
                            .seed = (uint64_t)t->config->seed,
                            .step = t->step,
                            .rank = (uint32_t)t->rank,
                            .divisor = (double)t->batches.global_count / workers};
    gradient_sync_begin(&t->sync);
    if (t->straggler.delays)
        straggler_begin(&t->straggler);
    batches_gather(&t->batches, BATCHES_TRAIN, 0, batch);
    TRY(net_forward(t->net, t->batches.images, t->batches.labels, batch, &step, loss));
    if (t->straggler.delays)
        TRY(net_backward(t->net, start_delayed, t));
    else
        TRY(net_backward(t->net, gradient_sync_start, &t->sync));
    TRY(gradient_sync_end(&t->sync, t->step_lr));
out:
    return status;
}

/* The step that a device may record. */
static enum status run_step_ahead(void *trainer)
{
    return run_step(trainer, NULL);
}

/* A step in which this worker has no image: it adds zeros to the sum. */
static enum status contribute_zero_gradient(struct trainer *t)
{
    enum status status = STATUS_OK;
    size_t count = net_parameter_count(t->net);
    gradient_sync_begin(&t->sync);
    TRY(gradient_sync_finish(&t->sync)); /* the previous step deferred it to a forward pass */
    memset(t->host, 0, count * sizeof *t->host);
    device_upload(t->device, net_gradients(t->net), t->host, count * sizeof *t->host);
    TRY(device_sync(t->device));
    gradient_sync_start_layers(&t->sync);
    TRY(gradient_sync_end(&t->sync, t->step_lr));
out:
    return status;
}

/* A step on a device that runs behind the host. The step's number and rate are uploaded together
 * with the batch, before a recording. The loss is read when the device has done the step. */
static enum status step_ahead(struct trainer *t, bool whole, struct loss_sum *loss)
{
    enum status status = STATUS_OK;
    net_set_step(t->net, t->step);
    optimizer_set_lr(t->optimizer, t->step_lr);
    TRY(t->backend->graph_capturable && whole ? device_repeat(t->device, run_step_ahead, t)
                                              : run_step(t, NULL));
    loss_queue_put(&t->losses, t->net);
    TRY(loss_queue_take(&t->losses, device_steps_ahead(t->device), loss));
out:
    return status;
}

enum status train_step_real(struct trainer *t, struct loss_sum *loss)
{
    size_t count = batches_next(&t->batches, BATCHES_TRAIN);
    bool whole = count == (size_t)t->config->batch;
    CHECK(whole || trainer_joins(t));
    t->step_images = count;
    if (count == 0)
        return contribute_zero_gradient(t);
    if (t->losses.device)
        return step_ahead(t, whole, loss);
    return run_step(t, loss);
}

/* Begins a step, with all times 0. */
static enum status step_begin(struct trainer *t)
{
    enum status status = STATUS_OK;
    struct interval *interval = &t->report.interval;
    struct comm *comm = t->sync.comm;
    if (interval->started_ns == 0 && !comm_updates_on_server(comm))
        TRY(world_barrier(t->world, comm_group(comm))); /* struct step_times */
    range_at_step(t->step - t->first_step);
    t->whole = t->batches.waited = (struct range_sum){0};
    t->comm_busy_ns = comm_busy_ns(comm);
    range_sum_begin(&t->whole, "step", &(struct range_about){.kind = RANGE_STEP, .number = t->step},
                    true);
    if (interval->started_ns == 0) {
        interval->started_ns = t->whole.begin_ns;
        train_cpus_start(t);
        usage_watch_take(t->report.usage_watch); /* discard samples from before the interval */
    }
    activity_set(t->world->activity, ACTIVITY_MAIN, ACTIVITY_COMPUTE, t->step, 0);
    /* The rate depends on the steps that are left: workers that join or leave change the step
     * number, but not this. */
    if (t->optimizer)
        t->step_lr = (float)lr_at(&t->lr, t->step + t->schedule_steps - t->total_steps);

    /* The data must be those of this step. An elastic job restarts this count in each
     * generation. */
    CHECK(!t->dataset || t->generation ||
          t->batches.next_step == t->step - trainer_epoch_begin(t, trainer_epoch(t, t->step)));
out:
    return status;
}

/* Ends a step. Adds the step, and the losses that became known in it, to the interval. `loss` NULL:
 * the step failed and is not added. Returns the end time by clock_now_ns. */
static int64_t step_end(struct trainer *t, const struct loss_sum *loss)
{
    struct interval *interval = &t->report.interval;
    int64_t exposed_ns = t->sync.exposed.ns, data_ns = t->batches.waited.ns;
    int64_t ran_ns = clock_thread_ns() - t->whole.begin_cpu_ns - t->sync.exposed.cpu_ns -
                     t->batches.waited.cpu_ns;
    range_moment("computed", &(struct range_about){.kind = RANGE_CPU, .number = (uint64_t)ran_ns});
    int64_t end_ns = range_sum_end(&t->whole);
    if (!loss)
        return end_ns;
    step_times_add(&t->report.times, end_ns - interval->started_ns,
                   (int64_t[STEP_TIME_KINDS]){
                       [STEP_TIME_ALL] = t->whole.ns,
                       [STEP_TIME_COMPUTE] = t->whole.ns - exposed_ns - data_ns,
                       [STEP_TIME_COMM] = comm_busy_ns(t->sync.comm) - t->comm_busy_ns,
                       [STEP_TIME_EXPOSED] = exposed_ns,
                       [STEP_TIME_DATA] = data_ns,
                       [STEP_TIME_CPU] = ran_ns,
                   });
    train_cpus_wait(t);
    interval->ended_ns = end_ns;
    interval->steps++;
    interval->images += t->step_images;
    interval->loss_sum += loss->loss;
    interval->losses = interval->steps - loss_queue_length(&t->losses);
    return end_ns;
}

/* One step on this rank's share of the data, with the times of its parts. With `finishes` the
 * weights are complete afterwards. Otherwise the next step waits for deferred buckets, and this
 * wait counts for the next step. */
static enum status step(struct trainer *t, bool finishes)
{
    enum status status = STATUS_OK;
    struct loss_sum loss = {0};
    TRY(step_begin(t));
    status = t->step_once(t, &loss);
    if (status == STATUS_OK && finishes)
        status = gradient_sync_finish(&t->sync);
    int64_t end_ns = step_end(t, status == STATUS_OK ? &loss : NULL);
    TRY(status);
    train_go_on(t);

    /* Averaging spreads a NaN to all ranks within a step, so one rank's check is enough. */
    if (t->rank == 0 && !isfinite(loss.loss)) {
        progress_clear(&t->report.progress);
        log_diverged(t, "", t->step - loss_queue_length(&t->losses));
        TRY(gradient_sync_finish(&t->sync)); /* the other ranks' buckets need this rank */
        status = STATUS_DIVERGED;
        goto out;
    }
    uint64_t epoch = trainer_epoch(t, t->step - 1);
    progress_update(&t->report.progress, end_ns, epoch, t->step - 1 - trainer_epoch_begin(t, epoch),
                    t->config->train.paced ? (double)NAN : mean_loss(t));
out:
    return status;
}

/* -------- reports, tests, checkpoints and stops ----------------------------------------------- */

/* Waits until the device has done all steps. The interval then holds all losses. Also reads the
 * usage of device and processors, before a test adds to it. */
static enum status drain_losses(struct trainer *t)
{
    enum status status = STATUS_OK;
    struct interval *interval = &t->report.interval;
    struct loss_sum loss = {0};
    uint64_t steps = loss_queue_length(&t->losses);
    if (steps > 0) {
        TRY(loss_queue_take(&t->losses, 0, &loss));
        interval->loss_sum += loss.loss;
        interval->losses += steps;
        interval->ended_ns = clock_now_ns();
    }
    if (t->rank == 0)
        device_usage(t->device, &t->report.usage);
    t->report.usage_samples = usage_watch_take(t->report.usage_watch);
    train_cpus_stop(t);
out:
    return status;
}

static enum status drain_and_report(struct trainer *t)
{
    enum status status = STATUS_OK;
    TRY(drain_losses(t));
    TRY(train_meet(t));
    TRY(train_report(t, NULL));
out:
    return status;
}

static enum status save(struct trainer *t)
{
    enum status status = STATUS_OK;
    activity_set(t->world->activity, ACTIVITY_MAIN, ACTIVITY_CHECKPOINT, t->step, 0);
    TRY(train_fetch_state(t));
    TRY(train_save(t));
out:
    return status;
}

/* A signal has asked all ranks to end after this step. */
static enum status stop_saved(struct trainer *t, int number)
{
    enum status status = STATUS_OK;
    /* No rank may end before the save: if a rank exits with a code other than 0, launchers kill all
     * other ranks. */
    TRY(comm_barrier(t->sync.comm));
    TRY(comm_finish(t->sync.comm));
    if (t->rank == 0) {
        printf("stopped by %s after step %llu of %llu; to continue, start it again with --resume\n",
               stop_signal_name(number), (unsigned long long)t->step,
               (unsigned long long)t->total_steps);
        fflush(stdout);
    }
    status = STATUS_STOPPED;
out:
    return status;
}

static enum status save_and_stop(struct trainer *t, int number)
{
    enum status status = STATUS_OK;
    TRY(gradient_sync_finish(&t->sync));
    TRY(drain_and_report(t));
    TRY(save(t));
    status = stop_saved(t, number);
out:
    return status;
}

/* Number of the epoch's permutation, drawn from the seed. Sharded: the same on all workers, and
 * each takes its share. --no-shard: one per worker, independent of the number of workers. */
static uint64_t permutation_of(const struct trainer *t, uint64_t epoch)
{
    return t->config->train.no_shard ? sampler_own_epoch(epoch, t->rank) : epoch;
}

/* A worker joins or leaves: this generation ends after the same step on all workers. */
static enum status change_workers(struct trainer *t)
{
    enum status status = STATUS_OK;
    TRY(gradient_sync_finish(&t->sync));
    if (t->report.interval.steps > 0)
        TRY(drain_and_report(t));
    TRY(comm_finish(t->sync.comm));
    status = STATUS_STOPPED;
out:
    return status;
}

/* -------- epochs ------------------------------------------------------------------------------ */

/* The first step after `step` that is a multiple of `steps`, if that comes before `end`. */
static uint64_t next_multiple(uint64_t step, uint64_t steps, uint64_t end)
{
    uint64_t next = steps > 0 ? (step / steps + 1) * steps : end;
    return next < end ? next : end;
}

/* Starts the batches of epoch `index` at t->step. */
static void start_batches(struct trainer *t, uint64_t index)
{
    if (t->generation && t->dataset)
        batches_start_rest(&t->batches, index, (size_t)trainer_epoch_images(t, index));
    else if (t->dataset)
        batches_start_epoch(&t->batches, BATCHES_TRAIN, permutation_of(t, index),
                            (size_t)(t->step - trainer_epoch_begin(t, index)));
}

/* Whether a signal takes effect only at the end of an epoch. With servers that update, workers
 * share no step and stop where all of them meet. */
static bool meets_late(const struct trainer *t)
{
    return t->config->train.checkpoint && !train_all_at_step(t, UINT64_MAX) &&
           t->config->train.log_steps == 0 && t->config->train.checkpoint_steps == 0;
}

/* Logs when the run will stop. Until then only the worker that got the signal knows about it. */
static void log_stop_step(struct trainer *t, uint64_t end)
{
    int number = stop_signal();
    if (t->stop_said || number == 0 || !t->stop.saves || train_all_at_step(t, end))
        return;
    t->stop_said = true;
    progress_clear(&t->report.progress);
    log_info("%s: saves and ends where all workers meet next, after step %llu (%llu are done)%s",
             stop_signal_name(number), (unsigned long long)end, (unsigned long long)t->step,
             meets_late(t) ? "; with --log-steps N they would meet sooner" : "");
}

/* Runs the steps from t->step to `end`, where all workers report. *number: the signal because of
 * which they stop at `end` or earlier. All workers also end earlier if a worker joins or leaves. */
static enum status steps(struct trainer *t, uint64_t end, int *number)
{
    enum status status = STATUS_OK;
    uint64_t index = trainer_epoch(t, t->step);
    TRY(train_begin_steps(t, end));
    while (t->step < end && *number == 0 && !generation_ends(t)) {
        uint64_t next = t->step + 1;
        TRY(step(t, next == end));
        if (t->step > next && t->step < trainer_epoch_begin(t, index + 1))
            start_batches(t, index);
        log_stop_step(t, end);
        if (t->step < t->total_steps && train_all_at_step(t, end))
            TRY(t->generation
                    ? generation_agree(t)
                    : stop_agree(&t->stop, t->world, comm_group(t->sync.comm), t->step, number));
    }
out:
    return status;
}

/* Tests and reports. Training ends at the first test that reaches --target-accuracy. */
static enum status test_and_report(struct trainer *t, struct test_result *test)
{
    enum status status = STATUS_OK;
    TRY(drain_losses(t));
    TRY(train_meet(t));
    activity_set(t->world->activity, ACTIVITY_MAIN, ACTIVITY_TEST, t->step, 0);
    TRY(train_test(t, test));
    if (!t->config->train.paced && !isfinite(test->loss)) {
        if (t->rank == 0)
            log_diverged(t, "the test after ", t->step);
        /* The first rank that returns a failure ends all ranks, so rank 0 must log the reason
         * first. */
        TRY(comm_barrier(t->sync.comm));
        return STATUS_DIVERGED;
    }
    t->target_reached = train_on_target(t, test);
    TRY(train_report(t, test));
out:
    return status;
}

static enum status close_epoch(struct trainer *t, struct test_result *test)
{
    enum status status = STATUS_OK;
    TRY(test_and_report(t, test));
    TRY(save(t));
    generation_closed(t);
out:
    return status;
}

/* Runs from t->step to the end of its epoch or of the run. */
static enum status epoch(struct trainer *t, struct test_result *test)
{
    enum status status = STATUS_OK;
    uint64_t index = trainer_epoch(t, t->step);
    uint64_t end = trainer_epoch_begin(t, index + 1);
    uint64_t log_steps = (uint64_t)t->config->train.log_steps;
    uint64_t save_steps = (uint64_t)t->config->train.checkpoint_steps;
    if (end > t->total_steps)
        end = t->total_steps;
    int number = 0;
    start_batches(t, index);
    while (t->step < end) {
        uint64_t report = next_multiple(t->step, log_steps, end);
        uint64_t save_at = next_multiple(t->step, save_steps, end);
        TRY(steps(t, report < save_at ? report : save_at, &number));
        if (number != 0 && t->step < end)
            return save_and_stop(t, number);
        if (t->step < end && generation_ends(t))
            return change_workers(t);
        if (t->step < end && t->step == report)
            TRY(t->config->train.target_accuracy > 0 ? test_and_report(t, test)
                                                     : drain_and_report(t));
        else if (t->step < end)
            TRY(train_meet(t));
        if (t->target_reached)
            break;
        if (t->step < end && t->step == save_at)
            TRY(save(t));
    }
    if (t->target_reached)
        return save(t);
    TRY(close_epoch(t, test));
    if (number != 0 && !t->target_reached)
        return stop_saved(t, number);
    if (t->step < t->total_steps && generation_ends(t))
        return change_workers(t);
out:
    return status;
}

static enum status train_loop(struct trainer *t)
{
    enum status status = STATUS_OK;
    struct test_result test;
    TRY(train_share_state(t));
    TRY(train_store(t));
    t->first_step = t->step;
    if (t->report.images_before == 0)
        t->report.images_before = trainer_images(t);
    t->report.images = train_images(t);
    generation_shared(t);
    if (t->generation) /* no watchdog ends waits, and the set-up had more time */
        t->world->timeout_ms = (int64_t)(t->config->timeout * 1000);
    train_report_start(t);
    if (!t->config->train.paced)
        TRY(train_sum_settings(t));
    if (t->rank == 0 && meets_late(t))
        log_warn("--checkpoint: after a signal the run is saved where all workers meet: only every "
                 "%llu steps, at the end of an epoch; add --log-steps N to save sooner",
                 (unsigned long long)t->steps_per_epoch);
    /* No step may be left, or the target accuracy may already be reached: test first. */
    if (generation_owes(t))
        TRY(close_epoch(t, &test));
    else if (t->step >= t->total_steps || (t->step > 0 && t->config->train.target_accuracy > 0))
        TRY(test_and_report(t, &test));
    while (t->step < t->total_steps && !t->target_reached)
        TRY(epoch(t, &test));
    TRY(comm_finish(t->sync.comm));
    train_report_end(t, &test);
out:
    return status;
}

enum status train_generation(struct config *config, struct world *world,
                             struct generation *generation)
{
    enum status status = STATUS_OK;
    struct trainer trainer;
    TRY(trainer_open(&trainer, config, world, generation));
    status = trainer.is_server ? comm_serve(trainer.sync.comm) : train_loop(&trainer);
    if (trainer.is_server && status == STATUS_OK)
        trainer.stop.agreed =
            trainer.stop.saves;      /* the workers have ended: their signal may still come here */
    batches_pause(&trainer.batches); /* after these two, no thread adds ranges */
    usage_watch_free(&trainer.report.usage_watch);
    if (trainer.timeline && (status == STATUS_OK || status == STATUS_STOPPED)) {
        const struct report *report = &trainer.report;
        enum status written =
            config->recorder->write(trainer.timeline, report->ranks ? &report->facts : NULL);
        status = written == STATUS_OK ? status : written;
    }
    if (csv_close(&trainer.report.metrics) != STATUS_OK &&
        (status == STATUS_OK || status == STATUS_STOPPED))
        status = STATUS_IO;
out:
    progress_clear(&trainer.report.progress);
    trainer_close(&trainer);
    return status;
}

enum status train_run(struct config *config, struct world *world)
{
    return train_generation(config, world, NULL);
}
