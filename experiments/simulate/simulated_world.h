/*
 * In builds for simulation SimGrid stands where MPI stands in others: this folder implements
 * world_mpi_open and transport_mpi_ops. All ranks are in one process and take turns, so that they
 * reach each other's memory.
 */
#ifndef PSRING_EXPERIMENTS_SIMULATE_SIMULATED_WORLD_H
#define PSRING_EXPERIMENTS_SIMULATE_SIMULATED_WORLD_H

#include "common/net/world.h"

/*
 * From now on no payload is copied: whatever is received is `bytes` bytes at `memory`, the same for
 * all ranks, which stays as long as the world. For worlds whose vectors would not fit into memory:
 * times and counted bytes are as ever, sums are not to be looked at. Before transport_open.
 */
void simulated_share_payloads(struct world *world, const void *memory);

/* What a message takes however short it is, as the platform has it: the property "latency" of the
 * caller's host, in seconds. */
double simulated_latency_s(void);

/* Internal to this folder: the network of the world's platform. */
struct network *simulated_network(const struct world *world);

/* Internal to this folder: that memory; NULL: payloads are copied. */
const void *simulated_shared_payload(const struct world *world);

#endif
