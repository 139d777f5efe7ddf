/*
 * The TCP transport. The worker's and the server's endpoint are in one process, connected by a pair
 * of sockets. A peer may send a message in any pieces. Forbidden messages and ends are refused.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "common/net/transport/tcp_impl.h"
#include "tests/lib/capture.h"
#include "tests/lib/ranks.h"

enum { WORKER = 0, SERVER = 1, FLOATS = 20000, MESSAGES = 50, LONG_FLOATS = 1 << 22 };

static struct world *world;
static struct transport *endpoint[2];
static float data[FLOATS];

static const struct message push = {
    .kind = MESSAGE_PUSH, .length = sizeof data, .dtype = MESSAGE_FLOAT32};

static void open_world(void)
{
    char address[64];
    ranks_address(address);
    const struct world_options options = {
        .startup_timeout_ms = 20000, .rendezvous = address, .rank = 0, .size = 1};
    cr_assert_eq(world_open(&world, NULL, NULL, &options), STATUS_OK);
    for (int i = 0; i < FLOATS; i++)
        data[i] = (float)i;
}

static void open_both(int64_t timeout_ms)
{
    const struct transport_options options = {.kind = TRANSPORT_TCP,
                                              .topology = {1, 1, PLACEMENT_COLOCATED},
                                              .payload_bytes_max = LONG_FLOATS * sizeof(float),
                                              .dtype = MESSAGE_FLOAT32,
                                              .timeout_ms = timeout_ms};
    if (!world)
        open_world();
    cr_assert_eq(transport_open(endpoint, world, &options), STATUS_OK);
}

static void close_both(void)
{
    transport_close(&endpoint[NODE_WORKER]);
    transport_close(&endpoint[NODE_SERVER]);
}

static struct tcp_peer *worker_at_server(void)
{
    return &endpoint_of(endpoint[NODE_SERVER])->peers[WORKER];
}

/* The worker's end of the connection: the server receives what the test writes to it. */
static int worker_end(void)
{
    return endpoint_of(endpoint[NODE_WORKER])->peers[SERVER].fd;
}

static void write_raw(const void *bytes, size_t count)
{
    cr_assert_eq(send(worker_end(), bytes, count, MSG_NOSIGNAL), (ssize_t)count);
}

/* The header of a valid push. The caller changes single bytes of it. */
static void make_header(uint8_t header[MESSAGE_HEADER_BYTES], size_t length)
{
    struct message message = push;
    message.run_id = world->run_id;
    message.sender = WORKER;
    message.length = length;
    message_encode(&message, header);
}

static void look(void)
{
    bool moved = false;
    cr_assert_eq(transport_tcp_ops.progress(endpoint[NODE_SERVER], 0, false, &moved), STATUS_OK);
}

static void open_slot(struct transport_slot *slot, void *into)
{
    cr_assert_eq(transport_slot_init(slot, endpoint[NODE_SERVER], WORKER, sizeof data), STATUS_OK);
    cr_assert_eq(transport_post(endpoint[NODE_SERVER], slot, into), STATUS_OK);
}

static enum status wait_for(struct transport_slot *slot)
{
    return transport_wait(endpoint[NODE_SERVER], slot);
}

/* The first `count` elements of `data` are in the slot. */
static void expect_data(const struct transport_slot *slot, size_t count)
{
    cr_expect_eq(slot->message.length, count * sizeof *data);
    cr_expect_eq(memcmp(slot->payload, data, count * sizeof *data), 0);
}

Test(tcp, a_message_may_come_in_any_pieces)
{
    enum { FEW = 5, BYTES = MESSAGE_HEADER_BYTES + FEW * 4 };
    uint8_t message[2 * BYTES];
    open_both(20000);
    make_header(message, FEW * sizeof *data);
    memcpy(message + MESSAGE_HEADER_BYTES, data, FEW * sizeof *data);
    memcpy(message + BYTES, message, BYTES);
    for (size_t piece = 1; piece < 2 * BYTES; piece++) {
        struct transport_slot slots[2];
        float into[FEW];
        open_slot(&slots[0], NULL);
        open_slot(&slots[1], into);
        for (size_t at = 0; at < 2 * BYTES; at += piece) {
            write_raw(message + at, at + piece < 2 * BYTES ? piece : 2 * BYTES - at);
            look();
        }
        for (int i = 0; i < 2; i++) {
            cr_assert_eq(wait_for(&slots[i]), STATUS_OK);
            expect_data(&slots[i], FEW);
            transport_slot_fini(&slots[i], endpoint[NODE_SERVER]);
        }
    }
    close_both();
}

