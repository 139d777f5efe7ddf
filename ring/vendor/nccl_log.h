/*
 * What NCCL chose, read from its own log. NCCL has no call that tells by which algorithm an
 * all-reduce went, but with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=TUNING its rank 0 writes a line
 * for every call:
 *
 *     host:417:417 [0] NCCL INFO AllReduce: 4096 Bytes -> Algo RING proto SIMPLE channel{...
 *     host:417:417 [0] NCCL INFO 4096 Bytes -> Algo 1 proto 2 time 12.400000       (before 2.23)
 *     host:417:417 [0] NCCL INFO AllReduce [Symmetric]: 4096 Bytes -> Kernel AllReduce_AGxLL_R ...
 *
 * The last kind goes by none of the algorithms, but by kernels that load and store in the memory of
 * all GPUs: here "symmetric" (NCCL 2.27 and later, for memory in a symmetric window).
 *
 * Pure: text in, facts out. Lines that are none of these do not count.
 */
#ifndef PSRING_RING_NCCL_LOG_H
#define PSRING_RING_NCCL_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NCCL_NAME_BYTES = 16, NCCL_CHOICE_BYTES = 80 };

struct nccl_choice {
    const char *wanted;              /* "ring", say: what was asked for; NULL: anything. Borrowed */
    uint64_t calls;                  /* all-reduces that the log tells of */
    char algorithm[NCCL_NAME_BYTES]; /* of the last one: "ring", "tree", ... */
    char protocol[NCCL_NAME_BYTES];  /* "simple", "ll", "ll128" */
    uint64_t other_calls;            /* of them by another one than `wanted` */
    char other[NCCL_NAME_BYTES];     /* the last of those algorithms */
    bool mixed;                      /* not all calls were alike */
};

/* Adds what the (length) bytes at `text` say, whole lines, to `choice`, which starts from zero
 * but for `wanted`. */
void nccl_choice_read(struct nccl_choice *choice, const char *text, size_t length);

/* "ring/simple", with "/mixed" at the end if not all calls were alike; "" for no calls. */
void nccl_choice_text(const struct nccl_choice *choice, char text[NCCL_CHOICE_BYTES]);

#endif
