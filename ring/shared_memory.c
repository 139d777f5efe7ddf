#include "ring/shared_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/util.h"
#include "common/net/activity.h"

#define SPIN_NS (50 * NS_PER_US)
#define LISTEN_NS (100 * NS_PER_MS) /* between checks for a lost rank, if no watchdog watches */
#define REASON_NS (200 * NS_PER_MS) /* wait for a failed rank's reason to arrive */

enum { LINE_BYTES = 128 }; /* two cache lines: processors fetch pairs */

/* A worker's state. `told` is the last operation of which the event has happened, times 2, or
 * FAILED. `moves` changes whenever the worker makes progress. */
enum { FAILED = 1 };
struct shared_line {
    _Alignas(LINE_BYTES) _Atomic uint32_t told[SHARED_EVENTS];
    _Atomic uint32_t moves;
};

struct shared {
    struct shared_memory_options options;
    bool spins;
    size_t lines_bytes, vector_bytes, bytes; /* in whole pages */
    void *memory;                            /* lines; vectors, by index; sums */
    pid_t *processes;                        /* by index */
};

/* A rank's process and the open file that holds the memory; -1: no file. */
struct shared_location {
    int64_t pid, descriptor;
    uint64_t device, inode;
};

/* -------- opening ----------------------------------------------------------------------------- */

static size_t whole_pages(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return size_divide_up(bytes, page) * page;
}

static const char *own_host(const struct shared *shared)
{
    return shared->options.world->host;
}

/* posix_fallocate fails with EINTR on any signal, even one that only stops and continues us. */
static int allocate(int descriptor, size_t bytes)
{
    int error;
    do
        error = posix_fallocate(descriptor, 0, (off_t)bytes);
    while (error == EINTR);
    return error;
}

/* Creates a file without a name and allocates all of it. A lack of memory is then an error here,
 * not a fault later. */
static enum status create(const struct shared *shared, int *descriptor,
                          struct shared_location *location)
{
    struct stat file;
    *descriptor = memfd_create("psring", MFD_CLOEXEC);
    int error = *descriptor < 0 ? errno : allocate(*descriptor, shared->bytes);
    if (error == 0 && fstat(*descriptor, &file) != 0)
        error = errno;
    if (error)
        return FAIL(status_from_errno(error),
                    "hierarchical: cannot allocate %zu bytes of shared memory for the %d workers "
                    "of %s: %s; use smaller buckets (--bucket-mb), or --backend ring, which needs "
                    "none",
                    shared->bytes, shared->options.group->size, own_host(shared), strerror(error));
    location->descriptor = *descriptor;
    location->device = file.st_dev;
    location->inode = file.st_ino;
    return STATUS_OK;
}

/* Opens the file only if it is the expected one, because the descriptor may belong to any other
 * file. */
static enum status find(const struct shared *shared, const struct shared_location *location,
                        int *descriptor)
{
    char path[64];
    struct stat file;
    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)location->pid,
             (long long)location->descriptor);
    int error = stat(path, &file) != 0 ? errno : 0;
    bool other = !error && (file.st_dev != location->device || file.st_ino != location->inode);
    if (!error && !other) {
        *descriptor = open(path, O_RDWR | O_CLOEXEC);
        error = *descriptor < 0 ? errno : 0;
    }
    if (error || other) {
        log_error("hierarchical: rank %d on %s cannot open the memory of rank %d there, %s: %s; "
                  "ranks of one host name must see each other's processes, but those in several "
                  "containers or of several users do not; give each container its own host name, "
                  "or use --backend ring",
                  shared->options.world->rank, own_host(shared), shared->options.group->ranks[0],
                  path, error ? strerror(error) : "it is another file");
        return error ? status_from_errno(error) : STATUS_UNSUPPORTED;
    }
    if ((size_t)file.st_size != shared->bytes)
        return FAIL(
            STATUS_USAGE,
            "hierarchical: rank %d on %s needs %zu bytes of shared memory and rank %d there "
            "has %lld; the longest bucket must have the same length on all ranks",
            shared->options.world->rank, own_host(shared), shared->bytes,
            shared->options.group->ranks[0], (long long)file.st_size);
    return STATUS_OK;
}

