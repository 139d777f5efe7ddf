/* libpsring: every kind of call meets every other kind. All ranks get an error that names calls,
 * and no operation returns PSRING_OK with wrong numbers. */
#include "tests/psring_unlike.h"
#include "tests/psring_ranks.h"

enum { SIZES = 3, PARTS = 13 };
static int part;

static void do_unlike(const struct psring_options *options)
{
    for (int pair = part; pair < unlike_pairs(); pair += PARTS) {
        struct psring *world = begin(options);
        unlike_meet(world, pair);
    }
}

/* The worlds run at the same time: they mostly wait. */
static void run_worlds(const char *transport)
{
    pid_t worlds[SIZES * PARTS];
    for (int w = 0; w < SIZES * PARTS; w++) {
        const struct job job = {.options = {.size = 2 + w / PARTS, .transport = transport},
                                .run = do_unlike};
        part = w % PARTS;
        worlds[w] = fork();
        if (worlds[w] == 0) {
            run_ranks(&job, 0);
            exit(0);
        }
    }
    for (int w = 0; w < SIZES * PARTS; w++) {
        int how = 0;
        cr_assert_eq(waitpid(worlds[w], &how, 0), worlds[w]);
        cr_expect(WIFEXITED(how) && WEXITSTATUS(how) == 0, "%d ranks over %s", 2 + w / PARTS,
                  transport);
    }
}

Test(psring, unlike_calls_over_tcp)
{
    run_worlds("tcp");
}

Test(psring, unlike_calls_over_zmq)
{
    run_worlds("zmq");
}
