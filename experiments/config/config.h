/*
 * The configuration of a run: one struct, with one for each command in it, filled and validated
 * once, from one option table that also prints --help and goes, complete, into every result file.
 * The only reader of the environment: PSRING_DATA, PSRING_NETWORK, PSRING_LINK_BITS and
 * PSRING_BIND_SUBNET are defaults of
 * --data, --network, --link-rate and --subnet (experiments/vcluster.sh exports the last three).
 * MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE, as torchrun sets them, stand for --rendezvous,
 * --rank and --world-size.
 */
#ifndef PSRING_EXPERIMENTS_CONFIG_CONFIG_H
#define PSRING_EXPERIMENTS_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/comm/backend.h"
#include "common/data/augment.h"
#include "common/device/device.h"
#include "common/net/transport/transport.h"
#include "common/net/world.h"

/*
 * Which GPU a rank takes. Ranks of one machine share its GPUs, whatever their hosts are called: the
 * namespaces and containers of a machine are hosts of their own, its GPUs are not. A GPU is known
 * by its PCI bus id, because its number differs between processes: a launcher that binds one GPU to
 * each task (srun --gpus-per-task=1) lets every rank see another GPU as number 0.
 */

/* What one rank says of itself. Plain data: ranks exchange it. */
struct gpu_view {
    int machine;                                    /* equal numbers: the same machine */
    bool wanted;                                    /* the rank computes on a GPU */
    int count;                                      /* GPUs that it sees */
    char ids[DEVICE_GPUS_MAX][DEVICE_GPU_ID_BYTES]; /* by their numbers in that process */
    char host[64];
};

/*
 * index[r]: the number, as rank r sees it, of the GPU that it takes; -1 if it wants none or none is
 * left. Pure, and the same on all ranks. Each GPU has one rank at most; where all ranks of a
 * machine see the same GPUs, they take them in the order of ranks. With `share`, ranks that are
 * left get the GPU that the fewest have. *without: the first rank that wants a GPU and has none, or
 * -1. Fails only without memory.
 */
enum status gpus_place(const struct gpu_view *views, int ranks, bool share, int *index,
                       int *without);

/*
 * Collective over the world: this rank's number of its GPU in *index. `wanted` as in gpu_view. All
 * ranks fail alike, with STATUS_UNSUPPORTED, where one is left without; rank 0 logs it.
 */
enum status gpus_choose(struct world *world, bool wanted, bool share, int *index);

/* Bits: a row of the option table carries the runs that obey it. */
enum config_run {
    CONFIG_RUN_REAL = 1,   /* train */
    CONFIG_RUN_PACED = 2,  /* train --compute paced: trains nothing */
    CONFIG_RUN_SWEEP = 4,  /* bench: computes nothing */
    CONFIG_RUN_LAYERS = 8, /* bench --layers: exchanges nothing */
    CONFIG_RUN_INFO = 16,
    CONFIG_RUN_MODEL = 32, /* bench --model-gradients: waits instead of computing */
    CONFIG_RUN_SERVE = 64,
    CONFIG_RUN_PREDICT = 128,
};

enum config_command {
    CONFIG_TRAIN = CONFIG_RUN_REAL | CONFIG_RUN_PACED,
    CONFIG_BENCH = CONFIG_RUN_SWEEP | CONFIG_RUN_LAYERS | CONFIG_RUN_MODEL,
    CONFIG_INFO = CONFIG_RUN_INFO,
    CONFIG_SERVE = CONFIG_RUN_SERVE,
    CONFIG_PREDICT = CONFIG_RUN_PREDICT,
};

/* Of --transport: auto, or an enum transport_kind and 1. */
enum config_transport { CONFIG_TRANSPORT_AUTO, CONFIG_TRANSPORT_MPI = 1 + TRANSPORT_MPI };

enum config_last_batch { CONFIG_LAST_BATCH_DROP, CONFIG_LAST_BATCH_PARTIAL };

enum config_late { CONFIG_LATE_SKIP, CONFIG_LATE_KEEP };

enum config_feedback { CONFIG_FEEDBACK_AUTO, CONFIG_FEEDBACK_ON, CONFIG_FEEDBACK_OFF };

