/* Refused options and their errors: values with a special form, and options that conflict with
 * other options, the build, or the number of processes. */
#include "experiments/config/config_table.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/device/device.h"
#include "experiments/config/backends.h"
#include "experiments/config/learning.h"
#include "ring/baselines/baselines.h"
#include "tests/lib/config_lib.h"

TestSuite(config_check, .init = config_clean_environment);

Test(config_check, an_option_belongs_to_its_commands)
{
    refuse(CONFIG_BENCH, "--epochs 2", "--epochs: no such option; see psring bench --help");
    refuse(CONFIG_TRAIN, "-b 8", "-b: no such option; see psring train --help");
    refuse(CONFIG_INFO, "--backend ps", "--backend: no such option");
    refuse(CONFIG_INFO, "--device cpu", "--device: no such option");
    refuse(CONFIG_TRAIN, "surplus", "surplus: not an option; see psring train --help");
}

Test(config_check, what_was_meant)
{
    refuse(CONFIG_TRAIN, "--bakend ring", "--bakend: no such option (did you mean --backend?)");
    refuse(CONFIG_TRAIN, "--learning-rate=1", "(did you mean --lr?)");
    refuse(CONFIG_TRAIN, "--batch-size 8", "(did you mean --batch?)");
    refuse(CONFIG_TRAIN, "--quick", "--quick: no such option; see");
    refuse(CONFIG_TRAIN, "--lr-schedule stepp", "cosine (did you mean step?)");
    refuse(CONFIG_TRAIN, "--recipe large-bach", "(did you mean large-batch?)");
    refuse(CONFIG_TRAIN, "--recipe --data /d", "--recipe: a value is missing before --data");
    refuse(CONFIG_TRAIN, "--metrics --help", "--metrics: a value is missing before --help");
    refuse(CONFIG_TRAIN, "--verbose=3", "--verbose: takes no value, found '3'; see psring train");
    refuse(CONFIG_TRAIN, "--help=all", "--help: takes no value, found 'all'");
    refuse(CONFIG_TRAIN, "--checkpoint /c --resume must", "write --resume=must");
    refuse(CONFIG_TRAIN, "--checkpoint /c --resume=extent", "(did you mean extend?)");
}

Test(config_check, a_name_of_before_names_the_one_of_now)
{
    refuse(CONFIG_TRAIN, "--server tcp://a:1", "--server: no such option (did you mean --join?)");
    refuse(CONFIG_BENCH, "--world 2", "(did you mean --world-size?)");
    refuse(CONFIG_SERVE, "--interface eth0", "(did you mean --subnet?)");
    refuse(CONFIG_BENCH, "--segment=4k", "(did you mean --segment-bytes?)");
    refuse(CONFIG_BENCH, "--window 4", "(did you mean --push-window?)");
    refuse(CONFIG_TRAIN, "--trust 0.1", "(did you mean --lars-coefficient?)");
    refuse(CONFIG_TRAIN, "--loaders 2", "(did you mean --data-threads?)");
    refuse(CONFIG_TRAIN, "--prefetch 2", "(did you mean --prefetch-batches?)");
    refuse(CONFIG_TRAIN, "--unsharded", "(did you mean --no-shard?)");
    refuse(CONFIG_TRAIN, "--keep 3", "(did you mean --keep-checkpoints?)");
    refuse(CONFIG_BENCH, "--compute", "(did you mean --layers?)");
    refuse(CONFIG_BENCH, "--limits", "(did you mean --baselines?)");
    refuse(CONFIG_BENCH, "--no-defer", "(did you mean --sync-step?)");
    refuse(CONFIG_BENCH, "--library", "(did you mean --via-library?)");
    refuse(CONFIG_TRAIN, "--last-batch join", "drop | partial (did you mean partial?)");
    refuse(CONFIG_INFO, "--segment 4k", "--segment: no such option;");
}

