/* Halving-doubling's schedule: which rank sends what, when, to which rank, after which receive, and
 * how many bytes. Also the tables in ring/halving.c, printed from the code. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ring/halving_schedule.h"

enum { WORKERS_MAX = 16, SLICES_MAX = 4096 };

static const size_t counts[] = {0, 1, 2, 3, 5, 7, 8, 63, 64, 1000, 2520, 10007};
static const size_t segments[] = {4, 64, 1000, 0};
static const int radices[] = {2, 3, 4, 6, 8, WORKERS_MAX};
enum {
    COUNTS = sizeof counts / sizeof *counts,
    SEGMENTS = sizeof segments / sizeof *segments,
    RADICES = sizeof radices / sizeof *radices
};

/* The parts of a cut: of the numbers that divide n, the last one up to the radix, or the first. */
static int parts_of(int n, int radix)
{
    int parts = 0;
    for (int p = 2; p <= n && (parts == 0 || p <= radix); p++)
        parts = n % p == 0 ? p : parts;
    return parts;
}

/* One worker: its schedule, the progress of its exchanges, and what it holds of every element: a
 * set of workers, one bit each, whose contributions have been added. */
struct player {
    struct halving_schedule schedule;
    size_t sent[WORKERS_MAX], received[WORKERS_MAX]; /* by exchange */
    size_t dealt[SLICES_MAX];                        /* by slice: finished receives */
    unsigned *held;
};

/* All workers. Messages are queues in order, one from every worker to every other. */
struct play {
    int workers;
    size_t count;
    struct player players[WORKERS_MAX];
};

static void play_start(struct play *play, int workers, int radix, size_t count,
                       size_t segment_bytes, size_t under_way)
{
    memset(play, 0, sizeof *play);
    play->workers = workers;
    play->count = count;
    for (int w = 0; w < workers; w++) {
        struct player *player = &play->players[w];
        cr_assert_eq(halving_schedule_init(&player->schedule, workers, radix, w, count,
                                           segment_bytes, under_way),
                     STATUS_OK);
        cr_assert_leq(player->schedule.slices, SLICES_MAX);
        cr_assert_lt(player->schedule.exchange_count, WORKERS_MAX);
        player->held = calloc(count + 1, sizeof *player->held);
        for (size_t i = 0; i < count; i++)
            player->held[i] = 1u << w;
    }
}

static void play_end(struct play *play)
{
    for (int w = 0; w < play->workers; w++) {
        halving_schedule_fini(&play->players[w].schedule);
        free(play->players[w].held);
    }
}

static size_t exchange_to(const struct play *play, int from, int to)
{
    const struct halving_schedule *schedule = &play->players[from].schedule;
    for (size_t l = 0; l < schedule->exchange_count; l++) {
        if (schedule->exchanges[l].peer == to)
            return l;
    }
    cr_assert(false, "worker %d has no exchange to %d", from, to);
    return 0;
}

/* Sends as much as possible on an exchange. Data under way must not change until it is received. */
static bool play_send(struct player *player, size_t l)
{
    const struct halving_exchange *exchange = &player->schedule.exchanges[l];
    size_t before = player->sent[l];
    while (player->sent[l] < exchange->send_count &&
           exchange->sends[player->sent[l]].after <=
               player->dealt[exchange->sends[player->sent[l]].slice])
        player->sent[l]++;
    return player->sent[l] > before;
}

static void check_item(const struct player *player, size_t l, const struct halving_item *item,
                       const struct halving_item *theirs)
{
    const struct halving_exchange *exchange = &player->schedule.exchanges[l];
    cr_assert_gt(item->span.count, 0);
    cr_assert(item->span.offset == theirs->span.offset && item->span.count == theirs->span.count);
    cr_assert(item->slice == theirs->slice && item->step == theirs->step &&
              item->reduces == theirs->reduces);
    cr_assert_eq(item->reduces,
                 item->step < halving_steps(player->schedule.workers, player->schedule.radix) / 2);
    if (item->reduces)
        return;
    const struct halving_item *replaced = &exchange->sends[item->replaces];
    cr_assert(replaced->reduces && replaced->span.offset == item->span.offset &&
              replaced->span.count == item->span.count);
    cr_assert_lt(item->replaces, player->sent[l]);
}

