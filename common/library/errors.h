/*
 * Errors as the library's callers get them: a status and a text, of the calling thread. Everything
 * below logs its errors; here is where these lines go.
 */
#ifndef PSRING_COMMON_LIBRARY_ERRORS_H
#define PSRING_COMMON_LIBRARY_ERRORS_H

#include "common/base/status.h"
#include "common/psring.h"

enum { ERROR_BYTES = 1024 };

/* From here on log lines come here: errors are collected, all others go to `other`, which may be
 * NULL. Drops what was collected. */
void errors_collect(void (*other)(void *context, const char *line), void *context);

/* What has been collected since the last time, in one line; "" if nothing. */
void errors_take(char text[ERROR_BYTES]);

/* psring_error's text from now on, on this thread. Returns `status`. */
__attribute__((format(printf, 2, 3))) enum psring_status errors_set(enum psring_status status,
                                                                    const char *format, ...);

/* The same, with the text that was collected. */
enum psring_status errors_return(enum status status);

enum psring_status errors_status(enum status status);

#endif
