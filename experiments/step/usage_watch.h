/*
 * How busy a device is over time: a thread of its own asks it (device_usage) every
 * USAGE_WATCH_INTERVAL_MS, because the driver itself knows the last second at most. What the device
 * does not tell is not counted; on a CPU there is no thread. A timeline gets every sample.
 */
#ifndef PSRING_EXPERIMENTS_STEP_USAGE_WATCH_H
#define PSRING_EXPERIMENTS_STEP_USAGE_WATCH_H

#include "common/base/status.h"
#include "common/device/device.h"

enum { USAGE_WATCH_INTERVAL_MS = 100 };

/* A sample with less utilization counts as idle. */
#define USAGE_WATCH_IDLE 0.1

struct usage_watch;

/* Sums, so that several devices' can be added. */
struct usage_samples {
    double count, idle; /* samples with a utilization; of them, those below USAGE_WATCH_IDLE */
    double utilization; /* their sum */
};

/* Borrows `device`. *watch is NULL where a device of its kind tells nothing. */
enum status usage_watch_new(struct usage_watch **watch, const struct device *device);

/* What was sampled since the last call, or since usage_watch_new; zeros for NULL. */
struct usage_samples usage_watch_take(struct usage_watch *watch);

/* Ends the thread. Sets *watch to NULL; NULL is fine. */
void usage_watch_free(struct usage_watch **watch);

#endif
