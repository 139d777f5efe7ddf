/* psring info: what this build and this machine have, for people and for result files. */
#ifndef PSRING_EXPERIMENTS_BENCH_INFO_H
#define PSRING_EXPERIMENTS_BENCH_INFO_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/net/world.h"
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

/* Writing a JSON document where a result is wanted. */

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

/* What machine this process runs on, for results: read from the operating system, "unknown" where
 * it does not say. */

enum { MACHINE_TEXT_BYTES = 208 };

struct machine {
    char host[MACHINE_TEXT_BYTES];
    char cpu[MACHINE_TEXT_BYTES];    /* the model's name */
    char simd[MACHINE_TEXT_BYTES];   /* vector instructions that matter here, e.g. "avx2 fma" */
    char kernel[MACHINE_TEXT_BYTES]; /* name and release */
    char system[MACHINE_TEXT_BYTES]; /* the distribution's name and version */
    int cores_usable, cores;         /* of this process; of the machine */
    uint64_t memory_bytes;
};

void machine_read(struct machine *machine);

/*
 * The value of the first line "KEY<spaces>SEPARATOR VALUE" of `path` into `text`, without quotes
 * around it; `text` stays as it is if there is none.
 */
void machine_read_field(const char *path, const char *key, char separator, char *text, size_t size);

#endif
