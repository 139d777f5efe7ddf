/*
 * Ranges of time with a name. The code states once where its time goes. A profiler hears of it
 * (NVTX, in builds with CUDA's toolkit, for Nsight Systems), and so does a listener of psring if
 * one is set (a timeline). Without a listener a call tests a pointer.
 *
 *     range_begin("forward conv1", &(struct range_about){.kind = RANGE_COMPUTE});
 *     ...
 *     range_end();
 *
 * Ranges nest in their thread. Details (range_detail_begin, range_detail_end, messages) are for our
 * own listener alone: they are too many for a profiler. A name is a constant, or lives as long as
 * the run.
 */
#ifndef PSRING_COMMON_BASE_RANGE_H
#define PSRING_COMMON_BASE_RANGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a range is. Times of the parts of a training step are sums over the kinds up to EXPOSED,
 * each without what is nested in it. */
enum range_kind {
    RANGE_STEP,      /* `number`: of the training */
    RANGE_COMPUTE,   /* forward, backward */
    RANGE_DATA,      /* the next batch */
    RANGE_OPTIMIZER, /* gradients become parameters */
    RANGE_EXPOSED,   /* the step averages `bucket`, or waits for that */
    RANGE_BUCKET,    /* (opened) from the start of its averaging to the end of the wait for it */
    RANGE_ALLREDUCE, /* of `bucket`, on whichever thread */
    RANGE_TRANSFER,  /* a step of an algorithm, `number`: `chunk` comes here from `peer` */
    RANGE_SHARD,     /* (opened) `chunk` of a shard's, from the push to `peer` to its answer */
    RANGE_SERVER,    /* a server adds up `chunk` of `bucket`, and answers */
    RANGE_WAIT,      /* for a message, or until one is sent */
    RANGE_WAIT_HOST, /* for `peer`, through memory that a host's ranks share */
    RANGE_SEND,      /* message `number` from `node` to `peer` is handed to the transport */
    RANGE_RECEIVE,   /* (a moment) message `number` from `peer` to `node` is here */
    RANGE_GPU,       /* (opened) its driver is asked: busy for `number` per mille, `bytes` in use */
    RANGE_CPU,       /* (a moment) the step has computed on a processor for `number` ns */
    RANGE_KINDS
};

/* What a range is about; what its kind has no use for stays zero. */
struct range_about {
    enum range_kind kind;
    uint32_t bucket, chunk;
    int32_t peer, node; /* as the topology numbers them */
    uint32_t queue;     /* SEND: to that peer, not completed; RECEIVE: still posted for it */
    uint64_t number, bytes;
};

/* A range of no thread: open ones may overlap, and another thread may close one. */
struct range {
    const char *name;
    struct range_about about;
    int64_t begin_ns; /* 0: nobody listened */
    uint64_t nvtx;
};

/* Called on the threads that tell, also at the same time. */
struct range_listener {
    /* now_ns: clock_now_ns, where the teller has just read it; 0: it has not, as in the next */
    void (*begin)(const char *name, const struct range_about *about, int64_t now_ns);
    void (*end)(int64_t now_ns);
    void (*open)(struct range *range); /* sets begin_ns */
    void (*close)(const struct range *range);
    void (*moment)(const char *name, const struct range_about *about); /* inside a range */
    void (*at_step)(uint64_t step);
};

/* Beside the log's level the one thing that is global: what is measured cannot carry along who
 * listens. Changes only while no range is open. */
extern _Atomic(const struct range_listener *) range_listener;

static inline const struct range_listener *range_listens(void)
{
    return atomic_load_explicit(&range_listener, memory_order_acquire);
}

void range_begin(const char *name, const struct range_about *about);
void range_end(void);

/* The ranges of one part of a step, added up. What is recorded is what is added: both have one
 * reading of the clock. For one thread. */
struct range_sum {
    int64_t ns;       /* of all ranges that have ended */
    int64_t cpu_ns;   /* of those begun with `cpu`: what the thread ran on a processor in them */
    int64_t begin_ns; /* of the last one */
    int64_t begin_cpu_ns; /* the thread's processor time then; -1: it does not count */
};

void range_sum_begin(struct range_sum *sum, const char *name, const struct range_about *about,
                     bool cpu);
/* Returns the time of the end, by clock_now_ns. */
int64_t range_sum_end(struct range_sum *sum);

void range_open(struct range *range, const char *name, const struct range_about *about);
void range_close(struct range *range);

/* This run's step `step`, counted from 0, begins, or a server is at it. */
static inline void range_at_step(uint64_t step)
{
    const struct range_listener *listener = range_listens();
    if (listener)
        listener->at_step(step);
}

static inline void range_detail_begin(const char *name, const struct range_about *about)
{
    const struct range_listener *listener = range_listens();
    if (listener)
        listener->begin(name, about, 0);
}

static inline void range_detail_end(void)
{
    const struct range_listener *listener = range_listens();
    if (listener)
        listener->end(0);
}

/* Of an algorithm's step: `chunk` of `bucket` comes from `peer`, to be added or to be kept. */
static inline void range_transfer_begin(bool reduces, uint32_t bucket, size_t chunk, int peer,
                                        size_t step)
{
    range_detail_begin(reduces ? "reduce-scatter" : "all-gather",
                       &(struct range_about){.kind = RANGE_TRANSFER,
                                             .bucket = bucket,
                                             .chunk = (uint32_t)chunk,
                                             .peer = peer,
                                             .number = step});
}

static inline void range_detail_open(struct range *range, const char *name,
                                     const struct range_about *about)
{
    const struct range_listener *listener = range_listens();
    range->begin_ns = 0;
    if (!listener)
        return;
    range->name = name;
    range->about = *about;
    listener->open(range);
}

static inline void range_detail_close(const struct range *range)
{
    const struct range_listener *listener = range_listens();
    if (listener && range->begin_ns)
        listener->close(range);
}

static inline void range_moment(const char *name, const struct range_about *about)
{
    const struct range_listener *listener = range_listens();
    if (listener)
        listener->moment(name, about);
}

#endif
