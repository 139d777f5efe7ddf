/* The option table. A row with a group alone is the heading of those that follow. */
#include "experiments/config/config_table.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/base/status.h"
#include "common/data/loader.h"
#include "common/device/device.h"
#include "experiments/config/backends.h"
#include "models/cnn.h"
#include "models/lr.h"
#include "models/optim.h"
#include "models/published.h"
#include "ring/baselines/baselines.h"

const char *const config_placement_words[] = {"dedicated", "colocated", "mixed", NULL};
const char *const config_reduce_order_words[] = {"any", "ring", NULL};
const char *const config_nccl_algo_words[] = {"ring", "tree", "auto", NULL};

/* auto, then in the order of enum transport_kind. */
static const char *const transport_words[] = {"auto", "zmq", "mpi", "tcp", NULL};
static const char *const last_batch_words[] = {"drop", "partial",
                                               NULL};           /* enum config_last_batch */
static const char *const late_words[] = {"skip", "keep", NULL}; /* enum config_late */
static const char *const auto_words[] = {"auto", "on", "off", NULL};
/* enum config_resume */
static const char *const resume_words[] = {"off", "auto", "must", "extend", NULL};
/* enum config_nccl_register */
static const char *const register_words[] = {"off", "on", NULL};
static const char *const probe_words[] = {"auto", "on", "off", "only", NULL};

#define FIELD(name) .offset = offsetof(struct config, name)
/* Which runs obey an option: with any backend, or with those that can. */
#define RUNS(runs) runs, 0, NULL
#define RUNS_IF(runs, ability, neutral) runs, offsetof(struct backend, ability), neutral
/* For an option, or a word of it, that a build without this satellite does not have. */
#define SATELLITE(name)                                                                            \
    .missing = PSRING_##name ? NULL                                                                \
                             : "this build is without it, because PSRING_" #name                   \
                               " is OFF; configure with -DPSRING_" #name "=ON, or leave it out"

enum {
    REAL = CONFIG_RUN_REAL,
    SWEEP = CONFIG_RUN_SWEEP,
    MODEL = CONFIG_RUN_MODEL,
    AVERAGE = CONFIG_TRAIN | SWEEP | MODEL,
    LAYERS = CONFIG_RUN_LAYERS,
    TRAIN = CONFIG_TRAIN,
    BENCH = CONFIG_BENCH,
    INFO = CONFIG_INFO,
    SERVE = CONFIG_SERVE,
    PREDICT = CONFIG_PREDICT,
    ALL = TRAIN | BENCH | INFO,
};

