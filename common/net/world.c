#include "common/net/world.h"

#include <mpi.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/net/mpi_status.h"
#include "common/net/world_impl.h"

struct group_impl {
    MPI_Comm comm;
};

enum status status_from_mpi(int code, const char *what)
{
    if (code == MPI_SUCCESS)
        return STATUS_OK;
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, text, &length);
    log_error("%s: %.*s", what, length, text);
    return STATUS_TRANSPORT;
}

void backoff_wait(struct backoff *backoff, bool crowded)
{
    enum { SPINS = 1000, YIELDS = 50, SLEEPS = 50 };
    uint32_t round = backoff->rounds++;
    /* With more ranks than cores even a yield is a system call and a poll of every connection,
     * taken from those that have something to do. Asleep, more packets come before we look again.
     */
    if (crowded)
        round += SPINS + YIELDS;
    if (round < SPINS)
        return;
    if (round < SPINS + YIELDS) {
        sched_yield();
        return;
    }
    long first_ns = crowded ? 50000 : 20000, later_ns = crowded ? 200000 : 100000;
    struct timespec pause = {.tv_nsec = round < SPINS + YIELDS + SLEEPS ? first_ns : later_ns};
    nanosleep(&pause, NULL);
}

static MPI_Comm group_comm(const struct world *world, const struct group *group)
{
    return group ? group->impl->comm : world->impl->comm;
}

/* Waits without burning the CPU that slower ranks need, and not for ever. */
static enum status wait_politely(const struct world *world, MPI_Request *request, const char *what)
{
    struct backoff backoff = {0};
    int64_t deadline_ns = clock_now_ns() + world->timeout_ms * NS_PER_MS;
    for (;;) {
        int done = 0;
        int code = MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS)
            return status_from_mpi(code, what);
        if (done)
            return STATUS_OK;
        if (world->timeout_ms > 0 && clock_now_ns() >= deadline_ns) {
            log_error("%s: some rank has not come to it within %g s; are all processes alive and "
                      "all hosts reachable? Uneven ranks need a larger --timeout",
                      what, (double)world->timeout_ms / 1000);
            return STATUS_TIMEOUT;
        }
        backoff_wait(&backoff, world_crowded(world));
    }
}

/* A number that is the same for all processes on this kernel and (very likely) nowhere else: ranks
 * in network namespaces have host names of their own, but share the machine's cores all the same.
 */
static uint64_t kernel_identity(const char *host)
{
    char text[64] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file) {
        if (!fgets(text, sizeof text, file))
            text[0] = '\0';
        fclose(file);
    }
    uint64_t hash = 0;
    for (const char *at = text[0] ? text : host; *at; at++)
        hash = rng_mix64(hash ^ (uint8_t)*at);
    return hash;
}

static enum status find_neighbours(struct world *world)
{
    enum status status = STATUS_OK;
    int size = world->size;
    struct identity {
        uint64_t kernel, host;
        cpu_set_t cpus;
    } mine = {.kernel = kernel_identity(world->host)}, *all = NULL;
    CPU_ZERO(&mine.cpus);
    if (sched_getaffinity(0, sizeof mine.cpus, &mine.cpus) != 0)
        CPU_SET(0, &mine.cpus);
    world->cores = CPU_COUNT(&mine.cpus);
    for (const char *at = world->host; *at; at++)
        mine.host = rng_mix64(mine.host ^ (uint8_t)*at);
    all = calloc((size_t)size, sizeof *all);
    if (!all) {
        log_error("world: no memory for %d ranks", size);
        return STATUS_NO_MEMORY;
    }
    TRY(world_gather(world, NULL, &mine, sizeof mine, all));
    for (int rank = 0; rank < size; rank++) {
        cpu_set_t shared;
        CPU_AND(&shared, &mine.cpus, &all[rank].cpus);
        world->sharing_cpus += all[rank].kernel == mine.kernel && CPU_COUNT(&shared) > 0;
        if (all[rank].host == mine.host) {
            world->local_size++;
            world->local_rank += rank < world->rank;
        }
    }
out:
    free(all);
    return status;
}

/*
 * With Open MPI's default flags for TCP, which have "put", a large message goes out as one piece;
 * what is to go the other way first waits for leave to send, which waits behind that piece. Two
 * ranks that exchange messages then use one direction of their link at a time, and a ring of two
 * takes twice what its links allow. So: the default flags less "put", for our messages and for
 * MPI_Allreduce alike. What the user has set stays.
 *
 * And fragments of half a megabyte, not an eighth: each costs its sender and its receiver a system
 * call or more, and on loopback those are what limits (1.5 against 2.1 GB/s for 64 MB, two ranks).
 */
static void set_mpi_defaults(const char *subnet)
{
    setenv("OMPI_MCA_btl_tcp_flags", "send,inplace,need-ack,need-csum,hetero-rdma", 0);
    setenv("OMPI_MCA_btl_tcp_max_send_size", "524288", 0);
    if (subnet)
        setenv("OMPI_MCA_btl_tcp_if_include", subnet, 0);
}

