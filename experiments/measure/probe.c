#include "experiments/measure/probe.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/clock.h"
#include "common/net/socket/address.h"
#include "experiments/measure/cpu_share.h"
#include "experiments/measure/probe_sockets.h"

enum { PIECE_BYTES = 256 << 10, PROBE_ROUNDS = 3 };

/* One rank's part. */
struct probe {
    struct world *world;
    struct probe_sockets sockets;
    char *piece; /* (PIECE_BYTES) what is sent, and where it is received */
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

/* Sends until PROBE_END_NS and receives until the one before has ended. What arrives after the end
 * is read all the same: it must not be on the links when the all-reduces begin. */
static enum status stream(struct probe *probe, struct probe_meter *meter)
{
    enum status status = STATUS_OK;
    int64_t start_ns = clock_now_ns();
    bool sending = true, ended = false;
    while (sending || !ended) {
        struct pollfd fds[] = {{.fd = ended ? -1 : probe->sockets.in, .events = POLLIN},
                               {.fd = sending ? probe->sockets.out : -1, .events = POLLOUT}};
        int64_t left_ns = start_ns + PROBE_END_NS - clock_now_ns();
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

/* The next rank after this one that takes part, around the ring. */
static const struct probe_peer *next_of(const struct probe_peer *peers, const struct world *world)
{
    int rank = world->rank;
    do
        rank = (rank + 1) % world->size;
    while (!peers[rank].takes_part);
    return &peers[rank];
}

/* Hosts that share a machine's CPUs share a virtual cluster's rate too: two of them tell it, and
 * more at once would measure the CPUs. */
static void keep_two(struct probe_peer *peers, const struct world *world)
{
    int kept = 0;
    for (int rank = 0; rank < world->size; rank++)
        peers[rank].takes_part = peers[rank].takes_part && kept++ < 2;
}

/* What one round has told; the same on every rank but for the CPUs. */
struct finding {
    double bytes_per_s; /* of the host that received least; 0 where one cannot tell */
    double spread;      /* of the least steady stream */
    double cpu_share;   /* of this rank's machine */
};

/* What one rank has measured. */
struct reading {
    double bytes_per_s, spread;
};

/* Who takes part, and where it listens. */
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

/* All links full for a while. `readings` (world size): room for what every rank measures. */
static enum status measure(struct probe *probe, const struct probe_peer *peers,
                           struct reading *readings, struct finding *finding)
{
    enum status status;
    struct world *world = probe->world;
    struct probe_meter meter = {0};
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

static void warn(const struct finding *finding)
{
    if (finding->bytes_per_s <= 0)
        log_warn("the probe of the link: too little arrived between %g and %g s to tell a rate; "
                 "only the nominal one is known",
                 (double)PROBE_SKIP_NS * 1e-9, (double)PROBE_END_NS * 1e-9);
    else if (finding->cpu_share > CPU_SHARE_LIMITED)
        log_warn(
            "the probe of the link: the CPUs were %.0f%% busy, so the link may carry more than "
            "was measured, and efficiencies come out too high; is something else running?",
            100 * finding->cpu_share);
    else if (finding->spread > PROBE_STEADY)
        log_warn("the probe of the link: in none of %d rounds was the stream steady (its rate "
                 "varied by %.0f%% in the best); is something else on the link?",
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
                    .listener = -1,
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
    if (!peers || !readings || !probe.piece) {
        log_error("the probe of the link: no memory for %d ranks", world->size);
        status = STATUS_NO_MEMORY;
        goto out;
    }
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
        warn(&best);
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

enum status probe_pairs(struct world *world, const char *subnet, int64_t timeout_ms,
                        double *received)
{
    double least;
    return probe_run(world, subnet, timeout_ms, true, &least, received);
}
