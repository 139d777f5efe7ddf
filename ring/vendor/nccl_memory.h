/*
 * NCCL's user-buffer registration: what lies in registered memory other GPUs and network cards read
 * and write where it is, without a copy through NCCL's own buffers; and still by the algorithm that
 * was asked for. NCCL has had it since 2.19, and for the ring since 2.23.
 *
 * Either all ranks use registered memory or none: NCCL does not say what happens otherwise. So the
 * ranks agree (nccl_memory_register), and where one cannot, none does.
 *
 * Threads: as nccl_watch.h; calls take the watch's lock.
 */
#ifndef PSRING_RING_NCCL_MEMORY_H
#define PSRING_RING_NCCL_MEMORY_H

#include "common/comm/backend.h"
#include "ring/vendor/nccl_watch.h"

/* Collective over the site's group: the memory of the present layout. *handle is NULL where it is
 * not registered: the layout names none, the options do not want it, or a rank could not; the last
 * is a failure if the options ask for it (COMM_REGISTER_ON). */
enum status nccl_memory_register(void **handle, struct nccl_watch *watch,
                                 const struct comm_site *site);

/* Before the memory is freed, with no all-reduce on its way. Sets *handle to NULL; NULL is fine. */
enum status nccl_memory_deregister(void **handle, struct nccl_watch *watch);

#endif
