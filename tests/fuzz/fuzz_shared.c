#include "tests/fuzz/fuzz.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/status.h"

int fuzz_file(const void *data, size_t size, char *path, size_t path_size)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    CHECK(fd >= 0);
    for (size_t done = 0; done < size;) {
        ssize_t n = write(fd, (const char *)data + done, size - done);
        CHECK(n > 0);
        done += (size_t)n;
    }
    snprintf(path, path_size, "/proc/self/fd/%d", fd);
    return fd;
}

static void drop(enum log_level level, const char *line)
{
    (void)level;
    (void)line;
}

void fuzz_quiet(void)
{
    static bool quiet;
    log_set_sink(drop);
    log_set_level(LOG_DEBUG);
    if (quiet)
        return;
    CHECK(freopen("/dev/null", "w", stdout));
    quiet = true;
}
