/* Strangers at psring's port: the listener drops a connection that sends nothing, or no hello. A
 * stranger does not delay the others. */
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "common/net/control.h"
#include "tests/lib/capture.h"
#include "tests/lib/ranks.h"

enum { MANY = HELLO_PENDING + 40, LONG_MS = 30000 };

static union address loopback(int port)
{
    union address address = address_loopback();
    address_set_port(&address, port);
    return address;
}

static void open_any(struct listener *listener)
{
    union address any = loopback(0);
    cr_assert_eq(listener_open(listener, &any, 1), 0);
}

static int connect_to(const struct listener *listener)
{
    int socket;
    cr_assert_eq(stream_connect(&listener->address, LONG_MS, &socket), 0);
    return socket;
}

static int64_t deadline_ms(int64_t ms)
{
    return clock_now_ns() + ms * NS_PER_MS;
}

static bool is_dropped(int socket)
{
    char byte;
    return stream_receive(socket, &byte, 1, LONG_MS) == ECONNRESET;
}

Test(listener, a_hello_in_pieces)
{
    struct listener listener;
    struct hello hello = hello_from(4, 9, 0), found;
    size_t which;
    int socket;
    snprintf(hello.host, sizeof hello.host, "a host\n");
    open_any(&listener);
    int ours = connect_to(&listener);
    for (size_t at = 0; at < sizeof hello; at += 8) {
        cr_assert_eq(listener_wait(&listener, deadline_ms(1), NULL, 0, &found, &socket, &which),
                     LISTENER_TIMEOUT);
        cr_assert_eq(stream_send(ours, (char *)&hello + at, 8, LONG_MS), 0);
    }
    cr_assert_eq(listener_wait(&listener, deadline_ms(LONG_MS), NULL, 0, &found, &socket, &which),
                 LISTENER_HELLO);
    cr_assert(found.head.value == 4 && found.world_size == 9);
    cr_assert_str_eq(found.host, "a?host?"); /* the host's name becomes part of one line */
    /* The wait also reports a watched connection: here the peer has closed it. */
    stream_close(&ours);
    cr_assert_eq(listener_wait(&listener, 0, &socket, 1, &found, &ours, &which), LISTENER_WATCHED);
    cr_assert_eq(which, 0);
    stream_close(&socket);
    listener_close(&listener);
}

/* The kernel measures a round trip while it connects, at both ends. */
Test(listener, a_connection_knows_its_round_trip)
{
    struct listener listener;
    int accepted;
    open_any(&listener);
    int ours = connect_to(&listener);
    cr_assert_eq(stream_wait(listener.socket, POLLIN, deadline_ms(LONG_MS), NULL, NULL), 0);
    cr_assert_eq(stream_accept(listener.socket, &accepted), 0);
    cr_expect_gt(stream_round_trip_s(ours), 0);
    cr_expect_gt(stream_round_trip_s(accepted), 0);
    cr_expect_eq(stream_round_trip_s(listener.socket), 0);
    cr_expect_eq(stream_round_trip_s(-1), 0);
    stream_close(&accepted);
    stream_close(&ours);
    listener_close(&listener);
}

Test(listener, foreign_bytes_are_dropped_at_once_and_told_once)
{
    struct listener listener;
    struct capture capture;
    struct hello found;
    int strangers[3], socket;
    size_t which;
    open_any(&listener);
    capture_start(&capture);
    for (int i = 0; i < 3; i++) {
        strangers[i] = connect_to(&listener);
        cr_assert_eq(stream_send(strangers[i], "GET / HTTP/1.1\r\n\r\n", 18, LONG_MS), 0);
    }
    enum listener_event event =
        listener_wait(&listener, deadline_ms(500), NULL, 0, &found, &socket, &which);
    size_t lines = capture_stop(&capture);
    cr_assert_eq(event, LISTENER_TIMEOUT);
    cr_assert(lines == 1 && strstr(capture.text, "does not belong to psring"), "%s", capture.text);
    for (int i = 0; i < 3; i++) {
        cr_assert(is_dropped(strangers[i]));
        stream_close(&strangers[i]);
    }
    listener_close(&listener);
}

/* The first 16 bytes are the same in every version, so the listener can report the version. */
Test(listener, a_hello_of_another_version_is_known_by_its_beginning)
{
    struct listener listener;
    struct hello hello = hello_from(3, 9, 0), found;
    size_t which;
    int socket;
    hello.head.protocol = CONTROL_PROTOCOL - 1;
    open_any(&listener);
    int ours = connect_to(&listener);
    cr_assert_eq(stream_send(ours, &hello, CONTROL_SAME_BYTES, LONG_MS), 0);
    cr_assert_eq(listener_wait(&listener, deadline_ms(LONG_MS), NULL, 0, &found, &socket, &which),
                 LISTENER_HELLO);
    cr_assert(found.head.protocol == CONTROL_PROTOCOL - 1 && found.head.value == 3);
    cr_assert(!hello_is_of(&found, 0, 9));
    stream_close(&ours);
    stream_close(&socket);
    listener_close(&listener);
}

