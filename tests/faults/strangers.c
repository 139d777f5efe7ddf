/*
 * strangers FRAMES SECONDS PORT...: sends to a run's ports what uninvited programs may send, all at
 * once. ZeroMQ sockets, without a password or with a wrong one, send FRAMES frames to every port.
 * Frames are random bytes, empty, above the limit, truncated headers, or headers that are right
 * except for the run. Messages have one to five frames, and one message never ends. A refused
 * socket is replaced by a new one. Other connections send nothing, or something that is not
 * ZeroMQ's protocol. All stay open for SECONDS. Prints how many frames were sent and how often a
 * socket was replaced; the caller checks the run. The frames are the same in every call.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#include "common/base/rng.h"
#include "common/net/transport/message.h"

enum { PORTS_MAX = 16, MANNERS = 4, RAW_MAX = 3, LONGEST = 64 * 1024, OVERSIZED = 8 << 20 };

/* How a ZeroMQ socket presents itself. */
static const struct {
    int type;
    const char *password; /* NULL: none */
} manners[MANNERS] = {
    {ZMQ_PUSH, NULL}, {ZMQ_PUSH, "0123456789abcdef"}, {ZMQ_DEALER, NULL}, {ZMQ_PUSH, NULL}};

struct port {
    int number;
    long sent;              /* frames */
    void *sockets[MANNERS]; /* the last socket never ends its message */
    int raw[RAW_MAX];       /* not ZeroMQ's protocol */
};

static uint64_t words_used;

static uint32_t below(uint32_t bound)
{
    return rng_below(rng_block(rng_key(1, RNG_TEST, 77), words_used++, 0).word[0], bound);
}

static void fill_random(uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)below(256);
}

/* Writes the content of one frame to `bytes` and returns its length. */
static size_t make_frame(uint8_t *bytes)
{
    struct message message = {.kind = (enum message_kind)(1 + below(4)),
                              .run_id = below(1 << 30),
                              .sender = below(4),
                              .step = below(100),
                              .length = 4 * (uint64_t)below(1000),
                              .dtype = MESSAGE_FLOAT32};
    size_t count;
    switch (below(8)) {
    case 0: /* empty */
        return 0;
    case 1: /* a header of another run, otherwise valid */
        message_encode(&message, bytes);
        return MESSAGE_HEADER_BYTES;
    case 2: /* the same, cut short */
        message_encode(&message, bytes);
        return below(MESSAGE_HEADER_BYTES);
    case 3: /* the same, with bytes after it */
        message_encode(&message, bytes);
        count = below(200);
        fill_random(bytes + MESSAGE_HEADER_BYTES, count);
        return MESSAGE_HEADER_BYTES + count;
    case 4: /* of the right size */
        fill_random(bytes, MESSAGE_HEADER_BYTES);
        return MESSAGE_HEADER_BYTES;
    case 5: /* long, some of them longer than any payload */
        count = below(256) ? below(LONGEST) : OVERSIZED;
        memset(bytes, (int)below(256), count);
        return count;
    default:
        count = below(300);
        fill_random(bytes, count);
        return count;
    }
}

static void *connect_socket(void *context, int manner, int port)
{
    static const int none = 0, never = -1;
    char address[64];
    void *socket = zmq_socket(context, manners[manner].type);
    snprintf(address, sizeof address, "tcp://127.0.0.1:%d", port);
    if (!socket)
        return NULL;
    zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof none);
    zmq_setsockopt(socket, ZMQ_SNDHWM, &none, sizeof none);
    /* All but one reconnect after a refusal. */
    if (manner == 2)
        zmq_setsockopt(socket, ZMQ_RECONNECT_IVL, &never, sizeof never);
    if (manners[manner].password) {
        zmq_setsockopt(socket, ZMQ_PLAIN_USERNAME, "psring", 6);
        zmq_setsockopt(socket, ZMQ_PLAIN_PASSWORD, manners[manner].password,
                       strlen(manners[manner].password));
    }
    if (zmq_connect(socket, address) != 0) {
        zmq_close(socket);
        return NULL;
    }
    return socket;
}

