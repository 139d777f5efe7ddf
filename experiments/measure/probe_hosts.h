/* `bench --probe only`: what a sweep over several machines wants to know of them before it starts.
 */
#ifndef PSRING_EXPERIMENTS_PROBE_HOSTS_H
#define PSRING_EXPERIMENTS_PROBE_HOSTS_H

#include <stdint.h>

#include "common/base/status.h"
#include "common/net/world/world.h"

/*
 * Collective over the world. Rank 0 prints a line for every host: its name, address and interface,
 * its cores, by how much its clock is ahead of the first host's, the commit of its program, and
 * what a stream to the next host carries while all hosts send. `subnet` and `timeout_ms` as in
 * probe_link.
 */
enum status probe_hosts(struct world *world, const char *subnet, int64_t timeout_ms);

#endif