Test(config_check, words_of_choices)
{
    refuse(CONFIG_TRAIN, "--placement both", "expected dedicated | colocated | mixed | switch");
    refuse(CONFIG_TRAIN, "--backend grpc",
           "expected none | ps | ring | mpi | nccl | rhd | hierarchical | tree");
    refuse(CONFIG_TRAIN, "--transport udp", "expected auto | zmq | mpi | tcp");
    refuse(CONFIG_TRAIN, "--reduce-order tree", "expected any | ring");
    refuse(CONFIG_TRAIN, "--model resnet", "keras-cnn");
    refuse(CONFIG_TRAIN, "--optimizer rmsprop", "expected sgd | adagrad | adadelta | adam | lars");
    refuse(CONFIG_TRAIN, "--lr-scale cubic", "expected auto | linear | sqrt | none");
    refuse(CONFIG_TRAIN, "--lr-schedule poly", "expected linear | constant | step | cosine");
    refuse(CONFIG_BENCH, "--probe maybe", "--probe: found 'maybe'");
}

Test(config_check, servers)
{
    struct config config;
    refuse(CONFIG_TRAIN, "--backend ps --servers 0", "give --servers 1 or more");
    refuse(CONFIG_BENCH, "--backend ps --servers 0", "give --servers 1 or more");
    refuse(CONFIG_TRAIN, "--backend ps --servers -1", "--servers: found '-1'");
    refuse(CONFIG_TRAIN, "--backend ring --servers 2", "--backend ring does not use it");
    refuse(CONFIG_TRAIN, "--backend ring --servers 1", "--backend ring does not use it");
    accept(CONFIG_TRAIN, &config, "--backend ring --servers 0");
    accept(CONFIG_TRAIN, &config, "--backend ps");
    cr_assert(config.servers == 1);
    cr_assert_str_eq(config_placement_name(&config), "dedicated");
}

/* Halving adds in a tree, so it cannot add in the ring's order. */
Test(config_check, rhd_has_an_order_of_its_own)
{
    struct config config;
    refuse(CONFIG_TRAIN, "--backend rhd --reduce-order ring",
           "--reduce-order ring: --backend rhd does not use it");
    refuse(CONFIG_BENCH, "--backend rhd --reduce-order ring",
           "--reduce-order ring: --backend rhd does not use it");
    accept(CONFIG_TRAIN, &config, "--backend rhd --reduce-order any");
}

Test(config_check, the_order_of_sums_where_the_backend_has_a_say)
{
    struct config config;
    refuse(CONFIG_TRAIN, "--backend mpi --reduce-order ring", "--backend mpi does not use it");
    refuse(CONFIG_BENCH, "--backend mpi --reduce-order ring", "--backend mpi does not use it");
    accept(CONFIG_BENCH, &config, "--backend mpi --reduce-order any");
    accept(CONFIG_BENCH, &config, "--backend ps --reduce-order ring");
    accept(CONFIG_TRAIN, &config, "--backend none --virtual-workers 2 --reduce-order ring");
}

Test(config_check, sync)
{
    struct config config;
    accept(CONFIG_TRAIN, &config, "--backend ring --sync bsp");
    cr_assert(!consistency_updates(&config.consistency));
    accept(CONFIG_TRAIN, &config, "--backend ps --sync ssp:3");
    cr_assert_eq(config.consistency.kind, CONSISTENCY_SSP);
    cr_assert_eq(config.consistency.staleness, 3);
    cr_assert_eq(config.consistency.late_steps, 2);
    accept(CONFIG_TRAIN, &config, "--backend ps --sync ssp:3 --late-steps keep");
    cr_assert(config.consistency.late_steps == 0 && config.consistency.staleness == 3);
    accept(CONFIG_TRAIN, &config, "--backend ps --sync async --late-steps keep");
    cr_assert_eq(config.consistency.late_steps, 0);
    refuse(CONFIG_TRAIN, "--backend ps --late-steps keep",
           "with --sync bsp no worker may be late; ");
    refuse(CONFIG_TRAIN, "--backend ps --backup-workers 1 --late-steps keep", "drops late pushes");
    refuse(CONFIG_TRAIN, "--backend ring --late-steps keep", "--late-steps");
    accept(CONFIG_TRAIN, &config, "--backend ps --sync async");
    cr_assert_eq(config.consistency.kind, CONSISTENCY_ASYNC);
    refuse(CONFIG_TRAIN, "--backend ring --sync async", "--backend ring does not use it");
    static const char *const wrong[] = {"eventual", "ssp", "ssp:", "ssp:-1", "SSP:1", "async:1"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char line[64];
        snprintf(line, sizeof line, "--backend ps --sync %s", wrong[i]);
        refuse(CONFIG_TRAIN, line, "expected bsp, ssp:S (e.g. ssp:3) or async");
    }
    refuse(CONFIG_TRAIN, "--backend ps --sync async --optimizer lars", "parts of tensors");
    refuse(CONFIG_TRAIN, "--backend ps --backup-workers 1 --optimizer adam", "parts of tensors");
    refuse(CONFIG_TRAIN, "--backend ps --sync ssp:2 --last-batch partial", "not in one step");
    refuse(CONFIG_TRAIN, "--backend ps --sync ssp:1001", "S from 0 to 1000");
    refuse(CONFIG_TRAIN, "--backend ps --sync ssp:3x", "S from 0 to 1000");
    refuse(CONFIG_TRAIN, "--backend ps --sync async --reduce-order ring", "as they arrive");
    refuse(CONFIG_TRAIN, "--backend ps --backup-workers 1 --reduce-order ring", "as they arrive");
}

