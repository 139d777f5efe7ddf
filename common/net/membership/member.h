/*
 * Workers that join a running job and leave it. A job is a sequence of *generations*: in each, who
 * takes part is fixed, and everything is as in a job that was started with as many ranks: a world
 * by rendezvous, ranks 0 to W - 1 for workers, then the servers. A *coordinator* (coordinator.h), a
 * thread of the first server, decides who is in the next generation, and with which rank. Everybody
 * is a *member*: it has a connection to the coordinator from its first moment to its last.
 *
 *     member_open(&member, &options)
 *     for each generation:
 *         member_meet(member, &place, &generation)     waits for all others
 *         world_open(...) with what it says; member_watch(member, interrupt, ...)
 *         steps, until one is done that is member_until(member) or later: agreed with the others
 *         member_watch(member, NULL, NULL); world_close(...)
 *     member_leave(...) or member_done(...)
 *     member_close(&member)
 *
 * A member whose connection closes, or that is silent for the time-out, is lost: the coordinator
 * ends the generation, members interrupt what they wait for and meet again. Who has done most steps
 * comes first there; of those the one that has been there longest; so rank 0's weights are the ones
 * to go on with, and newcomers come last. A lost server ends the job.
 *
 * Threads: one of its own hears the coordinator; all functions are called on the owner's.
 * Cost: frames of 128 bytes, five a second each way. Source of the term generation: torchelastic.
 */
#ifndef PSRING_COMMON_NET_MEMBERSHIP_MEMBER_H
#define PSRING_COMMON_NET_MEMBERSHIP_MEMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/status.h"

enum { MEMBER_NOTE_BYTES = 64, MEMBER_ADDRESS_BYTES = 80 };
#define MEMBER_NO_STEP UINT64_MAX

enum member_role { MEMBER_WORKER, MEMBER_SERVER };

struct member_options {
    const char *address; /* "tcp://HOST:PORT", where the coordinator listens */
    uint64_t token;      /* the job's: the coordinator lets in no one else */
    enum member_role role;
    int index;                  /* a server's number, from 0 */
    const char *job;            /* a worker's: the options that all must have alike, a line each */
    uint64_t join_after;        /* a worker's: takes part once so many steps are done */
    int64_t timeout_ms;         /* a coordinator that is silent for longer has been lost */
    int64_t startup_timeout_ms; /* until the coordinator is there; until others are there, from when
                                 * it last said for whom it waits */
};

/* Where a worker stands between two generations. */
struct member_place {
    uint64_t step;    /* that its weights are after; MEMBER_NO_STEP: it has none */
    uint64_t images;  /* of its own that are in weights: for the coordinator's account */
    int workers_most; /* so many can take part; newcomers beyond are refused. 0: any number */
    unsigned char note[MEMBER_NOTE_BYTES]; /* rank 0's comes to all with the generation */
    enum status ended;                     /* how its generation has: not STATUS_OK, by an error */
};

struct member_generation {
    uint32_t number; /* from 1 */
    uint64_t token;  /* of its world: the job's and its own */
    int rank, workers, servers;
    char address[MEMBER_ADDRESS_BYTES]; /* "tcp://ADDRESS:PORT" of the rendezvous */
    int listening;                      /* on rank 0: the socket that listens there, the caller's */
    uint64_t step;                      /* rank 0's, as the following */
    unsigned char note[MEMBER_NOTE_BYTES];
};

struct member;

/* Connects and asks to take part. Errors: logged. `options` is copied, its texts are borrowed. */
enum status member_open(struct member **member, const struct member_options *options);

/*
 * Waits until the next generation begins. STATUS_STOPPED: the job has ended as it should, or
 * *stop, which a signal handler may set, has become true. Any other: it cannot go on (logged), with
 * the status that the one who met it had; STATUS_TIMEOUT: too few have come.
 */
enum status member_meet(struct member *member, const struct member_place *place, bool (*stop)(void),
                        struct member_generation *generation);

/* From now on, if this generation cannot go on, `interrupt` is called: on the member's thread, or
 * at once. NULL: no more; then it has returned. */
void member_watch(struct member *member, void (*interrupt)(void *context), void *context);

/* The step after which somebody wants to join, as far as this member knows; UINT64_MAX: nobody.
 * 0: as soon as may be. */
uint64_t member_until(const struct member *member);

/* Whether the present generation cannot go on, or the job has ended: for waits of set-up, before
 * there is anything that member_watch could interrupt. Any thread. */
bool member_over(struct member *member);

/* Whether the coordinator has ended the job, or is lost: nobody is to meet again. */
bool member_ended(struct member *member);

/* Takes part no more. / Training has ended. */
void member_leave(struct member *member, const struct member_place *place);
void member_done(struct member *member, const struct member_place *place);
/* The job cannot go on; `text` tells the others why. */
void member_abort(struct member *member, enum status status, const char *text);

/* Frees *member and sets it to NULL. */
void member_close(struct member **member);

#endif
