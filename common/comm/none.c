#include "common/comm/backend.h"

#include <stdlib.h>

#include "common/base/status.h"
#include "common/base/util.h"

static enum status none_open(void **self, const struct backend_env *site)
{
    if (site->workers > 1) {
        log_error("--backend none is for one process, and %d were started; choose another backend "
                  "to average over them",
                  site->workers);
        return STATUS_USAGE;
    }
    *self = without_const(site); /* it keeps nothing but its site, and only reads that */
    return STATUS_OK;
}

/* One worker's sum is its own, and the scale of one is 1: nothing to do, on no device. */
static enum status none_start(void *self, size_t bucket, float *data)
{
    const struct backend_env *site = self;
    (void)bucket;
    (void)data;
    CHECK(site->layout->scale == 1.0f);
    return STATUS_OK;
}

static enum status none_wait(void *self, size_t bucket)
{
    (void)self;
    (void)bucket;
    return STATUS_OK;
}

const struct backend backend_none = {
    .name = "none",
    .summary = "one process, nothing to average with",
    .single_process = true,
    .obeys_reduce_order = true, /* of one summand */
    .counts_bytes = true,
    .device_memory = true,
    .graph_capturable = true,
    .cost = &cost_of_nothing,
    .open = none_open,
    .start = none_start,
    .wait = none_wait,
};
