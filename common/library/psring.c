/* Initialisation and finalisation of the library: options and environment, meeting and connecting,
 * and the engine, which decides which thread uses the connections when. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/library/library.h"
#include "common/net/host.h"
#include "common/net/secure.h"
#include "ring/ring.h"

/* -------- children of fork() -------------------------------------------------------------------
 *
 * A child inherits the connections. While it has them open, no rank sees the end of this process,
 * so the child closes them.
 */

static struct {
    pthread_mutex_t lock; /* held from before to after a fork */
    pthread_once_t once;
    const struct engine *engine;
} forks = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

/* Between these two functions no fork() happens, so a child never sees a half-closed descriptor. */
static void forks_hold(void)
{
    pthread_mutex_lock(&forks.lock);
}

static void forks_release(void)
{
    pthread_mutex_unlock(&forks.lock);
}

static void in_child(void)
{
    if (forks.engine) {
        transport_close_in_child(forks.engine->place.endpoints[NODE_WORKER]);
        world_close_in_child(forks.engine->world);
    }
    forks.engine = NULL;
    forks_release();
}

/* If this runs out of memory, a child keeps the connections: errors then come late, but none is
 * lost. */
static void prepare(void)
{
    (void)pthread_atfork(forks_hold, forks_release, in_child);
}

/* From now on children close the connections of `engine`. NULL: there is no engine. */
static void forks_watch(const struct engine *engine)
{
    pthread_once(&forks.once, prepare);
    forks_hold();
    forks.engine = engine;
    forks_release();
}

/* Bounds the length that a peer may announce. No message of psring is longer. */
enum { PAYLOAD_BYTES_MOST = 16 << 20, STARTUP_TIMEOUT_S = 60, TIMEOUT_S = 600 };

/* -------- names ------------------------------------------------------------------------------- */

/* NULL and "auto" let psring choose. */
static bool is_auto(const char *name)
{
    return !name || strcmp(name, "auto") == 0;
}

static enum status find_backend(const char *name, const struct backend **backend)
{
    static const struct backend *const backends[] = {&backend_ring, &backend_rhd, &backend_tree,
                                                     &backend_hierarchical};
    *backend = NULL;
    if (is_auto(name))
        return STATUS_OK;
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {
        if (strcmp(backends[i]->name, name) == 0)
            *backend = backends[i];
    }
    if (*backend)
        return STATUS_OK;
    return FAIL(STATUS_USAGE, "backend '%s' is unknown: use auto, ring, rhd, tree or hierarchical",
                name);
}

static enum status find_transport(const char *name, enum transport_kind *kind)
{
    *kind = is_auto(name) ? TRANSPORT_TCP : transport_kind_find(name);
    if (*kind == TRANSPORT_KINDS)
        return FAIL(STATUS_USAGE, "transport '%s' is unknown: use auto, tcp, zmq or mpi", name);
    if (!transport_kind_unavailable(*kind))
        return STATUS_OK;
    return FAIL(STATUS_UNSUPPORTED,
                "transport '%s': this libpsring was built without MPI; use tcp or zmq, or build it "
                "with -DPSRING_LIBRARY_MPI=ON",
                name);
}

static enum status find_timeout(const char *name, double seconds, int64_t otherwise_s, int64_t *ms)
{
    *ms = seconds == 0 ? otherwise_s * 1000 : 0;
    if (seconds > 0) /* not NaN */
        *ms = (int64_t)ceil(fmin(seconds, 1e9) * 1000);
    if (*ms > 0)
        return STATUS_OK;
    return FAIL(STATUS_USAGE, "%s: %g seconds, expected more than 0, or 0 for %lld", name, seconds,
                (long long)otherwise_s);
}

/* -------- where the ranks meet ---------------------------------------------------------------- */

static bool has_mpi(void)
{
    return transport_kind_unavailable(TRANSPORT_MPI) == NULL;
}

