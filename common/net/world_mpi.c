/*
 * The bootstrap by MPI: mpirun or srun has started the ranks, or one process is alone. A build
 * without MPI does not define PSRING_HAVE_MPI. Its versions of these functions follow after #else.
 */
#include "common/net/world_impl.h"

#ifdef PSRING_HAVE_MPI

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/status.h"
#include "common/base/clock.h"

/* For a world that MPI has brought together (world_is_mpi). */
struct world_impl {
    MPI_Comm comm;    /* a duplicate of MPI_COMM_WORLD or of the given one; returns errors */
    bool initialized; /* by world_open, so world_close finalises MPI */
};

/* MPI does not allow two threads in collective calls of one communicator at a time. The gradients'
 * thread therefore has its own. */
struct group_impl {
    MPI_Comm comm;
    MPI_Comm gradients; /* for mpi_allreduce_float */
};

MPI_Comm world_mpi_comm(const struct world *world)
{
    return world->impl->comm;
}

enum status status_from_mpi(int code, const char *what)
{
    if (code == MPI_SUCCESS)
        return STATUS_OK;
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, text, &length);
    return FAIL(STATUS_TRANSPORT, "%s: %.*s", what, length, text);
}

/* Waits until the call that returned `code` completes. It leaves the CPU to slower ranks, and has a
 * time-out. */
static enum status wait_politely(const struct world *world, int code, const char *name,
                                 MPI_Request *request)
{
    struct backoff backoff = {0};
    int64_t now_ns = clock_now_ns(), look_ns = now_ns;
    int64_t deadline_ns = now_ns + world_patience_ms(world) * NS_PER_MS;
    for (;;) {
        int done = 0;
        if (code == MPI_SUCCESS)
            code = MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS)
            return status_from_mpi(code, name);
        if (done)
            return STATUS_OK;
        now_ns = clock_now_ns();
        if (world->cancelled && now_ns - look_ns >= WORLD_LOOK_MS * NS_PER_MS) {
            look_ns = now_ns;
            if (world_cancelled(world))
                return STATUS_TRANSPORT;
        }
        if (world_patience_ms(world) > 0 && now_ns >= deadline_ns)
            return FAIL(STATUS_TIMEOUT,
                        "%s: some rank has not reached this call within %g s; are all processes "
                        "alive and all hosts reachable? Uneven ranks need a larger --timeout",
                        name, (double)world->timeout_ms / 1000);
        backoff_wait(&backoff, world_crowded(world, 1));
    }
}

/* MPI cannot cancel a collective call, so each call has its own memory for MPI to use. If the call
 * fails, that memory is never freed. */
static enum status mpi_call(struct world *world, const struct group *group, enum world_call call,
                            const void *in, void *out, size_t bytes)
{
    static const char *const names[] = {
        [WORLD_BARRIER] = "MPI_Ibarrier",  [WORLD_BROADCAST] = "MPI_Ibcast",
        [WORLD_GATHER] = "MPI_Iallgather", [WORLD_COLLECT] = "MPI_Igather",
        [WORLD_SCATTER] = "MPI_Iscatter",
    };
    MPI_Comm comm = group ? group->impl->comm : world->impl->comm;
    MPI_Request request;
    bool root = (group ? group->rank : world->rank) == 0;
    size_t all = bytes * (size_t)(group ? group->size : world->size);
    size_t in_bytes = call != WORLD_SCATTER ? bytes : root ? all : 0;
    size_t out_bytes = call == WORLD_SCATTER                                     ? bytes
                       : call == WORLD_GATHER || (call == WORLD_COLLECT && root) ? all
                                                                                 : 0;
    int code = MPI_SUCCESS, count = (int)bytes;
    CHECK(bytes <= INT_MAX);
    unsigned char *given = malloc(in_bytes + out_bytes + 1);
    if (!given)
        return FAIL(STATUS_NO_MEMORY, "%s: no memory for %zu bytes", names[call],
                    in_bytes + out_bytes);
    unsigned char *taken = given + in_bytes;
    if (in_bytes > 0)
        memcpy(given, in, in_bytes);
    switch (call) {
    case WORLD_BARRIER:
        code = MPI_Ibarrier(comm, &request);
        break;
    case WORLD_BROADCAST:
        code = MPI_Ibcast(given, count, MPI_BYTE, 0, comm, &request);
        taken = given;
        out_bytes = bytes;
        break;
    case WORLD_GATHER:
        code = MPI_Iallgather(given, count, MPI_BYTE, taken, count, MPI_BYTE, comm, &request);
        break;
    case WORLD_COLLECT:
        code = MPI_Igather(given, count, MPI_BYTE, taken, count, MPI_BYTE, 0, comm, &request);
        break;
    case WORLD_SCATTER:
        code = MPI_Iscatter(given, count, MPI_BYTE, taken, count, MPI_BYTE, 0, comm, &request);
        break;
    }
    enum status status = wait_politely(world, code, names[call], &request);
    if (status != STATUS_OK)
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): MPI may still use the memory */
        return status;
    if (out_bytes > 0)
        memcpy(out, taken, out_bytes);
    free(given);
    return STATUS_OK;
}

