#include "common/base/sha256.h"

#include <openssl/evp.h>

#include "common/base/status.h"

enum { DIGEST_BYTES = 32 };

enum status sha256_init(struct sha256 *sum)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    sum->context = NULL;
    if (!context || EVP_DigestInit_ex(context, EVP_sha256(), NULL) != 1) {
        EVP_MD_CTX_free(context);
        return FAIL(
            STATUS_NO_MEMORY,
            "SHA-256: OpenSSL cannot start a sum: out of memory, or its configuration forbids "
            "SHA-256");
    }
    sum->context = context;
    return STATUS_OK;
}

void sha256_update(struct sha256 *sum, const void *bytes, size_t count)
{
    CHECK(sum->context);
    CHECK(EVP_DigestUpdate(sum->context, bytes, count) == 1);
}

void sha256_final(struct sha256 *sum, char hex[SHA256_HEX_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int length = 0;
    CHECK(sum->context);
    CHECK(EVP_DigestFinal_ex(sum->context, digest, &length) == 1);
    CHECK(length == DIGEST_BYTES);
    for (size_t i = 0; i < DIGEST_BYTES; i++) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 15];
    }
    hex[SHA256_HEX_SIZE - 1] = '\0';
    sha256_fini(sum);
}

void sha256_fini(struct sha256 *sum)
{
    EVP_MD_CTX_free(sum->context);
    sum->context = NULL;
}

enum status sha256_hex(const void *bytes, size_t count, char hex[SHA256_HEX_SIZE])
{
    struct sha256 sum;
    enum status status = sha256_init(&sum);
    if (status != STATUS_OK)
        return status;
    sha256_update(&sum, bytes, count);
    sha256_final(&sum, hex);
    return STATUS_OK;
}
