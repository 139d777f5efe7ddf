/* The meaning of options: defaults, values, the environment, and derived settings. Refusals are in
 * test_config_check.c. */
#include "experiments/config/config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/config/backends.h"
#include "experiments/config/learning.h"
#include "ps/ps.h"
#include "ring/ring.h"
#include "tests/lib/config_lib.h"

TestSuite(config, .init = config_clean_environment);

/* -------- values ------------------------------------------------------------------------------ */

Test(config, defaults_of_train)
{
    struct config config;
    accept(CONFIG_TRAIN, &config, "");
    cr_assert(config_backend(&config) == &backend_ring && config.servers == 0);
    cr_assert(!config.train.paced && config.train.virtual_workers == 0 && config.train.steps == 0);
    cr_assert(config.timeout == 30 && config.threads == 1 && config.link_rate == 0);
    cr_assert(config.data == NULL && config.network == NULL && config.subnet == NULL);
    cr_assert_str_eq(config_model_name(&config), "keras-cnn");
    cr_assert_str_eq(config_device_name(&config), "cpu");
    cr_assert_str_eq(config_placement_name(&config), "none");
    cr_assert_str_eq(config.train.sync, "bsp");
}

Test(config, every_option_of_train_arrives)
{
    struct config config;
    accept(CONFIG_TRAIN, &config,
           "--backend ps --transport mpi --servers 3 --placement colocated --sync bsp "
           "--reduce-order ring --segment-bytes 64k --push-window 4 --subnet 10.1.2.0/24 --timeout "
           "2.5 "
           "--network lab --link-rate 200e6 --threads 2 --model mlp --data /d --epochs 7 "
           "--batch 11 --optimizer sgd --lr 0.25 --momentum 0.5 --nesterov --weight-decay 1e-3 "
           "--lr-scale sqrt --lr-schedule cosine --warmup-epochs 1.5 --epochs-divided --seed 13 "
           "--bucket-mb 1.5 --checkpoint /c "
           "--resume --metrics m.csv --log-steps 17 -v");
    cr_assert(config.compress == COMPRESS_NONE);
    cr_assert_str_eq(config_error_feedback_name(&config), "none");
    cr_assert(config_backend(&config) == &backend_ps && config.transport == CONFIG_TRANSPORT_MPI);
    cr_assert(config.servers == 3 && config.placement == PLACEMENT_COLOCATED);
    cr_assert(config.reduce_order == REDUCE_ORDER_RING);
    cr_assert(config.segment_bytes == 65536 && config.push_window == 4);
    cr_assert_str_eq(config.subnet, "10.1.2.0/24");
    cr_assert(config.timeout == 2.5 && config.link_rate == 200e6 && config.threads == 2);
    cr_assert_str_eq(config.network, "lab");
    cr_assert_str_eq(config_model_name(&config), "mlp");
    cr_assert_str_eq(config.data, "/d");
    cr_assert(config.epochs == 7 && config.train.epochs_divided && config.batch == 11);
    cr_assert(config.learning.momentum == 0.5 && config.learning.nesterov &&
              config.learning.weight_decay == 1e-3);
    cr_assert(config.learning.lr_scale == LR_SCALE_SQRT &&
              config.learning.lr_schedule == LR_COSINE);
    cr_assert(config.learning.warmup_epochs == 1.5);
    cr_assert(config.learning.lr == 0.25 && config.seed == 13 && config.bucket_mb == 1.5);
    cr_assert(config.train.resume == CONFIG_RESUME_AUTO && config.train.log_steps == 17 &&
              config.verbose);
    cr_assert_str_eq(config.train.checkpoint, "/c");
    cr_assert_str_eq(config.train.metrics, "m.csv");
}