enum status world_open(struct world **out, int *argc, char ***argv, const char *subnet)
{
    enum status status = STATUS_OK;
    int provided = MPI_THREAD_SINGLE;
    *out = NULL;
    struct world *world = calloc(1, sizeof *world);
    struct world_impl *impl = calloc(1, sizeof *impl);
    if (!world || !impl) {
        log_error("world: out of memory");
        free(impl);
        free(world);
        return STATUS_NO_MEMORY;
    }
    world->impl = impl;
    impl->comm = MPI_COMM_NULL;
    set_mpi_defaults(subnet);
    TRY(status_from_mpi(MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided), "MPI_Init"));
    world->concurrent = provided == MPI_THREAD_MULTIPLE;
    TRY(status_from_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &impl->comm), "MPI_Comm_dup"));
    /* Without this MPI aborts by itself and our own error checks never run. */
    MPI_Comm_set_errhandler(impl->comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(impl->comm, &world->rank);
    MPI_Comm_size(impl->comm, &world->size);
    if (gethostname(world->host, sizeof world->host - 1) != 0)
        snprintf(world->host, sizeof world->host, "unknown");
    TRY(find_neighbours(world));
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    world->run_id = rng_mix64((uint64_t)now.tv_nsec ^ rng_mix64((uint64_t)now.tv_sec) ^
                              (uint64_t)getpid() << 32);
    TRY(world_broadcast(world, NULL, &world->run_id, sizeof world->run_id));
    *out = world;
    return STATUS_OK;
out:
    world_close(&world);
    return status;
}

void world_close(struct world **world)
{
    if (!*world)
        return;
    if ((*world)->impl->comm != MPI_COMM_NULL)
        MPI_Comm_free(&(*world)->impl->comm);
    int initialized = 0;
    MPI_Initialized(&initialized);
    if (initialized)
        MPI_Finalize();
    free((*world)->impl);
    free(*world);
    *world = NULL;
}

void world_abort(struct world *world, int exit_code)
{
    fflush(stdout);
    if (world->size > 1)
        MPI_Abort(world->impl->comm, exit_code);
    _exit(exit_code);
}

bool world_crowded(const struct world *world)
{
    return world->sharing_cpus > world->cores;
}

enum status world_group_new(struct group **out, struct world *world, int color)
{
    enum status status;
    struct group *group = NULL;
    struct group_impl *impl = NULL;
    int *colors = calloc((size_t)world->size, sizeof *colors);
    *out = NULL;
    if (!colors) {
        log_error("world: no memory for %d ranks", world->size);
        return STATUS_NO_MEMORY;
    }
    TRY(world_gather(world, NULL, &color, sizeof color, colors));
    TRY(group_from_colors(&group, colors, world->size, world->rank));
    impl = malloc(sizeof *impl);
    if (!impl) {
        log_error("world: out of memory");
        status = STATUS_NO_MEMORY;
        goto out;
    }
    TRY(status_from_mpi(MPI_Comm_split(world->impl->comm, color < 0 ? MPI_UNDEFINED : color,
                                       world->rank, &impl->comm),
                        "MPI_Comm_split"));
    if (!group)
        goto out;
    MPI_Comm_set_errhandler(impl->comm, MPI_ERRORS_RETURN);
    group->impl = impl;
    impl = NULL;
    *out = group;
    group = NULL;
out:
    free(colors);
    free(impl);
    group_free(&group);
    return status;
}

void world_group_free(struct group **group)
{
    if (!*group)
        return;
    MPI_Comm_free(&(*group)->impl->comm);
    free((*group)->impl);
    (*group)->impl = NULL;
    group_free(group);
}

enum status world_barrier(struct world *world, const struct group *group)
{
    MPI_Request request;
    int code = MPI_Ibarrier(group_comm(world, group), &request);
    if (code != MPI_SUCCESS)
        return status_from_mpi(code, "MPI_Ibarrier");
    return wait_politely(world, &request, "MPI_Ibarrier");
}

enum status world_broadcast(struct world *world, const struct group *group, void *data,
                            size_t bytes)
{
    CHECK(bytes <= INT_MAX);
    MPI_Request request;
    int code = MPI_Ibcast(data, (int)bytes, MPI_BYTE, 0, group_comm(world, group), &request);
    if (code != MPI_SUCCESS)
        return status_from_mpi(code, "MPI_Ibcast");
    return wait_politely(world, &request, "MPI_Ibcast");
}

enum status world_gather(struct world *world, const struct group *group, const void *mine,
                         size_t bytes, void *all)
{
    CHECK(bytes <= INT_MAX);
    MPI_Request request;
    int code = MPI_Iallgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE,
                              group_comm(world, group), &request);
    if (code != MPI_SUCCESS)
        return status_from_mpi(code, "MPI_Iallgather");
    return wait_politely(world, &request, "MPI_Iallgather");
}

static enum status combine(struct world *world, const struct group *group, double *values,
                           size_t count, MPI_Op op)
{
    CHECK(count <= INT_MAX);
    MPI_Request request;
    int code = MPI_Iallreduce(MPI_IN_PLACE, values, (int)count, MPI_DOUBLE, op,
                              group_comm(world, group), &request);
    if (code != MPI_SUCCESS)
        return status_from_mpi(code, "MPI_Iallreduce");
    return wait_politely(world, &request, "MPI_Iallreduce");
}

enum status world_sum(struct world *world, const struct group *group, double *values, size_t count)
{
    return combine(world, group, values, count, MPI_SUM);
}

enum status world_max(struct world *world, const struct group *group, double *values, size_t count)
{
    return combine(world, group, values, count, MPI_MAX);
}

enum status world_allreduce_float(struct world *world, const struct group *group, float *data,
                                  size_t count)
{
    CHECK(count <= INT_MAX);
    return status_from_mpi(
        MPI_Allreduce(MPI_IN_PLACE, data, (int)count, MPI_FLOAT, MPI_SUM, group_comm(world, group)),
        "MPI_Allreduce");
}
