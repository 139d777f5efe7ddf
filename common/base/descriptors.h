/* File descriptors: how many are left, and whether a run has enough of them. */
#ifndef PSRING_COMMON_BASE_DESCRIPTORS_H
#define PSRING_COMMON_BASE_DESCRIPTORS_H

#include "common/base/status.h"

/* The need and the limit of a process. Plain data: ranks exchange it. */
struct descriptors {
    int needs; /* the open ones and those to come; approximate */
    int limit;
};

/* Counts the open descriptors and adds `more`. Raises the soft limit (RLIMIT_NOFILE) if it is too
 * low, as far as the hard limit allows and not further than needed. */
struct descriptors descriptors_for(int more);

/* STATUS_UNSUPPORTED (logged): the limit is too low for `who` ("this process", "rank 2 on
 * host1"). */
enum status descriptors_check(const struct descriptors *descriptors, const char *who);

/* The advice for a failed connection: raise the limit if `error` is EMFILE or ENFILE, else
 * `otherwise`. */
const char *descriptors_advice(int error, const char *otherwise);

#endif
