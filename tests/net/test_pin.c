/* Binds ranks to cores. Input: host identities and processors. Output: parts. */
#include <criterion/criterion.h>

#include "common/net/host.h"

static void set_cpus(struct host_identity *identity, int first, int last)
{
    for (int cpu = first; cpu <= last; cpu++)
        CPU_SET(cpu, &identity->cpus);
}

static void check_share(const struct host_identity *all, int size, int rank,
                        struct pin_share expected)
{
    struct pin_share found = pin_share_of(all, size, rank);
    cr_assert(found.index == expected.index && found.count == expected.count &&
                  found.overlaps == expected.overlaps,
              "rank %d: found %d of %d, overlaps %d", rank, found.index, found.count,
              found.overlaps);
}

/* Ranks 0, 2, 4 share all cores of one machine. Ranks 1, 3 on another machine are bound already. */
Test(pin, ranks_with_the_same_cores_share_them)
{
    struct host_identity all[5];
    for (int rank = 0; rank < 5; rank++)
        all[rank] = host_identity_of(rank % 2 ? "b" : "a", rank % 2 ? "boot-b" : "boot-a");
    for (int rank = 0; rank < 5; rank += 2)
        set_cpus(&all[rank], 0, 7);
    set_cpus(&all[1], 0, 3);
    set_cpus(&all[3], 4, 7);
    check_share(all, 5, 0, (struct pin_share){0, 3, -1});
    check_share(all, 5, 2, (struct pin_share){1, 3, -1});
    check_share(all, 5, 4, (struct pin_share){2, 3, -1});
    check_share(all, 5, 1, (struct pin_share){0, 1, -1});
    check_share(all, 5, 3, (struct pin_share){0, 1, -1});
    set_cpus(&all[3], 3, 3);
    check_share(all, 5, 1, (struct pin_share){0, 1, 3});
    check_share(all, 5, 3, (struct pin_share){0, 1, 1});
}

/* Two packages of two cores, with hyperthreads numbered after all cores, as on most x86. */
static const struct pin_cpu two_packages[] = {{0, 0, 0}, {1, 0, 1}, {2, 1, 0}, {3, 1, 1},
                                              {4, 0, 0}, {5, 0, 1}, {6, 1, 0}, {7, 1, 1}};

static void check_parts(int count, const char *const *expected)
{
    for (int index = 0; index < count; index++) {
        struct pin_cpu list[8];
        char text[PIN_LIST_BYTES];
        cpu_set_t part;
        memcpy(list, two_packages, sizeof list);
        pin_part(list, 8, index, count, &part);
        pin_list(&part, text);
        cr_assert_str_eq(text, expected[index], "part %d of %d: found %s, expected %s", index,
                         count, text, expected[index]);
    }
}

Test(pin, parts_are_neighbours_and_leave_cores_whole)
{
    check_parts(1, (const char *const[]){"0-7"});
    check_parts(2, (const char *const[]){"0-1,4-5", "2-3,6-7"});
    check_parts(3, (const char *const[]){"0,4", "1,5", "2-3,6-7"});
    check_parts(4, (const char *const[]){"0,4", "1,5", "2,6", "3,7"});
    check_parts(5, (const char *const[]){"0", "1,4", "5", "2,6", "3,7"});
    check_parts(8, (const char *const[]){"0", "4", "1", "5", "2", "6", "3", "7"});
    check_parts(9, (const char *const[]){"", "", "", "", "", "", "", "", ""});
}
