/*
 * Double binary tree all-reduce
 * =============================
 *
 * The ring's latency grows with N. A tree has only lg N levels: each worker adds up what its
 * children send and passes the sum to its parent (*reduce*). The root then holds the total, and the
 * same tree carries it back down (*broadcast*). The vector travels in segments, one after the
 * other, so all levels work at the same time.
 *
 * One binary tree wastes links. An inner node receives M from each of two children, and half of all
 * workers are leaves that receive nothing while they send M. Two trees repair this. Every worker is
 * a leaf of at least one tree, so the inner nodes of one tree are leaves of the other. Each tree
 * moves half of the vector, and both work at the same time. (Sanders, Speck and Traeff 2009. NCCL
 * has such trees since version 2.4.)
 *
 * The trees. Write the workers in a row, and make every second one an inner node: 1, 3, 5, ... The
 * middle one is the root. The middle one of those on its left is the left child, and so on down.
 * The others, 0, 2, 4, ..., are the leaves between them. For tree 1, an even number of workers is
 * written in reverse. An odd number is moved by one place. Then the other workers are inner nodes.
 *
 *   7 workers
 *       tree 0                       tree 1
 *                3                            4
 *          1           5                2           6
 *       0     2     4     6          1     3     5     0
 *
 *   8 workers
 *       tree 0                       tree 1
 *                      5                            2
 *                3           7                4           0
 *          1        4     6             6        3     1
 *       0     2                      7     5
 *
 * (tests/ring/test_tree.c draws these trees from the code and compares.) Worker 6 of 7, for
 * example, sends half 0 to its parent 5, and gets the sum back. It adds up half 1 from 5 and 0,
 * sends this to 4, and forwards the sum from 4 to 5 and 0. Worker 0 is a leaf of both trees, if N
 * is odd.
 *
 * Cost of a worker in one tree, sent and also received. K is the number of segments of a half:
 *
 *                                  bytes        messages
 *   leaf                           1/2 M        K           the own part up | the sum down
 *   root, two children             2/2 M        2 K         two children's parts | the sum to both
 *   inner node, two children       3/2 M        3 K         both
 *   root or inner node, one child  1/2 M less   K less
 *
 * A worker's cost is the sum of its two places. An inner node of one tree moves 3/2 M there and 1/2
 * M as a leaf of the other: 2 M each way. This is the most; the ring moves 2(N-1)/N M. All workers
 * together send 2(N-1) M, as in the ring, but not in equal shares. A segment passes at most 2 lg N
 * edges, where the ring needs 2(N-1) steps.
 *
 *     time = 2 lg N a + 2 M/B + M g, and the time to fill the trees (ring/cost.c)
 *
 * Order of addition. A worker adds its left child's part to its own, then the right child's. N
 * fixes the trees, so all runs give the same bits. The root makes each sum and all others copy it,
 * so all workers hold the same bits. --reduce-order ring, another order, is refused.
 *
 * Segments under way. A leaf could send its whole half at once. Its parent would have to store what
 * it cannot add yet. A leaf therefore sends segment k only when the sum of segment k - U has come
 * back. U covers the way up and down the tree, and some more segments. The sums would come late if
 * leaves went ahead. Between distant workers several segments are on each edge at a time
 * (*stride*), and U covers them too.
 *
 * Code. The function tree_place_of is the trees. tree_schedule_init lists a worker's messages in an
 * order that both ends know. Segment k takes step s at time k + s stride. halving.c moves them. It
 * posts receives ahead, adds what has arrived, and sends what depends on it.
 */
#include <stdlib.h>

#include "common/base/status.h"
#include "common/base/util.h"
#include "common/comm/compress.h"
#include "ring/halving_schedule.h"
#include "ring/ring.h"

/* -------- the trees --------------------------------------------------------------------------- */

int tree_height(int workers)
{
    int height = 0;
    for (int n = workers; n > 1; n /= 2)
        height++;
    return height;
}

/* Tree 1 is tree 0 over the workers in another order. Both orders differ by an odd number of
 * places, so every second worker changes from inner node to leaf. */
static int worker_at(int workers, int tree, int place)
{
    if (tree == 0)
        return place;
    return workers % 2 == 0 ? workers - 1 - place : (place + 1) % workers;
}

static int place_of(int workers, int tree, int rank)
{
    if (tree == 0)
        return rank;
    return workers % 2 == 0 ? workers - 1 - rank : (rank + workers - 1) % workers;
}

/* The top of the subtree of places first .. end-1: the middle inner node, or the only leaf. `first`
 * is even; inner nodes are odd. */
static int middle_of(int first, int end)
{
    int inner = (end - first) / 2;
    return inner > 0 ? first + inner / 2 * 2 + 1 : first;
}

