/*
 * The goodput of the hosts' links, measured: what a plain TCP stream carries, beside which the
 * times of all-reduces are judged. The nominal rate of a link cannot serve for that: headers and
 * acknowledgements take some percent of it, and on a real network nobody may know it.
 *
 * The hosts stand in a ring, one rank of each (all ranks, where there is one host only): every host
 * streams to the next while it receives from the one before, so that all links are full both ways
 * at once, as they are in an all-reduce. Neither ZeroMQ nor MPI touches the data. Of the hosts of a
 * virtual cluster only two take part: all of them together may need more CPU time than there is.
 *
 * A stream that pauses, because the machine was busy elsewhere or TCP waited for a retransmission,
 * tells too little, and what arrives after the pause at once too much. The rates of the parts of
 * its time must agree, or it is measured again, up to PROBE_ROUNDS times; the steadiest counts.
 */
#ifndef PSRING_EXPERIMENTS_PROBE_H
#define PSRING_EXPERIMENTS_PROBE_H

#include <stdint.h>

#include "common/base/status.h"
#include "common/net/world/world.h"
#include "experiments/measure/probe_meter.h"

/*
 * Collective over the world. `bytes_per_s`: the lowest rate of payload that any of the hosts
 * received at, on every rank alike; 0 where there is none: a world of one, or a link so slow that
 * too little arrives (then with a warning). `subnet` as in comm_options. A round takes
 * PROBE_END_NS, and until what is under way has arrived; one is enough where the stream is steady.
 * Waits in poll(2); warns where the CPUs were too busy or no round was steady. Errors: logged;
 * STATUS_TIMEOUT where a stream stays silent for `timeout_ms`.
 */
enum status probe_link(struct world *world, const char *subnet, int64_t timeout_ms,
                       double *bytes_per_s);

/*
 * The same, but all hosts take part, also where they share CPUs. `received` (world size): bytes/s
 * that rank r received from the rank before it; 0 for ranks that share a host with a lower one, and
 * in a world of one.
 */
enum status probe_pairs(struct world *world, const char *subnet, int64_t timeout_ms,
                        double *received);

#endif
