/*
 * How this process was started, by its options and the launcher's environment: alone, by mpirun or
 * srun, or as one of several that meet at an address (common/net/rendezvous.h).
 */
#ifndef PSRING_EXPERIMENTS_CONFIG_LAUNCH_H
#define PSRING_EXPERIMENTS_CONFIG_LAUNCH_H

#include "experiments/config/config.h"

/* This process's rank as MPI's launcher (mpirun, srun) says before the ranks have met; 0 without.
 */
int launch_rank(void);

/*
 * Fills rendezvous, rank and world of `config` from the environment of torchrun, unless they are
 * given or MPI's launcher has started the process, and checks that they go together and with what
 * needs MPI. STATUS_USAGE has been logged.
 */
enum status launch_check(struct config *config);

/* A token's text as the number that hellos carry. STATUS_NO_MEMORY (logged). */
enum status launch_token(const char *text, uint64_t *token);

/* The number that keeps ranks of an earlier job out of a rendezvous: from --token (PSRING_TOKEN),
 * else from torchrun's run; 0: nothing distinguishes the jobs. Errors as above. */
enum status launch_job(const struct config *config, uint64_t *token);

/* Warns that the environment made this process one of several, after it has not met the others. */
void launch_warn_of_environment(const struct config *config);

/* Whether this process is a world of one that needs no MPI: no launcher and no rendezvous started
 * it, and no option asks for MPI. */
bool launch_alone(const struct config *config);

#endif
