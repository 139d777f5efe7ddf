#include "common/comm/updates/updates.h"

#include "common/base/status.h"
#include "common/comm/comm_impl.h"

bool comm_updates_on_server(const struct comm *comm)
{
    return comm->backend->updates_on_server && consistency_updates(&comm->options.consistency);
}

/* Where servers update, and no bucket is on its way: the averaging thread, if there is one, then
 * sleeps, and its lock has made what it did visible to this one. */

enum status comm_begin_steps(struct comm *comm, uint64_t step, uint64_t end)
{
    CHECK(comm->plan.running && comm_updates_on_server(comm));
    return comm_blame(comm, comm->backend->begin_steps(comm->self, step, end));
}

enum status comm_store(struct comm *comm, size_t bucket, size_t array, float *data)
{
    CHECK(comm->plan.running && comm_updates_on_server(comm));
    return comm_blame(comm, comm->backend->store(comm->self, bucket, array, data));
}

enum status comm_fetch(struct comm *comm, size_t bucket, size_t array, float *data)
{
    CHECK(comm->plan.running && comm_updates_on_server(comm));
    return comm_blame(comm, comm->backend->fetch(comm->self, bucket, array, data));
}

const struct comm_progress *comm_progress(const struct comm *comm)
{
    CHECK(comm_updates_on_server(comm));
    return comm->backend->progress(comm->self);
}
