#include "experiments/simulate/simulated_network.h"

#include <math.h>
#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <simgrid/link.h>
#include <simgrid/semaphore.h>
#include <stdlib.h>
#include <xbt/dynar.h>

#include "common/base/status.h"
#include "common/base/util.h"

/* Events within this time count as due now: the resolution of SimGrid (surf/precision, as smpirun
 * sets it). */
#define NOW_S 1e-9

struct link {
    double bytes_per_s;
    sg_link_t simgrids; /* its data points back to this link */
    struct link *next;  /* list of all links */

    /* As the first link of a route: */
    struct lane *turn, **last_turn; /* lanes with messages, in the order of their turns */
    bool busy;
    double paid_s; /* end of all its transmissions, at its rate */

    /* As a later link: */
    double seen_s;        /* time at which these values hold: */
    double waiting_bytes; /* queue; below 0: bytes of burst left */
    double coming_bytes_per_s;
};

struct lane {
    struct network *network;
    struct crossing *first, **last; /* waiting for the link */
    struct lane *next_turn;
    bool sending; /* one of its messages is on the link */
    bool closed;
    size_t link_count;
    struct link *links[];
};

struct network {
    struct network_traits traits;
    struct link *links;
    size_t crossings; /* messages that have not arrived */
    bool closed;

    /* The events: a heap, ordered by time. */
    struct crossing **heap; /* space for all crossings */
    size_t heap_count, heap_size;
    uint64_t scheduled;
    double now_s; /* time of the last event; the clock may be NOW_S behind it */

    sg_sem_t bell;
    bool asleep; /* the actor sleeps until until_s or until the bell */
    double until_s;
};

/* -------- events ------------------------------------------------------------------------------ */

static bool is_before(const struct crossing *a, const struct crossing *b)
{
    return a->due_s < b->due_s || (a->due_s == b->due_s && a->order < b->order);
}

