/* What a worker asks of servers that own the parameters, besides averaging. */
#ifndef PSRING_COMMON_COMM_UPDATES_H
#define PSRING_COMMON_COMM_UPDATES_H

#include "common/comm/comm.h"
#include "common/comm/updates/consistency.h"

/*
 * Only where servers update (consistency.h), which is the one thing that callers notice of
 * it. A step then is: each bucket started once, and waited for. Call these while no bucket is on
 * its way.
 *
 *     worker 0: comm_store(comm, b, array, data) for each bucket and array; all: comm_barrier
 *     all, per stretch of steps:
 *         comm_begin_steps(comm, step, end)      goes on with `step`; all meet again at `end`
 *         while (comm_progress(comm)->step < end)
 *             a step                             which may leave out others that come next
 *         comm_barrier, comm_fetch               now the servers' arrays are the same to all
 *
 * comm_store and comm_fetch move a bucket's elements of an array to and from its servers. Host
 * memory. Cost: a message each way for every chunk.
 */
bool comm_updates_on_server(const struct comm *comm);
enum status comm_begin_steps(struct comm *comm, uint64_t step, uint64_t end);
enum status comm_store(struct comm *comm, size_t bucket, size_t array, float *data);
enum status comm_fetch(struct comm *comm, size_t bucket, size_t array, float *data);
const struct comm_progress *comm_progress(const struct comm *comm);

#endif