/* Does an exchange's next receive, if the peer has sent it and the receives before it are done. The
 * payload is read only now: if its sender had changed it after sending, the sets would be wrong. */
static bool play_receive(struct play *play, int worker, size_t l)
{
    struct player *player = &play->players[worker];
    const struct halving_exchange *exchange = &player->schedule.exchanges[l];
    size_t number = player->received[l];
    if (number == exchange->receive_count)
        return false;
    const struct halving_item *item = &exchange->receives[number];
    const struct player *peer = &play->players[exchange->peer];
    size_t back = exchange_to(play, exchange->peer, worker);
    if (number >= peer->sent[back] || player->dealt[item->slice] != item->after)
        return false;
    check_item(player, l, item, &peer->schedule.exchanges[back].sends[number]);
    unsigned all = (1u << play->workers) - 1;
    for (size_t i = item->span.offset; i < item->span.offset + item->span.count; i++) {
        unsigned *ours = &player->held[i], theirs = peer->held[i];
        if (item->reduces)
            cr_assert_eq(*ours & theirs, 0, "added twice");
        else
            cr_assert_eq(theirs, all, "not complete");
        *ours = item->reduces ? *ours | theirs : theirs;
        cr_assert_eq(item->completes, item->reduces && *ours == all);
    }
    player->dealt[item->slice]++;
    player->received[l]++;
    return true;
}

/* Workers and exchanges move in an order that `seed` decides. It never happens that all wait. */
static void play_all(struct play *play, unsigned seed)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (unsigned i = 0; i < (unsigned)play->workers * WORKERS_MAX; i++) {
            seed = seed * 1664525u + 1013904223u; /* Numerical Recipes' generator */
            int worker = (int)((seed >> 16) % (unsigned)play->workers);
            if (i < (unsigned)play->workers)
                worker = (int)i; /* every worker gets a turn */
            struct player *player = &play->players[worker];
            for (size_t l = 0; l < player->schedule.exchange_count; l++) {
                size_t exchange = (l + (seed >> 8)) % player->schedule.exchange_count;
                moved |= play_send(player, exchange);
                moved |= play_receive(play, worker, exchange);
            }
        }
    }
    for (int w = 0; w < play->workers; w++) {
        const struct player *player = &play->players[w];
        size_t receives = 0;
        for (size_t l = 0; l < player->schedule.exchange_count; l++) {
            cr_assert_eq(player->sent[l], player->schedule.exchanges[l].send_count);
            cr_assert_eq(player->received[l], player->schedule.exchanges[l].receive_count);
            receives += player->received[l];
        }
        cr_assert_eq(receives, player->schedule.receives);
        for (size_t i = 0; i < play->count; i++)
            cr_assert_eq(player->held[i], (1u << play->workers) - 1);
    }
}

static struct play play; /* too large for a stack */

/* With slices one after the other, as of near and of distant workers, and all at once. Both ends of
 * an exchange have the same list. */
static void check_all(int workers, int radix)
{
    static const size_t under_way[] = {1, HALVING_SLICES_UNDER_WAY, 37, 2 * SLICES_MAX};
    for (size_t c = 0; c < COUNTS; c++) {
        for (size_t s = 0; s < SEGMENTS; s++) {
            if (counts[c] > 1000 && segments[s] == 4)
                continue; /* thousands of short messages test nothing new */
            for (size_t u = 0; u < sizeof under_way / sizeof *under_way; u++) {
                play_start(&play, workers, radix, counts[c], segments[s], under_way[u]);
                play_all(&play, (unsigned)(c * 11 + s));
                play_end(&play);
            }
        }
    }
}

Test(halving_schedule, everything_is_added_once_and_copied_to_all)
{
    for (int n = 1; n <= WORKERS_MAX; n++)
        check_all(n, 2);
}

/* Only worlds that are cut in another way than with radix 2. */
Test(halving_schedule, and_with_every_radix)
{
    for (int n = 4; n <= WORKERS_MAX; n++) {
        for (int radix = 3; radix <= n; radix++) {
            if (parts_of(n, radix) != parts_of(n, radix - 1))
                check_all(n, radix);
        }
    }
}

