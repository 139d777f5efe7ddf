#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/library/library.h"
#include "common/net/host.h"
#include "common/psring.h"
#include "ring/hierarchical.h"
#include "ring/ring.h"

static struct {
    pthread_mutex_t lock; /* held from before to after a fork */
    pthread_once_t once;
    const struct engine *engine;
} forks = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

void forks_hold(void)
{
    pthread_mutex_lock(&forks.lock);
}

void forks_release(void)
{
    pthread_mutex_unlock(&forks.lock);
}

static void in_child(void)
{
    if (forks.engine)
        engine_close_in_child(forks.engine);
    forks.engine = NULL;
    forks_release();
}

/* Without memory for it, a child keeps the connections: an error comes late then, and none is lost.
 */
static void prepare(void)
{
    (void)pthread_atfork(forks_hold, forks_release, in_child);
}

/* From now on children close the connections of `engine`; NULL: there is none any more. */
static void forks_watch(const struct engine *engine)
{
    pthread_once(&forks.once, prepare);
    forks_hold();
    forks.engine = engine;
    forks_release();
}

/* Bounds what a peer may announce; no message of ours is longer. */
enum { PAYLOAD_BYTES_MOST = 16 << 20, STARTUP_TIMEOUT_S = 60, TIMEOUT_S = 600 };

/* -------- names ------------------------------------------------------------------------------- */

/* NULL and "auto": chosen. */
static bool is_auto(const char *name)
{
    return !name || strcmp(name, "auto") == 0;
}

static enum status find_backend(const char *name, const struct backend **backend)
{
    static const struct backend *const backends[] = {&backend_ring, &backend_rhd,
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
    log_error("backend '%s': there is auto, ring, rhd and hierarchical", name);
    return STATUS_USAGE;
}

static enum status find_transport(const char *name, enum transport_kind *kind)
{
    *kind = is_auto(name) ? TRANSPORT_TCP : TRANSPORT_KINDS;
    for (enum transport_kind k = 0; !is_auto(name) && k < TRANSPORT_KINDS; k++) {
        if (strcmp(transport_kind_name(k), name) == 0)
            *kind = k;
    }
    if (*kind == TRANSPORT_KINDS) {
        log_error("transport '%s': there is auto, tcp, zmq and mpi", name);
        return STATUS_USAGE;
    }
    if (!transport_kind_unavailable(*kind))
        return STATUS_OK;
    log_error(
        "transport '%s': this libpsring was built without MPI (cmake -DPSRING_LIBRARY_MPI=ON)",
        name);
    return STATUS_UNSUPPORTED;
}

static enum status find_timeout(const char *name, double seconds, int64_t otherwise_s, int64_t *ms)
{
    *ms = seconds == 0 ? otherwise_s * 1000 : (int64_t)ceil(fmin(seconds, 1e9) * 1000);
    if (*ms > 0)
        return STATUS_OK;
    log_error("%s: %g seconds, expected more than 0, or 0 for %lld", name, seconds,
              (long long)otherwise_s);
    return STATUS_USAGE;
}

/* -------- where the ranks meet ---------------------------------------------------------------- */

static bool has_mpi(void)
{
    return transport_kind_unavailable(TRANSPORT_MPI) == NULL;
}

static enum status check_options(const struct psring_options *options)
{
    if (options->mpi_comm && options->rendezvous) {
        log_error("mpi_comm and rendezvous: ranks come together by one of them");
        return STATUS_USAGE;
    }
    if (!options->rendezvous && (options->rank != 0 || options->size != 0)) {
        log_error("rank and size say nothing without a rendezvous, \"tcp://HOST:PORT\"");
        return STATUS_USAGE;
    }
    if (options->rendezvous && (options->size < 1 || options->size > LAUNCHER_RANKS_MOST)) {
        log_error("rendezvous '%s': %d ranks, expected 1 to %d as size", options->rendezvous,
                  options->size, LAUNCHER_RANKS_MOST);
        return STATUS_USAGE;
    }
    if (options->rendezvous && (options->rank < 0 || options->rank >= options->size)) {
        log_error("rendezvous '%s': rank %d, expected 0 to %d, as there are %d",
                  options->rendezvous, options->rank, options->size - 1, options->size);
        return STATUS_USAGE;
    }
    if (options->mpi_comm && !has_mpi()) {
        log_error("mpi_comm: this libpsring was built without MPI (cmake -DPSRING_LIBRARY_MPI=ON)");
        return STATUS_UNSUPPORTED;
    }
    return STATUS_OK;
}

/* By the environment; `place` holds what world_options point to. */
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
                  "MPI (cmake -DPSRING_LIBRARY_MPI=ON); or name a rendezvous, rank and size");
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
                                  .mpi_comm = options->mpi_comm,
                                  .rendezvous = options->rendezvous,
                                  .rank = options->rank,
                                  .size = options->size};
    TRY(check_options(options));
    if (!options->mpi_comm && !options->rendezvous)
        TRY(ask_launcher(&place, &found));
    TRY(world_open(world, NULL, NULL, &found));
