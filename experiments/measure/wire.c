#include "experiments/measure/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/net/socket/address.h"

enum status wire_open(struct wire *wire, const struct world *world, const char *subnet)
{
    enum status status;
    union address address;
    wire->interface[0] = '\0';
    TRY(world_choose_address(world, subnet, &address));
    TRY(address_interface(&address, wire->interface, sizeof wire->interface));
    if (strcmp(wire->interface, "lo") == 0)
        wire->interface[0] = '\0';
out:
    return status;
}

/* A line is "  eth0: received bytes packets errs drop fifo frame compressed multicast sent..." */
static bool parse_line(const char *line, const char *interface, uint64_t *bytes)
{
    size_t length = strlen(interface);
    line += strspn(line, " ");
    if (length == 0 || strncmp(line, interface, length) != 0 || line[length] != ':')
        return false;
    return sscanf(line + length + 1, "%*u %*u %*u %*u %*u %*u %*u %*u %" SCNu64, bytes) == 1;
}

bool wire_parse(const char *text, const char *interface, uint64_t *bytes)
{
    for (const char *line = text; *line;) {
        if (parse_line(line, interface, bytes))
            return true;
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return false;
}

bool wire_sent_bytes(const struct wire *wire, uint64_t *bytes)
{
    char line[512];
    bool found = false;
    FILE *file = fopen("/proc/net/dev", "r");
    if (!file)
        return false;
    while (!found && fgets(line, sizeof line, file))
        found = wire_parse(line, wire->interface, bytes);
    fclose(file);
    return found;
}