Test(config_check, backup_workers)
{
    struct config config;
    accept(CONFIG_TRAIN, &config, "--backend ps --backup-workers 2");
    cr_assert(consistency_updates(&config.consistency));
    cr_assert(config_check_world(&config, 4) == STATUS_OK);
    assert_refused(config_check_world(&config, 3), STATUS_USAGE, "at least one of 2 workers");
    refuse(CONFIG_TRAIN, "--backend ps --sync ssp:3 --backup-workers 1", "one of the two");
    refuse(CONFIG_TRAIN, "--backend ring --backup-workers 1", "does not use it");
}

Test(config_check, straggler)
{
    struct config config;
    accept(CONFIG_TRAIN, &config, "--backend ring");
    cr_assert_eq(config.train.straggler_rank, -1);
    accept(CONFIG_TRAIN, &config, "--backend ring --straggler 3:2.5");
    cr_assert_eq(config.train.straggler_rank, 3);
    cr_assert_eq(config.train.straggler_factor, 2.5);
    cr_assert(config_check_world(&config, 4) == STATUS_OK);
    assert_refused(config_check_world(&config, 3), STATUS_USAGE, "there are 3 workers, 0 to 2");
    refuse(CONFIG_TRAIN, "--backend none --straggler 0:2", "has no other workers");
    static const char *const wrong[] = {"3", "3:", ":4", "3:0.5", "3:x", "-1:4", "3:nan", "3:1e9"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char line[64];
        snprintf(line, sizeof line, "--backend ring --straggler %s", wrong[i]);
        refuse(CONFIG_TRAIN, line, "expected RANK:FACTOR");
    }
}

Test(config_check, paced)
{
    static const char *const wrong[] = {"paced",       "paced:",    "paced:x", "paced:1x",
                                        "paced:-1",    "paced:inf", "fast",    "Real",
                                        "paced:1e999", "paced:nan", "real:x",  "paced:4e6"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char line[64];
        snprintf(line, sizeof line, "--compute %s", wrong[i]);
        refuse(CONFIG_TRAIN, line, "expected real, or paced:MS");
    }
    struct config config;
    accept(CONFIG_TRAIN, &config, "--compute real:2.5 --target-accuracy 90");
    cr_assert(!config.train.paced && config.train.real_ms == 2.5);
    refuse(CONFIG_TRAIN, "--compute real:1 --backend none", "--backend none has no other workers");
}

Test(config_check, transport_only_where_there_is_a_choice)
{
    refuse(CONFIG_TRAIN, "--backend mpi --transport zmq",
           "--backend mpi does not use it; leave it out, or use one that does (ps, ring, rhd, "
           "hierarchical, tree)");
    refuse(CONFIG_BENCH, "--backend mpi --transport mpi",
           "--backend mpi does not use it; leave it out, or use one that does (ps, ring, rhd, "
           "hierarchical, tree)");
}