Test(config, options_of_the_optimizers_arrive)
{
    struct config config;
    accept(CONFIG_TRAIN, &config, "--optimizer adam --beta1 0.8 --beta2 0.99 --epsilon 1e-6");
    struct optimizer_parameters p = learning_optimizer(&config);
    cr_assert(p.beta1 == 0.8f && p.beta2 == 0.99f && p.epsilon == 1e-6f && p.weight_decay == 0);
    accept(CONFIG_TRAIN, &config,
           "--optimizer lars --lars-coefficient 0.001 --momentum 0.8 --steps 9");
    p = learning_optimizer(&config);
    cr_assert(p.trust == 0.001f && p.momentum == 0.8f && !p.nesterov && config.train.steps == 9);
    accept(CONFIG_TRAIN, &config, "");
    p = learning_optimizer(&config);
    cr_assert(p.momentum == optimizer_parameters_default.momentum);
    cr_assert(p.beta1 == optimizer_parameters_default.beta1);
    cr_assert(p.beta2 == optimizer_parameters_default.beta2);
    cr_assert(p.trust == optimizer_parameters_default.trust);
    cr_assert(p.epsilon == 0 && p.rho == optimizer_parameters_default.rho);
}

/* The schedule for 200 steps in each of 10 epochs. */
static struct lr_schedule schedule_of(const char *line, size_t workers)
{
    struct config config;
    struct lr_schedule schedule;
    accept(CONFIG_TRAIN, &config, line);
    cr_assert_eq(learning_schedule(&config, workers, 200, 2000, &schedule), STATUS_OK);
    cr_assert_eq(schedule.total_steps, 2000);
    return schedule;
}

Test(config, learning_rates)
{
    struct lr_schedule s = schedule_of("--batch 64", 4); /* 256 images in a step */
    cr_assert(s.shape == LR_LINEAR && s.start == 0 && s.peak == 0.14);
    cr_assert(s.warmup_steps == LR_WARMUP_STEPS);
    s = schedule_of("--lr 0.5 --lr-schedule step --warmup-epochs 0", 4); /* explicit values */
    cr_assert(s.shape == LR_STEP && s.peak == 0.5 && s.warmup_steps == 0);
    s = schedule_of("--lr 0.5 --lr-scale none", 4);
    cr_assert(s.peak == 0.5 && s.start == 0);
    s = schedule_of("--lr 0.5 --lr-scale linear --warmup-epochs 2.5 --epochs 3", 4);
    cr_assert(s.peak == 2.0 && s.start == 0.5 && s.warmup_steps == 500);
    s = schedule_of("--lr 0.5 --lr-scale sqrt --optimizer adadelta", 4);
    cr_assert(s.peak == 1.0 && s.start == 0.5);
    s = schedule_of("--lr-scale linear --batch 64", 4); /* scales the default of one worker */
    cr_assert(s.peak == 0.14 && s.start == 0.14 / 4);
    s = schedule_of("--lr-scale linear --optimizer adadelta --lr-schedule constant", 8);
    cr_assert(s.peak == 8.0 && s.start == 1.0 && s.shape == LR_CONSTANT);
    s = schedule_of("--lr 0.5 --lr-scale linear --warmup-epochs 2 --epochs 3",
                    1); /* constant rate in the warm-up */
    cr_assert(s.peak == 0.5 && s.start == 0.5 && s.warmup_steps == 400);
    s = schedule_of("--warmup-epochs 50 --steps 2000", 1); /* a run within the warm-up */
    cr_assert(s.warmup_steps == 10000);
}

