/* Monotonic time in nanoseconds, and sleeping until such a time. */
#ifndef PSRING_COMMON_BASE_CLOCK_H
#define PSRING_COMMON_BASE_CLOCK_H

#include <stdint.h>

#define NS_PER_US INT64_C(1000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)

/* CLOCK_MONOTONIC; comparable within one machine only. */
int64_t clock_now_ns(void);

/* The processor time that the calling thread has used. */
int64_t clock_thread_ns(void);

/* Sleeps (does not spin) until clock_now_ns() reaches `deadline_ns`. A signal does not end the
 * sleep. */
void clock_sleep_until_ns(int64_t deadline_ns);

#endif