/* Within a connection the job stays the same, and the sequence numbers grow. */
Test(control, a_message_of_another_job_or_out_of_order_is_foreign)
{
    static const struct {
        uint64_t job, known, sequence;
        enum control_read got;
    } cases[] = {{7, 7, 10, CONTROL_MESSAGE}, {7, 0, UINT64_MAX, CONTROL_MESSAGE},
                 {7, 7, 9, CONTROL_FOREIGN},  {7, 0, 1, CONTROL_FOREIGN},
                 {8, 7, 10, CONTROL_FOREIGN}, {8, 0, 10, CONTROL_FOREIGN},
                 {8, 8, 10, CONTROL_FOREIGN}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct control_input input = {.job = cases[i].known};
        struct control_head first = {.type = CONTROL_ANSWER, .job = 7, .sequence = 9}, found;
        struct control_head second = {
            .type = CONTROL_ANSWER, .job = cases[i].job, .sequence = cases[i].sequence};
        int pair[2];
        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
        cr_assert_eq(control_send(pair[0], &first, sizeof first, NULL, 0, LONG_MS), 0);
        cr_assert_eq(control_send(pair[0], &second, sizeof second, NULL, 0, LONG_MS), 0);
        cr_expect_eq(control_read(pair[1], &found, sizeof found, sizeof found, &input),
                     cases[i].known == 8 ? CONTROL_FOREIGN : CONTROL_MESSAGE, "case %zu", i);
        cr_expect_eq(control_read(pair[1], &found, sizeof found, sizeof found, &input),
                     cases[i].got, "case %zu", i);
        stream_close(&pair[0]);
        stream_close(&pair[1]);
    }
}

/* A process counts its messages on all connections. */
Test(control, messages_are_numbered_in_their_order)
{
    struct control_input inputs[2] = {0};
    uint64_t last = 0;
    int pairs[2][2];
    for (int i = 0; i < 2; i++)
        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pairs[i]), 0);
    for (int i = 0; i < 6; i++) {
        struct control_head sent = {.type = CONTROL_ANSWER}, found;
        cr_assert_eq(control_send(pairs[i % 2][0], &sent, sizeof sent, NULL, 0, LONG_MS), 0);
        cr_assert_eq(
            control_read(pairs[i % 2][1], &found, sizeof found, sizeof found, &inputs[i % 2]),
            CONTROL_MESSAGE);
        cr_expect_gt(found.sequence, last);
        last = found.sequence;
    }
    for (int i = 0; i < 4; i++)
        stream_close(&pairs[i / 2][i % 2]);
}

/* A message with more bytes than the reader's buffer, or of another type. */
Test(listener, messages_that_are_no_hello_are_dropped)
{
    struct listener listener;
    struct capture capture;
    struct hello hello = hello_from(3, 9, 0), found;
    int strangers[2], socket;
    size_t which;
    open_any(&listener);
    capture_start(&capture);
    for (int i = 0; i < 2; i++) {
        hello.head.bytes = i ? UINT64_MAX : sizeof hello - sizeof hello.head;
        hello.head.type = i ? CONTROL_HELLO : CONTROL_ANSWER;
        strangers[i] = connect_to(&listener);
        cr_assert_eq(stream_send(strangers[i], &hello, sizeof hello, LONG_MS), 0);
    }
    enum listener_event event =
        listener_wait(&listener, deadline_ms(500), NULL, 0, &found, &socket, &which);
    capture_stop(&capture);
    cr_assert_eq(event, LISTENER_TIMEOUT);
    for (int i = 0; i < 2; i++) {
        cr_assert(is_dropped(strangers[i]));
        stream_close(&strangers[i]);
    }
    listener_close(&listener);
}

Test(listener, silent_ones_are_dropped_in_time)
{
    struct listener listener;
    struct capture capture;
    struct hello found;
    int socket;
    size_t which;
    open_any(&listener);
    int silent = connect_to(&listener);
    capture_start(&capture);
    enum listener_event event = listener_wait(&listener, deadline_ms(HELLO_WAIT_MS + 500), NULL, 0,
                                              &found, &socket, &which);
    capture_stop(&capture);
    cr_assert_eq(event, LISTENER_TIMEOUT);
    cr_assert_eq(listener.pending_count, 0);
    cr_assert(is_dropped(silent));
    stream_close(&silent);
    listener_close(&listener);
}