/* The elements that all exchanges send, or receive, in reduce-scatter or in all-gather. */
static size_t elements(const struct halving_schedule *schedule, bool sent, bool reduces)
{
    size_t sum = 0;
    for (size_t l = 0; l < schedule->exchange_count; l++) {
        const struct halving_exchange *exchange = &schedule->exchanges[l];
        const struct halving_item *items = sent ? exchange->sends : exchange->receives;
        for (size_t i = 0; i < (sent ? exchange->send_count : exchange->receive_count); i++)
            sum += items[i].reduces == reduces ? items[i].span.count : 0;
    }
    return sum;
}

/* Reduce-scatter sends all chunks except the rank's own, and all-gather receives them. Both
 * directions have equal bytes. If N divides the count, they equal Patarasuk and Yuan's bound for
 * every N. */
static void check_bytes(int n, int radix)
{
    for (size_t c = 0; c < COUNTS; c++) {
        size_t all = 0;
        for (int rank = 0; rank < n; rank++) {
            struct halving_schedule s;
            cr_assert_eq(
                halving_schedule_init(&s, n, radix, rank, counts[c], 256, HALVING_SLICES_UNDER_WAY),
                STATUS_OK);
            size_t parts = (size_t)n, chunk = (size_t)halving_chunk(n, radix, rank);
            size_t others = counts[c] - chunk_of(counts[c], parts, chunk).count;
            size_t given = elements(&s, true, true), back = elements(&s, true, false);
            cr_assert_eq(given, others);
            cr_assert_eq(elements(&s, false, false), others);
            cr_assert_eq(elements(&s, false, true), back);
            if (counts[c] % parts == 0)
                cr_assert_eq(given + back, 2 * (parts - 1) * (counts[c] / parts));
            all += given + back;
            halving_schedule_fini(&s);
        }
        cr_assert_eq(all, 2 * (size_t)(n - 1) * counts[c]);
    }
}

Test(halving_schedule, elements_sent_are_the_lower_bound)
{
    for (int n = 1; n <= WORKERS_MAX; n++) {
        for (size_t r = 0; r < RADICES; r++)
            check_bytes(n, radices[r]);
    }
}

/* In every step, for any factors, every worker's link is equally busy. */
static void check_balance(int n, int radix)
{
    static const size_t count = 720720;
    for (int rank = 0; rank < n; rank++) {
        struct halving_schedule s;
        cr_assert_eq(
            halving_schedule_init(&s, n, radix, rank, count, count * 4, HALVING_SLICES_UNDER_WAY),
            STATUS_OK);
        size_t moved[2][32] = {{0}}, left = count;
        for (size_t l = 0; l < s.exchange_count; l++) {
            for (size_t i = 0; i < s.exchanges[l].send_count; i++)
                moved[0][s.exchanges[l].sends[i].step] += s.exchanges[l].sends[i].span.count;
            for (size_t i = 0; i < s.exchanges[l].receive_count; i++)
                moved[1][s.exchanges[l].receives[i].step] += s.exchanges[l].receives[i].span.count;
        }
        for (int step = 0, size = n; size > 1; step++) {
            int parts = parts_of(size, radix);
            size_t expected = left - left / (size_t)parts;
            int back = halving_steps(n, radix) - 1 - step;
            cr_assert_eq(moved[0][step], expected);
            cr_assert_eq(moved[1][step], expected);
            cr_assert_eq(moved[0][back], expected);
            cr_assert_eq(moved[1][back], expected);
            left /= (size_t)parts;
            size /= parts;
        }
        halving_schedule_fini(&s);
    }
}

Test(halving_schedule, steps_are_balanced)
{
    for (int n = 2; n <= WORKERS_MAX; n++) {
        for (size_t r = 0; r < RADICES; r++)
            check_balance(n, radices[r]);
    }
}

/* Two workers that exchange in step 0, which moves the most, are less than p ranks apart. In the
 * next step the distance is a multiple of p, less than p times its next factor, and so on.
 * All-gather mirrors this. */
