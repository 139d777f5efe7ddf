/* The token of an elastic job: its source, and agreement among all processes of a user. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "experiments/elastic/elastic.h"
#include "tests/lib/capture.h"

static uint64_t token_of(const char *text)
{
    uint64_t token;
    const struct config config = {.token = text};
    cr_assert_eq(elastic_token(&config, &token), STATUS_OK);
    return token;
}

Test(token, equal_texts_give_equal_tokens)
{
    cr_assert_eq(token_of("a"), token_of("a"));
    cr_assert_neq(token_of("a"), token_of("b"));
}

/* Many processes start at once, before the file exists. */
Test(token, the_first_process_writes_it_for_all)
{
    enum { PROCESSES = 8 };
    char home[64], path[96];
    int ends[2];
    uint64_t token, first = 0;
    struct stat info;
    folder_new(home);
    setenv("HOME", home, 1);
    cr_assert_eq(pipe(ends), 0);
    for (int i = 0; i < PROCESSES; i++) {
        if (fork() == 0) { /* no Criterion assertions here: they belong to the test's process */
            const struct config none = {0};
            _exit(elastic_token(&none, &token) != STATUS_OK ||
                  write(ends[1], &token, sizeof token) != sizeof token);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        cr_assert_eq(read(ends[0], &token, sizeof token), sizeof token);
        first = i == 0 ? token : first;
        cr_assert_eq(token, first);
        wait(NULL);
    }
    cr_assert_eq(token_of(NULL), first);
    snprintf(path, sizeof path, "%s/.psring-token", home);
    cr_assert_eq(stat(path, &info), 0);
    cr_assert_eq(info.st_mode & 0777, 0600);
    folder_free(home);
}

Test(token, a_file_that_is_not_whole_is_an_error)
{
    char home[64], path[96];
    uint64_t token;
    const struct config config = {0};
    folder_new(home);
    setenv("HOME", home, 1);
    snprintf(path, sizeof path, "%s/.psring-token", home);
    FILE *file = fopen(path, "w");
    cr_assert(file && fputs("short", file) >= 0 && fclose(file) == 0);
    assert_refused(elastic_token(&config, &token), STATUS_IO, "cannot read the token");
    folder_free(home);
    assert_refused(elastic_token(&config, &token), STATUS_IO, "cannot write the token");
    unsetenv("HOME");
    assert_refused(elastic_token(&config, &token), STATUS_USAGE, "HOME is not set");
}
