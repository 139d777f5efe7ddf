/*
 * How ranks meet without a launcher: all ranks are given one address. Rank 0 listens there, and the
 * other ranks connect to it. Afterwards rank 0 has a connection to every other rank.
 */
#ifndef PSRING_COMMON_NET_RENDEZVOUS_H
#define PSRING_COMMON_NET_RENDEZVOUS_H

#include <stdint.h>

#include "common/base/status.h"
#include "common/net/control.h"
#include "common/net/world.h"

enum { RENDEZVOUS_HOST_BYTES = 256, RENDEZVOUS_NAME_BYTES = 64, RENDEZVOUS_TEXT_BYTES = 496 };

struct rendezvous {
    char host[RENDEZVOUS_HOST_BYTES]; /* a name or an address */
    int port;
    const char *name;                    /* this host's name for the other ranks' messages;
                                          * borrowed */
    const struct world_options *options; /* its rank and size may be wrong; borrowed */
};

/* Fills host and port from "tcp://HOST:PORT". STATUS_USAGE is logged. */
enum status rendezvous_parse(const char *text, struct rendezvous *rendezvous);

/*
 * Returns once all ranks have connected. `sockets` has world_size entries. Rank 0 gets the
 * connection to every other rank, by rank. Another rank gets the connection to rank 0 in
 * sockets[0]. The other entries are -1. The caller closes them (stream_close).
 *
 * After any error every started rank logs one line: what was found, what was expected, what to do.
 * STATUS_USAGE: numbers, sizes or versions do not match. STATUS_TRANSPORT: a rank has ended. After
 * these rank 0 also sends the error, for up to 3 seconds, to ranks that connect late.
 * STATUS_TIMEOUT: a rank is missing.
 */
enum status rendezvous_meet(const struct rendezvous *rendezvous, int *sockets);

/* Rank 0's answer to each other rank. The value is a status: begin (STATUS_OK), or the reason
 * against it. */
struct rendezvous_answer {
    struct control_head head;
    char text[RENDEZVOUS_TEXT_BYTES];
};

/* Sends such an answer to a hello of that job, within a second. 0 or an errno value. */
int rendezvous_tell(int socket, uint64_t job, enum status status, const char *text);

/* "ranks 2, 3 and 7": those whose host is "". */
void rendezvous_missing(char (*hosts)[RENDEZVOUS_NAME_BYTES], int world_size, char *text,
                        size_t size);

#endif
