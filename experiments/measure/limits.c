#include "experiments/measure/limits.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <zmq.h>

#include "common/base/clock.h"
#include "common/base/stats.h"
#include "common/net/socket/address.h"
#include "experiments/measure/limits_memory.h"
#include "experiments/measure/probe.h"

/* -------- a message there and back ------------------------------------------------------------ */

enum { NAME_BYTES = 9, ADDRESS_BYTES = 64, TRIP_BYTES = 4, FRAME_BYTES_MAX = 64 };

/* One rank's end: rank 0 has the ROUTER, which echoes, rank 1 the DEALER. */
struct trip {
    void *context, *socket;
    char name[NAME_BYTES]; /* the DEALER's: a letter and the run, so that strangers get no answer */
    char address[ADDRESS_BYTES]; /* the ROUTER's */
};

static enum status zmq_failed(const char *what)
{
    log_error("the machine's limits: a ZeroMQ round trip: %s: %s; can the hosts reach each other? "
              "--interface names the network, bench without --limits goes without it",
              what, zmq_strerror(zmq_errno()));
    return zmq_errno() == EAGAIN ? STATUS_TIMEOUT : STATUS_TRANSPORT;
}

static enum status open_socket(struct trip *trip, int type, int timeout_ms)
{
    const int linger_ms = timeout_ms;
    const int64_t frame_bytes_max = FRAME_BYTES_MAX;
    trip->context = zmq_ctx_new();
    trip->socket = trip->context ? zmq_socket(trip->context, type) : NULL;
    if (!trip->socket)
        return zmq_failed("socket");
    zmq_setsockopt(trip->socket, ZMQ_RCVTIMEO, &timeout_ms, sizeof timeout_ms);
    zmq_setsockopt(trip->socket, ZMQ_SNDTIMEO, &timeout_ms, sizeof timeout_ms);
    zmq_setsockopt(trip->socket, ZMQ_LINGER, &linger_ms, sizeof linger_ms);
    zmq_setsockopt(trip->socket, ZMQ_MAXMSGSIZE, &frame_bytes_max, sizeof frame_bytes_max);
    return STATUS_OK;
}

static enum status bind_router(struct trip *trip, const char *host)
{
    char text[2 * ADDRESS_BYTES];
    size_t size = ADDRESS_BYTES;
    snprintf(text, sizeof text, "tcp://%s:*", host);
    if (zmq_bind(trip->socket, text) != 0 ||
        zmq_getsockopt(trip->socket, ZMQ_LAST_ENDPOINT, trip->address, &size) != 0)
        return zmq_failed(text);
    return STATUS_OK;
}

/* Receives the two frames of a message: who sent it, and its bytes. What a stranger sends may have
 * any number of frames: `*ours` only if there were these two, of the right length, and our name. */
static enum status receive_trip(const struct trip *trip, char bytes[TRIP_BYTES], bool *ours)
{
    static const int expected[] = {NAME_BYTES, TRIP_BYTES};
    char frame[FRAME_BYTES_MAX];
    int more = 1, frames = 0;
    for (*ours = true; more; frames++) {
        size_t size = sizeof more;
        int length = zmq_recv(trip->socket, frame, sizeof frame, 0);
        if (length < 0 || zmq_getsockopt(trip->socket, ZMQ_RCVMORE, &more, &size) != 0)
            return zmq_failed("receiving");
        *ours = *ours && frames < 2 && length == expected[frames] &&
                (frames > 0 || memcmp(frame, trip->name, NAME_BYTES) == 0);
        if (*ours && frames == 1)
            memcpy(bytes, frame, TRIP_BYTES);
    }
    *ours = *ours && frames == 2;
    return STATUS_OK;
}

/* Answers every message of ours with its own bytes, until one says that it was the last. */
static enum status echo(struct trip *trip, int timeout_ms)
{
    int64_t deadline_ns = clock_now_ns() + timeout_ms * NS_PER_MS; /* strangers do not put it off */
    for (bool last = false; !last;) {
        char bytes[TRIP_BYTES];
        bool ours;
        enum status status = receive_trip(trip, bytes, &ours);
        if (status != STATUS_OK)
            return status;
        if (!ours && clock_now_ns() > deadline_ns) {
            errno = EAGAIN;
            return zmq_failed("receiving");
        }
        if (!ours)
            continue;
        deadline_ns = clock_now_ns() + timeout_ms * NS_PER_MS;
        last = bytes[0] != 0;
        if (zmq_send(trip->socket, trip->name, NAME_BYTES, ZMQ_SNDMORE) < 0 ||
            zmq_send(trip->socket, bytes, TRIP_BYTES, 0) < 0)
            return zmq_failed("sending");
    }
    return STATUS_OK;
}

