/*
 * The TCP transport between more ranks than it polls one by one. The ranks connect while strangers
 * call every port, every message arrives, and the end of one rank is noticed. Held messages leave
 * in the caller's order.
 */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/socket.h>

#include "common/net/control.h"
#include "common/net/transport/tcp_impl.h"
#include "tests/lib/ranks.h"

enum { STRANGERS_EACH = 5, RANKS = 6, ROUNDS = 6, ROUND_FLOATS = 1 << 20 };

static bool strangers_come;
static int times_called; /* by this many strangers of each kind */

static int call(const struct sockaddr_in *at, const void *bytes, size_t count)
{
    int stranger = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(stranger, (const struct sockaddr *)at, sizeof *at) == 0 && count > 0)
        count = send(stranger, bytes, count, MSG_NOSIGNAL) > 0 ? count : 0;
    return stranger;
}

/* The linker calls it instead of listen (CMakeLists.txt). The strangers' connections stay open. */
int __real_listen(int fd, int backlog);
int __wrap_listen(int fd, int backlog);
int __wrap_listen(int fd, int backlog)
{
    int result = __real_listen(fd, backlog);
    struct sockaddr_in at;
    socklen_t bytes = sizeof at;
    struct hello hello = hello_from(1, 0, 1);
    if (!strangers_come || getsockname(fd, (struct sockaddr *)&at, &bytes) != 0)
        return result;
    for (int i = 0; i < STRANGERS_EACH; i++, times_called++) {
        call(&at, NULL, 0);                      /* sends nothing, stays connected */
        call(&at, "GET / HTTP/1.1\r\n\r\n", 18); /* another protocol */
        call(&at, &hello, sizeof hello);         /* a hello of another run */
        call(&at, &hello, 20);                   /* a part of a hello */
        int gone = call(&at, &hello, 20);
        close(gone);
    }
    return result;
}

/* The sockets that messages left by, in their order, while is_recording. The linker calls it
 * instead of sendmsg. */
enum { LEFT_MOST = 64 };

static bool is_recording;
static int left_by[LEFT_MOST], left_count;

ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
    if (is_recording && left_count < LEFT_MOST)
        left_by[left_count++] = fd;
    return __real_sendmsg(fd, message, flags);
}

static int count_listening(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++) {
        int listens = 0;
        socklen_t bytes = sizeof listens;
        count += getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) == 0 && listens;
    }
    return count;
}

/* The values that rank `from` sends to rank `to`. */
static void fill(float *values, size_t count, int from, int to)
{
    for (size_t i = 0; i < count; i++)
        values[i] = (float)(i % 4099 + (size_t)(from * RANKS + to) * 5000);
}

/* Every rank sends to every other rank. The length differs between rounds; in some it exceeds what
 * the kernel buffers. All receives are posted first, so the transport polls all other ranks. */
static bool exchange_round(struct transport *own, struct transport_slot *slots, size_t count)
{
    static float sent[RANKS][ROUND_FLOATS], expected[ROUND_FLOATS];
    struct message message = {
        .kind = MESSAGE_SEGMENT, .length = count * sizeof(float), .dtype = MESSAGE_FLOAT32};
    struct transport_slot *waiting[RANKS] = {NULL};
    for (int peer = 0; peer < RANKS; peer++) {
        if (peer != own->node && transport_post(own, &slots[peer], NULL) != STATUS_OK)
            return false;
        waiting[peer] = peer == own->node ? NULL : &slots[peer];
    }
    for (int peer = 0; peer < RANKS; peer++) {
        fill(sent[peer], count, own->node, peer);
        if (peer != own->node && transport_send(own, peer, &message, sent[peer], NULL) != STATUS_OK)
            return false;
    }
    for (int left = RANKS - 1; left > 0; left--) {
        size_t which;
        if (transport_wait_any(own, waiting, RANKS, false, &which) != STATUS_OK)
            return false;
        fill(expected, count, (int)which, own->node);
        if (slots[which].message.length != message.length ||
            memcmp(slots[which].payload, expected, message.length) != 0)
            return false;
        transport_release(own, &slots[which]);
        waiting[which] = NULL;
    }
    return transport_flush(own) == STATUS_OK;
}

/* The last rank leaves without a goodbye. The other ranks wait for all ranks and get an error. */
static bool lose_the_last(struct world *of, struct transport **own, struct transport_slot *slots)
{
    enum status status = STATUS_OK;
    int last = RANKS - 1;
    if (of->rank == last)
        transport_close(own);
    for (int peer = 0; peer < RANKS && of->rank != last; peer++) {
        if (peer != of->rank && transport_post(*own, &slots[peer], NULL) != STATUS_OK)
            return false;
    }
    if (of->rank != last)
        status = transport_wait(*own, &slots[last]);
    return status == (of->rank == last ? STATUS_OK : STATUS_TRANSPORT);
}

