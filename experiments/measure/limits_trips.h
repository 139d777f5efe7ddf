/*
 * The time that 4 bytes take there and back between rank 0 and rank 1: through ZeroMQ, and on a
 * plain TCP socket. The median of LIMITS_TRIPS trips, or of as many as LIMITS_TRIPS_NS have room
 * for. Nobody sleeps on the plain socket: both ranks try to receive, again and again, so its trip
 * is what the network and the kernel take.
 */
#ifndef PSRING_EXPERIMENTS_LIMITS_TRIPS_H
#define PSRING_EXPERIMENTS_LIMITS_TRIPS_H

#include <stdint.h>

#include "common/base/status.h"
#include "common/net/world/world.h"

enum { LIMITS_TRIPS = 2000, LIMITS_TRIPS_LEAST = 20 };
#define LIMITS_TRIPS_NS INT64_C(500000000)

/* Collective over a world of two or more: `median_us` on every rank. Errors: logged;
 * STATUS_TIMEOUT where the other rank says nothing for `timeout_ms`. */
enum status limits_zmq_trip(struct world *world, const char *subnet, int64_t timeout_ms,
                            double *median_us);
enum status limits_socket_trip(struct world *world, const char *subnet, int64_t timeout_ms,
                               double *median_us);

#endif
