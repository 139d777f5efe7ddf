/* Status codes: what every function that can fail returns. Results go through out-parameters. */
#ifndef PSRING_COMMON_BASE_STATUS_H
#define PSRING_COMMON_BASE_STATUS_H

#include "common/base/log.h"

enum status {
    STATUS_OK = 0,
    STATUS_USAGE = -1,       /* the user asked for something that cannot be: exit code 2 */
    STATUS_INPUT = -2,       /* a file or a message from outside is not what it should be */
    STATUS_IO = -3,          /* the operating system refused a read, a write, an open */
    STATUS_NO_MEMORY = -4,   /* an allocation failed */
    STATUS_TIMEOUT = -5,     /* a peer stayed silent for longer than --timeout */
    STATUS_PROTOCOL = -6,    /* a peer sent a valid message that does not belong here */
    STATUS_TRANSPORT = -7,   /* ZeroMQ, MPI, NCCL or a socket reported an error */
    STATUS_UNSUPPORTED = -8, /* this build or this machine does not have what was asked for */
    STATUS_DIVERGED = -9,    /* training left the finite numbers */
    STATUS_DEVICE = -10,     /* a GPU or its driver failed */
    STATUS_STOPPED = -11,    /* no failure: ended early, as asked, with its state saved */
    STATUS_WRONG = -12,      /* a result is not what it must be: a bug, or broken hardware */
    STATUS_MISSED = -13,     /* a measurement does not reach what the user requires */
};

/* One or two words for a message, e.g. "timeout". Never NULL. */
const char *status_name(enum status status);

/* Converts an errno value. 0 gives STATUS_OK. */
enum status status_from_errno(int error);

/*
 * Evaluates `expr` (an enum status) once. On failure logs, at debug level, where it failed, sets
 * the local variable `status` and jumps to the local label `out`, which frees in reverse order.
 * Whoever *detects* a failure logs the message for the user (log_error); TRY only passes it on. A
 * mistake of usage has no place in the code that would help: it is passed on in silence.
 */
#define TRY(expr)                                                                                  \
    do {                                                                                           \
        status = (expr);                                                                           \
        if (status != STATUS_OK) {                                                                 \
            if (status != STATUS_USAGE)                                                            \
                log_debug("%s:%d: %s: %s", __FILE__, __LINE__, #expr, status_name(status));        \
            goto out;                                                                              \
        }                                                                                          \
    } while (0)

#endif
