/* Finds the slot for a message: the part of every transport that is in transport.c. The transport
 * here moves no data; the test delivers the messages. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/net/transport/transport_impl.h"
#include "tests/lib/capture.h"

enum { WORKERS = 3, PAYLOAD_BYTES = 8, MESSAGES_PARKED_MAX = 1 << 16 };

static enum status no_progress(struct transport *transport, int64_t wait_ns, bool for_sends,
                               bool *moved)
{
    (void)transport;
    (void)wait_ns;
    (void)for_sends;
    *moved = false;
    return STATUS_OK;
}

static const struct transport_ops ops = {.progress = no_progress};
static struct world world = {.size = WORKERS, .run_id = 7};
static struct transport transport;
static int held; /* payloads that are not released yet */

static void open_transport(void)
{
    log_set_level(LOG_SILENT);
    const struct transport_options options = {.topology = {.workers = WORKERS},
                                              .payload_bytes_max = PAYLOAD_BYTES,
                                              .dtype = MESSAGE_FLOAT32,
                                              .timeout_ms = 1};
    cr_assert(transport_base_init(&transport, &ops, &world, &options, NODE_WORKER));
}

static void close_transport(void)
{
    transport_base_fini(&transport);
    cr_expect_eq(held, 0, "%d payloads were not released, or released twice", held);
}

static void release(void *holder)
{
    held--;
    free(holder);
}

/* Delivers a message of libpsring's call from `sender`. Its payload is the first `length` bytes of
 * `number`. */
static enum status deliver_of(const struct message_call *call, uint32_t sender, uint64_t number,
                              size_t length)
{
    uint64_t *bytes = malloc(sizeof *bytes);
    cr_assert(bytes);
    *bytes = number;
    held++;
    const struct message message = {.kind = MESSAGE_SEGMENT,
                                    .run_id = world.run_id,
                                    .sender = sender,
                                    .step = number,
                                    .length = length,
                                    .dtype = MESSAGE_FLOAT32,
                                    .call = *call};
    return transport_deliver(&transport, &message, (struct payload){bytes, release, bytes});
}

/* The same without a call. */
static enum status deliver(uint32_t sender, uint64_t number, size_t length)
{
    return deliver_of(&(struct message_call){0}, sender, number, length);
}

static void expect_number(const struct transport_slot *slot, uint64_t number)
{
    cr_assert(slot->done);
    cr_expect_eq(slot->message.step, number);
    cr_expect_eq(memcmp(slot->payload, &number, sizeof number), 0);
}

TestSuite(transport, .init = open_transport, .fini = close_transport);

Test(transport, a_message_fills_the_oldest_slot_of_its_sender)
{
    struct transport_slot slots[3], other;
    cr_assert_eq(transport_slot_init(&other, &transport, 1, PAYLOAD_BYTES), STATUS_OK);
    cr_assert_eq(transport_post(&transport, &other, NULL), STATUS_OK);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(transport_slot_init(&slots[i], &transport, 2, PAYLOAD_BYTES), STATUS_OK);
        cr_assert_eq(transport_post(&transport, &slots[i], NULL), STATUS_OK);
    }
    for (uint64_t i = 0; i < 3; i++)
        cr_assert_eq(deliver(2, 10 + i, PAYLOAD_BYTES), STATUS_OK);
    cr_expect(!other.done);
    for (uint64_t i = 0; i < 3; i++) {
        cr_assert_eq(transport_wait(&transport, &slots[i]), STATUS_OK);
        expect_number(&slots[i], 10 + i);
        transport_slot_fini(&slots[i], &transport);
    }
    cr_assert_eq(transport_wait(&transport, &other), STATUS_TIMEOUT);
    transport_slot_fini(&other, &transport);
}

/* More messages than the queue's first capacity, so it grows, also while its start is not at 0. */
Test(transport, messages_that_come_early_wait_in_order)
{
    enum { EARLY = 100 };
    struct transport_slot slot;
    uint64_t sent = 0, taken = 0;
    cr_assert_eq(transport_slot_init(&slot, &transport, 0, PAYLOAD_BYTES), STATUS_OK);
    for (int round = 0; round < EARLY; round++) {
        for (int i = 0; i < 2; i++)
            cr_assert_eq(deliver(0, sent++, PAYLOAD_BYTES), STATUS_OK);
        cr_assert_eq(transport_post(&transport, &slot, NULL), STATUS_OK);
        expect_number(&slot, taken++);
        transport_release(&transport, &slot);
    }
    while (taken < sent) {
        uint64_t into = 99;
        cr_assert_eq(transport_post(&transport, &slot, &into), STATUS_OK);
        expect_number(&slot, taken++);
        cr_expect_eq(slot.payload, &into);
        transport_release(&transport, &slot);
    }
    transport_slot_fini(&slot, &transport);
}

