/*
 * Who takes part in an elastic job (member.h): a thread of the first server. It listens at the
 * address that all were given; members connect and stay connected. Strangers, members with other
 * options and members that come when the job has ended are told so, and hold nobody up.
 *
 * The first worker's options become the job's. A generation begins when all servers and enough
 * workers wait for one, and nobody is in the last one any more. It is over for all when one of its
 * workers is lost, or says that it could not go on.
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
    uint64_t token;      /* of the job: connections without it are refused */
    const char *address; /* "tcp://HOST:PORT" to listen at; port 0: one of the system's choice */
    int workers_first;   /* so many must be there for the first generation to begin, */
    int workers_min;     /* and so many for each later one */
    int64_t timeout_ms;  /* a member that is silent for longer is lost */
    int64_t stall_warning_ms;   /* for so long: warned of; 0: not */
    int64_t startup_timeout_ms; /* members' own; once one has come out of a generation the others
                                 * have as long as the longer of the two, and a little more */
};

struct coordinator;

/* What a server is started for: its own job, or that of another server. */
struct coordinator_job {
    char options[COORDINATOR_JOB_BYTES]; /* the first worker's member_options.job */
    bool summoned;                       /* another server's: it is member number `index` there */
    int index;
    char address[MEMBER_ADDRESS_BYTES]; /* of its own coordinator, or of the other one */
};

/* Listens and starts the thread. `options` is copied. Errors: logged. */
enum status coordinator_open(struct coordinator **coordinator,
                             const struct coordinator_options *options);

/* The address at which it listens, "tcp://ADDRESS:PORT". */
const char *coordinator_address(const struct coordinator *coordinator);

/* Waits, without bound, for as many workers as begin, or for another server's word. Before that,
 * the job is forgotten when all workers have left again: the next ones may have other options. */
enum status coordinator_wait_job(struct coordinator *coordinator, struct coordinator_job *job);

/* How many servers the job has: no generation begins before they are there. */
void coordinator_set_servers(struct coordinator *coordinator, int servers);

/* Tells the server that listens at `address` to be number `index` of this coordinator's job, and
 * waits for its answer. Errors: logged, and the job ends with what is wrong. STATUS_USAGE: that
 * server has a job already. */
enum status coordinator_summon(struct coordinator *coordinator, const char *address, int index,
                               const char *job, int64_t timeout_ms);

/* Ends the job, if it has not ended. */
void coordinator_end(struct coordinator *coordinator, enum status why, const char *text);

/* Waits until all members have gone or have the reason, frees *coordinator and sets it to NULL. */
void coordinator_close(struct coordinator **coordinator);

/* The state of the coordinator's thread. coordinator.c has the interface, the thread and the
 * messages of members. coordinator_generation.c chooses the members of the next generation, and
 * ends a generation. */

enum seat_state {
    SEAT_NEW,     /* has said hello */
    SEAT_WAITING, /* for the next generation */
    SEAT_RUNNING, /* in this one */
    SEAT_DONE,    /* has trained to the end */
};

/* One member, as the coordinator sees it. */
struct seat {
    int socket;
    enum seat_state state;
    struct membership_reader reader;
    char host[sizeof((struct hello *)NULL)->host];
    struct membership_frame last; /* JOIN or READY: who it is and where it stands */
    bool trained;                 /* has weights of the job */
    int rank;                     /* RUNNING */
    int told;                     /* WAITING: what it has been told; see say_who_is_there */
    uint64_t age;                 /* the lower, the longer it has been there */
    int64_t came_ns;              /* when it said hello */
    int64_t heard_ns;
    int64_t silent_since_ns; /* warned of; 0: nothing is */
};

struct coordinator {
    struct coordinator_options options;
    struct listener listener;
    char address[MEMBER_ADDRESS_BYTES];
    struct thread thread;
    struct seat *seats[COORDINATOR_MEMBERS];
    int sockets[COORDINATOR_MEMBERS]; /* of the seats; -1 */
    int count, seats_most;            /* as many as there are descriptors for */
    bool warned;                      /* of a connection that gave another token */
    uint64_t next_age;
    struct monitor monitor; /* of all; the thread is inside but while it waits for members; wakes:
                               `has_job`, `complete` */
    bool has_job, closing;
    bool complete; /* so many workers have come that the job can begin: it is not forgotten */
    struct coordinator_job job;
    int servers; /* 0: not known yet */

    uint32_t generation;
    bool running, over;  /* the generation has members; cannot go on */
    int64_t leave_by_ns; /* 0: nobody has left it yet; else whoever is still in it then is lost */
    uint64_t step;       /* after which it began */
    int failures;        /* generations in a row that ended by an error and without a step */

    uint64_t images;  /* in the weights, of those that have left or trained to the end */
    bool has_weights; /* some worker has, or had, what was trained */
    int accounted;    /* workers of the generation that have said where they stand */
    bool finished;    /* some worker has trained to the end */
    bool ended;       /* all have been told; nobody is let in */
};

/* "worker 2 on a", "server 0 on a", "a worker on b". Returns text. */
const char *seat_name(const struct seat *seat, char *text, size_t size);
bool seat_is_worker(const struct seat *seat);

/* It will not be heard of again, because it `how`; `seat` is freed, as by the next two. */
void seat_lost(struct coordinator *c, struct seat *seat, const char *how);
/* Tells it why it cannot take part. */
void seat_refuse(struct coordinator *c, struct seat *seat, enum status status, const char *text);
void coordinator_forget(struct coordinator *c, struct seat *seat);
/* Tells all, and lets them go. */
void coordinator_end_all(struct coordinator *c, enum status status, const char *text);

/* The running generation cannot go on: tells those who are in it. */
void generation_over(struct coordinator *c, const char *text);
/* A newcomer waits: tells those who train. */
void generation_announce(struct coordinator *c, const struct seat *newcomer);
/* After anything has happened: begins the next generation, or ends the job, if it is time. */
void generation_settle(struct coordinator *c, int64_t now_ns);

#endif
