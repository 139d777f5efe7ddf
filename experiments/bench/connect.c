#include "experiments/bench/connect.h"

#include <string.h>
#include <sys/prctl.h>

#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/net/address.h"
#include "common/net/control.h"

/* -------- libpsring --------------------------------------------------------------------------- */

/* Logs the reason of a failure. */
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

/* Chooses the library's rendezvous: an address of rank 0 with a port that is free now. */
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

enum status bench_connect_library(struct bench_connection *connection, const char *secure)
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
        .secure = secure,
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
    if (!comm_is_server(connection->comm))
        TRY(bench_start_init(&connection->start, world, comm_group(connection->comm)));
out:
    return status;
}

enum status bench_disconnect(struct bench_connection *connection)
{
    enum status status = STATUS_OK;
    if (connection->library)
        status = status_from_psring(psring_finalize(&connection->library));
    bench_abandon(connection);
    return status;
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

/* -------- an instant at which all workers begin ----------------------------------------------- */

enum {
    AHEAD_NS = 500000,      /* at first */
    AHEAD_NS_MAX = 2000000, /* a worker that is later than this had no core */
    NEAR_NS = 150000,       /* a sleep may end this much too late */
};

enum status bench_start_init(struct bench_start *start, struct world *world,
                             const struct group *group)
{
    enum status status;
    double latest_ns = (double)clock_now_ns();
    double apart = world->machine != 0 || !world_crowded(world, 1);
    *start = (struct bench_start){.world = world, .group = group, .ahead_ns = AHEAD_NS};
    TRY(world_max(world, group, &latest_ns, 1));
    /* If all ranks read one clock, that moment has passed. */
    if ((double)clock_now_ns() < latest_ns)
        apart = 1;
    TRY(world_max(world, group, &apart, 1));
    start->common_clock = apart == 0;
out:
    return status;
}

enum status bench_start_agree(struct bench_start *start, int64_t *instant_ns)
{
    enum status status;
    *instant_ns = 0;
    if (!start->common_clock)
        return world_barrier(start->world, start->group);
    double values[] = {(double)(clock_now_ns() + start->ahead_ns), (double)start->late_ns};
    TRY(world_max(start->world, start->group, values, 2));
    *instant_ns = (int64_t)values[0];
    if (values[1] > 0 && start->ahead_ns < AHEAD_NS_MAX) {
        start->ahead_ns += 2 * (int64_t)values[1];
        if (start->ahead_ns > AHEAD_NS_MAX)
            start->ahead_ns = AHEAD_NS_MAX;
    }
    int64_t now_ns = clock_now_ns();
    start->late_ns = now_ns > *instant_ns ? now_ns - *instant_ns : 0;
    if (now_ns < *instant_ns - NEAR_NS)
        clock_sleep_until_ns(*instant_ns - NEAR_NS);
out:
    return status;
}

/* Linux may end a sleep up to 50 us late, to save wake-ups. Only here that is too late. */
static void sleep_sharply(int64_t deadline_ns)
{
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    clock_sleep_until_ns(deadline_ns);
    prctl(PR_SET_TIMERSLACK, 0UL, 0UL, 0UL, 0UL); /* the default */
}

int64_t bench_start_skew_ns(double most_ms, size_t rank, uint64_t round)
{
    struct rng_block block = rng_block(rng_key(0, RNG_SKEW, rank), round, 0);
    return (int64_t)(most_ms * (double)NS_PER_MS * (double)rng_uniform(block.word[0]));
}

void bench_start_delay(int64_t from_ns, int64_t delay_ns)
{
    sleep_sharply(from_ns + delay_ns);
}

int64_t bench_start_wait(struct bench_start *start, int64_t instant_ns)
{
    if (!start->common_clock)
        return clock_now_ns();
    sleep_sharply(instant_ns); /* other ranks may need this core to get here */
    while (clock_now_ns() < instant_ns) {
    }
    return clock_now_ns();
}