enum config_nccl_algo { CONFIG_NCCL_RING, CONFIG_NCCL_TREE, CONFIG_NCCL_AUTO };
enum config_nccl_register { CONFIG_NCCL_REGISTER_OFF, CONFIG_NCCL_REGISTER_ON };

enum { CONFIG_KEEP = 2 }; /* --keep-checkpoints, where it is not given */

/* --resume: where there is no checkpoint yet, auto starts anew, must refuses; extend is must, for
 * another number of steps. */
enum config_resume {
    CONFIG_RESUME_OFF,
    CONFIG_RESUME_AUTO,
    CONFIG_RESUME_MUST,
    CONFIG_RESUME_EXTEND
};

enum config_probe { CONFIG_PROBE_AUTO, CONFIG_PROBE_ON, CONFIG_PROBE_OFF, CONFIG_PROBE_ONLY };

/* The network of rows that were taken with several processes on one GPU: it does them in turns, and
 * so their times say nothing of a network. */
#define CONFIG_TIME_SLICING "time-slicing"

enum {
    CONFIG_NETWORK_BYTES = 64,
    CONFIG_SERVERS_NOT_GIVEN = -1,
    CONFIG_RANK_NOT_GIVEN = -1,
    CONFIG_RANKS_MOST = 65535,
    CONFIG_BATCH_MOST = 65536
};

/* What --backend auto has come to. */
struct config_pick {
    int backend, transport, servers, placement; /* as in struct config */
    double bucket_mb;
};

/* Choices are ints (an index into their words), strings are borrowed from argv or the environment.
 */
enum { CONFIG_SIZES_MOST = 32 };

/* What one command, or one part of them, reads. */

/* psring serve, and train --join: an elastic job. */
struct config_elastic {
    const char *join; /* "tcp://HOST:PORT[,...]": the job's servers; NULL: the run is no such job */
    int64_t join_after, leave_after; /* steps; 0: at once, never */
    const char *listen;              /* "tcp://HOST:PORT", where `psring serve` does */
    int64_t workers, min_workers;    /* to begin with, to go on with */
};

struct config_train {
    const char *compute; /* as given: "real", "real:MS" or "paced:MS" */
    bool paced;          /* from `compute` */
    double paced_ms;     /* forward and backward together, per step */
    double real_ms;      /* the same, at least, of "real:MS"; else 0 */

    /* Consistency. */
    const char *sync; /* as given: "bsp", "ssp:S" or "async" */
    int late_steps;   /* enum config_late */
    int64_t backup_workers;
    const char *straggler; /* "RANK:FACTOR"; NULL: none */
    int straggler_rank;    /* from `straggler`; -1: none */
    double straggler_factor;

    /* Data. */
    int64_t data_threads, prefetch_batches; /* common/data/loader.h; prefetch 0: two for each */
    const char *augment;                    /* as given */
    struct augmentation augmentation;       /* from `augment` */
    int64_t steps;
    bool epochs_divided;     /* `epochs` are those of all workers together */
    int last_batch;          /* enum config_last_batch */
    bool no_shard;           /* an epoch is all the data for each worker, not its share */
    int64_t global_batch;    /* of all workers; 0: `batch` for each */
    int64_t virtual_workers; /* 0: not asked for */

    const char *checkpoint;
    int64_t keep_checkpoints;
    int64_t checkpoint_steps; /* 0: one an epoch */
    int resume;               /* enum config_resume */

    const char *metrics;
    int64_t log_steps;      /* 0: a row per epoch */
    double target_accuracy; /* per cent; 0: none */
    const char *timeline;
    const char *timeline_steps;            /* "FIRST:LAST", as given */
    uint64_t timeline_first, timeline_end; /* from that: of this run, from 0, before `end` */
};

/* How train learns, and which optimizer bench --layers times: experiments/config/learning.h. */
struct config_learning {
    const char *recipe; /* experiments/config/config_table.h; NULL: none */
    int optimizer;      /* enum optimizer_kind */
    double momentum, beta1, beta2, epsilon, lars_coefficient, weight_decay;
    bool nesterov;
    double lr;            /* 0: lr_default, models/lr.h */
    int lr_scale;         /* enum lr_scale */
    int lr_schedule;      /* enum lr_shape */
    double warmup_epochs; /* below 0: not given */
};

