/* The bottleneck of a run, judged from numbers of which the answer is known; and in words. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "common/base/stats.h"
#include "experiments/train/bottleneck.h"

enum { WORKERS = 4 };

static struct bottleneck_rank ranks[WORKERS];

/* Four workers on 200 Mbit/s: a step of 100 ms, 90 of them computing. */
static struct bottleneck_facts usual(void)
{
    for (int r = 0; r < WORKERS; r++)
        ranks[r] =
            (struct bottleneck_rank){.step = 100, .exposed = 9, .data = 1, .comm = 60, .cpu = 89};
    return (struct bottleneck_facts){.ranks = ranks,
                                     .workers = WORKERS,
                                     .steps = STATS_INTERVAL_LEAST,
                                     .backend = "ring",
                                     .cpu_busy = 0.3,
                                     .cpu_other = 0,
                                     .link_bits_per_s = 200e6,
                                     .faster_bits_per_s = 1e9,
                                     .model = 59,
                                     .model_faster = 12,
                                     .model_spread = 59};
}

static void expect(const struct bottleneck_facts *facts, enum bottleneck_cause cause, double cost,
                   const char *words)
{
    char text[400];
    struct bottleneck found = bottleneck_of(facts);
    bottleneck_describe(facts, &found, text, sizeof text);
    cr_expect_str_eq(bottleneck_names[found.cause], bottleneck_names[cause], "%s", text);
    cr_expect_float_eq(found.cost, cost, 1e-9, "%g: %s", found.cost, text);
    cr_expect(strstr(text, words), "no '%s' in: %s", words, text);
    bool promises = strstr(text, "would take") || strstr(text, "would save");
    cr_expect_eq(promises, isfinite(found.better), "%s", text);
    cr_expect(strlen(text) + 1 < sizeof text);
}

/* The same, and nothing is projected. */
static void expect_no_promise(const struct bottleneck_facts *facts, enum bottleneck_cause cause,
                              double cost, const char *words)
{
    struct bottleneck found = bottleneck_of(facts);
    expect(facts, cause, cost, words);
    cr_expect(isnan(found.better) && isnan(found.fp16));
}

Test(bottleneck, computation)
{
    struct bottleneck_facts facts = usual();
    expect_no_promise(&facts, BOTTLENECK_COMPUTATION, 90, "computation: 90% of a step");
    facts.workers = 1;
    expect_no_promise(&facts, BOTTLENECK_COMPUTATION, 90, "computation");
    facts.workers = 0;
    expect(&facts, BOTTLENECK_NONE, 0, "nothing that is known");
    facts = usual();
    facts.steps--;
    expect(&facts, BOTTLENECK_NONE, 0, "a median needs at least 6 steps, found 5");
}

Test(bottleneck, slow_loader)
{
    struct bottleneck_facts facts = usual();
    for (int r = 0; r < WORKERS; r++)
        ranks[r].data = 40;
    ranks[2].cpu = ranks[1].cpu = 52;
    expect(&facts, BOTTLENECK_LOADER, 40,
           "without that wait a step would take 60.0 ms instead of 100.0");
    facts.cores = 2;
    facts.threads = 1; /* one core is left, for a thread that needs 40 ms of the other 60 */
    expect(&facts, BOTTLENECK_LOADER, 40,
           "with --data-threads 1 a step would take 60.0 ms instead of 100.0");
    facts.loaders = 1; /* it makes a batch in 100 ms */
    expect(&facts, BOTTLENECK_LOADER, 40, "each of a rank's cores, 2, computes or loads already");
    facts.cores = 8; /* two make one in 50 */
    expect(&facts, BOTTLENECK_LOADER, 40,
           "with --data-threads 2 a step would take 60.0 ms instead of 100.0");
    for (int r = 0; r < WORKERS; r++)
        ranks[r].data = 80; /* five would be needed for 20 */
    expect(&facts, BOTTLENECK_LOADER, 80,
           "with --data-threads 5 a step would take 20.0 ms instead of 100.0");
    facts.cores = 4;
    expect(&facts, BOTTLENECK_LOADER, 80,
           "with --data-threads 3 a step would take 33.3 ms instead of 100.0");
}

Test(bottleneck, slow_rank)
{
    struct bottleneck_facts facts = usual();
    for (int r = 0; r < WORKERS; r++)
        ranks[r].exposed = r == 2 ? 5 : 65;
    expect(&facts, BOTTLENECK_RANK, 60, "rank 2: the other ranks wait for it for 60% of a step");
    facts.workers = 3;
    expect(&facts, BOTTLENECK_RANK, 60, "would take 40.0 ms instead of 100.0");
    ranks[2].data = 62; /* its loader */
    expect(&facts, BOTTLENECK_RANK, 60, "rank 2");
}

/* 352 ms of averaging, of which 215 are exposed: computing hides 137. */
static struct bottleneck_facts slow_averaging(void)
{
    struct bottleneck_facts facts = usual();
    for (int r = 0; r < WORKERS; r++)
        ranks[r] = (struct bottleneck_rank){
            .step = 352, .exposed = 215, .data = 1, .comm = 340, .cpu = 130};
    facts.model = 336.6;
    facts.model_faster = 67.32;
    facts.model_spread = 336.6;
    return facts;
}

