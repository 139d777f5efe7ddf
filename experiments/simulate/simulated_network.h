/*
 * The network of a simulation. SimGrid has the platform (hosts, links, routes) and the clock; how
 * messages share links is here, because in SimGrid's own model all that are on a link share it
 * equally at any moment, and a message that waits at one host's link holds up nobody else's. TCP
 * with windows that the switches' queues can hold, which the collectives see to, is otherwise:
 *
 * - A host's own link, the first of a route, takes messages by turns: one of each lane that has
 *   any, whole, at the link's full rate. (A kernel lets each connection have about 64 KB in the
 *   link's queue, then the next one. No message of several to different hosts is longer, unless one
 *   asks for that.) So a host's link is busy while it has anything to send, and who has longer
 *   messages for one peer than for another sends it that much more.
 * - Every further link is a queue: bytes come to it while they leave their hosts, mixed with all
 *   others', and are passed on in that order. Nothing is lost however long it becomes. What waits
 *   there does not hold up what its sender has for others.
 *
 * A link that has rested lets a burst through at once before its rate holds, as a token bucket
 * does; with none, and one message on its way, that takes bytes / rate + latency.
 *
 * A message has arrived when the slowest link of its route has passed on its last byte, and a
 * latency after that. This is exact where one link behind the first limits, as in a flat network;
 * with several, a queue is taken to get what one before it may still have.
 *
 * One actor moves all, event by event: two a message, the last byte leaves and it has arrived.
 */
#ifndef PSRING_EXPERIMENTS_SIMULATE_SIMULATED_NETWORK_H
#define PSRING_EXPERIMENTS_SIMULATE_SIMULATED_NETWORK_H

#include <simgrid/host.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/status.h"

struct network;

/* From one host to another, in order. */
struct lane;

/* What travels: embedded in its owner's memory, which stays until it has arrived. The actor of the
 * network calls both functions, which may wake other actors. */
struct crossing {
    double bytes;                               /* the network adds the header's */
    void (*left)(struct crossing *crossing);    /* its last byte has left the host */
    void (*arrived)(struct crossing *crossing); /* the network has forgotten it */

    /* The network's own. */
    struct lane *lane;
    struct crossing *next; /* on the lane */
    double bytes_per_s;    /* that it leaves at; 0: at once */
    double due_s;          /* when it has left or arrived */
    uint64_t order;        /* among those that are due together */
    bool has_left;
};

struct network_traits {
    double latency_s;    /* what a message takes beside its bytes */
    double header_bytes; /* that go with each message, over all links of its route */
    double burst_bytes;  /* what a link lets through at once after a rest */
};

/* Starts the actor, on the caller's host. NULL: no memory (logged). */
struct network *network_new(struct network_traits traits);

/* Its actor frees it, once all has arrived. All lanes are closed. */
void network_close(struct network *network);

/* `to` is another host than `from`. The caller closes it; what is on it then still arrives. */
enum status network_lane_open(struct lane **lane, struct network *network, sg_host_t from,
                              sg_host_t to);
void network_lane_close(struct lane *lane);

enum status network_send(struct lane *lane, struct crossing *crossing);

#endif
