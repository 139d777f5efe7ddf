/*
 * attack [--seed S] [--token TEXT] [--keys FILE] [--idle N] ATTACKS PID...: attacks the TCP ports
 * at which these processes listen, ATTACKS times. It looks for new ports now and then, because a
 * job opens new ones.
 *
 * An attack is a connection that sends what a stranger can send (enum attack):
 *   - random bytes, or nothing
 *   - the hello of a rank, a frame of an elastic job, a message between nodes, the handshake of
 *     ZeroMQ or a part of TLS's, with fields changed or cut short
 *   - a whole handshake of TLS with the keys in FILE (without keys if there is no --keys), then a
 *     hello
 *   - earlier attacks again, with what a port has answered to them
 *
 * Then the connection is closed, reset, half closed, or kept open. One that is open sends nothing,
 * or a byte now and then. A flood is many such connections at once.
 *
 * Without --token all attacks come from strangers: no attack may change a run. With the token of a
 * job (as in psring serve --token), half of the hellos have it. At an elastic job a process with it
 * gets a seat and sends anything except a JOIN with the job's options, which would make it a
 * worker. At a rendezvous it is a rank of another world size, which ends the start. At a port with
 * --secure it remains a stranger.
 *
 * --idle opens N connections that send nothing and stay open, prints "idle", makes the attacks, and
 * ends with the processes.
 *
 * Prints how many attacks of each kind were made, how many connections were refused, and the
 * largest growth of a process's memory in kilobytes. The exit code is 1 if a process ended before
 * the last attack. The caller checks the run. A seed gives the same attacks, but for the random
 * bytes of TLS. Their order in time differs.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/base/status.h"
#include "common/net/control.h"
#include "common/net/rendezvous.h"
#include "common/net/transport/message.h"
#include "experiments/config/launch.h"
#include "experiments/elastic/member.h"

enum {
    PORTS_MOST = 64,
    PIDS_MOST = 16,
    HELD_MOST = 400,    /* connections that stay open; the oldest is then closed */
    FLOOD = 50,         /* connections of one attack */
    BYTES_MOST = 16384, /* of one attack */
    KEPT_MOST = 64,     /* earlier attacks, for replays */
    LOOK_EVERY = 50,    /* attacks between two searches for ports */
};

enum attack { RANDOM, HELLO, FRAMES, MESSAGE, ZMQ, TLS, CLIENT, REPLAY, SILENCE, FLOODS, KINDS };

static const char *const names[KINDS] = {"random", "hello",  "frames", "message", "zmq",
                                         "tls",    "client", "replay", "silence", "flood"};

struct bytes {
    size_t count;
    uint8_t at[BYTES_MOST];
};

static struct {
    pid_t pids[PIDS_MOST];
    long memory_kb[PIDS_MOST]; /* at the first look */
    int pid_count;
    int ports[PORTS_MOST];
    int port_count;
    uint64_t token; /* 0: none */
    SSL_CTX *tls;
    uint64_t seed, words;
    int held[HELD_MOST];
    size_t next_held;
    struct bytes kept[KEPT_MOST];
    size_t kept_count;
    long made[KINDS], refused, clients, grown_kb;
} all;

static uint32_t below(uint32_t bound)
{
    return rng_below(rng_block(rng_key(all.seed, RNG_TEST, 99), all.words++, 0).word[0], bound);
}

static uint64_t any64(void)
{
    static const uint64_t telling[] = {0,          1,         UINT64_MAX,       INT64_MAX,
                                       UINT32_MAX, INT32_MAX, (uint64_t)1 << 40};
    uint32_t which = below(2 * sizeof telling / sizeof *telling);
    return which < sizeof telling / sizeof *telling
               ? telling[which]
               : (uint64_t)below(UINT32_MAX) << 32 | below(UINT32_MAX);
}

/* -------- the processes ----------------------------------------------------------------------- */

/* The sockets of a process, as inodes. */
static size_t read_inodes(pid_t pid, unsigned long *inodes, size_t most)
{
    char path[64], target[64];
    size_t count = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && count < most && (entry = readdir(folder));) {
        ssize_t length = readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        if (strncmp(target, "socket:[", 8) == 0)
            inodes[count++] = strtoul(target + 8, NULL, 10);
    }
    if (folder)
        closedir(folder);
    return count;
}

