/* One size of the benchmark: times all-reduces, checks their results and collects their bytes. */
#ifndef PSRING_EXPERIMENTS_BENCH_MEASURE_H
#define PSRING_EXPERIMENTS_BENCH_MEASURE_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/comm/backend.h"
#include "common/comm/comm.h"
#include "common/comm/compress.h"
#include "common/net/topology.h"
#include "common/net/world.h"
#include "experiments/bench/connect.h"

/* What one rank moved per operation: payload, counted by its transport. */
struct bench_rank_traffic {
    struct cost_traffic worker, server; /* zeros where the rank hosts none */
};

struct bench_measurement {
    int64_t iters;    /* how many were timed */
    double *times_us; /* (iters): the slowest worker's, in order of iteration; with overlap, what
                         the operation adds to compute_us: exposed communication */
    double rest_us;   /* median: from an operation's end to the next one's beginning, of the worker
                         with the shortest; how long all links rested. 0: not known */
    struct bench_rank_traffic *ranks; /* (world size) */
    struct cost_traffic worker_most;  /* maxima over the ranks, sent and received apart */
    struct cost_traffic server_most;
    struct cost_traffic rank_most; /* a rank's worker and server together */
    bool wire_known;               /* see wire_open */
    uint64_t wire_sent_bytes_max;  /* per operation and host: all that the kernel sent, between the
                                      first warm-up operation and the end, barriers included */
    uint64_t wrong;                /* elements, over all operations and workers */
    char algorithm[COMM_ALGORITHM_BYTES]; /* see comm_algorithm; on rank 0 */
    double cpu_busy;                      /* share of a machine's CPUs, see cpu.h, the most of any;
                                             -1: not known */
    double cpu_other; /* share of the same machine's CPUs that processes other than the ranks had
                         from the first timed operation to the last; -1: not known */
    double cpu_s;     /* processor seconds of all ranks, over the timed operations; see cpu.h.
                         A server's are its mean over all operations, warm-up as well, times iters */
};

/*
 * How many operations to time if the first BENCH_ITERS_LEAST took `time_us` each: 20, or as many
 * more as take 0.1 s, but no more than take 2 s. The result is 6 to 1000. Fewer values have no 95%
 * interval.
 */
int64_t bench_auto_iters(double time_us);
enum { BENCH_ITERS_LEAST = 6, BENCH_ITERS_MOST = 1000 };

/*
 * Collective over the world: plans the bucket, or buckets, runs warmup + iters operations, gathers.
 * All workers run the same number, also where it follows from the first times.
 * `measurement` is whole on every worker; servers have no times (zeros). The caller frees it. An
 * operation is timed from an instant at which all workers begin (connect.h) to the return of
 * comm_wait, and of device_sync where a device has the vector; filling and checking lie outside.
 * With a skew, workers begin late by parts of it, and the last of them is the beginning.
 * With overlap the wait lies between comm_start and comm_wait, from the return of the former, so
 * that a comm that cannot overlap hides nothing. Errors: logged; STATUS_USAGE is met by all ranks
 * alike, after any other one this rank's peers still wait for it (world_abort). After
 * any error the connection is closed: nothing of it uses the vector any more.
 */
enum status bench_measure(struct bench_measurement *measurement,
                          struct bench_connection *connection, const struct bench_plan *plan);

void bench_measurement_free(struct bench_measurement *measurement);

/*
 * What a benchmark sums: numbers that depend on rank, index and round, so that a chunk in the wrong
 * place, a contribution missing or counted twice, and a result left over from the round before all
 * show. They are integers so small that every sum of them is exact, in any order, also where sums
 * are rounded to 16 bits on the wire (common/comm/compress.h): a backend that loses or
 * doubles something cannot hide behind rounding.
 */

/* What the workers' numbers are. */
struct bench_values {
    int workers;
    int bits; /* they lie in [-2^(bits-1), 2^(bits-1)) */
};

enum { BENCH_VALUE_BITS_MAX = 10 };

/*
 * As many bits as the sums of so many workers leave; fewer make it likelier that a wrong element
 * happens to be right, with 2^-bits. bits == 0: there are too many workers for any, which is beyond
 * 2^24 for float32, 2,048 for fp16 and 256 for bf16.
 */
struct bench_values bench_values(int workers, enum compress compress);

/* Worker `rank`'s contribution to operation `round`, into data (count). */
void bench_fill(float *data, size_t count, struct bench_values values, int rank, uint64_t round);

/* How many elements of data (count) differ from the exact sum over the workers. O(count x workers)
 * time. */
uint64_t bench_count_wrong(const float *data, size_t count, struct bench_values values,
                           uint64_t round);

/* What every rank tells all others about its operations of one size, and what follows from all. */

struct bench_report {
    struct comm_counters counters;
    uint64_t wire_bytes;
    uint64_t wire_known;
    uint64_t wrong;
    int64_t iters; /* 0: a server, which does not know */
    double cpu_busy;
    double cpu_s;     /* a worker's: of its timed operations; a server's: of all, warm-up as well */
    double process_s; /* the same, with all else that the process does meanwhile */
    /* Of the rank that watches its machine's CPUs: seconds of all of them together in its loop, and
     * those that processes had. */
    double loop_total_s, loop_processes_s;
    int64_t loop_known;
    int64_t machine; /* see struct world */
};

/* Collective over the world: fills in what all ranks together say, on every rank. Bytes are per
 * operation, and STATUS_PROTOCOL where operations differ in them. Errors: logged. */
enum status bench_report_gather(struct bench_measurement *measurement, struct world *world,
                                int64_t warmup, const struct bench_report *mine);

/*
 * The kernel's own count of what a network interface has sent: frames with all their headers,
 * acknowledgements and retransmissions, of every process on the host. It is what the payload that
 * a transport counts is held against.
 */

struct wire {
    char interface[IF_NAMESIZE]; /* "" where there is nothing to count: loopback */
};

/*
 * Finds the interface that carries this host's traffic: the one that `subnet` names, or as the
 * transport chooses it. All ranks of a machine share loopback's counter, so what one of them
 * sends cannot be told from it: then wire_sent_bytes answers false. Errors: logged.
 */
enum status wire_open(struct wire *wire, const struct world *world, const char *subnet);

/* Bytes sent since the interface was made, from /proc/net/dev, which shows the network namespace
 * that the process is in (a mounted /sys may not). False if there is no such interface. */
bool wire_sent_bytes(const struct wire *wire, uint64_t *bytes);

/* The same from the text of /proc/net/dev. */
bool wire_parse(const char *text, const char *interface, uint64_t *bytes);

#endif
