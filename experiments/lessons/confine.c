/*
 * Confines the process of a trial of the homework, and ends the processes that it leaves, for
 * judge.c.
 */
#include "experiments/lessons/judge.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"

enum {
    MEMORY_MB = 1024,
    LOG_BYTES = 1 << 20,
    CPU_S = 5,            /* of one process */
    PROCESSES_MOST = 500, /* and threads that a trial may start; root may start more */
    END_S = 5,            /* for all processes that a trial leaves */
    REAPED_MOST = 1000    /* before the judge kills others, which may start more meanwhile */
};

/* -------- processes --------------------------------------------------------------------------- */

struct process {
    pid_t pid, parent;
    long threads;
};

/* Reads /proc/NAME/stat. Returns false if there is no such process. */
static bool read_process(const char *name, struct process *process)
{
    char path[300], text[512];
    snprintf(path, sizeof path, "/proc/%s/stat", name);
    FILE *file = isdigit((unsigned char)name[0]) ? fopen(path, "r") : NULL;
    if (!file)
        return false;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    const char *end = strrchr(text, ')'); /* the program's name may contain anything */
    process->pid = (pid_t)strtol(name, NULL, 10);
    return end &&
           sscanf(end, ") %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld",
                  &process->parent, &process->threads) == 2;
}

/* Threads of this user's processes. */
static rlim_t count_threads(void)
{
    rlim_t threads = 0;
    struct process process;
    struct stat about;
    DIR *all = opendir("/proc");
    for (struct dirent *entry; all && (entry = readdir(all));) {
        if (fstatat(dirfd(all), entry->d_name, &about, 0) == 0 && about.st_uid == getuid() &&
            read_process(entry->d_name, &process))
            threads += (rlim_t)process.threads;
    }
    if (all)
        closedir(all);
    return threads;
}

/* Kills all children, and the groups that they lead. No child is reaped meanwhile, so no other
 * process can get the number of one. */
static void kill_children(void)
{
    struct process process;
    pid_t self = getpid();
    DIR *all = opendir("/proc");
    for (struct dirent *entry; all && (entry = readdir(all));) {
        if (read_process(entry->d_name, &process) && process.parent == self) {
            kill(-process.pid, SIGKILL);
            kill(process.pid, SIGKILL);
        }
    }
    if (all)
        closedir(all);
}

/* Ends all remaining processes of the trial, also those that left its group. Returns how many there
 * were; -1: some remain after END_S. */
int end_processes(pid_t group)
{
    const int64_t deadline_ns = clock_now_ns() + END_S * NS_PER_S;
    int ended = 0;
    kill(-group, SIGKILL);
    while (clock_now_ns() < deadline_ns) {
        pid_t reaped = 1;
        for (int i = 0; reaped > 0 && i < REAPED_MOST; i++) {
            reaped = waitpid(-1, NULL, WNOHANG);
            ended += reaped > 0;
        }
        if (reaped < 0)
            return ended;
        kill_children();
        clock_sleep_until_ns(clock_now_ns() + NS_PER_MS);
    }
    return -1;
}

/* -------- limits ------------------------------------------------------------------------------ */

static void on_crash(int number, siginfo_t *info, void *context)
{
    (void)context;
    witness_crash(number, info->si_addr);
}

static void set_limit(int resource, rlim_t most)
{
    (void)setrlimit(resource, &(struct rlimit){most, most + (resource == RLIMIT_CPU)});
}

/* The limit counts all threads of the user. Some may be invisible here, in other containers: if no
 * process can start, the limit stays as it was. */
static void limit_processes(void)
{
    struct rlimit before;
    const rlim_t most = count_threads() + PROCESSES_MOST;
    if (getrlimit(RLIMIT_NPROC, &before) != 0 || before.rlim_cur <= most ||
        setrlimit(RLIMIT_NPROC, &(struct rlimit){most, before.rlim_max}) != 0)
        return;
    pid_t child = fork();
    if (child == 0)
        _exit(EXIT_SUCCESS);
    if (child > 0)
        (void)waitpid(child, NULL, 0);
    else
        (void)setrlimit(RLIMIT_NPROC, &before);
}

/* Limits the calling process, which then writes into `log`. */
void confine(int log, unsigned process_s)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGXCPU, SIGALRM};
    struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    int nothing = open("/dev/null", O_RDWR);
    if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0 ||
        dup2(log, STDERR_FILENO) < 0)
        _exit(EXIT_FAILURE);
    limit_processes();
    set_limit(RLIMIT_CORE, 0);
    set_limit(RLIMIT_CPU, CPU_S);
    set_limit(RLIMIT_FSIZE, LOG_BYTES);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    set_limit(RLIMIT_DATA, (rlim_t)MEMORY_MB << 20); /* sanitizers map far more than they use */
#endif
    signal(SIGXFSZ, SIG_IGN);
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        (void)sigaction(crashes[i], &action, NULL);
    alarm(process_s);
}
