/*
 * Plays NCCL, the part of CUDA that the backend itself calls, and a device, for test_nccl. The
 * linker calls __wrap_NAME instead of NAME. Nothing is computed.
 */
#ifndef PSRING_TESTS_RING_NCCL_PLAYED_H
#define PSRING_TESTS_RING_NCCL_PLAYED_H

#include <stdatomic.h>

#include "common/device/device.h"

enum { NEVER = 1 << 30 };

/* How the played NCCL and GPU behave, and which calls they got. */
struct nccl_play {
    _Atomic int polls_to_ready; /* ncclCommGetAsyncError returns "in progress" this often */
    _Atomic int error;          /* and then this ncclResult_t */
    _Atomic int stuck;          /* the stream makes no progress until an abort */
    int refuse;                 /* result of ncclAllReduce */
    int refuse_memory;          /* result of ncclCommRegister */
    int off;                    /* ncclCommRegister returns no handle */
    _Atomic int waits;          /* ncclCommDeregister waits until an abort */
    int others_refuse;          /* number of other ranks that cannot register memory */
    int registered;             /* registered buffers of this rank */
    _Atomic int aborts, destroys, finalizes;
    int all_reduces, pre_multiplied, blocking;
    int undone; /* all-reduces whose end no call has seen */
    float scale;
    int log;        /* if not 0, a descriptor for lines as NCCL writes them */
    char order[64]; /* of calls: r record, w wait, a all-reduce, () a group */
};
extern struct nccl_play play;

/* Its streams, events and single float of memory do nothing. */
extern struct device played_device;

#endif
