#include "experiments/bench/baselines.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

#include "common/base/clock.h"
#include "common/base/util.h"
#include "common/base/stats.h"
#include "common/comm/reduce.h"
#include "common/device/kernel.h"
#include "common/net/address.h"
#include "common/net/control.h"
#include "experiments/bench/probe.h"

/* -------- memory: how fast one core adds arrays that no cache holds --------------------------- */

enum { PASSES = 4 };

KERNEL static void add(float *restrict c, const float *restrict a, const float *restrict b,
                       size_t count)
{
    for (size_t i = 0; i < count; i++)
        c[i] = a[i] + b[i];
}

static size_t default_count(void)
{
    const long least = 32L << 20, most = 128L << 20; /* bytes */
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    long bytes = cache > 0 ? 4 * cache : least;
    bytes = bytes < least ? least : bytes;
    return (size_t)(bytes > most ? most : bytes) / sizeof(float);
}

/* Updates the best rate. The pass moved three arrays of `bytes` each. */
static void keep_best(double *best, int64_t start_ns, size_t bytes)
{
    double seconds = (double)(clock_now_ns() - start_ns) * 1e-9;
    double rate = 3 * (double)bytes / seconds;
    *best = rate > *best ? rate : *best;
}

static void reduce_types(void *a, const void *b, size_t bytes,
                         double type_bytes_per_s[MESSAGE_DTYPES])
{
    for (enum message_dtype dtype = MESSAGE_FLOAT32; dtype < MESSAGE_DTYPES; dtype++) {
        size_t elements = bytes / message_element_bytes(dtype);
        int64_t start_ns = clock_now_ns();
        reduction_of(dtype, REDUCE_SUM)->combine(a, b, elements);
        keep_best(&type_bytes_per_s[dtype], start_ns, elements * message_element_bytes(dtype));
    }
}

enum status limits_memory(size_t count, struct limits *limits)
{
    count = count > 0 ? count : default_count();
    float *a = memory_array(count * sizeof *a), *b = memory_array(count * sizeof *b);
    float *c = memory_array(count * sizeof *c);
    bool all = a && b && c;
    size_t bytes = count * sizeof(float);
    limits->add_bytes_per_s = limits->reduce_bytes_per_s = 0;
    memset(limits->type_bytes_per_s, 0, sizeof limits->type_bytes_per_s);
    for (int pass = 0; all && pass < PASSES; pass++) {
        int64_t start_ns = clock_now_ns();
        add(c, a, b, count);
        keep_best(&limits->add_bytes_per_s, start_ns, bytes);
        start_ns = clock_now_ns();
        reduce_add(a, b, count);
        keep_best(&limits->reduce_bytes_per_s, start_ns, bytes);
        reduce_types(a, b, bytes, limits->type_bytes_per_s);
    }
    if (!all)
        log_error(
            "bench --baselines: out of memory for three arrays of %zu bytes; omit --baselines",
            bytes);
    free(a);
    free(b);
    free(c);
    return all ? STATUS_OK : STATUS_NO_MEMORY;
}

/* -------- 4 bytes there and back -------------------------------------------------------------- */

/*
 * The round trip of 4 bytes between rank 0 and rank 1, through ZeroMQ and on a plain TCP socket.
 * The result is the median of LIMITS_TRIPS trips, or of as many as fit into LIMITS_TRIPS_NS. On the
 * plain socket both ranks poll without sleeping, so its trip is the time of network and kernel
 * alone.
 */

enum { LIMITS_TRIPS = 2000, LIMITS_TRIPS_LEAST = 20 };
#define LIMITS_TRIPS_NS INT64_C(500000000)
enum { TRIP_BYTES = 4 };

/* One trip, timed by rank 1. With `last`, rank 0 stops answering afterwards. */
typedef enum status there_and_back(void *self, bool last);

