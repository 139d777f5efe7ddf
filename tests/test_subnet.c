/* IPv4 networks as users write them, and which address of this host lies in one. */
#include <criterion/criterion.h>

#include "common/net/socket/address.h"
#include "tests/config_lib.h"

TestSuite(subnet, .init = config_clean_environment);

Test(subnet, networks)
{
    struct subnet subnet;
    cr_assert_eq(subnet_parse("10.1.2.0/24", &subnet), STATUS_OK);
    cr_assert(subnet_has(&subnet, 0x0a010200) && subnet_has(&subnet, 0x0a0102ff));
    cr_assert(!subnet_has(&subnet, 0x0a0101ff) && !subnet_has(&subnet, 0x0a010300));
    cr_assert_eq(subnet_parse("10.1.2.77/24", &subnet), STATUS_OK); /* an address in it */
    cr_assert(subnet.network == 0x0a010200 && subnet.mask == 0xffffff00);
    cr_assert_eq(subnet_parse("10.1.2.77/32", &subnet), STATUS_OK);
    cr_assert(subnet_has(&subnet, 0x0a01024d) && !subnet_has(&subnet, 0x0a01024c));
    cr_assert_eq(subnet_parse("0.0.0.0/0", &subnet), STATUS_OK);
    cr_assert(subnet_has(&subnet, 0xffffffff));
}

/* The options and the choice of an address agree on what is one. */
Test(subnet, what_is_none)
{
    static const char *const wrong[] = {
        "10.0.0.0",     "10.0.0.0/", "10.0.0.0/33",  "10.0.0.0/+8", "10.0.0.0/-1",
        "10.0.0.0/8x",  "10.0.0/8",  "/8",           "eth0",        "::1/64",
        "10.0.0.0/024", "fe80::/10", "10.0.0.0/8/8", "10.0.0.256/8"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char line[64], address[16];
        snprintf(line, sizeof line, "--interface %s", wrong[i]);
        refuse(CONFIG_TRAIN, line, "expected an IPv4 network as ADDRESS/BITS");
        assert_refused(address_choose(wrong[i], true, address, sizeof address), STATUS_USAGE,
                       "expected an IPv4 network as ADDRESS/BITS");
    }
}

Test(subnet, an_address_in_it)
{
    char address[16];
    cr_assert_eq(address_choose("127.0.0.0/8", false, address, sizeof address), STATUS_OK);
    cr_assert_str_eq(address, "127.0.0.1");
    cr_assert_eq(address_choose(NULL, true, address, sizeof address), STATUS_OK);
    cr_assert_str_eq(address, "127.0.0.1");
    assert_refused(address_choose("240.0.0.0/4", true, address, sizeof address), STATUS_INPUT,
                   "no IPv4 address in 240.0.0.0/4 on this host");
}
