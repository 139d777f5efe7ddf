#include "experiments/bench/probe.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/base/status.h"
#include "common/base/clock.h"
#include "common/net/address.h"
#include "common/net/control.h"
#include "common/net/cpu_watch.h"
#include "experiments/bench/commit.h"
#include "experiments/bench/info.h"

/* -------- the rate from what has arrived ------------------------------------------------------ */

static void span_add(struct probe_span *span, int64_t at_ns, uint64_t bytes)
{
    span->last_ns = at_ns;
    span->last_bytes = bytes;
    if (span->first_ns == 0) {
        span->first_ns = at_ns;
        span->first_bytes = bytes;
    }
}

static double span_rate(const struct probe_span *span)
{
    int64_t length_ns = span->last_ns - span->first_ns;
    if (length_ns <= 0)
        return 0;
    return (double)(span->last_bytes - span->first_bytes) / ((double)length_ns * 1e-9);
}

struct probe_meter probe_meter_for(double round_trip_s)
{
    return (struct probe_meter){.skip_ns = PROBE_SKIP_NS +
                                           (int64_t)(PROBE_SKIP_TRIPS * round_trip_s * 1e9)};
}

static int64_t end_of(const struct probe_meter *meter)
{
    return meter->skip_ns + PROBE_LENGTH_NS;
}

void probe_meter_add(struct probe_meter *meter, int64_t since_start_ns, uint64_t bytes)
{
    int64_t counted_ns = since_start_ns - meter->skip_ns;
    meter->bytes += bytes;
    if (counted_ns < 0 || counted_ns > PROBE_LENGTH_NS)
        return;
    span_add(&meter->whole, since_start_ns, meter->bytes);
    int64_t part = counted_ns * PROBE_PARTS / (PROBE_LENGTH_NS + 1);
    span_add(&meter->part[part], since_start_ns, meter->bytes);
}

double probe_meter_rate(const struct probe_meter *meter)
{
    return span_rate(&meter->whole);
}

double probe_meter_spread(const struct probe_meter *meter)
{
    double slowest = span_rate(&meter->part[0]), fastest = slowest;
    for (int i = 1; i < PROBE_PARTS; i++) {
        double rate = span_rate(&meter->part[i]);
        slowest = rate < slowest ? rate : slowest;
        fastest = rate > fastest ? rate : fastest;
    }
    return fastest > 0 ? 1 - slowest / fastest : 1;
}

/* -------- sockets: one stream to the next host, one from the host before ---------------------- */

/* The data that each rank sends to all others. All bytes are set, with padding. */
struct probe_peer {
    union address at; /* where it listens */
    uint32_t takes_part;
};

/* One rank's. Sockets are -1 where none is open. */
struct probe_sockets {
    uint64_t run_id;                  /* proves that a peer belongs to this run */
    int64_t timeout_ms;               /* of every wait */
    union address own;                /* this rank's, without a port */
    char address[ADDRESS_TEXT_BYTES]; /* the same as text */
    struct listener listener;
    int out, in;
};

enum { UNSENT_BYTES = 256 << 10, WAKE_BYTES = 16 << 10 };

/* Logs the failure (errno or a time-out) with a remedy, and returns its status. */
static enum status probe_failed(const struct probe_sockets *sockets, const char *what)
{
    return FAIL(status_from_errno(errno),
                "the probe of the link: %s at %s: %s; bench --probe off omits the probe", what,
                sockets->address, strerror(errno));
}

static enum status probe_silent(const struct probe_sockets *sockets, const char *what)
{
    return FAIL(
        STATUS_TIMEOUT,
        "the probe of the link: %s at %s: no message for %g s; check that the hosts reach each "
        "other, choose the network with --subnet, or omit the probe with --probe off",
        what, sockets->address, (double)sockets->timeout_ms / 1000);
}

/* The status of a wait's `error`; 0: none. */
static enum status probe_waited(const struct probe_sockets *sockets, const char *what, int error)
{
    errno = error;
    return error == 0           ? STATUS_OK
           : error == ETIMEDOUT ? probe_silent(sockets, what)
                                : probe_failed(sockets, what);
}

/* Listens at sockets->own; `mine` gets the port. */
static enum status probe_listen(struct probe_sockets *sockets, struct probe_peer *mine)
{
    int error = listener_open(&sockets->listener, &sockets->own, 0);
    mine->at = sockets->listener.address;
    return probe_waited(sockets, "listening", error);
}

