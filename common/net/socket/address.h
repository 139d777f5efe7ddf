/* Internal to common/net: which of this host's IPv4 addresses other hosts can reach it by. */
#ifndef PSRING_COMMON_NET_SOCKET_ADDRESS_H
#define PSRING_COMMON_NET_SOCKET_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"

/*
 * Writes a dotted address to `text` (at least 16 bytes). `subnet` ("10.1.0.0/24"): the address that
 * lies in it. NULL: 127.0.0.1 if all ranks are on this host (`one_host`), else the first interface
 * that is up and running and not loopback. Errors name the subnet and what was found, and are
 * logged.
 */
enum status address_choose(const char *subnet, bool one_host, char *text, size_t size);

/* The name of the interface that has `address` ("eth0"); STATUS_INPUT if none has. */
enum status address_interface(const char *address, char *name, size_t size);

#endif
