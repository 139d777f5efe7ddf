/* Writing a JSON document where a result is wanted. */
#ifndef PSRING_EXPERIMENTS_RESULT_H
#define PSRING_EXPERIMENTS_RESULT_H

#include <cjson/cJSON.h>

#include "common/base/status.h"
#include "experiments/config/config.h"

/*
 * Writes `json`, indented, to `path`; "-" is stdout. A file is replaced at once by a complete one
 * (written beside it, then renamed), so that an interrupted run leaves the last complete document.
 * json == NULL stands for an allocation that failed while it was built: STATUS_NO_MEMORY. Errors:
 * logged.
 */
enum status result_write_json(const char *path, const cJSON *json);

/* Hands what was printed to the operating system now: so that it is out should the process be
 * ended, and a full disk is noticed. STATUS_IO (logged). */
enum status result_flush_stdout(void);

/* Every option of the command with its value as text; NULL if out of memory. The caller deletes. */
cJSON *result_config_json(const struct config *config);

#endif
