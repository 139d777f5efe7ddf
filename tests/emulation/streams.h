/*
 * The streams of the emulated device, for faults.cu: what comes before what. Two kinds of work are
 * on one: that of another thread (NCCL's stand-in), which is given to it and done some time; and
 * items, what the host has asked for. Those are done within the call, or, with EMULATED_LATE, put
 * off until somebody waits for them: then whoever reads a result, or writes over a source, before
 * it may, gets or leaves what is wrong.
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

/* A place in a stream's work: behind so many items and so much of the other thread's work. */
struct place {
    std::shared_ptr<stream> of; /* NULL: nowhere */
    uint64_t items, given;
};

struct item {
    std::function<void()> work; /* or none, where it is a wait for another stream */
    struct place behind;        /* another stream's */
    uint64_t given;             /* of its own stream's, before it */
};

struct stream {
    std::deque<struct item> items;      /* put off */
    uint64_t asked = 0, finished = 0;   /* items */
    bool busy = false;                  /* a thread is at one */
    std::vector<uint64_t> items_before; /* (given): each work of the other thread's */
    uint64_t given = 0, done = 0;
    int queries = 0; /* that do not find it finished */
};

/* 0: nothing is put off. */
int streams_late(void);

std::shared_ptr<stream> streams_new(cudaStream_t *handle);
void streams_free(cudaStream_t handle);
std::shared_ptr<stream> streams_find(cudaStream_t handle); /* there must be one */

/* Does it, or puts it off. */
void streams_ask(cudaStream_t handle, std::function<void()> work);
/* What is asked for from here on comes behind that place, of this stream or another one. */
void streams_follow(cudaStream_t handle, const struct place &place);

/* Now, as an item is done: one at a time, whichever thread comes. */
void streams_run(const std::function<void()> &work);

struct place streams_here(cudaStream_t handle);
/* Returns when all before the place is done. */
void streams_reach(const struct place &place);
/* The same as far as it needs no other thread; false: some of that is not done yet. */
bool streams_try(const struct place &place);
void streams_reach_all(void);

#endif
