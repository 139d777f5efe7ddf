/*
 * The token of an elastic job, which distinguishes its members from strangers. Without --token and
 * PSRING_TOKEN it is a random text in a file of the user's home, which the first process writes.
 * Processes of one user on hosts that share the home then agree without an option.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/net/host.h"
#include "experiments/config/launch.h"
#include "experiments/elastic/elastic.h"

enum { TEXT_BYTES = 33, PATH_BYTES = 4096 };

static enum status failed(const char *path, const char *what, int error)
{
    return FAIL(STATUS_IO,
                "%s: %s the token of elastic jobs: %s; give psring serve and all workers the same "
                "--token TEXT (or PSRING_TOKEN)",
                path, what, strerror(error));
}

/* 0 or an errno value. */
static int read_file(const char *path, char text[TEXT_BYTES])
{
    FILE *file = fopen(path, "re");
    if (!file)
        return errno;
    size_t length = fread(text, 1, TEXT_BYTES - 1, file);
    fclose(file);
    text[length] = '\0';
    return length == TEXT_BYTES - 1 ? 0 : EINVAL;
}

/* Writes a new file, then links it to its name in one operation. If several processes do this, the
 * first one wins and no file is partial. */
static int write_file(const char *path, int home)
{
    uint64_t random[3]; /* the token, and an unrelated number for the file's name */
    char text[TEXT_BYTES], own[64];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return errno;
    snprintf(text, sizeof text, "%016" PRIx64 "%016" PRIx64, random[0], random[1]);
    snprintf(own, sizeof own, ".psring-token.%016" PRIx64, random[2]);
    int fd = openat(home, own, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno;
    int error = write(fd, text, TEXT_BYTES - 1) == TEXT_BYTES - 1 ? 0 : EIO;
    close(fd);
    if (error == 0 && linkat(home, own, AT_FDCWD, path, 0) != 0 && errno != EEXIST)
        error = errno;
    unlinkat(home, own, 0);
    return error;
}

static enum status users_token(char text[TEXT_BYTES])
{
    char path[PATH_BYTES];
    const char *home = launcher_variable("HOME");
    if (!home || strlen(home) + 32 > sizeof path)
        return FAIL(
            STATUS_USAGE,
            "HOME is %s, expected the folder that holds the token of elastic jobs; set it, or "
            "give psring serve and all workers the same --token TEXT (or PSRING_TOKEN)",
            home ? "too long" : "not set");
    snprintf(path, sizeof path, "%s/.psring-token", home);
    int error = read_file(path, text);
    if (error == ENOENT) {
        int folder = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        error = folder < 0 ? errno : write_file(path, folder);
        if (folder >= 0)
            close(folder);
        if (error != 0)
            return failed(path, "cannot write", error);
        error = read_file(path, text);
    }
    return error == 0 ? STATUS_OK : failed(path, "cannot read", error);
}

enum status elastic_token(const struct config *config, uint64_t *token)
{
    enum status status = STATUS_OK;
    char own[TEXT_BYTES];
    if (!config->token)
        TRY(users_token(own));
    TRY(launch_token(config->token ? config->token : own, token));
out:
    return status;
}
