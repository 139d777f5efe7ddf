/*
 * The configuration of a run: one struct that contains a struct for each command. It is filled and
 * validated once, from one option table. The same table prints --help and goes, complete, into
 * every result file. No other file reads psring's variables. PSRING_DATA, PSRING_NETWORK,
 * PSRING_LINK_BITS, PSRING_RACKS and PSRING_BIND_SUBNET are defaults of --data, --network,
 * --link-rate, --racks and --subnet (experiments/vcluster.sh exports the last four). PSRING_TOKEN
 * and PSRING_SECURE are the defaults of --token and --secure. torchrun's MASTER_ADDR, MASTER_PORT,
 * RANK and WORLD_SIZE replace --rendezvous, --rank and --world-size.
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
 * Assigns GPUs to ranks. Ranks on one machine share its GPUs, even if their host names differ:
 * namespaces and containers of a machine are separate hosts, but they share its GPUs. A GPU is
 * identified by its PCI bus id, because its number differs between processes. If a launcher binds
 * one GPU to each task (srun --gpus-per-task=1), every rank sees a different GPU as number 0.
 */

/* A rank's report about itself. Plain data: ranks exchange it. */
struct gpu_view {
    int machine;                                    /* equal numbers mean the same machine */
    bool wanted;                                    /* the rank computes on a GPU */
    int count;                                      /* number of GPUs that the rank sees */
    char ids[DEVICE_GPUS_MAX][DEVICE_GPU_ID_BYTES]; /* by GPU number in that process */
    char host[64];
};

/*
 * index[r]: the number, as rank r sees it, of the GPU that rank r takes. -1 if the rank wants no
 * GPU or none is left. Pure, with the same result on all ranks. Each GPU gets at most one rank. If
 * all ranks of a machine see the same GPUs, they take them in rank order. With `share`, each
 * remaining rank gets the GPU with the fewest ranks. *without: the first rank that wants a GPU and
 * has none, or -1. Fails only without memory.
 */
enum status gpus_place(const struct gpu_view *views, int ranks, bool share, int *index,
                       int *without);

/*
 * Collective over the world. Sets *index to the number of this rank's GPU. `wanted` as in gpu_view.
 * If a rank gets no GPU, all ranks fail with STATUS_UNSUPPORTED, and rank 0 logs it.
 */
enum status gpus_choose(struct world *world, bool wanted, bool share, int *index);

/* Bits: each row of the option table holds the runs that obey it. */
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

/* --transport: auto, or 1 + an enum transport_kind. */
enum config_transport { CONFIG_TRANSPORT_AUTO, CONFIG_TRANSPORT_MPI = 1 + TRANSPORT_MPI };

enum config_last_batch { CONFIG_LAST_BATCH_DROP, CONFIG_LAST_BATCH_PARTIAL };

enum config_late { CONFIG_LATE_SKIP, CONFIG_LATE_KEEP };

enum config_feedback { CONFIG_FEEDBACK_AUTO, CONFIG_FEEDBACK_ON, CONFIG_FEEDBACK_OFF };

enum config_nccl_algo { CONFIG_NCCL_RING, CONFIG_NCCL_TREE, CONFIG_NCCL_AUTO };
enum config_nccl_register { CONFIG_NCCL_REGISTER_OFF, CONFIG_NCCL_REGISTER_ON };

enum { CONFIG_KEEP = 2 }; /* default of --keep-checkpoints */

/* --resume: without a checkpoint, auto starts from the beginning and must fails. extend is like
 * must, for another number of steps. */
enum config_resume {
    CONFIG_RESUME_OFF,
    CONFIG_RESUME_AUTO,
    CONFIG_RESUME_MUST,
    CONFIG_RESUME_EXTEND
};

enum config_probe { CONFIG_PROBE_AUTO, CONFIG_PROBE_ON, CONFIG_PROBE_OFF, CONFIG_PROBE_ONLY };

/* The network label of rows measured with several processes on one GPU. The GPU time-slices them,
 * so their times say nothing about a network. */