static enum status check_options(const struct psring_options *options)
{
    if (options->mpi_comm && options->rendezvous)
        return FAIL(STATUS_USAGE, "mpi_comm and rendezvous are both set: set only one of them");
    if (!options->rendezvous && (options->rank != 0 || options->size != 0))
        return FAIL(STATUS_USAGE,
                    "rank %d, size %d: they have no effect without a rendezvous; set it to "
                    "\"tcp://HOST:PORT\"",
                    options->rank, options->size);
    if (options->rendezvous && (options->size < 1 || options->size > LAUNCHER_RANKS_MOST))
        return FAIL(STATUS_USAGE, "rendezvous '%s': %d ranks, expected 1 to %d as size",
                    options->rendezvous, options->size, LAUNCHER_RANKS_MOST);
    if (options->rendezvous && (options->rank < 0 || options->rank >= options->size))
        return FAIL(STATUS_USAGE, "rendezvous '%s': rank %d, expected 0 to %d (size %d)",
                    options->rendezvous, options->rank, options->size - 1, options->size);
    if (options->mpi_comm && !has_mpi())
        return FAIL(STATUS_UNSUPPORTED, "mpi_comm: this libpsring was built without MPI; use a "
                                        "rendezvous, or build it with -DPSRING_LIBRARY_MPI=ON");
    return STATUS_OK;
}

/* Protects the connections that follow. `by_mpi`: MPI has brought the ranks together. */
static enum status protect(const struct psring_options *options, bool by_mpi)
{
    const char *folder = options->secure ? options->secure : launcher_variable("PSRING_SECURE");
    if (!folder)
        return STATUS_OK;
    if (!by_mpi)
        return secure_open(folder);
    return FAIL(STATUS_USAGE,
                "secure '%s': MPI sends in the clear; use a rendezvous, or leave secure (or "
                "PSRING_SECURE) out",
                folder);
}

/* Reads the environment. `place` owns the strings in world_options. */
static enum status ask_launcher(struct launcher_place *place, struct world_options *found)
{
    enum status status = STATUS_OK;
    bool by_mpi = launcher_mpi_rank() >= 0;
    if (by_mpi && has_mpi())
        return STATUS_OK;
    TRY(launcher_torchrun(place));
    if (place->given) {
        found->rendezvous = place->rendezvous;
        found->rank = place->rank;
        found->size = place->size;
    } else if (by_mpi) {
        log_error("an MPI launcher has started this process, and this libpsring was built without "
                  "MPI (cmake -DPSRING_LIBRARY_MPI=ON); build it with MPI, or set rendezvous, rank "
                  "and size");
        status = STATUS_UNSUPPORTED;
    } else {
        found->alone = true;
    }
out:
    return status;
}

static enum status meet(const struct psring_options *options, int64_t timeout_ms,
                        struct world **world)
{
    enum status status;
    struct launcher_place place;
    struct world_options found = {.subnet = options->network,
                                  .startup_timeout_ms = timeout_ms,
                                  .embedded = true,
                                  .shrinks = true,
                                  .mpi_comm = options->mpi_comm,
                                  .rendezvous = options->rendezvous,
                                  .rank = options->rank,
                                  .size = options->size};
    TRY(check_options(options));
    if (!options->mpi_comm && !options->rendezvous)
        TRY(ask_launcher(&place, &found));
    TRY(protect(options, !found.rendezvous && !found.alone));
    TRY(world_open(world, NULL, NULL, &found));
out:
    return status;
}

/* -------- hosts ------------------------------------------------------------------------------- */

/* Unless the caller asks for it, the hierarchical all-reduce is used only if several hosts have the
 * same number of ranks each, more than one. The ranks of a host share its links. */
