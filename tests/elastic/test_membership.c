/* The members of the next generation of an elastic job, and their ranks. Members are threads of
 * this process and do not train. test_elastic.sh has processes that train. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/elastic/members.h"
#include "tests/lib/capture.h"

static const struct job_record new_job; /* not durable */
static int64_t stall_warning_ms;

/* Waits until the member `trains` knows of a newcomer that joins after `step`. */
static void wait_until_known(const struct one *trains, uint64_t step)
{
    while (member_until(trains->member) > step)
        usleep(1000);
}

/* How often workers have been told who is there. The coordinator tells a worker once it has taken
 * its JOIN, and the others if the counts have changed. */
static _Atomic int notes;

static void count_notes(enum log_level level, const char *line)
{
    (void)level;
    notes += strstr(line, "waits: ") != NULL;
}

static void wait_for_notes(int count)
{
    while (notes < count)
        usleep(1000);
}

static void open_new_job(int workers_first)
{
    struct coordinator_options options = options_for(workers_first);
    options.stall_warning_ms = stall_warning_ms;
    open_job(&options, &new_job);
    coordinator_set_servers(coordinator, 1);
}

static void begin(int workers_first)
{
    open_new_job(workers_first);
    joins(&server, MEMBER_SERVER);
}

/* The data allow no more workers. */
static void limit_workers(int workers_most)
{
    for (int i = 0; i < 2; i++)
        workers[i].place.workers_most = workers_most;
}

Test(membership, newest_weights_come_first_then_seniority_and_newcomers_last)
{
    log_set_sink(count_notes);
    begin(2);
    for (int i = 0; i < 2; i++) {
        joins(&workers[i], MEMBER_WORKER);
        wait_for_notes(1);
    }
    end_meeting(&server, STATUS_OK);
    for (int i = 0; i < 2; i++) {
        end_meeting(&workers[i], STATUS_OK);
        assert_rank(&workers[i], i, 2, 0);
    }
    assert_rank(&server, 2, 2, 0);

    joins(&workers[2], MEMBER_WORKER);
    open_one(&workers[3], MEMBER_WORKER, 8); /* not yet */
    start_meeting(&workers[3]);
    wait_until_known(&workers[0], 0);
    comes_back(&workers[0], 6, STATUS_TRANSPORT); /* an error: it lacks step 7 */
    comes_back(&workers[1], 7, STATUS_TRANSPORT);
    comes_back(&server, MEMBER_NO_STEP, STATUS_TRANSPORT);
    end_meeting(&server, STATUS_OK);
    for (int i = 0; i < 3; i++)
        end_meeting(&workers[i], STATUS_OK);
    assert_rank(&workers[1], 0, 3, 7);
    assert_rank(&workers[0], 1, 3, 7);
    assert_rank(&workers[2], 2, 3, 7);
    cr_assert_str_eq((const char *)workers[2].found.note, "after 7");
    cr_assert_str_eq(workers[0].found.address, workers[2].found.address);

    wait_until_known(&workers[2], 8);
    cr_assert_eq(member_until(workers[2].member), 8);
    member_leave(workers[1].member, &(struct member_place){.step = 8});
    comes_back(&workers[0], 8, STATUS_OK);
    comes_back(&workers[2], 8, STATUS_OK);
    comes_back(&server, MEMBER_NO_STEP, STATUS_OK);
    end_meeting(&server, STATUS_OK);
    end_meeting(&workers[0], STATUS_OK);
    end_meeting(&workers[2], STATUS_OK);
    end_meeting(&workers[3], STATUS_OK);
    assert_rank(&workers[0], 0, 3, 8);
    assert_rank(&workers[2], 1, 3, 8);
    assert_rank(&workers[3], 2, 3, 8);
    end();
}

/* The third worker connects before the server does. The first two workers must find out how many
 * workers the data allow. */
