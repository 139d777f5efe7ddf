#include "experiments/measure/probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/net/address.h"
#include "experiments/measure/cpu_share.h"

enum { PIECE_BYTES = 256 << 10, WAKE_BYTES = 16 << 10, ADDRESS_BYTES = 16, PROBE_ROUNDS = 3 };

/* -------- sockets ----------------------------------------------------------------------------- */

/* What a rank tells the others. All bytes are set, padding too. */
struct peer {
    uint32_t address; /* network order */
    uint16_t port;    /* network order */
    uint16_t takes_part;
};

/* One rank's part. Descriptors are -1 where nothing is open. */
struct probe {
    struct world *world;
    int64_t timeout_ms;
    char address[ADDRESS_BYTES]; /* of this host */
    int listener, out, in;       /* out: to the next host; in: from the one before */
    char *piece;                 /* (PIECE_BYTES) what is sent, and where it is received */
};

static enum status failed(const struct probe *probe, const char *what)
{
    log_error("the probe of the link: %s at %s: %s; bench --probe off goes without it", what,
              probe->address, strerror(errno));
    return status_from_errno(errno);
}

static enum status silent(const struct probe *probe, const char *what)
{
    log_error("the probe of the link: %s at %s: nothing for %g s; can the hosts reach each other? "
              "--interface names the network, bench --probe off goes without the probe",
              what, probe->address, (double)probe->timeout_ms / 1000);
    return STATUS_TIMEOUT;
}

/* Waits until `fd` is ready for `events`. */
static enum status wait_ready(const struct probe *probe, int fd, short events, const char *what)
{
    struct pollfd ready = {.fd = fd, .events = events};
    int64_t deadline_ns = clock_now_ns() + probe->timeout_ms * NS_PER_MS;
    for (;;) {
        int64_t left_ms = (deadline_ns - clock_now_ns()) / NS_PER_MS;
        int count = poll(&ready, 1, left_ms > 0 ? (int)left_ms : 0);
        if (count > 0)
            return STATUS_OK;
        if (count < 0 && errno != EINTR)
            return failed(probe, what);
        if (left_ms <= 0)
            return silent(probe, what);
    }
}

static enum status listen_here(struct probe *probe, struct peer *mine)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t length = sizeof at;
    CHECK(inet_pton(AF_INET, probe->address, &at.sin_addr) == 1);
    probe->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (probe->listener < 0 || bind(probe->listener, (struct sockaddr *)&at, sizeof at) != 0 ||
        listen(probe->listener, 8) != 0 ||
        getsockname(probe->listener, (struct sockaddr *)&at, &length) != 0)
        return failed(probe, "listening");
    mine->address = at.sin_addr.s_addr;
    mine->port = at.sin_port;
    return STATUS_OK;
}

static enum status connect_to(struct probe *probe, const struct peer *peer)
{
    enum status status;
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = peer->port, .sin_addr.s_addr = peer->address};
    int error = 0, unsent_bytes = PIECE_BYTES;
    socklen_t length = sizeof error;
    probe->out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (probe->out < 0)
        return failed(probe, "a socket");
    if (connect(probe->out, (struct sockaddr *)&to, sizeof to) != 0 && errno != EINPROGRESS)
        return failed(probe, "connecting");
    TRY(wait_ready(probe, probe->out, POLLOUT, "connecting"));
    if (getsockopt(probe->out, SOL_SOCKET, SO_ERROR, &error, &length) != 0 || (errno = error) != 0)
        return failed(probe, "connecting");
    /* What waits in the sender's buffer at the end would only prolong the probe. */
    setsockopt(probe->out, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent_bytes, sizeof unsent_bytes);
    /* So that the one who accepts knows us from strangers. It fits any socket's buffer. */
    uint64_t hello = probe->world->run_id;
    if (send(probe->out, &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello)
        return failed(probe, "sending");
out:
    return status;
}

/* Does the connection `fd` come from a rank of this run? */
static enum status is_ours(const struct probe *probe, int fd, bool *ours)
{
    enum status status;
    uint64_t hello = 0;
    TRY(wait_ready(probe, fd, POLLIN, "accepting"));
    *ours = recv(fd, &hello, sizeof hello, MSG_DONTWAIT) == sizeof hello &&
            hello == probe->world->run_id;
out:
    return status;
}