static void schedule(struct network *network, struct crossing *crossing, double due_s)
{
    struct crossing **heap = network->heap;
    size_t at = network->heap_count++;
    crossing->due_s = due_s;
    crossing->order = network->scheduled++;
    for (; at > 0 && is_before(crossing, heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = crossing;
}

static struct crossing *take_first(struct network *network)
{
    struct crossing **heap = network->heap, *first = heap[0];
    size_t count = --network->heap_count, at = 0;
    struct crossing *last = heap[count];
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && is_before(heap[child + 1], heap[child]))
            child++;
        if (!is_before(heap[child], last))
            break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return first;
}

/* -------- links ------------------------------------------------------------------------------- */

static void take_turn(struct link *link, struct lane *lane)
{
    lane->next_turn = NULL;
    *link->last_turn = lane;
    link->last_turn = &lane->next_turn;
}

static struct lane *next_turn(struct link *link)
{
    struct lane *lane = link->turn;
    link->turn = lane->next_turn;
    if (!link->turn)
        link->last_turn = &link->turn;
    return lane;
}

/* Updates a queue to `now_s`. */
static void look_at(const struct network *network, struct link *link, double now_s)
{
    link->waiting_bytes += (link->coming_bytes_per_s - link->bytes_per_s) * (now_s - link->seen_s);
    if (link->waiting_bytes < -network->traits.burst_bytes)
        link->waiting_bytes = -network->traits.burst_bytes;
    link->seen_s = now_s;
}

/* Starts the next message of the next lane on a free link. */
static void begin(struct network *network, struct link *link, double now_s)
{
    struct lane *lane = next_turn(link);
    struct crossing *crossing = lane->first;
    lane->first = crossing->next;
    if (!lane->first)
        lane->last = &lane->first;
    link->busy = lane->sending = true;
    double rested_s = now_s - network->traits.burst_bytes / link->bytes_per_s;
    link->paid_s = fmax(link->paid_s, rested_s) + crossing->bytes / link->bytes_per_s;
    bool at_once = link->paid_s <= now_s + NOW_S;
    crossing->bytes_per_s = at_once ? 0 : crossing->bytes / (link->paid_s - now_s);
    for (size_t l = 1; l < lane->link_count; l++) {
        look_at(network, lane->links[l], now_s);
        lane->links[l]->coming_bytes_per_s += crossing->bytes_per_s;
    }
    schedule(network, crossing, at_once ? now_s : link->paid_s);
}

/* Called when the last byte has left the host. Starts the next message. */
static void leave(struct network *network, struct crossing *crossing)
{
    struct lane *lane = crossing->lane;
    struct link *first = lane->links[0];
    double now_s = crossing->due_s, through_s = now_s;
    for (size_t l = 1; l < lane->link_count; l++) {
        struct link *link = lane->links[l];
        look_at(network, link, now_s);
        link->coming_bytes_per_s -= crossing->bytes_per_s;
        if (crossing->bytes_per_s == 0)
            link->waiting_bytes += crossing->bytes; /* left at once */
        double own_s = now_s + link->waiting_bytes / link->bytes_per_s;
        through_s = own_s > through_s ? own_s : through_s;
    }
    crossing->has_left = true;
    schedule(network, crossing, through_s + network->traits.latency_s);
    first->busy = lane->sending = false;
    if (lane->first)
        take_turn(first, lane); /* after all waiting lanes */
    if (first->turn)
        begin(network, first, now_s);
    if (lane->closed && !lane->sending && !lane->first)
        free(lane);
    crossing->left(crossing);
}

/* -------- the actor --------------------------------------------------------------------------- */

static void network_free(struct network *network)
{
    for (struct link *link; (link = network->links);) {
        network->links = link->next;
        sg_link_set_data(link->simgrids, NULL);
        free(link);
    }
    sg_sem_destroy(network->bell);
    free(network->heap);
    free(network);
}

static void handle_first(struct network *network)
{
    struct crossing *crossing = take_first(network);
    network->now_s = crossing->due_s;
    if (!crossing->has_left) {
        leave(network, crossing);
        return;
    }
    network->crossings--;
    crossing->arrived(crossing);
}

static void run(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    struct network *network = sg_actor_self_get_data();
    while (!network->closed || network->crossings > 0) {
        double now_s = simgrid_get_clock();
        bool any = network->heap_count > 0;
        if (any && network->heap[0]->due_s <= now_s + NOW_S) {
            handle_first(network);
            continue;
        }
        network->asleep = true;
        network->until_s = any ? network->heap[0]->due_s : HUGE_VAL;
        if (any)
            sg_sem_acquire_timeout(network->bell, network->until_s - now_s);
        else
            sg_sem_acquire(network->bell);
        network->asleep = false;
    }
    network_free(network);
}

/* Wakes the actor. The calling actor may be suspended here. */
static void wake(struct network *network)
{
    if (!network->asleep)
        return;
    network->asleep = false;
    sg_sem_release(network->bell);
}

struct network *network_new(struct network_traits traits)
{
    struct network *network = malloc(sizeof *network);
    if (!network) {
        log_error("simulated network: out of memory");
        return NULL;
    }
    *network = (struct network){.traits = traits, .bell = sg_sem_init(0)};
    sg_actor_t actor = sg_actor_init("network", sg_host_self());
    sg_actor_set_data(actor, network);
    sg_actor_start(actor, run, 0, NULL);
    return network;
}

void network_close(struct network *network)
{
    network->closed = true;
    wake(network);
}

/* -------- lanes ------------------------------------------------------------------------------- */

/* The link for a link of SimGrid, created at the first call. NULL: no memory. */
static struct link *link_of(struct network *network, sg_link_t simgrids)
{
    struct link *link = sg_link_get_data(simgrids);
    if (link)
        return link;
    link = malloc(sizeof *link);
    if (!link)
        return NULL;
    *link = (struct link){.bytes_per_s = sg_link_get_bandwidth(simgrids),
                          .simgrids = simgrids,
                          .last_turn = &link->turn,
                          .waiting_bytes = -network->traits.burst_bytes,
                          .paid_s = -HUGE_VAL,
                          .next = network->links};
    network->links = link;
    sg_link_set_data(simgrids, link);
    return link;
}

enum status network_lane_open(struct lane **lane, struct network *network, sg_host_t from,
                              sg_host_t to)
{
    xbt_dynar_t route = xbt_dynar_new(sizeof(sg_link_t), NULL);
    sg_host_get_route(from, to, route);
    size_t count = xbt_dynar_length(route);
    CHECK(count > 0);
    struct lane *opened = malloc(sizeof *opened + count * sizeof(void *));
    bool known = opened != NULL;
    if (known)
        *opened = (struct lane){.network = network, .last = &opened->first, .link_count = count};
    for (size_t l = 0; known && l < count; l++) {
        opened->links[l] = link_of(network, xbt_dynar_get_as(route, l, sg_link_t));
        known = opened->links[l] != NULL;
    }
    xbt_dynar_free(&route);
    if (!known) {
        log_error("simulated network: out of memory");
        free(opened);
        return STATUS_NO_MEMORY;
    }
    *lane = opened;
    return STATUS_OK;
}

void network_lane_close(struct lane *lane)
{
    lane->closed = true;
    if (!lane->sending && !lane->first)
        free(lane);
}

enum status network_send(struct lane *lane, struct crossing *crossing)
{
    struct network *network = lane->network;
    struct link *link = lane->links[0];
    struct crossing **heap = memory_grow(network->heap, &network->heap_size, network->crossings,
                                         sizeof(void *), "messages of the simulated network");
    if (!heap)
        return STATUS_NO_MEMORY;
    network->heap = heap;
    network->crossings++;
    crossing->bytes += network->traits.header_bytes;
    crossing->lane = lane;
    crossing->has_left = false;
    crossing->next = NULL;
    if (!lane->first && !lane->sending)
        take_turn(link, lane);
    *lane->last = crossing;
    lane->last = &crossing->next;
    if (!link->busy) {
        begin(network, link, fmax(simgrid_get_clock(), network->now_s));
        if (network->heap[0]->due_s < network->until_s)
            wake(network);
    }
    return STATUS_OK;
}
