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

/* Payload that one rank moved per operation, counted by its transport. */
struct bench_rank_traffic {
    struct cost_traffic worker, server; /* zeros if the rank hosts none */
};

struct bench_measurement {
    int64_t iters;    /* how many were timed; back to back: how many series */
    double *times_us; /* (iters): the slowest worker's, in order of iteration; with overlap the
                         exposed communication: the time added to compute_us; back to back the time
                         of a series / its operations */
    double rest_us;   /* idle time of all links: median time from an operation's end to the next
                         one's start, of the worker with the shortest. 0: not known */
    struct bench_rank_traffic *ranks; /* (world size) */
    struct cost_traffic worker_most;  /* maxima over the ranks, sent and received apart */
    struct cost_traffic server_most;
    struct cost_traffic rank_most; /* a rank's worker and server together */
    uint64_t uplink_bytes;         /* of the busiest rack's uplink, in its busier direction */
    bool wire_known;               /* see wire_open */
    uint64_t wire_sent_bytes_max;  /* per operation and host: all that the kernel sent, between the
                                      first warm-up operation and the end, barriers included */
    uint64_t wrong;                /* elements, over all operations and workers */
    char algorithm[COMM_ALGORITHM_BYTES]; /* see comm_algorithm; on rank 0 */
    double cpu_busy;                      /* share of the busiest machine's CPUs, see cpu_watch.h;
                                             -1: not known */
    double cpu_other; /* share of the same machine's CPUs that processes other than the ranks used
                         from the first timed operation to the last; -1: not known */
    double cpu_s;     /* processor seconds of all ranks in the timed operations; see cpu_watch.h.
                         For a server: its mean over all operations, with warm-up, times iters */
};

/*
 * The number of operations to time if the first BENCH_ITERS_LEAST took `time_us` each. It is 20,
 * more if 20 take less than 0.1 s, fewer if they take more than 2 s. The result is 6 to 1000. Fewer
 * values than 6 have no 95% interval.
 */
int64_t bench_auto_iters(double time_us);
enum { BENCH_ITERS_LEAST = 6, BENCH_ITERS_MOST = 1000 };

/*
 * The operations of a series back to back on vectors of `count` elements: BENCH_SERIES_MOST, fewer
 * if their vectors need more than BENCH_SERIES_BYTES, at least two. It depends on the size alone.
 * Therefore all starts of a configuration have equal series.
 */
int64_t bench_series_iters(size_t count);
enum { BENCH_SERIES_MOST = 10, BENCH_SERIES_BYTES = 128 << 20 };

/*
 * Collective over the world. Plans the bucket or buckets, runs warmup + iters operations, gathers.
 * All workers run the same number, also if it follows from the first times. `measurement` is
 * complete on every worker; servers have no times (zeros). The caller frees it.
 *
 * The time of an operation begins at the workers' common instant (connect.h) and ends with the
 * return of comm_wait, or of device_sync if a device holds the vector. It does not contain filling
 * and checking. With a skew, workers begin at different times, and the time begins with the last.
 * With overlap, the caller waits between the return of comm_start and comm_wait. Therefore a comm
 * that cannot overlap hides nothing.
 *
 * Back to back (plan->series > 1), the operations of a series follow each other without a barrier.
 * A worker begins one when the previous one has returned, while other workers may still be in that
 * one. Each series begins like an operation, after the warm-up and a barrier. Its time ends with
 * its last operation. Every operation has a separate vector, which is filled before the series and
 * checked after it. So all sums are checked, and the time contains neither. A vector that does not
 * fit into the cache comes from memory, unlike one that was filled just before.
 *
 * Errors: logged. All ranks return STATUS_USAGE together. After any other error the peers still
 * wait for this rank (world_abort). After every error the connection is closed, and no thread uses
 * the vector.
 */
enum status bench_measure(struct bench_measurement *measurement,
                          struct bench_connection *connection, const struct bench_plan *plan);

void bench_measurement_free(struct bench_measurement *measurement);

/*
 * The values that a benchmark sums. They depend on rank, index and round. Therefore a check finds a
 * chunk in the wrong place, a missing or doubled contribution, and a result of the previous round.
 * They are integers so small that every sum is exact in any order, even if sums are rounded to
 * 16 bits on the wire (common/comm/compress.h). Rounding cannot hide an error of a backend.
 */

/* The range of the workers' numbers. */
struct bench_values {
    int workers;
    int bits; /* they lie in [-2^(bits-1), 2^(bits-1)) */
};

enum { BENCH_VALUE_BITS_MAX = 10 };

/*
 * The largest number of bits with which sums over these workers are exact. A wrong element is right
 * by chance with a probability of 2^-bits. The result has bits == 0 if there are too many workers:
 * more than 2^24 for float32, 2,048 for fp16 and 256 for bf16.
 */
struct bench_values bench_values(int workers, enum compress compress);

/* Worker `rank`'s contribution to operation `round`, into data (count). */
void bench_fill(float *data, size_t count, struct bench_values values, int rank, uint64_t round);

/* How many elements of data (count) differ from the exact sum over the workers. O(count x workers)
 * time. */
uint64_t bench_count_wrong(const float *data, size_t count, struct bench_values values,
                           uint64_t round);

/* The report of one rank about its operations of one size. All ranks exchange it. */

struct bench_report {
    struct comm_counters counters;
    uint64_t wire_bytes;
    uint64_t wire_known;
    uint64_t wrong;
    int64_t iters; /* timed operations; 0: a server, which does not know */
    double cpu_busy;
    double cpu_s;     /* of a worker in the timed operations, of a server in all, with warm-up */
    double process_s; /* the same, and everything else that the process does meanwhile */
    /* Set by the rank that watches its machine's CPUs: CPU seconds available in its loop (of all
     * CPUs together), and CPU seconds that processes used. */
    double loop_total_s, loop_processes_s;
    int64_t loop_known;
    int64_t machine; /* see struct world */
    int64_t rack;    /* bench_rack */
};

/* For bench_report.rack: that of this rank. */
int bench_rack(const struct bench_connection *connection);

/* Collective over the world. Combines the reports of all ranks, on every rank. Bytes are per
 * operation; STATUS_PROTOCOL if operations differ in them. `iters` of the measurement becomes the
 * number of timed operations. Errors: logged. */
enum status bench_report_gather(struct bench_measurement *measurement, struct world *world,
                                int64_t warmup, const struct bench_report *mine);

/*
 * The kernel's count of bytes that a network interface has sent: frames with all headers,
 * acknowledgements and retransmissions, of every process on the host. Results show it next to the
 * payload that the transport counts.
 */

struct wire {
    char interface[IF_NAMESIZE]; /* "": nothing to count (loopback) */
};

/*
 * Finds the interface of this host's traffic: the one of `subnet`, or the transport's choice.
 * All ranks of a machine share the counter of loopback, which cannot show the bytes of one rank:
 * wire_sent_bytes then returns false, and so it does after a warning if no interface has the
 * address. Errors: logged.
 */
enum status wire_open(struct wire *wire, const struct world *world, const char *subnet);

/* Bytes sent since the creation of the interface, from /proc/net/dev. That file shows the network
 * namespace of the process (a mounted /sys may not). False if there is no such interface. */
bool wire_sent_bytes(const struct wire *wire, uint64_t *bytes);

/* The same from the text of /proc/net/dev. */
bool wire_parse(const char *text, const char *interface, uint64_t *bytes);

#endif
