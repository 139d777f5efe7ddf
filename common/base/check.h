/* CHECK: an invariant of ours, always on. Bad input is no CHECK but a status and a message. */
#ifndef PSRING_COMMON_BASE_CHECK_H
#define PSRING_COMMON_BASE_CHECK_H

/* Aborts with file, line and the condition if `cond` is false. `cond` has no side effects. */
#define CHECK(cond) ((cond) ? (void)0 : check_failed(#cond, __FILE__, __LINE__))

_Noreturn void check_failed(const char *condition, const char *file, int line);

#endif
