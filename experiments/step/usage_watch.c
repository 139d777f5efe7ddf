#include "experiments/step/usage_watch.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/base/thread.h"
#include "common/base/status.h"
#include "common/obs/range.h"

struct usage_watch {
    const struct device *device;
    struct thread thread;
    pthread_mutex_t lock; /* of what follows */
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

/* Until `at_ns`, or until the watch is to end, which it returns. */
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

/* At even distances; what a late sample has missed is not made up for. */
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

enum status usage_watch_new(struct usage_watch **out, const struct device *device)
{
    enum status status = STATUS_OK;
    pthread_condattr_t attributes;
    *out = NULL;
    if (!device->ops->usage)
        return STATUS_OK;
    struct usage_watch *watch = calloc(1, sizeof *watch);
    if (!watch) {
        log_error("no memory to watch how busy a device is");
        return STATUS_NO_MEMORY;
    }
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
