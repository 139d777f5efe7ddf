/* The ring's schedule: which rank sends what, when, to which rank, and how many bytes. Also the
 * table in ring/ring.c, printed from the code. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ring/schedule.h"

static const size_t counts[] = {0, 1, 2, 3, 5, 7, 8, 63, 64, 1000, 65537, 1199882};
enum { COUNTS = sizeof counts / sizeof *counts, WORKERS_MAX = 9 };

Test(ring_schedule, next_is_one_cycle)
{
    for (int n = 1; n <= WORKERS_MAX; n++) {
        int at = 0, seen = 0;
        do {
            int next = schedule_next(n, at);
            cr_assert_eq(schedule_previous(n, next), at);
            at = next;
            seen++;
        } while (at != 0 && seen <= n);
        cr_assert_eq(seen, n);
    }
}

Test(ring_schedule, chunks_and_segments_cover_everything_once)
{
    for (size_t c = 0; c < COUNTS; c++) {
        for (size_t parts = 1; parts <= WORKERS_MAX; parts++) {
            size_t at = 0, longest = chunk_of(counts[c], parts, 0).count;
            for (size_t i = 0; i < parts; i++) {
                struct chunk chunk = chunk_of(counts[c], parts, i);
                cr_assert_eq(chunk.offset, at);
                cr_assert(chunk.count == longest || chunk.count + 1 == longest);
                at += chunk.count;
            }
            cr_assert_eq(at, counts[c]);
        }
    }
}

Test(ring_schedule, what_one_sends_the_next_receives)
{
    for (int n = 2; n <= WORKERS_MAX; n++) {
        for (size_t c = 0; c < COUNTS; c++) {
            for (int rank = 0; rank < n; rank++) {
                struct schedule left, right;
                schedule_init(&left, n, rank, counts[c], 4096, NULL);
                schedule_init(&right, n, (rank + 1) % n, counts[c], 4096, NULL);
                size_t items = schedule_items(&left);
                cr_assert_eq(items, schedule_items(&right));
                for (size_t i = 0; i < items; i++) {
                    struct chunk sent = schedule_send(&left, i);
                    struct chunk received = schedule_receive(&right, i);
                    cr_assert_eq(sent.offset, received.offset);
                    cr_assert_eq(sent.count, received.count);
                    cr_assert_leq(sent.count, schedule_message_count_max(&left));
                }
            }
        }
    }
}

/* For any remainder: one more segment than posted receives would have to wait. */
Test(ring_schedule, a_chunk_has_eight_segments_unless_they_are_long_or_short)
{
    for (int n = 2; n <= WORKERS_MAX; n++) {
        for (size_t chunk = 65536; chunk < 65800; chunk++) {
            struct schedule schedule;
            schedule_init(&schedule, n, 0, (size_t)n * chunk, 0, NULL);
            cr_assert_eq(schedule.segments, 8, "%d workers, chunks of %zu: %zu segments", n, chunk,
                         schedule.segments);
        }
    }
}

/* Data that arrive as item i leave as item i + K. The pipeline depends on this property. */
Test(ring_schedule, what_arrives_is_passed_on_k_items_later)
{
    for (int n = 2; n <= WORKERS_MAX; n++) {
        struct schedule schedule;
        schedule_init(&schedule, n, n / 2, 65537, 4096, NULL);
        cr_assert_gt(schedule.segments, 1);
        for (size_t i = 0; i + schedule.segments < schedule_items(&schedule); i++) {
            struct chunk in = schedule_receive(&schedule, i);
            struct chunk out = schedule_send(&schedule, i + schedule.segments);
            cr_assert_eq(in.offset, out.offset);
            cr_assert_eq(in.count, out.count);
        }
    }
}

