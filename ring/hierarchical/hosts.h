/*
 * Where workers stand among each other: which are on one host, and which have one local number.
 * `hosts` says for each worker which host it is on, by equal numbers, as comm_hosts; NULL: each is
 * on one of its own. Pure.
 */
#ifndef PSRING_RING_HIERARCHICAL_HOSTS_H
#define PSRING_RING_HIERARCHICAL_HOSTS_H

#include <stdbool.h>

struct hosts_place {
    int local;  /* among the workers of its host */
    int across; /* among the workers of that local number, of all hosts */
};

struct hosts_place hosts_place_of(const int *hosts, int worker);

/* How many workers are on `worker`'s host. */
int hosts_locals(const int *hosts, int workers, int worker);

/* The first worker whose host has not as many workers as worker 0's; -1 if there is none. */
int hosts_uneven(const int *hosts, int workers);

/* Whether each host's workers are neighbours in order: 0 to L-1 on one, L to 2L-1 on the next. */
bool hosts_in_order(const int *hosts, int workers);

#endif
