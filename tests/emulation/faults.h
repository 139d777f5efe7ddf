/*
 * What psring_emulated adds to the emulated run-time (runtime.cu): the linker puts __wrap_NAME
 * before NAME. Streams that another thread works on, so that NCCL's stand-in has kernels that take
 * their time and wait for peers; several GPUs, of which each thread has one that is its own; and
 * failures. By environment:
 *
 * EMULATED_FAIL=alloc:N   the N-th call that allocates fails for want of memory, that one only:
 *                         device and pinned memory, streams, events, graphs
 * EMULATED_FAIL=call:N    the N-th of the other calls that work on a stream fails, and so do all
 *                         after it, as after a kernel that has failed
 * EMULATED_LATE=N         what is asked of a stream is put off until somebody waits for it, and an
 *                         event, and a stream, is found finished by the query after N others
 * EMULATED_REACHED=FILE   is made when the call that EMULATED_FAIL means has come
 * EMULATED_LEFT=FILE      when the process ends: what it has allocated and not freed, by lines
 */
#ifndef PSRING_TESTS_EMULATION_FAULTS_H
#define PSRING_TESTS_EMULATION_FAULTS_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Any thread: `stream` has further work from here on, until emulation_stream_done of what this
 * returns. Who does it calls emulation_stream_begin first, which returns when what was asked of the
 * stream before is done. Work of one stream is done in order. */
uint64_t emulation_stream_give(cudaStream_t stream);
void emulation_stream_begin(cudaStream_t stream, uint64_t work);
void emulation_stream_done(cudaStream_t stream, uint64_t work);

/* The PCI bus id of the calling thread's GPU. */
void emulation_gpu(char *id, int bytes);

#ifdef __cplusplus
}
#endif

#endif