static void find_ports_of(pid_t pid)
{
    static unsigned long inodes[4096];
    static const char *const tables[] = {"tcp", "tcp6"};
    size_t count = read_inodes(pid, inodes, sizeof inodes / sizeof *inodes);
    for (int t = 0; t < 2; t++) {
        char path[64], line[512];
        snprintf(path, sizeof path, "/proc/%d/net/%s", (int)pid, tables[t]);
        FILE *file = fopen(path, "re");
        while (file && fgets(line, sizeof line, file)) {
            unsigned port, state;
            unsigned long inode;
            if (sscanf(line, " %*[^:]: %*[^:]:%x %*s %x %*s %*s %*s %*s %*s %lu", &port, &state,
                       &inode) != 3 ||
                state != 0x0a /* listens */)
                continue;
            for (size_t i = 0; i < count; i++) {
                if (inodes[i] == inode && all.port_count < PORTS_MOST)
                    all.ports[all.port_count++] = (int)port;
            }
        }
        if (file)
            fclose(file);
    }
}

static long memory_of(pid_t pid)
{
    char path[64];
    long pages = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%*s %ld", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* False: a process has ended. */
static bool look(void)
{
    for (int i = 0; i < all.pid_count; i++) {
        long memory_kb = memory_of(all.pids[i]);
        if (memory_kb == 0)
            return false;
        if (all.memory_kb[i] == 0)
            all.memory_kb[i] = memory_kb;
        if (memory_kb - all.memory_kb[i] > all.grown_kb)
            all.grown_kb = memory_kb - all.memory_kb[i];
    }
    return true;
}

static void find_ports(void)
{
    all.port_count = 0;
    for (int i = 0; i < all.pid_count; i++)
        find_ports_of(all.pids[i]);
}

/* -------- what to send ------------------------------------------------------------------------ */

static void add(struct bytes *bytes, const void *data, size_t count)
{
    if (count > BYTES_MOST - bytes->count)
        count = BYTES_MOST - bytes->count;
    memcpy(bytes->at + bytes->count, data, count);
    bytes->count += count;
}

static void add_random(struct bytes *bytes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint8_t byte = (uint8_t)below(256);
        add(bytes, &byte, 1);
    }
}

/* Changes nothing, a bit, a byte, or some bytes of the last `count` bytes; or cuts some of them. */
static void hurt(struct bytes *bytes, size_t count)
{
    if (count > bytes->count)
        count = bytes->count;
    uint8_t *last = bytes->at + bytes->count - count;
    uint32_t at = count > 0 ? below((uint32_t)count) : 0;
    switch (count > 0 ? below(6) : 0) {
    case 1:
        last[at] ^= (uint8_t)(1u << below(8));
        break;
    case 2:
        last[at] = (uint8_t)below(256);
        break;
    case 3:
        bytes->count -= 1 + below((uint32_t)count);
        break;
    case 4:
        for (uint32_t i = at; i < count; i++)
            last[i] = (uint8_t)below(256);
        break;
    default:
        break;
    }
}

static void put_hello(struct bytes *bytes)
{
    bool has_token = all.token != 0 && below(2) == 0;
    struct hello hello = hello_from((int)below(5) - 1, (int)below(5), any64());
    if (has_token)
        hello.head.job = membership_job(all.token, 0);
    if (has_token && below(2) == 0) {
        hello.head.job = all.token;
        hello.world_size = 1;
    }
    switch (below(8)) { /* one field */
    case 0:
        hello.head.magic = any64();
        break;
    case 1:
        hello.head.protocol = below(5);
        break;
    case 2:
        hello.head.value = (int32_t)any64();
        break;
    case 3:
        hello.head.type = below(80);
        break;
    case 4:
        hello.head.bytes = any64();
        break;
    case 5:
        hello.world_size = (int32_t)any64();
        break;
    case 6:
        memset(hello.version, (int)below(256), sizeof hello.version);
        memset(hello.host, (int)below(256), sizeof hello.host);
        break;
    default:
        break;
    }
    add(bytes, &hello, sizeof hello);
    if (!has_token && below(4) == 0) /* a stranger by its job, whatever bits change */
        hurt(bytes, sizeof hello - sizeof hello.head);
}