Test(transport, a_payload_is_borrowed_until_release_or_copied_at_once)
{
    struct transport_slot slot;
    uint64_t into = 0;
    cr_assert_eq(transport_slot_init(&slot, &transport, 0, PAYLOAD_BYTES), STATUS_OK);
    cr_assert_eq(transport_post(&transport, &slot, NULL), STATUS_OK);
    cr_assert_eq(deliver(0, 5, PAYLOAD_BYTES), STATUS_OK);
    cr_expect_eq(held, 1);
    transport_release(&transport, &slot);
    cr_expect_eq(held, 0);
    cr_assert_eq(transport_post(&transport, &slot, &into), STATUS_OK);
    cr_assert_eq(deliver(0, 6, PAYLOAD_BYTES), STATUS_OK);
    cr_expect_eq(held, 0);
    cr_expect_eq(into, 6);
    transport_slot_fini(&slot, &transport);
}

/* An endpoint outlives the slots that one plan posts: later nothing refers to them. */
Test(transport, a_posted_slot_that_goes_away_is_withdrawn)
{
    struct transport_slot *slots[3];
    for (int i = 0; i < 3; i++) {
        slots[i] = malloc(sizeof *slots[i]);
        cr_assert_eq(transport_slot_init(slots[i], &transport, 1, PAYLOAD_BYTES), STATUS_OK);
        cr_assert_eq(transport_post(&transport, slots[i], NULL), STATUS_OK);
    }
    static const int gone[] = {1, 2}; /* the middle slot, then the last one */
    for (int i = 0; i < 2; i++) {
        transport_slot_fini(slots[gone[i]], &transport);
        memset(slots[gone[i]], 0xff, sizeof *slots[gone[i]]);
        free(slots[gone[i]]);
    }
    struct transport_slot next;
    cr_assert_eq(transport_slot_init(&next, &transport, 1, PAYLOAD_BYTES), STATUS_OK);
    cr_assert_eq(transport_post(&transport, &next, NULL), STATUS_OK);
    for (uint64_t i = 0; i < 3; i++)
        cr_assert_eq(deliver(1, i, PAYLOAD_BYTES), STATUS_OK);
    expect_number(slots[0], 0);
    expect_number(&next, 1);
    transport_slot_fini(slots[0], &transport); /* filled, but not released */
    free(slots[0]);
    transport_release(&transport, &next);
    cr_assert_eq(transport_post(&transport, &next, NULL), STATUS_OK);
    expect_number(&next, 2);
    transport_slot_fini(&next, &transport);
}

Test(transport, a_payload_longer_than_its_slot_is_refused)
{
    struct transport_slot slot;
    uint64_t into = 1;
    for (int borrowed = 0; borrowed < 2; borrowed++) {
        cr_assert_eq(transport_slot_init(&slot, &transport, 1, 4), STATUS_OK);
        cr_assert_eq(transport_post(&transport, &slot, borrowed ? NULL : &into), STATUS_OK);
        cr_expect_eq(deliver(1, 2, PAYLOAD_BYTES), STATUS_PROTOCOL);
        cr_expect(!slot.done);
        cr_expect_eq(into, 1);
        transport_slot_fini(&slot, &transport);
    }
}

Test(transport, a_peer_that_never_stops_sending_is_an_error)
{
    for (uint64_t i = 0; i < MESSAGES_PARKED_MAX; i++)
        cr_assert_eq(deliver(2, i, 4), STATUS_OK);
    cr_expect_eq(deliver(2, MESSAGES_PARKED_MAX, 4), STATUS_PROTOCOL);
}

/* Few long messages are too many bytes. */
Test(transport, a_peer_that_fills_the_memory_is_an_error)
{
    const size_t length = (size_t)1 << 28;
    struct transport_slot slot;
    for (uint64_t i = 0; i < 5; i++)
        cr_assert_eq(deliver(2, i, length), STATUS_OK);
    cr_expect_eq(deliver(2, 5, length), STATUS_PROTOCOL);
    cr_expect_eq(deliver(1, 0, length), STATUS_OK); /* of another peer */
    cr_assert_eq(transport_slot_init(&slot, &transport, 2, PAYLOAD_BYTES), STATUS_OK);
    slot.capacity = length;
    cr_assert_eq(transport_post(&transport, &slot, NULL), STATUS_OK);
    cr_expect_eq(deliver(2, 5, length), STATUS_OK); /* one has been taken */
    transport_slot_fini(&slot, &transport);
}