#define CONFIG_TIME_SLICING "time-slicing"

enum {
    CONFIG_NETWORK_BYTES = 64,
    CONFIG_SERVERS_NOT_GIVEN = -1,
    CONFIG_RANK_NOT_GIVEN = -1,
    CONFIG_RANKS_MOST = 65535,
    CONFIG_BATCH_MOST = 65536
};

/* The choice of --backend auto. */
struct config_pick {
    int backend, transport, servers, placement, radix; /* as in struct config */
    double bucket_mb;
};

/* Choices are ints (an index into their words). Strings are borrowed from argv or the
 * environment. */
enum { CONFIG_SIZES_MOST = 32 };

/* Options that one command, or one part of a command, reads. */

/* psring serve, and train --join: an elastic job. */
struct config_elastic {
    const char *join; /* "tcp://HOST:PORT[,...]": the job's servers; NULL: not an elastic job */
    bool survives;    /* --elastic: without servers; the ranks that are left continue */
    int64_t join_after, leave_after; /* in steps; 0: join at once, never leave */
    const char *listen;              /* "tcp://HOST:PORT", where `psring serve` listens */
    int64_t workers, min_workers;    /* needed to start, to continue */
    const char *checkpoint;          /* the folder in which a server keeps its job; NULL: none */
    int64_t checkpoint_steps;        /* between two writes of the weights; 0: no limit */
    uint32_t job; /* not an option: of a server with `checkpoint`, from its file */
};

struct config_train {
    const char *compute; /* as given: "real", "real:MS" or "paced:MS" */
    bool paced;          /* from `compute` */
    double paced_ms;     /* forward and backward together, per step */
    double real_ms;      /* the least time, from "real:MS"; else 0 */

    /* Consistency. */
    const char *sync; /* as given: "bsp", "ssp:S" or "async" */
    int late_steps;   /* enum config_late */
    int64_t backup_workers;
    const char *straggler; /* "RANK:FACTOR"; NULL: none */
    int straggler_rank;    /* from `straggler`; -1: none */
    double straggler_factor;

    /* Data. */
    int64_t data_threads, prefetch_batches; /* common/data/loader.h; 0: two per thread */
    const char *augment;                    /* as given */
    struct augmentation augmentation;       /* from `augment` */
    int64_t steps;
    bool epochs_divided;     /* `epochs` is the total of all workers */
    int last_batch;          /* enum config_last_batch */
    bool no_shard;           /* each worker reads all the data in an epoch, not a share */
    int64_t global_batch;    /* images of all workers; 0: `batch` for each worker */
    int64_t virtual_workers; /* 0: none */

    const char *checkpoint;
    int64_t keep_checkpoints;
    int64_t checkpoint_steps; /* 0: one per epoch */
    int resume;               /* enum config_resume */

    const char *metrics;
    int64_t log_steps;      /* 0: a row per epoch */
    double target_accuracy; /* per cent; 0: none */
    const char *timeline;
    const char *timeline_steps;            /* "FIRST:LAST", as given */
    uint64_t timeline_first, timeline_end; /* from timeline_steps: from 0, below `end` */
};

/* How train learns, and the optimizer that bench --layers times: experiments/config/learning.h. */
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
    double skew_ms;            /* the most that a rank starts late, experiments/bench/connect.h */
    double require_efficiency; /* of every row; 0: no requirement */
    int probe;                 /* enum config_probe */
    int model_gradients;       /* enum published, models/published.h */
    bool sync_step;    /* each step of model_gradients waits for its buckets, gradient_sync.h */
    bool layers;       /* times layers, experiments/bench/bench.h */
    bool back_to_back; /* no barrier between iterations, experiments/bench/measure.h */
    bool overlap;      /* measures again while the caller computes, experiments/bench/bench.h */
    bool via_library;  /* also measures libpsring, experiments/bench/connect.h */
    bool baselines;    /* measures the machine's limits, experiments/bench/baselines.h */
    int mpi_algorithm; /* enum library_algorithm */
};