/* Frames of an elastic job, after a hello. */
static void put_frames(struct bytes *bytes)
{
    uint64_t job = membership_job(below(2) ? all.token : any64(), 0);
    struct hello hello = hello_from(0, 0, job);
    add(bytes, &hello, sizeof hello);
    for (uint32_t left = 1 + below(4); left > 0; left--) {
        char text[200];
        size_t length = below(sizeof text);
        for (size_t i = 0; i < length; i++)
            text[i] = (char)below(256);
        struct membership_frame frame = {
            .head = {.magic = CONTROL_MAGIC,
                     .protocol = CONTROL_PROTOCOL,
                     .value = (int32_t)any64(),
                     .type = MEMBERSHIP_JOIN + below(14),
                     .group = below(4),
                     .bytes = sizeof frame - sizeof frame.head + length,
                     .job = below(4) ? job : any64(),
                     .sequence = below(8) ? 5 - left : any64()},
            .role = (int32_t)below(4),
            .index = (int32_t)any64(),
            .workers = (int32_t)any64(),
            .servers = (int32_t)any64(),
            .port = below(70000),
            .place = {.step = any64(), .images = any64()}};
        add(bytes, &frame, sizeof frame);
        add(bytes, text, length);
        if (below(3) == 0)
            hurt(bytes, length + sizeof frame - CONTROL_SAME_BYTES);
    }
}

/* Messages between nodes, of another run. */
static void put_messages(struct bytes *bytes)
{
    for (uint32_t left = 1 + below(3); left > 0; left--) {
        uint8_t header[MESSAGE_HEADER_BYTES];
        const struct message message = {.kind = (enum message_kind)below(12),
                                        .run_id = any64(),
                                        .sender = below(6),
                                        .bucket = (uint32_t)any64(),
                                        .step = any64(),
                                        .offset = any64(),
                                        .length = below(2) ? any64() : below(4096),
                                        .dtype = (enum message_dtype)below(8)};
        message_encode(&message, header);
        add(bytes, header, sizeof header);
        if (below(3) == 0)
            hurt(bytes, sizeof header);
        add_random(bytes, below(300));
    }
}

/* A ZMTP command or frame: flags, length, data. */
static void add_zmtp(struct bytes *bytes, uint8_t flags, const void *data, uint64_t length,
                     size_t sent)
{
    uint8_t head[9] = {flags};
    bool is_long = flags & 2;
    for (int i = 0; i < 8; i++)
        head[is_long ? 8 - i : 1] = (uint8_t)(is_long ? length >> 8 * i : length);
    add(bytes, head, is_long ? sizeof head : 2);
    add(bytes, data, sent);
}

/* ZeroMQ's greeting, and a handshake without the password or with a wrong one; then frames as of a
 * peer that has been let in. */
static void put_zmq(struct bytes *bytes)
{
    static const char *const mechanisms[] = {"NULL", "PLAIN", "CURVE", "GSSAPI"};
    static const char hello[] = "\5HELLO\6psring\x10"
                                "0123456789abcdef";
    static const char ready[] = "\5READY\13Socket-Type\0\0\0\4PUSH";
    uint8_t greeting[64] = {0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3};
    const char *mechanism = mechanisms[below(4)];
    memcpy(greeting + 12, mechanism, strlen(mechanism));
    add(bytes, greeting, sizeof greeting);
    if (below(4) == 0)
        hurt(bytes, sizeof greeting);
    if (below(4) > 0)
        add_zmtp(bytes, 4, hello, sizeof hello - 1, sizeof hello - 1);
    if (below(2) == 0)
        add_zmtp(bytes, 4, ready, sizeof ready - 1, sizeof ready - 1);
    if (below(4) == 0) /* longer than any, or nearly: the port waits for it */
        add_zmtp(bytes, (uint8_t)(2 + 4 * below(2)), ready, below(2) ? any64() : below(1 << 22),
                 20);
    if (below(2) == 0)
        put_messages(bytes);
    if (below(3) == 0)
        hurt(bytes, 100);
}

/* A ClientHello: of TLS 1.3 as psring sends it, of an older version, or of a client that offers
 * other keys for the exchange. */