/* Connects `out` to a listening peer, even before the peer accepts. */
static enum status probe_connect(struct probe_sockets *sockets, const struct probe_peer *peer)
{
    int unsent_bytes = UNSENT_BYTES;
    int error = listener_join(&peer->at, sockets->run_id, 0, sockets->timeout_ms, &sockets->out);
    /* Data left in the sender's buffer at the end would only prolong the probe. */
    setsockopt(sockets->out, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent_bytes, sizeof unsent_bytes);
    return probe_waited(sockets, "connecting", error);
}

/* Waits until `in` is the connection of this run's rank. */
static enum status probe_accept(struct probe_sockets *sockets)
{
    int enough_bytes = WAKE_BYTES, in = LISTENER_AWAITED;
    if (listener_let_in(&sockets->listener, sockets->run_id, sockets->timeout_ms, &in, 1) >= 0)
        return probe_silent(sockets, "accepting");
    /* A wake-up for every packet would take CPU time that the kernel needs to move packets. */
    setsockopt(in, SOL_SOCKET, SO_RCVLOWAT, &enough_bytes, sizeof enough_bytes);
    sockets->in = in;
    return STATUS_OK;
}

/* -------- the end ----------------------------------------------------------------------------- */

static void probe_close_streams(struct probe_sockets *sockets)
{
    stream_close(&sockets->out);
    stream_close(&sockets->in);
}

static void probe_close(struct probe_sockets *sockets)
{
    probe_close_streams(sockets);
    listener_close(&sockets->listener);
}

enum { PIECE_BYTES = 256 << 10, PROBE_ROUNDS = 3 };

/* The probe of one rank. */
struct probe {
    struct world *world;
    struct probe_sockets sockets;
    char *piece; /* (PIECE_BYTES) buffer of sent and received data */
};

/* -------- the streams ------------------------------------------------------------------------- */

