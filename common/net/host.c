#include "common/net/host.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/rng.h"
#include "common/base/text.h"
#include "common/net/address.h"

void host_name(char *text, size_t size)
{
    if (gethostname(text, size) != 0 && errno != ENAMETOOLONG)
        snprintf(text, size, "unknown");
    text[size - 1] = '\0';
}

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
    /* Two network namespaces with one name are two hosts: loopback does not connect them. */
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

const char *launcher_variable(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

int launcher_mpi_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
    const char *rank = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !rank; i++)
        rank = launcher_variable(names[i]);
    return rank ? (int)strtol(rank, NULL, 10) : -1;
}

/* Reads a variable that holds a whole number from `least` to `most`. */
static enum status read_number(const char *name, long least, long most, long *number)
{
    const char *text = launcher_variable(name);
    char *end = NULL;
    if (text)
        *number = strtol(text, &end, 10);
    if (text && end != text && !*end && *number >= least && *number <= most)
        return STATUS_OK;
    return FAIL(
        STATUS_USAGE,
        "%s: found '%s', expected a whole number from %ld to %ld; RANK, WORLD_SIZE, MASTER_ADDR "
        "and MASTER_PORT together say which rank this is and where rank 0 listens: set all "
        "of them, or unset RANK and WORLD_SIZE",
        name, text ? text : "", least, most);
}

enum status launcher_torchrun(struct launcher_place *place)
{
    enum status status = STATUS_OK;
    long rank = 0, size = 0, port = 0;
    const char *address = launcher_variable("MASTER_ADDR");
    const char *agent = launcher_variable("TORCHELASTIC_USE_AGENT_STORE");
    *place = (struct launcher_place){0};
    if (!launcher_variable("RANK") || !launcher_variable("WORLD_SIZE"))
        return STATUS_OK;
    TRY(read_number("RANK", 0, LAUNCHER_RANKS_MOST, &rank));
    TRY(read_number("WORLD_SIZE", 1, LAUNCHER_RANKS_MOST, &size));
    TRY(read_number("RANK", 0, size - 1, &rank));
    TRY(read_number("MASTER_PORT", 1, 65534, &port));
    if (!address)
        return FAIL(
            STATUS_USAGE,
            "MASTER_ADDR: not set, expected the name or address of rank 0's host, as RANK and "
            "WORLD_SIZE are set; set it, or unset those two");
    if (agent && strcmp(agent, "True") == 0)
        port++; /* torchrun itself listens at MASTER_PORT then */
    char host[ADDRESS_HOST_BYTES];
    int found = 0;
    address_format(address, (int)port, place->rendezvous, sizeof place->rendezvous);
    if (!address_parse(place->rendezvous, host, sizeof host, &found) || found != port ||
        (strchr(address, ':') && !address_is_ipv6(address)))
        return FAIL(
            STATUS_USAGE,
            "MASTER_ADDR: found '%s', expected the name or address of rank 0's host, without "
            "brackets or a port, e.g. 10.0.0.1 or fd00::1",
            address);
    place->rank = (int)rank;
    place->size = (int)size;
    place->given = true;
out:
    return status;
}

/* -------- the division ------------------------------------------------------------------------ */

struct pin_share pin_share_of(const struct host_identity *all, int size, int rank)
{
    struct pin_share share = {.overlaps = -1};
    const struct host_identity *mine = &all[rank];
    for (int other = 0; other < size; other++) {
        cpu_set_t both;
        CPU_AND(&both, &mine->cpus, &all[other].cpus);
        if (all[other].machine != mine->machine || CPU_COUNT(&both) == 0)
            continue;
        if (CPU_EQUAL(&mine->cpus, &all[other].cpus)) {
            share.count++;
            share.index += other < rank;
        } else if (share.overlaps < 0) {
            share.overlaps = other;
        }
    }
    return share;
}

static int compare_cpus(const void *left, const void *right)
{
    const struct pin_cpu *a = left, *b = right;
    return a->package != b->package ? a->package - b->package
           : a->core != b->core     ? a->core - b->core
                                    : a->cpu - b->cpu;
}

/* Numbers the entries of the sorted list from 0, by core or (`each`) one by one. Returns how many
 * numbers there are. */
static int number_cores(const struct pin_cpu *list, int cpus, bool each, int *number)
{
    int last = -1;
    for (int i = 0; i < cpus; i++) {
        bool same =
            i > 0 && list[i].package == list[i - 1].package && list[i].core == list[i - 1].core;
        number[i] = same && !each ? last : ++last;
    }
    return last + 1;
}