static void check_distances(int n, int radix)
{
    unsigned chunks = 0;
    for (int rank = 0; rank < n; rank++) {
        struct halving_schedule s;
        cr_assert_eq(
            halving_schedule_init(&s, n, radix, rank, (size_t)n * 8, 0, HALVING_SLICES_UNDER_WAY),
            STATUS_OK);
        chunks |= 1u << halving_chunk(n, radix, rank);
        for (size_t l = 0; l < s.exchange_count; l++) {
            const struct halving_exchange *exchange = &s.exchanges[l];
            int apart = abs(exchange->peer - rank);
            cr_assert_eq(exchange->send_count, 2); /* a step and its mirror */
            for (size_t i = 0; i < exchange->send_count; i++) {
                int step = exchange->sends[i].step, distance = 1, parts = 2;
                if (!exchange->sends[i].reduces)
                    step = halving_steps(n, radix) - 1 - step;
                for (int left = n / distance; left > 1; left = n / distance) {
                    parts = parts_of(left, radix);
                    if (step-- == 0)
                        break;
                    distance *= parts;
                }
                cr_assert_eq(apart % distance, 0);
                cr_assert_eq(apart / distance < parts && apart > 0, true);
            }
        }
        halving_schedule_fini(&s);
    }
    cr_assert_eq(chunks, (1u << n) - 1);
}

Test(halving_schedule, long_messages_stay_near)
{
    for (int n = 2; n <= WORKERS_MAX; n++) {
        for (size_t r = 0; r < RADICES; r++)
            check_distances(n, radices[r]);
    }
}

Test(halving_schedule, steps_and_messages_of_a_short_vector)
{
    static const int steps[] = {0, 0, 2, 2, 4, 2, 4, 2, 6, 4, 4, 2, 6};
    static const size_t messages[] = {0, 0, 2, 4, 4, 8, 6, 12, 6, 8, 10, 20, 8};
    for (int n = 1; n < (int)(sizeof steps / sizeof *steps); n++) {
        cr_assert_eq(halving_steps(n, 0), steps[n]);
        cr_assert_eq(halving_steps(n, 2), steps[n]);
        for (int rank = 0; rank < n; rank++) {
            struct halving_schedule s;
            cr_assert_eq(halving_schedule_init(&s, n, 2, rank, 100, 0, HALVING_SLICES_UNDER_WAY),
                         STATUS_OK);
            cr_assert_eq(s.slices, 1);
            cr_assert_eq(s.receives, messages[n]); /* p - 1 a step */
            halving_schedule_fini(&s);
        }
    }
}

/* A power of the radix takes two steps for each exponent. A radix above the workers means all of
 * them. 6 is cut into 3 and 2. A prime factor above the radix is one cut, as with radix 2. */
Test(halving_schedule, steps_with_a_radix)
{
    static const struct {
        int workers, radix, steps;
        size_t receives;
    } cases[] = {{16, 4, 4, 12}, {16, 16, 2, 30}, {16, 1000, 2, 30}, {9, 3, 4, 8},   {8, 4, 4, 8},
                 {8, 8, 2, 14},  {6, 3, 4, 6},    {6, 6, 2, 10},     {12, 4, 4, 10}, {12, 3, 6, 8},
                 {14, 3, 4, 14}, {15, 4, 4, 12},  {7, 3, 2, 12},     {2, 2, 2, 2}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct halving_schedule s;
        int n = cases[c].workers, radix = cases[c].radix;
        cr_assert_eq(halving_schedule_init(&s, n, radix, n - 1, 100, 0, HALVING_SLICES_UNDER_WAY),
                     STATUS_OK);
        cr_expect_eq(halving_steps(n, radix), cases[c].steps, "%d workers, radix %d", n, radix);
        cr_expect_eq(s.receives, cases[c].receives, "%d workers, radix %d: %zu receives", n, radix,
                     s.receives);
        halving_schedule_fini(&s);
    }
}

/* Recursive doubling adds in halves, so it replaces only what is cut in halves. */
Test(halving_schedule, doubling_keeps_the_order_of_halving)
{
    cr_expect(doubling_is_short(8, 0, 1, 64) && doubling_is_short(8, 2, 1, 64));
    cr_expect(doubling_is_short(8, 3, 1, 64) && doubling_is_short(2, 16, 1, 64));
    cr_expect(!doubling_is_short(8, 4, 1, 64) && !doubling_is_short(4, 4, 1, 64));
    cr_expect(!doubling_is_short(6, 2, 1, 64) && !doubling_is_short(8, 2, 2, 64));
}

/* The chunks of all slices together are those of the vector, so bytes do not depend on slices. On
 * an exchange the all-gather of one slice follows the reduce-scatter of others. */
