/* The kernel's interface counters, parsed from texts like /proc/net/dev. */
#include "experiments/bench/measure.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>

#include "common/net/address.h"

static const char text[] =
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop "
    "fifo colls carrier compressed\n"
    "    lo: 1111      10    0    0    0     0          0         0     2222      10    0    0    "
    "0     0       0          0\n"
    "  eth0: 5000000000 6 0 0 0 0 0 0 18446744073709551615 7 0 0 0 0 0 0\n"
    " eth01:12 6 0 0 0 0 0 0 34 7 0 0 0 0 0 0\n";

Test(wire, parse)
{
    uint64_t bytes = 0;
    cr_expect(wire_parse(text, "lo", &bytes));
    cr_expect_eq(bytes, 2222);
    cr_expect(wire_parse(text, "eth0", &bytes));
    cr_expect_eq(bytes, UINT64_MAX);
    cr_expect(wire_parse(text, "eth01", &bytes)); /* the first column may touch the colon */
    cr_expect_eq(bytes, 34);
}

Test(wire, parse_refuses)
{
    uint64_t bytes = 77;
    cr_expect_not(wire_parse(text, "eth", &bytes));
    cr_expect_not(wire_parse(text, "eth1", &bytes));
    cr_expect_not(wire_parse(text, "", &bytes));
    cr_expect_not(wire_parse("", "lo", &bytes));
    cr_expect_not(wire_parse("  lo: 1 2 3\n", "lo", &bytes));
    cr_expect_not(wire_parse("  lo", "lo", &bytes));
    cr_expect_eq(bytes, 77);
}

/* All ranks of a machine share its interface, so the bytes of one rank are unknown. */
Test(wire, loopback_does_not_count)
{
    struct wire wire;
    uint64_t bytes;
    const struct world world = {0}; /* of one host */
    cr_assert_eq(wire_open(&wire, &world, NULL), STATUS_OK);
    cr_expect_str_eq(wire.interface, "");
    cr_expect_not(wire_sent_bytes(&wire, &bytes));
    cr_assert_eq(wire_open(&wire, &world, "127.0.0.0/8"), STATUS_OK);
    cr_expect_not(wire_sent_bytes(&wire, &bytes));
}

/* A list of interfaces that lacks the rank's address does not end the measurement. */
Test(wire, an_unknown_interface_does_not_count)
{
    struct wire wire;
    uint64_t bytes;
    union address address = {.v4 = {.sin_family = AF_INET}};
    struct world world = {.address = &address};
    inet_pton(AF_INET, "192.0.2.1", &address.v4.sin_addr); /* for documentation (RFC 5737) */
    cr_assert_eq(wire_open(&wire, &world, NULL), STATUS_OK);
    cr_expect_str_eq(wire.interface, "");
    cr_expect_not(wire_sent_bytes(&wire, &bytes));
}
