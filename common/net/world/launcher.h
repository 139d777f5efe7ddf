/*
 * What a launcher says of this process in the environment: MPI's (mpirun, srun) which rank it is,
 * torchrun's (or whoever sets the same variables) where all meet, too.
 */
#ifndef PSRING_COMMON_NET_WORLD_LAUNCHER_H
#define PSRING_COMMON_NET_WORLD_LAUNCHER_H

#include <stdbool.h>

#include "common/base/status.h"

enum { LAUNCHER_RANKS_MOST = 65535, LAUNCHER_RENDEZVOUS_BYTES = 300 };

/* What a variable of the environment says, or NULL if it is unset or empty. */
const char *launcher_variable(const char *name);

/* This process's rank as MPI's launcher says before the ranks have met; -1: none has started it. */
int launcher_mpi_rank(void);

struct launcher_place {
    bool given; /* RANK and WORLD_SIZE are set; else the rest is zero */
    char rendezvous[LAUNCHER_RENDEZVOUS_BYTES]; /* "tcp://HOST:PORT" */
    int rank, size;
};

/* From RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. STATUS_USAGE (logged): some of them are
 * missing, or are no such numbers. */
enum status launcher_torchrun(struct launcher_place *place);

#endif
