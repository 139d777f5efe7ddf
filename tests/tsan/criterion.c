#include "criterion/criterion.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* The sanitizer calls this. By default every process waits a second at its end for threads that
 * still run. This is too long, because every test is a process. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "atexit_sleep_ms=50";
}

static struct standin_test *first_test, **last_link = &first_test;
static struct standin_suite *first_suite;
static bool failed; /* in the process of a test */

void standin_register(struct standin_test *test)
{
    *last_link = test;
    last_link = &test->next;
}

void standin_register_suite(struct standin_suite *suite)
{
    suite->next = first_suite;
    first_suite = suite;
}

void standin_fail(bool fatal, const char *file, int line, const char *condition, const char *format,
                  ...)
{
    va_list arguments;
    fprintf(stderr, "%s:%d: expected %s\n    ", file, line, condition);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    failed = true;
    if (fatal)
        exit(EXIT_FAILURE);
}

_Noreturn void standin_skip(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(EXIT_SUCCESS);
}

static _Noreturn void run(const struct standin_test *test)
{
    for (const struct standin_suite *suite = first_suite; suite; suite = suite->next)
        if (strcmp(suite->name, test->suite) == 0 && suite->options.init)
            suite->options.init();
    if (test->options.init)
        test->options.init();
    test->run();
    if (test->options.fini)
        test->options.fini();
    exit(failed ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* A process with a race ends with the sanitizer's exit code, which counts as a failure. */
static bool passes(const struct standin_test *test)
{
    int ended = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        run(test);
    bool waited = child > 0 && waitpid(child, &ended, 0) == child;
    if (test->options.signal)
        return waited && WIFSIGNALED(ended) && WTERMSIG(ended) == test->options.signal;
    return waited && WIFEXITED(ended) && WEXITSTATUS(ended) == test->options.exit_code;
}

int main(void)
{
    size_t passing = 0, tested = 0;
    for (const struct standin_test *test = first_test; test; test = test->next) {
        if (test->options.disabled)
            continue;
        bool pass = passes(test);
        fprintf(stderr, "[%s] %s::%s\n", pass ? "PASS" : "FAIL", test->suite, test->name);
        tested++;
        passing += pass;
    }
    fprintf(stderr, "[====] Synthesis: Tested: %zu | Passing: %zu | Failing: %zu\n", tested,
            passing, tested - passing);
    return passing == tested ? EXIT_SUCCESS : EXIT_FAILURE;
}
