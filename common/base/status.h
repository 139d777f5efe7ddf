/*
 * Status codes, checks and messages. A function that can fail returns a status. Results go through
 * out-parameters. The function that detects a failure logs the message.
 */
#ifndef PSRING_COMMON_BASE_STATUS_H
#define PSRING_COMMON_BASE_STATUS_H

#include <stdbool.h>

enum status {
    STATUS_OK = 0,
    STATUS_USAGE = -1,       /* the user asked for something impossible: exit code 2 */
    STATUS_INPUT = -2,       /* a file or a message from outside is malformed */
    STATUS_IO = -3,          /* the operating system refused a read, a write, an open */
    STATUS_NO_MEMORY = -4,   /* an allocation failed */
    STATUS_TIMEOUT = -5,     /* a peer stayed silent for longer than --timeout */
    STATUS_PROTOCOL = -6,    /* a peer sent a valid message that does not belong here */
    STATUS_TRANSPORT = -7,   /* ZeroMQ, MPI, NCCL or a socket reported an error */
    STATUS_UNSUPPORTED = -8, /* this build or machine lacks what was asked for */
    STATUS_DIVERGED = -9,    /* a loss, a weight or an optimizer value is not finite */
    STATUS_DEVICE = -10,     /* a GPU or its driver failed */
    STATUS_STOPPED = -11,    /* no failure: ended early as requested, with its state saved */
    STATUS_WRONG = -12,      /* a result is incorrect: a bug, or broken hardware */
    STATUS_MISSED = -13,     /* a measurement does not reach what the user requires */
};

/* One or two words for a message, e.g. "timeout". Never NULL. */
const char *status_name(enum status status);

/* Converts an errno value. 0 gives STATUS_OK. */
enum status status_from_errno(int error);

/* Whether a failure may mean that a peer is lost. Then the others may be able to continue. */
bool status_is_loss(enum status status);

/*
 * Evaluates `expr` (an enum status) once, and sets the local variable `status` to it. A status
 * that is needed afterwards must be elsewhere. On failure it jumps to the local label `out`, which
 * frees in reverse order. It also logs the place at debug level, except for STATUS_USAGE: the place
 * in the code does not help against a mistake of usage. The function that detects a failure logs
 * the message for the user (log_error); TRY only passes the status on.
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

/* -------- checks ------------------------------------------------------------------------------ */

/* An invariant of the code, always on. Bad input is no CHECK: return a status and log a message. If
 * `cond` is false, aborts with file, line and the condition. `cond` has no side effects. */
#define CHECK(cond) ((cond) ? (void)0 : check_failed(#cond, __FILE__, __LINE__))

__attribute__((noreturn)) void check_failed(const char *condition, const char *file, int line);

/* -------- messages ---------------------------------------------------------------------------- */

/* Messages for people on stderr, one line each. A line begins with the name of the process.
 * Thread-safe. */

enum log_level { LOG_SILENT = -1, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* Lines above `level` are dropped. Default LOG_INFO. */
void log_set_level(enum log_level level);

/* Sets the text after "psring" at the beginning of every line, e.g. "worker 2". Copied; at most 31
 * bytes. */
void log_set_name(const char *name);

__attribute__((format(printf, 2, 3))) void log_message(enum log_level level, const char *format,
                                                       ...);

/*
 * Between these two calls, the calling thread's lines are kept instead of written. It is for
 * failures that every rank may meet alike, and that only one rank reports. log_release writes the
 * lines (`wanted`) or drops them. Lines beyond 4 KB are dropped. Other threads' lines are written
 * at once: each may be the last line of this process.
 */
void log_hold(void);
void log_release(bool wanted);

/*
 * Between these two calls, the errors of all threads are kept instead of written; other lines are
 * not. A process that survives such errors replaces them by what it has found out.
 * log_hold_errors drops the errors that are held already. log_release_errors writes them. With
 * LOG_DEBUG, and beyond 4 KB, errors are written at once.
 */
void log_hold_errors(void);
void log_release_errors(void);

/* From now on only the calling thread's lines are written. Drops the other threads' lines, and
 * what a library or another thread prints to stderr or stdout. For a process that is about to end.
 * It reports no errors. */
void log_take_over(void);

/* From now on `sink` gets each line instead of stderr, on the thread that logs it, without the name
 * and the newline. It is for a library, which leaves the output to the program. NULL: stderr
 * again. */
typedef void log_sink(enum log_level level, const char *line);
void log_set_sink(log_sink *sink);

/* The number of errors logged, without dropped lines. */
unsigned log_errors(void);

/* A message names the thing, what was found, what was expected and what to do. */
#define log_error(...) log_message(LOG_ERROR, __VA_ARGS__)
/* Logs an error and gives its status: return FAIL(STATUS_USAGE, "--rank %d: ...", rank). */
#define FAIL(status, ...) (log_error(__VA_ARGS__), (status))
#define log_warn(...) log_message(LOG_WARN, __VA_ARGS__)
#define log_info(...) log_message(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_message(LOG_DEBUG, __VA_ARGS__)

#endif
