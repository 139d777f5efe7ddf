/* Durable jobs: the coordinator is closed and opened again with its record, as after a kill.
 * Members are threads of this process and do not train. test_restart.sh has processes that train.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "experiments/config/config.h"
#include "experiments/elastic/elastic.h"
#include "tests/elastic/members.h"
#include "tests/lib/capture.h"

enum { FIRST_ID = 1000 };

static char folder[64];
static int servers = 1;
static uint32_t first_id = FIRST_ID; /* of the job at `listens_at` */
static struct one others[2];         /* its other servers */

static void other_joins(int i)
{
    open_with(&others[i], MEMBER_SERVER, 1 + i, 0);
    start_meeting(&others[i]);
}

static void returns(struct one *one, uint64_t step)
{
    comes_back(one, step, STATUS_OK);
}

static void assert_place(const struct one *one, uint32_t number, int rank, int count, uint64_t step)
{
    cr_assert_eq(one->found.number, number, "generation %u, expected %u", one->found.number,
                 number);
    cr_assert(one->found.durable);
    assert_rank(one, rank, count, step);
}

/* Chooses a port. Below the ephemeral range, no member connects to itself while none listens. */
static void choose_address(void)
{
    for (int i = 0; !listens_at[0]; i++) {
        struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        int port = 20000 + (getpid() * 7 + i) % 12000, probe = socket(AF_INET, SOCK_STREAM, 0);
        in.sin_port = htons((uint16_t)port);
        if (bind(probe, (struct sockaddr *)&in, sizeof in) == 0)
            snprintf(listens_at, sizeof listens_at, "tcp://127.0.0.1:%d", port);
        close(probe);
    }
}

static void read_record(struct job_record *record)
{
    cr_assert_eq(job_load(folder, TOKEN, record), STATUS_OK);
}

static void open_coordinator(int workers_first)
{
    struct job_record record;
    struct coordinator_options options = options_for(workers_first);
    options.checkpoint = folder;
    read_record(&record);
    if (record.generation == 0)
        record.first_id = first_id;
    open_job(&options, &record);
    if (record.generation == 0)
        coordinator_set_servers(coordinator, servers);
}

/* A killed coordinator sends no END. */
static void restart(int workers_first)
{
    coordinator_close(&coordinator);
    member_close(&server.member);
    open_coordinator(workers_first);
    open_one(&server, MEMBER_SERVER, 0);
}

static void wait_for_seats(int count)
{
    for (bool there = false; !there; usleep(1000)) {
        int waiting = 0;
        monitor_enter(&coordinator->monitor);
        for (int i = 0; i < coordinator->count; i++)
            waiting += coordinator->seats[i]->state == SEAT_WAITING;
        there = waiting >= count;
        monitor_leave(&coordinator->monitor);
    }
}

/* The generation begins, with the first `count` workers and all servers. */
static void all_begin(int count)
{
    for (int i = 0; i < count; i++)
        end_meeting(&workers[i], STATUS_OK);
    end_meeting(&server, STATUS_OK);
    for (int i = 0; i < servers - 1; i++)
        end_meeting(&others[i], STATUS_OK);
}

/* Pretends that the time in which workers can return has passed. */
static void wait_no_longer(void)
{
    monitor_enter(&coordinator->monitor);
    cr_assert_neq(coordinator->return_by_ns, 0, "it does not wait");
    coordinator->return_by_ns = 1;
    monitor_leave(&coordinator->monitor);
}

/* Two new workers join, and the coordinator waits no longer for those that are lost. */
static void newcomers_instead(void)
{
    for (int i = 0; i < 2; i++)
        joins(&workers[i], MEMBER_WORKER);
    wait_for_seats(3);
    wait_no_longer();
}

/* Begins generation 1 with `count` workers. */
static void begin(int count)
{
    folder_new(folder);
    choose_address();
    open_coordinator(count);
    joins(&server, MEMBER_SERVER);
    for (int i = 0; i < servers - 1; i++)
        other_joins(i);
    wait_for_seats(servers);
    for (int i = 0; i < count; i++) {
        joins(&workers[i], MEMBER_WORKER);
        if (i + 1 < count)
            wait_for_seats(servers + 1 + i); /* the ranks follow the order of joining */
    }
    all_begin(count);
    for (int i = 0; i < count; i++)
        assert_place(&workers[i], 1, i, count, 0);
}