out:
    return status;
}

/* -------- hosts ------------------------------------------------------------------------------- */

/* Where it is not asked for, the hierarchical all-reduce is for hosts that share the same links:
 * several, with as many ranks each. */
static enum status choose_sharing(struct connection *connection)
{
    const struct world *world = connection->world;
    const int *hosts = world->host_numbers;
    int uneven = hosts_uneven(hosts, world->size), locals = hosts_locals(hosts, world->size, 0);
    if (connection->backend != &backend_hierarchical) {
        connection->shares_memory =
            !connection->backend && uneven < 0 && locals > 1 && locals < world->size;
        return STATUS_OK;
    }
    connection->shares_memory = true;
    if (uneven < 0)
        return STATUS_OK;
    log_error(
        "backend 'hierarchical': %s has %d of the ranks and %s %d, expected as many on each host; "
        "\"auto\" takes what suits",
        world->hosts[0], locals, world->hosts[uneven], hosts_locals(hosts, world->size, uneven));
    return STATUS_USAGE;
}

/* -------- connecting -------------------------------------------------------------------------- */

enum status start_connect(const struct psring_options *options, struct connection *connection)
{
    enum status status;
    int64_t startup_ms, timeout_ms;
    TRY(find_backend(options->backend, &connection->backend));
    TRY(find_transport(options->transport, &connection->kind));
    TRY(find_timeout("startup_timeout_s", options->startup_timeout_s, STARTUP_TIMEOUT_S,
                     &startup_ms));
    TRY(find_timeout("timeout_s", options->timeout_s, TIMEOUT_S, &timeout_ms));
    TRY(meet(options, startup_ms, &connection->world));
    if (connection->kind == TRANSPORT_MPI && !world_is_mpi(connection->world)) {
        log_error("transport 'mpi': the ranks were not brought together by MPI");
        status = STATUS_USAGE;
        goto out;
    }
    TRY(choose_sharing(connection));
    if (connection->world->size > 1)
        TRY(transport_open(connection->endpoint, connection->world,
                           &(struct transport_options){
                               .kind = connection->kind,
                               .topology = {.workers = connection->world->size},
                               .payload_bytes_max = PAYLOAD_BYTES_MOST,
                               .dtype = MESSAGE_ANY_DTYPE,
                               .subnet = options->network,
                               .timeout_ms = timeout_ms,
                               .embedded = true,
                           }));
    connection->world->timeout_ms = timeout_ms;
out:
    return status;
}

enum psring_status check_process(const char *call, const struct engine *engine)
{
    if (engine->process == getpid())
        return PSRING_OK;
    return errors_set(PSRING_ERROR_STATE,
                      "%s: process %d initialised psring, and this one was forked from it; "
                      "collective operations are the parent's",
                      call, (int)engine->process);
}

enum psring_status check_communicator(const char *call, const struct psring *comm)
{
    if (!comm)
        return errors_set(PSRING_ERROR_USAGE, "%s: no communicator (NULL)", call);
    return check_process(call, comm->engine);
}

static enum psring_status check_world(const char *call, const struct psring *comm)
{
    enum psring_status status = check_communicator(call, comm);
    if (status == PSRING_OK && !comm->is_world)
        return errors_set(PSRING_ERROR_USAGE, "%s: needs the world, not a group of its ranks",
                          call);
    return status;
}

static const enum message_dtype dtypes[] = {
    [PSRING_FLOAT32] = MESSAGE_FLOAT32, [PSRING_FLOAT64] = MESSAGE_FLOAT64,
    [PSRING_FLOAT16] = MESSAGE_FP16,    [PSRING_BFLOAT16] = MESSAGE_BF16,
    [PSRING_INT32] = MESSAGE_INT32,     [PSRING_INT64] = MESSAGE_INT64,
};

static const enum reduce_op ops[] = {
    [PSRING_SUM] = REDUCE_SUM,
    [PSRING_AVERAGE] = REDUCE_AVERAGE,
    [PSRING_MIN] = REDUCE_MIN,
    [PSRING_MAX] = REDUCE_MAX,
};