struct config_bench {
    uint64_t min_bytes, max_bytes; /* without config.sizes */
    double factor;
    int64_t iters; /* 0: bench_auto_iters, experiments/bench/measure.h */
    int64_t warmup;
    double skew_ms;            /* the most that a rank is late, experiments/bench/connect.h */
    double require_efficiency; /* of every row; 0: nothing is required */
    int probe;                 /* enum config_probe */
    int model_gradients;       /* enum published, models/published.h */
    bool sync_step;            /* such a step waits for its buckets, gradient_sync.h */
    bool layers;               /* times layers, experiments/bench/bench.h */
    bool overlap;      /* measures again while the caller computes, experiments/bench/bench.h */
    bool via_library;  /* measures libpsring, too, experiments/bench/connect.h */
    bool baselines;    /* measures those of the machine, experiments/bench/baselines.h */
    int mpi_algorithm; /* enum library_algorithm */
};

/* experiments/predict */
struct config_predict {
    const char *fit;      /* bench.csv files with commas between; NULL: none */
    const char *hold_out; /* as given: "auto", "none" or conditions */
    int64_t workers;      /* that average; 0: nothing is predicted */
    int64_t spare;        /* machines beside those of `workers` */
    const char *trained;  /* train.csv files with commas between; NULL: none */
    const char *trains;   /* --model of predict; NULL: no training is predicted */
    double images;        /* of an epoch */
    double cost_per_hour; /* of a machine; 0: not known */
    double rate, latency; /* bits/s, 0: as fitted; seconds that are added to a message */
};

/* What several commands read, and the structs above. */
struct config {
    enum config_command command;
    struct config_elastic elastic;
    struct config_train train;
    struct config_learning learning;
    struct config_bench bench;
    struct config_predict predict;

    /* Who takes part: common/net/world.h. */
    const char *rendezvous;   /* "tcp://HOST:PORT", where rank 0 listens; NULL: MPI's launcher */
    int64_t rank, world_size; /* of this process, of all; with `rendezvous` only */
    const char
        *token; /* that the ranks of a job share; NULL in an elastic job: in the user's home */

    /* Who averages, and how. */
    int backend;     /* index into backend_choices(), experiments/config/backends.h */
    int transport;   /* enum config_transport */
    int64_t servers; /* as given, with mixed placement the spare ones; 0 for others than ps */
    int placement;   /* enum placement */
    struct consistency consistency; /* from train.sync, late_steps and backup_workers */
    int reduce_order;               /* enum reduce_order */
    uint64_t segment_bytes;         /* 0: chosen from the message */
    int64_t push_window;            /* chunks unanswered by a server; 0: chosen */
    int compress;                   /* enum compress, common/comm/compress.h */
    int error_feedback;             /* enum config_feedback; auto: on if something is compressed */
    double bucket_mb;
    int nccl_algo;     /* enum config_nccl_algo */
    int nccl_register; /* enum config_nccl_register */
    int library_log;   /* not an option: comm_library.log; 0 until config_resolve */
    bool placement_given, bucket_given; /* not options: whether argv has them */
    const char *cost_model; /* model.json: of predict, written with `fit`, else read; of --backend
                             * auto rank 0's. NULL: none */

    /* The network. */
    const char *subnet;     /* --subnet: a name or a network; NULL: chosen */
    double timeout;         /* seconds */
    double startup_timeout; /* seconds; until ranks have met and connected */
    double stall_warning;   /* seconds; 0: none */
    const char *network;    /* label of the result rows; NULL until config_resolve */
    double link_rate;       /* bits per second of one direction of a host's link; 0: unknown */

    /* What computes. */
    int device;     /* enum device_kind */
    bool tf32;      /* products at lower precision, device_options.tf32 */
    int graph;      /* enum device_graph */
    int conv;       /* enum device_conv */
    bool share_gpu; /* several processes may have one GPU; results are labelled time-slicing */
    int gpu;        /* not an option: of this rank, -1: it uses none; config_resolve */
    int64_t threads;
    bool pin; /* binds each rank to cores of its own, common/net/host.h */

