/*
 * Named ranges of time for a profiler. Nsight Systems shows them (NVTX) above what the GPU does:
 *
 *     main thread     [step                                             ]
 *                       [forward conv1][forward ...]..[backward conv1]
 *     any thread                             [bucket 0        ]  from comm_start to comm_wait
 *     averaging                                [bucket 0 allreduce]
 *
 * A range of the host's: what is asked of a GPU in it, a profiler shows there as well. Names are
 * read during the call only. Without a profiler a call is a test of a pointer; in a build without
 * CUDA's toolkit it does nothing.
 */
#ifndef PSRING_COMMON_OBS_RANGE_H
#define PSRING_COMMON_OBS_RANGE_H

#include <stdint.h>

/* Of the calling thread; ranges nest, the innermost ends. */
void range_begin(const char *name);
void range_end(void);

/* Of no thread: open ranges may overlap, and another thread may close them. */
uint64_t range_open(const char *name);
void range_close(uint64_t range);

#endif
