/* IPv4 and IPv6 addresses: as users write them, as sockets take them, and which of this host's
 * addresses other hosts can use. */
#ifndef PSRING_COMMON_NET_ADDRESS_H
#define PSRING_COMMON_NET_ADDRESS_H

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

/* An address with its port. All zero: none. Plain data: ranks exchange it. */
union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

enum {
    ADDRESS_TEXT_BYTES = 64, /* of an address as text, with the scope of a link-local one */
    ADDRESS_URI_BYTES = 80,  /* of "tcp://ADDRESS:PORT" */
    ADDRESS_HOST_BYTES = 256 /* of a host's name that a user gives */
};

/* -------- as sockets take them ---------------------------------------------------------------- */

/* The length for bind(2) and connect(2). */
socklen_t address_bytes(const union address *address);
int address_port(const union address *address);
void address_set_port(union address *address, int port);

bool address_is_loopback(const union address *address);
/* Compares all but the ports. */
bool address_same_host(const union address *a, const union address *b);

/* 127.0.0.1. / All addresses of this host, IPv4 and, where the kernel has it, IPv6. Port 0. */
union address address_loopback(void);
union address address_any(void);

/* The two ends of a socket. An IPv4 address that an IPv6 socket shows becomes an IPv4 address
 * again. 0 or an errno value. */
int address_of_socket(int socket, union address *address);
int address_of_peer(int socket, union address *address);

/* 16 bytes that mean the same on every host; of an IPv4 address the mapped one. And back. */
void address_pack(const union address *address, unsigned char bytes[16]);
void address_unpack(const unsigned char bytes[16], int port, union address *address);

/* -------- as text ----------------------------------------------------------------------------- */

/* "10.0.0.1", "fd00::1". Returns text. */
const char *address_text(const union address *address, char text[ADDRESS_TEXT_BYTES]);
/* "tcp://10.0.0.1:29500", "tcp://[fd00::1]:29500". Returns text. */
const char *address_uri(const union address *address, char text[ADDRESS_URI_BYTES]);

/* Whether the text is an IPv6 address, be it with a scope ("fe80::1%eth0"). */
bool address_is_ipv6(const char *text);

/* "tcp://HOST:PORT" as its parts; HOST is a name, an IPv4 address, or an IPv6 address in brackets,
 * which `host` is without. False: it is something else, or HOST is longer than `size` - 1. */
bool address_parse(const char *text, char *host, size_t size, int *port);

/* The way back: puts brackets around an IPv6 address. */
void address_format(const char *host, int port, char *text, size_t size);

/*
 * The address of a name or of an address as text. A name can have several: IPv4 comes first, and
 * `turn` (0, 1, ...) selects one after the other, cyclically. *count: how many there are. False:
 * there is none (now); `why` is static.
 */
bool address_resolve(const char *host, int port, int turn, union address *address, int *count,
                     const char **why);

/*
 * Where to listen for those who were given `host`: at the address that it has, if it was given as
 * one. A name may mean another address on other hosts than here, where it is often 127.0.1.1; then
 * at all addresses.
 */
bool address_to_listen_at(const char *host, int port, union address *address, const char **why);

/* -------- of this host ------------------------------------------------------------------------ */

/* The value of --subnet: an interface, or a network. */
struct subnet {
    char interface[IF_NAMESIZE]; /* ""; it is a network */
    bool ipv6;
    unsigned char network[16]; /* IPv4: 4 of them */
    int bits;
};

/* From "eth0", "10.0.0.0/24" or "fd00::/64"; any address in the network can be written.
 * STATUS_USAGE is logged, as of --subnet, where all come from. */
enum status subnet_parse(const char *text, struct subnet *subnet);

/* Whether the address lies in the network. */
bool subnet_has(const struct subnet *subnet, const union address *address);

/*
 * This host's address on the interface or in the network `subnet`, IPv4 before IPv6. NULL:
 * 127.0.0.1 if all ranks are on this host (`one_host`), else of the first interface that is up and
 * running and not loopback. Errors name what was asked for and what is there, and are logged.
 */
enum status address_choose(const char *subnet, bool one_host, union address *address);

/* Up to `most` addresses that other hosts may reach this one by; returns how many. */
int address_list(union address *addresses, int most);

/* The name of the interface that has the address ("eth0"); STATUS_INPUT if none has. */
enum status address_interface(const union address *address, char *name, size_t size);

#endif
