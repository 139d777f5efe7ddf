/* The double binary tree: parents and children for up to 64 workers, and who sends what, when, to
 * whom. Also the trees drawn in ring/tree.c, drawn from the code. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ring/halving_schedule.h"
#include "ring/ring.h"

enum { WORKERS_MOST = 64 };

/* -------- the trees --------------------------------------------------------------------------- */

/* Parents and children name each other, and depths count the edges from the one root. All workers
 * are therefore connected. */
static void check_place(int workers, int tree, int rank, int *roots, int *deepest)
{
    struct tree_place place = tree_place_of(workers, tree, rank);
    cr_assert(place.child_count >= 0 && place.child_count <= TREE_CHILDREN);
    cr_assert((place.parent < 0) == (place.depth == 0));
    *roots += place.parent < 0;
    *deepest = place.depth > *deepest ? place.depth : *deepest;
    for (int c = 0; c < place.child_count; c++) {
        cr_assert(place.children[c] >= 0 && place.children[c] < workers);
        cr_assert(place.child_count == 1 || place.children[c] != place.children[!c]);
        struct tree_place child = tree_place_of(workers, tree, place.children[c]);
        cr_assert_eq(child.parent, rank, "%d workers, tree %d: parent of %d", workers, tree,
                     place.children[c]);
        cr_assert_eq(child.depth, place.depth + 1);
    }
    if (place.parent < 0)
        return;
    cr_assert_lt(place.parent, workers);
    struct tree_place parent = tree_place_of(workers, tree, place.parent);
    int found = 0;
    for (int c = 0; c < parent.child_count; c++)
        found += parent.children[c] == rank;
    cr_assert_eq(found, 1, "%d workers, tree %d: child %d", workers, tree, rank);
}

Test(tree, each_spans_all_workers_in_the_least_height)
{
    for (int workers = 1; workers <= WORKERS_MOST; workers++) {
        int height = tree_height(workers);
        cr_assert(1 << height <= workers && workers < 2 << height);
        for (int tree = 0; tree < TREES; tree++) {
            int roots = 0, deepest = 0;
            for (int rank = 0; rank < workers; rank++)
                check_place(workers, tree, rank, &roots, &deepest);
            cr_assert_eq(roots, 1);
            cr_assert_eq(deepest, height, "%d workers, tree %d: height %d", workers, tree, deepest);
        }
    }
}

/* Without exception. A tree has at most one inner node with one child. */
Test(tree, an_inner_node_of_one_is_a_leaf_of_the_other)
{
    for (int workers = 1; workers <= WORKERS_MOST; workers++) {
        int single[TREES] = {0};
        for (int rank = 0; rank < workers; rank++) {
            int inner = 0;
            for (int tree = 0; tree < TREES; tree++) {
                int children = tree_place_of(workers, tree, rank).child_count;
                inner += children > 0;
                single[tree] += children == 1;
            }
            cr_assert_leq(inner, 1, "%d workers: %d is inner in both trees", workers, rank);
        }
        cr_assert(single[0] <= 1 && single[1] <= 1);
    }
}

/* A worker moves at most 2 M each way, and all together what a ring moves. */
Test(tree, bytes_of_every_worker)
{
    for (int workers = 1; workers <= WORKERS_MOST; workers++) {
        const struct cost_shape shape = {
            .topology = {.workers = workers}, .count = 1000, .element_bytes = 4, .pipeline = 1};
        uint64_t all = 0, most = 0;
        for (int rank = 0; rank < workers; rank++) {
            struct cost_traffic traffic = tree_cost.traffic(&shape, rank);
            cr_assert_eq(traffic.sent_bytes, traffic.received_bytes);
            most = traffic.sent_bytes > most ? traffic.sent_bytes : most;
            all += traffic.sent_bytes;
        }
        cr_assert_eq(all, 2 * (uint64_t)(workers - 1) * 4000);
        cr_assert_eq(most, workers == 1 ? 0 : workers == 2 ? 4000 : workers == 3 ? 6000 : 8000);
    }
}

/* -------- the messages ------------------------------------------------------------------------ */

enum { ELEMENTS_MOST = 200, EXCHANGES_MOST = 6 };