Test(membership, who_is_one_too_many_at_the_beginning_joins_later)
{
    static const int known[] = {1, 3, 4}; /* with the second worker, both wait for the server */
    log_set_sink(count_notes);
    open_new_job(2);
    for (int i = 0; i < 3; i++) {
        joins(&workers[i], MEMBER_WORKER);
        wait_for_notes(known[i]);
    }
    joins(&server, MEMBER_SERVER);
    end_meeting(&server, STATUS_OK);
    for (int i = 0; i < 2; i++) {
        end_meeting(&workers[i], STATUS_OK);
        assert_rank(&workers[i], i, 2, 0);
    }
    wait_until_known(&workers[0], 0);
    limit_workers(3);
    comes_back(&workers[0], 1, STATUS_OK);
    comes_back(&workers[1], 1, STATUS_OK);
    comes_back(&server, MEMBER_NO_STEP, STATUS_OK);
    end_meeting(&server, STATUS_OK);
    for (int i = 0; i < 3; i++) {
        end_meeting(&workers[i], STATUS_OK);
        assert_rank(&workers[i], i, 3, 1);
    }
    end();
}

static _Atomic int interrupts;

static void interrupt(void *context)
{
    (void)context;
    interrupts++;
}

static void two_train(void)
{
    begin(2);
    for (int i = 0; i < 2; i++) {
        joins(&workers[i], MEMBER_WORKER);
    }
    end_meeting(&server, STATUS_OK);
    end_meeting(&workers[0], STATUS_OK);
    end_meeting(&workers[1], STATUS_OK);
}

Test(membership, lost_worker_interrupts_the_others)
{
    two_train();
    member_watch(workers[0].member, interrupt, NULL);
    member_close(&workers[1].member);
    while (interrupts == 0)
        usleep(1000);
    member_watch(workers[0].member, NULL, NULL);
    comes_back(&workers[0], 3, STATUS_TRANSPORT);
    comes_back(&server, MEMBER_NO_STEP, STATUS_TRANSPORT);
    end_meeting(&workers[0], STATUS_OK);
    end_meeting(&server, STATUS_OK);
    assert_rank(&workers[0], 0, 1, 3);
    end();
}

Test(membership, lost_server_ends_the_job)
{
    two_train();
    member_close(&server.member);
    for (int i = 0; i < 2; i++) {
        comes_back(&workers[i], 3, STATUS_TRANSPORT);
        end_meeting(&workers[i], STATUS_TRANSPORT);
    }
    end();
}

/* The only worker with the weights is lost, and the newcomer never had them. */
Test(membership, newcomer_does_not_begin_anew)
{
    two_train();
    comes_back(&workers[0], 5, STATUS_OK);
    comes_back(&workers[1], MEMBER_NO_STEP, STATUS_TRANSPORT);
    comes_back(&server, MEMBER_NO_STEP, STATUS_TRANSPORT);
    end_meeting(&workers[0], STATUS_OK);
    end_meeting(&workers[1], STATUS_OK);
    end_meeting(&server, STATUS_OK);
    assert_rank(&workers[0], 0, 2, 5);
    member_close(&workers[0].member);
    comes_back(&workers[1], MEMBER_NO_STEP, STATUS_TRANSPORT);
    comes_back(&server, MEMBER_NO_STEP, STATUS_TRANSPORT);
    end_meeting(&workers[1], STATUS_TRANSPORT);
    end_meeting(&server, STATUS_TRANSPORT);
    end();
}

/* The first worker is killed before it reports its step, and the newcomer never had weights. */
Test(membership, newcomer_does_not_begin_anew_where_the_first_was_killed)
{
    begin(1);
    joins(&workers[0], MEMBER_WORKER);
    end_meeting(&workers[0], STATUS_OK);
    end_meeting(&server, STATUS_OK);
    joins(&workers[1], MEMBER_WORKER);
    wait_until_known(&workers[0], 0);
    member_close(&workers[0].member);
    comes_back(&server, MEMBER_NO_STEP, STATUS_TRANSPORT);
    end_meeting(&workers[1], STATUS_TRANSPORT);
    end_meeting(&server, STATUS_TRANSPORT);
    end();
}

