/*
 * A worker's and a server's endpoint in one process, over ZeroMQ. The endpoint drops messages of
 * strangers. A bad message of this run is an error. Endpoints close in both orders while messages
 * are under way.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#include "common/net/transport/zmq_impl.h"

enum { WORKER = 0, SERVER = 1, FLOATS = 1000, MESSAGES = 50 };

static struct world *world;
static struct transport *endpoint[2];
static float data[FLOATS];

static const struct message push = {
    .kind = MESSAGE_PUSH, .length = sizeof data, .dtype = MESSAGE_FLOAT32};

static void open_both(void)
{
    const struct transport_options options = {.kind = TRANSPORT_ZMQ,
                                              .topology = {1, 1, PLACEMENT_COLOCATED},
                                              .payload_bytes_max = sizeof data,
                                              .dtype = MESSAGE_FLOAT32,
                                              .timeout_ms = 20000};
    cr_assert_eq(transport_open(endpoint, world, &options), STATUS_OK);
}

/* Sends messages to the server's socket, from a sender that the handshake has let in. */
static void send_often(int times, int frames, const void *first, size_t first_bytes,
                       size_t other_bytes)
{
    struct zmq_shared *shared = endpoint_of(endpoint[NODE_SERVER])->shared;
    void *socket = zmq_socket(shared->context, ZMQ_PUSH);
    cr_assert(socket && zmq_connect(socket, "inproc://node-1") == 0);
    for (int i = 0; i < times * frames; i++) {
        const void *bytes = i % frames == 0 ? first : data;
        size_t size = i % frames == 0 ? first_bytes : other_bytes;
        int more = (i + 1) % frames ? ZMQ_SNDMORE : 0;
        cr_assert_eq(zmq_send(socket, bytes, size, more), (int)size);
    }
    zmq_close(socket);
}

