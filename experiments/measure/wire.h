/*
 * The kernel's own count of what a network interface has sent: frames with all their headers,
 * acknowledgements and retransmissions, of every process on the host. It is what the payload that
 * a transport counts is held against.
 */
#ifndef PSRING_EXPERIMENTS_WIRE_H
#define PSRING_EXPERIMENTS_WIRE_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/net/world/world.h"

struct wire {
    char interface[IF_NAMESIZE]; /* "" where there is nothing to count: loopback */
};

/*
 * Finds the interface that carries this host's traffic: the one that `subnet` names, or as the
 * transport chooses it. All ranks of a machine share loopback's counter, so what one of them
 * sends cannot be told from it: then wire_sent_bytes answers false. Errors: logged.
 */
enum status wire_open(struct wire *wire, const struct world *world, const char *subnet);

/* Bytes sent since the interface was made, from /proc/net/dev, which shows the network namespace
 * that the process is in (a mounted /sys may not). False if there is no such interface. */
bool wire_sent_bytes(const struct wire *wire, uint64_t *bytes);

/* The same from the text of /proc/net/dev. */
bool wire_parse(const char *text, const char *interface, uint64_t *bytes);

#endif
