/*
 * Averaging buckets of gradients over the workers: the one interface that trainer and bench see.
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
 * Connections live as long as the comm; a plan is made for a list of buckets, the same on all
 * ranks, and can be replaced by the next one. Between start and wait the bucket's memory belongs to
 * the comm. Threads: all calls from one, the caller's. With `overlap` a second one, the comm's own,
 * does the averaging; else comm_start does. Errors: logged. What fails is returned to the caller,
 * also where a server inside this process fails: comm_start, comm_wait or comm_finish then return
 * its status within a second.
 */
#ifndef PSRING_COMMON_COMM_COMM_H
#define PSRING_COMMON_COMM_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/base/util.h"
#include "common/comm/comm_options.h"
#include "common/net/topology.h"
#include "common/net/transport/transport.h"
#include "common/net/world.h"

struct comm;
struct backend;

/* Payload and headers that crossed the network (traffic inside a process is not counted). */
struct comm_counters {
    struct transport_counters worker; /* of this process's worker, zeros if none */
    struct transport_counters server; /* of this process's server, zeros if none */
};

enum { COMM_ALGORITHM_BYTES = 80 };

/* Collective over the world. Connects. `options` is copied. From then on the world's own calls wait
 * as long as the comm's: its timeout_ms and stall_warning_ms become those of `options`. */
enum status comm_open(struct comm **comm, struct world *world, const struct backend *backend,
                      const struct comm_options *options);

/* Collective over the workers that average and their servers: none returns before all have ended
 * the plan before. Starts a colocated server. `layout` is copied. */
enum status comm_plan(struct comm *comm, const struct comm_layout *layout);

bool comm_is_server(const struct comm *comm); /* dedicated: call comm_serve, nothing else */
int comm_rank(const struct comm *comm);       /* which of the workers, 0..workers-1 */
int comm_workers(const struct comm *comm);
bool comm_overlaps(const struct comm *comm); /* whether it averages while the caller computes */
const struct topology *comm_topology(const struct comm *comm);
const struct group *comm_group(const struct comm *comm); /* the workers, for world_sum etc. */
/* (workers, then spare servers) Which host each is on: equal numbers, one host. */
const int *comm_hosts(const struct comm *comm);

enum status comm_serve(struct comm *comm);

/* Hands over bucket `bucket` of the plan: in place, scaled sum over the workers; or, where servers
 * update, fresh parameters in place of the gradients. */
enum status comm_start(struct comm *comm, size_t bucket, float *data);
/* What was started goes on its way now, if it has not before; at the latest comm_wait does it. A
 * backend that averages device memory hands all of it to its library at once (NCCL: one group). */
enum status comm_flush(struct comm *comm);
/* Returns once bucket `bucket` holds its result; on a device, what it is asked for next sees it. */
enum status comm_wait(struct comm *comm, size_t bucket);

/*
 * The two phases of an all-reduce, for algorithms of several groups: reduce-scatter in one, then
 * an all-reduce of what comes out in another, then all-gather in the first. Both return when done.
 * After comm_reduce_scatter the elements comm_part of `data` (host memory) hold the scaled sum, the
 * rest is undefined; comm_all_gather gives every worker's part to all. Only where comm_has_phases:
 * not every backend, no overlap, nothing compressed. One after the other they move what comm_start
 * moves, to the byte.
 */
bool comm_has_phases(const struct comm *comm);
enum status comm_reduce_scatter(struct comm *comm, size_t bucket, float *data);
enum status comm_all_gather(struct comm *comm, size_t bucket, float *data);
struct chunk comm_part(const struct comm *comm, size_t bucket);

/* Time spent averaging since comm_plan, in ns, on whichever thread; 0 for a backend that averages
 * device memory, which the host does not see. Call it between steps. */
int64_t comm_busy_ns(struct comm *comm);

/* Worker 0's data to all workers / all workers have arrived. Not counted as gradient bytes. */
enum status comm_broadcast(struct comm *comm, float *data, size_t count);
enum status comm_barrier(struct comm *comm);

/* Workers: no more buckets of this plan will follow; joins a colocated server. */
enum status comm_finish(struct comm *comm);

/* Of the present plan, or the last one; final after comm_finish or comm_serve. */
void comm_counters(const struct comm *comm, struct comm_counters *counters);

/* By which of its algorithms a vendor's library went, by its own account, e.g. "ring/simple"; "" if
 * it does not say, or the backend is our own. On worker 0, after comm_finish. */
void comm_algorithm(const struct comm *comm, char text[COMM_ALGORITHM_BYTES]);

/* Any thread: what waits for messages of this comm, now or later, fails within a second
 * (STATUS_TRANSPORT); whoever calls this says why. For backends that use a transport. */
void comm_interrupt(struct comm *comm);

/* Frees everything, sets *comm to NULL. Without a comm_finish before: returns once no bucket is in
 * use any more, at the latest after the time-out, and connections are cut. */
void comm_close(struct comm **comm);

/* What a worker asks of servers that own the parameters, besides averaging. */

/*
 * Only where servers update (comm_options.h), which is the one thing that callers notice of
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

/*
 * What averaging carries from one all-reduce to the next: the residuals of error feedback
 * (common/comm/compress.h), of workers and of servers. A checkpoint that lacks them is
 * another run's. It is one array of floats on worker 0: rank by rank, of each the worker's part,
 * then its server's. It fits a comm of the same backend, ranks, roles and layout.
 *
 * It travels by the world's calls, in pieces, between two all-reduces: no byte of it is among those
 * that the transport counts. Colocated or not, servers stand still meanwhile: the workers tell them
 * to (one message without payload from each to each), and a dedicated one takes part inside
 * comm_serve. Cost: every rank's part once through worker 0's link; one piece more of memory a
 * rank on worker 0. Nothing, and no message, without error feedback.
 *
 * Collective over the workers, on the thread of comm_start, with no bucket between start and wait.
 */

/* On worker 0 the (*count) floats, which the caller frees; NULL and 0 elsewhere, and where nothing
 * is carried. */
enum status comm_state_read(struct comm *comm, float **state, size_t *count);

/* From worker 0's `state` of `count` floats; elsewhere both are not looked at. *fits, on all: it
 * is as long as what is carried here. If not, nothing is changed: what is carried begins at zero.
 */
enum status comm_state_write(struct comm *comm, const float *state, size_t count, bool *fits);

/* A dedicated server's part in either, once its `serve` has paused. */
enum status comm_state_join(struct comm *comm);

#endif