Test(bottleneck, slow_link)
{
    struct bottleneck_facts facts = slow_averaging();
    expect(&facts, BOTTLENECK_LINK, 215, "the link: 61% of a step waits for averaging");
    expect(&facts, BOTTLENECK_LINK, 215, "ring is at 99% of the link, 200 Mbit/s");
    /* of 340 ms 269.28 go away, and 70.72 are hidden whole */
    expect(&facts, BOTTLENECK_LINK, 215, "at 1 Gbit/s a step would take 137.0 ms instead of 352.0");
    /* half of the bytes' 336.6 ms */
    expect(&facts, BOTTLENECK_LINK, 215, "--compress fp16 would save 168.3 ms");
    facts.compressed = true;
    struct bottleneck found = bottleneck_of(&facts);
    cr_expect(isnan(found.fp16));
    facts.cpu_busy = 0.99; /* a full link limits, however busy the cores are */
    expect(&facts, BOTTLENECK_LINK, 215, "the link");
    facts.model = 275; /* what is not the link's stays: of 340 ms 275 * (1 - 67.32 / 275) go away */
    expect(&facts, BOTTLENECK_LINK, 215, "at 1 Gbit/s a step would take 144.3 ms instead of 352.0");
}

Test(bottleneck, without_the_links_rate_nothing_is_said_of_links)
{
    struct bottleneck_facts facts = slow_averaging();
    facts.link_bits_per_s = 0;
    expect_no_promise(&facts, BOTTLENECK_AVERAGING, 215, "the links' rate is not known");
    expect_no_promise(&facts, BOTTLENECK_AVERAGING, 215, "cores were 30% busy meanwhile");
    facts.workers = 1; /* with a server on another host */
    ranks[0] = (struct bottleneck_rank){.step = 240, .exposed = 140, .comm = 200, .cpu = 90};
    expect_no_promise(&facts, BOTTLENECK_AVERAGING, 140, "exposed for 58% of a step");
}

Test(bottleneck, averaging_far_below_the_links_rate_has_no_known_cause)
{
    struct bottleneck_facts facts = slow_averaging();
    facts.model = 80;
    expect_no_promise(&facts, BOTTLENECK_AVERAGING, 215, "ring is at 24% of the link, 200 Mbit/s");
    facts.dedicated_servers = true; /* nor is the server blamed */
    facts.model_spread = 32;
    expect_no_promise(&facts, BOTTLENECK_AVERAGING, 215, "what limits it is not known");
    for (int r = 0; r < WORKERS; r++) /* small messages, of which the bytes take no time */
        ranks[r] =
            (struct bottleneck_rank){.step = 5, .exposed = 4, .data = 0, .comm = 4, .cpu = 1};
    facts.model = 0.3;
    expect_no_promise(&facts, BOTTLENECK_AVERAGING, 4, "ring is at 8% of the link");
}

Test(bottleneck, averaging_on_busy_cores)
{
    struct bottleneck_facts facts = slow_averaging();
    facts.model = 30; /* 10 Gbit/s, say */
    facts.cpu_busy = 0.97;
    facts.cpu_other = 0.05;
    expect_no_promise(&facts, BOTTLENECK_PROCESSORS, 215, "cores were 97% busy meanwhile");
    facts.link_bits_per_s = 0; /* loopback */
    expect_no_promise(&facts, BOTTLENECK_PROCESSORS, 215, "exposed for 61% of a step");
    facts.cpu_other = -1; /* not known: taken for the ranks' own */
    expect_no_promise(&facts, BOTTLENECK_PROCESSORS, 215, "cores were 97% busy");
    facts.cpu_other = 0.6; /* the ranks alone would not have filled them */
    expect_no_promise(&facts, BOTTLENECK_AVERAGING, 215, "97% busy meanwhile, 60% with other");
    facts.cpu_busy = 0.84;
    facts.cpu_other = 0;
    expect_no_promise(&facts, BOTTLENECK_AVERAGING, 215, "84% busy meanwhile");
    facts.cpu_busy = -1;
    expect_no_promise(&facts, BOTTLENECK_AVERAGING, 215, "not known");
}

Test(bottleneck, faster_than_the_link_can_be_is_not_believed)
{
    struct bottleneck_facts facts = slow_averaging();
    facts.link_bits_per_s = 20e6;
    facts.model = 360; /* of 340 ms: at so slow a link, what goes through at once */
    expect(&facts, BOTTLENECK_LINK, 215, "ring is at 106% of the link, 20 Mbit/s");
    facts.link_bits_per_s = 200e6;
    facts.model = 680; /* twice what it took */
    expect_no_promise(&facts, BOTTLENECK_AVERAGING, 215,
                      "2.0 times as fast as a link of 200 Mbit/s, so --link-rate is not this "
                      "link's rate");
    facts.dedicated_servers = true; /* nor is the server blamed */
    facts.model_spread = 136;
    expect_no_promise(&facts, BOTTLENECK_AVERAGING, 215, "not this link's rate");
    facts.model = 350; /* within what is measured */
    expect(&facts, BOTTLENECK_SERVER, 215, "at 103% of the server's link");
}

Test(bottleneck, one_server)
{
    struct bottleneck_facts facts = slow_averaging();
    facts.backend = "ps";
    facts.dedicated_servers = true;
    facts.model_spread = 136;
    expect(&facts, BOTTLENECK_SERVER, 215, "the server: 61% of a step waits for averaging, at 99%");
    facts.model_spread = 336; /* as many servers as workers: not the server */
    expect(&facts, BOTTLENECK_LINK, 215, "the link");
}

Test(bottleneck, short_of_processors)
{
    struct bottleneck_facts facts = usual();
    for (int r = 0; r < WORKERS; r++)
        ranks[r].cpu = 30;
    expect_no_promise(&facts, BOTTLENECK_PROCESSORS, 60, "wait for a core for 60% of a step");
    facts.waits = true;
    expect(&facts, BOTTLENECK_COMPUTATION, 90, "computation");
    facts.waits = false;
    for (int r = 0; r < WORKERS; r++)
        ranks[r].cpu = (double)NAN;
    expect(&facts, BOTTLENECK_COMPUTATION, 90, "computation");
}
