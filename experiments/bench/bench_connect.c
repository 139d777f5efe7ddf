#include "experiments/bench/bench_connect.h"

#include <stdio.h>
#include <string.h>

#include "common/net/socket/address.h"
#include "common/net/socket/stream.h"

/* -------- libpsring --------------------------------------------------------------------------- */

/* Logs why. */
static enum status status_from_psring(enum psring_status found)
{
    if (found == PSRING_OK)
        return STATUS_OK;
    log_error("bench: libpsring: %s", psring_error());
    switch (found) {
    case PSRING_ERROR_USAGE:
        return STATUS_USAGE;
    case PSRING_ERROR_NO_MEMORY:
        return STATUS_NO_MEMORY;
    case PSRING_ERROR_TIMEOUT:
        return STATUS_TIMEOUT;
    case PSRING_ERROR_PROTOCOL:
        return STATUS_PROTOCOL;
    case PSRING_ERROR_UNSUPPORTED:
        return STATUS_UNSUPPORTED;
    default:
        return STATUS_TRANSPORT;
    }
}

static void note(void *context, const char *line)
{
    (void)context;
    log_info("libpsring: %s", line);
}

/* Where rank 0 of the library is to listen: at a port that is free now. */
static enum status choose_rendezvous(const struct bench_connection *connection,
                                     char text[ADDRESS_URI_BYTES])
{
    enum status status;
    const struct world *world = connection->world;
    union address place;
    int listening;
    TRY(world_choose_address(world, connection->options.subnet, &place));
    int error = stream_listen(&place, &listening);
    if (error == 0)
        error = address_of_socket(listening, &place);
    address_uri(&place, text);
    stream_close(&listening);
    if (error != 0) {
        log_error("bench: no port at %s for libpsring: %s", text, strerror(error));
        status = status_from_errno(error);
    }
out:
    return status;
}

enum status bench_connect_library(struct bench_connection *connection)
{
    enum status status;
    struct world *world = connection->world;
    char rendezvous[ADDRESS_URI_BYTES] = "";
    if (world->rank == 0)
        TRY(choose_rendezvous(connection, rendezvous));
    TRY(world_broadcast(world, NULL, rendezvous, sizeof rendezvous));
    const struct psring_options options = {
        .rendezvous = rendezvous,
        .rank = world->rank,
        .size = world->size,
        .backend = connection->backend->name,
        .transport = transport_kind_name(connection->options.transport),
        .network = connection->options.subnet,
        .timeout_s = (double)connection->options.timeout_ms / 1e3,
        .log = note,
    };
    TRY(status_from_psring(psring_init(&connection->library, &options)));
out:
    return status;
}

static enum status library_counters(struct bench_connection *connection,
                                    struct comm_counters *counters)
{
    enum status status;
    struct psring_statistics now, *before = &connection->counted;
    TRY(status_from_psring(psring_get_statistics(connection->library, &now)));
    *counters = (struct comm_counters){
        .worker = {.sent_bytes = now.sent_bytes - before->sent_bytes,
                   .received_bytes = now.received_bytes - before->received_bytes,
                   .sent_messages = now.sent_messages - before->sent_messages,
                   .received_messages = now.received_messages - before->received_messages}};
    *before = now;
out:
    return status;
}

/* -------- both -------------------------------------------------------------------------------- */

enum status bench_connect(struct bench_connection *connection, struct world *world,
                          const struct backend *backend, const struct comm_options *options,
                          size_t count_most)
{
    enum status status;
    *connection =
        (struct bench_connection){.world = world, .backend = backend, .options = *options};
    connection->options.bucket_counts_max = count_most;
    TRY(comm_open(&connection->comm, world, backend, &connection->options));
    world->timeout_ms = options->timeout_ms;
    if (!comm_is_server(connection->comm))
        TRY(bench_start_init(&connection->start, world, comm_group(connection->comm)));
out:
    return status;
}

void bench_disconnect(struct bench_connection *connection)
{
    if (connection->library)
        (void)status_from_psring(psring_finalize(&connection->library));
    bench_abandon(connection);
}

void bench_abandon(struct bench_connection *connection)
{
    connection->library = NULL;
    comm_close(&connection->comm);
}

static enum status start_buckets(struct comm *comm, const struct bench_buckets *buckets,
                                 float *data)
{
    enum status status = STATUS_OK;
    for (size_t b = 0; b < buckets->number; b++)
        TRY(comm_start(comm, b, data + buckets->list[b].first));
    TRY(comm_flush(comm));
out:
    return status;
}

static enum status wait_for_buckets(struct comm *comm, const struct bench_buckets *buckets)
{
    enum status status = STATUS_OK;
    for (size_t b = 0; b < buckets->number; b++)
        TRY(comm_wait(comm, b));
out:
    return status;
}

enum status bench_operation_start(struct bench_connection *connection,
                                  const struct bench_plan *plan, float *data)
{
    if (plan->buckets)
        return start_buckets(connection->comm, plan->buckets, data);
    if (!plan->library) {
        enum status status = comm_start(connection->comm, 0, data);
        return status == STATUS_OK ? comm_flush(connection->comm) : status;
    }
    if (!comm_overlaps(connection->comm))
        return status_from_psring(
            psring_allreduce(connection->library, data, plan->count, PSRING_FLOAT32, PSRING_SUM));
    return status_from_psring(psring_allreduce_start(
        connection->library, data, plan->count, PSRING_FLOAT32, PSRING_SUM, &connection->handle));
}

enum status bench_operation_wait(struct bench_connection *connection, const struct bench_plan *plan)
{
    if (plan->buckets)
        return wait_for_buckets(connection->comm, plan->buckets);
    if (!plan->library)
        return comm_wait(connection->comm, 0);
    return connection->handle ? status_from_psring(psring_wait(&connection->handle)) : STATUS_OK;
}

enum status bench_counters(struct bench_connection *connection, const struct bench_plan *plan,
                           struct comm_counters *counters)
{
    if (plan->library)
        return library_counters(connection, counters);
    comm_counters(connection->comm, counters);
    return STATUS_OK;
}