static void add_client_hello(struct bytes *bytes)
{
    static const char *const groups[] = {"X25519", "P-521", "ffdhe2048", "ffdhe8192"};
    uint8_t hello[4096];
    SSL *ssl = SSL_new(all.tls);
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    if (ssl && in && out) {
        SSL_set_bio(ssl, in, out);
        if (below(3) == 0)
            SSL_set_max_proto_version(ssl, TLS1_2_VERSION);
        if (below(3) == 0)
            SSL_set1_groups_list(ssl, groups[below(4)]);
        (void)SSL_connect(ssl);
        int length = BIO_read(out, hello, sizeof hello);
        add(bytes, hello, length > 0 ? (size_t)length : 0);
    }
    SSL_free(ssl);
}

/* Parts of a handshake of TLS: a ClientHello, then records that do not fit it. */
static void put_tls(struct bytes *bytes)
{
    add_client_hello(bytes);
    if (below(2) == 0)
        hurt(bytes, bytes->count);
    for (uint32_t left = below(4); left > 0; left--) {
        uint32_t length = below(300), named = below(4) ? length : below(UINT16_MAX + 1);
        const uint8_t head[] = {(uint8_t)(19 + below(7)), 3, (uint8_t)below(5),
                                (uint8_t)(named >> 8), (uint8_t)named};
        add(bytes, head, sizeof head);
        add_random(bytes, length);
    }
    if (below(8) == 0)
        add_client_hello(bytes);
}

static void put(struct bytes *bytes, enum attack attack)
{
    bytes->count = 0;
    switch (attack) {
    case RANDOM:
        add_random(bytes, below(2000));
        break;
    case HELLO:
    case CLIENT:
        put_hello(bytes);
        break;
    case TLS:
        put_tls(bytes);
        break;
    case FRAMES:
        put_frames(bytes);
        break;
    case MESSAGE:
        put_messages(bytes);
        break;
    case ZMQ:
        put_zmq(bytes);
        break;
    case REPLAY:
        for (uint32_t left = 1 + below(3); left > 0 && all.kept_count > 0; left--) {
            const struct bytes *kept = &all.kept[below((uint32_t)all.kept_count)];
            add(bytes, kept->at, kept->count);
        }
        break;
    default:
        break;
    }
}

/* -------- connections ------------------------------------------------------------------------- */

/* -1: refused. The port may have closed a moment ago. */
static int connect_to(int port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) != 0 && errno != EINPROGRESS) {
        close(fd);
        fd = -1;
    }
    all.refused += fd < 0;
    return fd;
}

static void hold(int fd)
{
    int *place = &all.held[all.next_held++ % HELD_MOST];
    if (*place > 0)
        close(*place);
    *place = fd;
}