static enum status choose_sharing(struct engine *engine)
{
    const struct world *world = engine->world;
    const int *hosts = world->host_numbers;
    int uneven = hosts_uneven(hosts, world->size), locals = hosts_locals(hosts, world->size, 0);
    if (engine->backend != &backend_hierarchical) {
        engine->shares_memory =
            !engine->backend && uneven < 0 && locals > 1 && locals < world->size;
        return STATUS_OK;
    }
    engine->shares_memory = true;
    if (uneven < 0)
        return STATUS_OK;
    return FAIL(
        STATUS_USAGE,
        "backend 'hierarchical': %s has %d of the ranks and %s %d, expected as many on each host; "
        "\"auto\" chooses a suitable backend",
        world->hosts[0], locals, world->hosts[uneven], hosts_locals(hosts, world->size, uneven));
}

/* -------- connecting -------------------------------------------------------------------------- */

/* Collective. Errors are logged. After an error the caller closes what was opened. */
static enum status connect_ranks(struct engine *engine, const struct psring_options *options)
{
    enum status status;
    int64_t startup_ms;
    struct comm_options comm = {.bucket_counts_max = PAYLOAD_BYTES_MOST / sizeof(float),
                                .embedded = true};
    if (options->network && !(engine->network = strdup(options->network)))
        TRY(FAIL(STATUS_NO_MEMORY, "out of memory"));
    comm.subnet = engine->network;
    TRY(find_backend(options->backend, &engine->backend));
    TRY(find_transport(options->transport, &comm.transport));
    TRY(find_timeout("startup_timeout_s", options->startup_timeout_s, STARTUP_TIMEOUT_S,
                     &startup_ms));
    TRY(find_timeout("timeout_s", options->timeout_s, TIMEOUT_S, &comm.timeout_ms));
    TRY(meet(options, startup_ms, &engine->world));
    if (comm.transport == TRANSPORT_MPI && !world_is_mpi(engine->world))
        TRY(FAIL(
            STATUS_USAGE,
            "transport 'mpi': the ranks met without MPI; use tcp or zmq, or start them by mpirun"));
    TRY(choose_sharing(engine));
    status = comm_place_open(&engine->place, engine->world, NULL, &comm);
out:
    return status;
}

/* The same for the survivors of a world: `world` is theirs, and the options are those of
 * `failed`. */
static enum status connect_survivors(struct engine *engine, struct world *world,
                                     const struct engine *failed)
{
    enum status status;
    const struct comm_options *old = &failed->place.options;
    const struct comm_options comm = {.transport = old->transport,
                                      .timeout_ms = old->timeout_ms,
                                      .bucket_counts_max = old->bucket_counts_max,
                                      .subnet = engine->network,
                                      .embedded = true};
    engine->world = world;
    engine->backend = failed->backend;
    if (hosts_uneven(world->host_numbers, world->size) >= 0 &&
        engine->backend == &backend_hierarchical)
        engine->backend = NULL; /* auto */
    TRY(choose_sharing(engine));
    status = comm_place_open(&engine->place, world, NULL, &comm);
out:
    return status;
}

/* -------- operations -------------------------------------------------------------------------- */

/* Handles the first failure: reports it to all other ranks and cuts the connections, so that the
 * caller owns the data again. On the thread that owns the connections. */
static void cut(struct engine *engine, enum status status)
{
    errors_take(engine->why);
    const char *why = engine->why[0] ? engine->why : status_name(status);
    transport_fail(engine->place.endpoints[NODE_WORKER], status, why);
    for (struct psring *comm = engine->communicators; comm; comm = comm->next) {
        if (comm->host_groups.shared) /* releases ranks that wait for this one */
            shared_fail(comm->host_groups.shared);
    }
    forks_hold();
    transport_stop(engine->place.endpoints);
    if (engine->world)
        world_fail(engine->world, status, why);
    forks_release();
}

static enum status run(void *context, struct overlap_task *task)
{
    struct engine *engine = context;
    const struct psring_handle *handle = (const struct psring_handle *)task;
    struct transport_counters counted = {0};
    const struct operation *operation = &handle->operation;
    bool all = (operation->what == MESSAGE_ALLREDUCE || operation->what == MESSAGE_BARRIER) &&
               operation->count > 0 && handle->comm == engine->all;
    enum status status = operation_run(handle->comm, operation);
    if (engine->heard != STATUS_OK)
        status = engine->heard;
    if (status == STATUS_OK && all)
        world_has_met(engine->world);
    if (status != STATUS_OK)
        cut(engine, status);
    if (engine->place.endpoints[NODE_WORKER])
        transport_counters(engine->place.endpoints[NODE_WORKER], &counted);
    monitor_enter(&engine->overlap.monitor);
    engine->counted = counted;
    monitor_leave(&engine->overlap.monitor);
    return status;
}

