/*
 * Workers that join a running job and leave it. A job is a sequence of *generations*. Within a
 * generation the members are fixed, and everything works as in a job that was started with this
 * number of ranks. They meet at a rendezvous; workers are the first ranks, before the servers. A
 * *coordinator* (coordinator.h), a thread of the first server, chooses the members and ranks of the
 * next generation. Every worker and server is a *member*. It is connected to the coordinator as
 * long as it lives.
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
 * A member is lost if its connection closes or if it is silent for the time-out. The coordinator
 * then ends the generation; the members interrupt their waits and meet again. Ranks follow the
 * number of steps done, most first, then the time in the job, longest first. Rank 0 therefore has
 * the weights to continue with, and newcomers come last. A lost server ends the job.
 *
 * A *durable* job survives its servers (durable.c): the first server keeps the job in a file. If
 * the coordinator is lost, members leave their generation, keep their state and return. The
 * coordinator takes a worker back only if it belongs to the last generation that began. It waits
 * for these workers, at most for the time-out. The file has the generation's number and workers
 * before any member knows of it, so no number is used twice.
 *
 * Threads: a member's own thread reads from the coordinator. The owner's thread calls all
 * functions, except where noted. Cost: frames of 176 bytes, five per second in each direction.
 * Source of the term generation: torchelastic.
 */
#ifndef PSRING_EXPERIMENTS_ELASTIC_MEMBER_H
#define PSRING_EXPERIMENTS_ELASTIC_MEMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/net/control.h"

enum { MEMBER_NOTE_BYTES = 56, MEMBER_ADDRESS_BYTES = 80 };
#define MEMBER_NO_STEP UINT64_MAX

enum member_role { MEMBER_WORKER, MEMBER_SERVER };

struct member_options {
    const char *address; /* "tcp://HOST:PORT", where the coordinator listens */
    uint64_t token;      /* the job's token: the coordinator refuses all other processes */
    enum member_role role;
    int index;           /* a server's number, from 0 */
    bool durable;        /* a server's, from its file: the job survives its servers */
    uint32_t first_id;   /* a server's job (struct job_record); 0: not known */
    const char *job;     /* a worker's options that must be equal on all workers, one per line */
    uint64_t join_after; /* a worker's: joins when the job has done this many steps */
    int64_t timeout_ms;  /* a coordinator that is silent for longer is lost */
    int64_t startup_timeout_ms; /* limit for reaching the coordinator, and for the other members to
                                   come, counted from the last NOTE */
    bool (*stop)(void);         /* ends the search for the coordinator; NULL: not used */
};

/* A worker's state between two generations. */
struct member_place {
    uint64_t step;    /* the step that its weights belong to; MEMBER_NO_STEP: no weights */
    uint64_t images;  /* its own images in the weights, which the coordinator adds up */
    uint64_t batch;   /* its own images in each step */
    int workers_most; /* largest number of workers; more newcomers are refused. 0: no limit */
    unsigned char note[MEMBER_NOTE_BYTES]; /* rank 0's note is sent to all with the generation */
    enum status ended; /* how its generation ended; not STATUS_OK: by an error */
};

struct member_generation {
    uint32_t number; /* from 1 */
    bool durable;    /* the job survives its servers */
    uint64_t token;  /* token of its world, derived from the job's token and the number */
    int rank, workers, servers;
    char address[MEMBER_ADDRESS_BYTES]; /* "tcp://ADDRESS:PORT" of the rendezvous */
    int listening; /* on rank 0: the socket that listens there; the caller owns it */
    uint64_t step; /* rank 0's, like `note` */
    unsigned char note[MEMBER_NOTE_BYTES];
};

struct member;

/* Connects to the coordinator. Copies `options` and borrows its texts. Errors: logged, except
 * STATUS_STOPPED: options->stop() returned true. */
enum status member_open(struct member **member, const struct member_options *options);

/*
 * Asks to take part and waits until the next generation begins. In a durable job it first connects
 * again if the coordinator was lost. STATUS_STOPPED: the job has ended normally, or stop() returns
 * true (NULL: never). STATUS_TIMEOUT: too few members have come, or no coordinator. Other errors:
 * the job cannot continue (logged); the status is that of the member that failed.
 */
