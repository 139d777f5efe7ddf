/*
 * Memory that the workers of one host share. Each worker has a vector, which it writes and the
 * others read. One more vector holds the sums, of which each worker writes a part. Each worker also
 * has a cache line that shows how far it is. The memory has no name in any file system, so it goes
 * with the last process that has it, however that process ends.
 *
 * An operation of a worker, the n-th, whatever the length of its vector:
 *
 *     writes its vector;  shared_notify(SHARED_FILLED, n)
 *     shared_wait(SHARED_FILLED, other, n), reads the other's vector;   for every other
 *     writes its part of the sums;  shared_notify(SHARED_DONE, n)
 *     shared_wait(SHARED_DONE, other, n), reads the other's part;   for every other
 *
 * No worker writes what another may still read. A worker that has seen all others DONE with n knows
 * that they have read the vectors. One that has seen them FILLED with n+1 knows that they have read
 * the sums.
 *
 * Threads: of one process, the one that owns the worker's transport. Waiting sleeps in the kernel
 * (futex), after up to 50 us of trying where every rank has a core of its own.
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
    const struct group *workers; /* who open: those of all hosts; NULL: the whole world */
    const struct group *group;   /* those of this host, as a mere list; NULL: none */
    struct transport *transport; /* a wait ends when this one's waits do */
    size_t vector_bytes;         /* of each worker's, and of the sums */
    int64_t timeout_ms;          /* of a wait, where no watchdog watches the world */
};

/* Collective over those who open; one that is alone on its host, or in no group, gets NULL. All
 * memory is there, or it fails on all of them. Errors: logged. */
enum status shared_open(struct shared **shared, const struct shared_memory_options *options);

/* Frees *shared and sets it to NULL; the memory is there until the last has. */
void shared_close(struct shared **shared);

/* The vector of a worker of the group, by its index there. */
void *shared_vector(const struct shared *shared, int index);
void *shared_sums(const struct shared *shared);

/* What this worker has written is there for all who wait for it. */
void shared_notify(struct shared *shared, enum shared_event event, uint32_t operation);

/* Nothing to tell yet, but this worker has come on: who waits for it is patient. Costs a store. */
void shared_moved(struct shared *shared);

/* This worker's operation has failed, and it begins no other: who waits for it need not. */
void shared_fail(struct shared *shared);

/* STATUS_TIMEOUT: the other has not told so, nor come on. STATUS_TRANSPORT: its operation has
 * failed, or its process is gone (noticed within a second). Logged, naming it, where no watchdog
 * watches the world, which would. STATUS_TRANSPORT, too, where the transport has been interrupted.
 */
enum status shared_wait(struct shared *shared, int index, enum shared_event event,
                        uint32_t operation);

#endif