static enum status time_trips(there_and_back *trip, void *self, double *median_us)
{
    enum status status;
    double times_us[LIMITS_TRIPS];
    size_t count = 0;
    for (int i = 0; i < LIMITS_TRIPS_LEAST; i++) /* connects, and warms up */
        TRY(trip(self, false));
    int64_t first_ns = clock_now_ns(), now_ns = first_ns;
    while (count < LIMITS_TRIPS &&
           (count < LIMITS_TRIPS_LEAST || now_ns - first_ns < LIMITS_TRIPS_NS)) {
        int64_t start_ns = now_ns;
        TRY(trip(self, false));
        now_ns = clock_now_ns();
        times_us[count++] = (double)(now_ns - start_ns) / (double)NS_PER_US;
    }
    TRY(trip(self, true));
    *median_us = stats_median(times_us, count);
out:
    return status;
}

/* -------- through ZeroMQ ---------------------------------------------------------------------- */

enum { NAME_BYTES = 9, ADDRESS_BYTES = 80, FRAME_BYTES_MAX = 64 };

/* One rank's end: rank 0 has the ROUTER, which echoes, rank 1 the DEALER. */
struct trip {
    void *context, *socket;
    char name[NAME_BYTES];       /* the DEALER's: a letter and the run; other names get no answer */
    char address[ADDRESS_BYTES]; /* the ROUTER's */
};

static enum status zmq_failed(const char *what)
{
    log_error(
        "bench --baselines: ZeroMQ round trip: %s: %s; check that the hosts reach each other, "
        "choose the network with --subnet, or omit --baselines",
        what, zmq_strerror(zmq_errno()));
    return zmq_errno() == EAGAIN ? STATUS_TIMEOUT : STATUS_TRANSPORT;
}

static bool is_ipv6(const union address *address)
{
    return address->any.sa_family == AF_INET6;
}

static enum status open_socket(struct trip *trip, int type, bool ipv6, int timeout_ms)
{
    const int linger_ms = timeout_ms, takes_ipv6 = ipv6;
    const int64_t frame_bytes_max = FRAME_BYTES_MAX;
    trip->context = zmq_ctx_new();
    trip->socket = trip->context ? zmq_socket(trip->context, type) : NULL;
    if (!trip->socket)
        return zmq_failed("socket");
    zmq_setsockopt(trip->socket, ZMQ_IPV6, &takes_ipv6, sizeof takes_ipv6);
    zmq_setsockopt(trip->socket, ZMQ_RCVTIMEO, &timeout_ms, sizeof timeout_ms);
    zmq_setsockopt(trip->socket, ZMQ_SNDTIMEO, &timeout_ms, sizeof timeout_ms);
    zmq_setsockopt(trip->socket, ZMQ_LINGER, &linger_ms, sizeof linger_ms);
    zmq_setsockopt(trip->socket, ZMQ_MAXMSGSIZE, &frame_bytes_max, sizeof frame_bytes_max);
    return STATUS_OK;
}

static enum status bind_router(struct trip *trip, const union address *host)
{
    char name[ADDRESS_TEXT_BYTES], text[2 * ADDRESS_BYTES];
    size_t size = ADDRESS_BYTES;
    snprintf(text, sizeof text, is_ipv6(host) ? "tcp://[%s]:*" : "tcp://%s:*",
             address_text(host, name));
    if (zmq_bind(trip->socket, text) != 0 ||
        zmq_getsockopt(trip->socket, ZMQ_LAST_ENDPOINT, trip->address, &size) != 0)
        return zmq_failed(text);
    return STATUS_OK;
}

/* Receives the two frames of a message: the sender's name, and its bytes. A foreign process may
 * send any number of frames. `*ours`: exactly two came, of the right length, with our name. */
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

