#include "common/comm/none.h"

#include <stdlib.h>

#include "common/base/check.h"

static enum status none_open(void **self, const struct comm_site *site)
{
    *self = NULL;
    if (site->topology.workers > 1) {
        log_error("--backend none is for one process, and %d were started; choose ps, ring or mpi "
                  "to average over them",
                  site->topology.workers);
        return STATUS_USAGE;
    }
    /* The options outlive the backend: the comm owns its copy. */
    union {
        const struct comm_options *in;
        void *out;
    } unconst = {site->options};
    *self = unconst.out;
    return STATUS_OK;
}

/* One worker's sum is its own, and the scale of one is 1: nothing to do, on no device. */
static enum status none_start(void *self, size_t bucket, float *data)
{
    const struct comm_options *options = self;
    (void)bucket;
    (void)data;
    CHECK(options->scale == 1.0f);
    return STATUS_OK;
}

static enum status none_wait(void *self, size_t bucket)
{
    (void)self;
    (void)bucket;
    return STATUS_OK;
}

static void none_close(void *self)
{
    (void)self;
}

const struct backend backend_none = {
    .name = "none",
    .summary = "one process, nothing to average with",
    .orders_sums = true, /* of one summand */
    .device_memory = true,
    .open = none_open,
    .start = none_start,
    .wait = none_wait,
    .close = none_close,
};