Test(config, a_recipe_sets_what_is_not_given)
{
    struct config config;
    accept(CONFIG_TRAIN, &config, "--recipe keras-horovod");
    cr_assert(config.learning.optimizer == OPTIMIZER_ADADELTA && config.batch == 128 &&
              config.learning.lr == 1);
    cr_assert(config.learning.lr_scale == LR_SCALE_LINEAR &&
              config.learning.lr_schedule == LR_CONSTANT);
    cr_assert(config.epochs == 12 && config.train.epochs_divided &&
              config.learning.warmup_epochs == 0);
    cr_assert(config.train.no_shard);
    cr_assert_eq(learning_epochs(&config, 5), 3);
    accept(CONFIG_TRAIN, &config, "--lr 0.5 --recipe keras-horovod --optimizer adam --epochs 3");
    cr_assert(config.learning.optimizer == OPTIMIZER_ADAM && config.learning.lr == 0.5 &&
              config.epochs == 3);
    cr_assert(config.batch == 128 && config.learning.lr_scale == LR_SCALE_LINEAR);
    accept(CONFIG_TRAIN, &config, "--recipe lars-8192 --batch 64"); /* no global batch then */
    cr_assert(config.batch == 64 && config.train.global_batch == 0 &&
              config.learning.momentum == 0.9);
    accept(CONFIG_TRAIN, &config, "--recipe lars-8192 --global-batch 64");
    cr_assert(config.train.global_batch == 64 && config.learning.optimizer == OPTIMIZER_LARS);
    accept(CONFIG_TRAIN, &config, "--recipe keras-horovod --steps 5");
    cr_assert(config.train.steps == 5);
    accept(CONFIG_TRAIN, &config, "--recipe large-batch --optimizer adam"); /* no momentum then */
    cr_assert(config.learning.optimizer == OPTIMIZER_ADAM);
    accept(CONFIG_TRAIN, &config, "--recipe large-batch --global-batch 256 --lr-scale none");
    cr_assert(config.train.global_batch == 256 && config.learning.lr == 0.04);
}

/* A recipe's rate applies only to its optimizer. A rate that is not per worker applies only to its
 * global batch. */
Test(config, a_recipes_rate_only_for_what_it_is_of)
{
    static const struct {
        const char *line, *warning;
        double lr;
        int scale;
    } trials[] = {
        {"--recipe keras-horovod --optimizer sgd", "--lr 1 does not go with this --optimizer", 0,
         LR_SCALE_AUTO},
        {"--recipe large-batch --optimizer adam", "does not go with this --optimizer", 0,
         LR_SCALE_AUTO},
        {"--recipe lars-8192 --batch 64", "--lr 0.8 does not go with this --batch", 0,
         LR_SCALE_AUTO},
        {"--recipe lars-8192 --global-batch 512", "does not go with this --global-batch", 0,
         LR_SCALE_AUTO},
        {"--recipe lars-8192 --batch 64 --lr 0.1", "", 0.1, LR_SCALE_NONE},
        {"--recipe large-batch --optimizer adam --lr 0.002", "", 0.002, LR_SCALE_LINEAR},
        {"--recipe large-batch --optimizer sgd", "", 0.04, LR_SCALE_LINEAR},
        {"--recipe large-batch --batch 32", "", 0.04, LR_SCALE_LINEAR},
    };
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        struct config config;
        struct capture capture;
        capture_start(&capture);
        enum status status = parse(CONFIG_TRAIN, &config, trials[i].line);
        size_t lines = capture_stop(&capture);
        cr_assert_eq(status, STATUS_OK, "%s: %s", trials[i].line, capture.text);
        cr_expect(lines == (trials[i].warning[0] != '\0') &&
                      strstr(capture.text, trials[i].warning),
                  "%s: %s", trials[i].line, capture.text);
        cr_expect(config.learning.lr == trials[i].lr && config.learning.lr_scale == trials[i].scale,
                  "%s: %g", trials[i].line, config.learning.lr);
    }
}

Test(config, epochs_can_be_divided)
{
    struct config config;
    accept(CONFIG_TRAIN, &config, "--epochs 12");
    cr_assert_eq(learning_epochs(&config, 8), 12);
    accept(CONFIG_TRAIN, &config, "--epochs 12 --epochs-divided");
    cr_assert_eq(learning_epochs(&config, 1), 12);
    cr_assert_eq(learning_epochs(&config, 4), 3);
    cr_assert_eq(learning_epochs(&config, 8), 2);
    cr_assert_eq(learning_epochs(&config, 99), 1);
}

