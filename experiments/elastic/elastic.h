/*
 * Elastic jobs: `psring serve` on the servers' hosts and `psring train --join` for each worker,
 * without MPI and without a launcher. Workers join a running job and leave it. Read
 * experiments/elastic/member.h first, then experiments/train/generation.h.
 */
#ifndef PSRING_EXPERIMENTS_ELASTIC_ELASTIC_H
#define PSRING_EXPERIMENTS_ELASTIC_ELASTIC_H

#include "common/base/status.h"
#include "common/net/world.h"
#include "experiments/elastic/member.h"
#include "experiments/config/config.h"
#include "experiments/train/generation.h"

/* Runs a worker until training has ended, the worker leaves, or the job cannot continue. Leaving by
 * a signal or --leave-after is STATUS_OK. */
enum status elastic_train(struct config *config);

/* Runs a server until training has ended or the job cannot continue. */
enum status elastic_serve(struct config *config);

/* The number that the job's hellos carry. Made from --token, else from the file in the user's home,
 * which is created if missing. Errors: logged. */
enum status elastic_token(const struct config *config, uint64_t *token);

/* One generation of a worker or server: opens the world that the coordinator described, trains or
 * serves in it, closes it. Returns like train_generation. */
enum status elastic_generation(const struct config *config, struct generation *generation,
                               const struct member_generation *place);

/* The place to report to the coordinator after a generation that ended with `ended`. A server's
 * weights are those that it has from a worker or its file. */
struct member_place elastic_place(const struct config *config, const struct generation *generation,
                                  enum status ended);

/* Whether this process can be in the next generation after its generation ended with `status`: it
 * ended as agreed, or another member was lost. */
bool elastic_goes_on(enum status status);

enum { ELASTIC_JOB_BYTES = 4000 }; /* of the options of a job */

/*
 * Writes the options of `psring train` that must be equal on all workers of an elastic job. One
 * line each, as on a command line ("--batch=8"). Returns false if they do not fit `size` bytes.
 */
bool elastic_options_write(const struct config *config, char *text, size_t size);
/* The same as part of one command line, without options that have their default. */
bool elastic_options_line(const struct config *config, char *text, size_t size);

/* Fills the `config` of a server from its own options `serve` and the workers' options `job`.
 * Changes and borrows `job`. Errors as config_parse. */
enum status elastic_options_read(struct config *config, const struct config *serve, char *job);

/* Durable jobs: durable.c. `dir` is the server's --checkpoint. */
struct job_record;

/* Makes and locks the folder (*folder: the caller closes it) and reads its record. Without one, the
 * record has generation 0 and the first id of a new job. Errors: logged. */
enum status durable_open(const char *dir, uint64_t token, int *folder, struct job_record *record);
/* Removes the files of a job that has ended. */
void durable_remove(const char *dir);
/* Reads the weights, the optimizer's state and their position, if the folder has them. Errors:
 * logged. STATUS_INPUT: damaged, or of another job. */
enum status durable_load_state(const struct config *config, struct generation *generation);
/*
 * Collective over the world, before training. The first server gets worker 0's state and writes it
 * to its folder. If worker 0 has none, it gets that of the server. Cost: the state once between the
 * two, nothing if they have the same step.
 */
enum status durable_share_state(const struct config *config, struct world *world, int first_server,
                                struct generation *generation);

#endif
