/* Internal to the lifeline. lifeline.c: the interface and the thread; join.c: connections; lead.c:
 * what only rank 0 does; verdict.c: whom it blames, and stalls. */
#ifndef PSRING_COMMON_NET_LIFELINE_LIFELINE_IMPL_H
#define PSRING_COMMON_NET_LIFELINE_LIFELINE_IMPL_H

#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/base/text.h"
#include "common/base/thread.h"
#include "common/net/lifeline/lifeline.h"
#include "common/net/world/activity.h"
#include "common/net/world/world.h"

/*
 * What rank 0 knows of every rank, and whom it blames when the run does not go on. Pure functions
 * of that knowledge.
 */

/* What a rank tells of itself, about once a second. */
struct lifeline_beat {
    struct {
        struct activity_view view;
        uint32_t still_ms; /* it has not come on for so long */
        bool overdue;      /* and waits, longer than it may */
    } threads[ACTIVITY_THREADS];
    bool starting; /* and may wait for longer than later */
};

enum lifeline_rank_state {
    LIFELINE_ALIVE,     /* connected */
    LIFELINE_DONE,      /* has ended as it should */
    LIFELINE_FAILED,    /* has met an error of its own */
    LIFELINE_SIGNALLED, /* was told to end by a signal */
    LIFELINE_GONE,      /* its connection closed and it had said nothing */
};

struct lifeline_rank {
    enum lifeline_rank_state state;
    char host[WORLD_HOST_BYTES];
    bool told;        /* FAILED: it has logged its error */
    int exit_code;    /* FAILED, SIGNALLED */
    int64_t heard_ns; /* when its last beat came */
    struct lifeline_beat beat;
};

/* What keeps the run from going on, the surest cause last. */
enum lifeline_trouble {
    LIFELINE_NONE,
    LIFELINE_OVERDUE,     /* someone waits for longer than the time-out */
    LIFELINE_QUIET_ERROR, /* a rank failed, and left it to rank 0 to say why */
    LIFELINE_ERROR,       /* a rank failed and has said why */
    LIFELINE_SIGNAL,      /* a rank was told to end */
    LIFELINE_SILENT,      /* a rank sends nothing */
    LIFELINE_ENDED,       /* a rank's process has ended */
};

enum lifeline_trouble lifeline_find(const struct lifeline_rank *ranks, int count, int64_t now_ns,
                                    int64_t timeout_ns);

/*
 * Writes who is to blame for `trouble`, as lifeline_find has found it, to `text`: one line that
 * names ranks and hosts. Empty where rank 0's own message says all. Returns the exit code for all
 * ranks.
 */
int lifeline_blame(const struct lifeline_rank *ranks, int count, enum lifeline_trouble trouble,
                   int64_t now_ns, int64_t timeout_ns, char *text, size_t size);

/* Marks in `blamed` (count) who is to blame; returns the first one, or -1: all wait for each other.
 */
int lifeline_find_blamed(const struct lifeline_rank *ranks, int count,
                         enum lifeline_trouble trouble, int64_t now_ns, int64_t timeout_ns,
                         bool *blamed);

/*
 * The same as lifeline_blame of what is not an error yet: adds to `line` who keeps the others
 * waiting, LIFELINE_OVERDUE or LIFELINE_SILENT, and what that rank was last seen doing. Marks in
 * `late` (count) who does; none: all wait for each other.
 */
void lifeline_describe_stall(const struct lifeline_rank *ranks, int count,
                             enum lifeline_trouble trouble, int64_t now_ns, int64_t limit_ns,
                             bool *late, struct line *line);

/* "rank 1 on a, rank 2 on b and 3 more have": those of `which` (count). */
void lifeline_add_names(struct line *line, const struct lifeline_rank *ranks, int count,
                        const bool *which, const char *one, const char *many);

/*
 * The connections of the lifeline, a star with rank 0 in the middle. Frames of one size go both
 * ways, as they lie in memory: all ranks run one program.
 */

enum lifeline_frame_type {
    LIFELINE_BEAT = 1, /* to rank 0, and from it: this rank lives, and does this */
    LIFELINE_BYE,      /* to rank 0: this rank's state is no longer ALIVE, it closes */
    LIFELINE_END,      /* from rank 0: end with exit_code */
};

struct lifeline_frame {
    uint32_t magic, type;
    int32_t exit_code;
    uint32_t state; /* BYE: an enum lifeline_rank_state */
    uint32_t told;
    struct lifeline_beat beat;
};

struct lifeline_link {
    int fd; /* -1: none */
    size_t have;
    struct lifeline_frame frame; /* its first `have` bytes have come */
};

/* Never waits; what does not fit in the socket's buffer, or has nobody to read it, is lost. */
void lifeline_send(struct lifeline_link *link, const struct lifeline_frame *frame);
/* Sends the last frame: its reader wakes at once. */
void lifeline_send_last(struct lifeline_link *link, const struct lifeline_frame *frame);

enum lifeline_read { LIFELINE_READ_NOTHING, LIFELINE_READ_FRAME, LIFELINE_READ_CLOSED };

/* The next whole frame into link->frame; anything else closes the link. */
enum lifeline_read lifeline_read(struct lifeline_link *link);

void lifeline_link_close(struct lifeline_link *link);

/*
 * Stalls: waits and silences that are longer than usual, but not yet an error. For whoever hears
 * all ranks: it says once who keeps the others waiting, for what, and what that rank was last seen
 * doing; and once that it goes on. What would end the run, at a lower limit (lifeline_blame).
 *
 * A rank tells of itself once a tick, about a second. So three ticks are the least after which
 * there is a warning, and it comes up to two ticks after the limit: at every look of the last one
 * and a half the same rank must have been the one that the others waited for.
 *
 * Pure: no clock, no log. Cost of a look: a copy of all beats, once a second.
 * Source of the idea: Horovod's stall inspector.
 */

struct stall_watch {
    int64_t limit_ns;   /* 0: says nothing */
    int64_t tick_ns;    /* between a rank's beats */
    int64_t timeout_ns; /* that ends the run */
    bool silence_only;  /* what the ranks wait for is another one's to tell */
    int count;
    struct lifeline_rank *ranks; /* (count) as they would be if --timeout were that limit */
    bool *late;                  /* (count) who was told of */
    bool *suspects;              /* (count) who have kept the others waiting since trouble_ns;
                                    none: all wait for each other, if there is `trouble` */
    bool *found;                 /* (count) the same of one look */
    bool trouble;
    int64_t trouble_ns;
    int64_t since_ns; /* the wait, or the silence, has begun */
    bool told;
};

/* Sets the arrays; the caller has set limit_ns, tick_ns, timeout_ns. STATUS_NO_MEMORY: not
 * logged. */
enum status stall_watch_init(struct stall_watch *watch, int count);
void stall_watch_fini(struct stall_watch *watch);

/* One look at all ranks (count). True: `text` is to be told, one line. */
bool stall_watch_look(struct stall_watch *watch, const struct lifeline_rank *ranks, int64_t now_ns,
                      char *text, size_t size);

/* What the lifeline's thread keeps. */

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
