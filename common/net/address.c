#include "common/net/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/text.h"

/* -------- as sockets take them ---------------------------------------------------------------- */

static bool is_ipv6(const union address *address)
{
    return address->any.sa_family == AF_INET6;
}

socklen_t address_bytes(const union address *address)
{
    return is_ipv6(address) ? sizeof address->v6 : sizeof address->v4;
}

int address_port(const union address *address)
{
    return ntohs(is_ipv6(address) ? address->v6.sin6_port : address->v4.sin_port);
}

void address_set_port(union address *address, int port)
{
    if (is_ipv6(address))
        address->v6.sin6_port = htons((uint16_t)port);
    else
        address->v4.sin_port = htons((uint16_t)port);
}

bool address_is_loopback(const union address *address)
{
    return is_ipv6(address) ? IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr)
                            : ntohl(address->v4.sin_addr.s_addr) >> 24 == 127;
}

bool address_same_host(const union address *a, const union address *b)
{
    unsigned char x[16], y[16];
    address_pack(a, x);
    address_pack(b, y);
    return memcmp(x, y, sizeof x) == 0;
}

union address address_loopback(void)
{
    return (union address){
        .v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};
}

union address address_any(void)
{
    int socket_v6 = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket_v6 < 0)
        return (union address){.v4 = {.sin_family = AF_INET}};
    close(socket_v6);
    return (union address){.v6 = {.sin6_family = AF_INET6}};
}

static void unmap(union address *address)
{
    if (!is_ipv6(address) || !IN6_IS_ADDR_V4MAPPED(&address->v6.sin6_addr))
        return;
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = address->v6.sin6_port};
    memcpy(&v4.sin_addr, address->v6.sin6_addr.s6_addr + 12, sizeof v4.sin_addr);
    *address = (union address){.v4 = v4};
}

int address_of_socket(int socket, union address *address)
{
    socklen_t bytes = sizeof *address;
    memset(address, 0, sizeof *address);
    if (getsockname(socket, &address->any, &bytes) != 0)
        return errno;
    unmap(address);
    return 0;
}

int address_of_peer(int socket, union address *address)
{
    socklen_t bytes = sizeof *address;
    memset(address, 0, sizeof *address);
    if (getpeername(socket, &address->any, &bytes) != 0)
        return errno;
    unmap(address);
    return 0;
}

void address_pack(const union address *address, unsigned char bytes[16])
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    if (is_ipv6(address)) {
        memcpy(bytes, address->v6.sin6_addr.s6_addr, 16);
        return;
    }
    memcpy(bytes, mapped, sizeof mapped);
    memcpy(bytes + 12, &address->v4.sin_addr, 4);
}

void address_unpack(const unsigned char bytes[16], int port, union address *address)
{
    *address = (union address){.v6 = {.sin6_family = AF_INET6}};
    memcpy(address->v6.sin6_addr.s6_addr, bytes, 16);
    unmap(address);
    address_set_port(address, port);
}

/* -------- as text ----------------------------------------------------------------------------- */

const char *address_text(const union address *address, char text[ADDRESS_TEXT_BYTES])
{
    char name[IF_NAMESIZE];
    text[0] = '\0';
    if (is_ipv6(address))
        inet_ntop(AF_INET6, &address->v6.sin6_addr, text, ADDRESS_TEXT_BYTES);
    else
        inet_ntop(AF_INET, &address->v4.sin_addr, text, ADDRESS_TEXT_BYTES);
    size_t used = strlen(text);
    if (is_ipv6(address) && address->v6.sin6_scope_id != 0 &&
        if_indextoname(address->v6.sin6_scope_id, name))
        snprintf(text + used, ADDRESS_TEXT_BYTES - used, "%%%s", name);
    return text;
}

void address_format(const char *host, int port, char *text, size_t size)
{
    bool ipv6 = strchr(host, ':') != NULL;
    snprintf(text, size, "tcp://%s%s%s:%d", ipv6 ? "[" : "", host, ipv6 ? "]" : "", port);
}

const char *address_uri(const union address *address, char text[ADDRESS_URI_BYTES])
{
    char host[ADDRESS_TEXT_BYTES];
    address_format(address_text(address, host), address_port(address), text, ADDRESS_URI_BYTES);
    return text;
}

bool address_is_ipv6(const char *text)
{
    char address[INET6_ADDRSTRLEN];
    unsigned char numeric[16];
    size_t length = strcspn(text, "%");
    if (length >= sizeof address)
        return false;
    memcpy(address, text, length);
    address[length] = '\0';
    return inet_pton(AF_INET6, address, numeric) == 1;
}

/* Without brackets, blanks and control characters. */
static bool is_host(const char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text <= ' ' || *text == '\x7f' || *text == '[' || *text == ']')
            return false;
    }
    return true;
}