/* Patarasuk and Yuan's bound, exactly: two vectors minus two chunks. */
Test(ring_schedule, elements_sent_are_the_lower_bound)
{
    for (int n = 1; n <= WORKERS_MAX; n++) {
        for (size_t c = 0; c < COUNTS; c++) {
            size_t all = 0;
            for (int rank = 0; rank < n; rank++) {
                struct schedule schedule;
                schedule_init(&schedule, n, rank, counts[c], 1000, NULL);
                size_t sent = 0;
                for (size_t i = 0; i < schedule_items(&schedule); i++)
                    sent += schedule_send(&schedule, i).count;
                size_t parts = (size_t)n, r = (size_t)rank;
                size_t expected = n == 1 ? 0
                                         : 2 * counts[c] -
                                               chunk_of(counts[c], parts, (r + 1) % parts).count -
                                               chunk_of(counts[c], parts, (r + 2) % parts).count;
                cr_assert_eq(sent, expected);
                all += sent;
            }
            cr_assert_eq(all, 2 * (size_t)(n - 1) * counts[c]);
        }
    }
}

/*
 * Plays the schedule for one element a chunk, all workers step by step. A string holds the workers
 * whose contributions a worker has in a chunk, in the order of addition.
 */
struct play {
    int workers;
    char held[WORKERS_MAX][WORKERS_MAX][WORKERS_MAX + 1]; /* (worker, chunk) */
};

static void play_start(struct play *play, int workers)
{
    memset(play, 0, sizeof *play);
    play->workers = workers;
    for (int w = 0; w < workers; w++) {
        for (int c = 0; c < workers; c++)
            play->held[w][c][0] = (char)('0' + w);
    }
}

static void play_step(struct play *play, size_t step)
{
    struct play before = *play;
    for (int w = 0; w < play->workers; w++) {
        struct schedule schedule;
        schedule_init(&schedule, play->workers, w, (size_t)play->workers, 0, NULL);
        cr_assert_eq(schedule.segments, 1);
        size_t chunk = schedule_receive(&schedule, step).offset;
        char *ours = play->held[w][chunk];
        const char *theirs = before.held[schedule_previous(schedule.workers, schedule.rank)][chunk];
        /* Addition commutes: the received chunk is the longer sum, and ours is added to it. */
        char sum[2 * WORKERS_MAX + 2];
        snprintf(sum, sizeof sum, "%s%s", theirs, schedule_reduces(&schedule, step) ? ours : "");
        cr_assert_lt(strlen(sum), sizeof play->held[0][0]);
        snprintf(ours, sizeof play->held[0][0], "%.*s", WORKERS_MAX, sum);
    }
}

Test(ring_schedule, every_chunk_is_added_once_in_the_rings_order)
{
    for (int n = 2; n <= WORKERS_MAX; n++) {
        struct play play;
        play_start(&play, n);
        for (size_t step = 0; step < 2 * (size_t)(n - 1); step++)
            play_step(&play, step);
        for (int w = 0; w < n; w++) {
            for (int c = 0; c < n; c++) {
                cr_assert_eq(strlen(play.held[w][c]), (size_t)n);
                for (int k = 0; k < n; k++)
                    cr_assert_eq(play.held[w][c][k], '0' + (c + k) % n);
            }
        }
    }
}

/* Schedules of parts: together they move every chunk. Each has the steps of a separate vector. */
Test(ring_schedule, parts_are_whole_schedules_of_their_chunks)
{
    enum { PARTS = 3 };
    for (int n = 2; n <= WORKERS_MAX; n++) {
        struct schedule plain;
        schedule_init(&plain, n, n / 2, (size_t)n, 0, NULL);
        for (int p = 0; p < PARTS; p++) {
            struct schedule schedule;
            struct schedule_part part = {.parts = PARTS, .part = p};
            schedule_init(&schedule, n, n / 2, (size_t)n * PARTS, 0, &part);
            cr_assert_eq(schedule_items(&schedule), schedule_items(&plain));
            for (size_t i = 0; i < schedule_items(&schedule); i++) {
                struct chunk chunk = schedule_send(&schedule, i);
                cr_assert_eq(chunk.count, 1);
                cr_assert_eq(chunk.offset, schedule_send(&plain, i).offset * PARTS + (size_t)p);
                cr_assert_eq(schedule_completes(&schedule, i), schedule_completes(&plain, i));
                cr_assert_not(schedule_returns(&schedule, i));
            }
        }
    }
}