static enum status mpi_allreduce_float(struct world *world, const struct group *group, float *data,
                                       size_t count)
{
    (void)world;
    CHECK(count <= INT_MAX);
    return status_from_mpi(
        MPI_Allreduce(MPI_IN_PLACE, data, (int)count, MPI_FLOAT, MPI_SUM, group->impl->gradients),
        "MPI_Allreduce");
}

bool world_mpi_version(char *text, size_t size)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(version, &length);
    version[strcspn(version, ",\n")] = '\0'; /* Open MPI appends builder and place */
    snprintf(text, size, "%s", version);
    return true;
}

/* -------- groups ------------------------------------------------------------------------------ */

static void free_group(struct group_impl *impl)
{
    if (impl->gradients != MPI_COMM_NULL)
        MPI_Comm_free(&impl->gradients);
    if (impl->comm != MPI_COMM_NULL)
        MPI_Comm_free(&impl->comm);
    free(impl);
}

static enum status mpi_group_open(struct world *world, struct group *group, int color)
{
    enum status status;
    struct group_impl *impl = malloc(sizeof *impl);
    if (!impl)
        return FAIL(STATUS_NO_MEMORY, "world: out of memory");
    *impl = (struct group_impl){MPI_COMM_NULL, MPI_COMM_NULL};
    TRY(status_from_mpi(MPI_Comm_split(world->impl->comm, color < 0 ? MPI_UNDEFINED : color,
                                       world->rank, &impl->comm),
                        "MPI_Comm_split"));
    if (group) {
        MPI_Comm_set_errhandler(impl->comm, MPI_ERRORS_RETURN); /* also for the duplicate */
        TRY(status_from_mpi(MPI_Comm_dup(impl->comm, &impl->gradients), "MPI_Comm_dup"));
        group->impl = impl;
        return STATUS_OK;
    }
out:
    free_group(impl);
    return status;
}

static void mpi_group_close(struct group *group)
{
    free_group(group->impl);
    group->impl = NULL;
}

/* -------- opening and closing ----------------------------------------------------------------- */

/*
 * Open MPI's default flags for TCP contain "put". A large message then goes out in one piece. A
 * message in the other direction first waits for permission to send, which waits behind that piece.
 * Two ranks that exchange messages then use one direction of their link at a time. A ring of two
 * takes twice the time that its links allow. Therefore psring removes "put" from the default flags,
 * for its own messages and for MPI_Allreduce alike. Values set by the user stay. A program that
 * embeds psring owns its environment, so nothing is set there.
 *
 * Fragments have half a megabyte instead of an eighth. Each costs its sender and its receiver at
 * least one system call, which is the limit on loopback (1.5 against 2.1 GB/s for 64 MB, two
 * ranks).
 */
