#include "common/base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *status_name(enum status status)
{
    static const char *const names[] = {
        [-STATUS_OK] = "ok",
        [-STATUS_USAGE] = "bad usage",
        [-STATUS_INPUT] = "bad input",
        [-STATUS_IO] = "input/output error",
        [-STATUS_NO_MEMORY] = "out of memory",
        [-STATUS_TIMEOUT] = "timeout",
        [-STATUS_PROTOCOL] = "protocol error",
        [-STATUS_TRANSPORT] = "transport error",
        [-STATUS_UNSUPPORTED] = "not supported",
        [-STATUS_DIVERGED] = "diverged",
        [-STATUS_DEVICE] = "device error",
        [-STATUS_STOPPED] = "stopped",
        [-STATUS_WRONG] = "wrong result",
        [-STATUS_MISSED] = "missed",
    };
    size_t index = (size_t)-status;
    return index < sizeof names / sizeof *names ? names[index] : "unknown status";
}

enum status status_from_errno(int error)
{
    switch (error) {
    case 0:
        return STATUS_OK;
    case ENOMEM:
        return STATUS_NO_MEMORY;
    case ETIMEDOUT:
        return STATUS_TIMEOUT;
    default:
        return STATUS_IO;
    }
}

static _Atomic int log_level = LOG_INFO;
static _Atomic unsigned errors;
static log_sink *_Atomic sink; /* NULL: stderr */

/* Whole lines. */
struct held_lines {
    size_t used;
    unsigned errors;
    char text[4096];
};

static struct {
    pthread_mutex_t lock;
    bool holds; /* the lines of one thread, until log_release */
    pthread_t thread;
    struct held_lines own;
    bool holds_errors; /* of all threads, until log_release_errors */
    struct held_lines errors;
} held = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* After log_take_over, under held.lock: whose lines come out, and where. */
static struct {
    FILE *out; /* NULL: all threads write to stderr */
    pthread_t thread;
} taken;

static char log_name[32]; /* set once, before threads start */

void log_set_level(enum log_level level)
{
    atomic_store(&log_level, level);
}

void log_set_sink(log_sink *wanted)
{
    atomic_store(&sink, wanted);
}

void log_set_name(const char *name)
{
    snprintf(log_name, sizeof log_name, "%s", name);
}

unsigned log_errors(void)
{
    return atomic_load(&errors);
}

static void put(const char *lines, size_t length, unsigned number_of_errors)
{
    if (taken.out && !pthread_equal(taken.thread, pthread_self()))
        return;
    atomic_fetch_add(&errors, number_of_errors);
    fwrite(lines, 1, length, taken.out ? taken.out : stderr);
}

void check_failed(const char *condition, const char *file, int line)
{
    if (pthread_mutex_trylock(&held.lock) == 0) /* what is held may explain it */
        put(held.errors.text, held.errors.used, held.errors.errors);
    fprintf(stderr, "psring: %s:%d: CHECK failed: %s (a bug in psring)\n", file, line, condition);
    abort();
}

/* False: no space is left. */
static bool keep(struct held_lines *lines, const char *text, size_t length,
                 unsigned number_of_errors)
{
    if (length > sizeof lines->text - lines->used)
        return false;
    memcpy(lines->text + lines->used, text, length);
    lines->used += length;
    lines->errors += number_of_errors;
    return true;
}

/* Keeps errors while the process holds them. */
static void put_or_keep(const char *lines, size_t length, unsigned number_of_errors)
{
    bool holds = held.holds_errors && number_of_errors > 0 && atomic_load(&log_level) < LOG_DEBUG;
    if (!holds || !keep(&held.errors, lines, length, number_of_errors))
        put(lines, length, number_of_errors);
}

static void clear(struct held_lines *lines)
{
    lines->used = 0;
    lines->errors = 0;
}

void log_hold(void)
{
    pthread_mutex_lock(&held.lock);
    held.holds = true;
    held.thread = pthread_self();
    pthread_mutex_unlock(&held.lock);
}

void log_release(bool wanted)
{
    pthread_mutex_lock(&held.lock);
    if (wanted && held.own.used > 0)
        put_or_keep(held.own.text, held.own.used, held.own.errors);
    held.holds = false;
    clear(&held.own);
    pthread_mutex_unlock(&held.lock);
}

void log_hold_errors(void)
{
    pthread_mutex_lock(&held.lock);
    held.holds_errors = true;
    clear(&held.errors);
    pthread_mutex_unlock(&held.lock);
}

void log_release_errors(void)
{
    pthread_mutex_lock(&held.lock);
    if (held.errors.used > 0)
        put(held.errors.text, held.errors.used, held.errors.errors);
    held.holds_errors = false;
    clear(&held.errors);
    pthread_mutex_unlock(&held.lock);
}

void log_take_over(void)
{
    pthread_mutex_lock(&held.lock);
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    int own = taken.out ? -1 : fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    FILE *out = own >= 0 ? fdopen(own, "w") : NULL;
    if (out && nowhere >= 0) {
        setvbuf(out, NULL, _IONBF, 0);
        dup2(nowhere, STDERR_FILENO);
        dup2(nowhere, STDOUT_FILENO);
        taken.out = out;
        taken.thread = pthread_self();
    }
    pthread_mutex_unlock(&held.lock);
}

__attribute__((format(printf, 2, 0))) static void
write_message(enum log_level level, const char *format, va_list arguments)
{
    static const char *const labels[] = {"error: ", "warning: ", "", "debug: "};
    if ((int)level > atomic_load(&log_level))
        return;
    /* The line is built first and written at once, so that lines of several ranks on one terminal
     * do not mix. */
    char line[1024];
    int used = snprintf(line, sizeof line, "psring%s%s: %s", log_name[0] ? " " : "", log_name,
                        labels[level]);
    int wanted = vsnprintf(line + used, sizeof line - (size_t)used - 1, format, arguments);
    if (wanted < 0)
        return;
    /* A part of the line may come from the network: it makes no second line and moves no cursor. */
    for (char *c = line + used; *c; c++)
        *c = (unsigned char)*c < ' ' || *c == '\x7f' ? '?' : *c;
    log_sink *to = atomic_load(&sink);
    if (to) {
        atomic_fetch_add(&errors, level == LOG_ERROR);
        to(level, line + used);
        return;
    }
    size_t length = strlen(line);
    line[length] = '\n';
    pthread_mutex_lock(&held.lock);
    if (held.holds && pthread_equal(held.thread, pthread_self()))
        keep(&held.own, line, length + 1, level == LOG_ERROR);
    else
        put_or_keep(line, length + 1, level == LOG_ERROR);
    pthread_mutex_unlock(&held.lock);
}

void log_message(enum log_level level, const char *format, ...)
{
    const int error = errno; /* FAIL(status_from_errno(errno), ...) reads it afterwards */
    va_list arguments;
    va_start(arguments, format);
    write_message(level, format, arguments);
    va_end(arguments);
    errno = error;
}

bool status_is_loss(enum status status)
{
    return status == STATUS_TRANSPORT || status == STATUS_TIMEOUT || status == STATUS_PROTOCOL;
}
