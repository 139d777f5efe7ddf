/* Ranks that meet without a launcher: collective calls and groups of any size. For each error at
 * the start, every rank prints one clear line. Strangers at the port: test_listener.c. */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <time.h>

#include "common/base/status.h"
#include "common/net/rendezvous.h"
#include "common/net/world_impl.h"
#include "common/net/address.h"
#include "tests/lib/capture.h"
#include "tests/lib/ranks.h"

/* -------- collective calls -------------------------------------------------------------------- */

/* In a child: prints the failed condition to stderr, and so into the parent's assertion. */
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: rank %d: expected %s\n", __LINE__, world->rank, #condition); \
            return 3;                                                                              \
        }                                                                                          \
    } while (0)

static uint64_t datum(int rank, size_t i)
{
    return (uint64_t)rank * 1000003 + i * 7 + 1;
}

static int check_calls(struct world *world, const struct group *group)
{
    enum { COUNT = 1 << 17, SHORT = 5 }; /* a megabyte is more than a socket holds */
    int size = group ? group->size : world->size, index = group ? group->rank : world->rank;
    int first = group ? group->ranks[0] : 0;
    uint64_t *mine = malloc(COUNT * sizeof *mine), *all;
    all = malloc((size_t)size * COUNT * sizeof *all);
    EXPECT(mine && all);
    for (size_t count = 1; count <= COUNT; count *= COUNT) {
        for (size_t i = 0; i < count; i++)
            mine[i] = datum(world->rank, i);
        EXPECT(world_gather(world, group, mine, count * sizeof *mine, all) == STATUS_OK);
        for (int member = 0; member < size; member++) {
            int rank = group ? group->ranks[member] : member;
            for (size_t i = 0; i < count; i++)
                EXPECT(all[(size_t)member * count + i] == datum(rank, i));
        }
        /* The root doubles the values and returns them. */
        bool root = index == 0;
        memset(all, 0, (size_t)size * count * sizeof *all);
        EXPECT(world_collect(world, group, mine, count * sizeof *mine, root ? all : NULL) ==
               STATUS_OK);
        for (size_t i = 0; root && i < (size_t)size * count; i++) {
            int member = (int)(i / count);
            EXPECT(all[i] == datum(group ? group->ranks[member] : member, i % count));
            all[i] *= 2;
        }
        EXPECT(world_scatter(world, group, root ? all : NULL, count * sizeof *mine, mine) ==
               STATUS_OK);
        for (size_t i = 0; i < count; i++)
            EXPECT(mine[i] == 2 * datum(world->rank, i));
        for (size_t i = 0; i < count; i++)
            mine[i] = datum(world->rank, i);
        EXPECT(world_broadcast(world, group, mine, count * sizeof *mine) == STATUS_OK);
        for (size_t i = 0; i < count; i++)
            EXPECT(mine[i] == datum(first, i));
    }
    double sums[SHORT], most[SHORT];
    for (int i = 0; i < SHORT; i++)
        sums[i] = most[i] = (index + 1) * (i % 2 ? -1.0 : 1.0);
    EXPECT(world_sum(world, group, sums, SHORT) == STATUS_OK);
    EXPECT(world_barrier(world, group) == STATUS_OK);
    EXPECT(world_max(world, group, most, SHORT) == STATUS_OK);
    for (int i = 0; i < SHORT; i++) {
        EXPECT(sums[i] == size * (size + 1) / 2 * (i % 2 ? -1.0 : 1.0));
        EXPECT(most[i] == (i % 2 ? -1.0 : size));
    }
    EXPECT(world_sum(world, group, sums, 0) == STATUS_OK);
    free(mine);
    free(all);
    return 0;
}

/* The world, then groups: ranks of one remainder modulo 3, all but rank 0, the last two. Twice. */
static int check_groups(struct world *world)
{
    struct group *thirds, *others, *last;
    EXPECT(!world_is_mpi(world) && world->local_size == world->size && world->run_id != 0);
    EXPECT(world->local_rank == world->rank && world->machine == 0);
    EXPECT(world_group_new(&thirds, world, world->rank % 3) == STATUS_OK);
    EXPECT(world_group_new(&others, world, world->rank ? 0 : GROUP_NONE) == STATUS_OK);
    EXPECT(world_group_new(&last, world, world->rank >= world->size - 2 ? 5 : GROUP_NONE) ==
           STATUS_OK);
    EXPECT((others == NULL) == (world->rank == 0));
    for (int round = 0; round < 2; round++) {
        int code = check_calls(world, NULL);
        code = code ? code : check_calls(world, thirds);
        code = code || !others ? code : check_calls(world, others);
        code = code || !last ? code : check_calls(world, last);
        code = code ? code : check_calls(world, thirds);
        if (code)
            return code;
    }
    world_group_free(&last, world);
    world_group_free(&thirds, world);
    world_group_free(&others, world);
    return 0;
}

