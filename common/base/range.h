/*
 * Named ranges of time. The code states once where its time goes. A profiler records the ranges
 * (NVTX, in builds with CUDA's toolkit, for Nsight Systems), and so does psring's own listener if
 * one is set (a timeline). Without a listener a call tests one pointer.
 *
 *     range_begin("forward conv1", &(struct range_about){.kind = RANGE_COMPUTE});
 *     ...
 *     range_end();
 *
 * Ranges nest in their thread. Details (range_detail_begin, range_detail_end, messages) go to
 * psring's own listener only: they are too many for a profiler. A name is a constant, or lives as
 * long as the run.
 */
#ifndef PSRING_COMMON_BASE_RANGE_H
#define PSRING_COMMON_BASE_RANGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kinds of ranges. The times of the parts of a training step are sums over the kinds up to
 * EXPOSED, each without its nested ranges. */
enum range_kind {
    RANGE_STEP,      /* `number`: the training step */
    RANGE_COMPUTE,   /* forward, backward */
    RANGE_DATA,      /* loads the next batch */
    RANGE_OPTIMIZER, /* turns gradients into parameters */
    RANGE_EXPOSED,   /* the step averages `bucket`, or waits for it */
    RANGE_BUCKET,    /* (opened) from the start of its averaging to the end of the wait for it */
    RANGE_ALLREDUCE, /* all-reduce of `bucket`, on any thread */
    RANGE_TRANSFER,  /* step `number` of an algorithm: `chunk` comes from `peer` */
    RANGE_SHARD,     /* (opened) `chunk` of a shard, from the push to `peer` to its answer */
    RANGE_SERVER,    /* a server adds up `chunk` of `bucket`, and answers */
    RANGE_WAIT,      /* waits for a message, or until one is sent */
    RANGE_WAIT_HOST, /* waits for `peer`, in memory shared by a host's ranks */
    RANGE_SEND,      /* message `number` from `node` to `peer` is handed to the transport */
    RANGE_RECEIVE,   /* (a moment) message `number` from `peer` arrived at `node` */
    RANGE_GPU,       /* (opened) asks the driver: busy for `number` per mille, `bytes` in use */
    RANGE_CPU,       /* (a moment) the step has used `number` ns of processor time */
    RANGE_KINDS
};

/* Details of a range. A kind leaves the fields that it does not use zero. */
struct range_about {
    enum range_kind kind;
    uint32_t bucket, chunk;
    int32_t peer, node; /* as the topology numbers them */
    uint32_t queue;     /* SEND: sends in flight to that peer; RECEIVE: receives posted for it */
    uint64_t number, bytes;
};

/* A range that belongs to no thread: open ranges may overlap, and another thread may close one. */
struct range {
    const char *name;
    struct range_about about;
    int64_t begin_ns; /* 0: no listener was set */
    uint64_t nvtx;
};

/* Called on the threads that report ranges, also concurrently. */
struct range_listener {
    /* now_ns: the caller's latest clock_now_ns, or 0 if it has not read the clock. Same for
     * `end`. */
    void (*begin)(const char *name, const struct range_about *about, int64_t now_ns);
    void (*end)(int64_t now_ns);
    void (*open)(struct range *range); /* sets begin_ns */
    void (*close)(const struct range *range);
    void (*moment)(const char *name, const struct range_about *about); /* within a range */
    void (*at_step)(uint64_t step);
};

/* Global, like the log's settings, because measured code cannot pass the listener along. It changes
 * only while no range is open. */
extern _Atomic(const struct range_listener *) range_listener;

static inline const struct range_listener *range_listens(void)
{
    return atomic_load_explicit(&range_listener, memory_order_acquire);
}

void range_begin(const char *name, const struct range_about *about);
void range_end(void);

/* The total time of one part of a step. The recorded range and the sum use the same readings of the
 * clock. For one thread. */
struct range_sum {
    int64_t ns;           /* total of all ended ranges */
    int64_t cpu_ns;       /* total processor time of the thread in ranges begun with `cpu` */
    int64_t begin_ns;     /* start of the last range */
    int64_t begin_cpu_ns; /* the thread's processor time then; -1: not counted */
};

void range_sum_begin(struct range_sum *sum, const char *name, const struct range_about *about,
                     bool cpu);
/* Returns the time of the end, by clock_now_ns. */
int64_t range_sum_end(struct range_sum *sum);

void range_open(struct range *range, const char *name, const struct range_about *about);
void range_close(struct range *range);

/* Step `step` of this run begins, counted from 0, or a server works on it. */
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

/* A step of an algorithm: `chunk` of `bucket` comes from `peer`, to be added or to be kept. */
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
