/*
 * Losses on their way from the device. The host may be some steps ahead of the device
 * (device_steps_ahead), so that the device never waits for work; the loss of a step is read when
 * the device has done the step. A CPU has when the call returns.
 */
#ifndef PSRING_EXPERIMENTS_STEP_LOSS_QUEUE_H
#define PSRING_EXPERIMENTS_STEP_LOSS_QUEUE_H

#include <stdint.h>

#include "common/base/status.h"
#include "common/device/device.h"
#include "models/net.h"

enum { LOSS_QUEUE_MAX = 4 };

struct loss_queue {
    struct device *device;
    struct loss_sum *sums; /* (LOSS_QUEUE_MAX), from device_host_alloc */
    struct device_event *done[LOSS_QUEUE_MAX];
    uint64_t put, taken; /* steps so far */
};

/* Borrows `device`. */
enum status loss_queue_open(struct loss_queue *queue, struct device *device);
void loss_queue_close(struct loss_queue *queue);

/* Asks for the loss of the last net_forward. */
void loss_queue_put(struct loss_queue *queue, struct net *net);

/* Waits for the losses of all steps but the latest `ahead`, and adds them to *loss, oldest first.
 * Also returns a failure of the device. */
enum status loss_queue_take(struct loss_queue *queue, int ahead, struct net_loss *loss);

/* Steps whose loss has not been taken. */
uint64_t loss_queue_length(const struct loss_queue *queue);

#endif
