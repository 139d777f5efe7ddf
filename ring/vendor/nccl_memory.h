/*
 * NCCL's user-buffer registration: what lies in registered memory other GPUs and network cards may
 * read and write where it is, without a copy through NCCL's own buffers. NCCL has had it since
 * 2.19, and for the ring since 2.23. To register only notes the memory; NCCL decides at the first
 * all-reduce whether it uses it, and says nothing if not.
 *
 * Only where it is asked for: buckets lie in memory of cudaMalloc's, and NCCL's guide calls its
 * registration unsafe: a run may hang, and a failure or an abort may end in a segmentation fault.
 *
 * Either all ranks use registered memory or none, NCCL's guide demands: ranks agree, and where one
 * cannot, all fail.
 *
 * Threads: as nccl_watch.h; calls take the watch's lock.
 */
#ifndef PSRING_RING_NCCL_MEMORY_H
#define PSRING_RING_NCCL_MEMORY_H

#include "common/comm/backend.h"
#include "ring/vendor/nccl_watch.h"

/* Collective over the site's group: the memory of the present layout. *handle is NULL where it is
 * not registered: the layout names none, or the options do not want it. That a rank cannot is a
 * failure of all. */
enum status nccl_memory_register(void **handle, struct nccl_watch *watch,
                                 const struct comm_site *site);

/* Before the memory is freed, with no all-reduce on its way. Sets *handle to NULL; NULL is fine.
 * May wait for peers, no longer than the watch's time-out. */
enum status nccl_memory_deregister(void **handle, struct nccl_watch *watch);

#endif
