#include "ring/vendor/nccl_memory.h"

#include <nccl.h>

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 19, 0)
ncclResult_t ncclCommRegister(const ncclComm_t comm, void *memory, size_t bytes, void **handle);
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle);
#endif

/* The library that the program runs with may be older than the header that it was built with. */
static bool is_too_old(void)
{
    int version = 0;
    return ncclGetVersion(&version) == ncclSuccess && version < 21900;
}

static const char *why_not(ncclResult_t result, const void *handle)
{
    if (result != ncclSuccess && result != ncclInProgress)
        return ncclGetErrorString(result);
    return handle ? "" : "registration is off in NCCL";
}

/* Of this rank alone. That it cannot be done is no failure of the communicator's. */
static enum status try_to_register(void **handle, struct nccl_watch *watch,
                                   const struct comm_layout *layout, const char **why)
{
    *why = "this NCCL has no ncclCommRegister; it takes 2.19 or later";
    if (is_too_old())
        return STATUS_OK;
    enum status status = nccl_watch_lock(watch);
    if (status == STATUS_OK) {
        ncclResult_t result =
            ncclCommRegister(nccl_watch_comm(watch), layout->memory,
                             layout->memory_count * sizeof *layout->memory, handle);
        if (result == ncclInProgress)
            status = nccl_watch_settle(watch, "ncclCommRegister");
        else if (result != ncclSuccess)
            *handle = NULL;
        *why = why_not(result, *handle);
    }
    return nccl_watch_unlock(watch, status);
}

enum status nccl_memory_register(void **handle, struct nccl_watch *watch,
                                 const struct comm_site *site)
{
    enum status status = STATUS_OK;
    const struct comm_layout *layout = site->layout;
    const char *why;
    *handle = NULL;
    if (!site->options->library.registers || !layout->memory || site->workers == 1)
        return STATUS_OK;
    TRY(try_to_register(handle, watch, layout, &why));
    bool mine = *handle != NULL;
    double without = mine ? 0 : 1;
    TRY(world_sum(site->world, site->group, &without, 1));
    if (without == 0)
        return STATUS_OK;
    log_error("--nccl-register on: the memory of buckets cannot be registered%s%s%s; leave the "
              "option out, and NCCL does without",
              mine ? " on another rank" : " (", mine ? "" : why, mine ? "" : ")");
    TRY(nccl_memory_deregister(handle, watch));
    status = STATUS_UNSUPPORTED;
out:
    return status;
}

/* NCCL may wait for a peer in it, which may be stopped: so not under the lock, which the watch
 * needs to cut the communicator when the time is over. */
enum status nccl_memory_deregister(void **handle, struct nccl_watch *watch)
{
    if (!*handle)
        return STATUS_OK;
    enum status status = nccl_watch_lock(watch);
    if (status == STATUS_OK) {
        ncclComm_t comm = nccl_watch_comm(watch);
        nccl_watch_leave(watch, "ncclCommDeregister");
        ncclResult_t result = ncclCommDeregister(comm, *handle);
        status = nccl_watch_return(watch); /* a failure: `comm` is no more */
        if (status == STATUS_OK)
            status = status_from_nccl(result, comm, "ncclCommDeregister");
    }
    *handle = NULL;
    return nccl_watch_unlock(watch, status);
}