static void end_durable(void)
{
    for (int i = 0; i < servers - 1; i++)
        member_close(&others[i].member);
    end();
    folder_free(folder);
}

Test(durable, workers_return_to_a_later_generation_and_the_one_ahead_is_first)
{
    begin(3);
    uint64_t token = workers[0].found.token;
    restart(3);
    returns(&workers[0], 6);
    returns(&workers[2], 6);
    returns(&workers[1], 7);
    returns(&server, MEMBER_NO_STEP);
    all_begin(3);
    assert_place(&workers[1], 2, 0, 3, 7);
    assert_place(&workers[0], 2, 1, 3, 7); /* it was first before, too */
    assert_place(&workers[2], 2, 2, 3, 7);
    cr_assert_neq(workers[0].found.token, token);
    end_durable();
}

/* The members wait for the next generation, and the server dies twice. */
Test(durable, members_that_wait_return_as_often_as_necessary)
{
    begin(2);
    for (int i = 0; i < 2; i++)
        returns(&workers[i], 4);
    wait_for_seats(2);
    for (int turn = 0; turn < 2; turn++) {
        restart(2);
        wait_for_seats(2);
    }
    returns(&server, MEMBER_NO_STEP);
    all_begin(2);
    for (int i = 0; i < 2; i++)
        assert_place(&workers[i], 2, i, 2, 4);
    end_durable();
}

/* A worker of an older generation has older weights, or newer ones of a past that was given up. */
Test(durable, who_is_not_of_the_last_generation_is_refused)
{
    begin(3);
    struct one *left_behind = &workers[2];
    monitor_enter(&coordinator->monitor);
    for (int i = 0; i < coordinator->count; i++) { /* as when its host cannot be reached */
        if (coordinator->seats[i]->rank == 2 && seat_is_worker(coordinator->seats[i]))
            shutdown(coordinator->seats[i]->socket, SHUT_RDWR);
    }
    monitor_leave(&coordinator->monitor);
    while (!member_over(workers[0].member))
        usleep(1000);
    returns(&server, MEMBER_NO_STEP);
    for (int i = 0; i < 2; i++)
        returns(&workers[i], 5);
    all_begin(2);
    for (int i = 0; i < 2; i++)
        assert_place(&workers[i], 2, i, 2, 5);
    restart(3);
    returns(left_behind, 99);
    end_meeting(left_behind, STATUS_USAGE);
    returns(&server, MEMBER_NO_STEP);
    for (int i = 0; i < 2; i++)
        returns(&workers[i], 6);
    all_begin(2);
    for (int i = 0; i < 2; i++)
        assert_place(&workers[i], 3, i, 2, 6);
    end_durable();
}

/* Opens a connection and sends such a frame. */
static int join_raw(struct membership_frame frame, uint32_t job)
{
    int socket = join_nothing();
    frame.head.job = membership_job(TOKEN, job);
    say(socket, frame, "--batch=8\n");
    return socket;
}

static int return_raw(uint32_t id, uint32_t generation, uint64_t step)
{
    return join_raw(
        (struct membership_frame){.head = {.type = MEMBERSHIP_RETURN, .group = generation},
                                  .role = MEMBER_WORKER,
                                  .id = id,
                                  .place.step = step},
        FIRST_ID);
}

Test(durable, a_member_returns_once_and_with_a_known_generation)
{
    begin(2);
    restart(2);
    static const char words[] = "continued without this worker";
    await_refusal(return_raw(FIRST_ID + 7, 1, 5), STATUS_USAGE, words); /* unknown id */
    await_refusal(return_raw(FIRST_ID + 1, 2, 5), STATUS_USAGE, words); /* a later generation */
    await_refusal(return_raw(0, 1, 5), STATUS_USAGE, words);
    int earlier = return_raw(FIRST_ID + 1, 1, 9); /* a connection that is lost, unknown to us */
    wait_for_seats(1);
    returns(&workers[0], 5);
    await_close(earlier);
    stream_close(&earlier);
    returns(&workers[1], 6);
    returns(&server, MEMBER_NO_STEP);
    all_begin(2);
    assert_place(&workers[1], 2, 0, 2, 6);
    assert_place(&workers[0], 2, 1, 2, 6);
    end_durable();
}

