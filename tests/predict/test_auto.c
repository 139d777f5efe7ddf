/* The choices of --backend auto for models with few constants: a = 0.1 ms a step, B = 20 MB/s a
 * link, and in some tests 10 us of a processor per message. */
#include <criterion/criterion.h>
#include <string.h>

#include "experiments/predict/predict.h"
#include "tests/lib/capture.h"
#include "tests/lib/config_lib.h"

enum { LONG = 4 << 20, SHORT = 16 }; /* elements */

static const double a = 1e-4, b = 1 / 20e6;
static struct predict_error error = {1e-3, 0.001};

static struct predict_model model_of(const char *transport, double latency_s, double message_s)
{
    struct predict_model model = {
        .nominal_bytes_per_s = 25e6,
        .workers = {2, 8},
        .servers = {0, 8},
        .bytes = {64, 64 << 20},
        .fitted = 50,
        .fit =
            {.constants =
                 {.of = {[TERM_LATENCY] = latency_s, [TERM_LINK] = b, [TERM_MESSAGE] = message_s}},
             .errors = &error,
             .error_count = 1},
    };
    snprintf(model.network, sizeof model.network, "net");
    snprintf(model.transport, sizeof model.transport, "%s", transport);
    return model;
}

/* A job of four workers, which can contain servers, over any fitted transport. */
static const struct auto_job four = {.workers = 4,
                                     .placements = 1u << PLACEMENT_COLOCATED,
                                     .network = "net",
                                     .transports = 1u << TRANSPORT_ZMQ | 1u << TRANSPORT_MPI |
                                                   1u << TRANSPORT_TCP};

static struct auto_choice choice_of(const struct auto_job *job, double message_s)
{
    struct auto_choice choice;
    struct predict_model list[] = {model_of("zmq", 3 * a, message_s),
                                   model_of("tcp", a, message_s)};
    const struct predict_models models = {.models = list, .count = 2};
    cr_assert(auto_choose_way(&models, job, &choice) == STATUS_OK);
    static struct predict_model kept[2]; /* the choice borrows it */
    size_t which = (size_t)(choice.best.model - list);
    memcpy(kept, list, sizeof list);
    choice.best.model = &kept[which];
    return choice;
}

static void expect_seconds(const struct auto_way *way, double seconds)
{
    cr_expect_float_eq(way->seconds.seconds / seconds, 1, 1e-6, "%s takes %g s, expected %g",
                       way->way.backend, way->seconds.seconds, seconds);
}

/* rhd doubles here: lg W steps that carry the whole vector, and two messages. Four servers need two
 * steps with three quarters of the vector each way. Without a cost per message only the steps
 * count, so servers win. */
Test(auto, short_vectors_by_steps_and_messages)
{
    struct auto_job job = four;
    job.count = SHORT;
    struct auto_choice choice = choice_of(&job, 1e-5);
    cr_expect_str_eq(choice.best.way.backend, "rhd");
    cr_expect(choice.best.transport == TRANSPORT_TCP && !choice.stands_in);
    expect_seconds(&choice.best, 2 * a + 2 * 4 * SHORT * b + 2 * 1e-5);
    choice = choice_of(&job, 0);
    cr_expect_str_eq(choice.best.way.backend, "ps");
    cr_expect(choice.best.way.placement == PLACEMENT_COLOCATED && choice.best.way.servers == 4);
    expect_seconds(&choice.best, 2 * a + 1.5 * 4 * SHORT * b);
    cr_expect(choice.next.model && strcmp(choice.next.way.backend, "ps") != 0);
    cr_expect(!choice.alone.model);
}

/* 31 is a prime, so rhd sends to 30 workers at once. The tree has at most four neighbours, and two
 * messages with each of them in each direction. With dear messages that counts more than its steps.
 */
Test(auto, many_workers_and_dear_messages_by_the_tree)
{
    struct auto_job job = four;
    job.workers = 31;
    job.count = SHORT;
    struct auto_choice choice = choice_of(&job, 1e-4);
    cr_expect_str_eq(choice.best.way.backend, "tree");
    job.ordered = true; /* the tree does not keep the order */
    choice = choice_of(&job, 1e-4);
    cr_expect_str_neq(choice.best.way.backend, "tree");
    cr_expect_str_neq(choice.next.way.backend, "tree");
}