void pin_part(struct pin_cpu *list, int cpus, int index, int count, cpu_set_t *part)
{
    int number[CPU_SETSIZE];
    CHECK(count > 0);
    CPU_ZERO(part);
    qsort(list, (size_t)cpus, sizeof *list, compare_cpus);
    int cores = number_cores(list, cpus, false, number);
    if (cores < count)
        cores = number_cores(list, cpus, true, number);
    if (cores < count)
        return;
    for (int i = 0; i < cpus; i++) {
        if (number[i] >= index * cores / count && number[i] < (index + 1) * cores / count)
            CPU_SET(list[i].cpu, part);
    }
}

/* -------- this process ------------------------------------------------------------------------ */

void pin_list(const cpu_set_t *cpus, char text[PIN_LIST_BYTES])
{
    struct line line = line_in(text, PIN_LIST_BYTES);
    for (int first = 0, last; first < CPU_SETSIZE; first = last + 1) {
        last = first;
        if (!CPU_ISSET(first, cpus))
            continue;
        while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, cpus))
            last++;
        line_add(&line, "%s%d", line.used > 0 ? "," : "", first);
        if (last > first)
            line_add(&line, "-%d", last);
    }
}

void pin_list_own(char text[PIN_LIST_BYTES])
{
    struct host_identity own = host_identify("");
    pin_list(&own.cpus, text);
}

/* Reads a property of a processor from the kernel; `otherwise` if the kernel has none. */
static int read_topology(int cpu, const char *what, int otherwise)
{
    char path[96];
    int value = otherwise;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/%s", cpu, what);
    FILE *file = fopen(path, "r");
    if (file) {
        if (fscanf(file, "%d", &value) != 1)
            value = otherwise;
        fclose(file);
    }
    return value;
}

static int read_cpus(const cpu_set_t *cpus, struct pin_cpu *list)
{
    int count = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, cpus))
            list[count++] = (struct pin_cpu){cpu, read_topology(cpu, "physical_package_id", 0),
                                             read_topology(cpu, "core_id", cpu)};
    }
    return count;
}

/* Binds all threads of the process: a library may have started some before main. */
static enum status bind_threads(const cpu_set_t *cpus)
{
    enum status status = STATUS_OK;
    DIR *tasks = opendir("/proc/self/task");
    if (!tasks)
        return FAIL(STATUS_IO, "--pin: /proc/self/task: %s", strerror(errno));
    for (struct dirent *task; status == STATUS_OK && (task = readdir(tasks));) {
        pid_t id = (pid_t)strtol(task->d_name, NULL, 10);
        if (id > 0 && sched_setaffinity(id, sizeof *cpus, cpus) != 0 && errno != ESRCH) {
            char list[PIN_LIST_BYTES];
            pin_list(cpus, list);
            log_error("--pin: a thread cannot be bound to the cores %s: %s", list, strerror(errno));
            status = STATUS_IO;
        }
    }
    closedir(tasks);
    return status;
}

/* Whether every rank can have a part. All ranks get the same result, and rank 0 logs the error. */
static enum status check_shares(const struct world *world, const struct host_identity *all)
{
    for (int rank = 0; rank < world->size; rank++) {
        struct pin_share share = pin_share_of(all, world->size, rank);
        int cpus = CPU_COUNT(&all[rank].cpus);
        if (share.overlaps < 0 && share.count <= cpus)
            continue;
        if (world->rank == 0 && share.overlaps >= 0)
            log_error("--pin: ranks %d and %d on %s may run on some of the same cores, but not on "
                      "all; start them with mpirun --bind-to none, or leave out --pin",
                      rank, share.overlaps, world->hosts[rank]);
        else if (world->rank == 0)
            log_error("--pin: %d ranks on %s share %d cores, expected at least one each; start "
                      "fewer ranks there, or leave out --pin",
                      share.count, world->hosts[rank], cpus);
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

enum status world_pin(struct world *world)
{
    enum status status;
    struct pin_cpu list[CPU_SETSIZE];
    cpu_set_t part;
    struct host_identity mine = host_identify(world->host);
    struct host_identity *all = calloc((size_t)world->size, sizeof *all);
    if (!all)
        return FAIL(STATUS_NO_MEMORY, "--pin: no memory for %d ranks", world->size);
    TRY(world_gather(world, NULL, &mine, sizeof mine, all));
    TRY(check_shares(world, all));
    struct pin_share share = pin_share_of(all, world->size, world->rank);
    pin_part(list, read_cpus(&mine.cpus, list), share.index, share.count, &part);
    TRY(bind_threads(&part));
    world->cores = CPU_COUNT(&part);
    world->sharing_cpus = 1;
out:
    free(all);
    return status;
}
