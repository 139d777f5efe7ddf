/*
 * The parameter server over common/net/transport: workers push gradient chunks, servers add them
 * and answer with the sum. Read server.c, then client.c.
 *
 * Cost of one bucket of M bytes with W workers and S servers: a worker sends and receives M, a
 * server sends and receives W M / S, in about shard_chunks messages a pair and direction.
 */
#ifndef PSRING_PS_PS_H
#define PSRING_PS_PS_H

#include "common/comm/backend.h"

extern const struct backend backend_ps;

/* A server's life (server.c). ps_serve serves one plan, until every worker has said BYE, or PAUSE;
 * see backend.serve. The caller's thread owns the site's transport meanwhile. */
enum status ps_server_open(void **server, const struct comm_site *site);
enum status ps_serve(void *server, bool *paused);
float *ps_server_state(void *server, size_t index, size_t *count);
void ps_server_close(void *server);

#endif
