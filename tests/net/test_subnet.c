/* Addresses, networks and interfaces as users write them, and the addresses of this host. */
#include <criterion/criterion.h>

#include "common/net/address.h"
#include "tests/lib/capture.h"

static union address numeric(const char *text)
{
    union address address;
    int count;
    const char *why = "";
    cr_assert(address_resolve(text, 0, 0, &address, &count, &why), "%s: %s", text, why);
    return address;
}

static bool lies_in(const char *address, const char *network)
{
    struct subnet subnet;
    union address at = numeric(address);
    cr_assert_eq(subnet_parse(network, &subnet), STATUS_OK);
    return subnet_has(&subnet, &at);
}

Test(subnet, networks)
{
    cr_assert(lies_in("10.1.2.0", "10.1.2.0/24") && lies_in("10.1.2.255", "10.1.2.0/24"));
    cr_assert(!lies_in("10.1.1.255", "10.1.2.0/24") && !lies_in("10.1.3.0", "10.1.2.0/24"));
    cr_assert(lies_in("10.1.2.3", "10.1.2.77/24")); /* the network is given by an address in it */
    cr_assert(lies_in("10.1.2.77", "10.1.2.77/32") && !lies_in("10.1.2.76", "10.1.2.77/32"));
    cr_assert(lies_in("10.1.2.65", "10.1.2.77/27") && !lies_in("10.1.2.63", "10.1.2.77/27"));
    cr_assert(lies_in("255.255.255.255", "0.0.0.0/0"));
    cr_assert(lies_in("fd00::1", "fd00::/64") && !lies_in("fd00:0:0:1::1", "fd00::/64"));
    cr_assert(lies_in("fd00:0:0:1::1", "fd00::/63") && !lies_in("fd00:0:0:2::1", "fd00::/63"));
    cr_assert(!lies_in("10.1.2.3", "::/0") && !lies_in("::ffff:10.1.2.3", "10.1.2.0/24"));
}

Test(subnet, what_is_none)
{
    static const char *const wrong[] = {
        "10.0.0.0",     "10.0.0.0/",  "10.0.0.0/33",  "10.0.0.0/+8",  "10.0.0.0/-1",
        "10.0.0.0/8x",  "10.0.0/8",   "/8",           "fe80::1",      "::1/129",
        "10.0.0.0/024", "fe80::g/10", "10.0.0.0/8/8", "10.0.0.256/8", "a-name-of-sixteen"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        union address address;
        assert_refused(address_choose(wrong[i], true, &address), STATUS_USAGE,
                       "expected the name of an interface or a network");
    }
}

static void expect_choice(const char *subnet, bool one_host, const char *expected)
{
    union address address;
    char text[ADDRESS_TEXT_BYTES];
    cr_assert_eq(address_choose(subnet, one_host, &address), STATUS_OK);
    cr_assert_str_eq(address_text(&address, text), expected);
}

Test(subnet, an_address_in_it)
{
    union address address;
    char name[IF_NAMESIZE];
    expect_choice("127.0.0.0/8", false, "127.0.0.1");
    expect_choice("lo", false, "127.0.0.1");
    expect_choice(NULL, true, "127.0.0.1");
    assert_refused(address_choose("240.0.0.0/4", true, &address), STATUS_INPUT,
                   "no IPv4 address in 240.0.0.0/4 on this host (it has: 127.0.0.1 (lo)");
    assert_refused(address_choose("none0", true, &address), STATUS_INPUT,
                   "no interface none0 with an address on this host");
    address = numeric("127.0.0.1");
    cr_assert_eq(address_interface(&address, name, sizeof name), STATUS_OK);
    cr_assert_str_eq(name, "lo");
    address = numeric("240.0.0.1");
    cr_assert_eq(address_interface(&address, name, sizeof name), STATUS_INPUT);
}

Test(subnet, addresses_as_text)
{
    static const char *const good[] = {"tcp://10.0.0.1:29500", "tcp://[fd00::1]:29500",
                                       "tcp://[::1]:1"};
    static const char *const wrong[] = {
        "tcp://10.0.0.1",       "tcp://:1",         "tcp://[]:1",      "tcp://fd00::1:29500",
        "tcp://[fd00::1]",      "tcp://[name]:1",   "tcp://[::1:1",    "tcp://::1]:1",
        "tcp://10.0.0.1:65536", "tcp://10.0.0.1:x", "udp://a:1",       "tcp://a:b:1",
        "tcp://[10.0.0.1]:1",   "tcp://a]:1",       "tcp://[fd00::1]1"};
    char host[ADDRESS_HOST_BYTES], text[ADDRESS_URI_BYTES];
    int port, count;
    const char *why;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        union address address, back;
        unsigned char packed[16];
        cr_assert(address_parse(good[i], host, sizeof host, &port), "%s", good[i]);
        cr_assert(address_resolve(host, port, 0, &address, &count, &why) && count == 1);
        cr_assert_str_eq(address_uri(&address, text), good[i]);
        address_pack(&address, packed);
        address_unpack(packed, port, &back);
        cr_assert_str_eq(address_uri(&back, text), good[i]);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_assert(!address_parse(wrong[i], host, sizeof host, &port), "%s", wrong[i]);
}
