#include "common/net/socket/subnet.h"

#include <arpa/inet.h>
#include <string.h>

static bool parse(const char *text, struct subnet *subnet)
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
    if (parse(text, subnet))
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
