/*
 * Internal to common/net: what rank 0 knows of every rank, and whom it blames when the run does not
 * go on. Pure functions of that knowledge.
 */
#ifndef PSRING_COMMON_NET_LIFELINE_VERDICT_H
#define PSRING_COMMON_NET_LIFELINE_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/text.h"
#include "common/net/world/activity.h"
#include "common/net/world/world.h"

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

#endif