Test(config_check, an_option_that_the_run_would_not_obey)
{
    struct config config;
    refuse(CONFIG_BENCH, "--backend ring --push-window 4",
           "--push-window 4: --backend ring does not use it");
    refuse(CONFIG_BENCH, "--backend ring --radix 4",
           "--radix 4: --backend ring does not use it; leave it out, or use one that does (rhd)");
    refuse(CONFIG_BENCH, "--backend rhd --radix 1", "--radix");
    refuse(CONFIG_BENCH, "--backend ring --mpi-algorithm ring",
           "--mpi-algorithm ring: --backend ring does not use it");
    refuse(CONFIG_BENCH, "--backend mpi --mpi-algorithm tree", "--mpi-algorithm: found 'tree'");
    accept(CONFIG_BENCH, &config, "--backend mpi --mpi-algorithm rabenseifner");
    cr_assert(config.bench.mpi_algorithm == LIBRARY_RABENSEIFNER);
    refuse(CONFIG_BENCH, "--backend mpi --segment-bytes 64k",
           "--segment-bytes 65536: --backend mpi does not");
    refuse(CONFIG_TRAIN, "--backend ring --placement dedicated",
           "--placement dedicated: --backend ring");
    refuse(CONFIG_TRAIN, "--compute paced:1 --lr 0.1", "--lr: --compute paced:1 trains nothing");
    refuse(CONFIG_TRAIN, "--compute paced:1 --last-batch partial",
           "--last-batch: --compute paced:1");
    refuse(CONFIG_TRAIN, "--compute paced:1 --optimizer sgd", "--optimizer: --compute paced:1");
}

Test(config_check, data)
{
    struct config config;
    accept(CONFIG_TRAIN, &config, "--data-threads 2 --augment rotate:7.5,shift:3");
    cr_assert(config.train.data_threads == 2 && config.train.prefetch_batches == 0);
    cr_assert(config.train.augmentation.shift == 3 && config.train.augmentation.rotate == 7.5);
    accept(CONFIG_TRAIN, &config, "--data-threads 1 --prefetch-batches 4");
    cr_assert(config.train.prefetch_batches == 4 && !augments(&config.train.augmentation));
    refuse(CONFIG_TRAIN, "--prefetch-batches 4", "add --data-threads 1");
    refuse(CONFIG_TRAIN, "--data-threads 65", "--data-threads: found '65'");
    refuse(CONFIG_TRAIN, "--data-threads 1 --prefetch-batches 1025",
           "--prefetch-batches: found '1025'");
    refuse(CONFIG_TRAIN, "--augment shift:2,", "--augment: found 'shift:2,', expected none, or");
    refuse(CONFIG_BENCH, "--data-threads 1", "no such option");
    setenv("PSRING_DATA", "/d", 1); /* in the environment only: a paced run loads no data */
    accept(CONFIG_TRAIN, &config, "--compute paced:1 --backend ring --segment-bytes 64k");
    cr_assert(!config.data);
    accept(CONFIG_TRAIN, &config, "--compute paced:1 --data /e --data-threads 1");
    cr_assert_str_eq(config.data, "/e");
    accept(CONFIG_TRAIN, &config, "--backend ring");
    cr_assert_str_eq(config.data, "/d");
}

/* bench exchanges vectors or computes layers. It refuses options of the other mode. */
Test(config_check, bench_compute)
{
    refuse(CONFIG_BENCH, "--layers --backend ps", "--backend: --layers exchanges nothing");
    refuse(CONFIG_BENCH, "--layers --overlap", "--overlap: --layers exchanges nothing");
    refuse(CONFIG_BENCH, "--layers -b 4", "--min-bytes: --layers exchanges nothing");
    refuse(CONFIG_BENCH, "--layers --segment-bytes 4k",
           "--segment-bytes: --layers exchanges nothing");
    refuse(CONFIG_BENCH, "--layers --reduce-order ring", "--reduce-order: --layers exchanges");
    refuse(CONFIG_BENCH, "--model lenet", "--model: bench computes only with --layers");
}

Test(config_check, compress)
{
    refuse(CONFIG_BENCH, "--backend mpi --compress fp16",
           "--compress fp16: --backend mpi does not");
    refuse(CONFIG_TRAIN, "--backend none --compress fp16",
           "--compress fp16: --backend none does not");
    refuse(CONFIG_TRAIN, "--compress fp8", "--compress: found 'fp8'");
    refuse(CONFIG_TRAIN, "--error-feedback on", "without --compress nothing is rounded");
    refuse(CONFIG_TRAIN, "--error-feedback only", "expected auto | on | off");
    refuse(CONFIG_TRAIN, "--compress bf16 --reduce-order ring", "leave one of the two out");
}

