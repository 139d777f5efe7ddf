#include "ring/hierarchical/hosts.h"

static bool together(const int *hosts, int one, int other)
{
    return hosts ? hosts[one] == hosts[other] : one == other;
}

static int local_of(const int *hosts, int worker)
{
    int local = 0;
    for (int other = 0; other < worker; other++)
        local += together(hosts, other, worker);
    return local;
}

struct hosts_place hosts_place_of(const int *hosts, int worker)
{
    struct hosts_place place = {.local = local_of(hosts, worker)};
    for (int other = 0; other < worker; other++)
        place.across += local_of(hosts, other) == place.local;
    return place;
}

int hosts_locals(const int *hosts, int workers, int worker)
{
    int locals = 0;
    for (int other = 0; other < workers; other++)
        locals += together(hosts, other, worker);
    return locals;
}

int hosts_uneven(const int *hosts, int workers)
{
    int locals = hosts_locals(hosts, workers, 0);
    for (int worker = 1; worker < workers; worker++) {
        if (hosts_locals(hosts, workers, worker) != locals)
            return worker;
    }
    return -1;
}

bool hosts_in_order(const int *hosts, int workers)
{
    int locals = hosts_locals(hosts, workers, 0);
    for (int worker = 0; worker < workers; worker++) {
        if (!together(hosts, worker, worker - worker % locals))
            return false;
    }
    return true;
}
