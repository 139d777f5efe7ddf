/* The option table. A row that sets only `group` is the heading of the rows that follow. */
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

const char *const config_placement_words[] = {"dedicated", "colocated", "mixed", "switch", NULL};
const char *const config_reduce_order_words[] = {"any", "ring", NULL};
const char *const config_nccl_algo_words[] = {"ring", "tree", "auto", NULL};

/* auto, then the kinds in the order of enum transport_kind. */
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
/* The runs that obey an option: with any backend, or only with backends that have an ability. */
#define RUNS(runs) runs, 0, NULL
#define RUNS_IF(runs, ability, neutral) runs, offsetof(struct backend, ability), neutral
/* Marks an option, or a word of it, that a build without this satellite lacks. */
#define SATELLITE(name)                                                                            \
    .missing = PSRING_##name ? NULL                                                                \
                             : "this build lacks it, because PSRING_" #name                        \
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
    {.spec.group = "Fit and predict"},
    {RUNS(PREDICT),
     {"fit", 0, OPTION_STRING, FIELD(predict.fit), .metavar = "FILE,...",
      .help = "Fit the model to these bench.csv files, or to those in these folders. Print "
              "predicted and measured times."}},
    {RUNS(PREDICT),
     {"hold-out", 0, OPTION_STRING, FIELD(predict.hold_out), "auto",
      .metavar = "auto|none|CONDITION,...",
      .help =
          "Predict these rows without fitting them: workers=N, servers=N, bytes=N, placement=WORD. "
          "auto: every second number of workers and every second size, each between others."}},
    {RUNS(PREDICT),
     {"cost-model", 0, OPTION_STRING, FIELD(cost_model), .metavar = "FILE",
      .help = "Write the fitted model (model.json) to this file with --fit, otherwise read it."}},
    {RUNS(PREDICT),
     {"workers", 0, OPTION_INT, FIELD(predict.workers), "0", 0, 4096,
      .help = "Predict the time of averaging among N workers. 0: predict nothing."}},
    {RUNS(PREDICT),
     {"spare", 0, OPTION_INT, FIELD(predict.spare), "0", 0, 4096, .metavar = "K",
      .help = "Assume K spare machines for servers."}},
    {RUNS(PREDICT),
     {"rate", 0, OPTION_RATE, FIELD(predict.rate), "0", 0, 1e15, .metavar = "RATE",
      .help = "Predict for links of this rate in each direction: 25gbit, or bits/s. Each process "
              "then has its own machine. 0: the measured network."}},
    {RUNS(PREDICT),
     {"latency", 0, OPTION_DOUBLE, FIELD(predict.latency), "0", 0, 10, .metavar = "SECONDS",
      .help = "Predict for a network that adds this latency to each message, on top of the "
              "measured one."}},
    {RUNS(PREDICT),
     {"sizes", 0, OPTION_STRING, FIELD(sizes), "65536,1048576,4799528,25600000", .metavar = "LIST",
      .help =
          "Predict for vectors of these sizes: bytes, separated by commas. Only with --workers."}},
    {RUNS(PREDICT),
     {"map", 0, OPTION_STRING, FIELD(predict.map), .metavar = "FILE",
      .help = "Write the fastest way for 2 to 1,024 workers to this CSV file, by size, distance, "
              "racks and machines for servers."}},
    {RUNS(PREDICT),
     {"train", 0, OPTION_STRING, FIELD(predict.trained), .metavar = "FILE,...",
      .help = "Compare predicted steps with measured steps of --compute paced. Read these "
              "train.csv files, or those in these folders."}},
    {RUNS(PREDICT),
     {"model", 0, OPTION_STRING, FIELD(predict.trains), .metavar = "NAME",
      .help = "Also predict training steps of --workers for this model of psring train (--model) "
              "or bench (--model-gradients)."}},
    {RUNS(PREDICT),
     {"compute-ms", 0, OPTION_DOUBLE, FIELD(compute_ms), "0", 0, 3.6e6, .metavar = "MS",
      .help = "Assume this time for the forward and backward pass of a step (see psring bench "
              "--layers). Only with --model."}},
    {RUNS(PREDICT),
     {"batch", 0, OPTION_INT, FIELD(batch), "32", 1, CONFIG_BATCH_MOST,
      .help = "Use N images per step and worker."}},
    {RUNS(PREDICT),
     {"images", 0, OPTION_DOUBLE, FIELD(predict.images), "60000", 1, 1e15,
      .help = "Assume N images per epoch. MNIST has 60000."}},
    {RUNS(PREDICT),
     {"epochs", 0, OPTION_INT, FIELD(epochs), "1", 1, 100000,
      .help = "Assume that the target accuracy needs N epochs."}},
    {RUNS(PREDICT),
     {"bucket-mb", 0, OPTION_DOUBLE, FIELD(bucket_mb), "4", 0, 65536, .metavar = "MB",
      .help = "Average gradients in buckets of this size during the computation. 0: one bucket."}},
    {RUNS(PREDICT),
     {"cost-per-hour", 0, OPTION_DOUBLE, FIELD(predict.cost_per_hour), "0", 0, 1e9,
      .metavar = "COST",
      .help = "Assume this cost of a machine per hour, for the advice that --model prints. 0: "
              "unknown."}},
    {RUNS(PREDICT),
     {"seed", 0, OPTION_INT, FIELD(seed), "1", 0, 9e15,
      .help = "Seed the intervals' resampling. The same seed gives the same intervals."}},
    {.spec.group = "What to run"},
    {RUNS(SERVE),
     {"listen", 0, OPTION_STRING, FIELD(elastic.listen), "tcp://127.0.0.1:29600",
      .metavar = "ADDRESS",
      .help = "Listen for workers at tcp://HOST:PORT. HOST is a name or an address of this host. "
              "Write an IPv6 address in brackets."}},
    {RUNS(SERVE),
     {"workers", 0, OPTION_INT, FIELD(elastic.workers), "1", 1, 1000,
      .help = "Start training when N workers have joined. Training then continues with the workers "
              "that are connected."}},
    {RUNS(SERVE),
     {"min-workers", 0, OPTION_INT, FIELD(elastic.min_workers), "1", 1, 1000,
      .help = "Pause training while fewer workers are connected."}},
    {RUNS(BENCH),
     {"layers", 0, OPTION_FLAG, FIELD(bench.layers),
      .help =
          "Time a training step layer by layer, on all ranks at once, instead of all-reduces."}},
    {RUNS(SWEEP | MODEL),
     {"model-gradients", 0, OPTION_CHOICE, FIELD(bench.model_gradients), "none",
      .choices = published_names,
      .help = "Time steps that average this model's gradients, instead of a sweep of sizes. A wait "
              "replaces the computation."}},
    {RUNS(MODEL),
     {"compute-ms", 0, OPTION_DOUBLE, FIELD(compute_ms), "100", 0, 3.6e6, .metavar = "MS",
      .help =
          "Set the time of the forward and backward pass of a step. Only with --model-gradients."}},
    {RUNS(MODEL),
     {"sync-step", 0, OPTION_FLAG, FIELD(bench.sync_step),
      .help = "End each step only when all its buckets have arrived. Default: the next step waits "
              "for each bucket that it needs. Only with --model-gradients."}},
    {RUNS(SWEEP),
     {"min-bytes", 'b', OPTION_SIZE, FIELD(bench.min_bytes), "1k", 0, 1e12, .metavar = "BYTES",
      .help = "Time sizes from this one on."}},
    {RUNS(SWEEP),
     {"max-bytes", 'e', OPTION_SIZE, FIELD(bench.max_bytes), "16m", 0, 1e12, .metavar = "BYTES",
      .help = "Time sizes up to this one."}},
    {RUNS(SWEEP),
     {"factor", 'f', OPTION_DOUBLE, FIELD(bench.factor), "4", 1.01, 1e6,
      .help = "Multiply each size by this to get the next size."}},
    {RUNS(SWEEP),
     {"sizes", 0, OPTION_STRING, FIELD(sizes), .metavar = "LIST",
      .help =
          "Time these sizes instead of -b to -e: bytes, separated by commas, e.g. 65536,4799528."}},
    {RUNS(BENCH),
     {"iters", 'n', OPTION_INT, FIELD(bench.iters), "0", 0, 1e9,
      .help = "Time N iterations per size, with --back-to-back N series. 0: 20 or more, fewer if "
              "over 2 s, but at least 6."}},
    {RUNS(BENCH),
     {"warmup", 'w', OPTION_INT, FIELD(bench.warmup), "5", 0, 1e9,
      .help = "Run N untimed iterations before the timed ones."}},
    {RUNS(SWEEP),
     {"skew", 0, OPTION_DOUBLE, FIELD(bench.skew_ms), "0", 0, 60000, .metavar = "MS",
      .help = "Delay each rank's start of each operation by up to this, in a fixed random pattern. "
              "Time counts from the last start."}},
    {RUNS(SWEEP),
     {"back-to-back", 0, OPTION_FLAG, FIELD(bench.back_to_back),
      .help = "Time series of 2 to 10 iterations without a barrier between them. A time is that of "
              "a series / its iterations. Default: a barrier before each iteration."}},
    {RUNS(SWEEP),
     {"overlap", 0, OPTION_FLAG, FIELD(bench.overlap),
      .help = "Also measure overlap: repeat each size while the caller waits as long as the "
              "all-reduce took."}},
    {RUNS_IF(SWEEP, reduces, NULL),
     {"via-library", 0, OPTION_FLAG, FIELD(bench.via_library),
      .help =
          "Also time each size through libpsring (common/psring.h), as other programs call it."}},
    {RUNS(SWEEP | MODEL),
     {"probe", 0, OPTION_CHOICE, FIELD(bench.probe), "auto", .choices = probe_words,
      .help = "Measure the TCP throughput of the links first. auto: except on loopback. only: "
              "print hosts and links, then exit."}},
    {RUNS(SWEEP | MODEL),
     {"baselines", 0, OPTION_FLAG, FIELD(bench.baselines),
      .help = "Also measure memory bandwidth, round trips of 4 bytes (ZeroMQ and a socket), TCP "
              "streams, and for each size a server on plain sockets."}},
    {RUNS(ALL),
     {"rendezvous", 0, OPTION_STRING, FIELD(rendezvous), .metavar = "ADDRESS",
      .help = "Start without mpirun: tcp://HOST:PORT, where rank 0 listens and all others connect. "
              "Write an IPv6 address in brackets. Default: torchrun's MASTER_ADDR, MASTER_PORT, "
              "RANK and WORLD_SIZE."}},
    {RUNS(ALL),
     {"rank", 0, OPTION_INT, FIELD(rank), NULL, 0, CONFIG_RANKS_MOST, .metavar = "R",
      .help = "Set the rank of this process, 0 to W - 1. Only with --rendezvous."}},
    {RUNS(ALL),
     {"world-size", 0, OPTION_INT, FIELD(world_size), NULL, 1, CONFIG_RANKS_MOST, .metavar = "W",
      .help = "Set the number of ranks. Only with --rendezvous."}},
    {RUNS(TRAIN),
     {"join", 0, OPTION_STRING, FIELD(elastic.join), .metavar = "ADDRESS,...",
      .help = "Join the running job of these servers (tcp://HOST:PORT, see psring serve), or with "
              "--elastic the job of the worker that listens there.",
      SATELLITE(ELASTIC)}},
    {RUNS(TRAIN),
     {"join-after", 0, OPTION_INT, FIELD(elastic.join_after), "0", 0, 1e12, .metavar = "N",
      .help = "Join only after the job has done N steps. Only with --join.", SATELLITE(ELASTIC)}},
    {RUNS(TRAIN),
     {"leave-after", 0, OPTION_INT, FIELD(elastic.leave_after), "0", 0, 1e12, .metavar = "N",
      .help = "Leave when the job has done N steps. 0: stay to the end. Only with --join or "
              "--elastic.",
      SATELLITE(ELASTIC)}},
    {RUNS(TRAIN),
     {"elastic", 0, OPTION_FLAG, FIELD(elastic.survives),
      .help = "Continue when workers are lost, leave or join, without servers. Only with "
              "--rendezvous or --join, and --backend ring or rhd.",
      SATELLITE(ELASTIC)}},
    {RUNS(AVERAGE | SERVE),
     {"token", 0, OPTION_STRING, FIELD(token), .metavar = "TEXT",
      .help = PSRING_ELASTIC
                  ? "Refuse ranks that do not have the same text. Default: PSRING_TOKEN, else "
                    "(with --join and psring serve) a random text in ~/.psring-token."
                  : "Refuse ranks that do not have the same text. Default: PSRING_TOKEN."}},
    {RUNS(ALL | SERVE),
     {"secure", 0, OPTION_STRING, FIELD(secure), .metavar = "DIR",
      .help = "Encrypt all connections, and refuse processes without the keys in this folder. "
              "psring keys DIR writes it; copy it to all hosts. Not with MPI. Default: "
              "PSRING_SECURE."}},
    {.spec.group = "How to average"},
    {RUNS(AVERAGE),
     {"backend", 0, OPTION_CHOICE, FIELD(backend), "ring", /* .choices: see follow_build */
      .help = PSRING_PREDICT ? "Average gradients by this method. auto: the method that is fastest "
                               "by the fitted model."
                             : "Average gradients by this method.",
      .missing_word = "auto", SATELLITE(PREDICT)}},
    {RUNS(AVERAGE),
     {"cost-model", 0, OPTION_STRING, FIELD(cost_model), .metavar = "FILE",
      .help = "Read the fitted model from this file on rank 0 (psring predict --fit writes it). "
              "Only with --backend auto.",
      SATELLITE(PREDICT)}},
    {RUNS_IF(AVERAGE, uses_transport, "auto"),
     {"transport", 0, OPTION_CHOICE, FIELD(transport), "auto", .choices = transport_words,
      .help =
          "Send messages over this transport. auto: the backend's fastest one (see psring info)."}},
    {RUNS_IF(AVERAGE, uses_servers, "0"),
     {"servers", 0, OPTION_INT, FIELD(servers), NULL, 0, 4096, .metavar = "K",
      .help = "Use K parameter servers. Default: 1. 0 only with --placement mixed."}},
    {RUNS_IF(AVERAGE, uses_servers, NULL),
     {"placement", 0, OPTION_CHOICE, FIELD(placement), "dedicated",
      .choices = config_placement_words,
      .help = "Run servers as K extra ranks (dedicated), as threads in the first K workers "
              "(colocated), or both (mixed). mixed has a server in each worker and K extra ranks, "
              "with shards that load all links equally. switch: as dedicated, where the workers' "
              "links meet, so that no link limits them (vcluster.sh run --in-switch K)."}},
    {RUNS_IF(AVERAGE, obeys_reduce_order, "any"),
     {"reduce-order", 0, OPTION_CHOICE, FIELD(reduce_order), "any",
      .choices = config_reduce_order_words,
      .help = "Add in this order. any: the backend's own. ring: the ring's, so that backends give "
              "the same bits."}},
    {RUNS_IF(AVERAGE, compresses, NULL),
     {"compress", 0, OPTION_CHOICE, FIELD(compress), "none", .choices = compress_names,
      .help = "Send gradients as 16-bit numbers. They are added in float32."}},
    {RUNS_IF(AVERAGE, compresses, NULL),
     {"error-feedback", 0, OPTION_CHOICE, FIELD(error_feedback), "auto", .choices = auto_words,
      .help = "Add the rounding error of --compress to the next step's gradient. auto: on."}},
    {RUNS_IF(AVERAGE, obeys_segment_bytes, NULL),
     {"segment-bytes", 0, OPTION_SIZE, FIELD(segment_bytes), "0", 0, 1 << 30, .metavar = "BYTES",
      .help = "Send messages of this size. 0: derived from the size of the bucket."}},
    {RUNS_IF(AVERAGE, obeys_window, NULL),
     {"push-window", 0, OPTION_INT, FIELD(push_window), "0", 0, 1024,
      .help = "Limit a worker's unanswered chunks at one server. 0: automatic."}},
    {RUNS_IF(AVERAGE, obeys_radix, NULL),
     {"radix", 0, OPTION_INT, FIELD(radix), "2", 2, 65536, .metavar = "R",
      .help = "Exchange with up to R-1 workers at once: N = R^k workers take 2k steps. As many as "
              "workers: two steps."}},
    {RUNS(TRAIN | MODEL),
     {"bucket-mb", 0, OPTION_DOUBLE, FIELD(bucket_mb), "4", 0, 65536, .metavar = "MB",
      .help = "Average gradients in buckets of about this size. 0: one bucket."}},
    {RUNS_IF(SWEEP | MODEL, takes_mpi_algorithm, NULL),
     {"mpi-algorithm", 0, OPTION_CHOICE, FIELD(bench.mpi_algorithm), "default",
      .choices = library_algorithm_names,
      .help = "Choose the algorithm of MPI_Allreduce. Only Open MPI obeys it."}},
    {RUNS_IF(SWEEP | MODEL | TRAIN, takes_nccl_options, NULL),
     {"nccl-algo", 0, OPTION_CHOICE, FIELD(nccl_algo), "ring", .choices = config_nccl_algo_words,
      .help = "Choose the algorithm of NCCL. auto: NCCL chooses. Abort if NCCL's log names another "
              "one."}},
    {RUNS_IF(SWEEP | MODEL | TRAIN, takes_nccl_options, NULL),
     {"nccl-register", 0, OPTION_CHOICE, FIELD(nccl_register), "off", .choices = register_words,
      .help = "Let NCCL use buckets in place. NCCL's guide calls this unsafe: it may hang or crash "
              "on a failure."}},
    {.spec.group = "Consistency"},
    {RUNS_IF(TRAIN, updates_on_server, "bsp"),
     {"sync", 0, OPTION_STRING, FIELD(train.sync), "bsp", .metavar = "bsp|ssp:S|async",
      .help =
          "Choose how far workers may drift apart. bsp: all step together. ssp: at most S steps. "
          "async: no bound, no waiting. With ssp and async the servers run the optimizer."}},
    {RUNS_IF(TRAIN, updates_on_server, "skip"),
     {"late-steps", 0, OPTION_CHOICE, FIELD(train.late_steps), "skip", .choices = late_words,
      .help = "Treat missed steps of a worker that is late by (S + 1)/2 steps (ssp) or 8 (async). "
              "skip: leave them out to catch up. keep: do all, as Ho et al. do with ssp."}},
    {RUNS_IF(TRAIN, updates_on_server, "0"),
     {"backup-workers", 0, OPTION_INT, FIELD(train.backup_workers), "0", 0, 4096, .metavar = "B",
      .help = "End a step without the last B workers. The servers run the optimizer. Only with "
              "--sync bsp."}},
    {RUNS(TRAIN),
     {"straggler", 0, OPTION_STRING, FIELD(train.straggler), .metavar = "RANK:FACTOR",
      .help = "Make worker RANK compute FACTOR times as long, e.g. 3:4."}},
    {.spec.group = "Model and data"},
    {RUNS(TRAIN),
     {"compute", 0, OPTION_STRING, FIELD(train.compute), "real", .metavar = "real|real:MS|paced:MS",
      .help = "Compute, or only wait. paced: wait MS ms per step, with gradients of real size. "
              "real:MS: compute, then wait until MS ms have passed."}},
    {RUNS(TRAIN | LAYERS),
     {"model", 0, OPTION_CHOICE, FIELD(model), "keras-cnn", .choices = cnn_names,
      .help = "Train or time this model."}},
    {RUNS(TRAIN | INFO),
     {"data", 0, OPTION_STRING, FIELD(data), .metavar = "DIR",
      .help = "Read the four IDX files from this folder. Default: PSRING_DATA, or no data with "
              "--compute paced."}},
    {RUNS(TRAIN),
     {"data-threads", 0, OPTION_INT, FIELD(train.data_threads), "0", 0, LOADER_THREADS_MOST,
      .help =
          "Make batches ahead with N threads per rank. 0: make each batch when its step begins."}},
    {RUNS(TRAIN),
     {"prefetch-batches", 0, OPTION_INT, FIELD(train.prefetch_batches), "0", 0, LOADER_DEPTH_MOST,
      .metavar = "DEPTH",
      .help = "Make up to DEPTH batches ahead. 0: two for each of --data-threads."}},
    {RUNS(TRAIN),
     {"augment", 0, OPTION_STRING, FIELD(train.augment), "none",
      .metavar = "shift:PIXELS,rotate:DEGREES",
      .help = "Shift and rotate each training image by up to these amounts, differently in each "
              "epoch."}},
    {RUNS(TRAIN),
     {"epochs", 0, OPTION_INT, FIELD(epochs), "2", 1, 100000,
      .help = "Train for N passes over the data."}},
    {RUNS(TRAIN),
     {"epochs-divided", 0, OPTION_FLAG, FIELD(train.epochs_divided),
      .help = "Divide --epochs by the number of workers, rounded up."}},
    {RUNS(REAL),
     {"last-batch", 0, OPTION_CHOICE, FIELD(train.last_batch), "drop", .choices = last_batch_words,
      .help = "Treat the last images of an epoch if they fill no whole step. drop: leave them out. "
              "partial: one smaller step."}},
    {RUNS(REAL),
     {"no-shard", 0, OPTION_FLAG, FIELD(train.no_shard),
      .help = "Give each worker all the data in an epoch, in its own order, instead of a share."}},
    {RUNS(TRAIN),
     {"steps", 0, OPTION_INT, FIELD(train.steps), "0", 0, 1e12,
      .help = "End after N steps in total. 0: after --epochs."}},
    {RUNS(TRAIN | LAYERS),
     {"batch", 0, OPTION_INT, FIELD(batch), "32", 1, CONFIG_BATCH_MOST,
      .help = "Use N images per step and worker."}},
    {RUNS(TRAIN),
     {"global-batch", 0, OPTION_INT, FIELD(train.global_batch), "0", 0, 1e9,
      .help =
          "Use N images per step for all workers together, instead of --batch. 0: use --batch."}},
    {RUNS(TRAIN),
     {"seed", 0, OPTION_INT, FIELD(seed), "1", 0, 9e15,
      .help = "Seed parameters, shuffling and dropout. The same seed gives the same run."}},
    {RUNS(TRAIN),
     {"virtual-workers", 0, OPTION_INT, FIELD(train.virtual_workers), "0", 0, 4096,
      .help = "Play N workers in turn in this process. Only with --backend none."}},
    {.spec.group = "Learning"},
    {RUNS(REAL),
     {"recipe", 0, OPTION_STRING, FIELD(learning.recipe),
      .metavar = "keras-horovod|large-batch|lars-8192|list",
      .help =
          "Set several options, except those that are given. list: print what each recipe sets."}},
    {RUNS(REAL | LAYERS),
     {"optimizer", 0, OPTION_CHOICE, FIELD(learning.optimizer), "sgd",
      .choices = optimizer_kind_names, .help = "Update parameters with this optimizer."}},
    {RUNS(REAL),
     {"momentum", 0, OPTION_DOUBLE, FIELD(learning.momentum), "0.9", 0, 0.99999, .metavar = "M",
      .help = "Set the momentum. Only with --optimizer sgd or lars."}},
    {RUNS(REAL),
     {"nesterov", 0, OPTION_FLAG, FIELD(learning.nesterov),
      .help = "Use Nesterov's momentum. Only with --optimizer sgd."}},
    {RUNS(REAL),
     {"beta1", 0, OPTION_DOUBLE, FIELD(learning.beta1), "0.9", 0, 0.99999, .metavar = "BETA",
      .help = "Set the decay of the first moment. Only with --optimizer adam."}},
    {RUNS(REAL),
     {"beta2", 0, OPTION_DOUBLE, FIELD(learning.beta2), "0.999", 0, 0.9999999, .metavar = "BETA",
      .help = "Set the decay of the second moment. Only with --optimizer adam."}},
    {RUNS(REAL),
     {"epsilon", 0, OPTION_DOUBLE, FIELD(learning.epsilon), "0", 0, 1, .metavar = "E",
      .help = "Add this to divisors, to keep them above 0. 0: 1e-10 (adagrad), 1e-7 (adadelta) or "
              "1e-8 (adam). Only with these."}},
    {RUNS(REAL),
     {"lars-coefficient", 0, OPTION_DOUBLE, FIELD(learning.lars_coefficient), "0.02", 1e-9, 1000,
      .metavar = "COEFFICIENT",
      .help =
          "Set the ratio of a tensor's step to the tensor's norm. Only with --optimizer lars."}},
    {RUNS(REAL),
     {"weight-decay", 0, OPTION_DOUBLE, FIELD(learning.weight_decay), "0", 0, 1, .metavar = "DECAY",
      .help = "Add L2 weight decay to the gradient (with lars not for biases)."}},
    {RUNS(REAL),
     {"lr", 0, OPTION_DOUBLE, FIELD(learning.lr), "0", 0, 1000, .metavar = "RATE",
      .help = "Set the highest learning rate, before --lr-scale. 0: derived from the optimizer and "
              "the images per step."}},
    {RUNS(REAL),
     {"lr-scale", 0, OPTION_CHOICE, FIELD(learning.lr_scale), "auto", .choices = lr_scale_names,
      .help = "Multiply --lr by the number of workers (linear) or its square root (sqrt). auto: "
              "use --lr as given; without --lr, derive it from the images of all workers."}},
    {RUNS(REAL),
     {"lr-schedule", 0, OPTION_CHOICE, FIELD(learning.lr_schedule), "linear",
      .choices = lr_shape_names,
      .help = "Change the rate after the warm-up. linear and cosine: fall to 0. step: x 0.1 at "
              "1/3, 2/3 and 8/9 of the run."}},
    {RUNS(REAL),
     {"warmup-epochs", 0, OPTION_DOUBLE, FIELD(learning.warmup_epochs), NULL, 0, 1000,
      .metavar = "E",
      .help = "Raise the rate step by step over E epochs, from one worker's rate (--lr-scale) or "
              "from 0. Default: 60 steps, but at most a fifth of the run."}},
    {RUNS(REAL),
     {"target-accuracy", 0, OPTION_DOUBLE, FIELD(train.target_accuracy), "0", 0, 100,
      .metavar = "PERCENT",
      .help = "End at the first test with this accuracy. Also test at each report. 0: no target."}},
    {.spec.group = "Device"},
    {RUNS(TRAIN | BENCH),
     {"device", 0, OPTION_CHOICE, FIELD(device), "cpu", .choices = device_kind_names,
      .help = "Compute on this device."}},
    {RUNS(TRAIN | BENCH),
     {"share-gpu", 0, OPTION_FLAG, FIELD(share_gpu),
      .help = "Let several ranks share a GPU. Results are right, but times are those of "
              "time-slicing."}},
    {RUNS(TRAIN),
     {"tf32", 0, OPTION_FLAG, FIELD(tf32),
      .help =
          "Multiply with 10 bits of mantissa on tensor cores: faster, less exact. Only on GPUs."}},
    {RUNS(TRAIN),
     {"cuda-graph", 0, OPTION_CHOICE, FIELD(graph), "auto", .choices = auto_words,
      .help = "Launch each step as one CUDA graph. auto: with --backend none. Only on GPUs."}},
    {RUNS(TRAIN | LAYERS),
     {"threads", 0, OPTION_INT, FIELD(threads), "1", 0, 1024,
      .help = "Compute with N threads per rank. 0: the machine's cores, divided among its ranks."}},
    {RUNS(TRAIN | BENCH),
     {"pin", 0, OPTION_FLAG, FIELD(pin),
      .help = "Bind each rank to its part of the cores. Default: as the launcher bound it."}},
    {.spec.group = "Checkpoints"},
    {RUNS(SERVE),
     {"checkpoint", 0, OPTION_STRING, FIELD(elastic.checkpoint), .metavar = "DIR",
      .help = "Keep the job in DIR. Started again with the same command, this server continues its "
              "job. Give all servers this option, each with its own folder. The job then waits for "
              "lost servers and workers, at most for --startup-timeout."}},
    {RUNS(SERVE),
     {"checkpoint-steps", 0, OPTION_INT, FIELD(elastic.checkpoint_steps), "1000", 0, 1e9,
      .help = "Save the weights every N steps, and whenever workers change. Only these are left if "
              "the workers are lost, too. 0: only when workers change."}},
    {RUNS(TRAIN),
     {"checkpoint", 0, OPTION_STRING, FIELD(train.checkpoint), .metavar = "DIR",
      .help = "Save the training state in DIR after every epoch, and when SIGTERM, SIGINT or "
              "SIGUSR1 stops the run (exit code 75)."}},
    {RUNS(TRAIN),
     {"keep-checkpoints", 0, OPTION_INT, FIELD(train.keep_checkpoints), "2", 1, 1000000,
      .help = "Keep the newest N checkpoints."}},
    {RUNS(TRAIN),
     {"checkpoint-steps", 0, OPTION_INT, FIELD(train.checkpoint_steps), "0", 0, 1e9,
      .help = "Also save every N steps. 0: only after each epoch."}},
    {RUNS(TRAIN),
     {"resume", 0, OPTION_CHOICE, FIELD(train.resume), "off", .choices = resume_words,
      .bare = "auto", .metavar = "must|extend",
      .help = "Continue from the newest checkpoint, if there is one, with the same bits. must: "
              "fail without one. extend: run for more --steps or --epochs. Another number of "
              "workers gives other bits."}},
    {.spec.group = "Network"},
    {RUNS(SERVE),
     {"timeout", 0, OPTION_DOUBLE, FIELD(timeout), "30", 0.1, 86400, .metavar = "SECONDS",
      .help = "Drop a worker that is silent or blocks others for longer than this. The other "
              "workers continue."}},
    {RUNS(TRAIN | BENCH | SERVE),
     {"subnet", 0, OPTION_STRING, FIELD(subnet), .metavar = "NAME|NETWORK",
      .help = "Listen on this interface or in this network: eth0, 10.0.0.0/24, fd00::/64. Default: "
              "PSRING_BIND_SUBNET, else the address that reaches rank 0."}},
    {RUNS(TRAIN | BENCH),
     {"timeout", 0, OPTION_DOUBLE, FIELD(timeout), "30", 0.1, 86400, .metavar = "SECONDS",
      .help = "Abort if a rank is silent or blocks others for longer than this."}},
    {RUNS(TRAIN | BENCH | SERVE),
     {"stall-warning", 0, OPTION_DOUBLE, FIELD(stall_warning), "10", 0, 86400, .metavar = "SECONDS",
      .help =
          "Warn about a rank that blocks others for this long (at least 3 s). 0: no warnings."}},
    {RUNS(ALL | SERVE),
     {"startup-timeout", 0, OPTION_DOUBLE, FIELD(startup_timeout), "60", 0.1, 86400,
      .metavar = "SECONDS",
      .help = "Abort if the ranks need longer than this to meet, open their files and connect."}},
    {RUNS(TRAIN | BENCH),
     {"network", 0, OPTION_STRING, FIELD(network), .metavar = "LABEL",
      .help =
          "Name the network in result rows. Default: PSRING_NETWORK, else loopback or N-hosts."}},
    {RUNS(TRAIN | BENCH),
     {"link-rate", 0, OPTION_RATE, FIELD(link_rate), "0", 0, 1e15, .metavar = "RATE",
      .help = "Set the rate of a host's link in each direction: 200mbit, or bits/s. Default: "
              "PSRING_LINK_BITS. 0: unknown."}},
    {RUNS(SWEEP | MODEL | PREDICT),
     {"racks", 0, OPTION_STRING, FIELD(racks), .metavar = "RANKS:FACTOR",
      .help = "Count the bytes between racks of so many ranks each, and expect uplinks that are "
              "FACTOR times slower than a rack's links together. Default: PSRING_RACKS."}},
    {.spec.group = "Output"},
    {RUNS(PREDICT),
     {"csv", 0, OPTION_STRING, FIELD(csv), .metavar = "FILE",
      .help = "Append predicted and measured times to this CSV file, one row for each pair. Only "
              "with --fit."}},
    {RUNS(TRAIN),
     {"metrics", 0, OPTION_STRING, FIELD(train.metrics), .metavar = "FILE",
      .help = "Append a CSV row per epoch (and per --log-steps)."}},
    {RUNS(TRAIN),
     {"log-steps", 0, OPTION_INT, FIELD(train.log_steps), "0", 0, 1e9,
      .help = "Also report every N steps. 0: only after each epoch."}},
    {RUNS(TRAIN),
     {"timeline", 0, OPTION_STRING, FIELD(train.timeline), .metavar = "FILE",
      .help = "Write where the time of all ranks went, for https://ui.perfetto.dev and psring "
              "trace. A failed run leaves the file empty.",
      SATELLITE(TRACE)}},
    {RUNS(TRAIN),
     {"timeline-steps", 0, OPTION_STRING, FIELD(train.timeline_steps), .metavar = "FIRST:LAST",
      .help =
          "Record these steps of this run, counted from 1. Default: 1:100. Only with --timeline.",
      SATELLITE(TRACE)}},
    {RUNS(SWEEP | MODEL),
     {"require-efficiency", 0, OPTION_DOUBLE, FIELD(bench.require_efficiency), "0", 0, 100,
      .metavar = "SHARE",
      .help = "End with exit code 1 if a row's efficiency is below this (e.g. 0.9) or unknown. 0: "
              "no requirement."}},
    {RUNS(BENCH | INFO),
     {"json", 0, OPTION_STRING, FIELD(json), .metavar = "FILE",
      .help =
          "Write results, configuration and machine as JSON. -: write to stdout (psring info)."}},
    {RUNS(BENCH),
     {"csv", 0, OPTION_STRING, FIELD(csv), .metavar = "FILE",
      .help = "Append result rows as CSV. experiments/bench/README.md explains the columns."}},
    {RUNS(ALL | SERVE | PREDICT),
     {"verbose", 'v', OPTION_FLAG, FIELD(verbose), .help = "Print more details on stderr."}},
};

