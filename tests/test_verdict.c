/* What limits a run, judged from numbers of which the answer is known; and in words. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "experiments/trace/verdict.h"

enum { WORKERS = 4 };

static struct verdict_rank ranks[WORKERS];

/* Four workers on 200 Mbit/s: a step of 100 ms, 90 of them computing. */
static struct verdict_facts usual(void)
{
    for (int r = 0; r < WORKERS; r++)
        ranks[r] =
            (struct verdict_rank){.step = 100, .exposed = 9, .data = 1, .comm = 60, .cpu = 89};
    return (struct verdict_facts){.ranks = ranks,
                                  .workers = WORKERS,
                                  .backend = "ring",
                                  .link_bits_per_s = 200e6,
                                  .faster_bits_per_s = 1e9,
                                  .model = 59,
                                  .model_faster = 12,
                                  .model_spread = 59,
                                  .latencies = 12};
}

static void expect(const struct verdict_facts *facts, enum verdict_limit limit, double cost,
                   const char *words)
{
    char text[400];
    struct verdict verdict = verdict_of(facts);
    verdict_describe(facts, &verdict, text, sizeof text);
    cr_expect_str_eq(verdict_names[verdict.limit], verdict_names[limit], "%s", text);
    cr_expect_float_eq(verdict.cost, cost, 1e-9, "%g: %s", verdict.cost, text);
    cr_expect(strstr(text, words), "no '%s' in: %s", words, text);
}

Test(verdict, nothing_wrong)
{
    struct verdict_facts facts = usual();
    expect(&facts, VERDICT_COMPUTATION, 90, "computation: 90% of a step");
    facts.workers = 1;
    expect(&facts, VERDICT_COMPUTATION, 90, "computation");
    ranks[0] = (struct verdict_rank){.step = 240, .exposed = 140, .comm = 200, .cpu = 90};
    expect(&facts, VERDICT_NETWORK, 140, "58% of a step waits for averaging"); /* a server's */
    facts.workers = 0;
    expect(&facts, VERDICT_NONE, 0, "nothing that is known");
}

Test(verdict, slow_loader)
{
    struct verdict_facts facts = usual();
    for (int r = 0; r < WORKERS; r++)
        ranks[r].data = 40;
    ranks[2].cpu = ranks[1].cpu = 52;
    expect(&facts, VERDICT_DATA, 40,
           "if it were there, a step would take 60.0 ms instead of 100.0");
    facts.cores = 2;
    facts.threads = 1; /* one core is left, for a thread that needs 40 ms beside 60 */
    expect(&facts, VERDICT_DATA, 40, "with --loaders 1 a step would take 60.0 ms instead of 100.0");
    facts.loaders = 1; /* it makes a batch in 100 ms */
    expect(&facts, VERDICT_DATA, 40, "each of a rank's cores, 2, computes or loads already");
    facts.cores = 8; /* two make one in 50 */
    expect(&facts, VERDICT_DATA, 40, "with --loaders 2 a step would take 60.0 ms instead of 100.0");
    for (int r = 0; r < WORKERS; r++)
        ranks[r].data = 80; /* five would be needed for 20 */
    expect(&facts, VERDICT_DATA, 80, "with --loaders 5 a step would take 20.0 ms instead of 100.0");
    facts.cores = 4;
    expect(&facts, VERDICT_DATA, 80, "with --loaders 3 a step would take 33.3 ms instead of 100.0");
}

Test(verdict, slow_rank)
{
    struct verdict_facts facts = usual();
    for (int r = 0; r < WORKERS; r++)
        ranks[r].exposed = r == 2 ? 5 : 65;
    expect(&facts, VERDICT_RANK, 60, "rank 2: the others wait for it for 60% of a step");
    facts.workers = 3;
    expect(&facts, VERDICT_RANK, 60, "would take 40.0 ms instead of 100.0");
    ranks[2].data = 62; /* its loader */
    expect(&facts, VERDICT_RANK, 60, "rank 2");
}