Test(listener, many_silent_ones_hold_nobody_up)
{
    struct listener listener;
    struct capture capture;
    struct hello hello = hello_from(1, 9, 0), found;
    int strangers[MANY], socket;
    size_t which;
    open_any(&listener);
    capture_start(&capture);
    for (int i = 0; i < MANY; i++) {
        strangers[i] = connect_to(&listener);
        cr_assert_eq(listener_wait(&listener, deadline_ms(1), NULL, 0, &found, &socket, &which),
                     LISTENER_TIMEOUT);
    }
    int ours = connect_to(&listener);
    cr_assert_eq(stream_send(ours, &hello, sizeof hello, LONG_MS), 0);
    enum listener_event event =
        listener_wait(&listener, deadline_ms(LONG_MS), NULL, 0, &found, &socket, &which);
    capture_stop(&capture);
    cr_assert(event == LISTENER_HELLO && found.head.value == 1);
    cr_assert(listener.pending_count <= HELLO_PENDING);
    for (int i = 0; i < MANY; i++)
        stream_close(&strangers[i]);
    stream_close(&ours);
    stream_close(&socket);
    listener_close(&listener);
}

/* Our connection comes before the silent ones. It has not said hello yet, but it is still young. */
Test(listener, many_silent_ones_do_not_displace_a_young_one)
{
    struct listener listener;
    struct capture capture;
    struct hello hello = hello_from(1, 9, 0), found;
    int strangers[MANY], socket;
    size_t which;
    open_any(&listener);
    capture_start(&capture);
    int ours = connect_to(&listener);
    for (int i = 0; i < MANY; i++)
        strangers[i] = connect_to(&listener);
    cr_assert_eq(listener_wait(&listener, deadline_ms(1), NULL, 0, &found, &socket, &which),
                 LISTENER_TIMEOUT);
    cr_assert_eq(listener.pending_count, HELLO_PENDING);
    cr_assert_eq(stream_send(ours, &hello, sizeof hello, LONG_MS), 0);
    enum listener_event event =
        listener_wait(&listener, deadline_ms(LONG_MS), NULL, 0, &found, &socket, &which);
    capture_stop(&capture);
    cr_assert(event == LISTENER_HELLO && found.head.value == 1, "%s", capture.text);
    for (int i = 0; i < MANY; i++)
        stream_close(&strangers[i]);
    stream_close(&ours);
    stream_close(&socket);
    listener_close(&listener);
}

/* At HELLO_PENDING connections per HELLO_YOUNG_MS the silent ones would take longer than the limit
 * of this wait. They have been silent for longer than that before the listener looks. */
Test(listener, thousands_that_were_silent_before_hold_nobody_up)
{
    enum { THOUSANDS = 2500 };
    static int strangers[THOUSANDS];
    struct listener listener;
    struct capture capture;
    struct hello hello = hello_from(1, 9, 0), found;
    struct rlimit limit;
    int socket;
    size_t which;
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    cr_assert(setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > THOUSANDS + 200);
    open_any(&listener);
    for (int i = 0; i < THOUSANDS; i++)
        strangers[i] = connect_to(&listener);
    int ours = connect_to(&listener);
    cr_assert_eq(stream_send(ours, &hello, sizeof hello, LONG_MS), 0);
    clock_sleep_until_ns(deadline_ms(HELLO_YOUNG_MS + 500));
    capture_start(&capture);
    enum listener_event event =
        listener_wait(&listener, deadline_ms(LONG_MS), NULL, 0, &found, &socket, &which);
    size_t lines = capture_stop(&capture);
    cr_assert(event == LISTENER_HELLO && found.head.value == 1, "%s", capture.text);
    cr_assert_eq(lines, 1, "%s", capture.text);
    cr_assert(listener.pending_count <= HELLO_PENDING);
    for (int i = 0; i < THOUSANDS; i++)
        stream_close(&strangers[i]);
    stream_close(&ours);
    stream_close(&socket);
    listener_close(&listener);
}

/* A connection that always has something to read does not delay the others. */
Test(listener, watched_connections_take_turns)
{
    enum { COUNT = 3 };
    struct listener listener;
    struct hello found;
    union address any = loopback(0);
    int ours[COUNT], theirs[COUNT], socket;
    size_t which;
    cr_assert_eq(listener_open(&listener, &any, COUNT), 0);
    for (int i = 0; i < COUNT; i++) {
        int pair[2];
        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        ours[i] = pair[0];
        theirs[i] = pair[1];
        cr_assert_eq(write(theirs[i], "x", 1), 1);
    }
    for (size_t i = 0; i < 2 * COUNT; i++) {
        cr_assert_eq(listener_wait(&listener, 0, ours, COUNT, &found, &socket, &which),
                     LISTENER_WATCHED);
        cr_assert_eq(which, i % COUNT);
    }
    /* It does not keep newcomers out, either. */
    struct hello hello = hello_from(1, 9, 0);
    int newcomer = connect_to(&listener), calls = 0;
    cr_assert_eq(stream_send(newcomer, &hello, sizeof hello, LONG_MS), 0);
    while (listener_wait(&listener, 0, ours, COUNT, &found, &socket, &which) == LISTENER_WATCHED)
        cr_assert_lt(++calls, 1000);
    cr_assert_eq(found.head.value, 1);
    stream_close(&newcomer);
    stream_close(&socket);
    for (int i = 0; i < COUNT; i++) {
        stream_close(&ours[i]);
        stream_close(&theirs[i]);
    }
    listener_close(&listener);
}