static enum status accept_from(struct probe *probe)
{
    enum status status;
    bool ours = false;
    while (!ours) {
        TRY(wait_ready(probe, probe->listener, POLLIN, "accepting"));
        int fd = accept(probe->listener, NULL, NULL);
        if (fd < 0)
            return failed(probe, "accepting");
        status = is_ours(probe, fd, &ours);
        if (!ours)
            close(fd);
        TRY(status);
        if (ours)
            probe->in = fd;
    }
    fcntl(probe->in, F_SETFD, FD_CLOEXEC);
    fcntl(probe->in, F_SETFL, O_NONBLOCK);
    /* A wake-up for every packet would take CPU time that the kernel needs to move them. */
    int enough_bytes = WAKE_BYTES;
    setsockopt(probe->in, SOL_SOCKET, SO_RCVLOWAT, &enough_bytes, sizeof enough_bytes);
out:
    return status;
}

static void close_descriptor(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void close_streams(struct probe *probe)
{
    close_descriptor(&probe->out);
    close_descriptor(&probe->in);
}

/* -------- the streams ------------------------------------------------------------------------- */

static bool would_block(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

static enum status send_piece(struct probe *probe)
{
    if (send(probe->out, probe->piece, PIECE_BYTES, MSG_NOSIGNAL) < 0 && !would_block())
        return failed(probe, "sending");
    return STATUS_OK;
}

static enum status receive_piece(struct probe *probe, int64_t start_ns, struct probe_meter *meter,
                                 bool *ended)
{
    ssize_t got = recv(probe->in, probe->piece, PIECE_BYTES, 0);
    if (got < 0 && !would_block())
        return failed(probe, "receiving");
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
        struct pollfd fds[] = {{.fd = ended ? -1 : probe->in, .events = POLLIN},
                               {.fd = sending ? probe->out : -1, .events = POLLOUT}};
        int64_t left_ns = start_ns + PROBE_END_NS - clock_now_ns();
        if (sending && left_ns <= 0) {
            shutdown(probe->out, SHUT_WR);
            sending = false;
            continue;
        }
        int64_t wait_ms = sending ? left_ns / NS_PER_MS + 1 : probe->timeout_ms;
        int ready = poll(fds, 2, (int)wait_ms);
        if (ready < 0 && errno != EINTR)
            return failed(probe, "waiting");
        if (ready == 0 && !sending)
            return silent(probe, "receiving");
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
static const struct peer *next_of(const struct peer *peers, const struct world *world)
{
    int rank = world->rank;
    do
        rank = (rank + 1) % world->size;
    while (!peers[rank].takes_part);
    return &peers[rank];
}

/* Hosts that share a machine's CPUs share a virtual cluster's rate too: two of them tell it, and
 * more at once would measure the CPUs. */
static void keep_two(struct peer *peers, const struct world *world)
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
static enum status meet(struct probe *probe, const char *subnet, bool every_host,
                        struct peer *peers)
{
    enum status status;
    struct world *world = probe->world;
    struct peer mine;
    bool one_host = world->local_size == world->size;
    memset(&mine, 0, sizeof mine);
    mine.takes_part = one_host || world->local_rank == 0;
    TRY(address_choose(subnet, one_host, probe->address, sizeof probe->address));
    if (mine.takes_part)
        TRY(listen_here(probe, &mine));
    TRY(world_gather(world, NULL, &mine, sizeof mine, peers));
    if (!every_host && !one_host && world->sharing_cpus == world->size)
        keep_two(peers, world);
out:
    return status;
}

static struct finding find(const struct world *world, const struct peer *peers,
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
static enum status measure(struct probe *probe, const struct peer *peers, struct reading *readings,
                           struct finding *finding)
{
    enum status status;
    struct world *world = probe->world;
    struct probe_meter meter = {0};
    struct cpu_watch watch = {0};
    bool takes_part = peers[world->rank].takes_part;
    if (takes_part) {
        TRY(connect_to(probe, next_of(peers, world)));
        TRY(accept_from(probe));
    }
    TRY(world_barrier(world, NULL));
    cpu_watch_start(&watch);
    if (takes_part)
        TRY(stream(probe, &meter));
    cpu_watch_stop(&watch);
    close_streams(probe);
    struct reading mine = {probe_meter_rate(&meter), probe_meter_spread(&meter)};
    log_debug("the probe of the link: %.0f bytes/s arrived at %s, parts within %.1f%%",
              mine.bytes_per_s, probe->address, 100 * mine.spread);
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
        .world = world, .timeout_ms = timeout_ms, .listener = -1, .out = -1, .in = -1};
    struct finding best = {0};
    struct peer *peers = NULL;
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
    TRY(meet(&probe, subnet, every_host, peers));
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
    close_streams(&probe);
    close_descriptor(&probe.listener);
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