struct tree_place tree_place_of(int workers, int tree, int rank)
{
    CHECK(tree >= 0 && tree < TREES && rank >= 0 && rank < workers);
    int place = place_of(workers, tree, rank), first = 0, end = workers;
    int top = middle_of(first, end);
    struct tree_place found = {.parent = -1};
    for (; top != place; top = middle_of(first, end), found.depth++) {
        found.parent = worker_at(workers, tree, top);
        if (place < top)
            end = top;
        else
            first = top + 1;
    }
    if (first < top)
        found.children[found.child_count++] = worker_at(workers, tree, middle_of(first, top));
    if (top + 1 < end)
        found.children[found.child_count++] = worker_at(workers, tree, middle_of(top + 1, end));
    return found;
}

/* -------- a worker's messages ----------------------------------------------------------------- */

/*
 * A segment passes 2h + 1 workers, so the trees are full after 2h segments. With 64 segments the
 * time to fill them is a small part of the whole. Shorter messages than 32 KB show their fixed
 * cost, and longer ones than 256 KB save nothing.
 */
enum { SEGMENT_BYTES_MIN = 32 << 10, SEGMENT_BYTES_MAX = 256 << 10, SEGMENTS_WANTED = 64 };

enum { EXCHANGES_MOST = TREES * (1 + TREE_CHILDREN) };

size_t tree_segments(size_t count, size_t segment_bytes)
{
    size_t half = size_divide_up(count, TREES);
    if (segment_bytes == 0) {
        segment_bytes = size_divide_up(half, SEGMENTS_WANTED) * sizeof(float);
        segment_bytes = size_larger(segment_bytes, SEGMENT_BYTES_MIN);
        segment_bytes = size_smaller(segment_bytes, SEGMENT_BYTES_MAX);
    }
    return size_divide_up(half, size_larger(segment_bytes / sizeof(float), 1));
}

size_t tree_stride(int workers, size_t count, const struct comm_options *options)
{
    size_t held = comm_bytes_held(options);
    if (held == 0 || workers == 1 || count == 0)
        return 1;
    size_t segments =
        tree_segments(count, compress_float_bytes(options->compress, options->segment_bytes));
    size_t bytes = count * compress_element_bytes(options->compress);
    size_t halves = workers < 4 ? (size_t)workers : 4; /* Q = halves / 2 */
    size_t step_bytes = size_larger(halves * bytes / (2 * segments), 1);
    size_t stride = 1 + size_divide_up(held / 2, step_bytes);
    return size_smaller(stride, segments); /* all may be on one edge */
}

/* One tree from one worker's view. */
struct branch {
    int tree, height;
    size_t segments, stride;
    struct chunk half;
    struct tree_place place;
    struct halving_exchange *parent, *children[TREE_CHILDREN];
    size_t replaced; /* index of the parent's next send that has no answer in the list */
};

/* A message of a branch: which step of its segment it is. */
struct hop {
    int step;
    bool reduces; /* it goes up */
};

/* The message of this hop at `time`, if there is one then. */
static bool item_at(const struct branch *branch, struct hop hop, size_t time,
                    struct halving_item *item)
{
    size_t first = (size_t)hop.step * branch->stride, segment = time - first;
    if (time < first || segment >= branch->segments)
        return false;
    struct chunk span = chunk_of(branch->half.count, branch->segments, segment);
    *item = (struct halving_item){.slice = segment * TREES + (size_t)branch->tree,
                                  .step = hop.step,
                                  .span = {branch->half.offset + span.offset, span.count},
                                  .order = time,
                                  .reduces = hop.reduces};
    return span.count > 0;
}

static void add_receive(struct halving_exchange *exchange, struct halving_item item)
{
    exchange->receives[exchange->receive_count++] = item;
}

static void add_send(struct halving_exchange *exchange, struct halving_item item)
{
    exchange->sends[exchange->send_count++] = item;
}

/* A leaf's part waits for no part of other workers, but for the sum of an earlier segment. */
static void limit_leaf(const struct branch *branch, struct halving_item *item)
{
    size_t edges = 2 * (size_t)branch->height;
    size_t under_way = TREES * (edges * branch->stride + TREE_SEGMENTS_UNDER_WAY);
    if (item->slice < under_way)
        return;
    item->slice -= under_way;
    item->after = 1;
}

/* Parts from the children, and what has been added up to the parent. */
static void add_up(struct branch *branch, size_t time)
{
    struct halving_item item;
    const struct tree_place *place = &branch->place;
    struct hop from_children = {branch->height - place->depth - 1, true};
    struct hop to_parent = {branch->height - place->depth, true};
    for (int c = 0; c < place->child_count && item_at(branch, from_children, time, &item); c++) {
        item.after = (size_t)c;
        item.completes = !branch->parent && c + 1 == place->child_count;
        add_receive(branch->children[c], item);
    }
    if (!branch->parent || !item_at(branch, to_parent, time, &item))
        return;
    item.after = (size_t)place->child_count;
    if (place->child_count == 0)
        limit_leaf(branch, &item);
    add_send(branch->parent, item);
}

/* The sum from the parent, and to the children. The root has it when all children's parts are
 * added. The sum lands on the memory of the part that went up. */