Test(config, a_global_batch_is_divided)
{
    struct config config;
    accept(CONFIG_TRAIN, &config, "--global-batch 96");
    cr_assert_eq(learning_share_batch(&config, 3), STATUS_OK);
    cr_assert_eq(config.batch, 32);
    accept(CONFIG_TRAIN, &config, "--global-batch 96 --backend ps --servers 2");
    cr_assert_eq(learning_share_batch(&config, 4), STATUS_OK); /* two of the four are servers */
    cr_assert_eq(config.batch, 48);
    accept(CONFIG_TRAIN, &config, "--global-batch 96 --backend none --virtual-workers 8");
    cr_assert_eq(learning_share_batch(&config, 1), STATUS_OK);
    cr_assert_eq(config.batch, 12);
    accept(CONFIG_TRAIN, &config, "");
    cr_assert_eq(learning_share_batch(&config, 3), STATUS_OK);
    cr_assert_eq(config.batch, 32);
}

Test(config, bench_has_the_letters_of_nccl_tests)
{
    struct config config;
    accept(CONFIG_BENCH, &config, "-b 8 -e 4m -f 3 -n 7 -w 2 --csv a.csv --json a.json");
    cr_assert(config.bench.min_bytes == 8 && config.bench.max_bytes == 4 << 20 &&
              config.bench.factor == 3);
    cr_assert(config.bench.iters == 7 && config.bench.warmup == 2);
    cr_assert_str_eq(config.csv, "a.csv");
    cr_assert_str_eq(config.json, "a.json");
}