bool address_parse(const char *text, char *host, size_t size, int *port)
{
    static const char scheme[] = "tcp://";
    const char *begin = text + sizeof scheme - 1, *colon = strrchr(text, ':');
    if (strncmp(text, scheme, sizeof scheme - 1) != 0 || colon <= begin)
        return false;
    bool brackets = *begin == '[' && colon[-1] == ']';
    begin += brackets;
    size_t length = (size_t)(colon - begin) - brackets;
    if (length == 0 || length >= size)
        return false;
    memcpy(host, begin, length);
    host[length] = '\0';
    size_t digits = strspn(colon + 1, "0123456789");
    long number = strtol(colon + 1, NULL, 10);
    if (!is_host(host) || address_is_ipv6(host) != brackets || (strchr(host, ':') && !brackets) ||
        digits < 1 || digits > strlen("65535") || colon[1 + digits] || number > 65535)
        return false;
    *port = (int)number;
    return true;
}

/* A name's link-local addresses are skipped: they work on one host only. */
static bool is_offered(const struct addrinfo *one, const char *host)
{
    union address address;
    if (one->ai_family != AF_INET6)
        return one->ai_family == AF_INET;
    memcpy(&address, one->ai_addr, sizeof address.v6);
    return !IN6_IS_ADDR_LINKLOCAL(&address.v6.sin6_addr) || address_is_ipv6(host);
}

bool address_resolve(const char *host, int port, int turn, union address *address, int *count,
                     const char **why)
{
    static const int families[] = {AF_INET, AF_INET6};
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *found = NULL;
    int error = getaddrinfo(host, NULL, &hints, &found);
    if (error != 0) {
        *why = gai_strerror(error);
        return false;
    }
    *count = 0;
    for (const struct addrinfo *one = found; one; one = one->ai_next)
        *count += is_offered(one, host);
    int left = *count > 0 ? turn % *count : 0;
    memset(address, 0, sizeof *address);
    for (int f = 0; f < 2 && address->any.sa_family == 0; f++) {
        for (const struct addrinfo *one = found; one; one = one->ai_next) {
            if (one->ai_family != families[f] || !is_offered(one, host) || left-- != 0)
                continue;
            memcpy(address, one->ai_addr, one->ai_addrlen);
            break;
        }
    }
    freeaddrinfo(found);
    *why = "it has no address";
    address_set_port(address, port);
    return *count > 0;
}

bool address_to_listen_at(const char *host, int port, union address *address, const char **why)
{
    unsigned char numeric[4];
    int count;
    if (!address_resolve(host, port, 0, address, &count, why))
        return false;
    if (inet_pton(AF_INET, host, numeric) == 1 || address_is_ipv6(host) ||
        strcmp(host, "localhost") == 0)
        return true;
    *address = address_any();
    address_set_port(address, port);
    return true;
}

/* -------- networks and interfaces ------------------------------------------------------------- */

static bool parse_network(const char *text, const char *slash, struct subnet *subnet)
{
    char address[INET6_ADDRSTRLEN];
    size_t length = (size_t)(slash - text), count = strspn(slash + 1, "0123456789");
    if (length >= sizeof address || count < 1 || count > 3 || slash[1 + count])
        return false;
    memcpy(address, text, length);
    address[length] = '\0';
    subnet->ipv6 = strchr(address, ':') != NULL;
    subnet->bits = (int)strtol(slash + 1, NULL, 10);
    int most = subnet->ipv6 ? 128 : 32;
    return subnet->bits <= most && (slash[1] != '0' || count == 1) &&
           inet_pton(subnet->ipv6 ? AF_INET6 : AF_INET, address, subnet->network) == 1;
}

static bool parse_interface(const char *text, struct subnet *subnet)
{
    unsigned char numeric[16];
    size_t length = strlen(text);
    if (length == 0 || length >= sizeof subnet->interface || strpbrk(text, " \t\n,%") ||
        inet_pton(AF_INET, text, numeric) == 1 || inet_pton(AF_INET6, text, numeric) == 1)
        return false;
    memcpy(subnet->interface, text, length + 1);
    return true;
}

enum status subnet_parse(const char *text, struct subnet *subnet)
{
    const char *slash = strchr(text, '/');
    *subnet = (struct subnet){0};
    if (slash ? parse_network(text, slash, subnet) : parse_interface(text, subnet))
        return STATUS_OK;
    return FAIL(STATUS_USAGE,
                "--subnet (or PSRING_BIND_SUBNET): found '%s', expected the name of an interface "
                "or a network as ADDRESS/BITS, e.g. eth0, 10.0.0.0/24 or fd00::/64",
                text);
}