Test(tcp, what_nothing_is_posted_for_stays_with_the_kernel)
{
    enum { EARLY = 20 };
    uint8_t header[MESSAGE_HEADER_BYTES];
    struct transport_slot slot;
    int unread;
    open_both(20000);
    make_header(header, 0);
    for (int i = 0; i < EARLY; i++)
        write_raw(header, sizeof header);
    for (int i = 0; i < 3; i++)
        look();
    cr_assert_eq(ioctl(worker_at_server()->fd, FIONREAD, &unread), 0);
    cr_expect_eq(unread, EARLY * MESSAGE_HEADER_BYTES);
    for (int i = 0; i < EARLY; i++) {
        open_slot(&slot, NULL);
        cr_assert_eq(wait_for(&slot), STATUS_OK);
        transport_slot_fini(&slot, endpoint[NODE_SERVER]);
    }
    close_both();
}

Test(tcp, a_slot_that_goes_away_takes_its_message_along)
{
    enum { HALF = FLOATS / 2 };
    uint8_t header[MESSAGE_HEADER_BYTES];
    struct transport_slot slot;
    open_both(20000);
    for (int borrowed = 0; borrowed < 2; borrowed++) {
        static float into[FLOATS];
        open_slot(&slot, borrowed ? NULL : into);
        make_header(header, sizeof data);
        write_raw(header, sizeof header);
        write_raw(data, HALF * sizeof *data);
        look();
        cr_assert_eq(worker_at_server()->reading, TCP_PAYLOAD);
        transport_slot_fini(&slot, endpoint[NODE_SERVER]);
        memset(into, 0, sizeof into);
        write_raw(data + HALF, HALF * sizeof *data);
        make_header(header, 3 * sizeof *data);
        write_raw(header, sizeof header);
        write_raw(data, 3 * sizeof *data);
        open_slot(&slot, NULL);
        cr_assert_eq(wait_for(&slot), STATUS_OK);
        expect_data(&slot, 3);
        cr_expect_eq(into[FLOATS - 1], 0);
        transport_slot_fini(&slot, endpoint[NODE_SERVER]);
    }
    close_both();
}

/* One look skips an unwanted message, however long, and finds the message after it. */
Test(tcp, what_is_thrown_away_keeps_nobody_waiting)
{
    enum { BYTES = 160 << 10, PIECE = BYTES / 8 };
    uint8_t header[MESSAGE_HEADER_BYTES];
    struct transport_slot slot;
    open_both(20000);
    cr_assert_eq(transport_slot_init(&slot, endpoint[NODE_SERVER], WORKER, BYTES), STATUS_OK);
    cr_assert_eq(transport_post(endpoint[NODE_SERVER], &slot, NULL), STATUS_OK);
    make_header(header, BYTES);
    write_raw(header, sizeof header);
    look();
    transport_slot_fini(&slot, endpoint[NODE_SERVER]);
    for (int piece = 0; piece < 8; piece++)
        write_raw(data, PIECE);
    make_header(header, 0);
    write_raw(header, sizeof header);
    open_slot(&slot, NULL);
    look();
    cr_expect(slot.done);
    transport_slot_fini(&slot, endpoint[NODE_SERVER]);
    close_both();
}

/* A header with impossible fields, from this run or another one. The sender's hello has shown that
 * it is a rank of this run. Each bad header is therefore an error, also in the next call. */
Test(tcp, faults_of_this_run_are_errors)
{
    static const int fields[] = {0, 4, 15, 6, 16, 24, 56};
    uint8_t header[MESSAGE_HEADER_BYTES];
    struct transport_slot slot;
    log_set_level(LOG_SILENT);
    for (size_t i = 0; i <= sizeof fields / sizeof *fields + 1; i++) {
        open_both(20000);
        make_header(header, i == 0 ? sizeof data + 4 : 8);
        if (i > 1)
            header[fields[i - 2]] ^= 0x41;
        const struct message other = {.kind = MESSAGE_PUSH, .length = 12};
        cr_assert_eq(transport_slot_init(&slot, endpoint[NODE_SERVER], WORKER, sizeof data),
                     STATUS_OK);
        if (i == 1)
            transport_slot_expect(&slot, &other);
        cr_assert_eq(transport_post(endpoint[NODE_SERVER], &slot, NULL), STATUS_OK);
        write_raw(header, sizeof header);
        enum status status = wait_for(&slot);
        cr_expect(status == STATUS_PROTOCOL || status == STATUS_INPUT, "%zu: %s", i,
                  status_name(status));
        if (i > 1)
            cr_expect_eq(wait_for(&slot), status, "%zu", i);
        transport_slot_fini(&slot, endpoint[NODE_SERVER]);
        close_both();
    }
}