/* One of two workers has died with the server. */
Test(durable, a_worker_that_does_not_return_in_time_is_lost)
{
    begin(2);
    member_close(&workers[1].member);
    restart(2);
    returns(&workers[0], 6);
    returns(&server, MEMBER_NO_STEP);
    wait_for_seats(2);
    wait_no_longer();
    all_begin(1);
    assert_place(&workers[0], 2, 0, 1, 6);
    end_durable();
}

/* The server has the state that worker 0 sent after step 40. */
Test(durable, without_workers_the_server_has_the_state_to_continue_from)
{
    struct job_record record;
    begin(2);
    for (int i = 0; i < 2; i++)
        member_close(&workers[i].member);
    restart(2);
    returns(&server, 40);
    newcomers_instead();
    all_begin(2);
    for (int i = 0; i < 2; i++)
        assert_place(&workers[i], 2, workers[i].found.rank, 2, 40);
    read_record(&record);
    cr_assert_eq(record.generation, 2);
    cr_assert_eq(record.images, 8 * 41, "found %d", (int)record.images);

    /* The server lives, and all workers die. */
    for (int i = 0; i < 2; i++)
        member_close(&workers[i].member);
    while (!member_over(server.member))
        usleep(1000);
    returns(&server, 50);
    newcomers_instead();
    all_begin(2);
    for (int i = 0; i < 2; i++)
        assert_place(&workers[i], 3, workers[i].found.rank, 2, 50);
    end_durable();
}

/* The file is older than the weights of the only worker that is left. */
Test(durable, a_worker_that_returns_is_preferred_to_the_file)
{
    begin(1);
    restart(1);
    returns(&server, 40);
    wait_for_seats(1);
    joins(&workers[1], MEMBER_WORKER); /* a newcomer does not begin from the file */
    wait_for_seats(2);
    returns(&workers[0], 47);
    all_begin(2);
    assert_place(&workers[0], 2, 0, 2, 47);
    end_durable();
}

/* Two servers die before they have a record. The first of them is not started again. */
Test(durable, servers_without_a_record_are_summoned_again)
{
    struct config config = {0};
    struct coordinator *again;
    struct coordinator_job job;
    struct coordinator_options options = options_for(1); /* at another port */
    struct capture capture;
    char list[3 * MEMBER_ADDRESS_BYTES];
    options.checkpoint = folder;
    cr_assert_eq(coordinator_open(&again, &options, &(struct job_record){.first_id = 1}),
                 STATUS_OK);
    servers = 3;
    begin(1);
    capture_start(&capture);
    /* nothing listens at port 1 */
    snprintf(list, sizeof list, "%s,tcp://127.0.0.1:1,%s", listens_at, again->address);
    config.elastic.join = list;
    cr_assert_eq(coordinator_summon_lacking(coordinator, &config), STATUS_OK);
    for (int i = 0; i < 2; i++)
        member_close(&others[i].member);
    coordinator_wait_job(again, &job);
    cr_assert(job.summoned && job.index == 2 && job.generation == 1);
    cr_assert_str_eq(job.address, listens_at);
    cr_assert_str_eq(job.options, "--batch=8\n");
    for (int i = 0; i < 2; i++)
        other_joins(i);
    returns(&server, 5);
    returns(&workers[0], 5);
    all_begin(1);
    assert_place(&workers[0], 2, 0, 1, 5);
    capture_stop(&capture);
    cr_assert(strstr(capture.text, "summoned server 2, tcp://127.0.0.1:"), "%s", capture.text);
    cr_assert(!strstr(capture.text, "summoned server 1"), "%s", capture.text);
    for (int i = 1; i <= 2; i++) {
        char line[32];
        snprintf(line, sizeof line, "server %d on ", i);
        const char *back = strstr(capture.text, line);
        cr_assert(back && strstr(back, "has come back"), "%s", capture.text);
    }
    coordinator_close(&again);
    end_durable();
}

