/*
 * In builds for simulation, SimGrid replaces MPI: this folder implements world_mpi_open and
 * transport_mpi_ops. All ranks run in one process and take turns, so each can access the memory of
 * the others.
 */
#ifndef PSRING_EXPERIMENTS_SIMULATE_SIMULATED_WORLD_H
#define PSRING_EXPERIMENTS_SIMULATE_SIMULATED_WORLD_H

#include "common/net/world.h"

/*
 * Stops copying payloads. Every received payload of `bytes` bytes is then at `memory`, which all
 * ranks share and which must outlive the world. For worlds whose vectors do not fit into memory:
 * times and counted bytes stay right, sums are meaningless. Call before transport_open.
 */
void simulated_share_payloads(struct world *world, const void *memory);

/* Latency of a message in seconds: the property "latency" of the caller's host in the platform. */
double simulated_latency_s(void);

/* Internal to this folder: the network of the world's platform. */
struct network *simulated_network(const struct world *world);

/* Internal to this folder: the shared memory. NULL: payloads are copied. */
const void *simulated_shared_payload(const struct world *world);

#endif