/* Every held connection is a client that sends a byte now and then. */
static void dribble(void)
{
    char byte = (char)below(256);
    int fd = all.held[below(HELD_MOST)];
    if (fd > 0)
        (void)!send(fd, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Keeps the attack for replays, sometimes with what the port has answered. */
static void keep(int fd, const struct bytes *bytes)
{
    struct bytes *kept = &all.kept[all.kept_count < KEPT_MOST ? all.kept_count : below(KEPT_MOST)];
    uint8_t answer[1024];
    *kept = *bytes;
    if (all.kept_count < KEPT_MOST)
        all.kept_count++;
    ssize_t got = recv(fd, answer, sizeof answer, MSG_DONTWAIT);
    if (got > 0)
        add(kept, answer, (size_t)got);
}

static void end(int fd)
{
    static const struct linger reset = {.l_onoff = 1};
    switch (below(6)) {
    case 0:
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        close(fd);
        break;
    case 1:
        shutdown(fd, SHUT_WR);
        hold(fd);
        break;
    case 2:
        shutdown(fd, SHUT_RD);
        hold(fd);
        break;
    case 3:
        close(fd);
        break;
    default:
        hold(fd);
        break;
    }
}

/* A client of TLS with the keys of another job. It takes any keys of the port, and sends `bytes` if
 * the port answers soon. */
static void shake_hands(int fd, const struct bytes *bytes)
{
    enum { ANSWERS = 3, ANSWER_MS = 10 };
    struct pollfd port = {.fd = fd, .events = POLLIN};
    SSL *ssl = SSL_new(all.tls);
    bool done = ssl && SSL_set_fd(ssl, fd) == 1 && SSL_connect(ssl) == 1;
    for (int i = 0; ssl && !done && i < ANSWERS && poll(&port, 1, ANSWER_MS) > 0; i++)
        done = SSL_connect(ssl) == 1;
    all.clients += done;
    if (done && bytes->count > 0)
        (void)SSL_write(ssl, bytes->at, (int)bytes->count);
    SSL_free(ssl);
}

static void send_attack(int fd, enum attack attack, const struct bytes *bytes)
{
    if (attack == CLIENT) {
        shake_hands(fd, bytes);
        return;
    }
    size_t first = bytes->count > 0 && below(3) == 0 ? below((uint32_t)bytes->count) : 0;
    if (first > 0) /* in two pieces */
        (void)!send(fd, bytes->at, first, MSG_NOSIGNAL);
    if (bytes->count > 0)
        (void)!send(fd, bytes->at + first, bytes->count - first, MSG_NOSIGNAL);
    if (bytes->count > 0 && attack != REPLAY && below(8) == 0)
        keep(fd, bytes);
}

static void attack_once(enum attack attack)
{
    static struct bytes bytes;
    if (all.port_count == 0)
        return;
    int port = all.ports[below((uint32_t)all.port_count)];
    all.made[attack]++;
    put(&bytes, attack);
    for (int left = attack == FLOODS ? FLOOD : 1; left > 0; left--) {
        int fd = connect_to(port);
        if (fd < 0)
            continue;
        send_attack(fd, attack, &bytes);
        end(fd);
    }
    dribble();
}

/* -------- the program ------------------------------------------------------------------------- */

static _Noreturn void usage(void)
{
    fprintf(stderr,
            "usage: attack [--seed S] [--token TEXT] [--keys FILE] [--idle N] ATTACKS PID...\n");
    exit(2);
}

static bool use_keys(const char *file)
{
    return SSL_CTX_use_certificate_file(all.tls, file, SSL_FILETYPE_PEM) == 1 &&
           SSL_CTX_use_PrivateKey_file(all.tls, file, SSL_FILETYPE_PEM) == 1;
}

static void read_arguments(int argc, char **argv, long *attacks, long *idle)
{
    int next = 1;
    for (; next + 1 < argc && argv[next][0] == '-'; next += 2) {
        if (strcmp(argv[next], "--seed") == 0)
            all.seed = strtoull(argv[next + 1], NULL, 10);
        else if (strcmp(argv[next], "--idle") == 0)
            *idle = strtol(argv[next + 1], NULL, 10);
        else if (strcmp(argv[next], "--keys") == 0 && use_keys(argv[next + 1]))
            continue;
        else if (strcmp(argv[next], "--token") != 0 ||
                 launch_token(argv[next + 1], &all.token) != STATUS_OK)
            usage();
    }
    if (argc - next < 2 || argc - next - 1 > PIDS_MOST)
        usage();
    *attacks = strtol(argv[next++], NULL, 10);
    for (; next < argc; next++)
        all.pids[all.pid_count++] = (pid_t)strtol(argv[next], NULL, 10);
}

static void raise_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* The connections close when this process ends. */
static void open_idle(long count)
{
    for (long i = 0; i < count && all.port_count > 0; i++)
        connect_to(all.ports[i % all.port_count]);
    printf("idle\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    long attacks, idle = 0, done = 0;
    all.tls = SSL_CTX_new(TLS_client_method());
    if (!all.tls)
        return 2;
    signal(SIGPIPE, SIG_IGN); /* OpenSSL writes to connections that a port has reset */
    read_arguments(argc, argv, &attacks, &idle);
    raise_limit();
    bool alive = look();
    find_ports();
    if (idle > 0)
        open_idle(idle);
    for (; done < attacks && alive; done++) {
        if (done % LOOK_EVERY == 0) {
            alive = look();
            find_ports();
        }
        uint32_t chance = below(100);
        attack_once(chance < 2 ? FLOODS : (enum attack)(chance % FLOODS));
        if (done % 8 == 7) /* leaves the processors to the run, too */
            clock_sleep_until_ns(clock_now_ns() + NS_PER_MS);
    }
    alive = alive && look();
    while (idle > 0 && look())
        clock_sleep_until_ns(clock_now_ns() + 50 * NS_PER_MS);
    printf("attack: %ld attacks:", done);
    for (int kind = 0; kind < KINDS; kind++)
        printf(" %s %ld", names[kind], all.made[kind]);
    printf("; %ld handshakes of TLS, %ld connections refused, memory grew by %ld kB at most%s\n",
           all.clients, all.refused, all.grown_kb, alive ? "" : "; a process has ended");
    return alive ? 0 : 1;
}
