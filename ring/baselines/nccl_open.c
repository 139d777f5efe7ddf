/*
 * NCCL's functions for the backend. They call a library that is opened at the first call. For this
 * reason psring starts on machines without NCCL, and --backend nccl can use the NCCL of a Python
 * wheel. A test that emulates NCCL defines these functions itself.
 */
#include <dlfcn.h>
#include <nccl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "common/base/dynamic.h"

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

/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration */
#define MEMBER(name) __typeof__(&(name)) name;
static struct {
    NCCL_FUNCTIONS(MEMBER)
} call;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool ready;
static char reason[512]; /* why NCCL is not ready */

/* NCCL 2.19 and later have them; nccl.c checks the version before it calls them. */
static bool is_optional(const char *name)
{
    return strcmp(name, "ncclCommRegister") == 0 || strcmp(name, "ncclCommDeregister") == 0;
}

static void open_nccl(void)
{
    /* Order: the library that configure found, the loader's, a wheel's. */
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

const char *ncclGetErrorString(ncclResult_t result)
{
    return is_ready() ? call.ncclGetErrorString(result) : reason;
}

const char *ncclGetLastError(ncclComm_t comm)
{
    return is_ready() ? call.ncclGetLastError(comm) : "";
}

/* Defines a function that passes its arguments on. If the library is missing, the function returns
 * an error, and ncclGetErrorString gives the reason. */
#define PASS(function, parameters, arguments)                                                      \
    ncclResult_t function parameters                                                               \
    {                                                                                              \
        return is_ready() ? call.function arguments : ncclSystemError;                             \
    }

/* clang-format off */
PASS(ncclGetVersion, (int *version), (version))
PASS(ncclGetUniqueId, (ncclUniqueId *id), (id))
PASS(ncclCommInitRankConfig, (ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
     ncclConfig_t *config), (comm, ranks, id, rank, config))
PASS(ncclCommGetAsyncError, (ncclComm_t comm, ncclResult_t *state), (comm, state))
PASS(ncclCommFinalize, (ncclComm_t comm), (comm))
PASS(ncclCommDestroy, (ncclComm_t comm), (comm))
PASS(ncclCommAbort, (ncclComm_t comm), (comm))
PASS(ncclCommRegister, (const ncclComm_t comm, void *memory, size_t bytes, void **handle),
     (comm, memory, bytes, handle))
PASS(ncclCommDeregister, (const ncclComm_t comm, void *handle), (comm, handle))
PASS(ncclRedOpCreatePreMulSum, (ncclRedOp_t *op, void *scalar, ncclDataType_t type,
     ncclScalarResidence_t residence, ncclComm_t comm), (op, scalar, type, residence, comm))
PASS(ncclRedOpDestroy, (ncclRedOp_t op, ncclComm_t comm), (op, comm))
PASS(ncclGroupStart, (void), ())
PASS(ncclGroupEnd, (void), ())
PASS(ncclAllReduce, (const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
     ncclComm_t comm, cudaStream_t stream), (from, to, count, type, op, comm, stream))
/* clang-format on */