Test(rendezvous, collective_calls_in_groups)
{
    for (int size = 1; size <= 7; size += size < 4 ? 1 : 3) {
        struct rank ranks[7] = {0};
        for (int i = 0; i < size; i++) /* rank 0 starts last */
            ranks[i] =
                (struct rank){.number = size - 1 - i, .world_size = size, .run = check_groups};
        ranks_run(ranks, (size_t)size);
        ranks_all_well(ranks, (size_t)size);
    }
}

static int twice_the_same_run(struct world *world)
{
    uint64_t ids[3];
    EXPECT(world_gather(world, NULL, &world->run_id, sizeof world->run_id, ids) == STATUS_OK);
    EXPECT(ids[0] == ids[1] && ids[1] == ids[2]);
    return 0;
}

Test(rendezvous, rank_0_may_come_late)
{
    struct rank ranks[] = {{.number = 0, .world_size = 3, .start_after_ms = 700},
                           {.number = 1, .world_size = 3},
                           {.number = 2, .world_size = 3, .start_after_ms = 300}};
    for (int i = 0; i < 3; i++)
        ranks[i].run = twice_the_same_run;
    ranks_run(ranks, 3);
    ranks_all_well(ranks, 3);
}

/* -------- what can be wrong at the start ------------------------------------------------------ */

Test(rendezvous, two_ranks_with_one_number)
{
    struct rank ranks[] = {{.number = 0, .world_size = 3},
                           {.number = 1, .world_size = 3},
                           {.number = 1, .world_size = 3}};
    ranks_run(ranks, 3);
    ranks_all_say(ranks, 3, 2, "two processes say that they are rank 1, on ");
}

Test(rendezvous, two_ranks_0)
{
    struct rank ranks[] = {{.number = 0, .world_size = 3},
                           {.number = 0, .world_size = 3, .start_after_ms = 200},
                           {.number = 1, .world_size = 3}};
    ranks_run(ranks, 3);
    ranks_all_say(ranks, 3, 2, "two processes say that they are rank 0, on ");
}

Test(rendezvous, rank_out_of_range)
{
    struct rank ranks[] = {{.number = 0, .world_size = 3},
                           {.number = 1, .world_size = 3},
                           {.number = 3, .world_size = 3}};
    ranks_run(ranks, 3);
    ranks_all_say(ranks, 3, 2, "found rank 3 on ");
    struct rank alone = {.number = 1, .world_size = 1};
    ranks_run(&alone, 1);
    ranks_all_say(&alone, 1, 2, "found rank 1, expected 0 with --world-size 1");
}

Test(rendezvous, other_world_size)
{
    struct rank ranks[] = {{.number = 0, .world_size = 3},
                           {.number = 2, .world_size = 4},
                           {.number = 1, .world_size = 3}};
    ranks_run(ranks, 3);
    ranks_all_say(ranks, 3, 2, "was started for 4 ranks, rank 0 on ");
}

/* A rank that connects only after rank 0 has found the error gets the error, too. */
Test(rendezvous, who_comes_after_an_error_is_told)
{
    struct rank ranks[] = {{.number = 0, .world_size = 3},
                           {.number = 2, .world_size = 4},
                           {.number = 1, .world_size = 3, .start_after_ms = 500}};
    ranks_run(ranks, 3);
    ranks_all_say(ranks, 3, 2, "was started for 4 ranks, rank 0 on ");
}

/* A rank of an earlier run is refused. Rank 0 continues to wait for its own rank 1. */
Test(rendezvous, a_rank_of_another_job_is_refused)
{
    struct rank ranks[] = {{.number = 0, .world_size = 2, .token = 5},
                           {.number = 1, .world_size = 2, .token = 4},
                           {.number = 1, .world_size = 2, .token = 5}};
    char address[64];
    ranks_address(address);
    ranks_start(ranks, 2, address);
    ranks_wait(&ranks[1], 1);
    ranks_all_say(&ranks[1], 1, 2, "belongs to another job than rank 0 on ");
    ranks_start(&ranks[2], 1, address);
    ranks_wait(&ranks[2], 1);
    ranks_wait(&ranks[0], 1);
    ranks_all_well(&ranks[2], 1);
    ranks_all_well(&ranks[0], 1);
}