Test(config_check, learning)
{
    struct config config;
    struct lr_schedule schedule;
    refuse(CONFIG_TRAIN, "--optimizer adam --momentum 0.5",
           "--momentum: --optimizer adam does not");
    refuse(CONFIG_TRAIN, "--optimizer lars --nesterov", "leave it out, or use sgd");
    refuse(CONFIG_TRAIN, "--beta1 0.5", "--beta1: --optimizer sgd does not use it");
    refuse(CONFIG_TRAIN, "--beta2 0.5", "leave it out, or use adam");
    refuse(CONFIG_TRAIN, "--epsilon 0.5", "or use adagrad, adadelta or adam");
    refuse(CONFIG_TRAIN, "--lars-coefficient 0.5", "leave it out, or use lars");
    refuse(CONFIG_TRAIN, "--nesterov --momentum 0", "--momentum is 0; leave it out");
    refuse(CONFIG_TRAIN, "--momentum 1", "--momentum: found '1'");
    refuse(CONFIG_TRAIN, "--compute paced:1 --weight-decay 0.1", "--weight-decay: --compute paced");
    refuse(CONFIG_TRAIN, "--batch 32 --global-batch 64", "leave one of the two out");
    refuse(CONFIG_TRAIN, "--lr-scale linear --global-batch 64", "--lr-scale linear: with");
    refuse(CONFIG_TRAIN, "--lr-scale sqrt --global-batch 64", "--lr-scale sqrt: with");
    accept(CONFIG_TRAIN, &config, "--lr-scale none --global-batch 64");
    refuse(CONFIG_TRAIN, "--recipe goyal", "expected keras-horovod | large-batch | lars-8192");
    refuse(CONFIG_TRAIN, "--recipe large-batch --global-batch 256",
           "--recipe large-batch: sets --lr-scale linear");
    refuse(CONFIG_TRAIN, "--recipe large-batch --global-batch 256",
           "add --lr-scale none --lr 0.16");
    refuse(CONFIG_TRAIN, "--recipe large-batch --lr-scale sqrt --global-batch 64",
           "--lr-scale sqrt");
    refuse(CONFIG_TRAIN, "--recipe lars-8192 --compute paced:1", "--recipe: --compute paced:1");
    refuse(CONFIG_TRAIN, "--backend none --virtual-workers 2 --no-shard",
           "start as many processes");
    refuse(CONFIG_TRAIN, "--epochs-divided --steps 8", "--steps ends the run");
    accept(CONFIG_TRAIN, &config, "--global-batch 100");
    assert_refused(learning_share_batch(&config, 3), STATUS_USAGE,
                   "found 3 workers, expected a multiple of that, with at most 65536 images for "
                   "each, such as 99");
    accept(CONFIG_TRAIN, &config, "--global-batch 65537");
    assert_refused(learning_share_batch(&config, 1), STATUS_USAGE, "such as 65536");
    accept(CONFIG_TRAIN, &config, "--global-batch 2");
    assert_refused(learning_share_batch(&config, 4), STATUS_USAGE, "such as 4");
    refuse(CONFIG_TRAIN, "--warmup-epochs 2 --epochs 2", "the run ends after 2 epochs");
    accept(CONFIG_TRAIN, &config, "--warmup-epochs 2 --epochs 8 --epochs-divided");
    assert_refused(learning_schedule(&config, 4, 200, 400, &schedule), STATUS_USAGE,
                   "the run ends after 2 epochs");
}

Test(config_check, options_suit_the_number_of_processes)
{
    struct config config;
    accept(CONFIG_TRAIN, &config, "--backend none --virtual-workers 2");
    cr_assert(config_check_world(&config, 1) == STATUS_OK);
    assert_refused(config_check_world(&config, 2), STATUS_USAGE, "start it without mpirun");
    accept(CONFIG_BENCH, &config, "--backend none");
    assert_refused(config_check_world(&config, 2), STATUS_USAGE, "2 processes were started");
    accept(CONFIG_BENCH, &config, "--backend rhd --radix 4");
    cr_assert(config_check_world(&config, 4) == STATUS_OK);
    assert_refused(config_check_world(&config, 3), STATUS_USAGE, "--radix 4: found 3 workers");
    accept(CONFIG_BENCH, &config, "--backend ps --servers 3 --placement colocated");
    cr_assert(config_check_world(&config, 3) == STATUS_OK);
    assert_refused(config_check_world(&config, 2), STATUS_USAGE, "at most one server per worker");
    accept(CONFIG_BENCH, &config, "--backend ps --servers 2 --placement mixed");
    cr_assert_str_eq(config_placement_name(&config), "mixed");
    cr_assert(config_check_world(&config, 3) == STATUS_OK);
    assert_refused(config_check_world(&config, 2), STATUS_USAGE, "only 2 processes were started");
    accept(CONFIG_BENCH, &config, "--backend ps --servers 0 --placement mixed");
    cr_assert_str_eq(config_placement_name(&config), "mixed");
    cr_assert(config_check_world(&config, 1) == STATUS_OK);
    refuse(CONFIG_BENCH, "--backend ps --servers 0", "or --placement mixed");
    accept(CONFIG_INFO, &config, "");
    cr_assert(config_check_world(&config, 7) == STATUS_OK);
}