/* Adapts an option to the build: hides options that the build lacks, fills in the names of
 * backends, and adds to the help which backends obey the option. */
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
    int length = snprintf(table->help[at], sizeof table->help[at], "%s For %s.", spec->help,
                          backends_that(ability, names, sizeof names));
    CHECK(length > 0 && (size_t)length < sizeof table->help[at]);
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

/* Options that had other names. `now` may be a word of a choice. */
static const struct option_renamed renamed[] = {
    {"server", "join"},
    {"consistency", "sync"},
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
     "Train a CNN data-parallel: in one process, or on all ranks of mpirun or --rendezvous.\n"
     "Example: mpirun -n 4 psring train --backend ring --data DIR"},
    {CONFIG_BENCH, "psring bench",
     "Time the averaging of vectors by size, on the ranks of mpirun or --rendezvous. Check every "
     "element.\n"
     "Example: mpirun -n 5 psring bench --backend ps --servers 1 --csv bench.csv"},
    {CONFIG_SERVE, "psring serve",
     "Run a parameter server that workers join and leave (psring train --join), without MPI.\n"
     "Example: psring serve --listen tcp://10.0.0.1:29600 --workers 2"},
    {CONFIG_INFO, "psring info",
     "List what this build and this machine have.\n"
     "Example: psring info --json info.json"},
    {CONFIG_PREDICT, "psring predict",
     "Fit the cost model to measurements, and predict times that were not measured.\n"
     "Example: psring predict --fit bench.csv --workers 64 --rate 25gbit"},
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