Test(tcp, a_connection_that_ends_in_a_payload_is_an_error)
{
    uint8_t header[MESSAGE_HEADER_BYTES];
    struct transport_slot slot;
    for (size_t payload = 0; payload <= sizeof data / 2; payload += sizeof data / 2) {
        open_both(20000);
        make_header(header, sizeof data);
        write_raw(header, sizeof header);
        write_raw(data, payload);
        transport_close(&endpoint[NODE_WORKER]);
        open_slot(&slot, NULL);
        assert_refused(wait_for(&slot), STATUS_TRANSPORT, "worker 0 (rank 0) has closed");
        transport_slot_fini(&slot, endpoint[NODE_SERVER]);
        close_both();
    }
}

Test(tcp, what_was_sent_comes_though_its_sender_has_closed)
{
    enum { SMALL = 10 };
    struct message message = push;
    struct transport_slot slot;
    open_both(20000);
    message.length = 8;
    for (int i = 0; i < SMALL; i++)
        cr_assert_eq(transport_send(endpoint[NODE_WORKER], SERVER, &message, data, NULL),
                     STATUS_OK);
    cr_assert_eq(transport_flush(endpoint[NODE_WORKER]), STATUS_OK);
    transport_close(&endpoint[NODE_WORKER]);
    for (int i = 0; i < SMALL; i++) {
        open_slot(&slot, NULL);
        cr_assert_eq(wait_for(&slot), STATUS_OK);
        expect_data(&slot, 2);
        transport_slot_fini(&slot, endpoint[NODE_SERVER]);
    }
    open_slot(&slot, NULL);
    assert_refused(wait_for(&slot), STATUS_TRANSPORT, "worker 0 (rank 0) has closed");
    transport_slot_fini(&slot, endpoint[NODE_SERVER]);
    close_both();
}

/* A peer that has sent a goodbye may close, although a slot waits for a message. */
Test(tcp, a_peer_may_close_after_a_goodbye)
{
    const struct message bye = {.kind = MESSAGE_BYE, .dtype = MESSAGE_FLOAT32};
    struct transport_slot slot;
    open_both(300);
    cr_assert_eq(transport_send(endpoint[NODE_WORKER], SERVER, &bye, NULL, NULL), STATUS_OK);
    transport_close(&endpoint[NODE_WORKER]);
    open_slot(&slot, NULL);
    cr_assert_eq(wait_for(&slot), STATUS_OK);
    transport_release(endpoint[NODE_SERVER], &slot);
    cr_assert_eq(transport_post(endpoint[NODE_SERVER], &slot, NULL), STATUS_OK);
    log_set_level(LOG_SILENT);
    cr_expect_eq(wait_for(&slot), STATUS_TIMEOUT);
    transport_slot_fini(&slot, endpoint[NODE_SERVER]);
    close_both();
}

/* The peer must not close in the middle of another message, even after a goodbye. */
Test(tcp, a_goodbye_does_not_excuse_what_comes_after_it)
{
    const struct message bye = {.kind = MESSAGE_BYE, .dtype = MESSAGE_FLOAT32};
    uint8_t header[MESSAGE_HEADER_BYTES];
    struct transport_slot slot;
    open_both(300);
    cr_assert_eq(transport_send(endpoint[NODE_WORKER], SERVER, &bye, NULL, NULL), STATUS_OK);
    make_header(header, sizeof data);
    write_raw(header, sizeof header);
    transport_close(&endpoint[NODE_WORKER]);
    open_slot(&slot, NULL);
    cr_assert_eq(wait_for(&slot), STATUS_OK);
    transport_release(endpoint[NODE_SERVER], &slot);
    cr_assert_eq(transport_post(endpoint[NODE_SERVER], &slot, NULL), STATUS_OK);
    assert_refused(wait_for(&slot), STATUS_TRANSPORT, "worker 0 (rank 0) has closed");
    transport_slot_fini(&slot, endpoint[NODE_SERVER]);
    close_both();
}

