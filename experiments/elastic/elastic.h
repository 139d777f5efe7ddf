/*
 * Elastic jobs: `psring serve` on the servers' hosts, `psring train --join` for each worker, no
 * MPI and no launcher. Workers join a running job and leave it. Read
 * experiments/elastic/member.h first, then experiments/train/generation.h.
 */
#ifndef PSRING_EXPERIMENTS_ELASTIC_ELASTIC_H
#define PSRING_EXPERIMENTS_ELASTIC_ELASTIC_H

#include "common/base/status.h"
#include "experiments/elastic/member.h"
#include "experiments/config/config.h"
#include "experiments/train/generation.h"

/* A worker's life: until training has ended, it leaves, or the job cannot go on. A signal to leave,
 * or --leave-after, is STATUS_OK. */
enum status elastic_train(struct config *config);

/* A server's: until training has ended or the job cannot go on. */
enum status elastic_serve(struct config *config);

/* The number that the job's hellos carry: from --token, else from the user's own file, which is
 * made if it is not there. Errors: logged. */
enum status elastic_token(const struct config *config, uint64_t *token);

/* One generation of either: opens the world that the coordinator has described, trains or serves in
 * it, closes it. As train_generation. */
enum status elastic_generation(const struct config *config, struct generation *generation,
                               const struct member_generation *place);

/* Whether a generation that has ended so leaves this process as it was, so that it can be in the
 * next one: it has ended as agreed, or another one was lost. */
bool elastic_goes_on(enum status status);

/*
 * Of `psring train`, the options that all workers of an elastic job must have alike, a line each,
 * as on a command line ("--batch=8"). Returns false if they do not fit `size` bytes.
 */
bool elastic_options_write(const struct config *config, char *text, size_t size);

/* Fills the `config` of a server, which was started as `serve` says, for the workers' options
 * `job`, which is changed, and borrowed. Errors as config_parse. */
enum status elastic_options_read(struct config *config, const struct config *serve, char *job);

#endif