/* experiments/predict */
struct config_predict {
    const char *fit;      /* bench.csv files, separated by commas; NULL: none */
    const char *hold_out; /* as given: "auto", "none" or conditions */
    int64_t workers;      /* number that average; 0: nothing is predicted */
    int64_t spare;        /* machines in addition to those of `workers` */
    const char *map;      /* the file of the winner map; NULL: none */
    const char *trained;  /* train.csv files, separated by commas; NULL: none */
    const char *trains;   /* --model of predict; NULL: no training is predicted */
    double images;        /* per epoch */
    double cost_per_hour; /* of a machine; 0: unknown */
    double rate, latency; /* bits/s, 0: as fitted; seconds added to each message */
};

/* Options that several commands read, and the structs above. */
struct config {
    enum config_command command;
    struct config_elastic elastic;
    struct config_train train;
    struct config_learning learning;
    struct config_bench bench;
    struct config_predict predict;

    /* The ranks that take part: common/net/world.h. */
    const char *rendezvous;   /* "tcp://HOST:PORT", where rank 0 listens; NULL: MPI's launcher */
    int64_t rank, world_size; /* of this process, of the job; only with `rendezvous` */
    const char *token;  /* of the ranks of a job; NULL in an elastic job: from the user's home */
    const char *secure; /* the folder of the job's keys; NULL: connections are not protected */

    /* How gradients are averaged. */
    int backend;     /* index into backend_choices(), experiments/config/backends.h */
    int transport;   /* enum config_transport */
    int64_t servers; /* as given (mixed placement: extra ranks); 0 without servers */
    int placement;   /* enum placement */
    struct consistency consistency; /* from train.sync, late_steps and backup_workers */
    int reduce_order;               /* enum reduce_order */
    uint64_t segment_bytes;         /* 0: derived from the message */
    int64_t push_window;            /* chunks unanswered by a server; 0: automatic */
    int64_t radix;                  /* parts that a step of rhd cuts a group into */
    int compress;                   /* enum compress, common/comm/compress.h */
    int error_feedback;             /* enum config_feedback; auto: on if something is compressed */
    double bucket_mb;
    int nccl_algo;     /* enum config_nccl_algo */
    int nccl_register; /* enum config_nccl_register */
    int library_log;   /* not an option: comm_library.log, 0 until config_resolve */
    bool placement_given, bucket_given; /* not options: whether argv has the option */
    const char *cost_model; /* model.json: psring predict writes it with `fit`, otherwise reads it.
                               --backend auto reads rank 0's file. NULL: none */

    /* The network. */
    const char *subnet;     /* --subnet: a name or a network; NULL: chosen */
    double timeout;         /* seconds */
    double startup_timeout; /* seconds; until ranks have met and connected */
    double stall_warning;   /* seconds; 0: none */
    const char *network;    /* label of the result rows; NULL until config_resolve */
    double link_rate;       /* bits per second of one direction of a host's link; 0: unknown */
    const char *racks;      /* "RANKS:FACTOR", as given; NULL: none */
    int rack_ranks;         /* from `racks`, as in comm_options; 0: no racks */
    double oversubscribed;  /* from `racks` */

    /* The device. */
    int device;     /* enum device_kind */
    bool tf32;      /* products at lower precision, device_options.tf32 */
    int graph;      /* enum device_graph */
    bool share_gpu; /* several processes may share a GPU; results are labelled time-slicing */
    int gpu;        /* not an option: this rank's GPU or -1, set by config_resolve */
    int64_t threads;
    bool pin; /* binds each rank to its own cores, common/net/host.h */

    /* The model and data to train, time or predict. */
    int model;        /* index into cnn_names, models/cnn.h */
    const char *data; /* NULL: not given; a paced run ignores PSRING_DATA */
    int64_t epochs, seed;
    int64_t batch;     /* per worker; with train.global_batch valid only after config_resolve */
    double compute_ms; /* forward and backward of the step that bench times or predict predicts */
    const char *sizes; /* as given to bench or predict; NULL: from bench.min_bytes to max_bytes */
    uint64_t size_list[CONFIG_SIZES_MOST]; /* the numbers in `sizes` */
    size_t size_count;                     /* 0: `sizes` is NULL */
    const char *json, *csv;

