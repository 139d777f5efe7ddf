/* For tests: members of an elastic job as threads of this process, which do not train, and raw
 * connections to their coordinator. */
#ifndef PSRING_TESTS_ELASTIC_MEMBERS_H
#define PSRING_TESTS_ELASTIC_MEMBERS_H

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "common/net/control.h"
#include "experiments/elastic/coordinator.h"
#include "experiments/elastic/member.h"

enum { MEMBERS = 4, LONG_MS = 60000, TOKEN = 4711 };

struct one {
    struct member *member;
    struct member_place place;
    struct member_generation found;
    enum status status;
    pthread_t thread;
};

static struct coordinator *coordinator;
static char listens_at[MEMBER_ADDRESS_BYTES]; /* "": anywhere */
static struct one server, workers[MEMBERS];
static int64_t timeout_ms = LONG_MS;                              /* the coordinator's */
static int64_t member_timeout_ms = LONG_MS, startup_ms = LONG_MS; /* the members' */

/* -------- the coordinator --------------------------------------------------------------------- */

static inline struct coordinator_options options_for(int workers_first)
{
    return (struct coordinator_options){.token = TOKEN,
                                        .address = listens_at[0] ? listens_at : "tcp://127.0.0.1:0",
                                        .workers_first = workers_first,
                                        .workers_min = 1,
                                        .timeout_ms = timeout_ms,
                                        .startup_timeout_ms = timeout_ms};
}

static inline void open_job(const struct coordinator_options *options,
                            const struct job_record *record)
{
    cr_assert_eq(coordinator_open(&coordinator, options, record), STATUS_OK);
    if (strcmp(listens_at, coordinator->address) != 0) /* else threads may read it */
        snprintf(listens_at, sizeof listens_at, "%s", coordinator->address);
}

static inline void end(void)
{
    for (int i = 0; i < MEMBERS; i++)
        member_close(&workers[i].member);
    member_close(&server.member);
    coordinator_close(&coordinator);
}

/* -------- members ----------------------------------------------------------------------------- */

static inline void open_with(struct one *one, enum member_role role, int index, uint64_t join_after)
{
    const struct member_options options = {.token = TOKEN,
                                           .address = listens_at,
                                           .role = role,
                                           .index = index,
                                           .job = "--batch=8\n",
                                           .join_after = join_after,
                                           .timeout_ms = member_timeout_ms,
                                           .startup_timeout_ms = startup_ms};
    *one = (struct one){.place = {.step = MEMBER_NO_STEP}};
    cr_assert_eq(member_open(&one->member, &options), STATUS_OK);
}

static inline void open_one(struct one *one, enum member_role role, uint64_t join_after)
{
    open_with(one, role, 0, join_after);
}

static inline void *meet(void *argument)
{
    struct one *one = argument;
    one->status = member_meet(one->member, &one->place, NULL, &one->found);
    if (one->found.listening > 0)
        close(one->found.listening);
    return NULL;
}

static inline void start_meeting(struct one *one)
{
    one->found = (struct member_generation){0};
    cr_assert_eq(pthread_create(&one->thread, NULL, meet, one), 0);
}

static inline void joins(struct one *one, enum member_role role)
{
    open_one(one, role, 0);
    start_meeting(one);
}

static inline void note_of(uint64_t step, char note[MEMBER_NOTE_BYTES])
{
    snprintf(note, MEMBER_NOTE_BYTES, "after %d", (int)step);
}

/* A member ends its generation after `step` with status `how`, and waits for the next one. */
static inline void comes_back(struct one *one, uint64_t step, enum status how)
{
    one->place.step = step;
    one->place.images = 8 * (step + 1);
    one->place.batch = 8;
    one->place.ended = how;
    note_of(step, (char *)one->place.note);
    start_meeting(one);
}

static inline void end_meeting(struct one *one, enum status expected)
{
    pthread_join(one->thread, NULL);
    cr_assert_eq(one->status, expected, "found %s", status_name(one->status));
}

static inline void assert_rank(const struct one *one, int rank, int count, uint64_t step)
{
    char note[MEMBER_NOTE_BYTES];
    note_of(step, note);
    cr_assert_eq(one->found.rank, rank, "found rank %d, expected %d", one->found.rank, rank);
    cr_assert_eq(one->found.workers, count);
    cr_assert_eq(one->found.step, step);
    if (step > 0)
        cr_assert_str_eq((const char *)one->found.note, note);
}

/* -------- raw connections --------------------------------------------------------------------- */

/* Sends a frame, as an accepted member could; without a job, as one that knows none. */
static inline void say(int socket, struct membership_frame frame, const char *text)
{
    if (frame.head.job == 0)
        frame.head.job = membership_job(TOKEN, 0);
    cr_assert_eq(membership_send(socket, frame, text), 0);
}

/* A connection that gives the token and sends no frame. */
static inline int join_nothing(void)
{
    int socket;
    cr_assert_eq(membership_connect(listens_at, TOKEN, LONG_MS, NULL, NULL, &socket), STATUS_OK);
    return socket;
}

/* Reads frames until one has the type, or the connection is closed. */
static inline enum control_read read_until(int socket, enum membership_type type,
                                           struct membership_reader *reader)
{
    enum control_read got;
    *reader = (struct membership_reader){0};
    while ((got = membership_read(reader, socket)) == CONTROL_NOTHING ||
           (got == CONTROL_MESSAGE && reader->frame.head.type != type))
        usleep(1000);
    return got;
}

static inline void await_frame(int socket, enum membership_type type, enum status status)
{
    struct membership_reader reader;
    cr_assert_eq(read_until(socket, type, &reader), CONTROL_MESSAGE);
    cr_assert_eq(reader.frame.head.value, status);
}

static inline void await_close(int socket)
{
    struct membership_reader reader = {0};
    while (membership_read(&reader, socket) != CONTROL_CLOSED)
        usleep(1000);
}

/* The coordinator refuses the connection. Closes it. */
static inline void await_refusal(int socket, enum status status, const char *words)
{
    struct membership_reader reader;
    enum control_read got = read_until(socket, MEMBERSHIP_END, &reader);
    cr_assert(got == CONTROL_MESSAGE && (enum status)reader.frame.head.value == status &&
                  strstr(reader.text, words),
              "no END with '%s': %s", words, got == CONTROL_MESSAGE ? reader.text : "closed");
    stream_close(&socket);
}

#endif
