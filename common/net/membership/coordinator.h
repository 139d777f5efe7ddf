/*
 * Who takes part in an elastic job (member.h): a thread of the first server. It listens at the
 * address that all were given; members connect and stay connected. Strangers, members with other
 * options and members that come when the job has ended are told so, and hold nobody up.
 *
 * The first worker's options become the job's. A generation begins when all servers and enough
 * workers wait for one, and nobody is in the last one any more. It is over for all when one of its
 * workers is lost, or says that it could not go on.
 */
#ifndef PSRING_COMMON_NET_MEMBERSHIP_COORDINATOR_H
#define PSRING_COMMON_NET_MEMBERSHIP_COORDINATOR_H

#include <stdint.h>

#include "common/base/status.h"
#include "common/net/membership/member.h"

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

/* Waits until all members have gone or been told, frees *coordinator and sets it to NULL. */
void coordinator_close(struct coordinator **coordinator);

#endif