/* As much as an all-reduce of 1 GB may send ahead is not too much. */
Test(transport, a_long_vector_may_be_ahead)
{
    const struct message_call call = {
        .what = MESSAGE_ALLREDUCE, .dtype = MESSAGE_FLOAT32, .count = (uint64_t)1 << 28};
    const struct message_call next = {
        .what = MESSAGE_ALLREDUCE, .dtype = MESSAGE_FLOAT32, .count = 1};
    for (uint64_t i = 0; i < 12; i++)
        cr_assert_eq(deliver_of(&call, 2, i, (size_t)1 << 28), STATUS_OK);
    cr_expect_eq(deliver_of(&next, 2, 12, 4), STATUS_OK); /* a short call follows */
    cr_expect_eq(deliver_of(&call, 2, 13, (size_t)1 << 28), STATUS_OK);
    cr_expect_eq(deliver_of(&next, 2, 14, 4), STATUS_PROTOCOL);
}

static const struct message expected = {
    .kind = MESSAGE_SEGMENT, .step = 3, .length = PAYLOAD_BYTES};

/* Refused when it comes, and when it was parked before. */
Test(transport, another_message_than_the_schedule_says_is_refused)
{
    struct transport_slot slot;
    log_set_level(LOG_ERROR);
    cr_assert_eq(transport_slot_init(&slot, &transport, 1, PAYLOAD_BYTES), STATUS_OK);
    transport_slot_expect(&slot, &expected);
    cr_assert_eq(transport_post(&transport, &slot, NULL), STATUS_OK);
    cr_assert_eq(deliver(1, 3, PAYLOAD_BYTES), STATUS_OK);
    expect_number(&slot, 3);
    transport_release(&transport, &slot);
    cr_assert_eq(transport_post(&transport, &slot, NULL), STATUS_OK);
    assert_refused(deliver(1, 4, PAYLOAD_BYTES), STATUS_PROTOCOL,
                   "worker 1 (rank 1) sent segment of step 4, bucket 0, offset 0 (8 bytes), "
                   "expected segment of step 3, bucket 0, offset 0 (8 bytes)");
    transport_slot_fini(&slot, &transport);
    cr_assert_eq(deliver(1, 3, 4), STATUS_OK);
    cr_assert_eq(transport_slot_init(&slot, &transport, 1, PAYLOAD_BYTES), STATUS_OK);
    transport_slot_expect(&slot, &expected);
    assert_refused(transport_post(&transport, &slot, NULL), STATUS_PROTOCOL, "(4 bytes), expected");
    transport_slot_fini(&slot, &transport);
}

/* The payload's buffer is the caller's and ends with the expected length. */
Test(transport, another_length_than_expected_is_not_written)
{
    struct transport_slot slot;
    struct message half = expected;
    half.length = PAYLOAD_BYTES / 2;
    for (int parked = 0; parked < 2; parked++) {
        uint64_t into = 0;
        if (parked)
            cr_assert_eq(deliver(1, 3, PAYLOAD_BYTES), STATUS_OK);
        cr_assert_eq(transport_slot_init(&slot, &transport, 1, PAYLOAD_BYTES), STATUS_OK);
        transport_slot_expect(&slot, &half);
        enum status status = transport_post(&transport, &slot, &into);
        if (!parked)
            status = deliver(1, 3, PAYLOAD_BYTES);
        cr_expect_eq(status, STATUS_PROTOCOL);
        cr_expect_eq(into, 0);
        transport_slot_fini(&slot, &transport);
    }
}

Test(transport, a_time_out_names_who_is_missing_and_with_what)
{
    struct transport_slot slots[WORKERS], *awaited[WORKERS];
    size_t which;
    log_set_level(LOG_ERROR);
    for (int worker = 1; worker < WORKERS; worker++) {
        awaited[worker] = &slots[worker];
        cr_assert_eq(transport_slot_init(&slots[worker], &transport, worker, PAYLOAD_BYTES),
                     STATUS_OK);
        if (worker == 1)
            transport_slot_expect(&slots[worker], &expected);
        cr_assert_eq(transport_post(&transport, &slots[worker], NULL), STATUS_OK);
    }
    awaited[0] = NULL;
    assert_refused(
        transport_wait(&transport, &slots[1]), STATUS_TIMEOUT,
        "waiting for worker 1 (rank 1): segment of step 3, bucket 0, offset 0 (8 bytes)");
    assert_refused(transport_wait_any(&transport, awaited, WORKERS, false, &which), STATUS_TIMEOUT,
                   "(8 bytes); worker 2 (rank 2);");
    for (int worker = 1; worker < WORKERS; worker++)
        transport_slot_fini(&slots[worker], &transport);
}
