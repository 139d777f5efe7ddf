/* Halving-doubling's schedule, against its own claims: who sends what when, to whom, after what,
 * how many bytes, and the tables in ring/halving.c, printed from the code. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ring/halving_schedule.h"

enum { WORKERS_MAX = 9 };

static const size_t counts[] = {0, 1, 2, 3, 5, 7, 8, 63, 64, 1000, 2520, 10007};
static const size_t segments[] = {4, 64, 1000, 0};
enum { COUNTS = sizeof counts / sizeof *counts, SEGMENTS = sizeof segments / sizeof *segments };

/*
 * All workers at once. What a worker holds of an element is a set of workers, a bit each, whose
 * contributions have been added. Messages are queues in order, one from every worker to every
 * other.
 */
struct play {
    int workers;
    size_t count;
    struct halving_schedule schedules[WORKERS_MAX];
    unsigned *held[WORKERS_MAX]; /* [worker][element] */
    size_t sent[WORKERS_MAX], received[WORKERS_MAX];
};

static void play_start(struct play *play, int workers, size_t count, size_t segment_bytes)
{
    *play = (struct play){.workers = workers, .count = count};
    for (int w = 0; w < workers; w++) {
        enum status status =
            halving_schedule_init(&play->schedules[w], workers, w, count, segment_bytes);
        cr_assert_eq(status, STATUS_OK);
        play->held[w] = calloc(count + 1, sizeof *play->held[w]);
        for (size_t i = 0; i < count; i++)
            play->held[w][i] = 1u << w;
    }
}

static void play_end(struct play *play)
{
    for (int w = 0; w < play->workers; w++) {
        halving_schedule_fini(&play->schedules[w]);
        free(play->held[w]);
    }
}

/* Which of `worker`'s sends is the counterpart of the receive: as many to `to` come before it as
 * come before the receive from `worker`. */
static size_t counterpart(const struct play *play, int worker, int to, size_t receive)
{
    size_t before = 0;
    for (size_t i = 0; i < receive; i++)
        before += play->schedules[to].receives[i].peer == worker;
    const struct halving_schedule *schedule = &play->schedules[worker];
    for (size_t i = 0; i < schedule->items; i++) {
        if (schedule->sends[i].peer == to && before-- == 0)
            return i;
    }
    cr_assert(false, "worker %d waits for more than worker %d sends", to, worker);
    return 0;
}

/* Sends what may go. What is on its way must not change until it is received: see play_receive. */
static bool play_send(struct play *play, int worker)
{
    const struct halving_schedule *schedule = &play->schedules[worker];
    size_t before = play->sent[worker];
    while (play->sent[worker] < schedule->items &&
           schedule->sends[play->sent[worker]].needs <= play->received[worker])
        play->sent[worker]++;
    return play->sent[worker] > before;
}

static void check_item(const struct play *play, int worker, size_t number, size_t send)
{
    const struct halving_schedule *schedule = &play->schedules[worker];
    const struct halving_item *item = &schedule->receives[number];
    const struct halving_item *theirs = &play->schedules[item->peer].sends[send];
    cr_assert_gt(item->span.count, 0);
    cr_assert(item->span.offset == theirs->span.offset && item->span.count == theirs->span.count &&
              item->step == theirs->step);
    cr_assert_eq(item->reduces, number < schedule->reduce_receives);
    if (item->reduces)
        return;
    const struct halving_item *replaced = &schedule->sends[item->replaces];
    cr_assert(replaced->peer == item->peer && replaced->span.offset == item->span.offset &&
              replaced->span.count == item->span.count);
    cr_assert_lt(item->replaces, play->sent[worker]);
}

/* Deals with the next receive, if it has been sent. The payload is read only now: were it changed
 * by its sender after sending, the sets would not come out. */
