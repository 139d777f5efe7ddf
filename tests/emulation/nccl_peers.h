/*
 * The ranks of a communicator of NCCL's stand-in (nccl.c): processes of one machine that sum
 * vectors over a ring of local sockets, as NCCL's kernels do over NVLink. Shares no code with
 * ring/. One thread uses a struct peers. Other threads may set only `stop`: then every call ends
 * within a few ms.
 */
#ifndef PSRING_TESTS_EMULATION_NCCL_PEERS_H
#define PSRING_TESTS_EMULATION_NCCL_PEERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum peers_result {
    PEERS_OK,
    PEERS_STOPPED,  /* `stop` was set */
    PEERS_GONE,     /* a neighbour has closed its connection */
    PEERS_CONFLICT, /* the ranks' requests do not match */
};

struct peers {
    int rank, size;
    _Atomic bool stop;
    int listening, next, previous; /* sockets; -1: none */
    void (*midway)(void *context); /* called in the middle of a sum, if not NULL */
    void *context;
};

/* Meets the other ranks under `name`, the same for all ranks. `place` names this rank's GPU and
 * host: two ranks with one place are a conflict. */
enum peers_result peers_join(struct peers *peers, const char *name, const char *place);

/* data (count) becomes the sum over all ranks, with the same bits on each. `count` and `mark` must
 * be the same on all ranks. */
enum peers_result peers_sum(struct peers *peers, float *data, size_t count, int mark);

/* Closes the connections. */
void peers_leave(struct peers *peers);

#endif
