/* What machine this process runs on, for results: read from the operating system, "unknown" where
 * it does not say. */
#ifndef PSRING_EXPERIMENTS_MACHINE_H
#define PSRING_EXPERIMENTS_MACHINE_H

#include <stddef.h>
#include <stdint.h>

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