Test(config_check, virtual_workers_only_alone)
{
    struct config config;
    refuse(CONFIG_TRAIN, "--virtual-workers 2", "add --backend none");
    refuse(CONFIG_TRAIN, "--virtual-workers 2 --backend ps", "add --backend none");
    refuse(CONFIG_TRAIN, "--virtual-workers 2 --backend none --compute paced:1", "paced:1");
    accept(CONFIG_TRAIN, &config, "--virtual-workers 2 --backend none");
    cr_assert(config.train.virtual_workers == 2);
}

Test(config_check, target_accuracy)
{
    struct config config;
    accept(CONFIG_TRAIN, &config, "--target-accuracy 98.5 --backend ps --sync async");
    cr_assert_eq(config.train.target_accuracy, 98.5);
    refuse(CONFIG_TRAIN, "--target-accuracy 100.5", "found '100.5', expected a number from 0 to 1");
    refuse(CONFIG_TRAIN, "--target-accuracy -1", "found '-1', expected a number from 0 to 100");
    refuse(CONFIG_TRAIN, "--target-accuracy high", "found 'high', expected a number from 0 to 100");
    refuse(CONFIG_TRAIN, "--target-accuracy 0.985", "per cent of the test images, from 1 to 100");
    refuse(CONFIG_TRAIN, "--target-accuracy 98 --compute paced:1", "--target-accuracy: --compute");
    refuse(CONFIG_TRAIN, "--target-accuracy 98 --backend ps --join tcp://127.0.0.1:9",
           "leave --target-accuracy out");
}

/* A process that joins has neither the others' cores nor their number. */
Test(config_check, cores_of_an_elastic_job_are_not_divided)
{
    struct config config;
    refuse(CONFIG_TRAIN, "--pin --backend ps --join tcp://127.0.0.1:9", "leave --pin out");
    refuse(CONFIG_TRAIN, "--pin --elastic --join tcp://127.0.0.1:9", "leave --pin out");
    refuse(CONFIG_TRAIN, "--pin --elastic --rendezvous tcp://127.0.0.1:9 --rank 0 --world-size 2",
           "leave --pin out");
    accept(CONFIG_TRAIN, &config, "--pin --rendezvous tcp://127.0.0.1:9 --rank 0 --world-size 2");
    cr_assert(config.pin);
}

Test(config_check, checkpoints)
{
    refuse(CONFIG_TRAIN, "--resume", "add --checkpoint DIR");
    refuse(CONFIG_TRAIN, "--checkpoint d --compute paced:1", "nothing that could be saved");
}

Test(config_check, network_is_a_word)
{
    refuse(CONFIG_TRAIN, "--network a,b", "letters, digits");
    refuse(CONFIG_TRAIN, "--network \"x\"", "letters, digits");
}

Test(config_check, names_are_not_empty)
{
    refuse(CONFIG_TRAIN, "--data=", "e.g. get_mnist.sh");
    refuse(CONFIG_TRAIN, "--metrics=", "--metrics is empty");
    refuse(CONFIG_BENCH, "--csv=", "--csv is empty");
}

Test(config_check, the_table_of_bench_has_stdout)
{
    struct config config;
    refuse(CONFIG_BENCH, "--json -", "standard output is for the table");
    refuse(CONFIG_BENCH, "--csv -", "standard output is for the table");
    refuse(CONFIG_TRAIN, "--metrics -", "standard output is for the table");
    accept(CONFIG_INFO, &config, "--json -");
}