static enum status map(struct shared *shared, int descriptor)
{
    void *memory = mmap(NULL, shared->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED)
        return FAIL(status_from_errno(errno), "hierarchical: mapping %zu bytes: %s", shared->bytes,
                    strerror(errno));
    shared->memory = memory;
    return STATUS_OK;
}

/* The callers of shared_open: their number, the index of a rank among them, and the rank at an
 * index. */
static int callers(const struct shared_memory_options *options)
{
    return options->workers ? options->workers->size : options->world->size;
}

static int index_of(const struct shared_memory_options *options, int rank)
{
    int index = 0;
    while (options->workers && options->workers->ranks[index] != rank)
        index++;
    return options->workers ? index : rank;
}

static int rank_of(const struct shared_memory_options *options, int index)
{
    return options->workers ? options->workers->ranks[index] : index;
}

/* Maps the memory that the first worker of the host has created. `locations` has one entry for each
 * caller. */
static enum status join(struct shared *shared, const struct shared_location *locations,
                        int *descriptor)
{
    enum status status;
    const struct shared_memory_options *options = &shared->options;
    const struct group *group = options->group;
    const struct shared_location *first = &locations[index_of(options, group->ranks[0])];
    for (int index = 0; index < group->size; index++)
        shared->processes[index] = (pid_t)locations[index_of(options, group->ranks[index])].pid;
    if (group->rank > 0 && first->descriptor < 0)
        return STATUS_OK; /* that worker reports its own error */
    if (group->rank > 0)
        TRY(find(shared, first, descriptor));
    TRY(map(shared, *descriptor));
out:
    return status;
}

/* OK if `mine` is OK on all callers. */
static enum status agree(const struct shared_memory_options *options, enum status mine)
{
    enum status status, *all = calloc((size_t)callers(options), sizeof *all);
    struct world *world = options->world;
    if (!all)
        return FAIL(STATUS_NO_MEMORY, "hierarchical: no memory for %d ranks", callers(options));
    TRY(world_gather(world, options->workers, &mine, sizeof mine, all));
    if (options->agreed)
        *options->agreed = true;
    status = mine;
    for (int index = 0; index < callers(options) && status == STATUS_OK; index++) {
        int rank = rank_of(options, index);
        status = all[index];
        if (status != STATUS_OK)
            log_error("hierarchical: rank %d on %s has no memory to share there: %s", rank,
                      world->hosts[rank], status_name(status));
    }
out:
    free(all);
    return status;
}

static enum status shared_new(struct shared **out, const struct shared_memory_options *options)
{
    const struct group *group = options->group;
    struct shared *shared = calloc(1, sizeof *shared);
    *out = shared;
    if (shared)
        shared->processes = calloc((size_t)group->size, sizeof *shared->processes);
    if (!shared || !shared->processes) {
        log_error("hierarchical: out of memory");
        shared_close(out);
        return STATUS_NO_MEMORY;
    }
    shared->options = *options;
    shared->spins = !world_crowded(options->world, 1);
    shared->lines_bytes = whole_pages((size_t)group->size * sizeof(struct shared_line));
    shared->vector_bytes = whole_pages(options->vector_bytes);
    shared->bytes = shared->lines_bytes + (size_t)(group->size + 1) * shared->vector_bytes;
    return STATUS_OK;
}