/* All ways carry 2(W-1)/W M; the ring has the fewest messages. */
Test(auto, long_vectors_by_the_ring)
{
    struct auto_job job = four;
    job.count = LONG;
    struct auto_choice choice = choice_of(&job, 1e-5);
    cr_expect_str_eq(choice.best.way.backend, "ring");
    cr_expect(choice.best.seconds.seconds > 1.5 * 4 * LONG * b + 6 * a);
    cr_expect(choice.best.seconds.seconds < 1.5 * 4 * LONG * b + 6 * a + 0.01);
    cr_expect(choice.next.seconds.seconds >= choice.best.seconds.seconds);
}

/* K dedicated servers take 8/K (1 + 1/chunks) M/B, the ring 1.75 M/B. From five servers on they can
 * be faster. If the spare machines exist anyway, one more server inside each worker is better
 * still: 2n(n-1)/(n^2 + kn - 2k). */
Test(auto, spare_servers_win_past_half_the_workers)
{
    struct auto_job job = four;
    job.workers = 8;
    job.count = LONG;
    job.placements = 1u << PLACEMENT_DEDICATED;
    for (int spare = 1; spare <= 8; spare++) {
        job.spare = spare;
        struct auto_choice choice = choice_of(&job, 0);
        cr_expect(choice.best.way.placement == PLACEMENT_DEDICATED &&
                  choice.best.way.servers == spare);
        cr_expect_str_neq(choice.alone.way.backend, "ps");
        bool wins = choice.best.seconds.seconds < choice.alone.seconds.seconds;
        cr_expect(spare > 4 || !wins, "%d servers win", spare);
        cr_expect(spare < 6 || wins, "%d servers do not win", spare);
    }
    job.spare = 1;
    job.placements = 1u << PLACEMENT_SWITCH; /* one server is enough where links meet */
    struct auto_choice in_switch = choice_of(&job, 0);
    cr_expect(in_switch.best.way.placement == PLACEMENT_SWITCH && in_switch.best.way.servers == 1);
    cr_expect(in_switch.best.seconds.seconds < in_switch.alone.seconds.seconds);
    job.spare = 4;
    job.placements = 1u << PLACEMENT_DEDICATED | 1u << PLACEMENT_MIXED;
    struct auto_choice choice = choice_of(&job, 0);
    cr_expect(choice.best.way.placement == PLACEMENT_MIXED && choice.best.way.servers == 4);
    double apart = choice.best.seconds.seconds / (2 * a + 112.0 / 88 * 4 * LONG * b);
    cr_expect(apart >= 1 && apart < 1.02, "%g", apart); /* the first chunk has no answer yet */
    cr_expect(choice.best.seconds.seconds < choice.alone.seconds.seconds);
}

/* Two hosts with four workers each, round robin. Four streams of the ring share a link, 4 x 1.75 M;
 * hierarchical sends M. With one worker per host hierarchical is the ring. */
Test(auto, slots_of_hosts_are_averaged_first)
{
    static const int hosts[] = {0, 1, 0, 1, 0, 1, 0, 1};
    struct auto_job job = four;
    job.workers = 8;
    job.hosts = hosts;
    job.count = LONG;
    struct auto_choice choice = choice_of(&job, 1e-5);
    cr_expect_str_eq(choice.best.way.backend, "hierarchical");
    cr_expect(choice.best.seconds.seconds < (4 * LONG * b) * 1.1);
    job.hosts = NULL;
    cr_expect_str_neq(choice_of(&job, 1e-5).best.way.backend, "hierarchical");
}

Test(auto, only_what_can_be)
{
    struct auto_job job = four;
    job.count = LONG;
    job.transports = 1u << TRANSPORT_ZMQ;
    cr_expect(choice_of(&job, 0).best.transport == TRANSPORT_ZMQ);
    job.transports = 1u << TRANSPORT_MPI; /* not fitted */
    struct auto_choice choice = choice_of(&job, 0);
    cr_expect(choice.best.transport == TRANSPORT_MPI && choice.stands_in);
    job.ordered = true; /* rhd does not keep the order */
    job.count = SHORT;
    choice = choice_of(&job, 1e-5);
    cr_expect_str_neq(choice.best.way.backend, "rhd");
    cr_expect_str_neq(choice.next.way.backend, "rhd");
    job = four;
    job.count = LONG;
    job.colocated = 2;
    choice = choice_of(&job, 0);
    const struct auto_way *ps =
        strcmp(choice.best.way.backend, "ps") == 0 ? &choice.best : &choice.next;
    cr_expect(strcmp(ps->way.backend, "ps") != 0 || ps->way.servers == 2);
}