/* Pretends that all who wait have been silent for too long. */
static void all_fall_silent(void)
{
    monitor_enter(&coordinator->monitor);
    for (int i = 0; i < coordinator->count; i++) {
        if (coordinator->seats[i]->state == SEAT_WAITING)
            coordinator->seats[i]->heard_ns -= coordinator->options.timeout_ms * NS_PER_MS;
    }
    monitor_leave(&coordinator->monitor);
}

/* They may only be stopped. The worker gets a reason; the server can return. */
Test(durable, a_silent_server_may_return)
{
    const struct membership_frame frame = {.head.type = MEMBERSHIP_JOIN, .role = MEMBER_SERVER};
    struct membership_reader reader;
    begin(2);
    restart(2);
    int silent_server = join_raw(frame, FIRST_ID), silent_worker = return_raw(FIRST_ID + 1, 1, 5);
    wait_for_seats(2);
    all_fall_silent();
    await_refusal(silent_worker, STATUS_TIMEOUT, "was silent for too long");
    cr_assert_eq(read_until(silent_server, MEMBERSHIP_END, &reader), CONTROL_CLOSED);
    stream_close(&silent_server);
    returns(&server, MEMBER_NO_STEP);
    for (int i = 0; i < 2; i++)
        returns(&workers[i], 6);
    all_begin(2);
    end_durable();
}

/* A server that is started again may be faster than the news of its end. If the earlier process
 * lives, it ends, and the job continues. */
Test(durable, of_two_processes_with_one_server_number_the_earlier_one_ends)
{
    static const char words[] = "another process";
    struct one earlier;
    struct membership_frame frame = {.head = {.type = MEMBERSHIP_RETURN, .group = 1},
                                     .role = MEMBER_SERVER,
                                     .index = 1,
                                     .id = FIRST_ID + 1};
    servers = 2;
    begin(1);
    earlier = others[0];
    other_joins(0);
    while (!member_over(workers[0].member))
        usleep(1000);
    cr_assert(!member_ended(workers[0].member));
    start_meeting(&earlier);
    end_meeting(&earlier, STATUS_USAGE);
    returns(&server, MEMBER_NO_STEP);
    returns(&workers[0], 3);
    all_begin(1);
    assert_place(&workers[0], 2, 0, 1, 3);
    /* The earlier process has not heard of the other one, and returns. */
    await_refusal(join_raw(frame, FIRST_ID), STATUS_USAGE, words);
    /* The coordinator restarts, and the earlier process is the first to return. */
    restart(1);
    int first = join_raw(frame, FIRST_ID);
    wait_for_seats(1);
    returns(&others[0], MEMBER_NO_STEP);
    await_refusal(first, STATUS_USAGE, words);
    await_refusal(join_raw(frame, FIRST_ID), STATUS_USAGE, words);
    returns(&server, MEMBER_NO_STEP);
    returns(&workers[0], 4);
    all_begin(1);
    assert_place(&workers[0], 3, 0, 1, 4);
    member_close(&earlier.member);
    end_durable();
}