enum status shared_open(struct shared **out, const struct shared_memory_options *options)
{
    enum status status, mine_status = STATUS_OK;
    struct world *world = options->world;
    const struct group *group = options->group;
    bool shares = group && group->size > 1;
    int descriptor = -1;
    struct shared_location mine = {.pid = getpid(), .descriptor = -1};
    struct shared *shared = NULL;
    struct shared_location *locations = calloc((size_t)callers(options), sizeof *locations);
    *out = NULL;
    if (!locations)
        return FAIL(STATUS_NO_MEMORY, "hierarchical: no memory for %d ranks", callers(options));
    if (shares)
        mine_status = shared_new(&shared, options);
    if (shared && group->rank == 0)
        mine_status = create(shared, &descriptor, &mine);
    TRY(world_gather(world, options->workers, &mine, sizeof mine, locations));
    if (shared && mine_status == STATUS_OK)
        mine_status = join(shared, locations, &descriptor);
    TRY(agree(options, mine_status)); /* the first worker's descriptor is not needed after this */
    *out = shared;
    shared = NULL;
out:
    if (descriptor >= 0)
        close(descriptor);
    shared_close(&shared);
    free(locations);
    return status;
}

void shared_close(struct shared **shared)
{
    if (!*shared)
        return;
    if ((*shared)->memory)
        munmap((*shared)->memory, (*shared)->bytes);
    free((*shared)->processes);
    free(*shared);
    *shared = NULL;
}

/* -------- telling and waiting ----------------------------------------------------------------- */

void *shared_vector(const struct shared *shared, int index)
{
    return (char *)shared->memory + shared->lines_bytes + (size_t)index * shared->vector_bytes;
}

void *shared_sums(const struct shared *shared)
{
    return shared_vector(shared, shared->options.group->size);
}

static struct shared_line *line_of(const struct shared *shared, int index)
{
    return (struct shared_line *)shared->memory + index;
}

static bool has_told(_Atomic uint32_t *told, uint32_t operation)
{
    return atomic_load_explicit(told, memory_order_acquire) == operation << 1;
}

