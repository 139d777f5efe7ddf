#include "common/base/log.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static _Atomic int log_level = LOG_INFO;
static char log_name[32]; /* set once, before threads start */

void log_set_level(enum log_level level)
{
    atomic_store(&log_level, level);
}

void log_set_name(const char *name)
{
    snprintf(log_name, sizeof log_name, "%s", name);
}

void log_message(enum log_level level, const char *format, ...)
{
    static const char *const labels[] = {"error: ", "warning: ", "", "debug: "};
    if ((int)level > atomic_load(&log_level))
        return;
    /* Built first and written at once: lines of several ranks on one terminal do not mix. */
    char line[1024];
    int used = snprintf(line, sizeof line, "psring%s%s: %s", log_name[0] ? " " : "", log_name,
                        labels[level]);
    va_list arguments;
    va_start(arguments, format);
    int wanted = vsnprintf(line + used, sizeof line - (size_t)used - 1, format, arguments);
    va_end(arguments);
    if (wanted < 0)
        return;
    size_t length = strlen(line);
    line[length] = '\n';
    fwrite(line, 1, length + 1, stderr);
}
