/* The choice of a GPU for each rank, on made-up machines. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "experiments/config/config.h"

enum { RANKS_MAX = 16 };

static struct gpu_view views[RANKS_MAX];
static int ranks;

/* Adds a rank on `machine` that sees the GPUs `ids`, one letter each. */
static void see(int machine, const char *ids)
{
    struct gpu_view *view = &views[ranks++];
    *view = (struct gpu_view){.machine = machine, .wanted = true, .count = (int)strlen(ids)};
    for (int gpu = 0; gpu < view->count; gpu++)
        snprintf(view->ids[gpu], sizeof view->ids[gpu], "0000:%c0:00.0", ids[gpu]);
}

/* `expected`: the index of each rank's GPU, '-' for none. `expected_without`: gpus_place's
 * `without`. */
static void expect(bool share, const char *expected, int expected_without)
{
    int index[RANKS_MAX], without;
    char found[RANKS_MAX + 1] = "";
    cr_assert_eq(gpus_place(views, ranks, share, index, &without), STATUS_OK);
    for (int rank = 0; rank < ranks; rank++)
        found[rank] = (char)(index[rank] < 0 ? '-' : '0' + index[rank]);
    cr_expect_str_eq(found, expected, "found %s, expected %s", found, expected);
    cr_expect_eq(without, expected_without, "found %d, expected %d", without, expected_without);
    ranks = 0;
}

Test(gpus, ranks_of_a_machine_take_its_gpus_in_order)
{
    for (int rank = 0; rank < 4; rank++)
        see(0, "abcd");
    expect(false, "0123", -1);
    for (int rank = 0; rank < 6; rank++) /* two machines with equal bus ids */
        see(rank % 2, "abc");
    expect(false, "001122", -1);
}

/* srun --gpus-per-task=1 and 2. */
Test(gpus, what_a_launcher_has_bound_is_taken)
{
    see(0, "a"), see(0, "b"), see(0, "c");
    expect(false, "000", -1);
    see(0, "ab"), see(0, "cd");
    expect(false, "00", -1);
}

/* CUDA_DEVICE_ORDER and CUDA_VISIBLE_DEVICES can change the numbers. */
Test(gpus, numbers_may_differ_between_ranks)
{
    see(0, "ab"), see(0, "ba");
    expect(false, "00", -1);
    see(0, "ab"), see(0, "ba"), see(0, "ab");
    expect(true, "000", -1);
}

Test(gpus, a_rank_makes_room_for_one_that_has_no_choice)
{
    see(0, "ab"), see(0, "a");
    expect(false, "10", -1);
    see(0, "ab"), see(0, "bc"), see(0, "a");
    expect(false, "110", -1);
    see(0, "ab"), see(0, "bc"), see(0, "a"), see(0, "b");
    expect(false, "110-", 3);
}

Test(gpus, too_few_are_refused_or_shared)
{
    for (int rank = 0; rank < 5; rank++)
        see(0, "ab");
    expect(false, "01---", 2);
    for (int rank = 0; rank < 5; rank++)
        see(0, "ab");
    expect(true, "01010", -1);
    for (int rank = 0; rank < 3; rank++) /* parts of one GPU (MIG): one id */
        see(0, "a");
    expect(true, "000", -1);
}

Test(gpus, who_wants_none_gets_none)
{
    see(0, "ab"), see(0, "ab"), see(0, "ab");
    views[1].wanted = false;
    expect(false, "0-1", -1);
    see(0, "a"), see(1, "");
    expect(true, "0-", 1);
}
