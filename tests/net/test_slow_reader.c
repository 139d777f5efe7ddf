/*
 * A rank that takes no messages. Its peer's sends do not complete, because neither end may keep all
 * of them in memory: the wait for them ends by the time-out. Later the rank takes all messages,
 * complete and in order.
 */
#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "common/net/transport/transport_impl.h"
#include "tests/lib/spawn.h"

enum { BYTES = 1 << 20, MESSAGES = 200 /* more than sockets and ZeroMQ hold */ };

static uint8_t data[BYTES];

static struct transport *open_one(struct world *world, enum transport_kind kind)
{
    struct transport *endpoint[2];
    const struct transport_options options = {.kind = kind,
                                              .topology = {.workers = world->size},
                                              .payload_bytes_max = BYTES,
                                              .dtype = MESSAGE_FLOAT32,
                                              .timeout_ms = 1500};
    rank_assert_ok(transport_open(endpoint, world, &options));
    return endpoint[NODE_WORKER];
}

static void send_all(struct transport *transport, struct world *world)
{
    struct message message = {.kind = MESSAGE_SEGMENT, .length = BYTES, .dtype = MESSAGE_FLOAT32};
    for (message.step = 0; message.step < MESSAGES; message.step++)
        rank_assert_ok(transport_send(transport, 1, &message, data, NULL));
    log_hold();
    enum status status = transport_flush(transport);
    log_release(false);
    rank_assert_eq(status, STATUS_TIMEOUT, "%s", status_name(status));
    transport->timeout_ns = 60 * NS_PER_S;
    rank_assert_ok(world_barrier(world, NULL)); /* from now on the other rank reads */
    rank_assert_ok(transport_flush(transport));
}

static void take_all(struct transport *transport, struct world *world)
{
    struct transport_slot slot;
    transport->timeout_ns = 60 * NS_PER_S;
    rank_assert_ok(transport_slot_init(&slot, transport, 0, BYTES));
    rank_assert_ok(world_barrier(world, NULL));
    for (uint64_t step = 0; step < MESSAGES; step++) {
        rank_assert_ok(transport_post(transport, &slot, NULL));
        rank_assert_ok(transport_wait(transport, &slot));
        rank_assert_eq(slot.message.step, step);
        rank_assert_same(slot.payload, data, BYTES);
        transport_release(transport, &slot);
    }
    transport_slot_fini(&slot, transport);
}

static void read_late(struct world *world, void *context)
{
    const enum transport_kind *kind = context;
    struct transport *transport = open_one(world, *kind);
    (world->rank == 0 ? send_all : take_all)(transport, world);
    rank_assert_ok(world_barrier(world, NULL));
    transport_close(&transport);
}

static void check(enum transport_kind kind)
{
    for (size_t i = 0; i < BYTES; i++)
        data[i] = (uint8_t)(i * 7 >> i % 5);
    spawn(2, read_late, &kind);
}

Test(slow_reader, stops_its_peer_over_tcp)
{
    check(TRANSPORT_TCP);
}

Test(slow_reader, stops_its_peer_over_zmq)
{
    check(TRANSPORT_ZMQ);
}