Test(membership, frames_that_do_not_belong_here_change_nothing)
{
    two_train();
    int stranger = join_nothing(), liar = join_nothing();
    say(stranger, (struct membership_frame){.head.type = MEMBERSHIP_ABORT}, "all is well");
    struct membership_frame frame = {.head.type = MEMBERSHIP_JOIN, .role = MEMBER_WORKER};
    say(liar, frame, "--batch=8\n");
    wait_until_known(&workers[0], 0);
    for (int i = 0; i < 2; i++)
        comes_back(&workers[i], 3, STATUS_OK);
    comes_back(&server, MEMBER_NO_STEP, STATUS_OK);
    for (int i = 0; i < 2; i++) {
        end_meeting(&workers[i], STATUS_OK);
        cr_assert(workers[i].found.rank < 2 && workers[i].found.workers == 3);
    }
    end_meeting(&server, STATUS_OK);

    /* A worker claims to be a server with a high number. */
    frame = (struct membership_frame){.head.type = MEMBERSHIP_READY,
                                      .head.group = workers[0].found.number,
                                      .role = MEMBER_SERVER,
                                      .index = 1000000,
                                      .place.step = 4};
    say(liar, frame, NULL);
    for (int i = 0; i < 2; i++)
        comes_back(&workers[i], 4, STATUS_OK);
    comes_back(&server, MEMBER_NO_STEP, STATUS_OK);
    for (int i = 0; i < 2; i++) {
        end_meeting(&workers[i], STATUS_OK);
        cr_assert(workers[i].found.rank < 2 && workers[i].found.workers == 3);
    }
    end_meeting(&server, STATUS_OK);
    stream_close(&stranger);
    stream_close(&liar);
    end();
}

/* A raw connection that joins as a worker. */
static int join_raw(uint64_t join_after, const char *job)
{
    int socket = join_nothing();
    say(socket,
        (struct membership_frame){
            .head.type = MEMBERSHIP_JOIN, .role = MEMBER_WORKER, .place.step = join_after},
        job);
    return socket;
}

/* The LEAVE frame names no generation, because the worker sent it before it knew of the new one. */
Test(membership, who_leaves_as_the_generation_begins_is_not_waited_for)
{
    begin(2);
    joins(&workers[0], MEMBER_WORKER);
    int raw = join_raw(0, "--batch=8\n");
    end_meeting(&workers[0], STATUS_OK);
    end_meeting(&server, STATUS_OK);
    member_watch(workers[0].member, interrupt, NULL);
    await_frame(raw, MEMBERSHIP_GENERATION, STATUS_OK);
    say(raw, (struct membership_frame){.head.type = MEMBERSHIP_LEAVE, .place.step = MEMBER_NO_STEP},
        NULL);
    while (interrupts == 0)
        usleep(1000);
    cr_assert(member_over(workers[0].member) && !member_ended(workers[0].member));
    member_watch(workers[0].member, NULL, NULL);
    comes_back(&workers[0], MEMBER_NO_STEP, STATUS_TRANSPORT);
    comes_back(&server, MEMBER_NO_STEP, STATUS_TRANSPORT);
    end_meeting(&workers[0], STATUS_OK);
    end_meeting(&server, STATUS_OK);
    assert_rank(&workers[0], 0, 1, 0);
    stream_close(&raw);
    end();
}

Test(membership, late_server_ends_the_job)
{
    timeout_ms = 3000;
    two_train();
    for (int i = 0; i < 2; i++)
        comes_back(&workers[i], 3, STATUS_TRANSPORT);
    for (int i = 0; i < 2; i++)
        end_meeting(&workers[i], STATUS_TRANSPORT);
    end();
}

/* Two workers and a server continue after step 3, and end. */
static void all_go_on(void)
{
    for (int i = 0; i < 2; i++)
        comes_back(&workers[i], 3, STATUS_OK);
    comes_back(&server, MEMBER_NO_STEP, STATUS_OK);
    for (int i = 0; i < 2; i++) {
        end_meeting(&workers[i], STATUS_OK);
        assert_rank(&workers[i], workers[i].found.rank, 2, 3);
    }
    end_meeting(&server, STATUS_OK);
    end();
}

/* The coordinator is blocked for longer than the time-out. The beats that its members sent
 * meanwhile are still unread. */
