#include "common/library/library.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/text.h"

static _Thread_local char last[ERROR_BYTES];

static struct {
    pthread_mutex_t lock;
    char text[ERROR_BYTES]; /* errors, separated by "; " */
    void (*other)(void *context, const char *line);
    void *context;
} collected = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* -------- from the log ------------------------------------------------------------------------ */

/* Log lines name options of the command line. A member of psring_options replaces each. */
static const struct {
    const char *option, *member;
} renamed[] = {
    {"--startup-timeout", "options.startup_timeout_s"},
    {"--timeout", "options.timeout_s"},
    {"--subnet", "options.network"},
    {"--rendezvous", "options.rendezvous"},
    {"--rank", "options.rank"},
    {"--world-size", "options.size"},
    {"--backend", "options.backend"},
    {"--transport", "options.transport"},
};

/* Appends the line with these replacements. */
static void add(const char *line)
{
    struct line all = {collected.text, sizeof collected.text, strlen(collected.text)};
    if (all.used > 0)
        line_add(&all, "; ");
    while (*line) {
        size_t n = 0, count = sizeof renamed / sizeof *renamed;
        while (n < count && strncmp(line, renamed[n].option, strlen(renamed[n].option)) != 0)
            n++;
        if (n < count) {
            line_add(&all, "%s", renamed[n].member);
            line += strlen(renamed[n].option);
        } else {
            line_add(&all, "%c", *line++);
        }
    }
}

static void sink(enum log_level level, const char *line)
{
    pthread_mutex_lock(&collected.lock);
    if (level == LOG_ERROR)
        add(line);
    void (*other)(void *context, const char *line) = collected.other;
    void *context = collected.context;
    pthread_mutex_unlock(&collected.lock);
    if (level != LOG_ERROR && other)
        other(context, line);
}

void errors_collect(void (*other)(void *context, const char *line), void *context)
{
    pthread_mutex_lock(&collected.lock);
    collected.text[0] = '\0';
    collected.other = other;
    collected.context = context;
    pthread_mutex_unlock(&collected.lock);
    log_set_sink(sink);
}

void errors_take(char text[ERROR_BYTES])
{
    pthread_mutex_lock(&collected.lock);
    memcpy(text, collected.text, ERROR_BYTES);
    collected.text[0] = '\0';
    pthread_mutex_unlock(&collected.lock);
}

/* -------- to the caller ----------------------------------------------------------------------- */

enum psring_status errors_set(enum psring_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(last, sizeof last, format, arguments);
    va_end(arguments);
    return status;
}

static enum psring_status status_of(enum status status)
{
    static const enum psring_status statuses[] = {
        [-STATUS_USAGE] = PSRING_ERROR_USAGE,
        [-STATUS_INPUT] = PSRING_ERROR_PROTOCOL,
        [-STATUS_NO_MEMORY] = PSRING_ERROR_NO_MEMORY,
        [-STATUS_TIMEOUT] = PSRING_ERROR_TIMEOUT,
        [-STATUS_PROTOCOL] = PSRING_ERROR_PROTOCOL,
        [-STATUS_TRANSPORT] = PSRING_ERROR_TRANSPORT,
        [-STATUS_UNSUPPORTED] = PSRING_ERROR_UNSUPPORTED,
    };
    size_t index = (size_t)-status;
    bool listed = index < sizeof statuses / sizeof *statuses && statuses[index] != PSRING_OK;
    return listed ? statuses[index] : PSRING_ERROR_SYSTEM;
}

enum psring_status errors_explain(enum status status, const char *text)
{
    if (status == STATUS_OK)
        return PSRING_OK;
    return errors_set(status_of(status), "%s", text[0] ? text : status_name(status));
}

enum psring_status errors_return(enum status status)
{
    char text[ERROR_BYTES] = "";
    if (status != STATUS_OK)
        errors_take(text);
    return errors_explain(status, text);
}

const char *psring_error(void)
{
    return last;
}

const char *psring_status_name(enum psring_status status)
{
    static const char *const names[] = {
        "ok",         "bad usage",      "system error",    "out of memory",
        "timeout",    "protocol error", "transport error", "not supported",
        "wrong state"};
    int index = -(int)status;
    return index >= 0 && index < (int)(sizeof names / sizeof *names) ? names[index]
                                                                     : "unknown status";
}
