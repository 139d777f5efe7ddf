#include "ring/library.h"

#include "common/comm/reduce.h"

/* Nothing to keep but the site, which the comm owns. */
static enum status library_open(void **self, const struct comm_site *site)
{
    union {
        const struct comm_site *in;
        void *out;
    } unconst = {site};
    *self = unconst.out;
    return STATUS_OK;
}

static enum status library_allreduce(void *self, size_t bucket, float *data)
{
    const struct comm_site *site = self;
    size_t count = site->options->bucket_counts[bucket];
    enum status status = world_allreduce_float(site->world, site->workers_group, data, count);
    if (status == STATUS_OK && site->options->scale != 1.0f)
        reduce_scale(data, count, site->options->scale);
    return status;
}

static void library_close(void *self)
{
    (void)self;
}

const struct backend backend_mpi = {
    .name = "mpi",
    .summary = "MPI_Allreduce, the MPI library's own choice of algorithm",
    .default_transport = TRANSPORT_MPI,
    .open = library_open,
    .allreduce = library_allreduce,
    .close = library_close,
};