Test(rendezvous, missing_ranks_are_named)
{
    struct rank ranks[] = {{.number = 0, .world_size = 5, .startup_timeout_ms = 1000},
                           {.number = 3, .world_size = 5, .startup_timeout_ms = 1000}};
    ranks_run(ranks, 2);
    ranks_all_say(ranks, 2, 1,
                  "gave up: ranks 1, 2 and 4 of 5 did not connect to tcp://127.0.0.1:");
}

Test(rendezvous, nothing_listens)
{
    struct rank ranks[] = {{.number = 1, .world_size = 3, .startup_timeout_ms = 500},
                           {.number = 2, .world_size = 3, .startup_timeout_ms = 500}};
    ranks_run(ranks, 2);
    ranks_all_say(ranks, 2, 1, "nothing listens there that this host can reach");
    struct rank unknown = {.number = 1,
                           .world_size = 3,
                           .startup_timeout_ms = 500,
                           .address = "tcp://no-such-host.invalid:29500"};
    ranks_run(&unknown, 1);
    ranks_all_say(&unknown, 1, 1, "the host's name is unknown here");
}

/* Another program has the port and sends nothing: the rank asks it once, not repeatedly. */
static bool third_time(void *context)
{
    return ++*(int *)context >= 3;
}

static void on_signal(int number)
{
    (void)number;
}

/* From now on signals interrupt waits, like the signal that ends a worker. An interrupted wait must
 * continue as before. */
static void be_interrupted(void)
{
    const struct sigaction action = {.sa_handler = on_signal};
    const struct itimerspec often = {{.tv_nsec = 20000000}, {.tv_nsec = 20000000}};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    timer_t timer;
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    CHECK(timer_settime(timer, 0, &often, NULL) == 0);
}

/* The caller's callback knows that the other ranks will not come, and ends the wait of any rank. */
Test(rendezvous, waiting_can_be_given_up)
{
    for (int rank = 0; rank < 2; rank++) {
        int asked = 0, sockets[2];
        const struct world_options options = {.rank = rank,
                                              .size = 2,
                                              .startup_timeout_ms = 3600000,
                                              .cancelled = third_time,
                                              .cancel_context = &asked};
        struct rendezvous rendezvous = {
            .host = "127.0.0.1", .port = ranks_free_port(), .name = "here", .options = &options};
        cr_assert_eq(rendezvous_meet(&rendezvous, sockets), STATUS_TRANSPORT);
        cr_assert_eq(asked, 3);
    }
}

/* Rank 0 is stopped: the kernel accepts connections, and no process answers. */
Test(rendezvous, waiting_for_an_answer_can_be_given_up)
{
    union address address = address_loopback();
    int listening, sockets[2], asked = 0;
    cr_assert_eq(stream_listen(&address, &listening), 0);
    cr_assert_eq(address_of_socket(listening, &address), 0);
    const struct world_options options = {.rank = 1,
                                          .size = 2,
                                          .startup_timeout_ms = 1000L * 600,
                                          .cancelled = third_time,
                                          .cancel_context = &asked};
    struct rendezvous rendezvous = {
        .host = "127.0.0.1", .port = address_port(&address), .name = "here", .options = &options};
    alarm(RANKS_LIMIT_S);
    be_interrupted();
    cr_assert_eq(rendezvous_meet(&rendezvous, sockets), STATUS_TRANSPORT);
    cr_expect_geq(asked, 3);
    stream_close(&listening);
}

Test(rendezvous, the_port_is_taken)
{
    struct rank ranks[] = {{.number = 0, .world_size = 2, .startup_timeout_ms = 500},
                           {.number = 1, .world_size = 2, .startup_timeout_ms = 500}};
    union address where = address_loopback();
    int listening, socket, connections = 0;
    char address[ADDRESS_URI_BYTES];
    cr_assert_eq(stream_listen(&where, &listening), 0);
    cr_assert_eq(address_of_socket(listening, &where), 0);
    address_uri(&where, address);
    ranks_start(ranks, 2, address);
    ranks_wait(ranks, 2);
    ranks_all_say(&ranks[0], 1, 1, "another program has that port");
    ranks_all_say(&ranks[1], 1, 1, "the program there does not answer");
    while (stream_accept(listening, &socket) == 0) {
        stream_close(&socket);
        connections++;
    }
    cr_assert_eq(connections, 2);
    stream_close(&listening);
}