/* In the order of --help. */
static const struct config_row rows[] = {
    {.spec.group = "What to fit and to predict"},
    {RUNS(PREDICT),
     {"fit", 0, OPTION_STRING, FIELD(predict.fit), .metavar = "FILE,...",
      .help =
          "Fits the model to these bench.csv, or to those in these folders, and prints predicted "
          "beside measured times."}},
    {RUNS(PREDICT),
     {"hold-out", 0, OPTION_STRING, FIELD(predict.hold_out), "auto",
      .metavar = "auto|none|CONDITION,...",
      .help = "Rows to predict without fitting them: workers=N, servers=N, bytes=N, "
              "placement=WORD; auto: every second number of workers and size between others."}},
    {RUNS(PREDICT),
     {"cost-model", 0, OPTION_STRING, FIELD(cost_model), .metavar = "FILE",
      .help = "The fitted model, model.json: written with --fit, else read."}},
    {RUNS(PREDICT),
     {"workers", 0, OPTION_INT, FIELD(predict.workers), "0", 0, 4096,
      .help = "Predicts what averaging among N workers takes; 0: nothing is predicted."}},
    {RUNS(PREDICT),
     {"spare", 0, OPTION_INT, FIELD(predict.spare), "0", 0, 4096, .metavar = "K",
      .help = "Machines beside the workers', which servers could have."}},
    {RUNS(PREDICT),
     {"rate", 0, OPTION_RATE, FIELD(predict.rate), "0", 0, 1e15, .metavar = "RATE",
      .help = "Each way of a machine's link: 25gbit, or bits/s; each process then has a machine of "
              "its own. 0: the network that was measured."}},
    {RUNS(PREDICT),
     {"latency", 0, OPTION_DOUBLE, FIELD(predict.latency), "0", 0, 10, .metavar = "SECONDS",
      .help = "What that network adds to a message, beyond the one that was measured."}},
    {RUNS(PREDICT),
     {"sizes", 0, OPTION_STRING, FIELD(sizes), "65536,1048576,4799528,25600000", .metavar = "LIST",
      .help = "Bytes of the vectors that --workers average, with commas between."}},
    {RUNS(PREDICT),
     {"train", 0, OPTION_STRING, FIELD(predict.trained), .metavar = "FILE,...",
      .help = "Shows predicted beside the measured steps of --compute paced in these train.csv, or "
              "in those of these folders."}},
    {RUNS(PREDICT),
     {"model", 0, OPTION_STRING, FIELD(predict.trains), .metavar = "NAME",
      .help = "Predicts training steps of --workers, too, for this model of psring train (--model) "
              "or bench (--model-gradients)."}},
    {RUNS(PREDICT),
     {"compute-ms", 0, OPTION_DOUBLE, FIELD(compute_ms), "0", 0, 3.6e6, .metavar = "MS",
      .help = "How long forward and backward of such a step take (psring bench --layers)."}},
    {RUNS(PREDICT),
     {"batch", 0, OPTION_INT, FIELD(batch), "32", 1, CONFIG_BATCH_MOST,
      .help = "Images a step, per worker."}},
    {RUNS(PREDICT),
     {"images", 0, OPTION_DOUBLE, FIELD(predict.images), "60000", 1, 1e15,
      .help = "Images of an epoch; MNIST has 60000."}},
    {RUNS(PREDICT),
     {"epochs", 0, OPTION_INT, FIELD(epochs), "1", 1, 100000,
      .help = "Epochs that the wanted accuracy takes."}},
    {RUNS(PREDICT),
     {"bucket-mb", 0, OPTION_DOUBLE, FIELD(bucket_mb), "4", 0, 65536, .metavar = "MB",
      .help = "Gradients travel in buckets of this size, while others are computed; 0: in one."}},
    {RUNS(PREDICT),
     {"cost-per-hour", 0, OPTION_DOUBLE, FIELD(predict.cost_per_hour), "0", 0, 1e9,
      .metavar = "COST",
      .help = "Of a machine, for the advice that --model brings; 0: not known."}},
    {RUNS(PREDICT),
     {"seed", 0, OPTION_INT, FIELD(seed), "1", 0, 9e15,
      .help = "Of the intervals' resampling; the same seed gives the same intervals."}},
    {.spec.group = "What to run"},
    {RUNS(SERVE),
     {"listen", 0, OPTION_STRING, FIELD(elastic.listen), "tcp://127.0.0.1:29600",
      .metavar = "ADDRESS",
      .help = "tcp://HOST:PORT, where workers join: HOST is a name or an address of this host, "
              "an IPv6 address in brackets."}},
    {RUNS(SERVE),
     {"workers", 0, OPTION_INT, FIELD(elastic.workers), "1", 1, 1000,
      .help = "Training begins when N workers are there, and goes on with those who are."}},
    {RUNS(SERVE),
     {"min-workers", 0, OPTION_INT, FIELD(elastic.min_workers), "1", 1, 1000,
      .help = "With fewer it stands still until others join."}},
    {RUNS(BENCH),
     {"layers", 0, OPTION_FLAG, FIELD(bench.layers),
      .help = "Times a training step layer by layer instead, on all ranks at once."}},
    {RUNS(SWEEP | MODEL),
     {"model-gradients", 0, OPTION_CHOICE, FIELD(bench.model_gradients), "none",
      .choices = published_names,
      .help = "Times steps that exchange this model's gradients instead, beside a wait."}},
    {RUNS(MODEL),
     {"compute-ms", 0, OPTION_DOUBLE, FIELD(compute_ms), "100", 0, 3.6e6, .metavar = "MS",
      .help = "How long such a step computes: forward and backward."}},
    {RUNS(MODEL),
     {"sync-step", 0, OPTION_FLAG, FIELD(bench.sync_step),
      .help = "Such a step waits for its buckets, and not the next one for those it needs."}},
    {RUNS(SWEEP),
     {"min-bytes", 'b', OPTION_SIZE, FIELD(bench.min_bytes), "1k", 0, 1e12, .metavar = "BYTES",
      .help = "First size."}},
    {RUNS(SWEEP),
     {"max-bytes", 'e', OPTION_SIZE, FIELD(bench.max_bytes), "16m", 0, 1e12, .metavar = "BYTES",
      .help = "Last size."}},
    {RUNS(SWEEP),
     {"factor", 'f', OPTION_DOUBLE, FIELD(bench.factor), "4", 1.01, 1e6,
      .help = "Each size is the last times this."}},
    {RUNS(SWEEP),
     {"sizes", 0, OPTION_STRING, FIELD(sizes), .metavar = "LIST",
      .help = "These sizes instead of -b to -e: bytes, with commas between, e.g. 65536,4799528."}},
    {RUNS(BENCH),
     {"iters", 'n', OPTION_INT, FIELD(bench.iters), "0", 0, 1e9,
      .help = "Timed iterations a size; 0: 20 or more, but of 2 s at most, and 5 at least."}},
    {RUNS(BENCH),
     {"warmup", 'w', OPTION_INT, FIELD(bench.warmup), "5", 0, 1e9,
      .help = "Iterations before them that are not timed."}},
    {RUNS(SWEEP),
     {"skew", 0, OPTION_DOUBLE, FIELD(bench.skew_ms), "0", 0, 60000, .metavar = "MS",
      .help = "Delay each rank's start of each operation by up to this, in a fixed random pattern. "
              "Time counts from the last start."}},
    {RUNS(SWEEP),
     {"overlap", 0, OPTION_FLAG, FIELD(bench.overlap),
      .help = "Times each size also beside a computation (a wait) as long: what does it hide?"}},
    {RUNS_IF(SWEEP, reduces, NULL),
     {"via-library", 0, OPTION_FLAG, FIELD(bench.via_library),
      .help = "Times each size also through libpsring (common/psring.h), as other programs do."}},
    {RUNS(SWEEP | MODEL),
     {"probe", 0, OPTION_CHOICE, FIELD(bench.probe), "auto", .choices = probe_words,
      .help = "Measures what a TCP stream reaches on the links, first; auto: not on loopback; "
              "only: shows hosts and links, and ends."}},
    {RUNS(SWEEP | MODEL),
     {"baselines", 0, OPTION_FLAG, FIELD(bench.baselines),
      .help = "Measures memory, 4 bytes there and back (ZeroMQ, a socket), TCP streams, too."}},
    {RUNS(ALL),
     {"rendezvous", 0, OPTION_STRING, FIELD(rendezvous), .metavar = "ADDRESS",
      .help = "Start without mpirun: tcp://HOST:PORT, where rank 0 listens and all others connect. "
              "Write an IPv6 address in brackets (else torchrun's MASTER_ADDR, MASTER_PORT, RANK, "
              "WORLD_SIZE)."}},
    {RUNS(ALL),
     {"rank", 0, OPTION_INT, FIELD(rank), NULL, 0, CONFIG_RANKS_MOST, .metavar = "R",
      .help = "With --rendezvous: which rank this process is, 0 to W - 1."}},
    {RUNS(ALL),
     {"world-size", 0, OPTION_INT, FIELD(world_size), NULL, 1, CONFIG_RANKS_MOST, .metavar = "W",
      .help = "With --rendezvous: how many ranks there are."}},
    {RUNS(TRAIN),
     {"join", 0, OPTION_STRING, FIELD(elastic.join), .metavar = "ADDRESS,...",
      .help = "Joins the job of these servers (tcp://HOST:PORT, psring serve); for --backend ps.",
      SATELLITE(ELASTIC)}},
    {RUNS(TRAIN),
     {"join-after", 0, OPTION_INT, FIELD(elastic.join_after), "0", 0, 1e12, .metavar = "N",
      .help = "With --join: this worker waits until N steps are done.", SATELLITE(ELASTIC)}},
    {RUNS(TRAIN),
     {"leave-after", 0, OPTION_INT, FIELD(elastic.leave_after), "0", 0, 1e12, .metavar = "N",
      .help = "With --join: this worker leaves when N steps are done; 0: it stays to the end.",
      SATELLITE(ELASTIC)}},
    {RUNS(AVERAGE | SERVE),
     {"token", 0, OPTION_STRING, FIELD(token), .metavar = "TEXT",
      .help =
          PSRING_ELASTIC
              ? "Text that the ranks of one job share; ranks with another one are refused (else "
                "PSRING_TOKEN; else, with --join and psring serve, a random text in "
                "~/.psring-token)."
              : "Text that the ranks of one job share; ranks with another one are refused (else "
                "PSRING_TOKEN)."}},
    {.spec.group = "How to average"},
    {RUNS(AVERAGE),
     {"backend", 0, OPTION_CHOICE, FIELD(backend), "ring", /* .choices: see follow_build */
      .help = PSRING_PREDICT
                  ? "How gradients are averaged; auto: as the fitted model says is fastest."
                  : "How gradients are averaged.",
      .missing_word = "auto", SATELLITE(PREDICT)}},
    {RUNS(AVERAGE),
     {"cost-model", 0, OPTION_STRING, FIELD(cost_model), .metavar = "FILE",
      .help = "For --backend auto: the model that psring predict --fit writes; rank 0's file.",
      SATELLITE(PREDICT)}},
    {RUNS_IF(AVERAGE, uses_transport, "auto"),
     {"transport", 0, OPTION_CHOICE, FIELD(transport), "auto", .choices = transport_words,
      .help = "What messages travel over; auto: what the backend is fastest with (psring info)."}},
    {RUNS_IF(AVERAGE, uses_servers, "0"),
     {"servers", 0, OPTION_INT, FIELD(servers), NULL, 0, 4096, .metavar = "K",
      .help = "Parameter servers; 1 unless given. 0 only with --placement mixed."}},
    {RUNS_IF(AVERAGE, uses_servers, NULL),
     {"placement", 0, OPTION_CHOICE, FIELD(placement), "dedicated",
      .choices = config_placement_words,
      .help = "Servers as K further ranks, as threads inside the first K workers, or both: mixed, "
              "one in each worker and K further ranks, with shards that load all links alike."}},
    {RUNS_IF(AVERAGE, obeys_reduce_order, "any"),
     {"reduce-order", 0, OPTION_CHOICE, FIELD(reduce_order), "any",
      .choices = config_reduce_order_words,
      .help = "ring: all add in the ring's order, to the same bits."}},
    {RUNS_IF(AVERAGE, compresses, NULL),
     {"compress", 0, OPTION_CHOICE, FIELD(compress), "none", .choices = compress_names,
      .help = "Gradients travel as numbers of 16 bits; added in float32."}},
    {RUNS_IF(AVERAGE, compresses, NULL),
     {"error-feedback", 0, OPTION_CHOICE, FIELD(error_feedback), "auto", .choices = auto_words,
      .help = "What --compress rounds off is added at the next step; auto: on."}},
    {RUNS_IF(AVERAGE, obeys_segment_bytes, NULL),
     {"segment-bytes", 0, OPTION_SIZE, FIELD(segment_bytes), "0", 0, 1 << 30, .metavar = "BYTES",
      .help = "Bytes of one message; 0: chosen from the size of the bucket."}},
    {RUNS_IF(AVERAGE, obeys_window, NULL),
     {"push-window", 0, OPTION_INT, FIELD(push_window), "0", 0, 1024,
      .help = "Chunks that a worker may have unanswered with a server; 0: chosen."}},
    {RUNS(TRAIN | MODEL),
     {"bucket-mb", 0, OPTION_DOUBLE, FIELD(bucket_mb), "4", 0, 65536, .metavar = "MB",
      .help = "Gradients are averaged in buckets of about this size; 0: in one."}},
    {RUNS_IF(SWEEP | MODEL, takes_mpi_algorithm, NULL),
     {"mpi-algorithm", 0, OPTION_CHOICE, FIELD(bench.mpi_algorithm), "default",
      .choices = library_algorithm_names,
      .help = "What MPI_Allreduce uses (only Open MPI obeys)."}},
    {RUNS_IF(SWEEP | MODEL | TRAIN, takes_nccl_options, NULL),
     {"nccl-algo", 0, OPTION_CHOICE, FIELD(nccl_algo), "ring", .choices = config_nccl_algo_words,
      .help = "What NCCL uses; auto: its own choice. By its log, another one ends the run."}},
    {RUNS_IF(SWEEP | MODEL | TRAIN, takes_nccl_options, NULL),
     {"nccl-register", 0, OPTION_CHOICE, FIELD(nccl_register), "off", .choices = register_words,
      .help =
          "on: NCCL may use buckets in place. Its guide: unsafe, may hang or crash on failure."}},
    {.spec.group = "Consistency"},
    {RUNS_IF(TRAIN, updates_on_server, "bsp"),
     {"sync", 0, OPTION_STRING, FIELD(train.sync), "bsp", .metavar = "bsp|ssp:S|async",
      .help = "Consistency. bsp: all workers step together; ssp: they are at most S steps apart; "
              "async: nobody waits. The latter two with the optimizer on the servers."}},
    {RUNS_IF(TRAIN, updates_on_server, "skip"),
     {"late-steps", 0, OPTION_CHOICE, FIELD(train.late_steps), "skip", .choices = late_words,
      .help = "ssp and async: who is (S + 1)/2 steps behind, or 8, skips them to catch up, or does "
              "them all: keep, ssp as Ho et al. have it."}},
    {RUNS_IF(TRAIN, updates_on_server, "0"),
     {"backup-workers", 0, OPTION_INT, FIELD(train.backup_workers), "0", 0, 4096, .metavar = "B",
      .help = "bsp, optimizer on the servers: a step does not wait for the last B workers."}},
    {RUNS(TRAIN),
     {"straggler", 0, OPTION_STRING, FIELD(train.straggler), .metavar = "RANK:FACTOR",
      .help = "That worker computes FACTOR times as long, e.g. 3:4."}},
    {.spec.group = "Model and data"},
    {RUNS(TRAIN),
     {"compute", 0, OPTION_STRING, FIELD(train.compute), "real", .metavar = "real|real:MS|paced:MS",
      .help = "paced: a timed wait of MS ms a step instead of computing; gradients of real size. "
              "real:MS: computes, and waits until MS have passed."}},
    {RUNS(TRAIN | LAYERS),
     {"model", 0, OPTION_CHOICE, FIELD(model), "keras-cnn", .choices = cnn_names,
      .help = "What is trained."}},
    {RUNS(TRAIN | INFO),
     {"data", 0, OPTION_STRING, FIELD(data), .metavar = "DIR",
      .help = "Folder with the four IDX files (else PSRING_DATA; paced: loads none then)."}},
    {RUNS(TRAIN),
     {"data-threads", 0, OPTION_INT, FIELD(train.data_threads), "0", 0, LOADER_THREADS_MOST,
      .help = "Threads per rank that make batches ahead; 0: each as its step begins."}},
    {RUNS(TRAIN),
     {"prefetch-batches", 0, OPTION_INT, FIELD(train.prefetch_batches), "0", 0, LOADER_DEPTH_MOST,
      .metavar = "DEPTH", .help = "Batches that --data-threads make ahead; 0: two for each."}},
    {RUNS(TRAIN),
     {"augment", 0, OPTION_STRING, FIELD(train.augment), "none",
      .metavar = "shift:PIXELS,rotate:DEGREES",
      .help = "Moves training images, up to so far, by other amounts each epoch."}},
    {RUNS(TRAIN),
     {"epochs", 0, OPTION_INT, FIELD(epochs), "2", 1, 100000, .help = "Passes over the data."}},
    {RUNS(TRAIN),
     {"epochs-divided", 0, OPTION_FLAG, FIELD(train.epochs_divided),
      .help = "Divides --epochs among the workers, rounded up."}},
    {RUNS(REAL),
     {"last-batch", 0, OPTION_CHOICE, FIELD(train.last_batch), "drop", .choices = last_batch_words,
      .help = "Images that make no whole step: drop: not used; partial: a step of their own."}},
    {RUNS(REAL),
     {"no-shard", 0, OPTION_FLAG, FIELD(train.no_shard),
      .help = "An epoch is all the data for each worker, in an order of its own, not its share."}},
    {RUNS(TRAIN),
     {"steps", 0, OPTION_INT, FIELD(train.steps), "0", 0, 1e12,
      .help = "Ends after N steps in all; 0: after --epochs."}},
    {RUNS(TRAIN | LAYERS),
     {"batch", 0, OPTION_INT, FIELD(batch), "32", 1, CONFIG_BATCH_MOST,
      .help = "Images a step, per worker."}},
    {RUNS(TRAIN),
     {"global-batch", 0, OPTION_INT, FIELD(train.global_batch), "0", 0, 1e9,
      .help = "Images a step, of all workers together, instead of --batch; 0: not given."}},
    {RUNS(TRAIN),
     {"seed", 0, OPTION_INT, FIELD(seed), "1", 0, 9e15,
      .help = "Of parameters, shuffling and dropout; the same seed gives the same run."}},
    {RUNS(TRAIN),
     {"virtual-workers", 0, OPTION_INT, FIELD(train.virtual_workers), "0", 0, 4096,
      .help = "With --backend none: this process plays N workers in turn."}},
    {.spec.group = "Learning"},
    {RUNS(REAL),
     {"recipe", 0, OPTION_STRING, FIELD(learning.recipe),
      .metavar = "keras-horovod|large-batch|lars-8192|list",
      .help = "Sets several options, but none that is given; list: prints what each sets."}},
    {RUNS(REAL | LAYERS),
     {"optimizer", 0, OPTION_CHOICE, FIELD(learning.optimizer), "sgd",
      .choices = optimizer_kind_names, .help = "How parameters follow from gradients."}},
    {RUNS(REAL),
     {"momentum", 0, OPTION_DOUBLE, FIELD(learning.momentum), "0.9", 0, 0.99999, .metavar = "M",
      .help = "Of sgd and lars."}},
    {RUNS(REAL),
     {"nesterov", 0, OPTION_FLAG, FIELD(learning.nesterov),
      .help = "Nesterov's momentum, of sgd."}},
    {RUNS(REAL),
     {"beta1", 0, OPTION_DOUBLE, FIELD(learning.beta1), "0.9", 0, 0.99999, .metavar = "BETA",
      .help = "Of adam: its mean's decay."}},
    {RUNS(REAL),
     {"beta2", 0, OPTION_DOUBLE, FIELD(learning.beta2), "0.999", 0, 0.9999999, .metavar = "BETA",
      .help = "Of adam: its square's decay."}},
    {RUNS(REAL),
     {"epsilon", 0, OPTION_DOUBLE, FIELD(learning.epsilon), "0", 0, 1, .metavar = "E",
      .help = "Of adagrad, adadelta and adam; 0: 1e-10, 1e-7, 1e-8."}},
    {RUNS(REAL),
     {"lars-coefficient", 0, OPTION_DOUBLE, FIELD(learning.lars_coefficient), "0.02", 1e-9, 1000,
      .metavar = "COEFFICIENT", .help = "Of lars: a tensor's step is so many times its norm."}},
    {RUNS(REAL),
     {"weight-decay", 0, OPTION_DOUBLE, FIELD(learning.weight_decay), "0", 0, 1, .metavar = "DECAY",
      .help = "So many times the weights are added to their gradients (lars: not to biases')."}},
    {RUNS(REAL),
     {"lr", 0, OPTION_DOUBLE, FIELD(learning.lr), "0", 0, 1000, .metavar = "RATE",
      .help = "Highest learning rate, before --lr-scale; 0: by optimizer and images a step."}},
    {RUNS(REAL),
     {"lr-scale", 0, OPTION_CHOICE, FIELD(learning.lr_scale), "auto", .choices = lr_scale_names,
      .help = "By the number of workers, or its root; auto: --lr stays as given, its default is by "
              "the images of all."}},
    {RUNS(REAL),
     {"lr-schedule", 0, OPTION_CHOICE, FIELD(learning.lr_schedule), "linear",
      .choices = lr_shape_names,
      .help = "From the warm-up's end on: to 0 in a line or a cosine; a tenth at 1/3, 2/3, 8/9."}},
    {RUNS(REAL),
     {"warmup-epochs", 0, OPTION_DOUBLE, FIELD(learning.warmup_epochs), NULL, 0, 1000,
      .metavar = "E",
      .help = "The rate rises, step by step, from one worker's (--lr-scale) or 0; else 60 steps."}},
    {RUNS(REAL),
     {"target-accuracy", 0, OPTION_DOUBLE, FIELD(train.target_accuracy), "0", 0, 100,
      .metavar = "PERCENT",
      .help = "Ends at the first test that reaches it; tests at each report too. 0: no such end."}},
    {.spec.group = "Device"},
    {RUNS(TRAIN | BENCH),
     {"device", 0, OPTION_CHOICE, FIELD(device), "cpu", .choices = device_kind_names,
      .help = "Where a rank computes."}},
    {RUNS(TRAIN | BENCH),
     {"share-gpu", 0, OPTION_FLAG, FIELD(share_gpu),
      .help = "Lets several ranks have one GPU: right results, but times of time-slicing."}},
    {RUNS(TRAIN),
     {"tf32", 0, OPTION_FLAG, FIELD(tf32),
      .help = "GPUs: products with 10 bits of mantissa, on tensor cores; faster, less exact."}},
    {RUNS(TRAIN),
     {"cuda-graph", 0, OPTION_CHOICE, FIELD(graph), "auto", .choices = auto_words,
      .help = "GPUs: a step is one launch of a CUDA graph; auto: with --backend none."}},
    {RUNS(REAL | LAYERS),
     {"conv", 0, OPTION_CHOICE, FIELD(conv), "auto", .choices = device_conv_names,
      .help = "GPUs: cuDNN's convolutions or psring's own; auto: cuDNN's, if both agree."}},
    {RUNS(TRAIN | LAYERS),
     {"threads", 0, OPTION_INT, FIELD(threads), "1", 0, 1024,
      .help = "Compute threads per rank; 0: the machine's cores, shared among its ranks."}},
    {RUNS(TRAIN | BENCH),
     {"pin", 0, OPTION_FLAG, FIELD(pin),
      .help = "Binds each rank to its part of the cores; else it is as the launcher bound it."}},
    {.spec.group = "Checkpoints"},
    {RUNS(TRAIN),
     {"checkpoint", 0, OPTION_STRING, FIELD(train.checkpoint), .metavar = "DIR",
      .help = "Saves the state of training there after every epoch, and when it is stopped by "
              "SIGTERM, SIGINT or SIGUSR1 (exit code 75)."}},
    {RUNS(TRAIN),
     {"keep-checkpoints", 0, OPTION_INT, FIELD(train.keep_checkpoints), "2", 1, 1000000,
      .help = "Checkpoints to keep, the newest ones."}},
    {RUNS(TRAIN),
     {"checkpoint-steps", 0, OPTION_INT, FIELD(train.checkpoint_steps), "0", 0, 1e9,
      .help = "Saves every N steps too; 0: per epoch."}},
    {RUNS(TRAIN),
     {"resume", 0, OPTION_CHOICE, FIELD(train.resume), "off", .choices = resume_words,
      .bare = "auto", .metavar = "must|extend",
      .help = "Continues from the newest checkpoint, if one is there (must: else refuses), to the "
              "same bits; extend: for more --steps or --epochs; by other workers: to other bits."}},
    {.spec.group = "Network"},
    {RUNS(SERVE),
     {"timeout", 0, OPTION_DOUBLE, FIELD(timeout), "30", 0.1, 86400, .metavar = "SECONDS",
      .help = "A worker that keeps others waiting, or is silent, for longer is lost: the others go "
              "on without it."}},
    {RUNS(TRAIN | BENCH | SERVE),
     {"subnet", 0, OPTION_STRING, FIELD(subnet), .metavar = "NAME|NETWORK",
      .help = "Listen on this interface or in this network: eth0, 10.0.0.0/24, fd00::/64 (else "
              "PSRING_BIND_SUBNET, else where ranks reach rank 0)."}},
    {RUNS(TRAIN | BENCH),
     {"timeout", 0, OPTION_DOUBLE, FIELD(timeout), "30", 0.1, 86400, .metavar = "SECONDS",
      .help = "A rank that keeps others waiting, or is silent, for longer ends the run."}},
    {RUNS(TRAIN | BENCH | SERVE),
     {"stall-warning", 0, OPTION_DOUBLE, FIELD(stall_warning), "10", 0, 86400, .metavar = "SECONDS",
      .help = "Who keeps others waiting for so long (3 s at least) is warned of; 0: nobody."}},
    {RUNS(ALL | SERVE),
     {"startup-timeout", 0, OPTION_DOUBLE, FIELD(startup_timeout), "60", 0.1, 86400,
      .metavar = "SECONDS",
      .help = "The same until all ranks have met, opened their files and connected."}},
    {RUNS(TRAIN | BENCH),
     {"network", 0, OPTION_STRING, FIELD(network), .metavar = "LABEL",
      .help = "Name of the network in result rows (else PSRING_NETWORK, else by hosts)."}},
    {RUNS(TRAIN | BENCH),
     {"link-rate", 0, OPTION_RATE, FIELD(link_rate), "0", 0, 1e15, .metavar = "RATE",
      .help = "Each way of a host's link: 200mbit or bits/s (else PSRING_LINK_BITS); 0: unknown."}},
    {.spec.group = "Output"},
    {RUNS(PREDICT),
     {"csv", 0, OPTION_STRING, FIELD(csv), .metavar = "FILE",
      .help = "Appends predicted beside measured times, a row each, as CSV."}},
    {RUNS(TRAIN),
     {"metrics", 0, OPTION_STRING, FIELD(train.metrics), .metavar = "FILE",
      .help = "Appends a CSV row per epoch (and per --log-steps)."}},
    {RUNS(TRAIN),
     {"log-steps", 0, OPTION_INT, FIELD(train.log_steps), "0", 0, 1e9,
      .help = "Reports every N steps too; 0: per epoch."}},
    {RUNS(TRAIN),
     {"timeline", 0, OPTION_STRING, FIELD(train.timeline), .metavar = "FILE",
      .help = "Writes where the time of all ranks went, for https://ui.perfetto.dev and psring "
              "trace; a run that fails leaves it empty.",
      SATELLITE(TRACE)}},
    {RUNS(TRAIN),
     {"timeline-steps", 0, OPTION_STRING, FIELD(train.timeline_steps), .metavar = "FIRST:LAST",
      .help = "Which steps of this run --timeline records, counted from 1; 1:100 unless given.",
      SATELLITE(TRACE)}},
    {RUNS(SWEEP | MODEL),
     {"require-efficiency", 0, OPTION_DOUBLE, FIELD(bench.require_efficiency), "0", 0, 100,
      .metavar = "SHARE",
      .help =
          "End with exit code 1 if the efficiency of a row is below this, e.g. 0.9, or unknown. "
          "0 requires nothing."}},
    {RUNS(BENCH | INFO),
     {"json", 0, OPTION_STRING, FIELD(json), .metavar = "FILE",
      .help = "Writes the results, with configuration and machine, as JSON; -: to stdout (info)."}},
    {RUNS(BENCH),
     {"csv", 0, OPTION_STRING, FIELD(csv), .metavar = "FILE",
      .help = "Appends rows as CSV; the README has the columns."}},
    {RUNS(ALL | SERVE | PREDICT),
     {"verbose", 'v', OPTION_FLAG, FIELD(verbose), .help = "Says more on stderr."}},
};