/* One worker. `held`: by element, the set of workers that its sum contains. */
struct player {
    struct halving_schedule schedule;
    uint64_t held[ELEMENTS_MOST];
    size_t sent[EXCHANGES_MOST], received[EXCHANGES_MOST];
    uint64_t *carried; /* by position in schedule.items: the set that a sent message contains */
    size_t *dealt;     /* (slices) */
    size_t ups, downs; /* of tree 0: segments sent up, sums received */
};

static struct player players[WORKERS_MOST];

static void play_start(int workers, size_t count, size_t segment_bytes, size_t stride)
{
    for (int w = 0; w < workers; w++) {
        struct player *player = &players[w];
        *player = (struct player){0};
        cr_assert_eq(
            tree_schedule_init(&player->schedule, workers, w, count, segment_bytes, stride),
            STATUS_OK);
        size_t slices = player->schedule.slices;
        cr_assert_leq(player->schedule.exchange_count, EXCHANGES_MOST);
        player->carried = calloc(2 * slices * EXCHANGES_MOST + 1, sizeof *player->carried);
        player->dealt = calloc(slices + 1, sizeof *player->dealt);
        for (size_t i = 0; i < count; i++)
            player->held[i] = 1ull << w;
    }
}

static void play_end(int workers)
{
    for (int w = 0; w < workers; w++) {
        halving_schedule_fini(&players[w].schedule);
        free(players[w].carried);
        free(players[w].dealt);
    }
}

/* Sends the next message of an exchange, if its receives have come. */
static bool play_send(struct player *player, size_t l)
{
    const struct halving_exchange *exchange = &player->schedule.exchanges[l];
    if (player->sent[l] == exchange->send_count)
        return false;
    const struct halving_item *item = &exchange->sends[player->sent[l]];
    if (player->dealt[item->slice] < item->after)
        return false;
    cr_assert_gt(item->span.count, 0);
    uint64_t set = player->held[item->span.offset];
    for (size_t i = 0; i < item->span.count; i++)
        cr_assert_eq(player->held[item->span.offset + i], set);
    uint64_t all = ~0ull >> (64 - player->schedule.workers);
    cr_assert_eq(item->reduces, set != all, "a partial sum goes up, a complete one down");
    player->carried[item - player->schedule.items] = set;
    player->sent[l]++;
    player->ups += item->reduces && item->span.offset < (player->schedule.count + 1) / 2;
    return true;
}

/* The list of the other end of an exchange. */
static size_t exchange_to(const struct player *player, int peer)
{
    for (size_t l = 0; l < player->schedule.exchange_count; l++) {
        if (player->schedule.exchanges[l].peer == peer)
            return l;
    }
    cr_assert_fail("worker %d has no exchange with %d", player->schedule.rank, peer);
    return 0;
}

/* A part is added once. A sum replaces what went up before. */
static void play_take(struct player *player, size_t l, const struct halving_item *item,
                      uint64_t carried)
{
    const struct halving_exchange *exchange = &player->schedule.exchanges[l];
    uint64_t all = ~0ull >> (64 - player->schedule.workers);
    if (!item->reduces) {
        const struct halving_item *replaced = &exchange->sends[item->replaces];
        cr_assert_lt(item->replaces, player->sent[l]);
        cr_assert(replaced->reduces && replaced->span.offset == item->span.offset &&
                  replaced->span.count == item->span.count);
    }
    for (size_t i = item->span.offset; i < item->span.offset + item->span.count; i++) {
        cr_assert(!item->reduces || !(player->held[i] & carried), "a part is added twice");
        player->held[i] = item->reduces ? player->held[i] | carried : carried;
        cr_assert_eq(item->completes, item->reduces && player->held[i] == all);
    }
    player->downs += !item->reduces && item->span.offset < (player->schedule.count + 1) / 2;
}

/* Takes the next message of an exchange, if it has been sent and its turn has come. */
static bool play_receive(struct player *player, size_t l)
{
    const struct halving_exchange *exchange = &player->schedule.exchanges[l];
    const struct player *peer = &players[exchange->peer];
    size_t back = exchange_to(peer, player->schedule.rank), next = player->received[l];
    const struct halving_exchange *theirs = &peer->schedule.exchanges[back];
    cr_assert_eq(exchange->receive_count, theirs->send_count);
    if (next == peer->sent[back])
        return false;
    const struct halving_item *item = &exchange->receives[next], *sent = &theirs->sends[next];
    cr_assert(item->span.offset == sent->span.offset && item->span.count == sent->span.count &&
              item->reduces == sent->reduces);
    if (player->dealt[item->slice] != item->after)
        return false;
    play_take(player, l, item, peer->carried[sent - peer->schedule.items]);
    player->received[l]++;
    player->dealt[item->slice]++;
    return true;
}