/* -------- the engine: begin and end ----------------------------------------------------------- */

/* The world calls this while it waits for ranks, on the thread that owns the connections. */
static bool hears_a_failure(void *context)
{
    struct engine *engine = context;
    if (engine->heard == STATUS_OK)
        engine->heard = transport_listen(engine->place.endpoints[NODE_WORKER], -1);
    return engine->heard != STATUS_OK;
}

/* For a failure at the beginning or end. `cut` takes the text; this logs it again for
 * errors_return. */
static enum status fail(struct engine *engine, enum status status)
{
    if (engine->heard != STATUS_OK)
        status = engine->heard;
    cut(engine, status);
    log_error("%s", engine->why[0] ? engine->why : status_name(status));
    return status;
}

/* After a failure it waits for no rank. */
static void engine_free(struct engine *engine)
{
    overlap_fini(&engine->overlap);
    transport_stop(engine->place.endpoints);
    while (engine->communicators) {
        struct psring *comm = engine->communicators;
        engine->communicators = comm->next;
        communicator_free(&comm);
    }
    comm_place_close(&engine->place);
    world_close(&engine->world);
    free(engine->network);
    while (engine->handles) {
        struct psring_handle *handle = engine->handles;
        engine->handles = handle->next;
        free(handle);
    }
    free(engine);
}

static struct engine *engine_alloc(void)
{
    struct engine *engine = calloc(1, sizeof *engine);
    if (!engine) {
        log_error("out of memory");
        return NULL;
    }
    overlap_init(&engine->overlap, run, engine);
    engine->process = getpid();
    return engine;
}

/* Makes the communicator of all ranks, which are connected. */
static enum status join_all(struct engine *engine)
{
    enum status status;
    engine->world->timeout_ms = engine->place.options.timeout_ms;
    engine->world->cancelled = hears_a_failure;
    engine->world->cancel_context = engine;
    int *colors = calloc((size_t)engine->world->size, sizeof *colors); /* all have one color */
    TRY(colors ? communicator_add(engine, colors, &engine->all) : STATUS_NO_MEMORY);
    engine->world->elastic = engine->world->reunion != NULL; /* psring_shrink can follow */
out:
    free(colors);
    return status;
}

/* Brings the ranks together and makes their communicator. Errors are logged. */
static enum status engine_new(struct engine **out, const struct psring_options *options)
{
    enum status status;
    struct engine *engine = engine_alloc();
    if (!engine)
        return STATUS_NO_MEMORY;
    TRY(connect_ranks(engine, options));
    TRY(join_all(engine));
    *out = engine;
    return STATUS_OK;
out:
    status = fail(engine, status);
    engine_free(engine);
    return status;
}

/* One attempt to do so with the survivors of `failed`. *again: another one may succeed, because a
 * rank has died meanwhile. */
static enum status shrink_once(struct engine **out, struct engine *failed, enum status why,
                               bool *again)
{
    enum status status;
    struct world *world = NULL;
    const int64_t timeout_ms = failed->place.options.timeout_ms;
    *again = false;
    struct engine *engine = engine_alloc();
    if (!engine)
        return STATUS_NO_MEMORY;
    if (failed->network && !(engine->network = strdup(failed->network)))
        TRY(FAIL(STATUS_NO_MEMORY, "out of memory"));
    TRY(world_shrink(&world, failed->world, why, timeout_ms));
    TRY(connect_survivors(engine, world, failed));
    TRY(join_all(engine));
    *out = engine;
    return STATUS_OK;
out:
    if (world) {
        status = fail(engine, status);
        world_shrink_again(failed->world, world);
        *again = status_is_loss(status);
    }
    engine_free(engine);
    return status;
}

