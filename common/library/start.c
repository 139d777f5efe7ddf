#include "common/library/start.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/net/world/host.h"
#include "ring/hierarchical.h"
#include "ring/ring.h"

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
