/*
 * Memory that the workers of one host share. Each worker writes its own vector, and the other
 * workers read it. One more vector holds the sums; each worker writes a part of it. Each worker
 * also has a cache line that shows its progress. The memory has no name in any file system. It
 * disappears with the last process that maps it, however that process ends.
 *
 * Operation number n of a worker, for a vector of any length:
 *
 *     writes its vector;  shared_notify(SHARED_FILLED, n)
 *     shared_wait(SHARED_FILLED, other, n), reads the other's vector;   for every other
 *     writes its part of the sums;  shared_notify(SHARED_DONE, n)
 *     shared_wait(SHARED_DONE, other, n), reads the other's part;   for every other
 *
 * No worker overwrites memory that another may still read. A worker that has seen all others DONE
 * with n knows that they have read the vectors. A worker that has seen them FILLED with n+1 knows
 * that they have read the sums.
 *
 * Threads: only the thread that owns the worker's transport. A wait sleeps in the kernel (futex).
 * If every rank has its own core, it polls for up to 50 us before.
 */
#ifndef PSRING_RING_SHARED_MEMORY_H
#define PSRING_RING_SHARED_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/net/transport/transport.h"
#include "common/net/topology.h"
#include "common/net/world.h"

struct shared;

enum shared_event { SHARED_FILLED, SHARED_DONE, SHARED_EVENTS };

/* All pointers are borrowed, until shared_close. */
struct shared_memory_options {
    struct world *world;
    const struct group *workers; /* the callers, on all hosts; NULL: the whole world */
    const struct group *group;   /* the workers of this host, as a list only; NULL: none */
    struct transport *transport; /* its waits and ours are interrupted together */
    size_t vector_bytes;         /* length of each worker's vector, and of the sums */
    int64_t timeout_ms;          /* of a wait, if no watchdog watches the world */
    bool *agreed; /* (optional) becomes true once all callers know whether all succeeded */
};

/* Collective over the callers. A caller that is alone on its host, or in no group, gets NULL.
 * Allocates all memory, or fails on all callers. Errors are logged. */
enum status shared_open(struct shared **shared, const struct shared_memory_options *options);

/* Frees *shared and sets it to NULL. The memory exists until the last worker has closed it. */
void shared_close(struct shared **shared);

/* The vector of worker `index` of the group. */
void *shared_vector(const struct shared *shared, int index);
void *shared_sums(const struct shared *shared);

/* Publishes what this worker has written, and wakes the workers that wait for `event`. */
void shared_notify(struct shared *shared, enum shared_event event, uint32_t operation);

/* Shows progress without an event, so that waiting workers reset their time-out. Cost: one
 * store. */
void shared_moved(struct shared *shared);

/* Marks this worker's operation as failed: no worker waits for it any longer. This worker starts no
 * further operation. */
void shared_fail(struct shared *shared);

/* Waits for an event of worker `index`. STATUS_TIMEOUT: the worker sent no event and made no
 * progress. STATUS_TRANSPORT: its operation has failed, its process is gone (noticed within a
 * second), or our transport was interrupted. All but the interruption are logged with the worker's
 * rank, unless a watchdog watches the world and logs them itself. */
enum status shared_wait(struct shared *shared, int index, enum shared_event event,
                        uint32_t operation);

#endif
