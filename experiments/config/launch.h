/*
 * How this process was started, from its options and the launcher's environment. There are three
 * ways: alone, by mpirun or srun, or as one of several ranks that meet at an address
 * (common/net/rendezvous.h).
 */
#ifndef PSRING_EXPERIMENTS_CONFIG_LAUNCH_H
#define PSRING_EXPERIMENTS_CONFIG_LAUNCH_H

#include "experiments/config/config.h"

/* This process's rank from MPI's launcher (mpirun, srun), known before the ranks have met. 0
 * without a launcher. */
int launch_rank(void);

/*
 * Fills rendezvous, rank and world_size of `config` from torchrun's environment. Does not if they
 * are given, or if MPI's launcher has started the process. Checks them against each other and
 * against options that need MPI. STATUS_USAGE has been logged.
 */
enum status launch_check(struct config *config);

/* Converts a token's text to the number that hellos carry. STATUS_NO_MEMORY (logged). */
enum status launch_token(const char *text, uint64_t *token);

/* The number that keeps ranks of an earlier job out of a rendezvous. Made from --token
 * (PSRING_TOKEN), else from torchrun's run id. 0: nothing distinguishes the jobs. Errors as
 * above. */
enum status launch_job(const struct config *config, uint64_t *token);

/* Warns that the environment made this process one of several. Call it if the process has not met
 * the other ranks. */
void launch_warn_of_environment(const struct config *config);

/* Whether this process is a world of one that needs no MPI: no launcher and no rendezvous started
 * it, and no option asks for MPI. */
bool launch_alone(const struct config *config);

#endif