static void set_mpi_defaults(const char *subnet)
{
    setenv("OMPI_MCA_btl_tcp_flags", "send,inplace,need-ack,need-csum,hetero-rdma", 0);
    setenv("OMPI_MCA_btl_tcp_max_send_size", "524288", 0);
    if (subnet && !strchr(subnet, ':')) /* Open MPI accepts names and IPv4 networks */
        setenv("OMPI_MCA_btl_tcp_if_include", subnet, 0);
}

/* Skipped if the program has finalised MPI itself. */
static void finalize_at_exit(void)
{
    int finalized = 0;
    if (MPI_Finalized(&finalized) == MPI_SUCCESS && !finalized)
        MPI_Finalize();
}

/* After a failure MPI_Finalize may wait for ranks that come late, or never. A process that
 * continues calls it at its exit, as MPI demands. A pending call keeps its communicator. */
static void mpi_close(struct world *world)
{
    struct world_impl *impl = world->impl;
    if (impl && impl->comm != MPI_COMM_NULL && !world->failed)
        MPI_Comm_free(&impl->comm);
    if (impl && impl->initialized && !(world->failed && atexit(finalize_at_exit) == 0))
        MPI_Finalize();
    free(impl);
}

static void mpi_abort(struct world *world, int exit_code)
{
    MPI_Abort(world->impl->comm, exit_code);
}

static const struct world_ops mpi_ops = {
    .call = mpi_call,
    .allreduce_float = mpi_allreduce_float,
    .group_open = mpi_group_open,
    .group_close = mpi_group_close,
    .abort = mpi_abort,
    .close = mpi_close,
};

/* Initialises MPI unless it is initialised already. */
static enum status initialize(struct world *world, int *argc, char ***argv,
                              const struct world_options *options)
{
    enum status status = STATUS_OK;
    int initialized = 0, finalized = 0, provided = MPI_THREAD_SINGLE;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    if (finalized)
        return FAIL(STATUS_UNSUPPORTED,
                    "MPI_Init: MPI has been finalised, and cannot be started again in this "
                    "process; use a rendezvous");
    if (options->mpi_comm && !initialized)
        return FAIL(STATUS_USAGE, "mpi_comm: MPI is not initialised; call MPI_Init first");
    if (initialized) {
        MPI_Query_thread(&provided);
    } else {
        if (!options->embedded)
            set_mpi_defaults(options->subnet);
        TRY(status_from_mpi(MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided),
                            "MPI_Init"));
        world->impl->initialized = true;
    }
    world->concurrent = provided == MPI_THREAD_MULTIPLE;
out:
    return status;
}

enum status world_mpi_open(struct world *world, int *argc, char ***argv,
                           const struct world_options *options)
{
    enum status status;
    const MPI_Comm *given = options->mpi_comm;
    world->ops = &mpi_ops;
    struct world_impl *impl = world->impl = calloc(1, sizeof *impl);
    if (!impl)
        return FAIL(STATUS_NO_MEMORY, "world: out of memory");
    impl->comm = MPI_COMM_NULL;
    TRY(initialize(world, argc, argv, options));
    TRY(status_from_mpi(MPI_Comm_dup(given ? *given : MPI_COMM_WORLD, &impl->comm),
                        "MPI_Comm_dup"));
    /* Without this MPI aborts on errors, and psring's own checks never run. */
    MPI_Comm_set_errhandler(impl->comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(impl->comm, &world->rank);
    MPI_Comm_size(impl->comm, &world->size);
out:
    return status;
}

#else

bool world_mpi_version(char *text, size_t size)
{
    (void)text;
    (void)size;
    return false;
}

/* A process without a rendezvous is alone. */
enum status world_mpi_open(struct world *world, int *argc, char ***argv,
                           const struct world_options *options)
{
    (void)argc;
    (void)argv;
    return world_rendezvous_open(
        world,
        &(struct world_options){.startup_timeout_ms = options->startup_timeout_ms, .size = 1});
}

#endif