Test(halving_schedule, slices_follow_each_other)
{
    static const size_t under_way[] = {HALVING_SLICES_UNDER_WAY, 12, 1000};
    for (size_t u = 0; u < sizeof under_way / sizeof *under_way; u++) {
        struct halving_schedule s;
        cr_assert_eq(halving_schedule_init(&s, 8, 2, 3, 80003, 4096, under_way[u]), STATUS_OK);
        cr_assert_gt(s.slices, 12);
        cr_assert_eq(s.slice_count % 8, 0);
        size_t ahead = 0, ahead_max = 0; /* slices that have begun and not ended */
        for (size_t i = 0; i < s.exchanges[0].send_count; i++) {
            ahead += s.exchanges[0].sends[i].reduces ? 1 : (size_t)-1;
            ahead_max = ahead > ahead_max ? ahead : ahead_max;
        }
        cr_assert_eq(ahead, 0);
        /* From the first of the six steps to the last */
        cr_assert_eq(ahead_max, size_smaller(size_divide_up(5 * under_way[u], 6), s.slices));
        halving_schedule_fini(&s);
    }
}

/*
 * Below a millisecond, or on one host, nothing changes. Four workers take T = 4 steps, and 4.8 MB
 * have slices whose first message has 32 KB, 25.6 MB slices of 100 KB. Each case is T (1 + a B /
 * F), rounded up, but no more than T K.
 */
