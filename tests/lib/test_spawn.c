/* Tests the harness, with ranks as threads: a rank that fails or does not return fails the test. */
#include "tests/lib/spawn.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 4 };

/* Each rank has a separate world of the right size, whose calls reach all ranks. */
static void meet(struct world *world, void *context)
{
    _Atomic int *calls = context;
    double sum = world->rank + 1;
    rank_assert_ok(world_sum(world, NULL, &sum, 1));
    rank_assert_eq(sum, world->size * (world->size + 1) / 2.0);
    rank_assert(world->rank >= 0 && world->rank < world->size);
    atomic_fetch_add(calls, 1);
}

Test(spawn, each_rank_runs_once)
{
    for (int ranks = 1; ranks <= SPAWN_RANKS_MOST; ranks += 5) {
        _Atomic int calls = 0;
        spawn(ranks, meet, &calls);
        cr_assert_eq(atomic_load(&calls), ranks);
    }
}

static void note_size(struct world *world, void *context)
{
    char *sizes = context;
    if (world->rank == 0)
        sizes[world->size] = 'x';
}

Test(spawn, sizes_are_those_with_a_path_of_their_own)
{
    char sizes[] = "................";
    unsetenv("PSRING_TEST_LONG");
    spawn_sizes(2, 9, note_size, sizes);
    cr_assert(strcmp(sizes, "..xxxx..x.......") == 0 || strcmp(sizes, "..xxx...........") == 0,
              "%s", sizes);
    setenv("PSRING_TEST_LONG", "1", 1);
    spawn_sizes(2, 9, note_size, sizes);
    cr_assert_str_eq(sizes, "..xxxxxxxx......");
}

static void fail_on_rank_2(struct world *world, void *context)
{
    (void)context;
    rank_assert(world->rank != 2, "found %d", world->rank);
}

Test(spawn, a_failing_rank_is_reported)
{
    char failure[SPAWN_TEXT_BYTES];
    cr_assert_not(spawn_try(RANKS, fail_on_rank_2, NULL, 60000, failure));
    cr_assert(strstr(failure, "rank 2 of 4: ") && strstr(failure, "test_spawn.c:") &&
                  strstr(failure, "world->rank != 2") && strstr(failure, "found 2"),
              "%s", failure);
}

/* The other ranks wait for the failed one, but the test does not wait. */
static void fail_while_others_wait(struct world *world, void *context)
{
    (void)context;
    if (world->rank == 1)
        rank_assert_ok(STATUS_PROTOCOL);
    rank_assert_ok(world_barrier(world, NULL));
}

Test(spawn, ranks_that_wait_for_a_failing_one_are_named)
{
    char failure[SPAWN_TEXT_BYTES];
    cr_assert_not(spawn_try(RANKS, fail_while_others_wait, NULL, 60000, failure));
    cr_assert(strstr(failure, "rank 1 of 4: ") && strstr(failure, "not returned: 0 1 2 3"), "%s",
              failure);
}

/* Runs on a thread that a rank has started. */
static void *fail_elsewhere(void *argument)
{
    rank_assert(argument, "on another thread");
    return NULL;
}

static void start_and_join(struct world *world, void *context)
{
    pthread_t thread;
    (void)context;
    if (world->rank != 0)
        return;
    rank_assert_eq(pthread_create(&thread, NULL, fail_elsewhere, NULL), 0);
    pthread_join(thread, NULL);
}

Test(spawn, a_failure_on_a_thread_of_a_rank_is_reported)
{
    char failure[SPAWN_TEXT_BYTES];
    cr_assert_not(spawn_try(RANKS, start_and_join, NULL, 60000, failure));
    cr_assert(strstr(failure, "a thread of 4 ranks: ") && strstr(failure, "on another thread"),
              "%s", failure);
}

static void stay(struct world *world, void *context)
{
    pthread_mutex_t *held = context;
    if (world->rank == 3)
        pthread_mutex_lock(held);
}

Test(spawn, a_rank_that_does_not_return_is_named)
{
    static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
    char failure[SPAWN_TEXT_BYTES];
    pthread_mutex_lock(&held);
    cr_assert_not(spawn_try(RANKS, stay, &held, 1000, failure));
    cr_assert(strstr(failure, "4 ranks: after 1 s; not returned:") && strstr(failure, " 3"), "%s",
              failure);
    pthread_mutex_unlock(&held);
}
