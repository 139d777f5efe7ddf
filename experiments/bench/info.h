/* psring info: the abilities of this build and this machine, for people and for result files. */
#ifndef PSRING_EXPERIMENTS_BENCH_INFO_H
#define PSRING_EXPERIMENTS_BENCH_INFO_H

#include <cjson/cJSON.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/net/world.h"
#include "experiments/config/config.h"

/*
 * Rank 0 prints the matrix to stdout. Option --json FILE also writes it to FILE; with --json -
 * stdout gets the document alone. Option --data reads and checks the data set. Errors: logged.
 */
enum status info_run(struct config *config, struct world *world);

/*
 * The same as a JSON document, which every result file contains. The form is
 * {section: {name: {"available": bool, "detail": text} or text}}. The caller deletes it. NULL: out
 * of memory.
 */
cJSON *info_json(const struct config *config);

/* Writing results as JSON. */

/*
 * Writes `json`, indented, to `path`; "-" is stdout. The function writes a new file in the same
 * folder and renames it, so that an interrupted run leaves the last complete document. A `json` of
 * NULL means that building it ran out of memory: STATUS_NO_MEMORY. Errors: logged.
 */
enum status result_write_json(const char *path, const cJSON *json);

/* Flushes stdout to the operating system, so that the output survives the end of the process and a
 * full disk is noticed. STATUS_IO (logged). */
enum status result_flush_stdout(void);

/* Every option of the command with its value as text; NULL if out of memory. The caller deletes. */
cJSON *result_config_json(const struct config *config);

/*
 * Copies the value of the first line "KEY<spaces>SEPARATOR VALUE" of `path` into `text`, without
 * quotes around it. Without such a line `text` is unchanged.
 */
void machine_read_field(const char *path, const char *key, char separator, char *text, size_t size);

#endif
