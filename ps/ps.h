/*
 * The parameter server over common/net/transport: workers push gradient chunks, servers add them
 * and answer with the sum. Read server.c, then client.c.
 *
 * Cost of one bucket of M bytes with W workers and S servers: a worker sends and receives M, a
 * server sends and receives W M / S, in about shard_chunks messages a pair and direction.
 */
#ifndef PSRING_PS_PS_H
#define PSRING_PS_PS_H

#include "common/comm/comm.h"

extern const struct backend backend_ps;

/* A server's whole life: serves until every worker has said BYE. The caller's thread owns
 * site->transport meanwhile. */
enum status ps_serve(const struct comm_site *site);

#endif
