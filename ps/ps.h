/*
 * The parameter server over common/net/transport. Workers push gradient chunks; servers add them
 * and answer with the sum. Read server.c, then client.c.
 *
 * Cost of one bucket of M bytes with W workers and S servers: a worker sends and receives M. A
 * server sends and receives W M / S. There are about shard_chunks messages for each pair and
 * direction.
 */
#ifndef PSRING_PS_PS_H
#define PSRING_PS_PS_H

#include "common/comm/backend.h"
#include "common/comm/cost.h"

/*
 * Bytes and time of the parameter server. Pure.
 *
 *     node                    sends                       receives
 *     worker                  M, less its own shard       M, less its own shard
 *     server of shard s       L[s] to each worker that    the same
 *                             is in another process
 *
 * L[s] is the bytes of shard s (ps/shard.h), and M is their sum. A dedicated server sends W/S M.
 *
 *     time = 2a + (q + (2p - q)/K) M/B + (W-1) s M g
 *
 * If q = 2p, answers leave while pushes are on their way, and hide min(a, p (1 - 1/K) M/B).
 * A window of w pieces may be shorter than the distance (shard.h chooses one that is not). The time
 * is then longer by (K/w - 1) times what 2a exceeds w-1 pieces by.
 *
 * Here p M is the load of the busiest direction of a host's link while workers push, and q M is the
 * load of pushes and pulls overlapped. The largest shard is s M, and K is the number of chunks that
 * ps/shard.h cuts it into.
 *
 *     dedicated          p = q = max(1, W/S): in all (1 + 1/K) max(1, W/S)
 *     in the switch      p = q = 1, for any S: 2(W-1)/W times as fast as the ring
 *     colocated, S < W   p = (W-1)/S, q = (W+S-2)/S
 *     colocated, S = W   p = (W-1)/W, q = 2p: the ring's bytes, whatever K
 *     mixed              p = q = 2W(W-1)/(W^2 + kW - 2k) for 0 < k < W spare servers, the optimum
 *                        of Jiang et al.; none: as colocated, S = W; k >= W: 1
 *
 * This assumes one host for each rank. In general, a host's link carries two loads. Its w workers
 * push to servers elsewhere. The W-w workers elsewhere push to its servers, which own the share t
 * of M. For the busiest host:
 *
 *     out = w (1-t), in = (W-w) t,   p = the larger of the two, q = out + in
 *
 * A server in the switch sums what passes through it, so that a worker sends and receives only M.
 * The bound of 2(W-1)/W M/B holds for workers alone. Sources: Sapio et al. 2021, "Scaling
 * Distributed Machine Learning with In-Network Aggregation", NSDI. Graham et al. 2016, "SHArP".
 *
 * Source: Jiang et al. 2020, "A unified architecture for accelerating distributed DNN training in
 * heterogeneous GPU/CPU clusters" (OSDI), sections 2 and 4.1.
 */

extern const struct cost_formula ps_cost;

extern const struct backend backend_ps;

/* The functions of a server (server.c). ps_serve serves one plan, until every worker has sent BYE
 * or PAUSE; see backend.serve. Meanwhile the calling thread owns the site's transport. */
enum status ps_server_open(void **server, const struct backend_env *site);
enum status ps_serve(void *server, bool *paused);
float *ps_server_state(void *server, size_t index, size_t *count);
void ps_server_close(void *server);

#endif
