#include "ring/vendor/nccl_env.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void set_unless_set(const char *name, const char *value)
{
    if (setenv(name, value, 0) != 0)
        log_warn("%s=%s could not be set in the environment: no memory", name, value);
}

/* NCCL opens a name: that of a descriptor of ours, to be opened once more, which not every sandbox
 * allows. */
static bool can_be_opened_again(const char *path)
{
    int again = open(path, O_WRONLY | O_CLOEXEC);
    if (again < 0)
        return false;
    close(again);
    return true;
}

static int open_log(void)
{
    char path[64];
    int log = memfd_create("psring-nccl-log", MFD_CLOEXEC);
    if (log < 0)
        return 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", log);
    if (!can_be_opened_again(path)) {
        close(log);
        return 0;
    }
    set_unless_set("NCCL_DEBUG", "INFO");
    set_unless_set("NCCL_DEBUG_SUBSYS", "TUNING");
    set_unless_set("NCCL_DEBUG_FILE", path);
    return log;
}

void nccl_env_set(const struct nccl_env_options *options, int *log)
{
    const struct world *world = options->world;
    set_unless_set("NCCL_ALGO", "Ring");
    set_unless_set("NCCL_PROTO", "Simple");
    if (options->share_gpu) {
        char host[64];
        snprintf(host, sizeof host, "psring-%016" PRIx64 "-%d", world->run_id, world->rank);
        set_unless_set("NCCL_HOSTID", host);
        set_unless_set("NCCL_NET", "Socket");
        set_unless_set("NCCL_IB_DISABLE", "1");
        if (world->local_size == world->size)
            set_unless_set("NCCL_SOCKET_IFNAME", "lo");
    }
    *log = open_log();
}

size_t nccl_env_log_length(int log)
{
    struct stat info;
    return log > 0 && fstat(log, &info) == 0 ? (size_t)info.st_size : 0;
}

void nccl_env_log_read(int log, size_t start, struct nccl_choice *choice)
{
    size_t end = nccl_env_log_length(log);
    *choice = (struct nccl_choice){0};
    if (start >= end)
        return;
    char *text = malloc(end - start);
    if (!text) {
        log_warn("no memory to read NCCL's log: by which algorithm it went stays unknown");
        return;
    }
    ssize_t length = pread(log, text, end - start, (off_t)start);
    if (length > 0)
        nccl_choice_read(choice, text, (size_t)length);
    free(text);
}
