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
#ifndef PSRING_EXPERIMENTS_ELASTIC_MEMBER_H
#define PSRING_EXPERIMENTS_ELASTIC_MEMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/net/control.h"

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
    bool (*stop)(void);         /* ends the search for the coordinator; NULL: nothing does */
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

/*
 * Internal to the membership: what members and coordinator say to each other
 * (common/net/control.h), each message with a text after it.
 */

/* "PSRember". In a hello, run_id is this number XOR the job's token. */
#define MEMBERSHIP_MAGIC UINT64_C(0x7265626d65525350)

enum {
    MEMBERSHIP_TEXT_BYTES = 4096,
    MEMBERSHIP_SEND_MS = 1000, /* for a frame to leave; the system takes it at once, as a rule */
    MEMBERSHIP_BEAT_MS = 200,  /* each end says that often that it lives */
    MEMBERSHIP_GRACE_MS = 5000,
    MEMBERSHIP_JOIN_MS = 5000, /* from hello to JOIN or SUMMON; then the seat is free again */
};

enum membership_type {
    /* From a member; SUMMON is answered by END. */
    MEMBERSHIP_JOIN = CONTROL_MEMBERS, /* wants to take part; text: the job's options */
    MEMBERSHIP_SUMMON,                 /* from the first server: you are server `index` of my job */
    MEMBERSHIP_READY,                  /* its generation is over for it; waits for the next */
    MEMBERSHIP_LEAVE,                  /* its generation is over for it; takes part no more */
    MEMBERSHIP_DONE,                   /* training has ended */
    MEMBERSHIP_ABORT,                  /* the job cannot continue: the text has the reason */
    /* From the coordinator. */
    MEMBERSHIP_GENERATION, /* begins: `index` is the rank */
    MEMBERSHIP_CHANGE,     /* somebody waits for the end of this generation, at `step` */
    MEMBERSHIP_OVER,       /* this generation cannot go on: text says why */
    MEMBERSHIP_NOTE,       /* text: what it waits for */
    MEMBERSHIP_END,        /* of the job, or of this member's part in it: `status`, text says why */
    /* From both. */
    MEMBERSHIP_BEAT,
};

/*
 * What becomes of a member when it says something, by the state that the coordinator knows it in
 * (enum seat_state). RUNNING (earlier): what it says is of an earlier generation; it was sent
 * before this one was heard of.
 *
 *     says    NEW (2)        WAITING  RUNNING                        (earlier)     DONE
 *     JOIN    WAITING (1)    lost     lost                           lost          lost
 *     SUMMON  answered, gone lost     lost                           lost          lost
 *     READY   lost           lost     WAITING; after an error: OVER  lost          lost
 *     DONE    lost           lost     DONE                           lost          lost
 *     LEAVE   lost           gone     gone; after an error: OVER     gone; OVER    gone
 *     ABORT   lost           lost     END to all                     lost          lost
 *     BEAT    nothing, as long as it comes: a member that is silent, or closes, is lost
 *
 * (1) or refused by END, and gone.
 * (2) A connection gets a seat only if its hello has the job's token and a seat is free. It loses
 * the seat after MEMBERSHIP_JOIN_MS without JOIN or SUMMON. END says why in all these cases.
 * OVER goes to all who are RUNNING; who does not come out then,
 * while others do, is lost. Lost: gone; if it was RUNNING, OVER; if it was a server, END to all.
 *
 * When no member is RUNNING any more, the coordinator sends:
 *   END         if a worker is DONE or no member has the weights
 *   GENERATION  else, to the members that take part, and CHANGE for each newcomer that still waits
 *   NOTE        else: which members are missing
 * A member obeys GENERATION, NOTE and END at any time, CHANGE and OVER in their generation alone.
 */
struct membership_frame {
    struct control_head head;  /* with the generation (0: none yet), and the status of END */
    int32_t role, index;       /* enum member_role, a server's number; a rank */
    int32_t workers, servers;  /* GENERATION */
    uint32_t port, unused;     /* where rank 0 listens, at `address` */
    unsigned char address[16]; /* as address_pack writes it */
    struct member_place place; /* JOIN, CHANGE: its step is that of the change */
};

/* What is read of a connection. */
struct membership_reader {
    size_t have; /* bytes of `frame`, then of `text` */
    struct membership_frame frame;
    char text[MEMBERSHIP_TEXT_BYTES + 1];
};

/* Sends `frame` with its text, which may be NULL. One thread at a time. 0 or an errno value. After
 * an error the connection closes for both ends once they have read what came before. */
int membership_send(int socket, struct membership_frame frame, const char *text);

/* The same of a message that says no more than this. */
int membership_say(int socket, enum membership_type type, uint32_t generation, enum status status,
                   const char *text);

/* Does not wait. CONTROL_MESSAGE: reader->frame and reader->text, until the next call. Anything
 * else that comes is CONTROL_CLOSED. */
enum control_read membership_read(struct membership_reader *reader, int socket);

/* Connects to "tcp://HOST:PORT", trying again for `timeout_ms`, and says hello with the job's
 * token. STATUS_STOPPED: *stop has become true. STATUS_TIMEOUT is logged. */
enum status membership_connect(const char *address, uint64_t token, int64_t timeout_ms,
                               bool (*stop)(void), int *socket);

#endif