static bool play_receive(struct play *play, int worker)
{
    const struct halving_schedule *schedule = &play->schedules[worker];
    size_t number = play->received[worker];
    if (number == schedule->items)
        return false;
    const struct halving_item *item = &schedule->receives[number];
    size_t send = counterpart(play, item->peer, worker, number);
    if (send >= play->sent[item->peer])
        return false;
    check_item(play, worker, number, send);
    unsigned all = (1u << play->workers) - 1;
    for (size_t i = item->span.offset; i < item->span.offset + item->span.count; i++) {
        unsigned *ours = &play->held[worker][i], theirs = play->held[item->peer][i];
        if (item->reduces)
            cr_assert_eq(*ours & theirs, 0, "added twice");
        else
            cr_assert_eq(theirs, all, "not complete");
        *ours = item->reduces ? *ours | theirs : theirs;
        cr_assert_eq(item->completes, item->reduces && *ours == all);
    }
    play->received[worker]++;
    return true;
}

/* Workers move in an order that `seed` decides, each as far as it can; never all of them wait. */
static void play_all(struct play *play, unsigned seed)
{
    bool moved = true;
    while (moved) {
        moved = false;
        for (int i = 0; i < play->workers; i++) {
            int worker = (int)((seed + (unsigned)i * (1 + seed / 7)) % (unsigned)play->workers);
            moved |= play_send(play, worker);
            moved |= play_receive(play, worker);
            worker = i; /* whatever the stride: everybody has a turn */
            moved |= play_send(play, worker);
            for (unsigned k = 0; k < 1 + seed % 5; k++)
                moved |= play_receive(play, worker);
        }
    }
    for (int w = 0; w < play->workers; w++) {
        cr_assert_eq(play->sent[w], play->schedules[w].items);
        cr_assert_eq(play->received[w], play->schedules[w].items);
        for (size_t i = 0; i < play->count; i++)
            cr_assert_eq(play->held[w][i], (1u << play->workers) - 1);
    }
}

Test(halving_schedule, everything_is_added_once_and_copied_to_all)
{
    for (int n = 1; n <= WORKERS_MAX; n++) {
        for (size_t c = 0; c < COUNTS; c++) {
            for (size_t s = 0; s < SEGMENTS; s++) {
                if (counts[c] > 1000 && segments[s] == 4)
                    continue; /* thousands of messages of one element show nothing new */
                struct play play;
                play_start(&play, n, counts[c], segments[s]);
                play_all(&play, (unsigned)(c * 11 + s));
                play_end(&play);
            }
        }
    }
}

static size_t elements(const struct halving_item *items, size_t from, size_t to)
{
    size_t sum = 0;
    for (size_t i = from; i < to; i++)
        sum += items[i].span.count;
    return sum;
}

/* Reduce-scatter: all but the own chunk leaves; all-gather: it comes back; as much each way; and
 * Patarasuk and Yuan's bound to the element, for every N, if N divides the count. */
Test(halving_schedule, elements_sent_are_the_lower_bound)
{
    for (int n = 1; n <= WORKERS_MAX; n++) {
        for (size_t c = 0; c < COUNTS; c++) {
            size_t all = 0;
            for (int rank = 0; rank < n; rank++) {
                struct halving_schedule s;
                cr_assert_eq(halving_schedule_init(&s, n, rank, counts[c], 256), STATUS_OK);
                size_t parts = (size_t)n;
                size_t others = counts[c] - chunk_of(counts[c], parts, (size_t)rank).count;
                size_t sent = elements(s.sends, 0, s.items);
                cr_assert_eq(elements(s.sends, 0, s.reduce_sends), others);
                cr_assert_eq(elements(s.receives, s.reduce_receives, s.items), others);
                cr_assert_eq(elements(s.receives, 0, s.items), sent);
                if (counts[c] % parts == 0)
                    cr_assert_eq(sent, 2 * (parts - 1) * (counts[c] / parts));
                all += sent;
                halving_schedule_fini(&s);
            }
            cr_assert_eq(all, 2 * (size_t)(n - 1) * counts[c]);
        }
    }
}

Test(halving_schedule, steps_and_messages_of_a_short_vector)
{
    static const int steps[] = {0, 0, 2, 4, 4, 6, 6, 6, 6, 8};
    for (int n = 1; n <= WORKERS_MAX; n++) {
        cr_assert_eq(halving_steps(n), steps[n]);
        for (int rank = 0; rank < n && (n & (n - 1)) == 0; rank++) {
            struct halving_schedule s;
            cr_assert_eq(halving_schedule_init(&s, n, rank, 100, 0), STATUS_OK);
            cr_assert_eq(s.items, (size_t)steps[n]); /* one a step */
            halving_schedule_fini(&s);
        }
    }
}

