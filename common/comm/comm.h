/*
 * Averaging buckets of gradients over the workers. Trainer and bench use only this interface.
 *
 *     comm_open(&comm, world, backend, &options)     all ranks: connects
 *     per plan:
 *         comm_plan(comm, &layout)                   all ranks of the comm: which buckets
 *         if (comm_is_server(comm))
 *             comm_serve(comm)                       returns once every worker has finished
 *         else
 *             per step: comm_start(comm, b, data) for each bucket b, then comm_wait(comm, b);
 *                       comm_flush(comm) after those that are ready at a time
 *             comm_finish(comm)
 *         comm_counters(comm, ...)
 *     comm_close(&comm)
 *
 * Connections live as long as the comm. A plan covers a list of buckets, the same on all ranks, and
 * the next plan replaces it. Between start and wait the bucket's memory belongs to the comm.
 *
 * Threads: one thread, the caller's, makes all calls. With `overlap` the comm's own thread
 * averages; otherwise comm_start does. Errors are logged and returned to the caller. If a server
 * inside this process fails, comm_start, comm_wait or comm_finish returns its status within a
 * second.
 */
#ifndef PSRING_COMMON_COMM_COMM_H
#define PSRING_COMMON_COMM_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/comm/comm_options.h"
#include "common/net/topology.h"
#include "common/net/transport/transport.h"
#include "common/net/world.h"

struct comm;
struct backend;

/* Payload and headers that crossed the network. Traffic inside a process is not counted. */
struct comm_counters {
    struct transport_counters worker; /* of this process's worker, zeros if none */
    struct transport_counters server; /* of this process's server, zeros if none */
};

enum { COMM_ALGORITHM_BYTES = 80 };

/* Collective over the world. Connects. Copies `options`. Sets the world's timeout_ms and
 * stall_warning_ms to those of `options`, so that the world's own calls wait as long as the
 * comm's. */
enum status comm_open(struct comm **comm, struct world *world, const struct backend *backend,
                      const struct comm_options *options);

/* Collective over the workers that average and their servers: none returns before all have ended
 * the previous plan. Starts a colocated server. Copies `layout`. */
enum status comm_plan(struct comm *comm, const struct comm_layout *layout);

bool comm_is_server(const struct comm *comm); /* dedicated: call only comm_serve */
int comm_rank(const struct comm *comm);       /* index among the workers, 0..workers-1 */
int comm_workers(const struct comm *comm);
bool comm_overlaps(const struct comm *comm); /* whether it averages while the caller computes */
const struct topology *comm_topology(const struct comm *comm);
const struct group *comm_group(const struct comm *comm); /* the workers, for world_sum etc. */
/* As given to comm_open, with the world's round trip. */
const struct comm_options *comm_options_of(const struct comm *comm);
/* (workers, then spare servers) The host of each; equal numbers mean one host. */
const int *comm_hosts(const struct comm *comm);

enum status comm_serve(struct comm *comm);

/* Hands over bucket `bucket` of the plan. The result replaces the data: the scaled sum over the
 * workers or, if servers update, fresh parameters. */
enum status comm_start(struct comm *comm, size_t bucket, float *data);
/* Sends what was started but not yet sent; comm_wait does this at the latest. A backend that
 * averages device memory passes all of it to its library at once (NCCL: one group). */
enum status comm_flush(struct comm *comm);
/* Returns once bucket `bucket` holds its result. On a device, later operations see the result. */
enum status comm_wait(struct comm *comm, size_t bucket);

/* Time spent averaging since comm_plan, in ns, on any thread. 0 for a backend that averages device
 * memory, because the host does not see it. Call it between steps. */
int64_t comm_busy_ns(struct comm *comm);

/* Broadcasts worker 0's data; waits for all workers. Neither counts as gradient bytes. */
enum status comm_broadcast(struct comm *comm, float *data, size_t count);
enum status comm_barrier(struct comm *comm);

/* Workers: ends the plan; no more buckets follow. Joins a colocated server. */
enum status comm_finish(struct comm *comm);

/* Returns the counts of the current or last plan. Final after comm_finish or comm_serve. */
void comm_counters(const struct comm *comm, struct comm_counters *counters);

/* The algorithm that a vendor's library reports to have used, e.g. "ring/simple". "" if it reports
 * none or the backend is psring's own. On worker 0, after comm_finish. */
void comm_algorithm(const struct comm *comm, char text[COMM_ALGORITHM_BYTES]);

/* Makes every present or later wait for messages of this comm fail within a second
 * (STATUS_TRANSPORT). The caller logs the reason. Any thread. For backends that use a transport. */
void comm_interrupt(struct comm *comm);

/* Frees everything and sets *comm to NULL. Without a preceding comm_finish it cuts the connections.
 * It then returns once no bucket is in use, at the latest after the time-out. */
void comm_close(struct comm **comm);

/* Calls of a worker to servers that own the parameters, besides averaging. */

/*
 * Use these only if servers update (comm_options.h). In each step the worker then starts each
 * bucket once and waits for it. Call the functions below while no bucket is between start and wait.
 *
 *     worker 0: comm_store(comm, b, array, data) for each bucket and array; all: comm_barrier
 *     all, per stretch of steps:
 *         comm_begin_steps(comm, step, end)      continues with `step`; all meet again at `end`
 *         while (comm_progress(comm)->step < end)
 *             a step                             a late worker may leave out the steps after it
 *         comm_barrier, comm_fetch               now the servers' arrays are the same to all
 *
 * comm_store and comm_fetch move a bucket's elements of an array to and from its servers. Host
 * memory. Cost: one message each way per chunk.
 */
bool comm_updates_on_server(const struct comm *comm);
enum status comm_begin_steps(struct comm *comm, uint64_t step, uint64_t end);
enum status comm_store(struct comm *comm, size_t bucket, size_t array, float *data);
enum status comm_fetch(struct comm *comm, size_t bucket, size_t array, float *data);
const struct comm_progress *comm_progress(const struct comm *comm);

/*
 * The state that averaging carries from one all-reduce to the next: the residuals of error feedback
 * (common/comm/compress.h) of workers and servers. A run resumed from a checkpoint without them
 * continues differently. The state is one array of floats on worker 0: for each rank its worker's
 * part, then its server's. It fits a comm of the same backend, ranks, roles and layout.
 *
 * It travels in pieces by the world's calls, between two all-reduces, so the transport does not
 * count its bytes. Servers, colocated or not, pause meanwhile: each worker sends each server one
 * message without payload. A dedicated server takes part inside comm_serve. Cost: every rank's part
 * once through worker 0's link, and one more piece of memory per rank on worker 0. Without error
 * feedback there is no cost and no message.
 *
 * Collective over the workers, on the thread of comm_start, with no bucket between start and wait.
 */

/* On worker 0 returns the (*count) floats, which the caller frees. NULL and 0 on other ranks, and
 * if nothing is carried. */
enum status comm_state_read(struct comm *comm, float **state, size_t *count);

/* Restores worker 0's `state` of `count` floats; other ranks ignore both. Sets *fits on all ranks:
 * the length equals that of the state here. If not, nothing changes, and the state starts at
 * zero. */
enum status comm_state_write(struct comm *comm, const float *state, size_t count, bool *fits);

/* A dedicated server's part in both calls, after its `serve` has paused. */
enum status comm_state_join(struct comm *comm);

#endif
