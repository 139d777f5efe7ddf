/* The place of each worker: host by host, dealt out, and arrangements that are refused. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "ring/hierarchical.h"

enum { WORKERS = 6 };

static void check_places(const int *hosts, const struct hosts_place *expected)
{
    struct hosts_place *places = hosts_places(hosts, WORKERS);
    cr_assert_not_null(places);
    for (int worker = 0; worker < WORKERS; worker++) {
        struct hosts_place found = places[worker];
        cr_expect(found.local == expected[worker].local && found.across == expected[worker].across,
                  "worker %d: %d on its host, %d across; expected %d and %d", worker, found.local,
                  found.across, expected[worker].local, expected[worker].across);
    }
    free(places);
}

Test(hierarchical, host_by_host)
{
    static const int hosts[WORKERS] = {0, 0, 2, 2, 4, 4};
    check_places(hosts, (struct hosts_place[]){{0, 0}, {1, 0}, {0, 1}, {1, 1}, {0, 2}, {1, 2}});
    cr_expect_eq(hosts_locals(hosts, WORKERS, 3), 2);
    cr_expect_eq(hosts_uneven(hosts, WORKERS), -1);
    cr_expect(hosts_in_order(hosts, WORKERS));
}

/* Ranks dealt out as by mpirun --map-by node, and an unusual arrangement. */
Test(hierarchical, dealt_out)
{
    static const int dealt[WORKERS] = {10, 11, 12, 10, 11, 12}; /* some ranks of a larger world */
    static const int odd[WORKERS] = {0, 1, 1, 0, 1, 0};
    check_places(dealt, (struct hosts_place[]){{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}});
    check_places(odd, (struct hosts_place[]){{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 0}, {2, 1}});
    cr_expect_eq(hosts_locals(dealt, WORKERS, 5), 2);
    cr_expect_eq(hosts_locals(odd, WORKERS, 5), 3);
    cr_expect_eq(hosts_uneven(dealt, WORKERS), -1);
    cr_expect_eq(hosts_uneven(odd, WORKERS), -1);
    cr_expect_not(hosts_in_order(dealt, WORKERS));
    cr_expect_not(hosts_in_order(odd, WORKERS));
}

Test(hierarchical, one_host_and_hosts_of_their_own)
{
    static const int one[WORKERS] = {0};
    check_places(one, (struct hosts_place[]){{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}});
    check_places(NULL, (struct hosts_place[]){{0, 0}, {0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 5}});
    cr_expect(hosts_in_order(one, WORKERS));
    cr_expect(hosts_in_order(NULL, WORKERS));
    cr_expect_eq(hosts_uneven(NULL, WORKERS), -1);
}

Test(hierarchical, uneven)
{
    static const int hosts[WORKERS] = {0, 0, 2, 2, 4, 5};
    cr_expect_eq(hosts_uneven(hosts, WORKERS), 4);
    cr_expect_eq(hosts_uneven(hosts, 4), -1);
}
