/* The registry of backends: what --backend may name. Adding one is a line here and in the table. */
#ifndef PSRING_EXPERIMENTS_BACKENDS_H
#define PSRING_EXPERIMENTS_BACKENDS_H

#include "common/comm/comm.h"

enum backend_kind {
    BACKEND_NONE,
    BACKEND_PS,
    BACKEND_RING,
    BACKEND_MPI,
    BACKEND_NCCL,
    BACKEND_RHD,
    BACKEND_COUNT,
};

/* Names by enum backend_kind, ended by NULL: the choices of --backend. */
extern const char *const backend_names[BACKEND_COUNT + 1];

const struct backend *backend_get(enum backend_kind kind);

#endif
