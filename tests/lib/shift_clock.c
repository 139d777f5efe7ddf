/* Preloaded: the wall clock jumps between four times, up to two hours apart, at every look. The
 * monotonic clock is the real one. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <time.h>

static time_t shift(void)
{
    static const time_t shifts[] = {0, 3600, -3600, 86400 / 24 - 7200};
    static _Atomic unsigned looks;
    return shifts[atomic_fetch_add(&looks, 1) % 4];
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int (*real)(clockid_t, struct timespec *);
    *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, now);
    if (clock == CLOCK_REALTIME)
        now->tv_sec += shift();
    return result;
}

time_t time(time_t *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec precise;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &precise);
    *now = (struct timeval){precise.tv_sec, precise.tv_nsec / 1000};
    return 0;
}