/* With segments the next step begins before this one is in; and no more than HALVING_IN_FLIGHT are
 * on their way between partners. */
Test(halving_schedule, steps_overlap_and_partners_keep_pace)
{
    struct halving_schedule s;
    cr_assert_eq(halving_schedule_init(&s, 8, 3, 80000, 1000), STATUS_OK);
    for (int step = 0; step < halving_steps(8); step++) {
        size_t first_send = 0, receives_before = 0, receives_to = 0;
        while (s.sends[first_send].step < step)
            first_send++;
        while (receives_before < s.items && s.receives[receives_before].step < step)
            receives_before++;
        for (receives_to = receives_before;
             receives_to < s.items && s.receives[receives_to].step == step;)
            receives_to++;
        cr_assert_gt(receives_to - receives_before, HALVING_IN_FLIGHT);
        if (step > 0 && step < halving_steps(8) / 2)
            cr_assert_lt(s.sends[first_send].needs, receives_before);
        for (size_t i = first_send; i < s.items && s.sends[i].step == step; i++) {
            size_t position = i - first_send;
            if (position >= HALVING_IN_FLIGHT)
                cr_assert_geq(s.sends[i].needs, receives_before + position - HALVING_IN_FLIGHT + 1);
            cr_assert_leq(s.sends[i].needs, receives_to);
        }
    }
    halving_schedule_fini(&s);
}

/* "23 > 2 [0]": chunks, receiver, the set already added. One element a chunk. */
static void describe(const struct play *play, int worker, const struct halving_item *item,
                     char *text, size_t size)
{
    size_t used = 0;
    for (size_t c = item->span.offset; c < item->span.offset + item->span.count; c++)
        used += (size_t)snprintf(text + used, size - used, "%zu", c);
    used += (size_t)snprintf(text + used, size - used, " > %d [", item->peer);
    for (int w = 0; w < play->workers; w++) {
        if (play->held[worker][item->span.offset] & 1u << w)
            used += (size_t)snprintf(text + used, size - used, "%d", w);
    }
    snprintf(text + used, size - used, "]");
}

/* One line of a table in ring/halving.c; then the step is played. */
static void table_line(struct play *play, int step, char *line, size_t size)
{
    size_t used = (size_t)snprintf(line, size, " *   step %d       ", step);
    for (int w = 0; w < play->workers; w++) {
        const struct halving_schedule *schedule = &play->schedules[w];
        char cell[64] = "", one[32];
        for (size_t i = 0; i < schedule->items; i++) {
            if (schedule->sends[i].step != step)
                continue;
            describe(play, w, &schedule->sends[i], one, sizeof one);
            strcat(strcat(cell, cell[0] ? ", " : ""), one);
        }
        used += (size_t)snprintf(line + used, size - used, " %-16s", cell[0] ? cell : "-");
    }
    while (used > 0 && line[used - 1] == ' ')
        line[--used] = '\0';
    for (int w = 0; w < play->workers; w++)
        play_send(play, w);
    for (int w = 0; w < play->workers; w++) {
        const struct halving_schedule *schedule = &play->schedules[w];
        while (play->received[w] < schedule->items &&
               schedule->receives[play->received[w]].step == step)
            cr_assert(play_receive(play, w));
    }
}

Test(halving_schedule, the_tables_in_halving_c_are_what_happens)
{
    FILE *file = fopen(PSRING_SOURCE_DIR "/ring/halving.c", "r");
    cr_assert_not_null(file);
    static char text[64 << 10];
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    for (int workers = 4; workers >= 3; workers--) {
        struct play play;
        play_start(&play, workers, (size_t)workers, 0);
        for (int step = 0; step < halving_steps(workers); step++) {
            char line[160];
            table_line(&play, step, line, sizeof line);
            strcat(line, "\n");
            cr_expect_not_null(strstr(text, line), "ring/halving.c does not have this line:\n%s",
                               line);
        }
        play_end(&play);
    }
}