/* Another job begins at the same address and with the same token. */
Test(durable, members_of_an_earlier_job_do_not_enter_the_next_one)
{
    struct member_options options = {.token = TOKEN,
                                     .address = listens_at,
                                     .role = MEMBER_SERVER,
                                     .durable = true,
                                     .first_id = FIRST_ID,
                                     .timeout_ms = LONG_MS,
                                     .startup_timeout_ms = LONG_MS};
    struct one *worker = &workers[0], *earlier = &workers[1], old_server = {0};
    struct capture capture;
    const char *words = "belongs to an earlier job";
    begin(1);
    *earlier = *worker;
    member_close(&server.member);
    coordinator_close(&coordinator);
    folder_free(folder);
    folder_new(folder);
    first_id = FIRST_ID + 100;
    open_coordinator(1);
    capture_start(&capture);
    returns(earlier, 5);
    end_meeting(earlier, STATUS_USAGE);
    capture_stop(&capture);
    cr_assert(strstr(capture.text, words), "%s", capture.text);
    await_refusal(join_raw((struct membership_frame){.head.type = MEMBERSHIP_JOIN}, FIRST_ID),
                  STATUS_USAGE, words);
    /* A server that knew the job from its own record. */
    cr_assert_eq(member_open(&old_server.member, &options), STATUS_OK);
    returns(&old_server, MEMBER_NO_STEP);
    end_meeting(&old_server, STATUS_USAGE);
    member_close(&old_server.member);
    options.first_id = first_id;
    cr_assert_eq(member_open(&server.member, &options), STATUS_OK);
    returns(&server, MEMBER_NO_STEP);
    wait_for_seats(1);
    joins(worker, MEMBER_WORKER);
    end_meeting(worker, STATUS_OK);
    end_meeting(&server, STATUS_OK);
    assert_place(worker, 1, 0, 1, 0);
    end_durable();
}

/* It keeps the number in its record, so that it can show it when it is started again. */
Test(durable, a_summoned_server_knows_its_job)
{
    struct coordinator *idle;
    struct coordinator_job job;
    const struct coordinator_options options = {.token = TOKEN,
                                                .address = "tcp://127.0.0.1:0",
                                                .timeout_ms = LONG_MS,
                                                .startup_timeout_ms = LONG_MS,
                                                .checkpoint = folder};
    const struct job_record own = {.first_id = FIRST_ID + 100};
    begin(1);
    cr_assert_eq(coordinator_open(&idle, &options, &own), STATUS_OK);
    const char *place = idle->address;
    cr_assert_eq(coordinator_summon(coordinator, place, 1, "--batch=8\n"), STATUS_OK);
    coordinator_wait_job(idle, &job);
    cr_assert(job.summoned && job.first_id == FIRST_ID, "found %u", job.first_id);
    /* It may come again, but not for another job. */
    cr_assert_eq(coordinator_summon(coordinator, place, 1, "--batch=8\n"), STATUS_OK);
    monitor_enter(&coordinator->monitor);
    coordinator->first_id++;
    monitor_leave(&coordinator->monitor);
    cr_assert_eq(coordinator_summon(coordinator, place, 1, "--batch=8\n"), STATUS_USAGE);
    coordinator_close(&idle);
    end_durable();
}

static void *train_to_the_end(void *argument)
{
    struct one *one = argument;
    one->place = (struct member_place){.step = 8, .images = 72};
    one->status = member_done(one->member, &one->place, NULL);
    return NULL;
}

static void wait_for_done(int count)
{
    struct job_record record;
    for (record.done = 0; record.done < count; usleep(1000))
        read_record(&record);
    cr_assert_eq(record.images, 72 * count);
}

/* Returns when the record says that training has ended. */
static void finish(struct one *one)
{
    cr_assert_eq(pthread_create(&one->thread, NULL, train_to_the_end, one), 0);
    wait_for_done(1);
}

/* All images of two workers: 9 steps of 8 images each. */
static void assert_all_images(const struct capture *capture)
{
    cr_assert(strstr(capture->text, "the weights contain 144 images"), "%s", capture->text);
}

/* The server dies when one worker has trained to the end. The other one lacks the last answer. */
Test(durable, training_that_has_ended_stays_ended)
{
    struct capture capture;
    begin(2);
    finish(&workers[0]);
    capture_start(&capture);
    restart(2);
    returns(&server, 5);
    returns(&workers[1], 7);
    end_meeting(&workers[0], STATUS_OK);
    end_meeting(&workers[1], STATUS_STOPPED);
    end_meeting(&server, STATUS_STOPPED);
    capture_stop(&capture);
    assert_all_images(&capture);
    cr_assert(strstr(capture.text, "the weights contain 72 images of this worker"), "%s",
              capture.text);
    end_durable();
}