Test(membership, coordinator_that_was_stopped_loses_nobody)
{
    struct capture capture;
    timeout_ms = 3000;
    stall_warning_ms = 2000;
    two_train();
    capture_start(&capture);
    monitor_enter(&coordinator->monitor);
    usleep(4000000);
    monitor_leave(&coordinator->monitor);
    all_go_on();
    capture_stop(&capture);
    cr_assert(!strstr(capture.text, "sign of life"), "%s", capture.text);
}

/* A member is stopped for the same time, as the first server's own member is. */
Test(membership, coordinator_that_was_stopped_does_not_lose_who_was_stopped_with_it)
{
    static const struct membership_frame beat = {.head.type = MEMBERSHIP_BEAT};
    timeout_ms = 3000;
    begin(2);
    joins(&workers[0], MEMBER_WORKER);
    int raw = join_raw(0, "--batch=8\n");
    end_meeting(&workers[0], STATUS_OK);
    end_meeting(&server, STATUS_OK);
    monitor_enter(&coordinator->monitor);
    usleep(4000000);
    monitor_leave(&coordinator->monitor);
    usleep(500000); /* the coordinator looks before the member is heard */
    for (int i = 0; i < 5; i++) {
        say(raw, beat, NULL);
        usleep(100000);
    }
    cr_assert(!member_over(workers[0].member));
    stream_close(&raw);
    end();
}

/* Only workers with weights know the limit. The newcomer is refused, and the other workers
 * continue. */
Test(membership, newcomer_beyond_what_the_data_allow_is_refused)
{
    two_train();
    joins(&workers[2], MEMBER_WORKER);
    wait_until_known(&workers[0], 0);
    limit_workers(2);
    for (int i = 0; i < 2; i++)
        comes_back(&workers[i], 3, STATUS_OK);
    comes_back(&server, MEMBER_NO_STEP, STATUS_OK);
    end_meeting(&workers[2], STATUS_USAGE);
    end_meeting(&server, STATUS_OK);
    for (int i = 0; i < 2; i++) {
        end_meeting(&workers[i], STATUS_OK);
        assert_rank(&workers[i], workers[i].found.rank, 2, 3);
    }
    end();
}

/* As the first server's own member, which connects after the servers have been summoned. */
Test(membership, who_comes_after_the_end_reads_why_the_job_has_ended)
{
    struct capture capture;
    open_new_job(1);
    coordinator_end(coordinator, STATUS_IO, "the disk is full");
    capture_start(&capture);
    joins(&server, MEMBER_SERVER);
    end_meeting(&server, STATUS_IO);
    capture_stop(&capture);
    cr_assert(strstr(capture.text, "error: the disk is full"), "%s", capture.text);
    end();
}

/* The first worker leaves before the job begins. The next worker's options become the job's. */
Test(membership, job_that_has_not_begun_is_forgotten_with_its_last_worker)
{
    struct coordinator_job job;
    begin(1);
    int first = join_raw(9, "--batch=8\n"); /* joins only after step 9, so the job does not begin */
    await_frame(first, MEMBERSHIP_NOTE, STATUS_OK);
    int other = join_raw(0, "--batch=16\n");
    await_frame(other, MEMBERSHIP_END, STATUS_USAGE);
    stream_close(&other);
    say(first, (struct membership_frame){.head.type = MEMBERSHIP_LEAVE}, NULL);
    await_close(first);
    stream_close(&first);
    other = join_raw(0, "--batch=16\n");
    await_frame(other, MEMBERSHIP_GENERATION, STATUS_OK);
    coordinator_wait_job(coordinator, &job);
    cr_assert_str_eq(job.options, "--batch=16\n");
    end_meeting(&server, STATUS_OK);
    stream_close(&other);
    end();
}

