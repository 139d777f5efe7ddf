/*
 * Input: a byte that selects one of three, then its bytes.
 *
 * - The size of a buffer and "tcp://HOST:PORT". A host that was accepted fits the buffer, and has
 *   no brackets, blanks or control characters. Written again, it is accepted again. A rendezvous
 *   accepts the same addresses, except for port 0.
 * - A network or an interface. A network has the address that it was written with. It has an
 *   address that differs from that one in one bit only if the bit is not one of its first `bits`.
 * - An address as members exchange it (16 bytes), with its port. It stays the same when packed
 *   again. As text, it is accepted and means the same address.
 */
#include "tests/fuzz/fuzz.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/status.h"
#include "common/net/address.h"
#include "common/net/rendezvous.h"

/* Parses `text` with a buffer of exactly `size` bytes, so that a sanitizer sees a write beyond it.
 */
static bool parse(const char *text, size_t size, int *port)
{
    char *host = malloc(size), uri[ADDRESS_HOST_BYTES + 32], again[ADDRESS_HOST_BYTES];
    int port_again = -1;
    CHECK(host);
    bool good = address_parse(text, host, size, port);
    if (good) {
        CHECK(host[0] && strlen(host) < size && *port >= 0 && *port <= 65535);
        for (const char *c = host; *c; c++)
            CHECK((unsigned char)*c > ' ' && *c != '\x7f' && *c != '[' && *c != ']');
        address_format(host, *port, uri, sizeof uri);
        CHECK(address_parse(uri, again, sizeof again, &port_again));
        CHECK(strcmp(host, again) == 0 && port_again == *port);
    }
    free(host);
    return good;
}

static void check_address(const char *text, size_t size)
{
    struct rendezvous rendezvous;
    int port = -1, small_port = -1;
    bool good = parse(text, ADDRESS_HOST_BYTES, &port);
    CHECK(!parse(text, size, &small_port) || (good && small_port == port));
    CHECK((rendezvous_parse(text, &rendezvous) == STATUS_OK) == (good && port > 0));
}

/* The network's address with bit `flipped` inverted; -1: none. */
static union address address_in(const struct subnet *subnet, int flipped)
{
    unsigned char bytes[16];
    union address address;
    memset(&address, 0, sizeof address);
    memcpy(bytes, subnet->network, sizeof bytes);
    if (flipped >= 0)
        bytes[flipped / 8] ^= (unsigned char)(0x80 >> flipped % 8);
    address.any.sa_family = subnet->ipv6 ? AF_INET6 : AF_INET;
    if (subnet->ipv6)
        memcpy(&address.v6.sin6_addr, bytes, 16);
    else
        memcpy(&address.v4.sin_addr, bytes, 4);
    return address;
}

static void check_subnet(const char *text)
{
    struct subnet subnet;
    enum status status = subnet_parse(text, &subnet);
    CHECK(status == STATUS_OK || status == STATUS_USAGE);
    if (status != STATUS_OK)
        return;
    if (!strchr(text, '/')) {
        CHECK(subnet.interface[0] && strcmp(subnet.interface, text) == 0);
        return;
    }
    int most = subnet.ipv6 ? 128 : 32;
    CHECK(!subnet.interface[0] && subnet.bits >= 0 && subnet.bits <= most);
    for (int flipped = -1; flipped < most; flipped++) {
        union address address = address_in(&subnet, flipped);
        CHECK(subnet_has(&subnet, &address) == (flipped < 0 || flipped >= subnet.bits));
    }
}

static void check_packed(const uint8_t bytes[16], int port)
{
    union address address, same = {.v4 = {.sin_family = AF_INET}};
    unsigned char again[16];
    char uri[ADDRESS_URI_BYTES], host[ADDRESS_HOST_BYTES], text[ADDRESS_TEXT_BYTES];
    int port_again = -1;
    address_unpack(bytes, port, &address);
    address_pack(&address, again);
    CHECK(memcmp(bytes, again, sizeof again) == 0 && address_port(&address) == port);
    CHECK(address_parse(address_uri(&address, uri), host, sizeof host, &port_again));
    CHECK(port_again == port && strcmp(host, address_text(&address, text)) == 0);
    bool ipv6 = address.any.sa_family == AF_INET6;
    CHECK(address_is_ipv6(host) == ipv6);
    same.any.sa_family = address.any.sa_family;
    if (ipv6)
        CHECK(inet_pton(AF_INET6, host, &same.v6.sin6_addr) == 1);
    else
        CHECK(inet_pton(AF_INET, host, &same.v4.sin_addr) == 1);
    CHECK(address_same_host(&address, &same));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    fuzz_quiet();
    if (data[0] % 3 == 2) {
        if (size == 1 + 16 + 2)
            check_packed(data + 1, data[17] << 8 | data[18]);
        return 0;
    }
    /* The text's memory ends after its terminating 0. */
    size_t skipped = data[0] % 3 == 0 ? 2 : 1;
    char *text = strndup((const char *)data + skipped, size - skipped);
    CHECK(text);
    if (data[0] % 3 == 0)
        check_address(text, 1 + (size_t)data[1]);
    else
        check_subnet(text);
    free(text);
    return 0;
}