/* Each worker sends all that it may before it receives. Returns whether anything moved. */
static bool play_worker(struct player *player)
{
    bool moved = false;
    for (size_t l = 0; l < player->schedule.exchange_count; l++) {
        while (play_send(player, l))
            moved = true;
    }
    for (size_t l = 0; l < player->schedule.exchange_count; l++)
        moved = play_receive(player, l) || moved;
    return moved;
}

/* Returns the most segments of tree 0 that a leaf had under way. It never happens that all wait. */
static size_t play(int workers, size_t count, size_t segment_bytes, size_t stride)
{
    size_t ahead_most = 0;
    bool moved = true;
    play_start(workers, count, segment_bytes, stride);
    while (moved) {
        moved = false;
        for (int w = 0; w < workers; w++) {
            struct player *player = &players[w];
            moved = play_worker(player) || moved;
            if (tree_place_of(workers, 0, w).child_count == 0 &&
                player->ups - player->downs > ahead_most)
                ahead_most = player->ups - player->downs;
        }
    }
    for (int w = 0; w < workers; w++) {
        const struct player *player = &players[w];
        size_t receives = 0;
        for (size_t l = 0; l < player->schedule.exchange_count; l++) {
            const struct halving_exchange *exchange = &player->schedule.exchanges[l];
            cr_assert_eq(player->sent[l], exchange->send_count, "%d workers: %d waits", workers, w);
            cr_assert_eq(player->received[l], exchange->receive_count);
            receives += exchange->receive_count;
        }
        cr_assert_eq(receives, player->schedule.receives);
        for (size_t i = 0; i < count; i++)
            cr_assert_eq(player->held[i], ~0ull >> (64 - workers));
    }
    play_end(workers);
    return ahead_most;
}

Test(tree, every_part_is_added_once_and_the_sum_reaches_all)
{
    static const size_t counts[] = {0, 1, 2, 3, 63, 64, 65, 127, 128, 129, 200};
    for (int workers = 1; workers <= WORKERS_MOST; workers++) {
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            play(workers, counts[c], 0, 1);
            play(workers, counts[c], 4 * 32, 1);
        }
        for (size_t stride = 1; stride <= 65; stride += 16)
            play(workers, 129, 4, stride);
    }
}

/* A leaf sends no more segments than the trees need to be full, and some. (Two workers send each
 * message in turn.) */
Test(tree, a_leaf_waits_for_earlier_sums)
{
    for (int workers = 3; workers <= WORKERS_MOST; workers++) {
        for (size_t stride = 1; stride <= 20; stride += stride == 1 ? 6 : 13) {
            size_t edges = 2 * (size_t)tree_height(workers), segments = ELEMENTS_MOST / TREES;
            size_t window = size_smaller(edges * stride + TREE_SEGMENTS_UNDER_WAY, segments);
            cr_assert_eq(play(workers, ELEMENTS_MOST, 4, stride), window);
        }
    }
}

/*
 * Below a millisecond, or on one host, nothing changes. 4.8 MB have 64 segments of a half. In a
 * step the busiest link carries 1, 3/2, 2, 2 times 75 KB, for 2, 3, 4, 5 workers. Each case is 1 +
 * a B / (Q/K M), rounded up, but no more than K.
 */
