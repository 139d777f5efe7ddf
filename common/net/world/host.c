#include "common/net/world/host.h"

#include <stdio.h>
#include <unistd.h>

#include "common/base/rng.h"

static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (const char *at = text; *at; at++)
        hash = rng_mix64(hash ^ (uint8_t)*at);
    return hash;
}

struct host_identity host_identity_of(const char *name, const char *boot_id)
{
    struct host_identity identity = {.machine = hash_text(0, boot_id[0] ? boot_id : name)};
    CPU_ZERO(&identity.cpus);
    identity.host = hash_text(identity.machine, name);
    return identity;
}

struct host_identity host_identify(const char *name)
{
    char boot_id[64] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file) {
        if (!fgets(boot_id, sizeof boot_id, file))
            boot_id[0] = '\0';
        fclose(file);
    }
    struct host_identity identity = host_identity_of(name, boot_id);
    /* Two network namespaces of one name are two hosts: no loopback leads from one to the other. */
    char network[64] = "";
    if (readlink("/proc/self/ns/net", network, sizeof network - 1) > 0)
        identity.host = hash_text(identity.host, network);
    if (sched_getaffinity(0, sizeof identity.cpus, &identity.cpus) != 0)
        CPU_SET(0, &identity.cpus);
    return identity;
}

struct host_place host_place_of(const struct host_identity *all, int size, int rank)
{
    struct host_place place = {.machine = rank};
    const struct host_identity *mine = &all[rank];
    for (int other = 0; other < size; other++) {
        if (all[other].machine != mine->machine)
            continue;
        place.machine = other < place.machine ? other : place.machine;
        cpu_set_t shared;
        CPU_AND(&shared, &mine->cpus, &all[other].cpus);
        place.sharing_cpus += CPU_COUNT(&shared) > 0;
        if (all[other].host != mine->host)
            continue;
        place.local_size++;
        place.local_rank += other < rank;
    }
    return place;
}

int host_number_of(const struct host_identity *all, int rank)
{
    int number = 0;
    while (all[number].host != all[rank].host)
        number++;
    return number;
}