Test(halving_schedule, slices_under_way_cover_the_distance)
{
    static const double round_trips[] = {0, 0.9e-3, 1e-3, 10e-3, 50e-3, 100e-3};
    enum { TRIPS = sizeof round_trips / sizeof *round_trips };
    static const struct {
        int workers;
        size_t count, segment_bytes;
        enum compress compress;
        double link_bytes_per_s;
        size_t under_way[TRIPS];
    } cases[] = {
        {2, 1199882, 0, COMPRESS_NONE, 25e6, {4, 4, 4, 10, 41, 80}},
        {3, 1199882, 0, COMPRESS_NONE, 25e6, {4, 4, 4, 6, 22, 41}},
        {4, 1199882, 0, COMPRESS_NONE, 25e6, {4, 4, 6, 20, 82, 159}},
        {6, 1199882, 0, COMPRESS_NONE, 25e6, {4, 4, 6, 20, 82, 159}},
        {8, 1199882, 0, COMPRESS_NONE, 25e6, {4, 4, 9, 30, 122, 238}},
        {16, 1199882, 0, COMPRESS_NONE, 25e6, {4, 4, 12, 39, 163, 317}},
        {4, 16384, 0, COMPRESS_NONE, 25e6, {4, 4, 4, 4, 4, 4}},
        {4, 6400000, 0, COMPRESS_NONE, 25e6, {4, 4, 5, 9, 29, 54}},
        {4, 1199882, 0, COMPRESS_NONE, 125e6, {4, 4, 12, 82, 296, 296}},
        {4, 1199882, 0, COMPRESS_NONE, 0, {4, 4, 14, 101, 296, 296}},
        {4, 1199882, 0, COMPRESS_NONE, INFINITY, {4, 4, 4, 4, 4, 4}},
        {4, 1199882, 8192, COMPRESS_NONE, 25e6, {4, 4, 11, 66, 310, 615}},
        {4, 1199882, 0, COMPRESS_BF16, 25e6, {4, 4, 8, 35, 159, 296}},
        {1, 1199882, 0, COMPRESS_NONE, 25e6, {4, 4, 4, 4, 4, 4}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        for (int t = 0; t < TRIPS; t++) {
            const struct comm_options options = {.segment_bytes = cases[c].segment_bytes,
                                                 .compress = cases[c].compress,
                                                 .link_bytes_per_s = cases[c].link_bytes_per_s,
                                                 .round_trip_s = round_trips[t]};
            size_t found = halving_under_way(cases[c].workers, cases[c].count, &options);
            cr_expect_eq(found, cases[c].under_way[t], "case %zu, round trip %g s: %zu", c,
                         round_trips[t], found);
        }
    }
}

/* "23 > 2 [0]": chunks, receiver, the set that is already added. One element a chunk. */
static void describe(const struct player *player, const struct halving_item *item, int peer,
                     char *text, size_t size)
{
    size_t used = 0;
    for (size_t c = item->span.offset; c < item->span.offset + item->span.count; c++)
        used += (size_t)snprintf(text + used, size - used, "%zu", c);
    used += (size_t)snprintf(text + used, size - used, " > %d [", peer);
    for (int w = 0; w < player->schedule.workers; w++) {
        if (player->held[item->span.offset] & 1u << w)
            used += (size_t)snprintf(text + used, size - used, "%d", w);
    }
    snprintf(text + used, size - used, "]");
}

/* All messages that worker `w` sends in a step. */
static void table_cell(const struct player *player, int step, char *cell)
{
    char one[32];
    cell[0] = '\0';
    for (size_t l = 0; l < player->schedule.exchange_count; l++) {
        const struct halving_exchange *exchange = &player->schedule.exchanges[l];
        for (size_t i = 0; i < exchange->send_count; i++) {
            if (exchange->sends[i].step != step)
                continue;
            describe(player, &exchange->sends[i], exchange->peer, one, sizeof one);
            strcat(strcat(cell, cell[0] ? ", " : ""), one);
        }
    }
}

/* Prints one line of a table in ring/halving.c, then plays the step. */
static void table_line(int step, int width, char *line, size_t size)
{
    size_t used = (size_t)snprintf(line, size, " *   step %d       ", step);
    for (int w = 0; w < play.workers; w++) {
        char cell[64];
        table_cell(&play.players[w], step, cell);
        used += (size_t)snprintf(line + used, size - used, " %-*s", width, cell);
    }
    while (used > 0 && line[used - 1] == ' ')
        line[--used] = '\0';
    for (int w = 0; w < play.workers; w++) {
        for (size_t l = 0; l < play.players[w].schedule.exchange_count; l++)
            play_send(&play.players[w], l);
    }
    for (int round = 0; round < WORKERS_MAX; round++) { /* in any order */
        for (int w = 0; w < play.workers; w++) {
            const struct player *player = &play.players[w];
            for (size_t l = 0; l < player->schedule.exchange_count; l++) {
                const struct halving_exchange *exchange = &player->schedule.exchanges[l];
                if (player->received[l] < exchange->receive_count &&
                    exchange->receives[player->received[l]].step == step)
                    play_receive(&play, w, l);
            }
        }
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
        play_start(&play, workers, 2, (size_t)workers, 0, HALVING_SLICES_UNDER_WAY);
        for (int step = 0; step < halving_steps(workers, 2); step++) {
            char line[160];
            table_line(step, workers == 4 ? 16 : 24, line, sizeof line);
            strcat(line, "\n");
            cr_expect_not_null(strstr(text, line), "ring/halving.c does not have this line:\n%s",
                               line);
        }
        for (int w = 0; w < workers; w++) {
            for (size_t i = 0; i < play.count; i++)
                cr_assert_eq(play.players[w].held[i], (1u << workers) - 1);
        }
        play_end(&play);
    }
}

/* -------- slices by link ---------------------------------------------------------------------- */

static size_t slices_on(double link_bytes_per_s, int radix, size_t segment_bytes, size_t bytes)
{
    const struct comm_options options = {
        .radix = radix, .link_bytes_per_s = link_bytes_per_s, .segment_bytes = segment_bytes};
    size_t count = bytes / sizeof(float);
    return halving_slices(4, radix, count, halving_segment_bytes(4, count, &options));
}

Test(halving_schedule, fast_links_have_few_slices)
{
    const double slow = 25e6, fast = 1.25e9, one_host = INFINITY;
    cr_expect_eq(slices_on(slow, 2, 0, 1 << 20), 16);
    cr_expect_eq(slices_on(0, 2, 0, 1 << 20), 16, "an unknown link is slow");
    cr_expect_eq(slices_on(fast, 2, 0, 1 << 20), 5);
    cr_expect_eq(slices_on(one_host, 2, 0, 1 << 20), 1);
    cr_expect_eq(slices_on(one_host, 4, 0, 1 << 20), 1);
    cr_expect_eq(slices_on(one_host, 2, 65536, 1 << 20), 8, "the user's length counts");
    /* Several slices: 128 KB, or what 128 slices have. */
    cr_expect_eq(slices_on(one_host, 2, 0, 4 << 20), 16);
    cr_expect_eq(slices_on(one_host, 2, 0, 128 << 20), 256);
}