static void send_frames(int frames, const void *first, size_t first_bytes, size_t other_bytes)
{
    send_often(1, frames, first, first_bytes, other_bytes);
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

/* The worker's push arrives despite earlier messages, or one of those is the error `expected`. */
static void expect_push(enum status expected)
{
    struct transport_slot slot;
    uint64_t ticket;
    cr_assert_eq(transport_send(endpoint[NODE_WORKER], SERVER, &push, data, &ticket), STATUS_OK);
    cr_assert_eq(transport_slot_init(&slot, endpoint[NODE_SERVER], WORKER, sizeof data), STATUS_OK);
    cr_assert_eq(transport_post(endpoint[NODE_SERVER], &slot, NULL), STATUS_OK);
    cr_expect_eq(transport_wait(endpoint[NODE_SERVER], &slot), expected);
    if (expected == STATUS_OK) {
        cr_expect_eq(slot.message.length, sizeof data);
        cr_expect_eq(memcmp(slot.payload, data, sizeof data), 0);
        /* Inside one process the payload is not copied until the receiver releases it. */
        cr_expect(!transport_sent(endpoint[NODE_WORKER], SERVER, ticket));
        transport_release(endpoint[NODE_SERVER], &slot);
        cr_expect_eq(transport_wait_sent(endpoint[NODE_WORKER], SERVER, ticket), STATUS_OK);
    }
    transport_slot_fini(&slot, endpoint[NODE_SERVER]);
}

static void check_strangers_are_dropped(void)
{
    uint8_t header[MESSAGE_HEADER_BYTES + 1] = {0};
    open_both();
    send_frames(1, header, 0, 0);             /* nothing */
    send_frames(1, header, 1, 0);             /* too short */
    send_frames(2, header, sizeof header, 8); /* too long */
    send_frames(2, header, MESSAGE_HEADER_BYTES, 8);
    send_frames(7, header, MESSAGE_HEADER_BYTES, 8);  /* too many frames */
    static const int common_fields[] = {0, 4, 8, 15}; /* magic, version, both ends of the run id */
    for (size_t i = 0; i < sizeof common_fields / sizeof *common_fields; i++) {
        make_header(header, 8);
        header[common_fields[i]] ^= 1;
        send_frames(2, header, MESSAGE_HEADER_BYTES, 8);
    }
    send_often(1000, 1, header, MESSAGE_HEADER_BYTES, 0); /* more than are received at once */
    expect_push(STATUS_OK);
    bool moved = false;
    for (int i = 0; i < 100 && endpoint[NODE_SERVER]->rejected.messages < 1009; i++) {
        cr_assert_eq(transport_zmq_ops.progress(endpoint[NODE_SERVER], 0, false, &moved),
                     STATUS_OK);
        cr_expect(!moved); /* a stranger's message does not extend a time-out */
    }
    cr_expect_eq(endpoint[NODE_SERVER]->rejected.messages, 1009);
    transport_close(&endpoint[NODE_WORKER]);
    transport_close(&endpoint[NODE_SERVER]);
}

/* A header of this run with impossible fields: a rank of the run must be faulty. */
static void check_faults_of_this_run_are_errors(void)
{
    uint8_t header[MESSAGE_HEADER_BYTES];
    log_set_level(LOG_SILENT);
    for (int fault = 0; fault < 5; fault++) {
        int frames = 2;
        make_header(header, 8);
        switch (fault) {
        case 0:
            frames = 1; /* no payload */
            break;
        case 1:
            frames = 3;
            break;
        case 2:
            make_header(header, 12); /* of another length */
            break;
        case 3:
            header[6] = 9; /* kind */
            break;
        case 4:
            header[16] = SERVER; /* sent by the receiver itself */
            break;
        }
        open_both();
        send_frames(frames, header, sizeof header, 8);
        expect_push(STATUS_PROTOCOL);
        transport_close(&endpoint[NODE_WORKER]);
        transport_close(&endpoint[NODE_SERVER]);
    }
    log_set_level(LOG_INFO);
}

/* Sends MESSAGES to the other node and receives `taken` of the messages that it sends. */
struct half {
    struct transport *transport;
    int peer, taken;
};

static void *exchange(void *argument)
{
    struct half *half = argument;
    struct transport_slot slot;
    cr_assert_eq(transport_slot_init(&slot, half->transport, half->peer, sizeof data), STATUS_OK);
    for (int i = 0; i < MESSAGES; i++)
        cr_assert_eq(transport_send(half->transport, half->peer, &push, data, NULL), STATUS_OK);
    for (int i = 0; i < half->taken; i++) {
        cr_assert_eq(transport_post(half->transport, &slot, NULL), STATUS_OK);
        cr_assert_eq(transport_wait(half->transport, &slot), STATUS_OK);
        cr_expect_eq(memcmp(slot.payload, data, sizeof data), 0);
        transport_release(half->transport, &slot);
    }
    transport_slot_fini(&slot, half->transport);
    return NULL;
}

/* Closing the second endpoint releases the messages that remain, parked or in ZeroMQ's queues. They
 * refer to their sender. */
static void check_close(int first, int taken_by_worker, int taken_by_server)
{
    pthread_t server;
    open_both();
    struct half halves[] = {{endpoint[NODE_WORKER], SERVER, taken_by_worker},
                            {endpoint[NODE_SERVER], WORKER, taken_by_server}};
    cr_assert_eq(pthread_create(&server, NULL, exchange, &halves[NODE_SERVER]), 0);
    exchange(&halves[NODE_WORKER]);
    pthread_join(server, NULL);
    transport_close(&endpoint[first]);
    transport_close(&endpoint[!first]);
}

Test(zmq, two_endpoints_of_a_process)
{
    const struct world_options alone = {.alone = true};
    cr_assert_eq(world_open(&world, NULL, NULL, &alone), STATUS_OK);
    for (int i = 0; i < FLOATS; i++)
        data[i] = (float)i;
    check_strangers_are_dropped();
    check_faults_of_this_run_are_errors();
    for (int first = 0; first < 2; first++) {
        check_close(first, MESSAGES, MESSAGES);
        check_close(first, 1, 1);
        check_close(first, 0, MESSAGES / 2);
        check_close(first, 0, 0);
    }
    world_close(&world);
}