/* A server with a job refuses another one, and the workers of the other job read the reason. */
Test(membership, server_that_has_a_job_is_no_other_ones)
{
    struct coordinator *other, *idle;
    struct coordinator_job job;
    const struct coordinator_options options = options_for(1); /* at other ports */
    begin(2);
    joins(&workers[0], MEMBER_WORKER);
    cr_assert_eq(coordinator_open(&idle, &options, &new_job), STATUS_OK);
    cr_assert_eq(coordinator_summon(coordinator, idle->address, 1, "--batch=8\n"), STATUS_OK);
    coordinator_wait_job(idle, &job);
    cr_assert(job.summoned && job.index == 1);
    cr_assert_str_eq(job.address, listens_at);

    struct coordinator *first = coordinator;
    open_job(&options, &new_job);
    int raw = join_raw(0, "--batch=8\n");
    coordinator_wait_job(coordinator, &job);
    other = coordinator;
    coordinator = first;
    cr_assert_eq(coordinator_summon(first, other->address, 1, "--batch=8\n"), STATUS_USAGE);
    end_meeting(&workers[0], STATUS_USAGE);
    end_meeting(&server, STATUS_USAGE);
    stream_close(&raw);
    coordinator_close(&other);
    coordinator_close(&idle);
    end();
}

/* Part of the frame may have been sent. The receiver would take the next frame for its remainder.
 */
Test(membership, frame_that_cannot_leave_closes_the_connection)
{
    int pair[2];
    char bytes[4096] = {0};
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    while (send(pair[0], bytes, sizeof bytes, MSG_NOSIGNAL) > 0)
        ;
    /* It does not wait for a receiver that reads nothing: others wait for its sender. */
    cr_assert_eq(
        membership_send(pair[0], (struct membership_frame){.head.type = MEMBERSHIP_BEAT}, NULL),
        EAGAIN);
    while (recv(pair[1], bytes, sizeof bytes, 0) > 0)
        ;
    cr_assert_eq(recv(pair[1], bytes, sizeof bytes, 0), 0);
    cr_assert_eq(recv(pair[0], bytes, sizeof bytes, 0), 0);
    close(pair[0]);
    close(pair[1]);
}

/* The table of member.h: a frame that is wrong in a state closes the connection of its sender and
 * does not affect other members. */
Test(membership, what_does_not_belong_in_a_state_loses_who_says_it)
{
    static const enum membership_type types[] = {
        MEMBERSHIP_JOIN,  MEMBERSHIP_SUMMON,     MEMBERSHIP_READY,  MEMBERSHIP_DONE,
        MEMBERSHIP_ABORT, MEMBERSHIP_GENERATION, MEMBERSHIP_CHANGE, MEMBERSHIP_OVER,
        MEMBERSHIP_NOTE,  MEMBERSHIP_END,        MEMBERSHIP_LEAVE,  MEMBERSHIP_RETURN};
    two_train();
    for (size_t i = 0; i < 2 * sizeof types / sizeof *types; i++) {
        struct membership_frame frame = {.head = {.type = types[i / 2], .value = STATUS_WRONG},
                                         .role = i % 2 ? MEMBER_WORKER : 9};
        int socket; /* NEW, or WAITING for a step that is never reached */
        if (i % 2)
            socket = join_raw(1000, "--batch=8\n");
        else
            socket = join_nothing();
        say(socket, frame, "this");
        if (i % 2 == 0 && frame.head.type == MEMBERSHIP_SUMMON)
            await_frame(socket, MEMBERSHIP_END, STATUS_USAGE); /* the server has a job */
        await_close(socket);
        stream_close(&socket);
    }
    cr_assert(!member_over(workers[0].member) && !member_over(server.member));
    all_go_on();
}

/* An idle server refuses a job from a stranger. */
Test(membership, without_the_token_no_frame_counts)
{
    static const struct membership_frame summon = {.head.type = MEMBERSHIP_SUMMON, .index = 1};
    struct membership_reader reader;
    int stranger;
    begin(1);
    cr_assert_eq(membership_connect(listens_at, TOKEN + 1, LONG_MS, NULL, NULL, &stranger),
                 STATUS_OK);
    membership_send(stranger, summon, "--batch=9\n"); /* may be refused before it is sent */
    cr_assert_eq(read_until(stranger, MEMBERSHIP_END, &reader), CONTROL_MESSAGE);
    cr_assert_eq(reader.frame.head.value, STATUS_USAGE);
    cr_assert(strstr(reader.text, "gave another token than the server"));
    cr_assert_eq(reader.frame.head.job, membership_job(TOKEN + 1, 0),
                 "it must not learn the token");
    stream_close(&stranger);
    joins(&workers[0], MEMBER_WORKER);
    end_meeting(&workers[0], STATUS_OK);
    end_meeting(&server, STATUS_OK);
    assert_rank(&workers[0], 0, 1, 0);
    end();
}

