/*
 * A server that owns the parameters, message by message: which pushes it applies, with which
 * weight, and which pushes it answers. Without ranks and network: the test delivers the messages,
 * and a played transport keeps the answers.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "common/net/transport/transport_impl.h"
#include "ps/async.h"
#include "ps/ps.h"
#include "tests/lib/capture.h"

enum { WORKERS = 2, COUNT = 6, ANSWERS_MOST = 16 };

static const size_t counts[] = {COUNT};
static const struct comm_layout layout = {.counts = counts, .buckets = 1, .scale = 0.5f};

/* -------- the server's answers ---------------------------------------------------------------- */

struct answer {
    struct message message;
    float parameters[COUNT];
};

static struct answer answers[WORKERS][ANSWERS_MOST];
static size_t answered[WORKERS];
static struct transport transport;

static enum status keep(struct transport *from, int peer,
                        const uint8_t header[MESSAGE_HEADER_BYTES], const void *payload,
                        size_t length)
{
    const char *reason;
    cr_assert_lt(answered[peer], ANSWERS_MOST);
    struct answer *answer = &answers[peer][answered[peer]++];
    cr_assert_eq(
        message_decode(header, MESSAGE_HEADER_BYTES, &from->limits, &answer->message, &reason),
        STATUS_OK);
    cr_assert_leq(length, sizeof answer->parameters);
    if (length > 0)
        memcpy(answer->parameters, payload, length);
    return STATUS_OK;
}

static uint64_t all(struct transport *from, int peer)
{
    return from->peers[peer].sends;
}

static const struct transport_ops played = {.send = keep, .completed = all};

/* -------- the server's data ------------------------------------------------------------------- */

static float arrays[COMM_STATES][COUNT]; /* gradients and parameters */

static float *array(void *context, size_t bucket, size_t which)
{
    (void)context;
    (void)bucket;
    return arrays[which];
}

static void add(void *context, size_t bucket, struct chunk span, uint64_t step)
{
    (void)context;
    (void)bucket;
    (void)step;
    for (size_t i = span.offset; i < span.offset + span.count; i++)
        arrays[COMM_PARAMETERS][i] += arrays[COMM_GRADIENTS][i];
}

static const struct comm_updater updater = {.array = array, .arrays = COMM_STATES, .apply = add};

static struct world world;
static struct comm_options options;
static struct backend_env site;
static struct server server;

static void set_up(struct consistency consistency)
{
    const struct topology topology = {WORKERS, 1, PLACEMENT_DEDICATED};
    const struct transport_options about = {
        .topology = topology, .payload_bytes_max = sizeof arrays, .dtype = MESSAGE_FLOAT32};
    world = (struct world){.rank = WORKERS, .size = WORKERS + 1};
    cr_assert(transport_base_init(&transport, &played, &world, &about, NODE_SERVER));
    options = (struct comm_options){.servers = 1,
                                    .window = 4,
                                    .segment_bytes = sizeof arrays[0],
                                    .consistency = consistency,
                                    .updater = &updater,
                                    .bucket_counts_max = COUNT};
    site = (struct backend_env){.world = &world,
                                .transport = &transport,
                                .topology = topology,
                                .workers = WORKERS,
                                .options = &options,
                                .layout = &layout};
}

static void start(struct consistency consistency)
{
    set_up(consistency);
    server = (struct server){.site = &site, .transport = &transport, .workers = WORKERS};
    cr_assert_eq(store_init(&server.store, &site), STATUS_OK);
    cr_assert_eq(server_async.begin(&server), STATUS_OK);
    for (int worker = 0; worker < WORKERS; worker++)
        cr_assert_eq(server_async.on_message(&server, worker,
                                             &(struct message){.kind = MESSAGE_CLOCK}, NULL),
                     STATUS_OK);
}

static void stop(void)
{
    server_async.end(&server);
    store_fini(&server.store);
    transport_base_fini(&transport);
}

/* Delivers a push whose gradient is `gradient` for every element. */
static void push(int worker, uint64_t step, float gradient)
{
    float gradients[COUNT];
    const struct message message = {
        .kind = MESSAGE_PUSH, .dtype = MESSAGE_FLOAT32, .step = step, .length = sizeof gradients};
    for (size_t i = 0; i < COUNT; i++)
        gradients[i] = gradient;
    cr_assert_eq(server_async.on_message(&server, worker, &message, gradients), STATUS_OK);
}

