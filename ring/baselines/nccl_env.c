/* NCCL's environment variables and the contents of its log. This file calls no NCCL function. */
#include "ring/baselines/nccl_impl.h"

#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOG_READ_BYTES = 16 * 1024 };

static void set_unless_set(const char *name, const char *value)
{
    if (setenv(name, value, 0) != 0)
        log_warn("%s=%s could not be set in the environment: no memory", name, value);
}

/* NCCL opens the log by name. That name refers to one of our descriptors and must allow a second
 * open, which not every sandbox does. */
static bool can_be_opened_again(const char *path)
{
    int again = open(path, O_WRONLY | O_CLOEXEC);
    if (again < 0)
        return false;
    close(again);
    return true;
}

enum { PATH_BYTES = 64 };
#define NAMED "/tmp/psring-nccl-log-"

/* Memory, if its descriptor can be opened by name. Otherwise a file, whose name NCCL needs once. */
static int open_file(char path[PATH_BYTES])
{
    int log = memfd_create("psring-nccl-log", MFD_CLOEXEC);
    if (log >= 0) {
        snprintf(path, PATH_BYTES, "/proc/self/fd/%d", log);
        if (can_be_opened_again(path))
            return log;
        close(log);
    }
    snprintf(path, PATH_BYTES, NAMED "XXXXXX");
    return mkostemp(path, O_CLOEXEC);
}

void nccl_env_log_forget(void)
{
    const char *path = getenv("NCCL_DEBUG_FILE");
    if (path && strncmp(path, NAMED, strlen(NAMED)) == 0)
        unlink(path); /* harmless if the file has gone already */
}

static int open_log(void)
{
    char path[PATH_BYTES];
    int log = open_file(path);
    if (log < 0)
        return 0;
    set_unless_set("NCCL_DEBUG", "INFO");
    set_unless_set("NCCL_DEBUG_SUBSYS", "TUNING");
    set_unless_set("NCCL_DEBUG_FILE", path);
    const char *set = getenv("NCCL_DEBUG_FILE");
    if (strncmp(path, NAMED, strlen(NAMED)) == 0 && (!set || strcmp(set, path) != 0))
        unlink(path); /* NCCL writes to the user's file */
    return log;
}