static int done_raw(uint32_t id)
{
    return join_raw((struct membership_frame){.head = {.type = MEMBERSHIP_DONE, .group = 1},
                                              .role = MEMBER_WORKER,
                                              .id = id,
                                              .place = {.step = 8, .images = 72}},
                    FIRST_ID);
}

/* A worker repeats this on a new connection, because the answer was lost, or the message. */
Test(durable, training_to_the_end_is_counted_once)
{
    struct capture capture;
    begin(2);
    capture_start(&capture);
    int lost = done_raw(FIRST_ID + 1); /* its earlier message is lost, unknown to the coordinator */
    while (!member_over(workers[0].member)) /* there its own thread finds the connection closed */
        usleep(1000);
    cr_assert(!member_over(workers[1].member), "no generation is over because of that");
    int again = done_raw(FIRST_ID + 1);
    await_close(lost);
    stream_close(&lost);
    restart(2); /* with the record */
    stream_close(&again);
    again = done_raw(FIRST_ID + 1);
    returns(&server, 9);
    int other = done_raw(FIRST_ID + 2);
    await_frame(again, MEMBERSHIP_END, STATUS_OK);
    await_frame(other, MEMBERSHIP_END, STATUS_OK);
    stream_close(&other);
    end_meeting(&server, STATUS_STOPPED);
    other = done_raw(FIRST_ID + 2); /* the answer was lost */
    await_frame(other, MEMBERSHIP_END, STATUS_OK);
    capture_stop(&capture);
    assert_all_images(&capture);
    stream_close(&other);
    stream_close(&again);
    end_durable();
}

/* Hears that training has ended, removes its files, and leaves. */
static void ends_before_the_first(struct one *one)
{
    end_meeting(one, STATUS_STOPPED);
    cr_assert(!member_ended(server.member), "the first server can no longer tell the others");
    member_leave(one->member, &one->place);
    end_meeting(&server, STATUS_STOPPED);
}

/* The second server dies when one worker has trained to the end. The other worker does not wait for
 * it, but the first server does. */
Test(durable, the_first_server_tells_the_others_that_training_has_ended)
{
    servers = 2;
    begin(2);
    returns(&server, 9);
    finish(&workers[0]);
    member_close(&others[0].member);
    while (!member_over(workers[1].member))
        usleep(1000);
    returns(&workers[1], 8);
    end_meeting(&workers[0], STATUS_OK);
    end_meeting(&workers[1], STATUS_STOPPED);
    joins(&workers[2], MEMBER_WORKER); /* a newcomer is too late */
    end_meeting(&workers[2], STATUS_USAGE);
    other_joins(0);
    ends_before_the_first(&others[0]);
    end_durable();
}

/* The first server dies then, and the second one returns after the workers. */
Test(durable, a_server_returns_after_training_has_ended)
{
    servers = 2;
    begin(2);
    finish(&workers[0]);
    restart(2);
    returns(&server, 9);
    returns(&workers[1], 8);
    end_meeting(&workers[0], STATUS_OK);
    end_meeting(&workers[1], STATUS_STOPPED);
    returns(&others[0], 9);
    ends_before_the_first(&others[0]);
    end_durable();
}

/* It dies between the two. The first of the workers does not end it: the other one would look for
 * it in vain. */
Test(durable, a_server_that_starts_again_waits_for_all_to_hear_of_the_end)
{
    timeout_ms = 3600 * 1000;
    begin(2);
    int first = done_raw(FIRST_ID + 1);
    wait_for_done(1);
    restart(2);
    stream_close(&first);
    returns(&server, 9);
    int other = done_raw(FIRST_ID + 2);
    wait_for_done(2);
    monitor_enter(&coordinator->monitor);
    cr_assert(!coordinator->ended);
    monitor_leave(&coordinator->monitor);
    first = done_raw(FIRST_ID + 1);
    await_frame(other, MEMBERSHIP_END, STATUS_OK);
    await_frame(first, MEMBERSHIP_END, STATUS_OK);
    end_meeting(&server, STATUS_STOPPED);
    stream_close(&other);
    stream_close(&first);
    end_durable();
}

