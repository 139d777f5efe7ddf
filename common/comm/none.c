#include "common/comm/none.h"

#include <stdlib.h>

#include "common/comm/reduce.h"

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

static enum status none_allreduce(void *self, size_t bucket, float *data)
{
    const struct comm_options *options = self;
    reduce_scale(data, options->bucket_counts[bucket], options->scale);
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
    .open = none_open,
    .allreduce = none_allreduce,
    .close = none_close,
};