/* psring serve has the port and refuses the rank with a message of a different kind. */
Test(rendezvous, the_port_is_a_coordinators)
{
    struct rank rank = {.number = 0, .world_size = 2, .startup_timeout_ms = 20000};
    union address where = address_loopback();
    int listening, socket;
    char address[ADDRESS_URI_BYTES];
    struct hello hello;
    struct control_input input = {0};
    cr_assert_eq(stream_listen(&where, &listening), 0);
    cr_assert_eq(address_of_socket(listening, &where), 0);
    address_uri(&where, address);
    ranks_start(&rank, 1, address);
    alarm(RANKS_LIMIT_S);
    while (stream_accept(listening, &socket) != 0)
        usleep(1000);
    cr_assert_eq(control_receive(socket, &hello, sizeof hello, &input, 20000, NULL, NULL), 0);
    struct control_head refusal = {.type = CONTROL_MEMBERS, .value = STATUS_USAGE};
    cr_assert_eq(control_send(socket, &refusal, sizeof refusal, NULL, 0, 20000), 0);
    ranks_wait(&rank, 1);
    ranks_all_say(&rank, 1, 1, "another program has that port");
    stream_close(&socket);
    stream_close(&listening);
}

/* HOST is not rank 0's host. */
Test(rendezvous, address_of_another_host)
{
    struct rank rank = {.number = 0, .world_size = 2, .address = "tcp://240.0.0.1:29500"};
    ranks_run(&rank, 1);
    ranks_all_say(&rank, 1, 1, "HOST must be the host of rank 0");
}

/* Plays a rank by hand: sends the caller's hello and returns the connection. */
static int say_hello(const char *address, const struct hello *hello)
{
    struct rendezvous parsed;
    union address where;
    const char *why;
    int socket = -1, count, error = ECONNREFUSED;
    cr_assert_eq(rendezvous_parse(address, &parsed), STATUS_OK);
    cr_assert(address_resolve(parsed.host, parsed.port, 0, &where, &count, &why));
    for (int i = 0; i < 500 && error == ECONNREFUSED; i++) { /* rank 0 is about to listen */
        if (i > 0)
            clock_sleep_until_ns(clock_now_ns() + 20 * NS_PER_MS);
        error = stream_connect(&where, 5000, &socket);
    }
    cr_assert_eq(error, 0);
    cr_assert_eq(stream_send(socket, hello, sizeof *hello, 5000), 0);
    return socket;
}

static struct hello hello_of(int rank, int world_size)
{
    struct hello hello = hello_from(rank, world_size, 0);
    snprintf(hello.host, sizeof hello.host, "elsewhere");
    return hello;
}

static void check_refused_by_hand(const struct hello *hello, const char *words)
{
    struct rank ranks[] = {{.number = 0, .world_size = 3}, {.number = 1, .world_size = 3}};
    struct rendezvous_answer answer = {.text = ""};
    struct control_input input = {0};
    struct {
        uint64_t magic;
        int32_t status;
        uint32_t unused;
        char text[496];
    } old = {.text = ""}; /* as version 1 of the protocol reads it */
    char address[64];
    ranks_address(address);
    ranks_start(ranks, 2, address);
    int socket = say_hello(address, hello);
    if (hello->head.protocol == 1) {
        cr_assert_eq(stream_receive(socket, &old, sizeof old, 20000), 0);
        cr_assert(old.magic == CONTROL_MAGIC && old.status == STATUS_USAGE);
        cr_assert(strstr(old.text, words), "found: %s", old.text);
    }
    cr_assert_eq(control_receive(socket, &answer, sizeof answer - 1, &input, 20000, NULL, NULL), 0);
    cr_assert(answer.head.value == STATUS_USAGE && strstr(answer.text, words), "found: %s",
              answer.text);
    stream_close(&socket);
    ranks_wait(ranks, 2);
    ranks_all_say(ranks, 2, 2, words);
}