/* Links that are ten times as fast. */
Test(auto, at_the_rate_of_the_run)
{
    struct auto_job job = four;
    job.count = LONG;
    job.bytes_per_s = 250e6;
    struct auto_choice choice = choice_of(&job, 0);
    expect_seconds(&choice.best, 2 * a + 1.5 * 4 * LONG * b / 10);
    job.bytes_per_s = 25e6;
    choice = choice_of(&job, 0);
    expect_seconds(&choice.best, 2 * a + 1.5 * 4 * LONG * b);
}

/* In a step that computes long enough, all buckets but the last can hide. A single bucket cannot
 * hide. */
Test(auto, buckets_hide_behind_computing)
{
    const double bytes = 4799528;
    struct auto_job job = four;
    job.model = "keras-cnn";
    job.compute_s = 2;
    struct auto_choice one = choice_of(&job, 0);
    cr_expect(one.best.buckets == 1);
    expect_seconds(&one.best, 2 + 2 * a + 1.5 * bytes * b);
    job.bucket_mb = -1;
    struct auto_choice choice = choice_of(&job, 0);
    cr_expect(choice.best.buckets > 1 && choice.best.bucket_mb < 8);
    cr_expect(choice.best.seconds.seconds < one.best.seconds.seconds &&
              choice.best.seconds.seconds >= 2);
}

Test(auto, says_what_it_rests_on)
{
    char text[1024];
    struct auto_job job = four;
    job.count = LONG;
    job.workers = 32;
    struct auto_choice choice = choice_of(&job, 0);
    auto_describe(&job, &choice, text, sizeof text);
    cr_expect(strstr(text, "16777216 bytes: ps colocated 32 over tcp, predicted to take "), "%s",
              text);
    cr_expect(strstr(text, "; next is ") && strstr(text, "(their intervals overlap)"), "%s", text);
    cr_expect(strstr(text, "; based on 50 rows over net and tcp; outside of what was fitted: 4 "
                           "times the most workers fitted (8)"),
              "%s", text);
    job.transports = 1u << TRANSPORT_MPI;
    choice = choice_of(&job, 0);
    auto_describe(&job, &choice, text, sizeof text);
    cr_expect(strstr(text, "the nearest model for mpi, which has no fitted rows"), "%s", text);
}

Test(auto, refuses_a_network_that_was_not_fitted)
{
    struct auto_job job = four;
    struct auto_choice choice;
    struct predict_model list[] = {model_of("tcp", a, 0), model_of("mpi-ring", a, 0)};
    snprintf(list[1].network, sizeof list[1].network,
             "elsewhere"); /* a model of MPI_Allreduce is no transport */
    const struct predict_models models = {.models = list, .count = 2};
    job.network = "elsewhere";
    assert_refused(auto_choose_way(&models, &job, &choice), STATUS_USAGE,
                   "no transport was fitted for the network elsewhere, only for net");
    job.network = "net";
    job.model = "alexnet";
    assert_refused(auto_choose_way(&models, &job, &choice), STATUS_USAGE, "no such model");
}

Test(auto, options_that_do_not_go_together, .init = config_clean_environment)
{
    struct config config;
    accept(CONFIG_BENCH, &config, "--backend auto --cost-model model.json --servers 2");
    cr_expect(config_is_auto(&config) && config.servers == 2 && !config.placement_given);
    cr_expect_str_eq(config_backend(&config)->name, "auto");
    accept(CONFIG_TRAIN, &config, "--backend auto --cost-model m --placement mixed --bucket-mb 2");
    cr_expect(config.placement_given && config.bucket_given);
    refuse(CONFIG_TRAIN, "--backend auto", "needs a fitted model");
    refuse(CONFIG_BENCH, "--backend ring --cost-model m", "only --backend auto uses it");
    refuse(CONFIG_BENCH, "--backend auto --cost-model m --segment-bytes 4k",
           "auto does not use it");
    refuse(CONFIG_TRAIN, "--backend auto --cost-model m --sync async", "auto does not use it");
    refuse(CONFIG_TRAIN, "--backend auto --cost-model m --virtual-workers 4", "--backend none");
    refuse(CONFIG_BENCH, "--backend auto --cost-model m --via-library", "auto does not use it");
}