/* A connection of which `hello` is the first message. */
static int connect_with(const void *hello, size_t bytes)
{
    char host[ADDRESS_HOST_BYTES];
    union address address;
    const char *why;
    int port, count, socket;
    cr_assert(address_parse(listens_at, host, sizeof host, &port));
    cr_assert(address_resolve(host, port, 0, &address, &count, &why));
    cr_assert_eq(stream_connect(&address, LONG_MS, &socket), 0);
    cr_assert_eq(stream_send(socket, hello, bytes, LONG_MS), 0);
    return socket;
}

/* A member with protocol version 1 gets the reason in the format of that version. */
Test(membership, a_member_of_an_older_version_is_refused)
{
    struct {
        uint64_t magic;
        uint32_t protocol;
        int32_t rank;
        unsigned char others[112];
    } hello = {.magic = CONTROL_MAGIC, .protocol = 1};
    struct {
        uint64_t magic;
        uint32_t type, text_bytes, generation;
        int32_t status;
        unsigned char others[120];
    } last;
    char text[MEMBERSHIP_TEXT_BYTES] = "";
    begin(1);
    int old = connect_with(&hello, sizeof hello);
    cr_assert_eq(stream_receive(old, &last, sizeof last, LONG_MS), 0);
    cr_assert(last.magic == MEMBERSHIP_MAGIC && last.type == 11 && last.status == STATUS_USAGE);
    cr_assert(last.text_bytes < sizeof text);
    cr_assert_eq(stream_receive(old, text, last.text_bytes, LONG_MS), 0);
    cr_assert(strstr(text, "start all from one build of psring"), "%s", text);
    stream_close(&old);
    coordinator_end(coordinator, STATUS_USAGE, "");
    end_meeting(&server, STATUS_USAGE);
    end();
}

/* Connections that send beats but never join take all seats. A further connection gets the reason.
 * Later the seats are free again. */
Test(membership, a_seat_is_held_for_a_bounded_time)
{
    enum { SEATS = 4 };
    static const struct membership_frame beat = {.head.type = MEMBERSHIP_BEAT};
    int idle[SEATS], late;
    open_new_job(1);
    monitor_enter(&coordinator->monitor);
    coordinator->seats_most = SEATS;
    monitor_leave(&coordinator->monitor);
    for (int i = 0; i < SEATS; i++) {
        idle[i] = join_nothing();
        say(idle[i], beat, NULL);
    }
    for (bool seated = false; !seated;) {
        monitor_enter(&coordinator->monitor);
        seated = coordinator->count == SEATS;
        monitor_leave(&coordinator->monitor);
        usleep(1000);
    }
    late = join_nothing();
    await_refusal(late, STATUS_UNSUPPORTED, "no seat left: 4 processes are connected, at most 4");
    monitor_enter(&coordinator->monitor);
    for (int i = 0; i < coordinator->count; i++) /* pretend that this time has passed */
        coordinator->seats[i]->came_ns -= MEMBERSHIP_JOIN_MS * NS_PER_MS;
    monitor_leave(&coordinator->monitor);
    for (int i = 0; i < SEATS; i++) {
        await_refusal(idle[i], STATUS_TIMEOUT, "did not ask to take part in time");
    }
    joins(&server, MEMBER_SERVER);
    joins(&workers[0], MEMBER_WORKER);
    end_meeting(&workers[0], STATUS_OK);
    end_meeting(&server, STATUS_OK);
    end();
}