Test(tree, a_stride_covers_the_distance)
{
    static const double round_trips[] = {0, 0.9e-3, 1e-3, 10e-3, 50e-3, 100e-3};
    enum { TRIPS = sizeof round_trips / sizeof *round_trips };
    static const struct {
        int workers;
        size_t count, segment_bytes;
        enum compress compress;
        double link_bytes_per_s;
        size_t strides[TRIPS];
    } cases[] = {
        {2, 1199882, 0, COMPRESS_NONE, 25e6, {1, 1, 2, 3, 10, 18}},
        {3, 1199882, 0, COMPRESS_NONE, 25e6, {1, 1, 2, 3, 7, 13}},
        {4, 1199882, 0, COMPRESS_NONE, 25e6, {1, 1, 2, 2, 6, 10}},
        {6, 1199882, 0, COMPRESS_NONE, 25e6, {1, 1, 2, 2, 6, 10}},
        {8, 1199882, 0, COMPRESS_NONE, 25e6, {1, 1, 2, 2, 6, 10}},
        {16, 1199882, 0, COMPRESS_NONE, 25e6, {1, 1, 2, 2, 6, 10}},
        {4, 16384, 0, COMPRESS_NONE, 25e6, {1, 1, 1, 1, 1, 1}},
        {4, 6400000, 0, COMPRESS_NONE, 25e6, {1, 1, 2, 2, 2, 3}},
        {4, 1199882, 0, COMPRESS_NONE, 125e6, {1, 1, 2, 6, 22, 43}},
        {4, 1199882, 0, COMPRESS_NONE, 0, {1, 1, 2, 7, 28, 54}},
        {4, 1199882, 0, COMPRESS_NONE, INFINITY, {1, 1, 1, 1, 1, 1}},
        {4, 1199882, 8192, COMPRESS_NONE, 25e6, {1, 1, 2, 5, 21, 40}},
        {4, 1199882, 0, COMPRESS_BF16, 25e6, {1, 1, 2, 3, 10, 18}},
        {1, 1199882, 0, COMPRESS_NONE, 25e6, {1, 1, 1, 1, 1, 1}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        for (int t = 0; t < TRIPS; t++) {
            const struct comm_options options = {.segment_bytes = cases[c].segment_bytes,
                                                 .compress = cases[c].compress,
                                                 .link_bytes_per_s = cases[c].link_bytes_per_s,
                                                 .round_trip_s = round_trips[t]};
            size_t found = tree_stride(cases[c].workers, cases[c].count, &options);
            cr_expect_eq(found, cases[c].strides[t], "case %zu, round trip %g s: %zu", c,
                         round_trips[t], found);
        }
    }
}

Test(tree, segments)
{
    cr_expect_eq(tree_segments(0, 0), 0);
    cr_expect_eq(tree_segments(1, 0), 1);
    cr_expect_eq(tree_segments(16384, 0), 1); /* 32 KB a half */
    cr_expect_eq(tree_segments(16385, 0), 2);
    cr_expect_eq(tree_segments(2 << 20, 0), 64);     /* 64 KB */
    cr_expect_eq(tree_segments(256 << 20, 0), 2048); /* 256 KB */
    cr_expect_eq(tree_segments(9, 8), 3);
    cr_expect_eq(tree_segments(9, 1), 5); /* one element */
}

/* -------- the trees in ring/tree.c ------------------------------------------------------------ */

static int rank_at(int workers, int tree, int place)
{
    if (tree == 0)
        return place;
    return workers % 2 ? (place + 1) % workers : workers - 1 - place;
}

/* Draws the workers of one depth of both trees, each at its place in the row. */
static void draw(int workers, int depth, char *line, size_t size)
{
    enum { LEFT = 9, APART = 29, EACH = 3 };
    memset(line, ' ', size);
    memcpy(line, " *", 2);
    size_t end = 2;
    for (int tree = 0; tree < TREES; tree++) {
        for (int place = 0; place < workers; place++) {
            int rank = rank_at(workers, tree, place);
            size_t at = (size_t)(LEFT + tree * APART + place * EACH);
            if (tree_place_of(workers, tree, rank).depth != depth)
                continue;
            line[at] = (char)('0' + rank);
            end = at + 1;
        }
    }
    line[end] = '\n';
    line[end + 1] = '\0';
}

Test(tree, the_drawings_in_tree_c_are_the_trees)
{
    FILE *file = fopen(PSRING_SOURCE_DIR "/ring/tree.c", "r");
    cr_assert_not_null(file);
    static char text[64 << 10];
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    for (int workers = 7; workers <= 8; workers++) {
        char line[100], drawing[8 * sizeof line] = "";
        for (int depth = 0; depth <= tree_height(workers); depth++) {
            draw(workers, depth, line, sizeof line);
            strcat(drawing, line);
        }
        cr_expect_not_null(strstr(text, drawing), "ring/tree.c does not have this:\n%s", drawing);
    }
}