    /* Hooks of satellites. NULL: this program lacks the satellite. With --backend auto,
     * config_resolve calls `choose` on all ranks, and it fills in `picks`. `recorder` serves
     * --timeline (experiments/train/train.h). */
    enum status (*choose)(struct config *config, struct world *world);
    const struct timeline_recorder *recorder;
    struct config_pick *picks; /* (pick_count), owned: in bench by size, else one; NULL: no auto */
    size_t pick_count;

    bool verbose;
    char network_text[CONFIG_NETWORK_BYTES];
    char rendezvous_text[300];
};

/*
 * Fills `config` from the environment and argv[1..] (argv[0] is the subcommand's name). Checks that
 * the values go together. Sets the log level. With --help, prints the help and sets *helped; the
 * caller must not use `config` then. STATUS_USAGE has been logged. STATUS_UNSUPPORTED: this build
 * lacks the backend.
 */
enum status config_parse(enum config_command command, int argc, char **argv, struct config *config,
                         bool *helped);

/* Calls `visit` for every option of the command with its value as text, in table order. */
void config_visit(const struct config *config,
                  void (*visit)(void *context, const char *name, const char *value), void *context);

/*
 * Collective. Checks that all ranks have the same command and the same options where required, and
 * that the options suit the number of ranks. With --backend auto, applies the first pick. Fills in
 * what depends on where the ranks run. If no network label was given, it is "loopback" on one host
 * and "N-hosts" otherwise; --share-gpu always makes it CONFIG_TIME_SLICING. Sets the environment of
 * the backend's library, so call this before the library's first call. `config` must not move
 * afterwards. STATUS_USAGE is returned by all ranks and logged by rank 0, or returned and logged by
 * each rank whose options differ from rank 0's.
 */
enum status config_resolve(struct config *config, struct world *world);

bool config_is_auto(const struct config *config);
/* Replaces the given options by the pick. */
void config_apply(struct config *config, const struct config_pick *pick);
void config_free(struct config *config);

/* Copies address `number` (from 0) of config->elastic.join to `text`. False if there is none. */
bool config_server(const struct config *config, int number, char *text, size_t size);

/* Whether bench measures the link's rate first. auto: if there are several hosts or the user gives
 * a rate. Never with one rank. */
bool config_probes(const struct config *config, const struct world *world);

/*
 * Calls `visit` for every parameter of Open MPI in the environment that decides how messages
 * travel. The variable is OMPI_MCA_NAME, and `name` is NAME. mpirun passes its --mca options the
 * same way.
 */
void config_visit_mca(void (*visit)(void *context, const char *name, const char *value),
                      void *context);

/* Fills `options` to open this rank's device. The caller sets the number of threads (here 1). */
void config_device_options(const struct config *config, struct device_options *options);

/* The backend that averages. */
const struct backend *config_backend(const struct config *config);

/* Fills `options`, except the longest bucket and the device, which the caller sets. */
void config_comm_options(const struct config *config, const struct backend *backend,
                         struct comm_options *options);

/* Compute threads of this rank: --threads, or the rank's share of the machine's cores. */
int config_threads(const struct config *config, const struct world *world);

/* The backend's transport for result rows: "zmq", "mpi", "tcp", or "none" if the backend brings its
 * own. */
const char *config_transport_name(const struct config *config, const struct backend *backend);
/* "dedicated", "colocated", "mixed", or "none" for backends without servers. */
const char *config_placement_name(const struct config *config);
/* "on" or "off", or "none" if nothing is rounded. */
const char *config_error_feedback_name(const struct config *config);
const char *config_reduce_order_name(const struct config *config);
const char *config_model_name(const struct config *config);
const char *config_device_name(const struct config *config);

#endif