/* Another program listens where the worker looks for its server, and speaks the protocol. */
Test(membership, a_generation_with_impossible_numbers_is_refused)
{
    static const struct {
        int32_t index, workers, servers;
    } wrong[] = {{-1, 1, 1},        {2, 1, 1},         {0, 0, 1},         {0, 1, 0},   {0, -1, 2},
                 {0, 1, INT32_MAX}, {0, INT32_MAX, 1}, {INT32_MAX, 1, 1}, {0, 1025, 1}};
    union address any = address_loopback();
    struct listener listener;
    cr_assert_eq(listener_open(&listener, &any, 0), 0);
    address_uri(&listener.address, listens_at);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct hello hello;
        struct capture capture;
        int socket;
        open_one(&workers[0], MEMBER_WORKER, 0);
        cr_assert_eq(listener_wait(&listener, 0, NULL, 0, &hello, &socket, NULL), LISTENER_HELLO);
        capture_start(&capture);
        start_meeting(&workers[0]);
        await_frame(socket, MEMBERSHIP_JOIN, STATUS_OK);
        say(socket,
            (struct membership_frame){.head = {.type = MEMBERSHIP_GENERATION, .group = 1},
                                      .index = wrong[i].index,
                                      .workers = wrong[i].workers,
                                      .servers = wrong[i].servers},
            NULL);
        end_meeting(&workers[0], STATUS_PROTOCOL);
        capture_stop(&capture);
        cr_assert(strstr(capture.text, "expected at most 1024 of each"), "%s", capture.text);
        member_close(&workers[0].member);
        stream_close(&socket);
    }
    listener_close(&listener);
}

/* As a stopped server. Beats that it does not read must not fill the connection. */
Test(membership, a_silent_coordinator_gets_few_beats)
{
    enum { BEATS_MOST = MEMBERSHIP_QUIET_MS / MEMBERSHIP_BEAT_MS + 1 };
    union address any = address_loopback();
    struct membership_reader reader = {0};
    struct listener listener;
    struct hello hello;
    struct capture capture;
    int socket, beats = 0;
    cr_assert_eq(listener_open(&listener, &any, 0), 0);
    address_uri(&listener.address, listens_at);
    member_timeout_ms = 2 * MEMBERSHIP_QUIET_MS;
    capture_start(&capture);
    joins(&workers[0], MEMBER_WORKER);
    cr_assert_eq(listener_wait(&listener, 0, NULL, 0, &hello, &socket, NULL), LISTENER_HELLO);
    end_meeting(&workers[0], STATUS_TRANSPORT);
    capture_stop(&capture);
    cr_assert(strstr(capture.text, "has not given a sign of life for"), "%s", capture.text);
    member_close(&workers[0].member);
    for (enum control_read got = CONTROL_NOTHING; got != CONTROL_CLOSED;) {
        got = membership_read(&reader, socket);
        beats += got == CONTROL_MESSAGE && reader.frame.head.type == MEMBERSHIP_BEAT;
    }
    cr_assert(beats > 0 && beats <= BEATS_MOST, "%d beats", beats);
    stream_close(&socket);
    listener_close(&listener);
}

/* Any process can connect. The server reports one of them. */
Test(membership, processes_that_are_turned_away_are_reported_once)
{
    struct capture capture;
    struct hello hello = hello_from(0, 0, membership_job(TOKEN, 0));
    begin(1);
    capture_start(&capture);
    for (int i = 0; i < 30; i++) {
        hello.head.protocol = CONTROL_PROTOCOL + i % 3; /* or another version of psring, or token */
        hello.version[0] = i % 2 ? 'x' : PSRING_VERSION[0];
        hello.head.job = i % 2 ? membership_job(TOKEN, 0) : 5;
        int stranger = connect_with(&hello, sizeof hello);
        await_close(stranger);
        stream_close(&stranger);
    }
    size_t lines = capture_stop(&capture);
    cr_assert_eq(lines, 1, "%s", capture.text);
    coordinator_end(coordinator, STATUS_USAGE, "");
    end_meeting(&server, STATUS_USAGE);
    end();
}

Test(membership, generations_without_a_step_end_the_job)
{
    two_train();
    for (int turn = 1; turn <= 3; turn++) {
        enum status expected = turn < 3 ? STATUS_OK : STATUS_TRANSPORT;
        for (int i = 0; i < 2; i++)
            comes_back(&workers[i], 0, STATUS_TIMEOUT);
        comes_back(&server, MEMBER_NO_STEP, STATUS_TIMEOUT);
        end_meeting(&workers[0], expected);
        end_meeting(&workers[1], expected);
        end_meeting(&server, expected);
    }
    end();
}