static void tell(struct shared *shared, enum shared_event event, uint32_t what)
{
    _Atomic uint32_t *told = &line_of(shared, shared->options.group->rank)->told[event];
    atomic_store_explicit(told, what, memory_order_release);
    syscall(SYS_futex, told, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void shared_notify(struct shared *shared, enum shared_event event, uint32_t operation)
{
    tell(shared, event, operation << 1);
}

void shared_fail(struct shared *shared)
{
    for (enum shared_event event = 0; event < SHARED_EVENTS; event++)
        tell(shared, event, FAILED);
}

static uint32_t moves_of(struct shared_line *line)
{
    return atomic_load_explicit(&line->moves, memory_order_relaxed);
}

void shared_moved(struct shared *shared)
{
    struct shared_line *line = line_of(shared, shared->options.group->rank);
    atomic_store_explicit(&line->moves, moves_of(line) + 1, memory_order_relaxed);
}

static bool try_for_a_while(const struct shared *shared, _Atomic uint32_t *told, uint32_t operation)
{
    if (has_told(told, operation) || !shared->spins)
        return has_told(told, operation);
    int64_t until_ns = clock_now_ns() + SPIN_NS;
    while (!has_told(told, operation) && clock_now_ns() < until_ns)
        ;
    return has_told(told, operation);
}

/* Sleeps until *told differs from `seen`, another event wakes us, or `most_ns` has passed. */
static void sleep_on(_Atomic uint32_t *told, uint32_t seen, int64_t most_ns)
{
    const struct timespec most = {.tv_sec = most_ns / NS_PER_S, .tv_nsec = most_ns % NS_PER_S};
    syscall(SYS_futex, told, FUTEX_WAIT, seen, &most, NULL, 0);
}

static enum status timed_out(const struct shared *shared, int index, enum shared_event event)
{
    return FAIL(STATUS_TIMEOUT,
                "hierarchical: nothing for %g s while waiting for rank %d on the same host, %s, to "
                "%s; is its process alive? Longer steps need a larger --timeout",
                (double)shared->options.timeout_ms / 1e3, shared->options.group->ranks[index],
                own_host(shared), event == SHARED_FILLED ? "begin" : "end its part");
}

/* True also for a zombie: a process that has ended and whose parent has not waited for it. Another
 * user's process may hide its program (EACCES, EPERM) and then counts as alive. */
static bool is_gone(pid_t process)
{
    char path[32], program[1];
    if (kill(process, 0) != 0)
        return errno == ESRCH;
    snprintf(path, sizeof path, "/proc/%d/exe", (int)process);
    return readlink(path, program, sizeof program) < 0 && (errno == ENOENT || errno == ESRCH);
}

static enum status lost(const struct shared *shared, int index, const char *how)
{
    return FAIL(STATUS_TRANSPORT, "hierarchical: rank %d on the same host, %s, %s",
                shared->options.group->ranks[index], own_host(shared), how);
}

/* If the transport is embedded, the failed rank sends its reason over it, a little later than it
 * fails here. */
static enum status has_failed(const struct shared *shared, int index)
{
    int64_t until_ns = clock_now_ns() + REASON_NS;
    if (shared->options.world->activity)
        return STATUS_TRANSPORT;
    for (;;) {
        enum status status = transport_listen(shared->options.transport, -1);
        if (status != STATUS_OK)
            return status;
        if (clock_now_ns() >= until_ns)
            return lost(shared, index, "has failed");
        clock_sleep_until_ns(clock_now_ns() + NS_PER_MS);
    }
}

/* No event for a while, and no watchdog: decides whether to stop waiting. */
static enum status give_up(const struct shared *shared, int index, enum shared_event event,
                           _Atomic uint32_t *told, uint32_t seen, int64_t deadline_ns)
{
    bool gone = is_gone(shared->processes[index]);
    if (atomic_load_explicit(told, memory_order_acquire) != seen)
        return STATUS_OK;
    if (gone)
        return lost(shared, index, "has ended");
    enum status status =
        transport_listen(shared->options.transport, shared->options.group->ranks[index]);
    if (status != STATUS_OK)
        return status;
    return clock_now_ns() >= deadline_ns ? timed_out(shared, index, event) : STATUS_OK;
}

enum status shared_wait(struct shared *shared, int index, enum shared_event event,
                        uint32_t operation)
{
    const struct shared_memory_options *options = &shared->options;
    struct activity *activity = options->world->activity;
    struct shared_line *line = line_of(shared, index);
    _Atomic uint32_t *told = &line->told[event];
    int rank = options->group->ranks[index];
    enum status status = STATUS_OK;
    if (try_for_a_while(shared, told, operation))
        return STATUS_OK;
    activity_wait(activity, ACTIVITY_WORKER, rank, rank, ACTIVITY_NO_OFFSET);
    int64_t timeout_ns = options->timeout_ms * NS_PER_MS, deadline_ns = clock_now_ns() + timeout_ns;
    int64_t most_ns = activity ? NS_PER_S : LISTEN_NS;
    int64_t round_ns = timeout_ns / 2 < most_ns ? timeout_ns / 2 : most_ns;
    uint32_t moves = moves_of(line);
    while (status == STATUS_OK) {
        uint32_t seen = atomic_load_explicit(told, memory_order_acquire);
        world_acts(options->world);
        if (seen == operation << 1)
            break;
        if (moves != moves_of(line)) {
            moves = moves_of(line);
            activity_moved(activity, ACTIVITY_WORKER);
            deadline_ns = clock_now_ns() + timeout_ns;
        }
        if (seen == FAILED)
            status = has_failed(shared, index);
        else if (transport_interrupted(options->transport))
            status = STATUS_TRANSPORT;
        else
            sleep_on(told, seen, round_ns);
        if (status == STATUS_OK && !activity)
            status = give_up(shared, index, event, told, seen, deadline_ns);
    }
    activity_go_on(activity, ACTIVITY_WORKER);
    return status;
}
