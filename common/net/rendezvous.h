/*
 * How ranks meet without a launcher: rank 0 listens at an address that all were given, the others
 * connect to it. Afterwards rank 0 has a connection to every other one.
 */
#ifndef PSRING_COMMON_NET_RENDEZVOUS_H
#define PSRING_COMMON_NET_RENDEZVOUS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/net/control.h"
#include "common/net/world.h"

enum { RENDEZVOUS_HOST_BYTES = 256, RENDEZVOUS_NAME_BYTES = 64, RENDEZVOUS_TEXT_BYTES = 496 };

struct rendezvous {
    char host[RENDEZVOUS_HOST_BYTES]; /* a name or an address */
    int port;
    const char *name;                    /* of this host, for the others' messages; borrowed */
    const struct world_options *options; /* its rank and size may be wrong; borrowed */
};

/* Fills host and port from "tcp://HOST:PORT". STATUS_USAGE is logged. */
enum status rendezvous_parse(const char *text, struct rendezvous *rendezvous);

/*
 * Returns once all ranks are there. sockets: world_size entries; rank 0 gets the connection to
 * every other rank, by rank; another rank gets that to rank 0 in sockets[0]. The rest are -1. The
 * caller closes them (stream_close).
 *
 * Any error is one logged line on every rank that has been started: what was found, what was
 * expected, what to do. Ranks that come just after an error are told, too: rank 0 stays for up to 3
 * seconds to tell them. STATUS_USAGE: numbers, sizes or versions that do not go together.
 * STATUS_TIMEOUT: somebody did not come.
 */
enum status rendezvous_meet(const struct rendezvous *rendezvous, int *sockets);

/* Rank 0's answer to each of the others. The value is a status: begin (STATUS_OK), or why not. */
struct rendezvous_answer {
    struct control_head head;
    char text[RENDEZVOUS_TEXT_BYTES];
};

/* "ranks 2, 3 and 7" of those whose host is "". */
void rendezvous_missing(char (*hosts)[RENDEZVOUS_NAME_BYTES], int world_size, char *text,
                        size_t size);

#endif
