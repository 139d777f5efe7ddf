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
#include "common/comm/cost.h"

/*
 * What the parameter server moves and how long that takes. Pure.
 *
 *     node                    sends                       receives
 *     worker                  M, less its own shard       M, less its own shard
 *     server of shard s       L[s] to each worker that it does not share a process with; as much
 *                             is received
 *
 * with L[s] the bytes of shard s (ps/shard.h) and M their sum: W/S M for a dedicated server.
 *
 *     time = 2a + (q + (2p - q)/K) M/B + (W-1) s M g
 *
 * p M: the busiest direction of a host's link while pushing, q M: pushing and pulling overlapped,
 * s M: the largest shard, K: the chunks that ps/shard.h cuts it into.
 *     dedicated          p = q = max(1, W/S): in all (1 + 1/K) max(1, W/S)
 *     colocated, S < W   p = (W-1)/S, q = (W+S-2)/S
 *     colocated, S = W   p = (W-1)/W, q = 2p: the ring's bytes, whatever K
 *     mixed              p = q = 2W(W-1)/(W^2 + kW - 2k) for 0 < k < W spare servers, the optimum
 *                        of Jiang et al.; none: as colocated, S = W; k >= W: 1
 *
 * That is with a host for each rank. A host's link carries what its w workers push to servers
 * elsewhere, and what the W-w workers elsewhere push to its servers, which have the share t of M:
 *     out = w (1-t), in = (W-w) t,   p = the larger of both and q = out + in, on the busiest host
 *
 * Source: Jiang et al. 2020, "A unified architecture for accelerating distributed DNN training in
 * heterogeneous GPU/CPU clusters" (OSDI), sections 2 and 4.1.
 */

extern const struct cost_formula ps_cost;

extern const struct backend backend_ps;

/* A server's life (server.c). ps_serve serves one plan, until every worker has said BYE, or PAUSE;
 * see backend.serve. The caller's thread owns the site's transport meanwhile. */
enum status ps_server_open(void **server, const struct backend_env *site);
enum status ps_serve(void *server, bool *paused);
float *ps_server_state(void *server, size_t index, size_t *count);
void ps_server_close(void *server);

#endif