/* A connection without ZeroMQ: kind 0 sends nothing, 1 sends HTTP, 2 starts like ZeroMQ and
 * continues with random bytes. The other side may refuse it or cut it off. */
static int connect_raw(int kind, int port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    uint8_t bytes[4096] = "GET / HTTP/1.1\r\nHost: psring\r\n\r\n";
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || (connect(fd, (struct sockaddr *)&to, sizeof to) != 0 && errno != EINPROGRESS)) {
        fprintf(stderr, "strangers: port %d: %s\n", port, strerror(errno));
        return fd;
    }
    if (kind == 2) {
        static const uint8_t greeting[] = {0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3};
        fill_random(bytes, sizeof bytes);
        memcpy(bytes, greeting, sizeof greeting);
    }
    if (kind > 0 && send(fd, bytes, sizeof bytes, MSG_NOSIGNAL) < 0 && errno != EAGAIN)
        fprintf(stderr, "strangers: port %d: %s\n", port, strerror(errno));
    return fd;
}

static void nap(double seconds)
{
    struct timespec length = {.tv_sec = (time_t)seconds,
                              .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&length, NULL);
}

/* Sends one message of one to five frames. Returns false if the socket takes no more frames: the
 * other side has refused it. */
static bool send_message(struct port *port, int manner)
{
    static uint8_t bytes[OVERSIZED];
    for (uint32_t left = 1 + below(5); left > 0; left--) {
        bool more = left > 1 || manner == MANNERS - 1;
        size_t length = make_frame(bytes);
        int flags = ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0);
        if (zmq_send(port->sockets[manner], bytes, length, flags) < 0)
            return false;
        port->sent++;
    }
    return true;
}

/* Sends `frames` frames to every port in turn. Returns how often a socket was replaced, or -1. */
static long send_frames(void *context, struct port *ports, int count, long frames)
{
    long replaced = 0;
    for (long turn = 0, done = 0; done < count; turn++) {
        struct port *port = &ports[turn % count];
        done = port->sent >= frames ? done + 1 : 0;
        if (port->sent >= frames)
            continue;
        int manner = (int)below(MANNERS);
        if (!send_message(port, manner)) {
            zmq_close(port->sockets[manner]);
            port->sockets[manner] = connect_socket(context, manner, port->number);
            if (!port->sockets[manner])
                return -1;
            replaced++;
        }
        if (turn % 32 == 0)
            nap(.001); /* not all frames before the first has left */
    }
    return replaced;
}

int main(int argc, char **argv)
{
    static struct port ports[PORTS_MAX];
    int count = argc - 3;
    if (count < 1 || count > PORTS_MAX) {
        fprintf(stderr, "usage: %s FRAMES SECONDS PORT...\n", argv[0]);
        return 2;
    }
    void *context = zmq_ctx_new();
    for (int p = 0; p < count; p++) {
        ports[p].number = atoi(argv[3 + p]);
        for (int m = 0; m < MANNERS; m++) {
            ports[p].sockets[m] = connect_socket(context, m, ports[p].number);
            if (!ports[p].sockets[m])
                return 1;
        }
        for (int r = 0; r < RAW_MAX; r++)
            ports[p].raw[r] = connect_raw(r, ports[p].number);
    }
    nap(.2);
    long replaced = send_frames(context, ports, count, atol(argv[1]));
    nap(atof(argv[2]));
    for (int p = 0; p < count; p++) {
        for (int m = 0; m < MANNERS; m++)
            zmq_close(ports[p].sockets[m]);
        for (int r = 0; r < RAW_MAX; r++)
            close(ports[p].raw[r]);
    }
    zmq_ctx_term(context);
    printf("strangers: %s frames to each of %d ports, %ld sockets replaced\n", argv[1], count,
           replaced);
    return replaced >= 0 ? 0 : 1;
}
