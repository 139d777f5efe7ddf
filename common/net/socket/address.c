#include "common/net/socket/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool parse_subnet(const char *text, struct subnet *subnet)
{
    char dotted[INET_ADDRSTRLEN];
    struct in_addr address;
    const char *slash = strchr(text, '/');
    size_t length = slash ? (size_t)(slash - text) : 0;
    if (!slash || length >= sizeof dotted)
        return false;
    memcpy(dotted, text, length);
    dotted[length] = '\0';
    const char *digits = slash + 1;
    size_t count = strspn(digits, "0123456789");
    if (inet_pton(AF_INET, dotted, &address) != 1 || count < 1 || count > 2 || digits[count])
        return false;
    int bits = count == 1 ? digits[0] - '0' : (digits[0] - '0') * 10 + digits[1] - '0';
    if (bits > 32)
        return false;
    subnet->mask = bits == 0 ? 0 : UINT32_MAX << (32 - bits);
    subnet->network = ntohl(address.s_addr) & subnet->mask;
    return true;
}

enum status subnet_parse(const char *text, struct subnet *subnet)
{
    if (parse_subnet(text, subnet))
        return STATUS_OK;
    log_error("--interface (or PSRING_BIND_SUBNET): found '%s', expected an IPv4 network as "
              "ADDRESS/BITS, e.g. 10.0.0.0/24",
              text);
    return STATUS_USAGE;
}

bool subnet_has(const struct subnet *subnet, uint32_t address)
{
    return (address & subnet->mask) == subnet->network;
}

static uint32_t ipv4_of(const struct ifaddrs *entry)
{
    struct sockaddr_in address;
    memcpy(&address, entry->ifa_addr, sizeof address);
    return ntohl(address.sin_addr.s_addr);
}

static void format_ipv4(uint32_t address, char *text, size_t size)
{
    struct in_addr network = {.s_addr = htonl(address)};
    inet_ntop(AF_INET, &network, text, (socklen_t)size);
}

static bool usable(const struct ifaddrs *entry)
{
    return entry->ifa_addr && entry->ifa_addr->sa_family == AF_INET && entry->ifa_flags & IFF_UP &&
           entry->ifa_flags & IFF_RUNNING;
}

enum status address_choose(const char *subnet, bool one_host, char *text, size_t size)
{
    struct subnet wanted = {0};
    if (!subnet && one_host) {
        snprintf(text, size, "127.0.0.1");
        return STATUS_OK;
    }
    if (subnet && subnet_parse(subnet, &wanted) != STATUS_OK)
        return STATUS_USAGE;
    struct ifaddrs *list = NULL;
    if (getifaddrs(&list) != 0) {
        log_error("the list of network interfaces cannot be read: %s", strerror(errno));
        return STATUS_IO;
    }
    enum status status = STATUS_INPUT;
    char seen[256] = "";
    for (const struct ifaddrs *entry = list; entry; entry = entry->ifa_next) {
        if (!usable(entry))
            continue;
        uint32_t address = ipv4_of(entry);
        format_ipv4(address, text, size);
        bool match = subnet ? subnet_has(&wanted, address) : !(entry->ifa_flags & IFF_LOOPBACK);
        if (match) {
            status = STATUS_OK;
            break;
        }
        size_t used = strlen(seen);
        snprintf(seen + used, sizeof seen - used, " %s", text);
    }
    freeifaddrs(list);
    if (status != STATUS_OK)
        log_error("no IPv4 address %s%s on this host (it has:%s); name a subnet that every host "
                  "has an address in with --interface",
                  subnet ? "in " : "but loopback", subnet ? subnet : "", seen);
    return status;
}

enum status address_interface(const char *address, char *name, size_t size)
{
    struct ifaddrs *list = NULL;
    if (getifaddrs(&list) != 0)
        return status_from_errno(errno);
    enum status status = STATUS_INPUT;
    for (const struct ifaddrs *entry = list; entry; entry = entry->ifa_next) {
        char text[INET_ADDRSTRLEN];
        if (!usable(entry))
            continue;
        format_ipv4(ipv4_of(entry), text, sizeof text);
        if (strcmp(text, address) == 0) {
            snprintf(name, size, "%s", entry->ifa_name);
            status = STATUS_OK;
            break;
        }
    }
    freeifaddrs(list);
    return status;
}

/* -------- addresses that users give ----------------------------------------------------------- */

bool address_parse(const char *text, char *host, size_t size, int *port)
{
    static const char scheme[] = "tcp://";
    const char *begin = text + sizeof scheme - 1, *colon = strrchr(text, ':');
    char *end = NULL;
    bool good = strncmp(text, scheme, sizeof scheme - 1) == 0 && colon > begin &&
                (size_t)(colon - begin) < size && !memchr(begin, ':', (size_t)(colon - begin));
    long number = good ? strtol(colon + 1, &end, 10) : -1;
    if (!good || end == colon + 1 || *end || number < 0 || number > 65535)
        return false;
    memcpy(host, begin, (size_t)(colon - begin));
    host[colon - begin] = '\0';
    *port = (int)number;
    return true;
}

bool address_resolve(const char *host, int port, struct sockaddr_in *address, const char **why)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found = NULL;
    int error = getaddrinfo(host, NULL, &hints, &found);
    if (error != 0) {
        *why = gai_strerror(error);
        return false;
    }
    memcpy(address, found->ai_addr, sizeof *address);
    address->sin_port = htons((uint16_t)port);
    freeaddrinfo(found);
    return true;
}

bool address_to_listen_at(const char *host, int port, struct sockaddr_in *address, const char **why)
{
    struct in_addr numeric;
    if (!address_resolve(host, port, address, why))
        return false;
    if (inet_pton(AF_INET, host, &numeric) != 1 && strcmp(host, "localhost") != 0)
        address->sin_addr.s_addr = htonl(INADDR_ANY);
    return true;
}
