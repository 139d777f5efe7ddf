/*
 * Chooses the members of an elastic job (member.h): a thread of the first server. It listens at the
 * address that all members were given. Members connect and stay connected. Strangers, members with
 * other options, and members that come after the end get the reason and delay no member.
 *
 * The first worker's options become the job's. A generation begins when all servers and enough
 * workers wait for it, and no member is in the previous generation. It is over for all members when
 * one of its workers is lost or reports an error.
 *
 * In a durable job it writes the job's record before it sends GENERATION. If it cannot, the members
 * wait, and it tries again; without a first record the job ends. After a restart it waits
 * for the workers of the last generation. If none has weights, the next generation continues from
 * the place of the first server, which has read the state that worker 0 had sent (durable.c).
 *
 * When training has ended, the first server is the last to hear END: the other servers of a durable
 * job remove their files first. One that has died is awaited for the start-up time-out.
 */
#ifndef PSRING_EXPERIMENTS_ELASTIC_COORDINATOR_H
#define PSRING_EXPERIMENTS_ELASTIC_COORDINATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/base/thread.h"
#include "experiments/elastic/member.h"

enum { COORDINATOR_MEMBERS = 1024, COORDINATOR_JOB_BYTES = 4097 };

struct coordinator_options {
    uint64_t token;             /* the job's token: connections without it are refused */
    const char *address;        /* "tcp://HOST:PORT" to listen at; port 0: chosen by the system */
    int workers_first;          /* workers needed for the first generation, */
    int workers_min;            /* and for each later one */
    int64_t timeout_ms;         /* a member that is silent for longer is lost */
    int64_t stall_warning_ms;   /* silence after which to warn; 0: no warning */
    int64_t startup_timeout_ms; /* the members' own. After one leaves a generation, the others have
                                   the longer time-out plus MEMBERSHIP_GRACE_MS */
    const char *checkpoint;     /* the folder of a durable job; else NULL */
    uint64_t checkpoint_steps;  /* a generation ends after this many steps; 0: no limit */
};

struct config;
struct coordinator;

/* The job that a server serves: its own, or that of another server. */
struct coordinator_job {
    char options[COORDINATOR_JOB_BYTES]; /* the first worker's member_options.job */
    bool summoned; /* another server's job: this one is server `index` there */
    int index;
    uint32_t first_id;   /* of that job */
    uint32_t generation; /* if summoned, that of a durable job; 0 before the first one */
    char address[MEMBER_ADDRESS_BYTES]; /* of its own coordinator, or of the other server's */
};

/* What a server of a durable job keeps in DIR/job.checkpoint. */
struct job_record {
    uint64_t token;
    struct coordinator_job job;
    uint32_t generation; /* the last one that has begun, or may have; 0: there is no record */
    uint32_t first_id;   /* of the job's members; random and below 2^31, so that members of another
                            job do not fit */
    /* Only of the first server. */
    int servers;
    uint32_t next_id;
    uint64_t step, images; /* as in struct coordinator, like the next ones */
    int worker_count, done;
    bool ended; /* the workers know that training has ended */
    uint32_t workers[COORDINATOR_MEMBERS];
};

/* Writes the record, durable against a power failure. STATUS_IO (logged). / Reads it. Errors:
 * logged. STATUS_INPUT: it is damaged, or another file. STATUS_USAGE: of another token. */
enum status job_save(const char *dir, const struct job_record *record);
enum status job_load(const char *dir, uint64_t token, struct job_record *record);

/* Listens and starts the thread. Copies `options` and `record`. The record has generation 0 if the
 * job is new, and also first_id 0 if it is not durable. Errors: logged. */
enum status coordinator_open(struct coordinator **coordinator,
                             const struct coordinator_options *options,
                             const struct job_record *record);

/* Waits, without limit, for enough workers to begin or for another server's SUMMON. If all workers
 * leave before that, the job is forgotten: the next workers may have other options. */
void coordinator_wait_job(struct coordinator *coordinator, struct coordinator_job *job);

/* Sets the number of servers of the job. No generation begins before all are connected. */
void coordinator_set_servers(struct coordinator *coordinator, int servers);

/* Asks the server at `address` to be server `index` of this coordinator's job, and waits for its
 * answer. Does nothing once that server has joined. Errors: logged, and the job ends with the
 * reason. STATUS_USAGE: that server already has a job. */
enum status coordinator_summon(struct coordinator *coordinator, const char *address, int index,
                               const char *job);

/* Starts a thread for each other server of `config`, which summons it whenever the job lacks it. A
 * server that dies before it has a record would not return. */
enum status coordinator_summon_lacking(struct coordinator *coordinator,
                                       const struct config *config);

/* Ends the job, unless it has ended. */
void coordinator_end(struct coordinator *coordinator, enum status why, const char *text);

/* Ends the thread and closes all connections. Frees *coordinator and sets it to NULL. */
void coordinator_close(struct coordinator **coordinator);

/* The state of the coordinator's thread. coordinator.c has the interface, the thread and the
 * messages of members. coordinator_generation.c begins and ends generations. serve.c has the
 * summons. */

enum seat_state {
    SEAT_NEW,     /* has sent its hello */
    SEAT_WAITING, /* waits for the next generation */
    SEAT_RUNNING, /* in the present generation */
    SEAT_DONE,    /* has trained to the end */
};