/* poll(2) refuses a list longer than the limit of open files, even if most entries are empty. */
Test(listener, connections_that_are_missing_do_not_count)
{
    enum { COUNT = 500 };
    struct rlimit limit;
    struct listener listener;
    struct hello hello;
    union address any = loopback(0);
    int watched[COUNT], pair[2], socket;
    size_t which;
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = 100;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    cr_assert_eq(listener_open(&listener, &any, COUNT), 0);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    for (int i = 0; i < COUNT; i++)
        watched[i] = -1;
    watched[COUNT - 2] = pair[0];
    cr_assert_eq(send(pair[1], "", 1, 0), 1);
    cr_assert_eq(
        listener_wait(&listener, deadline_ms(500), watched, COUNT, &hello, &socket, &which),
        LISTENER_WATCHED);
    cr_expect_eq(which, COUNT - 2);
    stream_close(&pair[0]);
    stream_close(&pair[1]);
    listener_close(&listener);
}

/* The process has no free descriptor: the listener warns, and accepts the connection later. */
Test(listener, a_connection_that_cannot_be_accepted_waits)
{
    struct listener listener;
    struct capture capture;
    struct hello hello = hello_from(1, 9, 0), found;
    struct rlimit before, few;
    int socket;
    size_t which;
    open_any(&listener);
    int ours = connect_to(&listener);
    cr_assert_eq(stream_send(ours, &hello, sizeof hello, LONG_MS), 0);
    capture_start(&capture);
    int next = dup(ours); /* the lowest free descriptor */
    cr_assert_eq(close(next), 0);
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){(rlim_t)next, before.rlim_max};
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    enum listener_event event =
        listener_wait(&listener, deadline_ms(200), NULL, 0, &found, &socket, &which);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    size_t lines = capture_stop(&capture);
    cr_assert_eq(event, LISTENER_TIMEOUT);
    cr_assert(lines == 1 && strstr(capture.text, strerror(EMFILE)), "%s", capture.text);
    event = listener_wait(&listener, deadline_ms(LONG_MS), NULL, 0, &found, &socket, &which);
    cr_assert(event == LISTENER_HELLO && found.head.value == 1);
    stream_close(&ours);
    stream_close(&socket);
    listener_close(&listener);
}

/* A whole start-up. Strangers connect to the port from its first moment on. */
static int sum_ranks(struct world *world)
{
    double sum = world->rank;
    return world_sum(world, NULL, &sum, 1) == STATUS_OK && sum == 3 ? 0 : 5;
}

Test(listener, ranks_meet_among_strangers)
{
    struct rank ranks[3] = {0};
    int port = ranks_free_port(), strangers[40];
    union address where = loopback(port);
    char address[64];
    for (int i = 0; i < 3; i++)
        ranks[i] = (struct rank){.number = i, .world_size = 3, .run = sum_ranks};
    snprintf(address, sizeof address, "tcp://127.0.0.1:%d", port);
    ranks_start(ranks, 1, address);
    for (int i = 0; i < 40; i++) {
        for (int tries = 0; stream_connect(&where, LONG_MS, &strangers[i]) != 0; tries++) {
            cr_assert(tries < 500);
            clock_sleep_until_ns(deadline_ms(20));
        }
        if (i % 2) /* the even strangers send nothing */
            stream_send(strangers[i], "\x16\x03\x01 not for you, whoever you are", 20, LONG_MS);
    }
    ranks_start(ranks + 1, 2, address);
    ranks_wait(ranks, 3);
    for (int i = 0; i < 3; i++)
        cr_assert(ranks[i].code == 0 && ranks[i].lines <= 1, "%s", ranks[i].said);
    /* On a busy machine the ranks may meet before rank 0 has looked at a stranger. */
    cr_assert(ranks[0].lines == 0 || strstr(ranks[0].said, "dropped a connection"), "%s",
              ranks[0].said);
    for (int i = 0; i < 40; i++)
        stream_close(&strangers[i]);
}
