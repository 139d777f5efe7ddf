/*
 * The network of a simulation. SimGrid provides the platform (hosts, links, routes) and the clock.
 * This file decides how messages share links, because SimGrid's own model does not fit. In that
 * model all messages on a link share it equally at any moment. A message that waits at one host's
 * link does not delay those of other hosts.
 *
 * TCP behaves differently if its windows fit into the switches' queues, as those of the collectives
 * do:
 *
 * - A host's own link, the first of a route, sends whole messages round robin over the lanes that
 *   have any, at the link's full rate. (A kernel lets each connection put about 64 KB into the
 *   link's queue, then the next one. Messages to several hosts are no longer than that unless the
 *   user asks for longer ones.) The link is therefore busy while its host has anything to send. A
 *   peer with longer messages gets more of the rate.
 * - Every further link is a queue. Bytes of all hosts enter it while they leave their hosts, and
 *   leave it in that order. Nothing is lost, however long the queue becomes. A queue does not delay
 *   messages of the same sender for other hosts.
 *
 * An idle link lets a burst through before its rate applies, as a token bucket does. Without a
 * burst, a single message takes bytes / rate + latency.
 *
 * A message arrives one latency after the slowest link of its route has passed on its last byte.
 * This is exact if one link after the first is the limit, as in a flat network. With several such
 * links, each queue is assumed to receive bytes that an earlier queue may still hold.
 *
 * One actor processes all events. Each message has two: its last byte leaves, and it arrives.
 */
#ifndef PSRING_EXPERIMENTS_SIMULATE_SIMULATED_NETWORK_H
#define PSRING_EXPERIMENTS_SIMULATE_SIMULATED_NETWORK_H

#include <simgrid/host.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/status.h"

struct network;

/* The ordered connection from one host to another. */
struct lane;

/* A message in the network. Its owner embeds it and keeps the memory until it has arrived. The
 * actor of the network calls both functions; they may wake other actors. */
struct crossing {
    double bytes;                               /* payload; the network adds the header */
    void (*left)(struct crossing *crossing);    /* its last byte has left the host */
    void (*arrived)(struct crossing *crossing); /* the network no longer uses it */

    /* Private to the network: */
    struct lane *lane;
    struct crossing *next; /* on the lane */
    double bytes_per_s;    /* its rate on the first link; 0: at once */
    double due_s;          /* time of its next event */
    uint64_t order;        /* order of events at the same time */
    bool has_left;
};

struct network_traits {
    double latency_s;    /* added to the time of its bytes */
    double header_bytes; /* added to each message, on all links of its route */
    double burst_bytes;  /* bytes that an idle link lets through at once */
};

/* Starts the actor on the caller's host. NULL: no memory (logged). */
struct network *network_new(struct network_traits traits);

/* Closes a network without open lanes. Its actor frees it after the last arrival. */
void network_close(struct network *network);

/* Opens a lane; `to` must differ from `from`. The caller closes it; messages in it still arrive. */
enum status network_lane_open(struct lane **lane, struct network *network, sg_host_t from,
                              sg_host_t to);
void network_lane_close(struct lane *lane);

enum status network_send(struct lane *lane, struct crossing *crossing);

#endif