/* Waits until all ranks have reached the end. The transport detects ranks in other calls. The
 * world's barrier comes afterwards, because a closed connection is an error until
 * transport_check_end. */
static enum status meet_at_the_end(struct engine *engine)
{
    enum status status;
    int32_t nothing = 0;
    const struct operation end = {
        .what = MESSAGE_FINALIZE, .data = &nothing, .count = 1, .type = PSRING_INT32};
    TRY(operation_run(engine->all, &end));
    TRY(transport_check_end(engine->place.endpoints[NODE_WORKER]));
    TRY(world_barrier(engine->world, NULL));
out:
    return status == STATUS_OK ? status : fail(engine, status);
}

/* -------- the library's interface --------------------------------------------------------------
 *
 * This file and collective.c check all arguments, so that the layers below get valid ones only. */

#define TEXT_OF(number) #number
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

int psring_version(void)
{
    return PSRING_VERSION_NUMBER;
}

const char *psring_version_text(void)
{
    return VERSION_TEXT(PSRING_VERSION_MAJOR, PSRING_VERSION_MINOR, PSRING_VERSION_PATCH);
}

enum psring_status check_process(const char *call, const struct engine *engine)
{
    if (engine->process == getpid())
        return PSRING_OK;
    return errors_set(PSRING_ERROR_STATE,
                      "%s: process %d initialised psring, and this one was forked from it; "
                      "only the parent may call collective operations",
                      call, (int)engine->process);
}

enum psring_status check_communicator(const char *call, const struct psring *comm)
{
    if (!comm)
        return errors_set(PSRING_ERROR_USAGE, "%s: no communicator (NULL)", call);
    return check_process(call, comm->engine);
}

enum psring_status check_world(const char *call, const struct psring *comm)
{
    enum psring_status status = check_communicator(call, comm);
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): check_communicator refuses NULL */
    if (status == PSRING_OK && comm != comm->engine->all)
        return errors_set(PSRING_ERROR_USAGE, "%s: needs the world, not a group of its ranks",
                          call);
    return status;
}

static _Atomic int owner;  /* the process that has a world; 0: none */
static _Atomic int worlds; /* of this process: more than one only after psring_shrink */

/* One world less. */
static void disown(void)
{
    if (atomic_fetch_sub(&worlds, 1) != 1)
        return;
    secure_close();
    atomic_store(&owner, 0);
}

static enum psring_status become_owner(void)
{
    int process = (int)getpid(), found = 0;
    if (atomic_compare_exchange_strong(&owner, &found, process))
        return PSRING_OK;
    if (found == process)
        return errors_set(PSRING_ERROR_STATE, "psring_init: this process has a world already; "
                                              "call psring_finalize first");
    return errors_set(PSRING_ERROR_STATE,
                      "psring_init: process %d had a world when it forked this one; fork before "
                      "psring_init, or call exec in the child",
                      found);
}

enum psring_status psring_init(struct psring **world, const struct psring_options *options)
{
    static const struct psring_options defaults;
    struct engine *engine = NULL;
    if (!world)
        return errors_set(PSRING_ERROR_USAGE, "psring_init: world is NULL");
    *world = NULL;
    enum psring_status status = become_owner();
    if (status != PSRING_OK)
        return status;
    if (!options)
        options = &defaults;
    errors_collect(options->log, options->log_context);
    status = errors_return(engine_new(&engine, options));
    atomic_store(&worlds, 1);
    if (status != PSRING_OK) {
        disown();
        return status;
    }
    forks_watch(engine);
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): engine_new succeeded */
    *world = engine->all;
    return PSRING_OK;
}