/* Received messages stay available, even if a send finds the connection closed. */
Test(tcp, what_has_come_is_there_though_no_send_gets_through)
{
    enum { SMALL = 3 };
    struct message message = push;
    struct transport_slot slots[SMALL + 1];
    open_both(20000);
    message.length = 8;
    for (int i = 0; i < SMALL; i++)
        cr_assert_eq(transport_send(endpoint[NODE_WORKER], SERVER, &message, data, NULL),
                     STATUS_OK);
    cr_assert_eq(transport_flush(endpoint[NODE_WORKER]), STATUS_OK);
    transport_close(&endpoint[NODE_WORKER]);
    cr_assert_eq(transport_send(endpoint[NODE_SERVER], WORKER, &message, data, NULL), STATUS_OK);
    cr_assert_neq(worker_at_server()->lost_ns, 0);
    for (int i = 0; i <= SMALL; i++)
        open_slot(&slots[i], NULL);
    for (int i = 0; i < SMALL; i++) {
        cr_assert_eq(wait_for(&slots[i]), STATUS_OK);
        expect_data(&slots[i], 2);
    }
    assert_refused(wait_for(&slots[SMALL]), STATUS_TRANSPORT, "worker 0 (rank 0) has closed");
    for (int i = 0; i <= SMALL; i++)
        transport_slot_fini(&slots[i], endpoint[NODE_SERVER]);
    close_both();
}

Test(tcp, sending_to_a_closed_connection_is_an_error)
{
    open_both(20000);
    transport_close(&endpoint[NODE_SERVER]);
    cr_assert_eq(transport_send(endpoint[NODE_WORKER], SERVER, &push, data, NULL), STATUS_OK);
    assert_refused(transport_flush(endpoint[NODE_WORKER]), STATUS_TRANSPORT,
                   "server 0 (rank 0) has closed");
    close_both();
}

/* The data that each node receives in the next test. */
static float longest[2][LONG_FLOATS];

static void fill_longest(void)
{
    for (int node = 0; node < 2; node++) {
        for (int i = 0; i < LONG_FLOATS; i++)
            longest[node][i] = (float)(node ? -i : i);
    }
}

/* Sends MESSAGES to the other node, a few longer than the socket's buffer, and receives `taken` of
 * the messages that the other node sends. */
struct half {
    struct transport *transport;
    int peer, taken;
};

static void *exchange(void *argument)
{
    struct half *half = argument;
    struct message message = push;
    struct transport_slot slot;
    const float *sent = longest[half->peer];
    cr_assert_eq(transport_slot_init(&slot, half->transport, half->peer, sizeof *longest),
                 STATUS_OK);
    for (int i = 0; i < MESSAGES; i++) {
        message.length = i % 20 == 7 ? sizeof *longest : 4 * (size_t)i;
        message.step = (uint64_t)i;
        cr_assert_eq(transport_send(half->transport, half->peer, &message, sent, NULL), STATUS_OK);
    }
    for (int i = 0; i < half->taken; i++) {
        cr_assert_eq(transport_post(half->transport, &slot, NULL), STATUS_OK);
        cr_assert_eq(transport_wait(half->transport, &slot), STATUS_OK);
        cr_expect_eq(slot.message.step, (uint64_t)i);
        cr_expect_eq(memcmp(slot.payload, longest[!half->peer], slot.message.length), 0);
        transport_release(half->transport, &slot);
    }
    if (half->taken == MESSAGES)
        cr_assert_eq(transport_flush(half->transport), STATUS_OK);
    transport_slot_fini(&slot, half->transport);
    return NULL;
}

Test(tcp, two_endpoints_on_two_threads)
{
    static const int taken[][2] = {{MESSAGES, MESSAGES}, {1, 1}, {0, 7}, {0, 0}};
    fill_longest();
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        pthread_t server;
        open_both(20000);
        struct half halves[] = {{endpoint[NODE_WORKER], SERVER, taken[i][0]},
                                {endpoint[NODE_SERVER], WORKER, taken[i][1]}};
        cr_assert_eq(pthread_create(&server, NULL, exchange, &halves[NODE_SERVER]), 0);
        exchange(&halves[NODE_WORKER]);
        pthread_join(server, NULL);
        if (i > 0)
            transport_stop(endpoint);
        transport_close(&endpoint[i % 2]);
        transport_close(&endpoint[!(i % 2)]);
    }
}