/* One worker has trained to the end. The other one has lost the connection, and returns. */
Test(durable, who_has_trained_to_the_end_is_not_waited_for)
{
    timeout_ms = 3600 * 1000;
    begin(2);
    finish(&workers[0]);
    int other = return_raw(FIRST_ID + 2, 1, 8);
    await_frame(other, MEMBERSHIP_END, STATUS_OK);
    end_meeting(&workers[0], STATUS_OK);
    stream_close(&other);
    end_durable();
}

/* A worker has found an error before the other one has trained to the end. */
Test(durable, a_job_that_has_failed_does_not_end_well)
{
    struct job_record record;
    begin(2);
    member_abort(workers[0].member, STATUS_WRONG, "discard the run");
    for (bool heard = false; !heard; usleep(1000)) {
        monitor_enter(&coordinator->monitor);
        heard = coordinator->end_status != STATUS_OK;
        monitor_leave(&coordinator->monitor);
    }
    train_to_the_end(&workers[1]);
    cr_assert_eq(workers[1].status, STATUS_WRONG);
    returns(&server, 5);
    end_meeting(&server, STATUS_WRONG);
    coordinator_close(&coordinator);
    read_record(&record);
    cr_assert_eq(record.done, 0);
    end_durable();
}

/* -------- psring serve itself ----------------------------------------------------------------- */

/* Saves `record` with this command's token, and the job at the address. */
static void parse_serve(struct config *config, struct job_record *record)
{
    static char name[] = "serve", listen[] = "--listen", token[] = "--token=x",
                dir[] = "--checkpoint";
    static char *argv[] = {name, listen, listens_at, token, dir, folder};
    bool helped;
    folder_new(folder);
    choose_address();
    cr_assert_eq(config_parse(CONFIG_SERVE, 6, argv, config, &helped), STATUS_OK);
    cr_assert_eq(elastic_token(config, &record->token), STATUS_OK);
    snprintf(record->job.options, sizeof record->job.options, "--join=%s\n--backend=ps\n",
             listens_at);
    snprintf(record->job.address, sizeof record->job.address, "%s", listens_at);
    cr_assert_eq(job_save(folder, record), STATUS_OK);
}

/* Its weights are damaged. */
Test(durable, a_job_whose_training_has_ended_only_ends)
{
    char path[96];
    struct job_record record = {.generation = 3,
                                .servers = 1,
                                .first_id = FIRST_ID,
                                .next_id = FIRST_ID + 3,
                                .worker_count = 1,
                                .workers = {FIRST_ID + 1},
                                .done = 1,
                                .ended = true};
    struct config config;
    parse_serve(&config, &record);
    snprintf(path, sizeof path, "%s/weights.checkpoint", folder);
    FILE *empty = fopen(path, "w");
    cr_assert(empty && fclose(empty) == 0);
    cr_assert_eq(elastic_serve(&config), STATUS_OK);
    cr_assert_eq(rmdir(folder), 0, "files are left");
}

/* The second server of an earlier job, which had the same token and the same addresses. */
Test(durable, a_server_shows_the_job_of_its_record)
{
    struct job_record record = {.generation = 3,
                                .first_id = FIRST_ID + 1,
                                .job = {.summoned = true, .index = 1}},
                      other = {.first_id = FIRST_ID, .generation = 1, .servers = 1};
    struct coordinator_options options;
    struct config config;
    struct capture capture;
    parse_serve(&config, &record);
    options = options_for(1);
    options.token = record.token;
    options.checkpoint = folder;
    open_job(&options, &other);
    capture_start(&capture);
    cr_assert_eq(elastic_serve(&config), STATUS_USAGE);
    capture_stop(&capture);
    cr_assert(strstr(capture.text, "belongs to an earlier job"), "%s", capture.text);
    end_durable();
}

/* Nobody starts the server again. */
Test(durable, the_search_for_the_server_is_bounded)
{
    startup_ms = 1500;
    begin(1);
    coordinator_close(&coordinator);
    returns(&workers[0], 3);
    end_meeting(&workers[0], STATUS_TIMEOUT);
    end_durable();
}
