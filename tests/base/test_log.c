/* The last lines of a process: one thread's lines, and no others. */
#include "common/base/status.h"

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

/* A host's name, for example, comes from the network. */
Test(log, a_message_is_one_line_without_control_characters)
{
    char said[200] = "";
    FILE *file = tmpfile();
    int printed = dup(STDERR_FILENO);
    cr_assert(file && printed >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    log_error("from '%s'", "a\nb\x1b[2J\x7f\tc \xc3\xa4");
    dup2(printed, STDERR_FILENO);
    cr_assert(pread(fileno(file), said, sizeof said - 1, 0) > 0);
    cr_assert_str_eq(said, "psring: error: from 'a?b?[2J??c \xc3\xa4'\n");
    fclose(file);
}

/* Errors of all threads are held, with those from log_release. Other lines are written at once. */
Test(log, errors_are_held_until_their_reason_is_known)
{
    char other[] = "of another thread", dropped[] = "dropped";
    char said[400] = "";
    FILE *file = tmpfile();
    int printed = dup(STDERR_FILENO);
    cr_assert(file && printed >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    log_hold_errors();
    other_thread_logs(dropped);
    log_hold_errors();
    log_error("first");
    other_thread_logs(other);
    log_hold();
    log_error("held twice");
    log_release(true);
    log_warn("at once");
    cr_assert_eq(log_errors(), 0);
    log_release_errors();
    cr_assert_eq(log_errors(), 3);
    log_error("again at once");
    log_hold_errors();
    log_set_level(LOG_DEBUG);
    log_error("to one who searches");
    dup2(printed, STDERR_FILENO);
    cr_assert(pread(fileno(file), said, sizeof said - 1, 0) > 0);
    cr_assert_str_eq(said, "psring: warning: at once\n"
                           "psring: error: first\n"
                           "psring: error: of another thread\n"
                           "psring: error: held twice\n"
                           "psring: error: again at once\n"
                           "psring: error: to one who searches\n");
    fclose(file);
}

static char sunk[100];
static enum log_level sunk_level;

static void sink(enum log_level level, const char *line)
{
    sunk_level = level;
    snprintf(sunk, sizeof sunk, "%s", line);
}

Test(log, a_sink_gets_lines_in_place_of_stderr)
{
    FILE *file = tmpfile();
    int printed = dup(STDERR_FILENO);
    unsigned errors = log_errors();
    cr_assert(file && printed >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    log_set_name("rank 3");
    log_set_sink(sink);
    log_error("no %s", "route");
    log_debug("dropped as ever");
    cr_assert(sunk_level == LOG_ERROR && log_errors() == errors + 1);
    cr_assert_str_eq(sunk, "no route");
    log_set_sink(NULL);
    log_warn("again");
    dup2(printed, STDERR_FILENO);
    char said[100] = "";
    rewind(file);
    cr_assert_not_null(fgets(said, sizeof said, file));
    cr_assert_str_eq(said, "psring rank 3: warning: again\n");
    cr_assert_null(fgets(said, sizeof said, file));
}