static bool would_block(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

static enum status send_piece(struct probe *probe)
{
    if (send(probe->sockets.out, probe->piece, PIECE_BYTES, MSG_NOSIGNAL) < 0 && !would_block())
        return probe_failed(&probe->sockets, "sending");
    return STATUS_OK;
}

static enum status receive_piece(struct probe *probe, int64_t start_ns, struct probe_meter *meter,
                                 bool *ended)
{
    ssize_t got = recv(probe->sockets.in, probe->piece, PIECE_BYTES, 0);
    if (got < 0 && !would_block())
        return probe_failed(&probe->sockets, "receiving");
    if (got > 0)
        probe_meter_add(meter, clock_now_ns() - start_ns, (uint64_t)got);
    *ended = got == 0;
    return STATUS_OK;
}

/* Sends until the meter's end and receives until the stream of the host before has ended. Data that
 * arrives after the end is read, too: it must not be on the links when the all-reduces begin. */
static enum status stream(struct probe *probe, struct probe_meter *meter)
{
    enum status status = STATUS_OK;
    int64_t start_ns = clock_now_ns();
    bool sending = true, ended = false;
    while (sending || !ended) {
        struct pollfd fds[] = {{.fd = ended ? -1 : probe->sockets.in, .events = POLLIN},
                               {.fd = sending ? probe->sockets.out : -1, .events = POLLOUT}};
        int64_t left_ns = start_ns + end_of(meter) - clock_now_ns();
        if (sending && left_ns <= 0) {
            shutdown(probe->sockets.out, SHUT_WR);
            sending = false;
            continue;
        }
        int64_t wait_ms = sending ? left_ns / NS_PER_MS + 1 : probe->sockets.timeout_ms;
        int ready = poll(fds, 2, (int)wait_ms);
        if (ready < 0 && errno != EINTR)
            return probe_failed(&probe->sockets, "waiting");
        if (ready == 0 && !sending)
            return probe_silent(&probe->sockets, "receiving");
        if (ready > 0 && fds[0].revents)
            TRY(receive_piece(probe, start_ns, meter, &ended));
        if (ready > 0 && fds[1].revents)
            TRY(send_piece(probe));
    }
out:
    return status;
}

/* -------- all ranks --------------------------------------------------------------------------- */

/* The next participant after this rank, around the ring. */
static const struct probe_peer *next_of(const struct probe_peer *peers, const struct world *world)
{
    int rank = world->rank;
    do
        rank = (rank + 1) % world->size;
    while (!peers[rank].takes_part);
    return &peers[rank];
}

/* Hosts that share a machine's CPUs are hosts of a virtual cluster and have equal rates. Two of
 * them suffice to measure the rate; more at once would measure the CPUs. */
static void keep_two(struct probe_peer *peers, const struct world *world)
{
    int kept = 0;
    for (int rank = 0; rank < world->size; rank++)
        peers[rank].takes_part = peers[rank].takes_part && kept++ < 2;
}

/* The result of one round; equal on every rank, except for the CPUs. */
struct finding {
    double bytes_per_s; /* of the host that received least; 0: not known */
    double spread;      /* of the least steady stream */
    double cpu_share;   /* of this rank's machine */
};

/* The measurement of one rank. */
struct reading {
    double bytes_per_s, spread;
};

/* Collects which ranks take part and where they listen. */
static enum status exchange_addresses(struct probe *probe, const char *subnet, bool every_host,
                                      struct probe_peer *peers)
{
    enum status status;
    struct world *world = probe->world;
    struct probe_peer mine;
    bool one_host = world->local_size == world->size;
    memset(&mine, 0, sizeof mine);
    mine.takes_part = one_host || world->local_rank == 0;
    TRY(world_choose_address(world, subnet, &probe->sockets.own));
    address_text(&probe->sockets.own, probe->sockets.address);
    if (mine.takes_part)
        TRY(probe_listen(&probe->sockets, &mine));
    TRY(world_gather(world, NULL, &mine, sizeof mine, peers));
    if (!every_host && !one_host && world->sharing_cpus == world->size)
        keep_two(peers, world);
out:
    return status;
}

static struct finding find(const struct world *world, const struct probe_peer *peers,
                           const struct reading *readings)
{
    struct finding finding = {0};
    bool first = true;
    for (int rank = 0; rank < world->size; rank++) {
        if (!peers[rank].takes_part)
            continue;
        if (first || readings[rank].bytes_per_s < finding.bytes_per_s)
            finding.bytes_per_s = readings[rank].bytes_per_s;
        if (first || readings[rank].spread > finding.spread)
            finding.spread = readings[rank].spread;
        first = false;
    }
    return finding;
}

/* Runs one round, with all links full. `readings` (world size): buffer for all measurements. */
static enum status measure(struct probe *probe, const struct probe_peer *peers,
                           struct reading *readings, struct finding *finding)
{
    enum status status;
    struct world *world = probe->world;
    struct probe_meter meter = probe_meter_for(world->round_trip_s);
    struct cpu_watch watch = {0};
    bool takes_part = peers[world->rank].takes_part;
    if (takes_part) {
        TRY(probe_connect(&probe->sockets, next_of(peers, world)));
        TRY(probe_accept(&probe->sockets));
    }
    TRY(world_barrier(world, NULL));
    cpu_watch_start(&watch);
    if (takes_part)
        TRY(stream(probe, &meter));
    cpu_watch_stop(&watch);
    probe_close_streams(&probe->sockets);
    struct reading mine = {probe_meter_rate(&meter), probe_meter_spread(&meter)};
    log_debug("the probe of the link: %.0f bytes/s arrived at %s, parts within %.1f%%",
              mine.bytes_per_s, probe->sockets.address, 100 * mine.spread);
    TRY(world_gather(world, NULL, &mine, sizeof mine, readings));
    *finding = find(world, peers, readings);
    finding->cpu_share = cpu_watch_share(&watch);
out:
    return status;
}

static void warn(const struct finding *finding, double round_trip_s)
{
    const struct probe_meter meter = probe_meter_for(round_trip_s);
    if (finding->bytes_per_s <= 0)
        log_warn("the probe of the link: too little arrived between %g and %g s to compute a rate; "
                 "only the nominal rate is known",
                 (double)meter.skip_ns * 1e-9, (double)end_of(&meter) * 1e-9);
    else if (finding->cpu_share > CPU_SHARE_LIMITED)
        log_warn(
            "the probe of the link: the CPUs were %.0f%% busy, so the link may carry more than "
            "measured, and efficiencies may be too high; check for other processes",
            100 * finding->cpu_share);
    else if (finding->spread > PROBE_STEADY)
        log_warn("the probe of the link: the stream was steady in none of %d rounds (the rate "
                 "varied by %.0f%% in the best); check for other traffic on the link",
                 PROBE_ROUNDS, 100 * finding->spread);
}

static enum status probe_run(struct world *world, const char *subnet, int64_t timeout_ms,
                             bool every_host, double *bytes_per_s, double *received)
{
    enum status status = STATUS_OK;
    size_t size = (size_t)world->size;
    struct probe probe = {
        .world = world,
        .sockets = {.run_id = world->run_id,
                    .timeout_ms = timeout_ms,
                    .listener.socket = -1,
                    .out = -1,
                    .in = -1},
    };
    struct finding best = {0};
    struct probe_peer *peers = NULL;
    struct reading *readings = NULL;
    *bytes_per_s = 0;
    if (world->size == 1)
        return STATUS_OK;
    peers = calloc(size, sizeof *peers);
    readings = calloc(size, sizeof *readings);
    probe.piece = calloc(1, PIECE_BYTES);
    if (!peers || !readings || !probe.piece)
        TRY(FAIL(STATUS_NO_MEMORY, "the probe of the link: no memory for %d ranks", world->size));
    TRY(exchange_addresses(&probe, subnet, every_host, peers));
    for (int round = 0; round < PROBE_ROUNDS && (round == 0 || best.spread > PROBE_STEADY);
         round++) {
        struct finding finding;
        TRY(measure(&probe, peers, readings, &finding));
        if (round > 0 && finding.spread >= best.spread)
            continue;
        best = finding;
        for (int rank = 0; received && rank < world->size; rank++)
            received[rank] = readings[rank].bytes_per_s;
    }
    if (world->rank == 0)
        warn(&best, world->round_trip_s);
    *bytes_per_s = best.bytes_per_s;
out:
    probe_close(&probe.sockets);
    free(probe.piece);
    free(readings);
    free(peers);
    return status;
}

enum status probe_link(struct world *world, const char *subnet, int64_t timeout_ms,
                       double *bytes_per_s)
{
    return probe_run(world, subnet, timeout_ms, false, bytes_per_s, NULL);
}

/*
 * Like probe_link, but all hosts take part, also if they share CPUs. `received` (world size): entry
 * r is the rate (bytes/s) at which rank r received from the rank before it. It is 0 for a rank that
 * shares a host with a lower rank, and in a world of one.
 */
static enum status probe_pairs(struct world *world, const char *subnet, int64_t timeout_ms,
                               double *received)
{
    double least;
    return probe_run(world, subnet, timeout_ms, true, &least, received);
}

/* -------- hosts, for --probe=only ------------------------------------------------------------- */

/* The description of a rank's host. All bytes are set, with padding. */
struct host {
    char name[64];
    char address[ADDRESS_TEXT_BYTES];
    char interface[IF_NAMESIZE];
    char commit[48];
    double clock_s; /* since 1970, read after a barrier: exact to about 1 ms */
    int cores;
    int takes_part; /* the first rank of its host */
};

static enum status read_host(struct world *world, const char *subnet, struct host *host)
{
    enum status status;
    struct timespec now;
    union address address;
    memset(host, 0, sizeof *host);
    TRY(subnet || world->local_size < world->size ? world_choose_address(world, subnet, &address)
                                                  : address_choose(NULL, false, &address));
    address_text(&address, host->address);
    if (address_interface(&address, host->interface, sizeof host->interface) != STATUS_OK)
        snprintf(host->interface, sizeof host->interface, "?");
    snprintf(host->name, sizeof host->name, "%s", world->host);
    snprintf(host->commit, sizeof host->commit, "%s", PSRING_COMMIT);
    host->cores = world->cores;
    host->takes_part = world->local_rank == 0;
    TRY(world_barrier(world, NULL));
    clock_gettime(CLOCK_REALTIME, &now);
    host->clock_s = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
out:
    return status;
}

static int host_after(const struct host *hosts, const struct world *world, int rank)
{
    do
        rank = (rank + 1) % world->size;
    while (!hosts[rank].takes_part);
    return rank;
}

static void print(const struct host *hosts, const double *received, const struct world *world)
{
    printf("# %-20s %-15s %-10s %5s %9s %-18s %s\n", "host", "address", "interface", "cores",
           "clock (s)", "commit", "to the next host");
    for (int rank = 0; rank < world->size; rank++) {
        const struct host *host = &hosts[rank];
        if (!host->takes_part)
            continue;
        printf("  %-20s %-15s %-10s %5d %+9.3f %-18s ", host->name, host->address, host->interface,
               host->cores, host->clock_s - hosts[0].clock_s, host->commit);
        int next = host_after(hosts, world, rank);
        if (next == rank)
            printf("-\n");
        else if (received[next] > 0)
            printf("%.1f Mbit/s to %s\n", received[next] * 8e-6, hosts[next].name);
        else
            printf("too little to tell to %s\n", hosts[next].name);
    }
}

enum status probe_hosts(struct world *world, const char *subnet, int64_t timeout_ms)
{
    enum status status;
    struct host mine;
    struct host *hosts = calloc((size_t)world->size, sizeof *hosts);
    double *received = calloc((size_t)world->size, sizeof *received);
    if (!hosts || !received)
        TRY(FAIL(STATUS_NO_MEMORY, "the probe of the hosts: no memory for %d ranks", world->size));
    TRY(read_host(world, subnet, &mine));
    TRY(world_gather(world, NULL, &mine, sizeof mine, hosts));
    TRY(probe_pairs(world, subnet, timeout_ms, received));
    if (world->rank == 0)
        print(hosts, received, world);
out:
    free(received);
    free(hosts);
    return status;
}