bool subnet_has(const struct subnet *subnet, const union address *address)
{
    unsigned char bytes[16];
    if (subnet->interface[0] || subnet->ipv6 != is_ipv6(address))
        return false;
    address_pack(address, bytes);
    const unsigned char *at = subnet->ipv6 ? bytes : bytes + 12;
    int whole = subnet->bits / 8, rest = subnet->bits % 8;
    return memcmp(at, subnet->network, (size_t)whole) == 0 &&
           (rest == 0 || (at[whole] ^ subnet->network[whole]) >> (8 - rest) == 0);
}

/* The address of an interface that is up and running. False: it has none of that family. */
static bool address_of_entry(const struct ifaddrs *entry, bool ipv6, union address *address)
{
    int family = ipv6 ? AF_INET6 : AF_INET;
    if (!entry->ifa_addr || entry->ifa_addr->sa_family != family || !(entry->ifa_flags & IFF_UP) ||
        !(entry->ifa_flags & IFF_RUNNING))
        return false;
    memset(address, 0, sizeof *address);
    memcpy(address, entry->ifa_addr, ipv6 ? sizeof address->v6 : sizeof address->v4);
    return true;
}

/* Whether `wanted` (NULL: any but loopback) selects this entry. A link-local address needs its
 * network named. */
static bool matches(const struct ifaddrs *entry, const union address *address,
                    const struct subnet *wanted)
{
    if (wanted && !wanted->interface[0])
        return subnet_has(wanted, address);
    if (is_ipv6(address) && IN6_IS_ADDR_LINKLOCAL(&address->v6.sin6_addr))
        return false;
    return wanted ? strcmp(entry->ifa_name, wanted->interface) == 0
                  : !(entry->ifa_flags & IFF_LOOPBACK);
}

static enum status read_interfaces(struct ifaddrs **list)
{
    *list = NULL;
    if (getifaddrs(list) == 0)
        return STATUS_OK;
    return FAIL(STATUS_IO, "the list of network interfaces cannot be read: %s", strerror(errno));
}

static void log_no_address(const struct ifaddrs *list, const char *text,
                           const struct subnet *wanted)
{
    char seen[512], one[ADDRESS_TEXT_BYTES], what[128];
    struct line line = line_in(seen, sizeof seen);
    union address address;
    for (int ipv6 = 0; ipv6 < 2; ipv6++) {
        for (const struct ifaddrs *entry = list; entry; entry = entry->ifa_next) {
            if (address_of_entry(entry, ipv6, &address))
                line_add(&line, "%s %s (%s)", line.used ? "," : "", address_text(&address, one),
                         entry->ifa_name);
        }
    }
    if (!text)
        snprintf(what, sizeof what, "only loopback addresses");
    else if (wanted->interface[0])
        snprintf(what, sizeof what, "no interface %s with an address", text);
    else
        snprintf(what, sizeof what, "no %s address in %s", wanted->ipv6 ? "IPv6" : "IPv4", text);
    log_error("%s on this host (it has:%s); set --subnet to an interface or a network in which "
              "every host has an address",
              what, seen);
}

enum status address_choose(const char *text, bool one_host, union address *address)
{
    enum status status;
    struct subnet wanted;
    struct ifaddrs *list = NULL;
    bool found = false;
    *address = address_loopback();
    if (!text && one_host)
        return STATUS_OK;
    if (text)
        TRY(subnet_parse(text, &wanted));
    TRY(read_interfaces(&list));
    for (int ipv6 = 0; ipv6 < 2 && !found; ipv6++) {
        for (const struct ifaddrs *entry = list; entry && !found; entry = entry->ifa_next)
            found = address_of_entry(entry, ipv6, address) &&
                    matches(entry, address, text ? &wanted : NULL);
    }
    if (!found) {
        log_no_address(list, text, &wanted);
        status = STATUS_INPUT;
    }
    freeifaddrs(list);
out:
    return status;
}

int address_list(union address *addresses, int most)
{
    int count = 0;
    struct ifaddrs *list;
    if (read_interfaces(&list) != STATUS_OK)
        return 0;
    for (int ipv6 = 0; ipv6 < 2; ipv6++) {
        for (const struct ifaddrs *entry = list; entry && count < most; entry = entry->ifa_next)
            count += address_of_entry(entry, ipv6, &addresses[count]) &&
                     matches(entry, &addresses[count], NULL);
    }
    freeifaddrs(list);
    return count;
}

enum status address_interface(const union address *address, char *name, size_t size)
{
    enum status status = STATUS_INPUT;
    struct ifaddrs *list;
    union address own;
    if (read_interfaces(&list) != STATUS_OK)
        return STATUS_IO;
    for (const struct ifaddrs *entry = list; entry && status != STATUS_OK;
         entry = entry->ifa_next) {
        if (!address_of_entry(entry, is_ipv6(address), &own) || !address_same_host(&own, address))
            continue;
        snprintf(name, size, "%s", entry->ifa_name);
        status = STATUS_OK;
    }
    freeifaddrs(list);
    return status;
}