/* What depends on the build: options that it is without, the names of backends, and in the help who
 * obeys an option. */
static void follow_build(struct config_table *table, int at)
{
    struct option_spec *spec = &table->specs[at];
    size_t ability = table->rows[at]->ability;
    char names[64];
    if (spec->missing && !spec->missing_word)
        spec->help = NULL;
    if (strcmp(spec->name, "backend") == 0)
        spec->choices = spec->missing ? backend_names() : backend_choices();
    if (ability == 0)
        return;
    snprintf(table->help[at], sizeof table->help[at], "%s For %s.", spec->help,
             backends_that(ability, names, sizeof names));
    spec->help = table->help[at];
}

bool config_table_given(const struct config_table *table, const char *name)
{
    for (int i = 0; table->specs[i].name; i++) {
        if (strcmp(table->specs[i].name, name) == 0)
            return table->given[i];
    }
    return false;
}

/* Options that had other names. `now` may have a value. */
static const struct option_renamed renamed[] = {
    {"server", "join"},
    {"world", "world-size"},
    {"interface", "subnet"},
    {"segment", "segment-bytes"},
    {"window", "push-window"},
    {"trust", "lars-coefficient"},
    {"loaders", "data-threads"},
    {"prefetch", "prefetch-batches"},
    {"unsharded", "no-shard"},
    {"keep", "keep-checkpoints"},
    {"compute", "layers"}, /* of bench */
    {"limits", "baselines"},
    {"no-defer", "sync-step"},
    {"library", "via-library"},
    {"last-batch=join", "partial"},
    {NULL, NULL},
};