    /* What is trained, timed or predicted. */
    int model;        /* index into cnn_names, models/cnn.h */
    const char *data; /* NULL: not named; paced, that is also where only PSRING_DATA is */
    int64_t epochs, seed;
    int64_t batch;     /* per worker; with train.global_batch only after config_resolve */
    double compute_ms; /* forward and backward of a step that bench waits for or predict predicts */
    const char *sizes; /* of bench and predict; NULL: from bench.min_bytes to max_bytes */
    uint64_t size_list[CONFIG_SIZES_MOST]; /* what `sizes` says */
    size_t size_count;                     /* 0: `sizes` is NULL */
    const char *json, *csv;

    /* What satellites do for the commands. NULL: this program has no such satellite. `choose` is
     * asked in config_resolve, of all ranks, where --backend auto fills in `picks`. `recorder` is
     * that of --timeline (experiments/train/train.h). */
    enum status (*choose)(struct config *config, struct world *world);
    const struct timeline_recorder *recorder;
    struct config_pick *picks; /* (pick_count): of bench by size, else one; owned, NULL: not auto */
    size_t pick_count;

    bool verbose;
    char network_text[CONFIG_NETWORK_BYTES];
    char rendezvous_text[300];
};

/*
 * Fills `config` from the environment and argv[1..] (argv[0] is the subcommand's name) and checks
 * that the values go together. STATUS_USAGE has been logged. With --help, prints it and sets
 * *helped; then `config` is not to be used. Sets the log's level. STATUS_UNSUPPORTED: this build
 * does not have the backend.
 */
enum status config_parse(enum config_command command, int argc, char **argv, struct config *config,
                         bool *helped);

/* Calls `visit` for every option of the command with its value as text, in table order. */
void config_visit(const struct config *config,
                  void (*visit)(void *context, const char *name, const char *value), void *context);

/*
 * Collective. Checks that all ranks have the same command and options, where they must, and that
 * these suit as many ranks. With --backend auto, the first pick takes its place. Fills in what
 * depends on where they run: the label of the network, if none was given, is "loopback" on one
 * host, else "N-hosts"; with --share-gpu it is CONFIG_TIME_SLICING whatever was given. Sets the
 * environment of the backend's library, which has made no call yet. `config` must then stay where
 * it is. STATUS_USAGE: on all ranks alike, logged by rank 0; or on those whose options are not rank
 * 0's, logged by each.
 */
enum status config_resolve(struct config *config, struct world *world);

bool config_is_auto(const struct config *config);
/* The pick in the place of what was given. */
void config_apply(struct config *config, const struct config_pick *pick);
void config_free(struct config *config);

/* The number-th address of config->elastic.join into `text`; false: there is none. */
bool config_server(const struct config *config, int number, char *text, size_t size);

/* Whether bench measures the link's rate first; auto: where there is a link to measure, because
 * there are several hosts or the user names a rate. Never for a rank alone. */
bool config_probes(const struct config *config, const struct world *world);

/*
 * Calls `visit` for every parameter of Open MPI in the environment (OMPI_MCA_NAME, which is also
 * how mpirun hands on its --mca) that says how messages travel: `name` is NAME.
 */
void config_visit_mca(void (*visit)(void *context, const char *name, const char *value),
                      void *context);

/* How this rank's device is opened, but for its threads (1). */
void config_device_options(const struct config *config, struct device_options *options);

/* What averages. */
const struct backend *config_backend(const struct config *config);

/* Everything of `options` but the longest bucket and the device, which are the caller's. */
void config_comm_options(const struct config *config, const struct backend *backend,
                         struct comm_options *options);

/* Threads that compute on this rank: --threads, or its share of the machine's cores. */
int config_threads(const struct config *config, const struct world *world);

/* The backend's transport for result rows: "zmq", "mpi", or "none" where it brings its own. */
const char *config_transport_name(const struct config *config, const struct backend *backend);
/* "dedicated", "colocated", "mixed", or "none" for backends without servers. */
const char *config_placement_name(const struct config *config);
/* "on" or "off", or "none" where nothing is rounded. */
const char *config_error_feedback_name(const struct config *config);
const char *config_reduce_order_name(const struct config *config);
const char *config_model_name(const struct config *config);
const char *config_device_name(const struct config *config);

#endif
