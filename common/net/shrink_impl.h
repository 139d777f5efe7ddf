/*
 * Internal to shrink.c, shrink_vote.c and shrink_join.c: what survivors know of each other, how a
 * leader decides on the next world, and how newcomers enter it.
 */
#ifndef PSRING_COMMON_NET_SHRINK_IMPL_H
#define PSRING_COMMON_NET_SHRINK_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/base/status.h"
#include "common/net/control.h"
#include "common/net/world.h"

enum {
    SHRINK_RANKS_MOST = 1024, /* identities in the life of a job */
    SHRINK_WORDS = SHRINK_RANKS_MOST / 64,
    SHRINK_GUESTS_MOST = 4,  /* newcomers of one decision; further ones wait for the next */
    SHRINK_CALLS_MOST = 64,  /* calls on newcomers in one meeting */
    SHRINK_ANSWER_MS = 1500, /* for a message that its sender owes at once */
    SHRINK_GAPS = 3,
};

/* A set of identities. */
struct members {
    uint64_t words[SHRINK_WORDS];
};

static inline bool members_have(const struct members *set, int identity)
{
    return set->words[identity / 64] >> identity % 64 & 1;
}

static inline void members_remove(struct members *set, int identity)
{
    set->words[identity / 64] &= ~(UINT64_C(1) << identity % 64);
}

static inline void members_add(struct members *set, int identity)
{
    set->words[identity / 64] |= UINT64_C(1) << identity % 64;
}

static inline bool members_are_none(const struct members *set)
{
    static const struct members none;
    return memcmp(set, &none, sizeof none) == 0;
}

static inline void members_include(struct members *set, const struct members *more)
{
    for (int word = 0; word < SHRINK_WORDS; word++)
        set->words[word] |= more->words[word];
}

/* Keeps what is in `to`, too. */
static inline void members_narrow(struct members *set, const struct members *to)
{
    for (int word = 0; word < SHRINK_WORDS; word++)
        set->words[word] &= to->words[word];
}

/* A world that was decided on. */
struct view {
    uint32_t epoch, unused; /* 0: the first world */
    struct members members;
    struct members founders; /* a world that follows has one of them */
    struct members missing;  /* former members, unless they are known to have ended */
    struct members voters;   /* of a promise: a world that follows it needs most of them */
};

struct door; /* shrink_join.c */

struct reunion {
    struct listener listener;
    uint64_t job;      /* the first world's run id */
    int identity;      /* rank in the first world, or what a leader gave a newcomer; -1: none yet */
    int count;         /* of the identities that exist, as far as this process knows */
    struct door *door; /* where newcomers knock; NULL: none can */
    bool excluded;
    struct view base;      /* the last world that this process has entered */
    struct view promise;   /* the last one for which it has sent READY */
    uint32_t epoch;        /* of the newest decision that it knows */
    struct members silent; /* did not answer since it entered that world, or may have excluded it */
    _Atomic int64_t acted_ns;             /* when it last took part in a world or a meeting */
    _Atomic int64_t gaps_ns[SHRINK_GAPS]; /* the longest without that: [0] since the last operation
                                           * of all ranks, [1] from the one before it, ... */
    union address at[SHRINK_RANKS_MOST];  /* where the members of `promise` meet, by identity */
};

/* A newcomer that has knocked at a door. */
struct invitation {
    uint64_t ticket;  /* the job in the hello of the leader that it awaits; 0: no invitation */
    union address at; /* where it awaits that */
};

/* From a comer, whose identity its hello had. */
struct claim {
    struct control_head head;
    uint32_t timed_out; /* its world failed because a rank was silent */
    int32_t count;      /* as in its reunion */
    struct view base, promise;
    uint32_t epoch;
    int32_t first;                              /* identity of the first newcomer that may vote */
    union address promised[SHRINK_GUESTS_MOST]; /* where it and the next ones listen */
    struct invitation guests[SHRINK_GUESTS_MOST];
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
    struct control_input input;
    struct claim claim; /* valid if it has come */
};

struct attempt {
    struct reunion *reunion;
    bool timed_out;
    int summoner; /* a lower identity that leads and awaits this process; INT_MAX: none */
    int64_t timeout_ms, deadline_ns;
    enum status refused; /* why a newcomer may not enter */
    int dismissed;       /* times that a newcomer waited at a door and was not let in */
    int called;          /* newcomers that this leader has called */
    uint64_t tickets[SHRINK_CALLS_MOST];
    int sockets[SHRINK_RANKS_MOST]; /* copies of the comers' sockets, for listener_wait; -1: none */
    struct comer comers[SHRINK_RANKS_MOST]; /* by identity */
};