enum psring_status check_operation(const char *call, const struct psring *comm,
                                   const struct arguments *arguments, struct operation *operation)
{
    enum psring_status status = check_communicator(call, comm);
    if (status != PSRING_OK)
        return status;
    unsigned type = (unsigned)arguments->type, op = (unsigned)arguments->op;
    size_t size = (size_t)comm->group->size, blocks = arguments->blocks ? size : 1;
    if (type >= sizeof dtypes / sizeof *dtypes)
        return errors_set(PSRING_ERROR_USAGE, "%s: %u is no type", call, type);
    if (op >= sizeof ops / sizeof *ops)
        return errors_set(PSRING_ERROR_USAGE, "%s: %u is no operation", call, op);
    if (arguments->root < 0 || arguments->root >= comm->group->size)
        return errors_set(PSRING_ERROR_USAGE, "%s: root %d, expected 0 to %d", call,
                          arguments->root, comm->group->size - 1);
    size_t element_bytes = message_element_bytes(dtypes[type]);
    if (arguments->count > SIZE_MAX / 2 / element_bytes / blocks)
        return errors_set(PSRING_ERROR_USAGE, "%s: %zu elements are more than memory can hold",
                          call, arguments->count);
    if (!arguments->data && arguments->count > 0)
        return errors_set(PSRING_ERROR_USAGE, "%s: no data (NULL) for %zu elements", call,
                          arguments->count);
    if ((uintptr_t)arguments->data % element_bytes != 0)
        return errors_set(PSRING_ERROR_USAGE,
                          "%s: data is not aligned to its elements of %zu bytes", call,
                          element_bytes);
    *operation = (struct operation){.data = arguments->data,
                                    .count = arguments->count * blocks,
                                    .dtype = dtypes[type],
                                    .op = ops[op],
                                    .root = arguments->root};
    return PSRING_OK;
}

/* The library's interface: arguments are checked here, and nothing below is asked for what it could
 * not do. */

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

/* -------- beginning and end ------------------------------------------------------------------- */

static _Atomic int owner; /* the process that has a world; 0: none has */

static enum psring_status become_owner(void)
{
    int process = (int)getpid(), found = 0;
    if (atomic_compare_exchange_strong(&owner, &found, process))
        return PSRING_OK;
    if (found == process)
        return errors_set(PSRING_ERROR_STATE, "psring_init: this process has a world already; "
                                              "psring_finalize ends it");
    return errors_set(PSRING_ERROR_STATE,
                      "psring_init: process %d had a world when it forked this one; fork before "
                      "psring_init, or call exec in the child",
                      found);
}

enum psring_status psring_init(struct psring **world, const struct psring_options *options)
{
    static const struct psring_options defaults;
    enum status status;
    struct engine *engine = NULL;
    if (!world)
        return errors_set(PSRING_ERROR_USAGE, "psring_init: no place for the world");
    *world = NULL;
    enum psring_status owned = become_owner();
    if (owned != PSRING_OK)
        return owned;
    if (!options)
        options = &defaults;
    errors_collect(options->log, options->log_context);
    TRY(engine_new(&engine, options));
    forks_watch(engine);
    *world = engine->communicators;
    return PSRING_OK;
out:
    owned = errors_return(status);
    atomic_store(&owner, 0);
    return owned;
}

enum psring_status psring_finalize(struct psring **world)
{
    enum psring_status status = check_world(__func__, world ? *world : NULL);
    if (status != PSRING_OK)
        return status;
    struct engine *engine = (*world)->engine;
    *world = NULL;
    forks_watch(NULL);
    status = errors_return(engine_free(&engine));
    atomic_store(&owner, 0);
    return status;
}

/* -------- who takes part ---------------------------------------------------------------------- */

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
    return comm->engine->connection.world->local_rank;
}

int psring_local_size(const struct psring *comm)
{
    return comm->engine->connection.world->local_size;
}

enum psring_status psring_split(struct psring *world, int color, struct psring **group)
{
    enum psring_status status = check_world(__func__, world);
    if (!group)
        return errors_set(PSRING_ERROR_USAGE, "psring_split: no place for the group");
    *group = NULL;
    if (status != PSRING_OK)
        return status;
    return engine_split(world->engine, color, group);
}

enum psring_status psring_free(struct psring **group)
{
    if (!group || !*group)
        return PSRING_OK;
    enum psring_status status = check_communicator(__func__, *group);
    if (status != PSRING_OK)
        return status;
    if ((*group)->is_world)
        return errors_set(PSRING_ERROR_USAGE,
                          "psring_free: this is the world, which psring_finalize ends");
    engine_drop((*group)->engine, group);
    return PSRING_OK;
}

enum psring_status psring_get_statistics(const struct psring *comm,
                                         struct psring_statistics *statistics)
{
    enum psring_status status = check_communicator(__func__, comm);
    if (status == PSRING_OK && !statistics)
        return errors_set(PSRING_ERROR_USAGE, "psring_get_statistics: no place for them");
    if (status == PSRING_OK)
        engine_statistics(comm->engine, statistics);
    return status;
}