enum status member_meet(struct member *member, const struct member_place *place, bool (*stop)(void),
                        struct member_generation *generation);

/* Sets the function to call if this generation cannot continue. It is called on the member's
 * thread, or at once in this call. NULL: no function; a running call has then returned. */
void member_watch(struct member *member, void (*interrupt)(void *context), void *context);

/* The step after which a worker wants to join, as far as this member knows. UINT64_MAX: no worker
 * wants to join. 0: as soon as possible. */
uint64_t member_until(const struct member *member);

/* Whether the present generation cannot continue or the job has ended. For waits during set-up,
 * before member_watch has anything to interrupt. Any thread. */
bool member_over(struct member *member);

/* Whether the coordinator has ended the job or is lost, so that no generation follows. */
bool member_ended(struct member *member);

/* Leaves the job. */
void member_leave(struct member *member, const struct member_place *place);
/* Reports that training has ended. In a durable job it waits for the coordinator's answer, and
 * repeats the report if the coordinator was lost. STATUS_STOPPED: stop() returns true. Other errors
 * as in member_meet. */
enum status member_done(struct member *member, const struct member_place *place,
                        bool (*stop)(void));
/* Ends the job for all members, with the reason `text`. */
void member_abort(struct member *member, enum status status, const char *text);

/* Frees *member and sets it to NULL. */
void member_close(struct member **member);

/*
 * Internal to the membership: the messages between members and coordinator (common/net/control.h).
 * Each message is followed by a text.
 */

#define MEMBERSHIP_MAGIC UINT64_C(0x7265626d65525350) /* "PSRember" */

/* The job in the messages of members and the coordinator. A hello, and a member that does not know
 * the first id of a durable job, has 0 for it. */
static inline uint64_t membership_job(uint64_t token, uint32_t first_id)
{
    return MEMBERSHIP_MAGIC ^ token ^ first_id;
}

enum {
    MEMBERSHIP_TEXT_BYTES = 4096,
    MEMBERSHIP_SEND_MS = 1000,  /* limit for an answer to a process of version 1 */
    MEMBERSHIP_BEAT_MS = 200,   /* each end sends a BEAT this often */
    MEMBERSHIP_QUIET_MS = 5000, /* a coordinator that is silent for this long gets no more */
    MEMBERSHIP_GRACE_MS = 5000,
    MEMBERSHIP_JOIN_MS = 5000, /* limit from hello to JOIN or SUMMON; then the seat is freed */
};

enum membership_type {
    /* From a member. The answer to SUMMON is END. */
    MEMBERSHIP_JOIN = CONTROL_MEMBERS, /* wants to join; text: the job's options */
    MEMBERSHIP_RETURN, /* had lost the coordinator, waits for the next generation; text: as JOIN */
    MEMBERSHIP_SUMMON, /* from the first server: the receiver is server `index` of its job. Has the
                          generation only if the job is durable */
    MEMBERSHIP_READY,  /* has left its generation; waits for the next */
    MEMBERSHIP_LEAVE,  /* has left its generation and the job; a server: after END */
    MEMBERSHIP_DONE,   /* training has ended */
    MEMBERSHIP_ABORT,  /* the job cannot continue: the text has the reason */
    /* From the coordinator. */
    MEMBERSHIP_GENERATION, /* a generation begins: `index` is the rank */
    MEMBERSHIP_CHANGE,     /* a newcomer waits: end this generation at `step` */
    MEMBERSHIP_OVER,       /* this generation cannot continue; text: the reason */
    MEMBERSHIP_NOTE,       /* text: what the coordinator waits for */
    MEMBERSHIP_END,        /* the job, or this member's part in it, ends; `status`, text: reason */
    /* From both. */
    MEMBERSHIP_BEAT,
};

