/*
 * Internal to shrink.c and shrink_vote.c: what the survivors of a world know of each other, and the
 * rule by which a leader decides on the next world. Pure: no messages, no clock.
 */
#ifndef PSRING_COMMON_NET_SHRINK_IMPL_H
#define PSRING_COMMON_NET_SHRINK_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/net/control.h"

enum { SHRINK_RANKS_MOST = 1024, SHRINK_WORDS = SHRINK_RANKS_MOST / 64 };

/* A set of identities. */
struct members {
    uint64_t words[SHRINK_WORDS];
};

static inline bool has(const struct members *set, int identity)
{
    return set->words[identity / 64] >> identity % 64 & 1;
}

static inline void add(struct members *set, int identity)
{
    set->words[identity / 64] |= UINT64_C(1) << identity % 64;
}

/* Keeps what is in `to`, too. */
static inline void narrow(struct members *set, const struct members *to)
{
    for (int word = 0; word < SHRINK_WORDS; word++)
        set->words[word] &= to->words[word];
}

/* A world that was decided on. */
struct view {
    uint32_t epoch, unused; /* 0: the first world */
    struct members members;
};

struct reunion {
    struct listener listener;
    uint64_t job;        /* the first world's run id */
    int identity, count; /* rank and size of the first world */
    bool excluded;
    struct view base;      /* the last world that this process has entered */
    struct view promise;   /* the last one for which it has sent READY */
    struct members silent; /* did not answer since it entered that world */
    union address at[];    /* (count): where the processes meet, by identity */
};

/* From a comer, whose identity its hello had. */
struct claim {
    struct control_head head;
    uint32_t timed_out; /* its world failed because a rank was silent */
    uint32_t unused;
    struct view base, promise;
};

enum fate {
    ABSENT, /* not known yet */
    COME,   /* its claim has arrived */
    ENDED,  /* its process has ended */
    SILENT,
};

struct comer {
    enum fate fate;
    int socket;                 /* -1: none */
    int closes;                 /* times that it closed without a word */
    bool unreachable;           /* in this attempt */
    int64_t probe_ns, probe_ms; /* when to probe it next; the interval */
    size_t have;
    struct claim claim; /* valid if it has come */
};

struct attempt {
    struct reunion *reunion;
    bool timed_out;
    int summoner; /* a lower identity that leads and awaits this process; INT_MAX: none */
    int64_t timeout_ms, deadline_ns;
    int *sockets;          /* (count): copies of the comers' sockets, for listener_wait; -1: none */
    struct comer comers[]; /* (count) by identity */
};

/* The last world that a process here has entered. */
const struct view *shrink_newest_base(const struct attempt *a);

/* Whom the next world may have: the members of the last one, as far as all who come promised. */
struct members shrink_eligible(const struct attempt *a);

/* Decides on the next world, of those in `set` who have come. False: too few have. */
bool shrink_decide(const struct attempt *a, const struct members *set, struct view *next);

#endif
