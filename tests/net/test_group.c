/* Builds groups from the colors of all ranks: every choice of three colors or none, for up to five
 * ranks. */
#include <criterion/criterion.h>

#include "common/net/topology.h"

enum { RANKS_MOST = 5, CHOICES = 4 }; /* no group, or one of three */

static void check_group(const int *colors, int world_size, int rank)
{
    struct group *group;
    cr_assert_eq(group_from_colors(&group, colors, world_size, rank), STATUS_OK);
    if (colors[rank] < 0) {
        cr_assert_null(group);
        return;
    }
    int index = 0;
    for (int other = 0; other < world_size; other++) {
        if (colors[other] != colors[rank])
            continue;
        cr_assert_eq(group->ranks[index], other);
        if (other == rank)
            cr_assert_eq(group->rank, index);
        index++;
    }
    cr_assert_eq(group->size, index);
    cr_assert_null(group->impl);
    group_free(&group);
    cr_assert_null(group);
    group_free(&group);
}

Test(group, every_assignment_of_colors)
{
    for (int size = 1, all = CHOICES; size <= RANKS_MOST; size++, all *= CHOICES) {
        for (int assignment = 0; assignment < all; assignment++) {
            int colors[RANKS_MOST], rest = assignment;
            for (int rank = 0; rank < size; rank++, rest /= CHOICES)
                colors[rank] = rest % CHOICES - 1;
            for (int rank = 0; rank < size; rank++)
                check_group(colors, size, rank);
        }
    }
}