Test(config_check, sizes_of_bench)
{
    refuse(CONFIG_BENCH, "-b 2m -e 1m", "give -e at least -b");
    refuse(CONFIG_BENCH, "-f 1", "--factor: found '1'");
    refuse(CONFIG_BENCH, "-n -1", "--iters: found '-1'");
    refuse(CONFIG_BENCH, "--sizes 4,,8", "--sizes: found '4,,8'");
    refuse(CONFIG_BENCH, "--sizes 4,", "--sizes: found '4,'");
    refuse(CONFIG_BENCH, "--sizes 1k", "--sizes: found '1k'");
    refuse(CONFIG_BENCH, "--sizes -4", "--sizes: found '-4'");
}

Test(config_check, a_device_that_this_build_lacks)
{
    struct config config;
    char reason[DEVICE_REASON_BYTES];
    if (!device_unavailable(DEVICE_CUDA, reason))
        cr_skip_test("this build has CUDA");
    assert_refused(parse(CONFIG_TRAIN, &config, "--device cuda"), STATUS_UNSUPPORTED,
                   "use --device cpu");
    assert_refused(parse(CONFIG_BENCH, &config, "--device cuda"), STATUS_UNSUPPORTED,
                   "--device cuda");
}

Test(config_check, a_backend_that_this_build_lacks)
{
    struct config config;
    if (!backend_nccl.unavailable)
        cr_skip_test("this build has nccl");
    assert_refused(parse(CONFIG_TRAIN, &config, "--backend nccl"), STATUS_UNSUPPORTED,
                   "this build has no NCCL; install");
}

Test(config_check, nccl_averages_what_gpus_have)
{
    if (backend_nccl.unavailable)
        cr_skip_test("this build has no nccl");
    refuse(CONFIG_TRAIN, "--backend nccl", "add --device cuda");
    refuse(CONFIG_BENCH, "--backend nccl --device cpu", "add --device cuda");
}

Test(config_check, sharing_a_gpu_takes_one)
{
    refuse(CONFIG_TRAIN, "--share-gpu", "add --device cuda");
    refuse(CONFIG_TRAIN, "--tf32", "add --device cuda");
    refuse(CONFIG_TRAIN, "--backend none --cuda-graph on", "use --device cuda --backend none");
    refuse(CONFIG_TRAIN, "--cuda-graph yes", "auto");
    refuse(CONFIG_BENCH, "--share-gpu --device cpu", "--device cpu uses no GPU");
}

Test(config_check, options_of_what_is_not_predicted)
{
    refuse(CONFIG_PREDICT, "--cost-model m --workers 2 --hold-out none", "--hold-out none: only");
    refuse(CONFIG_PREDICT, "--fit f --sizes 64", "--sizes 64: sizes are predicted for a number");
    refuse(CONFIG_PREDICT, "--fit f --workers 2 --images 5", "--images 5: only predicted training");
    refuse(CONFIG_PREDICT, "--fit f --workers 2 --compute-ms 5", "add --model NAME");
    refuse(CONFIG_PREDICT, "--fit f --workers 2 --bucket-mb 25", "add --model NAME");
    refuse(CONFIG_BENCH, "--probe only --csv f", "--csv f: found --probe only, which writes no");
    refuse(CONFIG_BENCH, "--probe only --json f", "--json f: found --probe only");
}

Test(config_check, environment_is_checked_too)
{
    setenv("PSRING_LINK_BITS", "fast", 1);
    refuse(CONFIG_BENCH, "", "PSRING_LINK_BITS: found 'fast'");
    unsetenv("PSRING_LINK_BITS");
    setenv("PSRING_RACKS", "4", 1);
    refuse(CONFIG_BENCH, "", "PSRING_RACKS: found '4'");
    unsetenv("PSRING_RACKS");
    refuse(CONFIG_BENCH, "--racks 0:4", "--racks: found '0:4'");
    refuse(CONFIG_BENCH, "--racks 4:0.5", "--racks: found '4:0.5'");
    refuse(CONFIG_BENCH, "--racks 4:2x", "--racks: found '4:2x'");
    setenv("PSRING_BIND_SUBNET", "10.0.0.0", 1);
    refuse(CONFIG_BENCH, "", "PSRING_BIND_SUBNET");
    setenv("PSRING_BIND_SUBNET", "", 1);
    setenv("PSRING_NETWORK", "a b", 1);
    refuse(CONFIG_BENCH, "", "PSRING_NETWORK");
}
