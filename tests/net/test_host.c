/* Finds which ranks share a host, a machine or a core. Input: host identities. Output: places. */
#include <criterion/criterion.h>

#include "common/net/host.h"

struct expected {
    const char *name, *boot_id;
    int cpu;
    struct host_place place;
};

static void check_places(const struct expected *expected, int size)
{
    struct host_identity all[8];
    for (int rank = 0; rank < size; rank++) {
        all[rank] = host_identity_of(expected[rank].name, expected[rank].boot_id);
        CPU_SET(expected[rank].cpu, &all[rank].cpus);
    }
    for (int rank = 0; rank < size; rank++) {
        struct host_place found = host_place_of(all, size, rank), want = expected[rank].place;
        cr_assert(found.local_rank == want.local_rank && found.local_size == want.local_size &&
                      found.machine == want.machine && found.sharing_cpus == want.sharing_cpus,
                  "rank %d: found local %d of %d, machine %d, %d sharing", rank, found.local_rank,
                  found.local_size, found.machine, found.sharing_cpus);
    }
}

Test(host, one_host)
{
    check_places((struct expected[]){{"a", "boot-1", 0, {0, 3, 0, 2}},
                                     {"a", "boot-1", 1, {1, 3, 0, 1}},
                                     {"a", "boot-1", 0, {2, 3, 0, 2}}},
                 3);
}

Test(host, a_hosts_number_is_its_lowest_rank)
{
    static const char *const names[] = {"a", "b", "b", "a", "c"};
    static const int numbers[] = {0, 1, 1, 0, 4};
    struct host_identity all[5];
    for (int rank = 0; rank < 5; rank++)
        all[rank] = host_identity_of(names[rank], "boot-1");
    for (int rank = 0; rank < 5; rank++)
        cr_assert_eq(host_number_of(all, rank), numbers[rank]);
}

/* For example, virtual machines cloned from one image. */
Test(host, two_machines_of_one_name_are_two_hosts)
{
    check_places((struct expected[]){{"worker", "boot-1", 0, {0, 1, 0, 1}},
                                     {"worker", "boot-2", 0, {0, 2, 1, 2}},
                                     {"worker", "boot-2", 0, {1, 2, 1, 2}}},
                 3);
}

/* For example, containers or the hosts of vcluster.sh: they share the machine's cores and GPUs. */
Test(host, names_of_one_kernel_are_hosts_of_one_machine)
{
    check_places((struct expected[]){{"a", "boot-1", 0, {0, 2, 0, 3}},
                                     {"b", "boot-1", 0, {0, 2, 0, 3}},
                                     {"a", "boot-1", 0, {1, 2, 0, 3}},
                                     {"b", "boot-1", 1, {1, 2, 0, 1}},
                                     {"a", "boot-2", 0, {0, 1, 4, 1}}},
                 5);
}

Test(host, without_a_boot_id_the_name_decides)
{
    check_places((struct expected[]){{"a", "", 0, {0, 2, 0, 2}},
                                     {"b", "", 0, {0, 1, 1, 1}},
                                     {"a", "", 0, {1, 2, 0, 2}}},
                 3);
}

Test(host, this_process)
{
    struct host_identity twice[] = {host_identify("a"), host_identify("a")};
    struct host_place place = host_place_of(twice, 2, 1);
    cr_assert(place.local_rank == 1 && place.local_size == 2 && place.machine == 0);
    cr_assert(CPU_COUNT(&twice[0].cpus) > 0);
}
