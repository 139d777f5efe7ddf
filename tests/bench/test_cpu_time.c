/* Processor time: the caller's thread counts only in operations, all other threads count always. */
#include "common/net/cpu_watch.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <time.h>

#include "common/base/clock.h"

enum { BURN_NS = 40 * 1000 * 1000 };

static double cpu_s(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / (double)NS_PER_S;
}

static double burn(void)
{
    double end = cpu_s(CLOCK_THREAD_CPUTIME_ID) + (double)BURN_NS / (double)NS_PER_S;
    while (cpu_s(CLOCK_THREAD_CPUTIME_ID) < end) {
    }
    return (double)BURN_NS / (double)NS_PER_S;
}

Test(cpu_time, operations_add_up)
{
    struct cpu_time cpu;
    double burned = 0;
    cpu_time_start(&cpu);
    for (int i = 0; i < 3; i++) {
        cpu_time_enter(&cpu);
        burned += burn();
        cpu_time_leave(&cpu);
    }
    cr_expect_geq(cpu_time_s(&cpu), burned);
}

Test(cpu_time, what_lies_between_them_is_left_out)
{
    struct cpu_time cpu;
    double all = cpu_s(CLOCK_PROCESS_CPUTIME_ID), between = 0;
    cpu_time_start(&cpu);
    between += burn();
    cpu_time_enter(&cpu);
    burn();
    cpu_time_leave(&cpu);
    between += burn();
    double counted = cpu_time_s(&cpu);
    cr_expect_geq(cpu_time_process_s(&cpu), counted + between, "%g and %g", counted, between);
    all = cpu_s(CLOCK_PROCESS_CPUTIME_ID) - all;
    cr_expect_leq(counted, all - between / 2, "%g of %g", counted, all);
}

static void *burn_here(void *unused)
{
    (void)unused;
    burn();
    return NULL;
}

/* A thread's time is complete after its end. Before that, a tick may be missing. */
Test(cpu_time, other_threads_count_whenever_they_run)
{
    struct cpu_time cpu;
    pthread_t other;
    cpu_time_start(&cpu);
    cr_assert_eq(pthread_create(&other, NULL, burn_here, NULL), 0);
    cr_assert_eq(pthread_join(other, NULL), 0);
    cr_expect_geq(cpu_time_s(&cpu), (double)BURN_NS / (double)NS_PER_S / 2);
}
