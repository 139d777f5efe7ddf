/* IPv4 and IPv6 addresses: as users write them, as sockets take them, and the addresses of this
 * host that other hosts can use. */
#ifndef PSRING_COMMON_NET_ADDRESS_H
#define PSRING_COMMON_NET_ADDRESS_H

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"

/* An address with its port. All zero: no address. Plain data: ranks exchange it. */
union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

enum {
    ADDRESS_TEXT_BYTES = 64, /* an address as text, with the scope of a link-local one */
    ADDRESS_URI_BYTES = 80,  /* "tcp://ADDRESS:PORT" */
    ADDRESS_HOST_BYTES = 256 /* a host's name as a user gives it */
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

/* The two ends of a socket. An IPv6 socket shows an IPv4 address as a mapped one; it is converted
 * back. 0 or an errno value. */
int address_of_socket(int socket, union address *address);
int address_of_peer(int socket, union address *address);

/* 16 bytes that mean the same on every host (for IPv4 the mapped address), and back. */
void address_pack(const union address *address, unsigned char bytes[16]);
void address_unpack(const unsigned char bytes[16], int port, union address *address);

/* -------- as text ----------------------------------------------------------------------------- */

/* "10.0.0.1", "fd00::1". Returns text. */
const char *address_text(const union address *address, char text[ADDRESS_TEXT_BYTES]);
/* "tcp://10.0.0.1:29500", "tcp://[fd00::1]:29500". Returns text. */
const char *address_uri(const union address *address, char text[ADDRESS_URI_BYTES]);

/* Whether the text is an IPv6 address, possibly with a scope ("fe80::1%eth0"). */
bool address_is_ipv6(const char *text);

/* Splits "tcp://HOST:PORT". HOST is a name, an IPv4 address, or an IPv6 address in brackets, which
 * `host` does not contain. False: the text has another form, or HOST is longer than `size` - 1. */
bool address_parse(const char *text, char *host, size_t size, int *port);

/* The inverse: puts brackets around an IPv6 address. */
void address_format(const char *host, int port, char *text, size_t size);

/*
 * Resolves a name or an address as text. A name can have several addresses: IPv4 comes first, and
 * `turn` (0, 1, ...) selects one after the other, cyclically. Sets *count to their number. False:
 * there is none at present; `why` is static.
 */
bool address_resolve(const char *host, int port, int turn, union address *address, int *count,
                     const char **why);

/*
 * The address at which to listen for ranks that were given `host`. An address, or "localhost", is
 * used as it is. A name gives all addresses of this host, because other hosts may resolve it
 * differently: here it is often 127.0.1.1.
 */
bool address_to_listen_at(const char *host, int port, union address *address, const char **why);

/* -------- of this host ------------------------------------------------------------------------ */

/* The value of --subnet: an interface, or a network. */
struct subnet {
    char interface[IF_NAMESIZE]; /* "" if it is a network */
    bool ipv6;
    unsigned char network[16]; /* IPv4: the first 4 */
    int bits;
};

/* Parses "eth0", "10.0.0.0/24" or "fd00::/64"; any address in the network may be written.
 * STATUS_USAGE is logged, with the name --subnet. */
enum status subnet_parse(const char *text, struct subnet *subnet);

/* Whether the address lies in the network. */
bool subnet_has(const struct subnet *subnet, const union address *address);

/*
 * This host's address on the interface or in the network `subnet`, IPv4 before IPv6. With NULL:
 * 127.0.0.1 if all ranks are on this host (`one_host`), else the address of the first interface
 * that is up, running and not loopback. Errors name what was requested and what this host has, and
 * are logged.
 */
enum status address_choose(const char *subnet, bool one_host, union address *address);

/* Writes up to `most` addresses by which other hosts may reach this one. Returns their number. */
int address_list(union address *addresses, int most);

/* The name of the interface that has the address ("eth0"). STATUS_INPUT: none has it. */
enum status address_interface(const union address *address, char *name, size_t size);

#endif
