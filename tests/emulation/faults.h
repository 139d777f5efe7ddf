/*
 * Extends the emulated run-time (runtime.cu) for psring_emulated; the linker calls __wrap_NAME
 * instead of NAME. It adds streams with work of another thread, so that kernels of NCCL's stand-in
 * take time and wait for peers. It also adds several GPUs, with a current GPU for each thread, and
 * failures. Environment:
 *
 * EMULATED_FAIL=alloc:N   only the N-th call that allocates fails for lack of memory: device and
 *                         pinned memory, streams, events, graphs
 * EMULATED_FAIL=call:N    the N-th of the other calls on a stream fails, and so do all later ones,
 *                         as after a kernel that has failed
 * EMULATED_LATE=N         work on a stream is delayed until a thread waits for it; the first N
 *                         queries of an event or a stream find it unfinished
 * EMULATED_REACHED=FILE   is created when the call of EMULATED_FAIL has come
 * EMULATED_LEFT=FILE      at the end of the process: a line for each allocation that was not freed
 */
#ifndef PSRING_TESTS_EMULATION_FAULTS_H
#define PSRING_TESTS_EMULATION_FAULTS_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Any thread: adds work of another thread to `stream`, and returns its number. The working thread
 * calls emulation_stream_begin, which waits until all earlier work of the stream is done, and then
 * emulation_stream_done. Work of one stream is done in order. */
uint64_t emulation_stream_give(cudaStream_t stream);
void emulation_stream_begin(cudaStream_t stream, uint64_t work);
void emulation_stream_done(cudaStream_t stream, uint64_t work);

/* Writes the PCI bus id of the calling thread's GPU. */
void emulation_gpu(char *id, int bytes);

#ifdef __cplusplus
}
#endif

#endif
