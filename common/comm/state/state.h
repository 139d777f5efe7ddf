/*
 * What averaging carries from one all-reduce to the next: the residuals of error feedback
 * (common/comm/elements/compress.h), of workers and of servers. A checkpoint that lacks them is
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
#ifndef PSRING_COMMON_COMM_STATE_STATE_H
#define PSRING_COMMON_COMM_STATE_STATE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/comm/comm.h"

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
