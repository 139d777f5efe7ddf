/*
 * A worker's and a server's endpoint of one process, over MPI. A message counts as received only
 * when its payload is here. Its length must match its header. One rank, without a launcher.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/net/transport/transport_impl.h"

enum { SERVER = 1, FLOATS = 100000 };

static float data[FLOATS];
static struct world *world;
static struct transport *endpoint[2];

static void start(void)
{
    const struct transport_options options = {.kind = TRANSPORT_MPI,
                                              .topology = {1, 1, PLACEMENT_COLOCATED},
                                              .payload_bytes_max = sizeof data,
                                              .dtype = MESSAGE_FLOAT32,
                                              .timeout_ms = 20000};
    cr_assert_eq(world_open(&world, NULL, NULL, NULL), STATUS_OK);
    cr_assert_eq(transport_open(endpoint, world, &options), STATUS_OK);
    for (size_t i = 0; i < FLOATS; i++)
        data[i] = (float)i;
}

static void stop(void)
{
    transport_close(&endpoint[NODE_WORKER]);
    transport_close(&endpoint[NODE_SERVER]);
    world_close(&world);
}

Test(mpi, a_message_is_received_with_its_payload)
{
    const struct message push = {
        .kind = MESSAGE_PUSH, .length = sizeof data, .dtype = MESSAGE_FLOAT32};
    struct transport_slot slot;
    start();
    cr_assert_eq(transport_slot_init(&slot, endpoint[NODE_SERVER], 0, sizeof data), STATUS_OK);
    for (int time = 0; time < 3; time++) {
        cr_assert_eq(transport_post(endpoint[NODE_SERVER], &slot, NULL), STATUS_OK);
        cr_assert_eq(transport_send(endpoint[NODE_WORKER], SERVER, &push, data, NULL), STATUS_OK);
        cr_assert_eq(transport_wait(endpoint[NODE_SERVER], &slot), STATUS_OK);
        cr_assert_eq(memcmp(slot.payload, data, sizeof data), 0);
        transport_release(endpoint[NODE_SERVER], &slot);
    }
    cr_assert_eq(transport_flush(endpoint[NODE_WORKER]), STATUS_OK);
    transport_slot_fini(&slot, endpoint[NODE_SERVER]);
    stop();
}

/* Otherwise the end of the text would be what happened to be in memory. */
Test(mpi, a_report_shorter_than_its_header_says_is_refused)
{
    struct message failed = {
        .kind = MESSAGE_FAILED, .length = TRANSPORT_WORDS_BYTES, .dtype = MESSAGE_FLOAT32};
    char words[TRANSPORT_WORDS_BYTES] = "a report";
    uint8_t header[MESSAGE_HEADER_BYTES];
    start();
    struct transport *worker = endpoint[NODE_WORKER];
    failed.run_id = world->run_id;
    message_encode(&failed, header);
    worker->embedded = true; /* only then ranks report */
    log_set_level(LOG_SILENT);
    for (int whole = 0; whole < 2; whole++) {
        cr_assert_eq(transport_mpi_ops.notify(worker, 0, header, words, whole ? sizeof words : 8),
                     STATUS_OK);
        for (int i = 0; i < 1000 && !worker->ops->is_empty(worker); i++)
            clock_sleep_until_ns(clock_now_ns() + NS_PER_MS);
        cr_expect_eq(transport_mpi_ops.look(worker), whole ? STATUS_TRANSPORT : STATUS_PROTOCOL);
        cr_expect_eq(worker->heard, whole);
    }
    log_set_level(LOG_INFO);
    cr_expect_str_eq(worker->words, words);
    worker->embedded = false;
    stop();
}

Test(mpi, a_payload_of_another_length_than_its_header_says_is_an_error)
{
    struct message push = {.kind = MESSAGE_PUSH, .length = 12, .dtype = MESSAGE_FLOAT32};
    uint8_t header[MESSAGE_HEADER_BYTES];
    struct transport_slot slot;
    start();
    push.run_id = world->run_id;
    message_encode(&push, header);
    cr_assert_eq(transport_slot_init(&slot, endpoint[NODE_SERVER], 0, sizeof data), STATUS_OK);
    cr_assert_eq(transport_post(endpoint[NODE_SERVER], &slot, NULL), STATUS_OK);
    cr_assert_eq(transport_mpi_ops.send(endpoint[NODE_WORKER], SERVER, header, data, 8), STATUS_OK);
    log_set_level(LOG_SILENT);
    cr_expect_neq(transport_wait(endpoint[NODE_SERVER], &slot), STATUS_OK);
    log_set_level(LOG_INFO);
    transport_slot_fini(&slot, endpoint[NODE_SERVER]);
    stop();
}