/* One member, as the coordinator sees it. */
struct seat {
    int socket;
    enum seat_state state;
    struct membership_reader reader;
    char host[sizeof((struct hello *)NULL)->host];
    struct membership_frame last; /* JOIN or READY: its role and its place */
    bool trained;                 /* has the job's weights */
    int rank;                     /* only RUNNING */
    int told;                     /* WAITING: the counts of its last NOTE; see say_who_is_there */
    uint64_t age;                 /* lower: joined earlier */
    int64_t came_ns;              /* time of its hello */
    int64_t heard_ns;
    int64_t silent_since_ns; /* since when it is silent, if warned about; else 0 */
};

/* A server other than the first one. */
struct other_server {
    struct coordinator *coordinator;
    int index;
    char address[300];
    struct thread thread; /* summons it */
};

struct coordinator {
    struct coordinator_options options;
    struct listener listener;
    char address[MEMBER_ADDRESS_BYTES]; /* "tcp://ADDRESS:PORT", at which it listens */
    struct thread thread;
    int other_count; /* in `others`: serve.c */
    struct other_server *others;
    struct seat *seats[COORDINATOR_MEMBERS];
    int sockets[COORDINATOR_MEMBERS]; /* of the seats; else -1 */
    int count, seats_most;            /* limited by file descriptors */
    bool warned;                      /* about a connection that got no seat */
    uint64_t next_age;
    struct monitor monitor; /* protects everything; the thread holds it except while it waits for
                               members; wakes: `has_job`, `complete`, `closing`, a lost seat */
    bool has_job, closing;
    bool complete; /* enough workers have come to begin; the job is not forgotten */
    struct coordinator_job job;
    int servers; /* 0: not known yet */

    uint32_t generation;
    bool running, over;  /* the generation has members; cannot continue */
    int64_t leave_by_ns; /* 0: no member has left the generation; else members still in it at this
                            time are lost */
    uint64_t step;       /* the step after which it began, or training has ended */
    int failures;        /* consecutive generations that ended by an error and without a step */

    uint64_t images;  /* images in the weights, of workers that have left or are counted as done */
    bool has_weights; /* a worker has, or had, trained weights */
    int accounted;    /* workers of the generation that have reported their place */
    int worker_count, done; /* of `workers`: the last of them have trained to the end */
    uint32_t workers[COORDINATOR_MEMBERS]; /* ids of the last generation's workers that have not
                                              left */
    bool ended;                            /* END was sent to all; no member is admitted */
    enum status end_status; /* not STATUS_OK: why the job has ended, like the next one */
    char end_text[MEMBERSHIP_TEXT_BYTES + 1];
    bool ended_well; /* training of a durable job has ended: members that return get END, too */

    /* A durable job. */
    uint32_t first_id;       /* an id is this + the seat's age; 0: the job is not durable */
    uint64_t own_job;        /* membership_job with it */
    int64_t return_by_ns;    /* until then, or until all have come, it waits for workers; 0: no */
    int64_t record_again_ns; /* when it tries again to write the record; 0: it is written */
    bool left[COORDINATOR_MEMBERS]; /* servers that have left after END */
    int64_t close_by_ns;            /* after END it waits for the other servers until then */
};

/* "worker 2 on a", "server 0 on a", "a worker on b". Returns text. */
const char *seat_name(const struct seat *seat, char *text, size_t size);
bool seat_is_worker(const struct seat *seat);

/* The seat of server `number`, or NULL. */
struct seat *coordinator_server(const struct coordinator *c, int number);

/* The index of a worker of the last generation that has not trained to the end. -1: not one. */
int coordinator_awaited(const struct coordinator *c, const struct seat *seat);
/* Counts the images of such a worker, which from then on has trained to the end. False if it is not
 * one. */
bool coordinator_count(struct coordinator *c, const struct seat *seat);
/* The images of a worker in the job's weights. */
uint64_t coordinator_images(const struct coordinator *c, const struct seat *seat);

/* Sends NOTE. */
void seat_note(const struct coordinator *c, const struct seat *seat, const char *text);
/* Handles a member that sends no more, because it `how`. Frees `seat`, like the next three. */
void seat_lost(struct coordinator *c, struct seat *seat, const char *how);
/* The same for a member that may live. It gets `text` if it cannot come back: a server of a durable
 * job can. */
void seat_drop(struct coordinator *c, struct seat *seat, const char *how, const char *text);
/* Sends the reason why it cannot take part. */
void seat_refuse(struct coordinator *c, struct seat *seat, enum status status, const char *text);
void coordinator_forget(struct coordinator *c, struct seat *seat);
/* Sends END to all members, and admits no further ones. */
void coordinator_end_all(struct coordinator *c, enum status status, const char *text);
/* Whether the job survives its servers. No job does before its first generation. */
bool job_is_durable(const struct coordinator *c);
/* Writes the record of a durable job, else does nothing. */
enum status coordinator_record(const struct coordinator *c);

/* Sends OVER to the members of the running generation: it cannot continue. */
void generation_over(struct coordinator *c, const char *text);
/* Sends CHANGE to the running members: they end the generation after `step`. */
void generation_announce(struct coordinator *c, uint64_t step);
/* Call after every event. Begins the next generation, or ends the job, if it is time. */
void generation_settle(struct coordinator *c, int64_t now_ns);

#endif
