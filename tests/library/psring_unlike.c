/* libpsring: every kind of call meets every other kind. All ranks get an error that names the
 * calls, and no operation returns PSRING_OK with wrong numbers. */
#include "tests/library/psring_unlike.h"
#include "tests/lib/psring_ranks.h"

enum { SIZES = 3, PARTS = 13 };
static int part;

static void do_unlike(const struct psring_options *options)
{
    for (int pair = part; pair < unlike_pairs(); pair += PARTS) {
        struct psring *world = begin(options);
        unlike_meet(world, pair);
    }
}

/* The worlds run at the same time, because they mostly wait. */
static void run_worlds(const char *transport, const char *backend)
{
    pid_t processes[SIZES * PARTS][RANKS_MOST];
    struct job jobs[SIZES * PARTS];
    for (int w = 0; w < SIZES * PARTS; w++) {
        part = w % PARTS;
        jobs[w] = (struct job){
            .options = {.size = 2 + w / PARTS, .transport = transport, .backend = backend},
            .run = do_unlike};
        start_ranks(&jobs[w], processes[w]);
    }
    for (int w = 0; w < SIZES * PARTS; w++)
        wait_for_ranks(&jobs[w], processes[w], 0);
}

Test(psring, unlike_calls_over_tcp)
{
    run_worlds("tcp", NULL);
}

/* On one host an all-reduce sends no messages. */
Test(psring, unlike_calls_over_shared_memory)
{
    run_worlds("tcp", "hierarchical");
}

Test(psring, unlike_calls_over_zmq)
{
    run_worlds("zmq", NULL);
}