/*
 * The effect of a member's message, by the state that the coordinator has for the member (enum
 * seat_state). RUNNING (earlier): the message belongs to an earlier generation, because the member
 * sent it before it knew of this one.
 *
 *     says    NEW (2)        WAITING  RUNNING                        (earlier)     DONE
 *     JOIN    WAITING (1)    lost     lost                           lost          lost
 *     RETURN  WAITING (3)    lost     lost                           lost          lost
 *     SUMMON  answered, gone lost     lost                           lost          lost
 *     READY   lost           lost     WAITING; after an error: OVER  lost          lost
 *     DONE    DONE (3)       lost     DONE                           lost          lost
 *     LEAVE   lost           gone     gone; after an error: OVER     gone; OVER    gone
 *     ABORT   lost           lost     END to all                     lost          lost
 *     BEAT    nothing, as long as it comes: a member that is silent, or closes, is lost
 *
 * (1) or refused by END, and gone. A member of another job is refused, too.
 * (2) A connection gets a seat only if its hello has the job's token and a seat is free. It loses
 * the seat after MEMBERSHIP_JOIN_MS without JOIN or SUMMON. END has the reason in all these cases.
 * (3) In a durable job, if the member belongs to the last generation. Its earlier seat is lost, but
 * DONE takes its place. After the end of training the answer is END, also to a server's JOIN. END
 * also ends the earlier of two processes with one server number.
 *
 * OVER goes to all RUNNING members. A member that does not leave the generation, although others
 * do, is lost. Lost means gone. If the lost member was RUNNING, OVER follows; if it was a server of
 * a job that is not durable, END to all.
 *
 * When no member is RUNNING, the coordinator sends:
 *   END         if a worker is DONE, or no member has the weights and the job is not durable. If a
 *               worker is DONE in a durable job, the first server gets it after the others' LEAVE
 *   GENERATION  else, to the members that take part, and CHANGE for each newcomer that still waits
 *   NOTE        else: which members are missing
 * A member obeys GENERATION, NOTE and END at any time, but CHANGE and OVER only in their
 * generation.
 */
struct membership_frame {
    struct control_head head;  /* has the generation (0: none yet) and the status of END */
    int32_t role, index;       /* enum member_role, a server's number; a rank */
    int32_t workers, servers;  /* GENERATION */
    uint32_t port;             /* at which rank 0 listens, at `address` */
    uint32_t id;               /* GENERATION, RETURN, DONE: the member's number in a durable job;
                                  SUMMON: the job's first one. NOTE: not 0 if the job is durable */
    unsigned char address[16]; /* written by address_pack */
    struct member_place place; /* JOIN, CHANGE: its step is that of the change */
};

/* The input of a connection. */
struct membership_reader {
    struct control_input input;
    struct membership_frame frame;
    char text[MEMBERSHIP_TEXT_BYTES + 1];
};

/* Sends `frame` with `text`, which may be NULL. One thread at a time. Returns 0 or an errno value.
 * Does not wait: a receiver that leaves the system's buffer full has not read for minutes. After an
 * error the connection is shut down; both ends can still read earlier messages. */
int membership_send(int socket, struct membership_frame frame, const char *text);

/* The same for a message that has only these fields. */
int membership_say(int socket, uint64_t job, enum membership_type type, uint32_t generation,
                   enum status status, const char *text);

/* The time of the other end's last sign of life. If this thread, which should have looked at
 * due_ns, did not run until now, for example because its process was stopped, that time does not
 * count. */
int64_t membership_heard_ns(int64_t heard_ns, int64_t due_ns, int64_t now_ns);

/* Reads without waiting. CONTROL_MESSAGE: reader->frame and reader->text are valid until the next
 * call. Invalid input gives CONTROL_CLOSED. */
enum control_read membership_read(struct membership_reader *reader, int socket);

/* Connects to "tcp://HOST:PORT", with retries for `timeout_ms`, and sends a hello with the job's
 * token. STATUS_STOPPED: cancelled(context) returned true. STATUS_TIMEOUT is logged. */
enum status membership_connect(const char *address, uint64_t token, int64_t timeout_ms,
                               cancelled_call *cancelled, void *context, int *socket);

#endif
