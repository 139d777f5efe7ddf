/* The last words of a process: one thread's lines, and nothing else. */
#include "common/base/log.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static void *talk(void *line)
{
    log_error("%s", (const char *)line);
    return NULL;
}

static void other_thread_logs(char *line)
{
    pthread_t other;
    cr_assert_eq(pthread_create(&other, NULL, talk, line), 0);
    pthread_join(other, NULL);
}

Test(log, after_a_take_over_one_thread_speaks)
{
    char before[] = "before", after[] = "after";
    static char said[1000];
    FILE *file = tmpfile();
    int printed = dup(STDOUT_FILENO);
    cr_assert(file && printed >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    cr_assert(dup2(fileno(file), STDOUT_FILENO) >= 0);
    other_thread_logs(before);
    cr_assert_eq(log_errors(), 1);
    log_take_over();
    fprintf(stderr, "a library\n");
    printf("a step\n");
    fflush(stdout);
    other_thread_logs(after);
    log_error("the last words");
    log_take_over();
    log_error("said twice");
    cr_assert_eq(log_errors(), 3, "dropped lines do not count");
    fflush(stderr);
    dup2(printed, STDOUT_FILENO);
    cr_assert(pread(fileno(file), said, sizeof said - 1, 0) > 0);
    cr_assert_str_eq(said, "psring: error: before\n"
                           "psring: error: the last words\n"
                           "psring: error: said twice\n");
    fclose(file);
}