void nccl_env_set(const struct nccl_env_options *options, int *log)
{
    const struct world *world = options->world;
    if (options->algorithm) {
        char name[NCCL_NAME_BYTES]; /* "Ring": NCCL's spelling */
        snprintf(name, sizeof name, "%s", options->algorithm);
        name[0] = (char)toupper((unsigned char)name[0]);
        set_unless_set("NCCL_ALGO", name);
        set_unless_set("NCCL_PROTO", "Simple");
    }
    if (options->registers)
        set_unless_set("NCCL_LEGACY_CUDA_REGISTER", "1");
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

/* -------- what the log says ------------------------------------------------------------------- */

enum { LINE_BYTES = 512 };

/* NCCL's numbers, for logs that contain numbers. Source: NCCL, src/include/nccl_common.h. */
static const char *const algorithms[] = {"tree",          "ring", "collnet_direct",
                                         "collnet_chain", "nvls", "nvls_tree"};
static const char *const protocols[] = {"ll", "ll128", "simple"};

/* Converts "RING" or "1" to "ring". */
static void copy_name(char name[NCCL_NAME_BYTES], const char *word, const char *const *names,
                      size_t count)
{
    size_t number = isdigit((unsigned char)word[0]) ? strtoul(word, NULL, 10) : count;
    const char *from = number < count ? names[number] : word;
    size_t i = 0;
    for (; i < NCCL_NAME_BYTES - 1 && from[i]; i++)
        name[i] = (char)tolower((unsigned char)from[i]);
    name[i] = '\0';
}

static void add_call(struct nccl_choice *choice, const char *algorithm_word,
                     const char *protocol_word)
{
    char algorithm[NCCL_NAME_BYTES], protocol[NCCL_NAME_BYTES];
    copy_name(algorithm, algorithm_word, algorithms, sizeof algorithms / sizeof *algorithms);
    copy_name(protocol, protocol_word, protocols, sizeof protocols / sizeof *protocols);
    if (choice->calls > 0 &&
        (strcmp(algorithm, choice->algorithm) != 0 || strcmp(protocol, choice->protocol) != 0))
        choice->mixed = true;
    choice->calls++;
    memcpy(choice->algorithm, algorithm, sizeof algorithm);
    memcpy(choice->protocol, protocol, sizeof protocol);
    if (!choice->wanted || strcmp(algorithm, choice->wanted) == 0)
        return;
    choice->other_calls++;
    memcpy(choice->other, algorithm, sizeof algorithm);
}

static void read_line(struct nccl_choice *choice, const char *line)
{
    static const char symmetric[] = "AllReduce [Symmetric]: ", plain[] = "AllReduce: ";
    char algorithm[NCCL_NAME_BYTES], protocol[NCCL_NAME_BYTES];
    const char *info = strstr(line, "NCCL INFO ");
    if (!info)
        return;
    info += strlen("NCCL INFO ");
    if (strncmp(info, symmetric, strlen(symmetric)) == 0) {
        if (sscanf(info + strlen(symmetric), "%*u Bytes -> Kernel %15s", protocol) == 1)
            add_call(choice, "symmetric", protocol);
        return;
    }
    if (strncmp(info, plain, strlen(plain)) == 0)
        info += strlen(plain);
    if (sscanf(info, "%*u Bytes -> Algo %15s proto %15s", algorithm, protocol) == 2)
        add_call(choice, algorithm, protocol);
}

void nccl_choice_read(struct nccl_choice *choice, const char *text, size_t length)
{
    const char *end = text + length;
    while (text < end) {
        char line[LINE_BYTES];
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        size_t size = (size_t)((stop ? stop : end) - text);
        size_t kept = size < sizeof line - 1 ? size : sizeof line - 1;
        memcpy(line, text, kept);
        line[kept] = '\0';
        read_line(choice, line);
        text += size + 1;
    }
}

void nccl_choice_text(const struct nccl_choice *choice, char text[NCCL_CHOICE_BYTES])
{
    if (choice->calls == 0)
        text[0] = '\0';
    else
        snprintf(text, NCCL_CHOICE_BYTES, "%s/%s%s", choice->algorithm, choice->protocol,
                 choice->mixed ? "/mixed" : "");
}

/* -------- the log ----------------------------------------------------------------------------- */

/* Frees the memory of the file from its start up to `read`. The file keeps its length, because NCCL
 * continues to write at its present offset. */
static void free_memory(const struct nccl_env_log *log)
{
    if (log->read > 0)
        fallocate(log->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, log->read);
}

void nccl_env_log_begin(struct nccl_env_log *log, int file, const char *wanted)
{
    struct stat info;
    *log = (struct nccl_env_log){.file = file, .choice = {.wanted = wanted}};
    if (file <= 0 || fstat(file, &info) != 0)
        return;
    log->read = info.st_size;
    nccl_env_log_forget();
    free_memory(log);
}

void nccl_env_log_follow(struct nccl_env_log *log)
{
    char text[LOG_READ_BYTES];
    off_t before = log->read;
    while (log->file > 0) {
        ssize_t length = pread(log->file, text, sizeof text, log->read);
        if (length <= 0)
            break;
        const char *end = memrchr(text, '\n', (size_t)length);
        if (!end && length < LOG_READ_BYTES) /* the line is not complete yet */
            break;
        size_t whole = end ? (size_t)(end - text) + 1 : (size_t)length;
        nccl_choice_read(&log->choice, text, whole);
        log->read += (off_t)whole;
    }
    if (log->read > before)
        free_memory(log);
}

enum status nccl_env_log_check(const struct nccl_env_log *log)
{
    const struct nccl_choice *choice = &log->choice;
    const char *set = getenv("NCCL_ALGO");
    if (choice->other_calls == 0)
        return STATUS_OK;
    return FAIL(
        STATUS_WRONG,
        "WRONG: --nccl-algo %s was requested, but by NCCL's own log %llu of %llu all-reduces "
        "used %s; NCCL_ALGO is %s in its environment; unset it there, or use --nccl-algo auto",
        choice->wanted, (unsigned long long)choice->other_calls, (unsigned long long)choice->calls,
        choice->other, set ? set : "not set");
}
