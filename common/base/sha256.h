/* SHA-256 of bytes that arrive in pieces, as lower-case hexadecimal. A wrapper of OpenSSL's EVP. */
#ifndef PSRING_COMMON_BASE_SHA256_H
#define PSRING_COMMON_BASE_SHA256_H

#include <stddef.h>

#include "common/base/status.h"

enum { SHA256_HEX_SIZE = 65 }; /* 64 digits and the terminator */

/* Embedded; one thread at a time. It holds memory of OpenSSL from _init to _final or _fini. */
struct sha256 {
    void *context;
};

/* Starts a sum. STATUS_NO_MEMORY (logged). */
enum status sha256_init(struct sha256 *sum);

void sha256_update(struct sha256 *sum, const void *bytes, size_t count);

/* Writes the sum of all bytes so far and ends it; nothing is left to free. */
void sha256_final(struct sha256 *sum, char hex[SHA256_HEX_SIZE]);

/* Frees a sum without its result. Does nothing after sha256_final or a second time. */
void sha256_fini(struct sha256 *sum);

/* The sum of one block of memory. */
enum status sha256_hex(const void *bytes, size_t count, char hex[SHA256_HEX_SIZE]);

#endif