static enum status send_and_wait(struct trip *trip, bool last)
{
    char bytes[TRIP_BYTES] = {last}, back[FRAME_BYTES_MAX];
    if (zmq_send(trip->socket, bytes, TRIP_BYTES, 0) < 0)
        return zmq_failed("sending");
    if (zmq_recv(trip->socket, back, sizeof back, 0) < 0)
        return zmq_failed("receiving");
    return STATUS_OK;
}

static enum status time_trips(struct trip *trip, double *median_us)
{
    enum status status;
    double times_us[LIMITS_TRIPS];
    size_t count = 0;
    for (int i = 0; i < LIMITS_TRIPS_LEAST; i++) /* connects, and warms up */
        TRY(send_and_wait(trip, false));
    int64_t first_ns = clock_now_ns(), now_ns = first_ns;
    while (count < LIMITS_TRIPS &&
           (count < LIMITS_TRIPS_LEAST || now_ns - first_ns < LIMITS_TRIPS_NS)) {
        int64_t start_ns = now_ns;
        TRY(send_and_wait(trip, false));
        now_ns = clock_now_ns();
        times_us[count++] = (double)(now_ns - start_ns) / (double)NS_PER_US;
    }
    TRY(send_and_wait(trip, true));
    *median_us = stats_median(times_us, count);
out:
    return status;
}

static void close_trip(struct trip *trip)
{
    if (trip->socket)
        zmq_close(trip->socket);
    if (trip->context)
        zmq_ctx_term(trip->context);
}

/* Rank 0 echoes, rank 1 times. */
static enum status round_trip(struct world *world, const char *subnet, int timeout_ms,
                              double *median_us)
{
    enum status status = STATUS_OK;
    struct trip trip = {.name = "r"};
    char host[16];
    *median_us = 0;
    memcpy(trip.name + 1, &world->run_id, sizeof world->run_id);
    if (world->rank == 0) {
        TRY(address_choose(subnet, world->local_size == world->size, host, sizeof host));
        TRY(open_socket(&trip, ZMQ_ROUTER, timeout_ms));
        TRY(bind_router(&trip, host));
    }
    TRY(world_broadcast(world, NULL, trip.address, sizeof trip.address));
    if (world->rank == 1) {
        TRY(open_socket(&trip, ZMQ_DEALER, timeout_ms));
        zmq_setsockopt(trip.socket, ZMQ_ROUTING_ID, trip.name, NAME_BYTES);
        if (zmq_connect(trip.socket, trip.address) != 0) {
            status = zmq_failed(trip.address);
            goto out;
        }
        TRY(time_trips(&trip, median_us));
    }
    if (world->rank == 0)
        TRY(echo(&trip, timeout_ms));
    TRY(world_max(world, NULL, median_us, 1));
out:
    close_trip(&trip);
    return status;
}

/* -------- all of them ------------------------------------------------------------------------- */

enum status limits_measure(struct limits *limits, struct world *world, const char *subnet,
                           int64_t timeout_ms, bool streams)
{
    enum status status;
    double memory[2] = {0};
    if (world->rank == 0)
        TRY(limits_memory(0, &memory[0], &memory[1]));
    TRY(world_broadcast(world, NULL, memory, sizeof memory));
    limits->add_bytes_per_s = memory[0];
    limits->reduce_bytes_per_s = memory[1];
    if (world->size == 1)
        return STATUS_OK;
    TRY(round_trip(world, subnet, (int)timeout_ms, &limits->round_trip_us));
    if (streams)
        TRY(probe_link(world, subnet, timeout_ms, &limits->stream_bytes_per_s));
out:
    return status;
}

void limits_print(FILE *out, const struct limits *limits)
{
    if (limits->add_bytes_per_s > 0)
        fprintf(out,
                "# memory, one core, 12 bytes an element: c = a + b %.2f GB/s, the reduction's "
                "a += b %.2f (%.2f of it)\n",
                limits->add_bytes_per_s * 1e-9, limits->reduce_bytes_per_s * 1e-9,
                limits->reduce_bytes_per_s / limits->add_bytes_per_s);
    if (limits->round_trip_us > 0)
        fprintf(out, "# 4 bytes through ZeroMQ, DEALER to ROUTER and back: %.1f us\n",
                limits->round_trip_us);
    if (limits->stream_bytes_per_s > 0)
        fprintf(out, "# plain TCP: %.1f MB/s each way, both ways at once\n",
                limits->stream_bytes_per_s * 1e-6);
}
