/* The probe's sockets: one stream to the next host, one from the host before. For probe.c alone. */
#ifndef PSRING_EXPERIMENTS_PROBE_SOCKETS_H
#define PSRING_EXPERIMENTS_PROBE_SOCKETS_H

#include <stdint.h>

#include "common/base/status.h"
#include "common/net/socket/address.h"

/* What a rank tells the others. All bytes are set, padding too. */
struct probe_peer {
    union address at; /* where it listens */
    uint32_t takes_part;
};

/* One rank's. Descriptors are -1 where nothing is open. */
struct probe_sockets {
    uint64_t run_id;                  /* tells this run's ranks from strangers */
    int64_t timeout_ms;               /* of every wait */
    union address own;                /* this rank's, without a port */
    char address[ADDRESS_TEXT_BYTES]; /* the same as text */
    int listener, out, in;
};

/* Listens at sockets->own; `mine` says where. */
enum status probe_listen(struct probe_sockets *sockets, struct probe_peer *mine);

/* Connects `out` to a peer that listens, whether it has accepted or not. */
enum status probe_connect(struct probe_sockets *sockets, const struct probe_peer *peer);

/*
 * Waits until `in` is the connection of this run's rank. Strangers do not delay it: all who call
 * are heard at once, and who says nothing is dropped with the others when the rank has come.
 */
enum status probe_accept(struct probe_sockets *sockets);

void probe_close_streams(struct probe_sockets *sockets);
void probe_close(struct probe_sockets *sockets);

/* Log what went wrong, errno or a time-out, with what to do, and return the status of it. */
enum status probe_failed(const struct probe_sockets *sockets, const char *what);
enum status probe_silent(const struct probe_sockets *sockets, const char *what);

#endif
