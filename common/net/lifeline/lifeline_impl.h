/* What the lifeline's thread keeps. lifeline.c: the interface and the thread; join.c: connecting;
 * lead.c: what only rank 0 does. */
#ifndef PSRING_COMMON_NET_LIFELINE_LIFELINE_IMPL_H
#define PSRING_COMMON_NET_LIFELINE_LIFELINE_IMPL_H

#include <poll.h>
#include <stdatomic.h>

#include "common/base/clock.h"
#include "common/base/thread.h"
#include "common/net/lifeline/lifeline.h"
#include "common/net/lifeline/link.h"
#include "common/net/lifeline/stall.h"
#include "common/net/lifeline/verdict.h"

enum lifeline_phase {
    LIFELINE_STARTING, /* no other rank is known */
    LIFELINE_ALONE,    /* there is none */
    LIFELINE_JOINED,
};

struct lifeline {
    struct lifeline_options options;
    struct activity activity;
    struct thread thread;
    int wake_fd; /* an eventfd: the thread is to look at what follows */
    _Atomic int phase;
    _Atomic bool signalled, closing;

    /* Set before the phase is JOINED. */
    int rank, size;
    struct lifeline_rank *ranks; /* (size): on rank 0 what is known of each, else only the hosts */
    struct lifeline_link *links; /* (size): on rank 0 to each other rank, else links[0] alone */
    struct pollfd *polled;       /* (size): links, then wake_fd in place of the own */

    /* The thread's own. */
    int64_t tick_ns, timeout_ns; /* between beats; of silence */
    int64_t started_ns, next_beat_ns, asked_ns /* fail or signal: since */;
    struct {
        uint64_t moves;
        int64_t since_ns;
    } seen[ACTIVITY_THREADS];
    bool gave_up; /* has told rank 0 of its own end */
    enum lifeline_trouble trouble;
    int64_t trouble_ns;        /* since then */
    struct stall_watch stalls; /* on rank 0 of all; on rank 1 of rank 0's silence */
};

enum { EXIT_FAILED = 1, EXIT_SIGNALLED = 143 };

/* A line needs no longer than this from here to the user, and a frame to the other ranks. */
#define LIFELINE_LINGER_NS (200 * NS_PER_MS)

enum { LIFELINE_LAST_WORD_S = 5 };

/*
 * For the last words: from now on nobody else of this process writes to stderr or stdout. MPI
 * complains of every connection that closes, from when one rank has ended until the last one has;
 * and a step's line may be about to be printed. Sleeps until what had been written is with the
 * user. LIFELINE_LAST_WORD_S later the process ends by SIGALRM, if it has not yet: nobody may be
 * reading what it says.
 */
void lifeline_take_the_word(void);

/* The thread is to look now. */
void lifeline_wake(struct lifeline *lifeline);

/* What this rank would tell now. */
void lifeline_sample(struct lifeline *lifeline, int64_t now_ns, struct lifeline_beat *beat);

/* Warns of a stall that has begun or ended, as far as this rank is to. */
void lifeline_watch_stalls(struct lifeline *lifeline, int64_t now_ns);

/* A rank that is silent for so long is at fault. Sooner where this process is asked to end: the
 * launcher may have missed the same rank before we did. */
int64_t lifeline_silence_ns(const struct lifeline *lifeline);

/* One look of rank 0's thread at all ranks; ends them, and this process, if it has come to that.
 * False once all ranks are done. `late_ns`: for so long nobody has looked, and everybody seemed
 * silent. */
bool lifeline_lead(struct lifeline *lifeline, int64_t now_ns, int64_t late_ns);
/* When it should look again at the latest. */
int64_t lifeline_lead_next_ns(const struct lifeline *lifeline);
#endif