enum outcome {
    WAIT,  /* for more */
    NEXT,  /* ask the next identity */
    AGAIN, /* all begin again */
    AGREED,
    OUT,     /* the others have continued without this process */
    REFUSED, /* a newcomer */
};

enum shrink_type {
    SHRINK_CLAIM = CONTROL_SHRINK,
    SHRINK_HOLD,
    SHRINK_AGAIN,    /* this attempt has failed; after DECISION: the leader has taken it back */
    SHRINK_EXCLUDED, /* the others have continued without the receiver */
    SHRINK_DECISION,
    SHRINK_READY,
    SHRINK_GO,
    SHRINK_KNOCK,
};

/* All messages but CLAIM and KNOCK. */
struct word {
    struct control_head head;
    /* Only of DECISION: */
    struct view view;
    int32_t identity; /* the receiver's */
    int32_t count;    /* of the identities that exist */
    int32_t guests;   /* the first identity of the decision's newcomers */
    uint32_t unused;
};

struct decision {
    struct word word;
    union address at[SHRINK_RANKS_MOST]; /* (count) by identity; port 0: not known */
};

/* Sends a word other than DECISION. 0 or an errno value. */
int shrink_say(const struct reunion *reunion, int socket, enum shrink_type type);
/* Gets a word of this type; `room` is for its end, too. ECANCELED: AGAIN came instead. */
int shrink_await(int socket, struct control_input *input, struct word *word, size_t room,
                 enum shrink_type type, int64_t timeout_ms);
/* Promises the leader's decision and waits for GO. */
enum outcome shrink_obey(struct attempt *a, int socket, struct control_input *input,
                         const struct decision *decision);
/* Sends HOLD to all comers. Does not wait, because a stopped comer reads nothing. */
void shrink_hold(struct attempt *a);

/* Notes that this process takes part, and for how long it has not. */
void shrink_acts(struct reunion *reunion);
/* The same after a wait for others. A time of up to most_ms was the wait. False: it was longer. */
bool shrink_waited(struct reunion *reunion, int64_t most_ms);
/* Forgets how long it did not take part. */
void shrink_acts_anew(struct reunion *reunion);
/* Whether it took no part for longer than limit_ms, after which not all ranks of its world are
 * known to have been there. */
bool shrink_was_away(const struct reunion *reunion, int64_t limit_ms);

/* The last world that a process here has entered. */
const struct view *shrink_newest_base(const struct attempt *a);

/* What the next world takes over from the last one and from its members' newer promises. voters:
 * their majority may continue. missing: former members, unless they are known to have ended. */
struct view shrink_inherited(const struct attempt *a);

/* Whom the next world may have: the members of the last one, as far as all who come promised. */
struct members shrink_eligible(const struct attempt *a);

/* Decides on the next world, of those in `set` who have come. False: it may not follow. */
bool shrink_decide(const struct attempt *a, const struct members *set, struct view *next);

/* A process that is in no world yet. NULL: no memory. */
struct reunion *reunion_new(void);
struct attempt *shrink_attempt_new(struct reunion *reunion, bool timed_out, int64_t timeout_ms);
/* Until which a member attempts to agree. */
void shrink_set_deadline(struct attempt *a);
/* Attempts until this process is in a world after `failed`. Frees `a`. */
enum status shrink_next_world(struct world **out, struct world *failed, struct attempt *a);

/* -------- newcomers (shrink_join.c) ----------------------------------------------------------- */

/* A rank's door: it listens at `here`, with the port of the rendezvous if that is free and `first`
 * is true. NULL: no memory. Errors: logged. Through a door that cannot listen no newcomer can
 * enter. */
struct door *door_open(const union address *here, bool first, const struct world_options *options);
/* After a new world: those that wanted to be in it, and are not, knock again. */
void door_clear(struct door *door);

struct claim shrink_claim_of(const struct attempt *a);
/* The leader learns of newcomers that a comer has promised: it must know whether they live. */
void shrink_learn(struct reunion *reunion, const struct claim *claim);

/* The leader: connects to the newcomers that the claims name and adds those that live to `next`.
 * Returns the identity of the first. */
int shrink_invite(struct attempt *a, const struct claim *own, struct view *next);

/* One attempt of a process whose reunion has no identity. AGREED: *socket leads to the leader. */
enum outcome shrink_enter(struct attempt *a, int *socket);

#endif
