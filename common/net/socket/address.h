/* IPv4 networks as users write them, and which of this host's addresses others can reach it by. */
#ifndef PSRING_COMMON_NET_SOCKET_ADDRESS_H
#define PSRING_COMMON_NET_SOCKET_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

struct sockaddr_in; /* <netinet/in.h> */

struct subnet {
    uint32_t network, mask; /* host byte order */
};

/* From "ADDRESS/BITS", e.g. "10.0.0.0/24"; an address in the network stands for it. STATUS_USAGE is
 * logged, as of --interface, where all come from. */
enum status subnet_parse(const char *text, struct subnet *subnet);

bool subnet_has(const struct subnet *subnet, uint32_t address);

/*
 * Writes a dotted address to `text` (at least 16 bytes). `subnet` ("10.1.0.0/24"): the address that
 * lies in it. NULL: 127.0.0.1 if all ranks are on this host (`one_host`), else the first interface
 * that is up and running and not loopback. Errors name the subnet and what was found, and are
 * logged.
 */
enum status address_choose(const char *subnet, bool one_host, char *text, size_t size);

/* The name of the interface that has `address` ("eth0"); STATUS_INPUT if none has. */
enum status address_interface(const char *address, char *name, size_t size);

enum { ADDRESS_HOST_BYTES = 256 }; /* of a host's name that a user gives */

/* "tcp://HOST:PORT" as its parts. False: it is something else, or HOST is longer than `size` - 1.
 */
bool address_parse(const char *text, char *host, size_t size, int *port);

/* The IPv4 address of a name or a dotted address. False: there is none (now); `why` is static. */
bool address_resolve(const char *host, int port, struct sockaddr_in *address, const char **why);

/*
 * Where to listen for those who were given `host`: at the address that it has, if it was given as
 * one. A name may mean another address on other hosts than here, where it is often 127.0.1.1; then
 * at all addresses.
 */
bool address_to_listen_at(const char *host, int port, struct sockaddr_in *address,
                          const char **why);

#endif
