#include "common/net/world/launcher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/net/address.h"

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

/* A variable that holds a whole number from `least` to `most`. */
static enum status read_number(const char *name, long least, long most, long *number)
{
    const char *text = launcher_variable(name);
    char *end = NULL;
    if (text)
        *number = strtol(text, &end, 10);
    if (text && end != text && !*end && *number >= least && *number <= most)
        return STATUS_OK;
    log_error(
        "%s: found '%s', expected a whole number from %ld to %ld; RANK, WORLD_SIZE, MASTER_ADDR "
        "and MASTER_PORT together say which rank this is and where rank 0 listens: set all "
        "of them, or unset RANK and WORLD_SIZE",
        name, text ? text : "", least, most);
    return STATUS_USAGE;
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
    if (!address) {
        log_error(
            "MASTER_ADDR: not set, expected the name or address of rank 0's host, as RANK and "
            "WORLD_SIZE are set; set it, or unset those two");
        return STATUS_USAGE;
    }
    if (agent && strcmp(agent, "True") == 0)
        port++; /* torchrun itself listens at MASTER_PORT then */
    char host[ADDRESS_HOST_BYTES];
    int found = 0;
    address_format(address, (int)port, place->rendezvous, sizeof place->rendezvous);
    if (!address_parse(place->rendezvous, host, sizeof host, &found) || found != port ||
        (strchr(address, ':') && !address_is_ipv6(address))) {
        log_error("MASTER_ADDR: found '%s', expected the name or address of rank 0's host, without "
                  "brackets or a port, e.g. 10.0.0.1 or fd00::1",
                  address);
        return STATUS_USAGE;
    }
    place->rank = (int)rank;
    place->size = (int)size;
    place->given = true;
out:
    return status;
}