static int meet_all(struct world *of)
{
    static const size_t counts[ROUNDS] = {1, ROUND_FLOATS, 0, 5000, 40000, 2};
    const struct transport_options options = {.kind = TRANSPORT_TCP,
                                              .topology = {.workers = RANKS},
                                              .payload_bytes_max = ROUND_FLOATS * sizeof(float),
                                              .dtype = MESSAGE_FLOAT32,
                                              .timeout_ms = 20000};
    struct transport_slot slots[RANKS];
    struct transport *ends[2];
    int listening = count_listening();
    strangers_come = true;
    if (transport_open(ends, of, &options) != STATUS_OK)
        return 4;
    struct transport *own = ends[NODE_WORKER];
    if (times_called != STRANGERS_EACH || count_listening() != listening)
        return 5;
    for (int peer = 0; peer < RANKS; peer++) {
        if (peer != of->rank &&
            transport_slot_init(&slots[peer], own, peer, ROUND_FLOATS * sizeof(float)) != STATUS_OK)
            return 6;
    }
    for (int round = 0; round < ROUNDS; round++) {
        if (!exchange_round(own, slots, counts[round]))
            return 7;
    }
    if (world_barrier(of, NULL) != STATUS_OK)
        return 8;
    if (!lose_the_last(of, &ends[NODE_WORKER], slots))
        return 9;
    if (world_barrier(of, NULL) != STATUS_OK)
        return 10;
    for (int peer = 0; peer < RANKS && ends[NODE_WORKER]; peer++) {
        if (peer != of->rank)
            transport_slot_fini(&slots[peer], own);
    }
    transport_close(&ends[NODE_WORKER]);
    return 0;
}

Test(tcp_ranks, many_ranks_in_spite_of_strangers)
{
    struct rank ranks[RANKS] = {{0}};
    for (int i = 0; i < RANKS; i++)
        ranks[i] = (struct rank){.number = i, .world_size = RANKS, .run = meet_all};
    ranks_run(ranks, RANKS);
    for (int i = 0; i < RANKS; i++) {
        cr_expect_eq(ranks[i].code, 0, "rank %d: %d: %s", i, ranks[i].code, ranks[i].said);
        bool stays = i < RANKS - 1;
        cr_expect_eq(strstr(ranks[i].said, "worker 5 (rank 5) has closed") != NULL, stays, "%s",
                     ranks[i].said);
        /* Each rank warns once about strangers, unless the ranks met before it saw one. */
        cr_expect(ranks[i].lines <= 1 + stays, "rank %d: %s", i, ranks[i].said);
    }
}

/* Every rank sends two long messages to each of the others, beginning with the next rank. All are
 * held until it waits. Then those to the next rank leave first, together, and so on. */
static int send_around(struct world *of)
{
    enum { FLOATS = 5000, EACH = 2 };
    static float sent[FLOATS];
    const struct transport_options options = {.kind = TRANSPORT_TCP,
                                              .topology = {.workers = of->size},
                                              .payload_bytes_max = sizeof sent,
                                              .dtype = MESSAGE_FLOAT32,
                                              .timeout_ms = 20000};
    const struct message message = {
        .kind = MESSAGE_SEGMENT, .length = sizeof sent, .dtype = MESSAGE_FLOAT32};
    struct transport *ends[2];
    if (transport_open(ends, of, &options) != STATUS_OK)
        return 4;
    struct transport *own = ends[NODE_WORKER];
    is_recording = true;
    for (int i = 0; i < EACH * (of->size - 1); i++) {
        int peer = (of->rank + 1 + i % (of->size - 1)) % of->size;
        if (transport_send(own, peer, &message, sent, NULL) != STATUS_OK)
            return 5;
    }
    if (left_count > 0 || transport_flush(own) != STATUS_OK)
        return 6;
    is_recording = false;
    for (int i = 0; i + 1 < of->size; i++) {
        int peer = (of->rank + 1 + i) % of->size;
        if (i == left_count || left_by[i] != endpoint_of(own)->peers[peer].fd)
            return 7;
    }
    if (world_barrier(of, NULL) != STATUS_OK)
        return 8;
    transport_close(&ends[NODE_WORKER]);
    return 0;
}

Test(tcp_ranks, held_messages_leave_in_the_order_of_sends)
{
    for (int size = 3; size <= RANKS; size++) { /* few peers and many are polled differently */
        struct rank ranks[RANKS] = {{0}};
        for (int i = 0; i < size; i++)
            ranks[i] = (struct rank){.number = i, .world_size = size, .run = send_around};
        ranks_run(ranks, size);
        for (int i = 0; i < size; i++)
            cr_expect_eq(ranks[i].code, 0, "rank %d: %d: %s", i, ranks[i].code, ranks[i].said);
    }
}
