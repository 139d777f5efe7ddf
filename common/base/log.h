/* Messages for people, on stderr: one line each, prefixed with who speaks. Thread-safe. */
#ifndef PSRING_COMMON_BASE_LOG_H
#define PSRING_COMMON_BASE_LOG_H

#include <stdarg.h>

enum log_level { LOG_SILENT = -1, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* Lines above `level` are dropped. Default LOG_INFO. */
void log_set_level(enum log_level level);

/* What stands in front of every line after "psring", e.g. "worker 2". Copied; at most 31 bytes. */
void log_set_name(const char *name);

__attribute__((format(printf, 2, 3))) void log_message(enum log_level level, const char *format,
                                                       ...);

/* A message names the thing, what was found, what was expected and what to do. */
#define log_error(...) log_message(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) log_message(LOG_WARN, __VA_ARGS__)
#define log_info(...) log_message(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_message(LOG_DEBUG, __VA_ARGS__)

#endif