/* With `returns`, a chunk is complete at its starting rank, after N hops that visit every other
 * worker once. From there it goes to all others. */
Test(ring_schedule, a_chunk_that_returns)
{
    for (int n = 2; n <= WORKERS_MAX; n++) {
        for (int rank = 0; rank < n; rank++) {
            struct schedule schedule;
            struct schedule_part part = {.parts = 1, .returns = true};
            schedule_init(&schedule, n, rank, (size_t)n, 0, &part);
            size_t steps = schedule_steps(&schedule), received[WORKERS_MAX] = {0};
            cr_assert_eq(steps, 2 * (size_t)n - 1);
            cr_assert_eq(schedule_send(&schedule, 0).offset, (size_t)rank);
            for (size_t step = 0; step < steps; step++) {
                size_t chunk = schedule_receive(&schedule, step).offset;
                received[chunk]++;
                cr_assert_eq(schedule_reduces(&schedule, step), step < (size_t)n);
                cr_assert_eq(schedule_returns(&schedule, step), step == (size_t)n - 1);
                if (step == (size_t)n - 1)
                    cr_assert_eq(chunk, (size_t)rank);
                if (step + 1 < steps)
                    cr_assert_eq(schedule_send(&schedule, step + 1).offset, chunk);
            }
            for (int c = 0; c < n; c++)
                cr_assert_eq(received[c], c == rank ? 1 : 2);
        }
    }
}

/* Prints one line of the table in ring/ring.c. */
static void table_line(const struct play *play, size_t step, char *line, size_t size)
{
    size_t used = (size_t)snprintf(line, size, " *   step %zu       ", step);
    for (int w = 0; w < play->workers; w++) {
        int chunk = schedule_chunk_sent(play->workers, w, step);
        char cell[32];
        snprintf(cell, sizeof cell, "%d [%s]", chunk, play->held[w][chunk]);
        used += (size_t)snprintf(line + used, size - used, " %-12s", cell);
    }
    while (used > 0 && line[used - 1] == ' ')
        line[--used] = '\0';
}

Test(ring_schedule, the_table_in_ring_c_is_what_happens)
{
    FILE *file = fopen(PSRING_SOURCE_DIR "/ring/ring.c", "r");
    cr_assert_not_null(file);
    static char text[64 << 10];
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    struct play play;
    play_start(&play, 4);
    for (size_t step = 0; step < 6; step++) {
        char line[128];
        table_line(&play, step, line, sizeof line);
        cr_expect_not_null(strstr(text, line), "ring/ring.c does not have this line:\n%s", line);
        play_step(&play, step);
    }
}

/* -------- segments by link -------------------------------------------------------------------- */

static size_t segments_on(double link_bytes_per_s, size_t segment_bytes, size_t bytes)
{
    struct schedule schedule;
    const struct comm_options options = {.link_bytes_per_s = link_bytes_per_s,
                                         .segment_bytes = segment_bytes};
    size_t count = bytes / sizeof(float);
    schedule_init(&schedule, 4, 0, count, schedule_segment_bytes(4, count, &options, NULL), NULL);
    return schedule.segments;
}

Test(ring_schedule, fast_links_have_few_segments)
{
    const double slow = 25e6, fast = 1.25e9, one_host = INFINITY;
    cr_expect_eq(segments_on(slow, 0, 1 << 20), 8);
    cr_expect_eq(segments_on(0, 0, 1 << 20), 8, "an unknown link is slow");
    cr_expect_eq(segments_on(fast, 0, 1 << 20), 3);
    cr_expect_eq(segments_on(one_host, 0, 1 << 20), 1);
    cr_expect_eq(segments_on(one_host, 65536, 1 << 20), 4, "the user's length counts");
    /* Long vectors: 512 KB, or what 32 segments a chunk have. */
    cr_expect_eq(segments_on(one_host, 0, 24 << 20), 12);
    cr_expect_eq(segments_on(one_host, 0, 128 << 20), 32);
}