Test(rendezvous, other_version)
{
    struct hello hello = hello_of(2, 3);
    snprintf(hello.version, sizeof hello.version, "0.0.7");
    check_refused_by_hand(&hello, "rank 2 on elsewhere is psring 0.0.7, rank 0 on ");
    hello = hello_of(2, 3);
    hello.head.protocol = 99;
    check_refused_by_hand(&hello, "rank 2 speaks version 99 of the start-up protocol");
    hello.head.protocol = 1;
    check_refused_by_hand(&hello, "rank 2 speaks version 1 of the start-up protocol");
    hello.head.job = 7; /* another version has the token at a different place */
    check_refused_by_hand(&hello, "rank 2 speaks version 1 of the start-up protocol");
}

/* The answer shows nothing that the process has not sent itself. */
Test(rendezvous, a_stranger_does_not_learn_the_token)
{
    struct rank ranks[] = {{.number = 0, .world_size = 2, .token = 5},
                           {.number = 1, .world_size = 2, .token = 5}};
    struct hello hello = hello_from(1, 2, 4);
    struct rendezvous_answer answer = {.text = ""};
    struct control_input input = {0};
    char address[64];
    ranks_address(address);
    ranks_start(&ranks[0], 1, address);
    int socket = say_hello(address, &hello);
    cr_assert_eq(control_receive(socket, &answer, sizeof answer - 1, &input, 20000, NULL, NULL), 0);
    cr_assert(answer.head.value == STATUS_USAGE && strstr(answer.text, "belongs to another job"));
    cr_assert_eq(answer.head.job, 4);
    stream_close(&socket);
    ranks_start(&ranks[1], 1, address);
    ranks_wait(ranks, 2);
    ranks_all_well(ranks, 2);
}

Test(rendezvous, a_rank_that_ends_before_the_start_is_named)
{
    struct rank ranks[] = {{.number = 0, .world_size = 4}, {.number = 1, .world_size = 4}};
    struct hello hello = hello_of(3, 4);
    char address[64];
    ranks_address(address);
    ranks_start(ranks, 2, address);
    int socket = say_hello(address, &hello);
    clock_sleep_until_ns(clock_now_ns() + 200 * NS_PER_MS);
    stream_close(&socket);
    ranks_wait(ranks, 2);
    ranks_all_say(ranks, 2, 1, "rank 3 on elsewhere has ended before all 4 ranks were there");
}

/* -------- what can go wrong later ------------------------------------------------------------- */

/* A message of a collective call, of a rank 0 that is played by hand. */
struct played {
    struct control_head head;
    char data[65536];
};

/* Starts rank 1, and lets it begin. Returns its connection. */
static int begin_played(struct rank *rank)
{
    struct control_head begin = {.type = CONTROL_ANSWER};
    struct hello hello;
    struct control_input input = {0};
    union address address = address_loopback();
    char uri[ADDRESS_URI_BYTES];
    int listening, socket;
    *rank = (struct rank){.number = 1, .world_size = 2};
    cr_assert_eq(stream_listen(&address, &listening), 0);
    cr_assert_eq(address_of_socket(listening, &address), 0);
    ranks_start(rank, 1, address_uri(&address, uri));
    cr_assert_eq(stream_wait(listening, POLLIN, 0, NULL, NULL), 0);
    cr_assert_eq(stream_accept(listening, &socket), 0);
    cr_assert_eq(control_receive(socket, &hello, sizeof hello, &input, 20000, NULL, NULL), 0);
    cr_assert_eq(control_send(socket, &begin, sizeof begin, NULL, 0, 5000), 0);
    stream_close(&listening);
    return socket;
}

/* Rank 0 reports that each collective call has failed, but with no failure. */
Test(rendezvous, a_failure_without_a_failure_is_one)
{
    struct played found, failed = {.head.type = CONTROL_WORLD + WORLD_SCATTER + 1};
    struct control_input input = {0};
    struct rank rank;
    int socket = begin_played(&rank);
    while (control_receive(socket, &found, sizeof found, &input, 20000, NULL, NULL) == 0)
        control_send(socket, &failed, offsetof(struct played, data), "all is well", 11, 5000);
    stream_close(&socket);
    ranks_wait(&rank, 1);
    ranks_all_say(&rank, 1, 1, "all is well");
}