/* Checks that the worker has `count` answers, and that the last one has these parameters. */
static void expect(int worker, size_t count, float parameter)
{
    cr_assert_eq(answered[worker], count, "worker %d has %zu answers, expected %zu", worker,
                 answered[worker], count);
    for (size_t i = 0; count > 0 && i < COUNT; i++)
        cr_assert_eq(answers[worker][count - 1].parameters[i], parameter,
                     "worker %d, answer %zu, element %zu: %g, expected %g", worker, count, i,
                     (double)answers[worker][count - 1].parameters[i], (double)parameter);
}

/* -------- the kinds of consistency ------------------------------------------------------------ */

/* Two pushes of half weight have the effect of one average: 0.5 is 1 / workers. */
Test(answers, async_applies_each_push_with_its_share)
{
    start((struct consistency){.kind = CONSISTENCY_ASYNC});
    push(0, 0, 4);
    expect(0, 1, 2);
    push(0, 1, 8);
    expect(0, 2, 6);
    push(1, 0, 2);
    expect(1, 1, 7);
    stop();
}

Test(answers, ssp_waits_for_the_slowest_worker_within_its_bound)
{
    start((struct consistency){.kind = CONSISTENCY_SSP, .staleness = 1});
    push(0, 0, 2);
    expect(0, 1, 1);
    push(0, 1, 2);
    expect(0, 1, 1); /* no answer: step 2 would lack two steps of worker 1 */
    push(1, 0, 2);
    expect(1, 1, 3);
    expect(0, 2, 3);
    cr_expect_eq(answers[0][1].message.staleness, 1);
    cr_expect_not(server_async.awaits(&server));
    stop();
}

Test(answers, ssp_does_not_wait_for_a_worker_that_has_left)
{
    start((struct consistency){.kind = CONSISTENCY_SSP});
    push(0, 0, 2);
    expect(0, 0, 0);
    cr_expect(server_async.awaits(&server));
    const struct message bye = {.kind = MESSAGE_BYE};
    cr_assert_eq(server_async.on_stop(&server, 1, &bye), STATUS_OK);
    expect(0, 1, 1);
    for (uint64_t step = 1; step < 10; step++)
        push(0, step, 2);
    expect(0, 10, 10);
    stop();
}

/* With one backup worker of two, the first push completes a step. */
Test(answers, a_push_of_a_step_that_is_over_is_dropped)
{
    start((struct consistency){.kind = CONSISTENCY_BSP, .backup_workers = 1});
    push(0, 0, 4);
    expect(0, 1, 4); /* the average over the pushes that count: one */
    push(1, 0, 100);
    expect(1, 1, 4);
    cr_expect(answers[1][0].message.late);
    cr_expect_not(answers[0][0].message.late);
    push(1, 1, 2);
    expect(1, 2, 6);
    cr_expect_not(answers[1][1].message.late);
    push(0, 1, 100);
    expect(0, 2, 6);
    cr_expect(answers[0][1].message.late);
    stop();
}

/* Otherwise the server would believe that both workers have paused. */
Test(answers, a_worker_that_has_paused_sends_nothing_more)
{
    static const enum message_kind next[] = {MESSAGE_PAUSE, MESSAGE_BYE, MESSAGE_CLOCK};
    for (size_t i = 0; i < sizeof next / sizeof *next; i++) {
        void *self;
        bool paused;
        set_up((struct consistency){.kind = CONSISTENCY_ASYNC});
        cr_assert_eq(ps_server_open(&self, &site), STATUS_OK);
        struct message message = {.kind = MESSAGE_PAUSE, .dtype = MESSAGE_FLOAT32};
        cr_assert_eq(transport_deliver(&transport, &message, (struct payload){0}), STATUS_OK);
        message.kind = next[i];
        cr_assert_eq(transport_deliver(&transport, &message, (struct payload){0}), STATUS_OK);
        assert_refused(ps_serve(self, &paused), STATUS_PROTOCOL, "worker 0 sent");
        ps_server_close(self);
        transport_base_fini(&transport);
    }
}