/* 352 ms of averaging, of which 215 are exposed: computing hides 137. */
static struct verdict_facts slow_link(void)
{
    struct verdict_facts facts = usual();
    for (int r = 0; r < WORKERS; r++)
        ranks[r] =
            (struct verdict_rank){.step = 352, .exposed = 215, .data = 1, .comm = 340, .cpu = 130};
    facts.model = 336.6;
    facts.model_faster = 67.32;
    facts.model_spread = 336.6;
    return facts;
}

Test(verdict, slow_link)
{
    struct verdict_facts facts = slow_link();
    expect(&facts, VERDICT_NETWORK, 215, "the network: 61% of a step waits for averaging");
    expect(&facts, VERDICT_NETWORK, 215, "ring is at 99% of the link, 200 Mbit/s");
    /* 68 ms of averaging are hidden whole */
    expect(&facts, VERDICT_NETWORK, 215, "at 1 Gbit/s a step would take 137.0 ms instead of 352.0");
    expect(&facts, VERDICT_NETWORK, 215, "--compress fp16 would save 170.0 ms");
    facts.compressed = true;
    struct verdict verdict = verdict_of(&facts);
    cr_expect(isnan(verdict.fp16));
    facts.link_bits_per_s = 0;
    expect(&facts, VERDICT_NETWORK, 215, "with links twice as fast a step would take 182.0 ms");
}

Test(verdict, slower_than_the_link_is_said_to_be)
{
    struct verdict_facts facts = slow_link();
    facts.model = 80;
    expect(&facts, VERDICT_NETWORK, 215, "a link is slower than that");
}

Test(verdict, faster_than_the_link_can_be_is_not_believed)
{
    struct verdict_facts facts = slow_link();
    facts.link_bits_per_s = 20e6;
    facts.model = 360; /* of 340 ms: at so slow a link, what goes through at once */
    expect(&facts, VERDICT_NETWORK, 215, "ring is at 106% of the link, 20 Mbit/s");
    facts.link_bits_per_s = 200e6;
    facts.model = 680; /* twice what it took */
    expect(&facts, VERDICT_NETWORK, 215,
           "2.0 times as fast as a link of 200 Mbit/s, so --link-rate is not this link's rate");
    expect(&facts, VERDICT_NETWORK, 215, "with links twice as fast a step would take 182.0 ms");
    facts.dedicated_servers = true; /* nor is the server blamed */
    facts.model_spread = 136;
    struct verdict verdict = verdict_of(&facts);
    cr_expect_eq(verdict.limit, VERDICT_NETWORK);
    cr_expect(isnan(verdict.of_model));
    facts.model = 350; /* within what is measured */
    expect(&facts, VERDICT_SERVER, 215, "at 103% of its link");
}

Test(verdict, one_server)
{
    struct verdict_facts facts = slow_link();
    facts.backend = "ps";
    facts.dedicated_servers = true;
    facts.model_spread = 136;
    expect(&facts, VERDICT_SERVER, 215, "the server: 61% of a step waits for averaging, at 99%");
    facts.model_spread = 336; /* as many servers as workers: not the server */
    expect(&facts, VERDICT_NETWORK, 215, "the network");
}

Test(verdict, short_of_processors)
{
    struct verdict_facts facts = usual();
    for (int r = 0; r < WORKERS; r++)
        ranks[r].cpu = 30;
    expect(&facts, VERDICT_PROCESSORS, 60, "with a core for each thread");
    facts.waits = true;
    expect(&facts, VERDICT_COMPUTATION, 90, "computation");
    facts.waits = false;
    for (int r = 0; r < WORKERS; r++)
        ranks[r].cpu = (double)NAN;
    expect(&facts, VERDICT_COMPUTATION, 90, "computation");
}

Test(verdict, tiny_batch)
{
    struct verdict_facts facts = usual();
    for (int r = 0; r < WORKERS; r++)
        ranks[r] = (struct verdict_rank){.step = 5, .exposed = 4, .data = 0, .comm = 4, .cpu = 1};
    facts.model = 0.3;
    facts.model_faster = 0.06;
    expect(&facts, VERDICT_OVERHEAD, 4, "a larger --batch");
}