enum psring_status psring_finalize(struct psring **world)
{
    enum psring_status status = check_world(__func__, world ? *world : NULL);
    if (status != PSRING_OK)
        return status;
    struct engine *engine = (*world)->engine;
    *world = NULL;
    if (!engine->shrunk) /* otherwise children close the connections of the survivors' world */
        forks_watch(NULL);
    overlap_end(&engine->overlap);
    /* After a failure no rank is waited for. */
    enum status ended = engine->overlap.status == STATUS_OK ? meet_at_the_end(engine) : STATUS_OK;
    engine_free(engine);
    status = errors_return(ended);
    disown();
    return status;
}

enum psring_status psring_shrink(struct psring *world, struct psring **survivors)
{
    enum { ATTEMPTS_MOST = 8 };
    enum psring_status status = check_world(__func__, world);
    if (status == PSRING_OK && !survivors)
        return errors_set(PSRING_ERROR_USAGE, "psring_shrink: survivors is NULL");
    if (status != PSRING_OK)
        return status;
    struct engine *failed = world->engine, *engine = NULL;
    *survivors = NULL;
    monitor_enter(&failed->overlap.monitor);
    bool has_failed = failed->overlap.status != STATUS_OK;
    monitor_leave(&failed->overlap.monitor);
    if (!has_failed || failed->shrunk)
        return errors_set(PSRING_ERROR_STATE,
                          has_failed ? "psring_shrink: this world has survivors already"
                                     : "psring_shrink: no operation of this world has failed");
    enum status ended = failed->overlap.status;
    bool again = true;
    char dropped[ERROR_BYTES];
    for (int i = 0; i < ATTEMPTS_MOST && again; i++) {
        errors_take(dropped); /* of the failure, or of the last attempt */
        ended = shrink_once(&engine, failed, ended, &again);
    }
    if (again) /* the caller may repeat it */
        ended = STATUS_TIMEOUT;
    if (ended == STATUS_OK)
        errors_take(dropped); /* of attempts within the last one */
    status = errors_return(ended);
    if (status != PSRING_OK)
        return status;
    failed->shrunk = true;
    atomic_fetch_add(&worlds, 1);
    forks_watch(engine);
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): shrink_once succeeded */
    *survivors = engine->all;
    return PSRING_OK;
}

int psring_rank(const struct psring *comm)
{
    return comm->group->rank;
}

int psring_size(const struct psring *comm)
{
    return comm->group->size;
}

int psring_local_rank(const struct psring *comm)
{
    return comm->engine->world->local_rank;
}

int psring_local_size(const struct psring *comm)
{
    return comm->engine->world->local_size;
}

enum psring_status psring_free(struct psring **group)
{
    if (!group || !*group)
        return PSRING_OK;
    enum psring_status status = check_communicator(__func__, *group);
    if (status != PSRING_OK)
        return status;
    struct engine *engine = (*group)->engine;
    if (*group == engine->all)
        return errors_set(PSRING_ERROR_USAGE,
                          "psring_free: this is the world; call psring_finalize instead");
    overlap_take(&engine->overlap);
    struct psring **link = &engine->communicators;
    while (*link != *group)
        link = &(*link)->next;
    *link = (*group)->next;
    communicator_free(group);
    overlap_leave(&engine->overlap);
    return PSRING_OK;
}

enum psring_status psring_get_statistics(const struct psring *comm,
                                         struct psring_statistics *statistics)
{
    enum psring_status status = check_communicator(__func__, comm);
    if (status == PSRING_OK && !statistics)
        return errors_set(PSRING_ERROR_USAGE, "psring_get_statistics: statistics is NULL");
    if (status != PSRING_OK)
        return status;
    struct engine *engine = comm->engine;
    const struct transport_counters *counted = &engine->counted;
    monitor_enter(&engine->overlap.monitor);
    *statistics = (struct psring_statistics){
        .operations = engine->overlap.ended,
        .sent_bytes = counted->sent_bytes,
        .received_bytes = counted->received_bytes,
        .sent_messages = counted->sent_messages,
        .received_messages = counted->received_messages,
        .seconds = (double)engine->overlap.busy_ns / (double)NS_PER_S,
    };
    monitor_leave(&engine->overlap.monitor);
    return PSRING_OK;
}
