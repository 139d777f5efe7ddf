/*
 * The order of work on the streams of the emulated device, for faults.cu. A stream has two kinds of
 * work. Work of another thread (NCCL's stand-in) is added to the stream and done later. Items are
 * what the host requests. An item is done within the call or, with EMULATED_LATE, when a thread
 * waits for it. With delayed items, a caller that reads a result or overwrites a source too early
 * gets or causes wrong data.
 */
#ifndef PSRING_TESTS_EMULATION_STREAMS_H
#define PSRING_TESTS_EMULATION_STREAMS_H

#include <cuda_runtime_api.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

struct stream;

/* A place in a stream's work: after this many items and this much work of the other thread. */
struct place {
    std::shared_ptr<stream> of; /* NULL: nowhere */
    uint64_t items, given;
};

struct item {
    std::function<void()> work; /* empty: the item waits for another stream */
    struct place behind;        /* a place in another stream */
    uint64_t given;             /* work of the other thread on this stream, before it */
};

struct stream {
    std::deque<struct item> items;      /* delayed */
    uint64_t asked = 0, finished = 0;   /* items */
    bool busy = false;                  /* a thread does an item */
    std::vector<uint64_t> items_before; /* (given): items before each work of the other thread */
    uint64_t given = 0, done = 0;
    int queries = 0; /* this many queries still find it unfinished */
};

/* The value of EMULATED_LATE. 0: nothing is delayed. */
int streams_late(void);

std::shared_ptr<stream> streams_new(cudaStream_t *handle);
void streams_free(cudaStream_t handle);
std::shared_ptr<stream> streams_find(cudaStream_t handle); /* the stream must exist */

/* Does the work or delays it. */
void streams_ask(cudaStream_t handle, std::function<void()> work);
/* Later work on the stream comes after that place, which is in this stream or another one. */
void streams_follow(cudaStream_t handle, const struct place &place);

/* Does the work now, like an item: for one thread at a time. */
void streams_run(const std::function<void()> &work);

struct place streams_here(cudaStream_t handle);
/* Returns when all work before the place is done. */
void streams_reach(const struct place &place);
/* Does the work before the place that needs no other thread. false: some work is not done yet. */
bool streams_try(const struct place &place);
void streams_reach_all(void);

#endif
