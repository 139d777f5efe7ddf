/* psring info: what this build and this machine have, for people and for result files. */
#ifndef PSRING_EXPERIMENTS_INFO_H
#define PSRING_EXPERIMENTS_INFO_H

#include <cjson/cJSON.h>

#include "common/base/status.h"
#include "common/net/world/world.h"
#include "experiments/config/config.h"

/*
 * Rank 0 prints the matrix to stdout and, with --json FILE, writes it there; with --json - the
 * document is all that goes to stdout. With --data the data set is read and checked. Errors:
 * logged.
 */
enum status info_run(struct config *config, struct world *world);

/*
 * The same as a document: {section: {name: {"available": bool, "detail": text} or text}}. Part of
 * every result file. The caller deletes it. NULL: out of memory.
 */
cJSON *info_json(const struct config *config);

#endif
