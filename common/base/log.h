/* Messages for people, on stderr: one line each, that begins with the name of the process.
 * Thread-safe. */
#ifndef PSRING_COMMON_BASE_LOG_H
#define PSRING_COMMON_BASE_LOG_H

#include <stdarg.h>
#include <stdbool.h>

enum log_level { LOG_SILENT = -1, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* Lines above `level` are dropped. Default LOG_INFO. */
void log_set_level(enum log_level level);

/* What stands in front of every line after "psring", e.g. "worker 2". Copied; at most 31 bytes. */
void log_set_name(const char *name);

__attribute__((format(printf, 2, 3))) void log_message(enum log_level level, const char *format,
                                                       ...);

/*
 * Between the two, the calling thread's lines are kept instead of written: for what a rank meets
 * that every other one may meet alike, and one of them is to tell. log_release writes them
 * (`wanted`) or drops them. Lines beyond a few are dropped. What other threads log comes at once:
 * it may be the last that is heard of this process.
 */
void log_hold(void);
void log_release(bool wanted);

/* From now on only the calling thread's lines come out: what other threads log or print, and what a
 * library writes to stderr or stdout, is dropped. For the last words of a process; errors of it:
 * none. */
void log_take_over(void);

/* In place of stderr, from now on: `sink` gets each line, without the name in front of it and the
 * newline, on the thread that logs it. For a library, whose program speaks for itself. NULL: stderr
 * again. */
typedef void log_sink(enum log_level level, const char *line);
void log_set_sink(log_sink *sink);

/* How many errors have been logged, not counting lines that were dropped. */
unsigned log_errors(void);

/* A message names the thing, what was found, what was expected and what to do. */
#define log_error(...) log_message(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) log_message(LOG_WARN, __VA_ARGS__)
#define log_info(...) log_message(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_message(LOG_DEBUG, __VA_ARGS__)

#endif
