/* The options of commands that run apart from ranks, and of no other: serve and predict. And what
 * vendors' libraries are told. */
#include "experiments/config/config_table.h"

#include "ring/baselines/baselines.h"

#define FIELD(name) .offset = offsetof(struct config, name)
#define SERVE CONFIG_SERVE, 0, NULL
#define PREDICT CONFIG_PREDICT, 0, NULL

const struct config_row config_apart_rows[] = {
    {SERVE,
     {"listen", 0, OPTION_STRING, FIELD(listen), "tcp://127.0.0.1:29600", .metavar = "ADDRESS",
      .help = "tcp://HOST:PORT, where workers join: HOST is a name or an address of this host, "
              "an IPv6 address in brackets."}},
    {SERVE,
     {"workers", 0, OPTION_INT, FIELD(workers), "1", 1, 1000,
      .help = "Training begins when N workers are there, and goes on with those who are."}},
    {SERVE,
     {"min-workers", 0, OPTION_INT, FIELD(min_workers), "1", 1, 1000,
      .help = "With fewer it stands still until others join."}},
    {SERVE,
     {"timeout", 0, OPTION_DOUBLE, FIELD(timeout), "30", 0.1, 86400, .metavar = "SECONDS",
      .help = "A worker that keeps others waiting, or is silent, for longer is lost: the others go "
              "on without it."}},
    {PREDICT,
     {"fit", 0, OPTION_STRING, FIELD(fit), .metavar = "FILE,...",
      .help =
          "Fits the model to these bench.csv, or to those in these folders, and prints predicted "
          "beside measured times."}},
    {PREDICT,
     {"hold-out", 0, OPTION_STRING, FIELD(hold_out), "auto", .metavar = "auto|none|CONDITION,...",
      .help = "Rows to predict without fitting them: workers=N, servers=N, bytes=N, "
              "placement=WORD; auto: every second number of workers and size between others."}},
    {PREDICT,
     {"cost-model", 0, OPTION_STRING, FIELD(cost_model), .metavar = "FILE",
      .help = "The fitted model, model.json: written with --fit, else read."}},
    {PREDICT,
     {"workers", 0, OPTION_INT, FIELD(workers), "0", 0, 4096,
      .help = "Predicts what averaging among N workers takes; 0: nothing is predicted."}},
    {PREDICT,
     {"spare", 0, OPTION_INT, FIELD(spare), "0", 0, 4096, .metavar = "K",
      .help = "Machines beside the workers', which servers could have."}},
    {PREDICT,
     {"rate", 0, OPTION_RATE, FIELD(rate), "0", 0, 1e15, .metavar = "RATE",
      .help = "Each way of a machine's link: 25gbit, or bits/s; each process then has a machine of "
              "its own. 0: the network that was measured."}},
    {PREDICT,
     {"latency", 0, OPTION_DOUBLE, FIELD(latency), "0", 0, 10, .metavar = "SECONDS",
      .help = "What that network adds to a message, beyond the one that was measured."}},
    {PREDICT,
     {"sizes", 0, OPTION_STRING, FIELD(sizes), "65536,1048576,4799528,25600000", .metavar = "LIST",
      .help = "Bytes of the vectors that --workers average, with commas between."}},
    {PREDICT,
     {"train", 0, OPTION_STRING, FIELD(trained), .metavar = "FILE,...",
      .help = "Shows predicted beside the measured steps of --compute paced in these train.csv, or "
              "in those of these folders."}},
    {PREDICT,
     {"model", 0, OPTION_STRING, FIELD(trains), .metavar = "NAME",
      .help = "Predicts training steps of --workers, too, for this model of psring train (--model) "
              "or bench (--model-gradients)."}},
    {PREDICT,
     {"compute-ms", 0, OPTION_DOUBLE, FIELD(compute_ms), "0", 0, 3.6e6, .metavar = "MS",
      .help = "How long forward and backward of such a step take (psring bench --compute)."}},
    {PREDICT,
     {"batch", 0, OPTION_INT, FIELD(batch), "32", 1, CONFIG_BATCH_MOST,
      .help = "Images a step, per worker."}},
    {PREDICT,
     {"images", 0, OPTION_DOUBLE, FIELD(images), "60000", 1, 1e15,
      .help = "Images of an epoch; MNIST has 60000."}},
    {PREDICT,
     {"epochs", 0, OPTION_INT, FIELD(epochs), "1", 1, 100000,
      .help = "Epochs that the wanted accuracy takes."}},
    {PREDICT,
     {"bucket-mb", 0, OPTION_DOUBLE, FIELD(bucket_mb), "4", 0, 65536, .metavar = "MB",
      .help = "Gradients travel in buckets of this size, while others are computed; 0: in one."}},
    {PREDICT,
     {"cost-per-hour", 0, OPTION_DOUBLE, FIELD(cost_per_hour), "0", 0, 1e9, .metavar = "COST",
      .help = "Of a machine, for the advice that --model brings; 0: not known."}},
    {PREDICT,
     {"csv", 0, OPTION_STRING, FIELD(csv), .metavar = "FILE",
      .help = "Appends predicted beside measured times, a row each, as CSV."}},
    {PREDICT,
     {"seed", 0, OPTION_INT, FIELD(seed), "1", 0, 9e15,
      .help = "Of the intervals' resampling; the same seed gives the same intervals."}},
};

const size_t config_apart_row_count = sizeof config_apart_rows / sizeof *config_apart_rows;

const char *const config_nccl_algo_words[] = {"ring", "tree", "auto", NULL};
/* enum config_nccl_register */
static const char *const register_words[] = {"off", "on", NULL};

#define LIBRARY(runs, ability) runs, offsetof(struct backend, ability), NULL
#define BENCHES (CONFIG_RUN_SWEEP | CONFIG_RUN_MODEL)

const struct config_row config_vendor_rows[] = {
    {LIBRARY(BENCHES, takes_mpi_algorithm),
     {"mpi-algorithm", 0, OPTION_CHOICE, FIELD(mpi_algorithm), "default",
      .choices = library_algorithm_names,
      .help = "What MPI_Allreduce uses (only Open MPI obeys)."}},
    {LIBRARY(BENCHES | CONFIG_TRAIN, takes_nccl_options),
     {"nccl-algo", 0, OPTION_CHOICE, FIELD(nccl_algo), "ring", .choices = config_nccl_algo_words,
      .help = "What NCCL uses; auto: its own choice. By its log, another one ends the run."}},
    {LIBRARY(BENCHES | CONFIG_TRAIN, takes_nccl_options),
     {"nccl-register", 0, OPTION_CHOICE, FIELD(nccl_register), "off", .choices = register_words,
      .help =
          "on: NCCL may use buckets in place. Its guide: unsafe, may hang or crash on failure."}},
};

const size_t config_vendor_row_count = sizeof config_vendor_rows / sizeof *config_vendor_rows;