/* psring probes links between hosts, or where the user gives a link rate. */
Test(config, probe)
{
    static const struct {
        const char *line;
        int size, local_size;
        bool probes;
    } cases[] = {
        {"", 4, 4, false},
        {"", 4, 1, true},
        {"", 4, 2, true},
        {"", 1, 1, false},
        {"--link-rate 1e9", 4, 4, true},
        {"--link-rate 1e9", 1, 1, false},
        {"--probe off --link-rate 1e9", 4, 1, false},
        {"--probe on", 4, 4, true},
        {"--probe on", 1, 1, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct config config;
        struct world world = {.size = cases[i].size, .local_size = cases[i].local_size};
        accept(CONFIG_BENCH, &config, cases[i].line);
        cr_expect_eq(config_probes(&config, &world), cases[i].probes, "case %zu", i);
    }
    struct config limits;
    accept(CONFIG_BENCH, &limits, "");
    cr_expect_not(limits.bench.baselines);
    accept(CONFIG_BENCH, &limits, "--baselines");
    cr_expect(limits.bench.baselines);
    cr_expect_not(limits.bench.overlap);
    accept(CONFIG_BENCH, &limits, "--overlap");
    cr_expect(limits.bench.overlap);
}

Test(config, sizes_of_bench)
{
    struct config config;
    accept(CONFIG_BENCH, &config, "");
    cr_assert(config.size_count == 0);
    accept(CONFIG_BENCH, &config, "--sizes 4,1048576,0");
    cr_assert(config.size_count == 3 && config.size_list[0] == 4);
    cr_assert(config.size_list[1] == 1048576 && config.size_list[2] == 0);
}

Test(config, bench_compute)
{
    struct config config;
    accept(CONFIG_BENCH, &config, "--layers --model lenet --batch 64 --threads 2 -n 3");
    cr_expect(config.bench.layers);
    cr_expect_eq(config.batch, 64);
    cr_expect_eq(config.threads, 2);
    accept(CONFIG_TRAIN, &config, "--threads 3 --compute paced:5");
    cr_expect_not(config.bench.layers);
    cr_expect_eq(config_threads(&config, &(struct world){.cores = 8, .sharing_cpus = 2}), 3);
    accept(CONFIG_TRAIN, &config, "--threads 0");
    cr_expect_eq(config_threads(&config, &(struct world){.cores = 8, .sharing_cpus = 2}), 4);
    cr_expect_eq(config_threads(&config, &(struct world){.cores = 2, .sharing_cpus = 8}), 1);
}

static void note_parameter(void *context, const char *name, const char *value)
{
    char *text = context;
    snprintf(text + strlen(text), 256 - strlen(text), "%s=%s;", name, value);
}

/* Only the parameters of how messages travel. */
Test(config, mca_parameters)
{
    char text[256] = "";
    clearenv();
    setenv("OMPI_MCA_btl_tcp_flags", "send", 1);
    setenv("OMPI_MCA_ess_base_jobid", "7", 1);
    setenv("OMPI_MCA_pmlx", "y", 1);
    setenv("OMPI_COMM_WORLD_RANK", "0", 1);
    setenv("MCA_btl", "x", 1);
    config_visit_mca(note_parameter, text);
    cr_expect_str_eq(text, "btl_tcp_flags=send;");
    setenv("OMPI_MCA_pml", "ob1", 1);
    setenv("OMPI_MCA_coll_tuned_allreduce_algorithm", "4", 1);
    text[0] = '\0';
    config_visit_mca(note_parameter, text);
    cr_expect(strstr(text, "pml=ob1;"), "%s", text);
    cr_expect(strstr(text, "coll_tuned_allreduce_algorithm=4;"), "%s", text);
}

Test(config, paced)
{
    struct config config;
    accept(CONFIG_TRAIN, &config, "--compute paced:12.5");
    cr_assert(config.train.paced && config.train.paced_ms == 12.5);
    accept(CONFIG_TRAIN, &config, "--compute paced:0");
    cr_assert(config.train.paced && config.train.paced_ms == 0);
}

Test(config, compress)
{
    struct config config;
    struct comm_options options;
    static const char *const backends[] = {"ps", "ring", "rhd", "hierarchical", "tree"};
    for (size_t b = 0; b < sizeof backends / sizeof *backends; b++) {
        char line[96];
        snprintf(line, sizeof line, "--backend %s --compress bf16", backends[b]);
        accept(CONFIG_BENCH, &config, line);
        config_comm_options(&config, config_backend(&config), &options);
        cr_assert(options.compress == COMPRESS_BF16 && options.error_feedback);
        cr_assert_str_eq(config_error_feedback_name(&config), "on");
    }
    accept(CONFIG_TRAIN, &config, "--compress fp16 --error-feedback off");
    config_comm_options(&config, config_backend(&config), &options);
    cr_assert(options.compress == COMPRESS_FP16 && !options.error_feedback);
    cr_assert_str_eq(config_error_feedback_name(&config), "off");
    accept(CONFIG_TRAIN, &config, "");
    config_comm_options(&config, config_backend(&config), &options);
    cr_assert(options.compress == COMPRESS_NONE && !options.error_feedback);
}

/* -------- environment ------------------------------------------------------------------------- */

Test(config, environment_gives_defaults_and_options_win)
{
    struct config config;
    setenv("PSRING_DATA", "/env/data", 1);
    setenv("PSRING_NETWORK", "vcluster-200mbit", 1);
    setenv("PSRING_LINK_BITS", "200000000", 1);
    setenv("PSRING_BIND_SUBNET", "10.77.0.0/24", 1);
    accept(CONFIG_TRAIN, &config, "");
    cr_assert_str_eq(config.data, "/env/data");
    cr_assert_str_eq(config.network, "vcluster-200mbit");
    cr_assert_str_eq(config.subnet, "10.77.0.0/24");
    cr_assert(config.link_rate == 2e8);
    accept(CONFIG_TRAIN, &config,
           "--data /given --network lab --link-rate 1e9 --subnet 10.1.0.0/16");
    cr_assert_str_eq(config.data, "/given");
    cr_assert_str_eq(config.network, "lab");
    cr_assert_str_eq(config.subnet, "10.1.0.0/16");
    cr_assert(config.link_rate == 1e9);
    accept(CONFIG_TRAIN, &config, "--link-rate 0"); /* as a worker sends its options to a server */
    cr_assert(config.link_rate == 0);
    setenv("PSRING_LINK_BITS", "80mbit", 1);
    accept(CONFIG_TRAIN, &config, "");
    cr_assert(config.link_rate == 8e7);
    unsetenv("PSRING_LINK_BITS");
    setenv("PSRING_RACKS", "4:8", 1);
    accept(CONFIG_BENCH, &config, "");
    cr_assert(config.rack_ranks == 4 && config.oversubscribed == 8);
    accept(CONFIG_BENCH, &config, "--racks 16:2.5");
    cr_assert(config.rack_ranks == 16 && config.oversubscribed == 2.5);
    accept(CONFIG_TRAIN, &config, ""); /* training does not count them */
    cr_assert(config.rack_ranks == 0);
    unsetenv("PSRING_RACKS");
}

/* Rates with the units of experiments/vcluster.sh, or in bits per second. */
Test(config, rates)
{
    struct config config;
    accept(CONFIG_BENCH, &config, "--link-rate 2.5gbit");
    cr_assert(config.link_rate == 2.5e9);
    accept(CONFIG_BENCH, &config, "--link-rate 64kbit");
    cr_assert(config.link_rate == 64e3);
    accept(CONFIG_PREDICT, &config, "--cost-model m --workers 2 --rate 200mbit");
    cr_assert(config.predict.rate == 2e8);
    accept(CONFIG_PREDICT, &config, "--cost-model m --workers 2 --rate 25e9");
    cr_assert(config.predict.rate == 25e9);
    refuse(CONFIG_BENCH, "--link-rate 25gbits", "found '25gbits', expected bits/s (or with kbit");
    refuse(CONFIG_BENCH, "--link-rate gbit", "found 'gbit'");
    refuse(CONFIG_BENCH, "--link-rate -1gbit", "found '-1gbit'");
    refuse(CONFIG_BENCH, "--link-rate nan", "found 'nan'");
    refuse(CONFIG_BENCH, "--link-rate 2e6gbit", "from 0 to 1e+15");
}

/* All ranks hold back errors until they know whether rank 0 has the same error. */
Test(config, errors_can_be_held_back)
{
    struct config config;
    struct capture capture;
    for (int wanted = 0; wanted < 2; wanted++) {
        unsigned errors = log_errors();
        capture_start(&capture);
        log_hold();
        cr_assert(parse(CONFIG_TRAIN, &config, "--steps x") == STATUS_USAGE);
        cr_assert(log_errors() == errors);
        log_release(wanted);
        size_t lines = capture_stop(&capture);
        cr_assert(lines == (size_t)wanted, "%s", capture.text);
        cr_assert(log_errors() == errors + (unsigned)wanted);
    }
    capture_start(&capture);
    log_error("later");
    cr_assert(capture_stop(&capture) == 1);
}

/* -------- derived from a config --------------------------------------------------------------- */

Test(config, transport_follows_from_the_backend)
{
    struct config config;
    struct comm_options options;
    static const struct {
        const char *line, *name;
    } cases[] = {{"--backend ps", "zmq"},
                 {"--backend ring", "tcp"},
                 {"--backend rhd", "tcp"},
                 {"--backend tree", "tcp"},
                 {"--backend hierarchical", "tcp"},
                 {"--backend hierarchical --transport zmq", "zmq"},
                 {"--backend rhd --transport mpi", "mpi"},
                 {"--backend mpi", "none"},
                 {"--backend none", "none"},
                 {"--backend ps --transport mpi", "mpi"},
                 {"--backend ring --transport mpi", "mpi"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        accept(CONFIG_BENCH, &config, cases[i].line);
        const struct backend *backend = config_backend(&config);
        cr_assert_str_eq(config_transport_name(&config, backend), cases[i].name);
        config_comm_options(&config, backend, &options);
        if (backend->uses_transport)
            cr_assert_str_eq(transport_kind_name(options.transport), cases[i].name);
    }
}

Test(config, comm_options)
{
    struct config config;
    struct comm_options options;
    accept(
        CONFIG_BENCH, &config,
        "--backend ps --servers 2 --placement colocated --reduce-order ring --segment-bytes 128k "
        "--push-window 3 --subnet 10.0.0.0/8 --timeout 1.5 --link-rate 1e9");
    config_comm_options(&config, config_backend(&config), &options);
    cr_assert(options.servers == 2 && options.placement == PLACEMENT_COLOCATED);
    cr_assert(options.reduce_order == REDUCE_ORDER_RING);
    cr_assert(options.segment_bytes == 131072 && options.window == 3);
    cr_assert(options.timeout_ms == 1500);
    cr_assert(options.link_bytes_per_s == 125e6);
    cr_assert_str_eq(options.subnet, "10.0.0.0/8");
    accept(CONFIG_BENCH, &config, "--backend rhd --radix 4");
    config_comm_options(&config, config_backend(&config), &options);
    cr_assert(options.radix == 4);
}

/* A checkpoint records what the bits of rhd's sums depend on. Defaults, and cuts in halves without
 * compression, need no words. */
Test(config, what_the_order_of_sums_depends_on)
{
    static const struct {
        int workers, local_size;
        const char *line, *text;
    } cases[] = {
        {4, 1, "--backend rhd --segment-bytes 4k", "rhd"},
        {4, 4, "--backend rhd --radix 3", "rhd"},
        {4, 1, "--backend rhd --radix 4 --segment-bytes 4k",
         "rhd, radix 4, segments of 4096 bytes"},
        {4, 1, "--backend rhd --compress fp16 --segment-bytes 4k", "rhd, segments of 4096 bytes"},
        {6, 1, "--backend rhd", "rhd"},
        {6, 1, "--backend rhd --link-rate 1gbit", "rhd"},
        {6, 1, "--backend rhd --link-rate 10gbit", "rhd, links of 1.25e+09 bytes/s"},
        {6, 6, "--backend rhd --segment-bytes 8k", "rhd, segments of 8192 bytes"},
        {6, 6, "--backend rhd", "rhd on one host"},
        {1, 1, "--backend rhd --segment-bytes 8k", "rhd"},
        {6, 6, "--backend ring --segment-bytes 8k", "ring"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[96];
        struct config config;
        struct comm_options options;
        accept(CONFIG_BENCH, &config, cases[i].line);
        const struct backend *backend = config_backend(&config);
        config_comm_options(&config, backend, &options);
        backend_describe(
            backend, &(struct world){.size = cases[i].workers, .local_size = cases[i].local_size},
            &(struct topology){.workers = cases[i].workers}, &options, text, sizeof text);
        cr_expect_str_eq(text, cases[i].text);
    }
}

struct listing {
    char text[4096];
};

static void list(void *context, const char *name, const char *value)
{
    struct listing *listing = context;
    size_t used = strlen(listing->text);
    snprintf(listing->text + used, sizeof listing->text - used, "%s=%s\n", name, value);
}

Test(config, visit_lists_the_options_of_the_command)
{
    struct config config;
    struct listing listing = {0};
    accept(CONFIG_BENCH, &config, "--backend ps --link-rate 2e8 -e 1m");
    config_visit(&config, list, &listing);
    cr_assert(strstr(listing.text, "backend=ps\n") && strstr(listing.text, "max-bytes=1048576\n"));
    cr_assert(strstr(listing.text, "link-rate=200000000\n") && strstr(listing.text, "csv=\n"));
    cr_assert(strstr(listing.text, "epochs=") == NULL);
}

/* -------- the registry ------------------------------------------------------------------------ */

Test(backends, names_are_those_of_the_backends)
{
    for (size_t i = 0; i < backend_count(); i++) {
        const struct backend *backend = backend_get(i);
        cr_assert_str_eq(backend->name, backend_names()[i]);
        cr_assert(backend->summary && backend->cost);
    }
    cr_assert(backend_names()[backend_count()] == NULL);
}