static const struct {
    enum config_command command;
    const char *name, *summary;
} commands[] = {
    {CONFIG_TRAIN, "psring train",
     "Trains a CNN data-parallel: alone, or on all ranks of mpirun or of --rendezvous."},
    {CONFIG_BENCH, "psring bench",
     "Times averaging over the ranks of mpirun or of --rendezvous by size; checks every element."},
    {CONFIG_SERVE, "psring serve",
     "A parameter server that workers join and leave (psring train --join); without MPI."},
    {CONFIG_INFO, "psring info", "Lists what this build and this machine have."},
    {CONFIG_PREDICT, "psring predict",
     "Fits the model of cost to measurements, and predicts what was not measured."},
};

void config_table_init(struct config_table *table, enum config_command command)
{
    int count = 0;
    const char *group = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct config_row *row = &rows[i];
        group = row->spec.group ? row->spec.group : group;
        if (!row->spec.name || !(row->runs & (unsigned)command))
            continue;
        CHECK(count < CONFIG_OPTIONS_MAX);
        table->rows[count] = row;
        table->specs[count] = row->spec;
        table->specs[count].group = group;
        follow_build(table, count++);
    }
    table->specs[count] = (struct option_spec){0};
    memset(table->given, 0, sizeof table->given);
    table->options =
        (struct options){.specs = table->specs, .renamed = renamed, .given = table->given};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (commands[i].command == command) {
            table->options.command = commands[i].name;
            table->options.summary = commands[i].summary;
        }
    }
}
