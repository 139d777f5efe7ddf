/*
 * NCCL's functions, as the backend calls them, passed on to a library that is opened at the first
 * call. A psring with --backend nccl starts on machines without NCCL, and it can use the NCCL of a
 * Python wheel. A test that plays NCCL defines the functions itself.
 */
#include <dlfcn.h>
#include <nccl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "common/base/symbol.h"
#include "common/base/wheels.h"

#define NCCL_NAME "libnccl.so.2"

#define NCCL_FUNCTIONS(X)                                                                          \
    X(ncclGetVersion)                                                                              \
    X(ncclGetErrorString)                                                                          \
    X(ncclGetLastError)                                                                            \
    X(ncclGetUniqueId)                                                                             \
    X(ncclCommInitRankConfig)                                                                      \
    X(ncclCommGetAsyncError)                                                                       \
    X(ncclCommFinalize)                                                                            \
    X(ncclCommDestroy)                                                                             \
    X(ncclCommAbort)                                                                               \
    X(ncclCommRegister)                                                                            \
    X(ncclCommDeregister)                                                                          \
    X(ncclRedOpCreatePreMulSum)                                                                    \
    X(ncclRedOpDestroy)                                                                            \
    X(ncclGroupStart)                                                                              \
    X(ncclGroupEnd)                                                                                \
    X(ncclAllReduce)

/* Older headers declare these without a prototype, or not at all. */
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
ncclResult_t ncclCommRegister(const ncclComm_t comm, void *memory, size_t bytes, void **handle);
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle);

#define MEMBER(name) __typeof__(&(name)) name;
static struct {
    NCCL_FUNCTIONS(MEMBER)
} call;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool ready;
static char reason[512]; /* why not */

/* From NCCL 2.19 on; nccl.c asks for the version before it calls them. */
static bool is_optional(const char *name)
{
    return strcmp(name, "ncclCommRegister") == 0 || strcmp(name, "ncclCommDeregister") == 0;
}

static void open_nccl(void)
{
    /* The library that configure found, then the loader's, then a wheel's. */
    void *library = PSRING_NCCL_PATH[0] ? dlopen(PSRING_NCCL_PATH, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library)
        library = dlopen(NCCL_NAME, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *error = dlerror();
        snprintf(reason, sizeof reason,
                 "%s cannot be loaded (%.300s); install NCCL or name its folder in LD_LIBRARY_PATH",
                 NCCL_NAME, error ? error : "no reason");
        library = wheels_open("nccl", NCCL_NAME);
    }
    if (!library)
        return;
    const char *missing = NULL;
#define FIND(name)                                                                                 \
    if (!symbol_find(library, #name, &call.name) && !missing && !is_optional(#name))               \
        missing = #name;
    NCCL_FUNCTIONS(FIND)
    ready = !missing;
    if (missing)
        snprintf(reason, sizeof reason, "%s has no %s; use NCCL 2.14 or newer", NCCL_NAME, missing);
}

static bool is_ready(void)
{
    pthread_once(&once, open_nccl);
    return ready;
}

/* A result for a library that is not there; ncclGetErrorString names the reason. */
#define PASS(function, arguments) return is_ready() ? call.function arguments : ncclSystemError

ncclResult_t ncclGetVersion(int *version)
{
    PASS(ncclGetVersion, (version));
}

const char *ncclGetErrorString(ncclResult_t result)
{
    return is_ready() ? call.ncclGetErrorString(result) : reason;
}

const char *ncclGetLastError(ncclComm_t comm)
{
    return is_ready() ? call.ncclGetLastError(comm) : "";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    PASS(ncclGetUniqueId, (id));
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    PASS(ncclCommInitRankConfig, (comm, ranks, id, rank, config));
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state)
{
    PASS(ncclCommGetAsyncError, (comm, state));
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    PASS(ncclCommFinalize, (comm));
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    PASS(ncclCommDestroy, (comm));
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    PASS(ncclCommAbort, (comm));
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void *memory, size_t bytes, void **handle)
{
    PASS(ncclCommRegister, (comm, memory, bytes, handle));
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle)
{
    PASS(ncclCommDeregister, (comm, handle));
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t type,
                                      ncclScalarResidence_t residence, ncclComm_t comm)
{
    PASS(ncclRedOpCreatePreMulSum, (op, scalar, type, residence, comm));
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm)
{
    PASS(ncclRedOpDestroy, (op, comm));
}

ncclResult_t ncclGroupStart(void)
{
    PASS(ncclGroupStart, ());
}

ncclResult_t ncclGroupEnd(void)
{
    PASS(ncclGroupEnd, ());
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    PASS(ncclAllReduce, (from, to, count, type, op, comm, stream));
}
