/* IPv4 networks as users write them. */
#ifndef PSRING_COMMON_NET_SOCKET_SUBNET_H
#define PSRING_COMMON_NET_SOCKET_SUBNET_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/status.h"

struct subnet {
    uint32_t network, mask; /* host byte order */
};

/* From "ADDRESS/BITS", e.g. "10.0.0.0/24"; an address in the network stands for it. STATUS_USAGE is
 * logged, as of --interface, where all come from. */
enum status subnet_parse(const char *text, struct subnet *subnet);

bool subnet_has(const struct subnet *subnet, uint32_t address);

#endif
