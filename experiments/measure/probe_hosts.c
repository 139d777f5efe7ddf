#include "experiments/measure/probe_hosts.h"

#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/check.h"
#include "common/net/socket/address.h"
#include "experiments/measure/commit.h"
#include "experiments/measure/probe.h"
#include "experiments/measure/result.h"

/* What a rank tells of its host. All bytes are set, padding too. */
struct host {
    char name[64];
    char address[ADDRESS_TEXT_BYTES];
    char interface[IF_NAMESIZE];
    char commit[48];
    double clock_s; /* since 1970, read as all left a barrier: to about a millisecond */
    int cores;
    int takes_part; /* the first rank of its host */
};

static enum status read_host(struct world *world, const char *subnet, struct host *host)
{
    enum status status;
    struct timespec now;
    union address address;
    memset(host, 0, sizeof *host);
    TRY(subnet || world->local_size < world->size ? world_choose_address(world, subnet, &address)
                                                  : address_choose(NULL, false, &address));
    address_text(&address, host->address);
    if (address_interface(&address, host->interface, sizeof host->interface) != STATUS_OK)
        snprintf(host->interface, sizeof host->interface, "?");
    snprintf(host->name, sizeof host->name, "%s", world->host);
    snprintf(host->commit, sizeof host->commit, "%s", PSRING_COMMIT);
    host->cores = world->cores;
    host->takes_part = world->local_rank == 0;
    TRY(world_barrier(world, NULL));
    clock_gettime(CLOCK_REALTIME, &now);
    host->clock_s = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
out:
    return status;
}

static int next_of(const struct host *hosts, const struct world *world, int rank)
{
    do
        rank = (rank + 1) % world->size;
    while (!hosts[rank].takes_part);
    return rank;
}

static void print(const struct host *hosts, const double *received, const struct world *world)
{
    printf("# %-20s %-15s %-10s %5s %9s %-18s %s\n", "host", "address", "interface", "cores",
           "clock (s)", "commit", "to the next host");
    for (int rank = 0; rank < world->size; rank++) {
        const struct host *host = &hosts[rank];
        if (!host->takes_part)
            continue;
        printf("  %-20s %-15s %-10s %5d %+9.3f %-18s ", host->name, host->address, host->interface,
               host->cores, host->clock_s - hosts[0].clock_s, host->commit);
        int next = next_of(hosts, world, rank);
        if (next == rank)
            printf("-\n");
        else if (received[next] > 0)
            printf("%.1f Mbit/s to %s\n", received[next] * 8e-6, hosts[next].name);
        else
            printf("too little to tell to %s\n", hosts[next].name);
    }
}

enum status probe_hosts(struct world *world, const char *subnet, int64_t timeout_ms)
{
    enum status status;
    struct host mine;
    struct host *hosts = calloc((size_t)world->size, sizeof *hosts);
    double *received = calloc((size_t)world->size, sizeof *received);
    if (!hosts || !received) {
        log_error("the probe of the hosts: no memory for %d ranks", world->size);
        status = STATUS_NO_MEMORY;
        goto out;
    }
    TRY(read_host(world, subnet, &mine));
    TRY(world_gather(world, NULL, &mine, sizeof mine, hosts));
    TRY(probe_pairs(world, subnet, timeout_ms, received));
    if (world->rank == 0)
        print(hosts, received, world);
    TRY(result_flush_stdout());
out:
    free(received);
    free(hosts);
    return status;
}