static void add_down(struct branch *branch, size_t time)
{
    struct halving_item item;
    const struct tree_place *place = &branch->place;
    struct hop from_parent = {branch->height + place->depth - 1, false};
    struct hop to_children = {branch->height + place->depth, false};
    if (branch->parent && item_at(branch, from_parent, time, &item)) {
        while (!branch->parent->sends[branch->replaced].reduces)
            branch->replaced++;
        item.after = (size_t)place->child_count;
        item.replaces = branch->replaced++;
        add_receive(branch->parent, item);
    }
    for (int c = 0; c < place->child_count && item_at(branch, to_children, time, &item); c++) {
        item.after = (size_t)place->child_count + (branch->parent != NULL);
        add_send(branch->children[c], item);
    }
}

/* -------- the list ---------------------------------------------------------------------------- */

/* The exchange with `peer`: a worker can be the parent in one tree and a child in the other. */
static struct halving_exchange *exchange_with(struct halving_schedule *schedule, int peer)
{
    size_t at = 0;
    while (at < schedule->exchange_count && schedule->exchanges[at].peer != peer)
        at++;
    if (at == schedule->exchange_count)
        schedule->exchanges[schedule->exchange_count++].peer = peer;
    return &schedule->exchanges[at];
}

static struct branch branch_of(struct halving_schedule *schedule, int tree, size_t stride)
{
    struct branch branch = {.tree = tree,
                            .height = tree_height(schedule->workers),
                            .segments = schedule->slices / TREES,
                            .stride = stride,
                            .half = chunk_of(schedule->count, TREES, (size_t)tree),
                            .place = tree_place_of(schedule->workers, tree, schedule->rank)};
    if (branch.place.parent >= 0)
        branch.parent = exchange_with(schedule, branch.place.parent);
    for (int c = 0; c < branch.place.child_count; c++)
        branch.children[c] = exchange_with(schedule, branch.place.children[c]);
    return branch;
}

/* In each direction an exchange has at most one message for each segment of each tree. */
static enum status allocate(struct halving_schedule *schedule)
{
    size_t most = schedule->slices;
    schedule->exchanges = calloc(EXCHANGES_MOST, sizeof *schedule->exchanges);
    schedule->items = calloc(2 * most * EXCHANGES_MOST + 1, sizeof *schedule->items);
    if (!schedule->exchanges || !schedule->items) {
        halving_schedule_fini(schedule);
        return FAIL(STATUS_NO_MEMORY, "tree: no memory for a schedule of %zu segments", most);
    }
    for (size_t l = 0; l < EXCHANGES_MOST; l++) {
        schedule->exchanges[l].sends = schedule->items + 2 * most * l;
        schedule->exchanges[l].receives = schedule->exchanges[l].sends + most;
    }
    return STATUS_OK;
}

/*
 * A message that depends on another has a later time, or the same time and a later place in the
 * loop. All workers list in this one order. The first missing message can therefore always be sent
 * and processed, and workers never wait for each other in a circle. This needs U > (2h - 1) stride.
 */
enum status tree_schedule_init(struct halving_schedule *schedule, int workers, int rank,
                               size_t count, size_t segment_bytes, size_t stride)
{
    CHECK(workers > 0 && rank >= 0 && rank < workers && stride > 0);
    size_t segments = tree_segments(count, segment_bytes);
    size_t steps = 2 * (size_t)tree_height(workers);
    struct branch branches[TREES];
    *schedule = (struct halving_schedule){
        .workers = workers, .rank = rank, .count = count, .slices = TREES * segments};
    enum status status = allocate(schedule);
    if (status != STATUS_OK)
        return status;
    for (int tree = 0; tree < TREES; tree++)
        branches[tree] = branch_of(schedule, tree, stride);
    for (size_t time = 0; time < segments + steps * stride; time++) {
        for (int tree = 0; tree < TREES; tree++) {
            add_up(&branches[tree], time);
            add_down(&branches[tree], time);
        }
    }
    for (size_t l = 0; l < schedule->exchange_count; l++)
        schedule->receives += schedule->exchanges[l].receive_count;
    return STATUS_OK;
}

/* -------- the backend ------------------------------------------------------------------------- */

static enum status list_messages(struct halving_schedule *schedule, const struct backend_env *site,
                                 size_t count)
{
    const struct comm_options *options = site->options;
    return tree_schedule_init(schedule, site->workers, site->index, count,
                              compress_float_bytes(options->compress, options->segment_bytes),
                              tree_stride(site->workers, count, options));
}

static enum status tree_open(void **self, const struct backend_env *site)
{
    static const struct halving_lister lister = {.name = "tree", .list = list_messages};
    return halving_open_lister(self, site, &lister);
}

const struct backend backend_tree = {
    .name = "tree",
    .summary = "double binary tree all-reduce over --transport; at most 2 M in 2 lg N steps",
    .uses_transport = true,
    .obeys_segment_bytes = true,
    .reduces = true,
    .compresses = true,
    .counts_bytes = true,
    .default_transport = TRANSPORT_TCP,
    .cost = &tree_cost,
    .open = tree_open,
    .plan = halving_plan,
    .allreduce = halving_allreduce,
    .state = halving_state,
    .close = halving_close,
};