/* Rank 0 answers the first call as if it were in another job, then as in another call. */
Test(rendezvous, a_call_of_another_job_or_number_is_refused)
{
    for (int i = 0; i < 2; i++) {
        struct played found;
        struct control_input input = {0};
        struct rank rank;
        int socket = begin_played(&rank);
        cr_assert_eq(control_receive(socket, &found, sizeof found, &input, 20000, NULL, NULL), 0);
        found.head.job += i == 0;
        found.head.sequence += i == 1;
        cr_assert_eq(control_send(socket, &found, offsetof(struct played, data), found.data,
                                  2 * (size_t)WORLD_HOST_BYTES, 5000),
                     0);
        ranks_wait(&rank, 1);
        ranks_all_say(&rank, 1, 1,
                      i == 0 ? "is in another job: gather"
                             : "is in another collective call: gather");
        stream_close(&socket);
    }
}

/* The names of all hosts have no end. */
Test(rendezvous, the_name_of_a_host_ends)
{
    struct played found;
    struct control_input input = {0};
    struct rank rank;
    char longest[WORLD_HOST_BYTES + 1];
    memset(longest, 'x', sizeof longest);
    longest[WORLD_HOST_BYTES - 1] = '\0';
    int socket = begin_played(&rank);
    cr_assert_eq(control_receive(socket, &found, sizeof found, &input, 20000, NULL, NULL), 0);
    cr_assert_eq(found.head.type, CONTROL_WORLD + WORLD_GATHER);
    memset(found.data, 'x', 2 * (size_t)WORLD_HOST_BYTES);
    cr_assert_eq(control_send(socket, &found, offsetof(struct played, data), found.data,
                              2 * (size_t)WORLD_HOST_BYTES, 5000),
                 0);
    cr_assert_eq(control_receive(socket, &found, sizeof found, &input, 20000, NULL, NULL), 0);
    stream_close(&socket);
    ranks_wait(&rank, 1);
    ranks_all_say(&rank, 1, 1, longest);
    cr_assert(!strstr(strstr(rank.said, longest) + 1, longest), "%s", rank.said);
}

static int one_leaves(struct world *world)
{
    if (world->rank == 2)
        return 0;
    return world_barrier(world, NULL) == STATUS_TRANSPORT ? 5 : 0;
}

Test(rendezvous, a_rank_that_has_ended_is_named_to_all)
{
    struct rank ranks[4] = {0};
    for (int i = 0; i < 4; i++)
        ranks[i] = (struct rank){.number = i, .world_size = 4, .run = one_leaves};
    ranks_run(ranks, 4);
    cr_assert(ranks[2].code == 0 && ranks[2].lines == 0);
    ranks[2] = ranks[3];
    ranks_all_say(ranks, 3, 5, "barrier: rank 2 on ");
    ranks_all_say(ranks, 3, 5, " has closed its connection");
}

static int one_is_late(struct world *world)
{
    world->timeout_ms = 1000;
    if (world->rank == 1) {
        struct pollfd other = {.fd = -1};
        poll(&other, 1, 4000); /* longer than the other ranks wait */
        return 0;
    }
    return world_barrier(world, NULL) == STATUS_TIMEOUT ? 5 : 0;
}

Test(rendezvous, a_rank_that_does_not_come_is_named_to_all)
{
    struct rank ranks[3] = {0};
    for (int i = 0; i < 3; i++)
        ranks[i] = (struct rank){.number = i, .world_size = 3, .run = one_is_late};
    ranks_run(ranks, 3);
    cr_assert_eq(ranks[1].code, 0, "%s", ranks[1].said);
    ranks[1] = ranks[2];
    ranks_all_say(ranks, 2, 5, "did not reach this call within 1 s");
    ranks_all_say(ranks, 2, 5, "barrier: rank 1 on ");
}

/* The calls of a world that has met can be given up, too. */
static int one_gives_up(struct world *world)
{
    world->timeout_ms = 1000L * RANKS_LIMIT_S;
    int asked = 0;
    if (world->rank == 1) {
        be_interrupted();
        world->cancelled = third_time;
        world->cancel_context = &asked;
        return world_barrier(world, NULL) == STATUS_TRANSPORT ? 5 : 1;
    }
    struct pollfd other = {.fd = -1};
    poll(&other, 1, 3000); /* the other rank waits for rank 0 */
    return 0;
}

Test(rendezvous, a_call_can_be_given_up)
{
    struct rank ranks[2] = {{.number = 0, .world_size = 2, .run = one_gives_up},
                            {.number = 1, .world_size = 2, .run = one_gives_up}};
    ranks_run(ranks, 2);
    cr_expect(ranks[1].code == 5 && ranks[1].lines == 0, "%d: %s", ranks[1].code, ranks[1].said);
}

