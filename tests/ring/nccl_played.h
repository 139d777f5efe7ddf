/*
 * NCCL, the part of CUDA that the backend calls itself, and a device, played for test_nccl: the
 * linker puts __wrap_NAME in the place of NAME. Nothing is computed.
 */
#ifndef PSRING_TESTS_RING_NCCL_PLAYED_H
#define PSRING_TESTS_RING_NCCL_PLAYED_H

#include <stdatomic.h>

#include "common/device/device.h"

enum { NEVER = 1 << 30 };

/* How the played NCCL and GPU behave, and what they were asked for. */
struct nccl_play {
    _Atomic int polls_to_ready; /* ncclCommGetAsyncError says "in progress" so often */
    _Atomic int error;          /* then this: an ncclResult_t */
    _Atomic int stuck;          /* the stream does not move on, until an abort */
    int refuse;                 /* what ncclAllReduce returns */
    int refuse_memory;          /* and ncclCommRegister */
    int off;                    /* which gives no handle */
    _Atomic int waits;          /* ncclCommDeregister comes to an end only by an abort */
    int others_refuse;          /* so many other ranks cannot register their memory */
    int registered;             /* of this one's */
    _Atomic int aborts, destroys, finalizes;
    int all_reduces, pre_multiplied, blocking;
    int undone; /* all-reduces that nobody has seen to be done */
    float scale;
    int log;        /* written to as NCCL does, if not 0 */
    char order[64]; /* of calls: r record, w wait, a all-reduce, () a group */
};
extern struct nccl_play play;

/* Its streams, events and one float of memory do nothing. */
extern struct device played_device;

#endif