/* Echoes every message of this run, until one is marked as the last. */
static enum status zmq_echo(struct trip *trip, int timeout_ms)
{
    int64_t deadline_ns = clock_now_ns() + timeout_ms * NS_PER_MS; /* not extended by strangers */
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

static enum status zmq_there_and_back(void *self, bool last)
{
    const struct trip *trip = self;
    char bytes[TRIP_BYTES] = {last}, back[FRAME_BYTES_MAX];
    if (zmq_send(trip->socket, bytes, TRIP_BYTES, 0) < 0)
        return zmq_failed("sending");
    if (zmq_recv(trip->socket, back, sizeof back, 0) < 0)
        return zmq_failed("receiving");
    return STATUS_OK;
}

static void close_trip(struct trip *trip)
{
    if (trip->socket)
        zmq_close(trip->socket);
    if (trip->context)
        zmq_ctx_term(trip->context);
}

/* Rank 0 echoes, rank 1 times. Collective over a world of two or more: `median_us` on every rank.
 * Errors: logged; STATUS_TIMEOUT if the other rank is silent for `timeout_ms`. */
static enum status limits_zmq_trip(struct world *world, const char *subnet, int64_t timeout_ms,
                                   double *median_us)
{
    enum status status = STATUS_OK;
    struct trip trip = {.name = "r"};
    union address host;
    *median_us = 0;
    memcpy(trip.name + 1, &world->run_id, sizeof world->run_id);
    if (world->rank == 0) {
        TRY(world_choose_address(world, subnet, &host));
        TRY(open_socket(&trip, ZMQ_ROUTER, is_ipv6(&host), (int)timeout_ms));
        TRY(bind_router(&trip, &host));
    }
    TRY(world_broadcast(world, NULL, trip.address, sizeof trip.address));
    if (world->rank == 1) {
        TRY(open_socket(&trip, ZMQ_DEALER, strchr(trip.address, '[') != NULL, (int)timeout_ms));
        zmq_setsockopt(trip.socket, ZMQ_ROUTING_ID, trip.name, NAME_BYTES);
        if (zmq_connect(trip.socket, trip.address) != 0) {
            status = zmq_failed(trip.address);
            goto out;
        }
        TRY(time_trips(zmq_there_and_back, &trip, median_us));
    }
    if (world->rank == 0)
        TRY(zmq_echo(&trip, (int)timeout_ms));
    TRY(world_max(world, NULL, median_us, 1));
out:
    close_trip(&trip);
    return status;
}

/* -------- on a plain socket ------------------------------------------------------------------- */

/* How long a rank polls before it yields its core: the other rank may share that core. */
#define ALONE_NS (10 * NS_PER_US)

struct plain {
    int socket;
    int64_t timeout_ms;
};

static enum status plain_failed(const char *what, int error)
{
    return FAIL(error == ETIMEDOUT ? STATUS_TIMEOUT : STATUS_TRANSPORT,
                "bench --baselines: plain sockets: %s: %s; check that the ranks run and that the "
                "hosts reach each other, choose the network with --subnet, or omit --baselines",
                what, strerror(error));
}

static enum status peer_failed(int rank, int error)
{
    char name[24];
    snprintf(name, sizeof name, "rank %d", rank);
    return plain_failed(name, error);
}

/* Connects rank 0 with ranks 1 to count - 1: sockets[r] of rank 0 leads to rank r, sockets[0] of
 * another rank to rank 0. Collective over the world. The caller sets sockets (count) to -1
 * before and closes them. */
static enum status connect_to_first(struct world *world, const char *subnet, int64_t timeout_ms,
                                    int *sockets, int count)
{
    enum status status = STATUS_OK;
    struct listener listener = {.socket = -1};
    union address address;
    int error = 0, missing = -1;
    if (world->rank == 0) {
        TRY(world_choose_address(world, subnet, &address));
        error = listener_open(&listener, &address, 0);
        TRY(error == 0 ? STATUS_OK : plain_failed("listening", error));
        address = listener.address;
    }
    TRY(world_broadcast(world, NULL, &address, sizeof address));
    if (world->rank == 0) {
        for (int r = 1; r < count; r++)
            sockets[r] = LISTENER_AWAITED;
        missing = listener_let_in(&listener, world->run_id, timeout_ms, sockets, count);
        TRY(missing < 0 ? STATUS_OK : peer_failed(missing, ETIMEDOUT));
    } else if (world->rank < count) {
        error = listener_join(&address, world->run_id, world->rank, timeout_ms, &sockets[0]);
        TRY(error == 0 ? STATUS_OK : peer_failed(0, error));
    }
out:
    listener_close(&listener);
    return status;
}

static enum status plain_receive(const struct plain *plain, char bytes[TRIP_BYTES])
{
    int64_t start_ns = clock_now_ns();
    for (size_t have = 0; have < TRIP_BYTES;) {
        ssize_t got = recv(plain->socket, bytes + have, TRIP_BYTES - have, MSG_DONTWAIT);
        if (got > 0) {
            have += (size_t)got;
            continue;
        }
        if (got == 0 || (errno != EAGAIN && errno != EINTR))
            return plain_failed("receiving", got == 0 ? ECONNRESET : errno);
        int64_t waited_ns = clock_now_ns() - start_ns;
        if (waited_ns > plain->timeout_ms * NS_PER_MS)
            return plain_failed("receiving", ETIMEDOUT);
        if (waited_ns > ALONE_NS)
            sched_yield();
    }
    return STATUS_OK;
}

static enum status plain_send(const struct plain *plain, const char bytes[TRIP_BYTES])
{
    int error = stream_send(plain->socket, bytes, TRIP_BYTES, plain->timeout_ms);
    return error == 0 ? STATUS_OK : plain_failed("sending", error);
}

static enum status plain_there_and_back(void *self, bool last)
{
    char bytes[TRIP_BYTES] = {last};
    enum status status = plain_send(self, bytes);
    return status == STATUS_OK ? plain_receive(self, bytes) : status;
}

static enum status plain_echo(const struct plain *plain)
{
    enum status status = STATUS_OK;
    char bytes[TRIP_BYTES] = {false};
    while (!bytes[0]) {
        TRY(plain_receive(plain, bytes));
        TRY(plain_send(plain, bytes));
    }
out:
    return status;
}

static enum status limits_socket_trip(struct world *world, const char *subnet, int64_t timeout_ms,
                                      double *median_us)
{
    enum status status = STATUS_OK;
    struct plain plain = {.timeout_ms = timeout_ms};
    int sockets[] = {-1, -1};
    *median_us = 0;
    TRY(connect_to_first(world, subnet, timeout_ms, sockets, 2));
    plain.socket = sockets[world->rank == 0];
    if (world->rank == 0)
        TRY(plain_echo(&plain));
    if (world->rank == 1)
        TRY(time_trips(plain_there_and_back, &plain, median_us));
    TRY(world_max(world, NULL, median_us, 1));
out:
    stream_close(&sockets[0]);
    stream_close(&sockets[1]);
    return status;
}

/* -------- a server on plain sockets ----------------------------------------------------------- */

/*
 * Rank 0 serves, all others are its workers. A turn is one all-reduce: the server receives a
 * vector from each worker, adds, and sends the sum to each. It adds what all workers have sent at
 * once, while it is in the caches, and sends it while the remainder arrives. Nothing is framed,
 * acknowledged or copied. Each rank uses one thread.
 */
enum { TURN_SERIES = 7, TURNS_MOST = 10, TURN_WINDOW_BYTES = 512 << 10 };
static const double series_s = 0.1;           /* about; a series has at least one turn */
static const double far_bytes_per_s = 1.25e9; /* a window holds what a faster link delays */

/* One connection's part of a turn. */
struct way {
    int socket;
    char *to;         /* (bytes) what arrives */
    const char *from; /* (bytes) what leaves */
    size_t received, sent;
};

/* One rank's end: a way to each worker, or one to the server. */
struct turns {
    struct world *world;
    int64_t timeout_ms; /* of a turn */
    bool serves;
    int way_count;
    int *sockets;         /* (world size) the server's by rank; a worker's is the first */
    struct way *ways;     /* (world size) the server's: of ranks 1, 2, ... */
    struct pollfd *polls; /* (world size) */
    size_t bytes;
    size_t window; /* a worker sends so much more than it has received */
    float *memory; /* the server's: the workers' vectors, of which the first becomes the sum. A
                    * worker's: its vector, and the sum */
};

static enum status turn_failed(const struct turns *turns, int way, int error)
{
    return peer_failed(turns->serves ? way + 1 : 0, error);
}

/* Moves what can move at once: receives up to `bytes` bytes, and sends up to `ready`. `*moved`:
 * something did. */
static int way_move(struct way *way, size_t bytes, size_t ready, bool *moved)
{
    if (way->received < bytes) {
        ssize_t got =
            recv(way->socket, way->to + way->received, bytes - way->received, MSG_DONTWAIT);
        if (got == 0)
            return ECONNRESET;
        if (got < 0 && errno != EAGAIN && errno != EINTR)
            return errno;
        way->received += got > 0 ? (size_t)got : 0;
        *moved = *moved || got > 0;
    }
    if (way->sent < ready) {
        ssize_t gone = send(way->socket, way->from + way->sent, ready - way->sent,
                            MSG_DONTWAIT | MSG_NOSIGNAL);
        if (gone < 0 && errno != EAGAIN && errno != EINTR)
            return errno;
        way->sent += gone > 0 ? (size_t)gone : 0;
        *moved = *moved || gone > 0;
    }
    return 0;
}

/* Adds what all workers have sent since `added`, in the order of their ranks. Returns how much is
 * added now. */
static size_t add_arrived(const struct turns *turns, size_t added)
{
    size_t all = turns->bytes;
    for (int w = 0; w < turns->way_count; w++)
        all = turns->ways[w].received < all ? turns->ways[w].received : all;
    all -= all % sizeof(float);
    for (int w = 1; w < turns->way_count; w++)
        reduce_add((float *)(void *)(turns->ways[0].to + added),
                   (const float *)(const void *)(turns->ways[w].to + added),
                   (all - added) / sizeof(float));
    return all;
}

/* The way that has moved least: all others may wait for it. */
static int late_way(const struct turns *turns)
{
    int late = 0;
    for (int w = 1; w < turns->way_count; w++) {
        const struct way *one = &turns->ways[w], *least = &turns->ways[late];
        late = one->received + one->sent < least->received + least->sent ? w : late;
    }
    return late;
}

/* Waits until a way can move, or until the deadline. */
static enum status turn_wait(const struct turns *turns, size_t ready, int64_t deadline_ns)
{
    for (int w = 0; w < turns->way_count; w++) {
        const struct way *way = &turns->ways[w];
        int events =
            (way->received < turns->bytes ? POLLIN : 0) | (way->sent < ready ? POLLOUT : 0);
        turns->polls[w] = (struct pollfd){.fd = events ? way->socket : -1, .events = (short)events};
    }
    int count = poll(turns->polls, (nfds_t)turns->way_count, stream_poll_ms(deadline_ns));
    return count < 0 && errno != EINTR ? turn_failed(turns, late_way(turns), errno) : STATUS_OK;
}

/* The deadline is the turn's: a peer that sends now and then does not move it. */
static enum status turn(struct turns *turns)
{
    enum status status = STATUS_OK;
    int64_t deadline_ns = stream_deadline_ns(turns->timeout_ms);
    size_t ready = 0;
    for (int w = 0; w < turns->way_count; w++)
        turns->ways[w].received = turns->ways[w].sent = 0;
    for (bool done = false; !done;) {
        bool moved = false;
        done = true;
        if (!turns->serves)
            ready = size_smaller(turns->ways[0].received + turns->window, turns->bytes);
        for (int w = 0; w < turns->way_count; w++) {
            struct way *way = &turns->ways[w];
            int error = way_move(way, turns->bytes, ready, &moved);
            TRY(error == 0 ? STATUS_OK : turn_failed(turns, w, error));
            done = done && way->received == turns->bytes && way->sent == turns->bytes;
        }
        if (turns->serves)
            ready = add_arrived(turns, ready);
        if (!done && deadline_ns > 0 && clock_now_ns() >= deadline_ns)
            TRY(turn_failed(turns, late_way(turns), ETIMEDOUT));
        if (!done && !moved)
            TRY(turn_wait(turns, ready, deadline_ns));
    }
out:
    return status;
}

static enum status open_turns(struct turns *turns, const char *subnet)
{
    enum status status = STATUS_OK;
    struct world *world = turns->world;
    size_t size = (size_t)world->size, count = turns->bytes / sizeof(float);
    int workers = world->size - 1;
    turns->serves = world->rank == 0;
    turns->way_count = turns->serves ? workers : 1;
    turns->window = TURN_WINDOW_BYTES + (size_t)(world->round_trip_s * far_bytes_per_s);
    turns->sockets = calloc(size, sizeof *turns->sockets);
    turns->ways = calloc(size, sizeof *turns->ways);
    turns->polls = calloc(size, sizeof *turns->polls);
    turns->memory = memory_array((turns->serves ? size - 1 : 2) * turns->bytes);
    for (size_t r = 0; turns->sockets && r < size; r++)
        turns->sockets[r] = -1;
    if (!turns->sockets || !turns->ways || !turns->polls || !turns->memory)
        TRY(FAIL(STATUS_NO_MEMORY,
                 "bench --baselines: a server on plain sockets: out of memory for vectors of %zu "
                 "bytes of %d workers; omit --baselines",
                 turns->bytes, workers));
    TRY(connect_to_first(world, subnet, turns->timeout_ms, turns->sockets, world->size));
    for (int w = 0; w < turns->way_count; w++) {
        float *vector = turns->memory + (size_t)w * count;
        turns->ways[w] = (struct way){.socket = turns->sockets[turns->serves ? w + 1 : 0],
                                      .to = (char *)(turns->serves ? vector : vector + count),
                                      .from = (const char *)turns->memory};
    }
out:
    return status;
}

static void close_turns(struct turns *turns)
{
    for (int r = 0; turns->sockets && r < turns->world->size; r++) {
        if (turns->sockets[r] >= 0)
            stream_close(&turns->sockets[r]);
    }
    free(turns->sockets);
    free(turns->ways);
    free(turns->polls);
    free(turns->memory);
}

/* Element i of rank r's vector; the sums are exact in float32. */
static float turn_value(int rank, size_t i)
{
    return (float)(rank + (int)(i % 251));
}

/* One turn whose sums are checked, on a worker. */
static enum status checked_turn(struct turns *turns)
{
    enum status status = STATUS_OK;
    size_t count = turns->bytes / sizeof(float), wrong = 0;
    int workers = turns->world->size - 1, least = workers * (workers + 1) / 2;
    float *sum = turns->memory + count;
    if (!turns->serves)
        memset(sum, 0xff, turns->bytes);
    TRY(turn(turns));
    for (size_t i = 0; !turns->serves && i < count; i++)
        wrong += sum[i] != (float)(least + workers * (int)(i % 251));
    if (wrong > 0)
        TRY(FAIL(STATUS_WRONG,
                 "bench --baselines: a server on plain sockets: %zu of %zu elements differ from "
                 "the exact sum; check the network's hardware",
                 wrong, count));
out:
    return status;
}

static enum status time_turns(struct turns *turns, double *median_us)
{
    enum status status = STATUS_OK;
    struct world *world = turns->world;
    double turn_s = 0, times_us[TURN_SERIES] = {0};
    TRY(checked_turn(turns));
    TRY(world_barrier(world, NULL));
    int64_t start_ns = clock_now_ns();
    TRY(turn(turns));
    turn_s = (double)(clock_now_ns() - start_ns) * 1e-9;
    TRY(world_max(world, NULL, &turn_s, 1));
    int count = (int)fmin(fmax(series_s / turn_s, 1), TURNS_MOST);
    for (int series = 0; series < TURN_SERIES; series++) {
        TRY(world_barrier(world, NULL));
        start_ns = clock_now_ns();
        for (int i = 0; i < count; i++)
            TRY(turn(turns));
        if (!turns->serves)
            times_us[series] = (double)(clock_now_ns() - start_ns) / (double)NS_PER_US / count;
    }
    TRY(world_max(world, NULL, times_us, TURN_SERIES));
    TRY(checked_turn(turns));
    *median_us = stats_median(times_us, TURN_SERIES);
out:
    return status;
}

enum status limits_server(struct limits *limits, struct world *world, const char *subnet,
                          int64_t timeout_ms, size_t bytes)
{
    enum status status = STATUS_OK;
    struct turns turns = {.world = world, .timeout_ms = timeout_ms, .bytes = bytes};
    limits->server_us = 0;
    limits->server_workers = world->size - 1;
    if (world->size < 2)
        return STATUS_OK;
    TRY(open_turns(&turns, subnet));
    for (size_t i = 0; !turns.serves && i < bytes / sizeof(float); i++)
        turns.memory[i] = turn_value(world->rank, i);
    TRY(time_turns(&turns, &limits->server_us));
out:
    close_turns(&turns);
    return status;
}

/* -------- all of them ------------------------------------------------------------------------- */

enum status limits_measure(struct limits *limits, struct world *world, const char *subnet,
                           int64_t timeout_ms, bool streams)
{
    enum status status;
    if (world->rank == 0)
        TRY(limits_memory(0, limits));
    TRY(world_broadcast(world, NULL, limits, sizeof *limits));
    if (world->size == 1)
        return STATUS_OK;
    TRY(limits_zmq_trip(world, subnet, timeout_ms, &limits->round_trip_us));
    TRY(limits_socket_trip(world, subnet, timeout_ms, &limits->socket_trip_us));
    if (streams)
        TRY(probe_link(world, subnet, timeout_ms, &limits->stream_bytes_per_s));
out:
    return status;
}

/* A bar of 10 characters is the rate of c = a + b. */
static void print_types(FILE *out, const struct limits *limits)
{
    static const char *const names[MESSAGE_DTYPES] = {
        [MESSAGE_FLOAT32] = "float32", [MESSAGE_FLOAT64] = "float64", [MESSAGE_FP16] = "float16",
        [MESSAGE_BF16] = "bfloat16",   [MESSAGE_INT32] = "int32",     [MESSAGE_INT64] = "int64",
    };
    static const char bar[] = "##############################";
    fprintf(out, "# sums by type (libpsring), two elements read and one written\n");
    for (enum message_dtype dtype = MESSAGE_FLOAT32; dtype < MESSAGE_DTYPES; dtype++) {
        double share = limits->type_bytes_per_s[dtype] / limits->add_bytes_per_s;
        int length = (int)fmin(10 * share + 0.5, sizeof bar - 1);
        fprintf(out, "#   %-8s %7.2f GB/s %5.2f of c = a + b %.*s\n", names[dtype],
                limits->type_bytes_per_s[dtype] * 1e-9, share, length, bar);
    }
}

void limits_print(FILE *out, const struct limits *limits)
{
    if (limits->add_bytes_per_s > 0)
        fprintf(out,
                "# memory, one core, 12 bytes an element: c = a + b %.2f GB/s, the reduction's "
                "a += b %.2f (%.2f of it)\n",
                limits->add_bytes_per_s * 1e-9, limits->reduce_bytes_per_s * 1e-9,
                limits->reduce_bytes_per_s / limits->add_bytes_per_s);
    if (limits->add_bytes_per_s > 0 && limits->type_bytes_per_s[MESSAGE_FLOAT32] > 0)
        print_types(out, limits);
    if (limits->round_trip_us > 0)
        fprintf(out, "# 4 bytes through ZeroMQ, DEALER to ROUTER and back: %.1f us\n",
                limits->round_trip_us);
    if (limits->socket_trip_us > 0)
        fprintf(out, "# 4 bytes on a plain socket, there and back, without sleeping: %.1f us\n",
                limits->socket_trip_us);
    if (limits->stream_bytes_per_s > 0)
        fprintf(out, "# plain TCP: %.1f MB/s each way, both ways at once\n",
                limits->stream_bytes_per_s * 1e-6);
}