/* Without a watchdog each rank warns about what it waits for: the root waits for rank 1, rank 2 for
 * the root. */
static int one_comes_later(struct world *world)
{
    world->stall_warning_ms = 300;
    if (world->rank == 1)
        clock_sleep_until_ns(clock_now_ns() + 3 * NS_PER_S);
    return world_barrier(world, NULL) == STATUS_OK && world_barrier(world, NULL) == STATUS_OK ? 0
                                                                                              : 1;
}

Test(rendezvous, a_late_rank_is_warned_of)
{
    struct rank ranks[3];
    for (int r = 0; r < 3; r++)
        ranks[r] = (struct rank){.number = r, .world_size = 3, .run = one_comes_later};
    ranks_run(ranks, 3);
    for (int r = 0; r < 3; r++)
        cr_expect_eq(ranks[r].code, 0, "rank %d: %s", r, ranks[r].said);
    cr_expect(strstr(ranks[0].said, " s while waiting for rank 1"), "%s", ranks[0].said);
    cr_expect(strstr(ranks[2].said, " s while waiting for rank 0"), "%s", ranks[2].said);
}

static int another_call(struct world *world)
{
    double value = 1;
    if (world->rank == 1)
        return world_sum(world, NULL, &value, 1) == STATUS_OK ? 0 : 5;
    return world_barrier(world, NULL) == STATUS_PROTOCOL ? 5 : 0;
}

/* The root finds the difference and informs all ranks. */
Test(rendezvous, ranks_in_different_calls)
{
    struct rank ranks[3];
    for (int r = 0; r < 3; r++)
        ranks[r] = (struct rank){.number = r, .world_size = 3, .run = another_call};
    ranks_run(ranks, 3);
    ranks_all_say(ranks, 3, 5, "is in another collective call: gather 4 of group 0, 8 bytes");
}

/* -------- the pure parts ---------------------------------------------------------------------- */

Test(rendezvous, addresses)
{
    struct rendezvous parsed;
    cr_assert_eq(rendezvous_parse("tcp://10.0.0.1:29500", &parsed), STATUS_OK);
    cr_assert(strcmp(parsed.host, "10.0.0.1") == 0 && parsed.port == 29500);
    cr_assert_eq(rendezvous_parse("tcp://node-7.cluster:1", &parsed), STATUS_OK);
    cr_assert(strcmp(parsed.host, "node-7.cluster") == 0 && parsed.port == 1);
    static const char *const wrong[] = {"",
                                        "tcp://",
                                        "tcp://host",
                                        "tcp://:29500",
                                        "host:29500",
                                        "udp://host:29500",
                                        "tcp://host:",
                                        "tcp://host:x",
                                        "tcp://host:1x",
                                        "tcp://host:-1",
                                        "tcp://host:65536",
                                        "tcp://host:+1",
                                        "tcp://host: 1",
                                        "tcp://host:000001",
                                        "tcp://a host:1",
                                        "tcp://a\thost:1",
                                        "tcp://fe80::1:29500",
                                        "tcp://host:99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_refused(rendezvous_parse(wrong[i], &parsed), STATUS_USAGE,
                       "expected tcp://HOST:PORT");
    assert_refused(rendezvous_parse("tcp://host:0", &parsed), STATUS_USAGE,
                   "name one from 1 to 65535");
}

Test(rendezvous, missing_ranks_in_words)
{
    enum { SIZE = 300 };
    char hosts[SIZE][RENDEZVOUS_NAME_BYTES] = {{0}}, text[160];
    for (int rank = 0; rank < SIZE; rank++)
        snprintf(hosts[rank], sizeof hosts[rank], "h");
    hosts[7][0] = '\0';
    rendezvous_missing(hosts, SIZE, text, sizeof text);
    cr_assert_str_eq(text, "rank 7");
    hosts[0][0] = '\0';
    rendezvous_missing(hosts, SIZE, text, sizeof text);
    cr_assert_str_eq(text, "ranks 0 and 7");
    hosts[299][0] = '\0';
    rendezvous_missing(hosts, SIZE, text, sizeof text);
    cr_assert_str_eq(text, "ranks 0, 7 and 299");
    memset(hosts, 0, sizeof hosts);
    rendezvous_missing(hosts, SIZE, text, sizeof text);
    cr_assert(strstr(text, "ranks 0, 1, 2,") && strstr(text, " more"), "%s", text);
}
