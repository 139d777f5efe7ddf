/*
 * A stand-in for the parts of NCCL that psring calls. It works on the emulated device, whose memory
 * is the host's. Ranks meet and sum over separate sockets (nccl_peers.h). Each communicator has a
 * thread, which plays its kernels. Calls return at once. Their stream is busy until the sum is
 * there or, if a peer has gone, until an abort. As with NCCL, a non-blocking communicator reports
 * "in progress" after the end of a group. The group's calls are on their stream only after that.
 *
 * Different numbers of calls in a group are a conflict between ranks: NCCL may order the calls of a
 * group freely. Memory that only some ranks have registered is a conflict, too.
 *
 * Rank 0 writes a line for every all-reduce to the file that NCCL_DEBUG_FILE names. Environment:
 *
 * EMULATED_NCCL_FAULT=KIND:RANK:CALL   the fault of that rank, at its all-reduce CALL (from 0)
 *     join       the rank never joins the others    (at once; CALL is ignored)
 *     register   ncclCommRegister fails             (likewise)
 *     refuse     ncclAllReduce returns an error
 *     error      an error that is reported later
 *     stall      the rank's kernel does not end
 *     die        the process ends in the middle of the sum
 * EMULATED_NCCL_CHOICE=WORD            the algorithm that is used, whatever NCCL_ALGO requests
 * EMULATED_NCCL_REPORT=FILE            FILE.RANK gets a line when a communicator ends
 */
#include <ctype.h>
#include <nccl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/emulation/faults.h"
#include "tests/emulation/nccl_peers.h"

enum { GROUP_CALLS = 64, GROUPS = 256, RANGES = 8, POLLS = 2, NAME_BYTES = 64 };

struct call {
    float *data;
    size_t count;
    float scale; /* multiplies each summand; 1: none */
    bool registered;
};

/* The calls from ncclGroupStart to ncclGroupEnd. */
struct group {
    struct call calls[GROUP_CALLS];
    int count;
    cudaStream_t stream;
    uint64_t work; /* its number on the stream; 0: not there yet */
};

struct range {
    const char *from, *to; /* NULL: free */
};

/* The object of ncclComm_t. */
struct ncclComm {
    char name[NAME_BYTES];
    char gpu[32]; /* of the thread that created the communicator */
    struct peers peers;
    struct range ranges[RANGES]; /* registered */
    float scale;                 /* of the only operation besides the sum */
    FILE *log;

    pthread_t thread;
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t changed;
    ncclResult_t state;
    int polls;         /* remaining polls before the last group is on its stream */
    struct group *all; /* (GROUPS), a ring */
    uint64_t given, launched, done;
    bool ending;

    /* For the report. */
    int groups, calls, registered;
};

static _Thread_local struct {
    int depth;
    ncclComm_t comm; /* the communicator of all calls so far */
    struct group group;
} open_group;

/* -------- faults ------------------------------------------------------------------------------ */

/* Returns whether this rank has the fault KIND. *call: the all-reduce of the fault. */
static bool has_fault(const struct ncclComm *comm, const char *kind, int *call)
{
    const char *text = getenv("EMULATED_NCCL_FAULT");
    char found[16];
    int rank;
    return text && sscanf(text, "%15[a-z]:%d:%d", found, &rank, call) == 3 &&
           strcmp(found, kind) == 0 && rank == comm->peers.rank;
}

static bool fault_at(const struct ncclComm *comm, const char *kind, int call)
{
    int at;
    return has_fault(comm, kind, &at) && at == call;
}

static void die(void *context)
{
    (void)context;
    _exit(9);
}

/* -------- the thread: joining, and kernels ---------------------------------------------------- */

static void set_state(struct ncclComm *comm, ncclResult_t state)
{
    pthread_mutex_lock(&comm->lock);
    comm->state = state;
    pthread_cond_broadcast(&comm->changed);
    pthread_mutex_unlock(&comm->lock);
}

static ncclResult_t from_peers(enum peers_result result)
{
    return result == PEERS_OK         ? ncclSuccess
           : result == PEERS_CONFLICT ? ncclInvalidUsage
                                      : ncclRemoteError;
}

/* Writes "Ring" as "RING". Without a request, these are NCCL's choices. */
static void choose(char algorithm[NAME_BYTES], char protocol[NAME_BYTES], size_t bytes)
{
    const char *forced = getenv("EMULATED_NCCL_CHOICE"), *asked = getenv("NCCL_ALGO");
    const char *wanted = getenv("NCCL_PROTO");
    bool is_short = bytes < 65536;
    const char *words[] = {forced  ? forced
                           : asked ? asked
                                   : (is_short ? "Tree" : "Ring"),
                           wanted ? wanted : (is_short ? "LL" : "Simple")};
    char *texts[] = {algorithm, protocol};
    for (int w = 0; w < 2; w++) {
        size_t i = 0;
        for (; words[w][i] && i < NAME_BYTES - 1; i++)
            texts[w][i] = (char)toupper((unsigned char)words[w][i]);
        texts[w][i] = '\0';
    }
}

static void write_log(struct ncclComm *comm, const struct call *call)
{
    char algorithm[NAME_BYTES], protocol[NAME_BYTES];
    size_t bytes = call->count * sizeof *call->data;
    if (!comm->log || comm->peers.size == 1)
        return;
    choose(algorithm, protocol, bytes);
    fprintf(comm->log,
            "host:1:1 [0] NCCL INFO AllReduce: %zu Bytes -> Algo %s proto %s "
            "channel{Lo..Hi}={0..0}\n",
            bytes, algorithm, protocol);
    fflush(comm->log);
}

static void wait_for_stop(struct ncclComm *comm)
{
    while (!comm->peers.stop)
        usleep(2000);
}

/* Must be equal on all ranks, otherwise the call is a conflict. */
static int mark_of(const struct call *call, int calls_in_group)
{
    return 2 * calls_in_group + call->registered;
}

static ncclResult_t do_call(struct ncclComm *comm, const struct call *call, int calls_in_group,
                            int number)
{
    if (fault_at(comm, "error", number))
        return ncclInternalError;
    if (fault_at(comm, "stall", number)) {
        wait_for_stop(comm);
        return ncclRemoteError;
    }
    comm->peers.midway = fault_at(comm, "die", number) ? die : NULL;
    for (size_t i = 0; call->scale != 1.0f && i < call->count; i++)
        call->data[i] *= call->scale;
    return from_peers(
        peers_sum(&comm->peers, call->data, call->count, mark_of(call, calls_in_group)));
}

/* Reports a failed kernel, which then waits for an abort, like NCCL's kernels. */
static void do_group(struct ncclComm *comm, const struct group *group, int first)
{
    for (int i = 0; i < group->count; i++) {
        ncclResult_t result = do_call(comm, &group->calls[i], group->count, first + i);
        if (result == ncclSuccess)
            continue;
        set_state(comm, result);
        wait_for_stop(comm);
        return;
    }
}

static void *run(void *argument)
{
    struct ncclComm *comm = argument;
    char place[160];
    const char *host = getenv("NCCL_HOSTID");
    int call, number = 0;
    snprintf(place, sizeof place, "%s %s", host ? host : "host", comm->gpu);
    if (has_fault(comm, "join", &call))
        wait_for_stop(comm);
    enum peers_result joined = peers_join(&comm->peers, comm->name, place);
    if (joined != PEERS_STOPPED)
        set_state(comm, from_peers(joined));
    pthread_mutex_lock(&comm->lock);
    for (;;) {
        while (comm->done == comm->launched && !comm->ending)
            pthread_cond_wait(&comm->changed, &comm->lock);
        if (comm->done == comm->launched)
            break;
        const struct group *group = &comm->all[comm->done % GROUPS];
        pthread_mutex_unlock(&comm->lock);
        emulation_stream_begin(group->stream, group->work);
        do_group(comm, group, number);
        number += group->count;
        pthread_mutex_lock(&comm->lock); /* first: after "done" the caller may deregister */
        emulation_stream_done(group->stream, group->work);
        comm->done++;
        pthread_cond_broadcast(&comm->changed);
    }
    pthread_mutex_unlock(&comm->lock);
    return NULL;
}

/* -------- a communicator's life --------------------------------------------------------------- */

ncclResult_t ncclGetVersion(int *version)
{
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    return result == ncclSuccess        ? "no error"
           : result == ncclInvalidUsage ? "invalid usage"
           : result == ncclRemoteError  ? "remote process exited or there was a network error"
                                        : "an error of the stand-in";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return "";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    static int number;
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "emulated-nccl-%d-%d", (int)getpid(), number++);
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    const char *path = getenv("NCCL_DEBUG_FILE"), *about = getenv("NCCL_DEBUG_SUBSYS");
    struct ncclComm *comm = calloc(1, sizeof *comm);
    *out = NULL;
    if (!comm || config->blocking)
        abort();
    comm->all = calloc(GROUPS, sizeof *comm->all);
    comm->peers =
        (struct peers){.rank = rank, .size = ranks, .listening = -1, .next = -1, .previous = -1};
    snprintf(comm->name, sizeof comm->name, "%.*s", NAME_BYTES - 1, id.internal);
    emulation_gpu(comm->gpu, sizeof comm->gpu);
    comm->scale = 1;
    if (rank == 0 && path && about && strstr(about, "TUNING"))
        comm->log = fopen(path, "r+"); /* not "w": a further communicator appends */
    if (comm->log)
        fseek(comm->log, 0, SEEK_END);
    pthread_mutex_init(&comm->lock, NULL);
    pthread_cond_init(&comm->changed, NULL);
    comm->state = ncclInProgress;
    if (pthread_create(&comm->thread, NULL, run, comm) != 0)
        abort();
    *out = comm;
    return ncclInProgress;
}

/* Puts the calls of the last group on their stream. Locked. */
static void launch(struct ncclComm *comm)
{
    while (comm->launched < comm->given) {
        struct group *group = &comm->all[comm->launched % GROUPS];
        group->work = emulation_stream_give(group->stream);
        for (int i = 0; i < group->count; i++)
            write_log(comm, &group->calls[i]);
        comm->launched++;
    }
    pthread_cond_broadcast(&comm->changed);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state)
{
    if (!comm)
        return ncclInvalidArgument;
    pthread_mutex_lock(&comm->lock);
    *state = comm->state;
    if (comm->state == ncclSuccess && comm->polls > 0) {
        *state = ncclInProgress;
        if (--comm->polls == 0)
            launch(comm);
    } else if (comm->state == ncclSuccess && comm->ending && comm->done < comm->launched) {
        *state = ncclInProgress; /* during ncclCommFinalize */
    }
    pthread_mutex_unlock(&comm->lock);
    return ncclSuccess;
}

static void end(struct ncclComm *comm)
{
    const char *path = getenv("EMULATED_NCCL_REPORT");
    char name[512];
    pthread_mutex_lock(&comm->lock);
    comm->ending = true;
    pthread_cond_broadcast(&comm->changed);
    pthread_mutex_unlock(&comm->lock);
    pthread_join(comm->thread, NULL);
    peers_leave(&comm->peers);
    snprintf(name, sizeof name, "%s.%d", path ? path : "", comm->peers.rank);
    FILE *report = path ? fopen(name, "a") : NULL;
    if (report) {
        int left = 0; /* still registered */
        for (int i = 0; i < RANGES; i++)
            left += comm->ranges[i].from != NULL;
        fprintf(report, "groups %d calls %d registered %d left %d\n", comm->groups, comm->calls,
                comm->registered, left);
        fclose(report);
    }
    if (comm->log)
        fclose(comm->log);
    pthread_cond_destroy(&comm->changed);
    pthread_mutex_destroy(&comm->lock);
    free(comm->all);
    free(comm);
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    pthread_mutex_lock(&comm->lock);
    comm->ending = true;
    pthread_cond_broadcast(&comm->changed);
    pthread_mutex_unlock(&comm->lock);
    return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    end(comm);
    return ncclSuccess;
}

/* Ends kernels that wait for peers. */
ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    comm->peers.stop = true;
    end(comm);
    return ncclSuccess;
}

/* -------- operations -------------------------------------------------------------------------- */

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t type,
                                      ncclScalarResidence_t residence, ncclComm_t comm)
{
    if (type != ncclFloat || residence != ncclScalarHostImmediate)
        return ncclInvalidArgument;
    memcpy(&comm->scale, scalar, sizeof comm->scale);
    *op = (ncclRedOp_t)ncclNumOps;
    return ncclSuccess;
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm)
{
    comm->scale = 1;
    return (int)op == ncclNumOps ? ncclSuccess : ncclInvalidArgument;
}

static ncclResult_t change_range(ncclComm_t comm, struct range from, struct range to, void **handle)
{
    for (int i = 0; i < RANGES; i++) {
        struct range *range = &comm->ranges[i];
        if (range->from != from.from)
            continue;
        *range = to;
        *handle = range;
        return ncclSuccess;
    }
    return ncclInvalidArgument;
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void *memory, size_t bytes, void **handle)
{
    int call;
    struct range range = {memory, (const char *)memory + bytes};
    if (!getenv("NCCL_LEGACY_CUDA_REGISTER"))
        abort(); /* NCCL would not use memory of cudaMalloc */
    if (has_fault(comm, "register", &call))
        return ncclSystemError;
    comm->registered++;
    return change_range(comm, (struct range){0}, range, handle);
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle)
{
    void *same;
    pthread_mutex_lock(&comm->lock);
    if (comm->done < comm->given)
        abort(); /* sums are under way in this memory */
    pthread_mutex_unlock(&comm->lock);
    return change_range(comm, *(struct range *)handle, (struct range){0}, &same);
}

static bool is_registered(const struct ncclComm *comm, const float *data, size_t count)
{
    const char *from = (const char *)data, *to = (const char *)(data + count);
    for (int i = 0; i < RANGES; i++) {
        if (comm->ranges[i].from && from >= comm->ranges[i].from && to <= comm->ranges[i].to)
            return true;
    }
    return false;
}

/* NCCL's header declares these without a prototype. */
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);

ncclResult_t ncclGroupStart(void)
{
    open_group.depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    ncclComm_t comm = open_group.comm;
    if (--open_group.depth > 0 || !comm)
        return ncclSuccess;
    pthread_mutex_lock(&comm->lock);
    if (comm->given - comm->done == GROUPS)
        abort(); /* more groups at once than this stand-in can hold */
    comm->all[comm->given++ % GROUPS] = open_group.group;
    comm->polls = POLLS;
    comm->groups++;
    comm->calls += open_group.group.count;
    pthread_mutex_unlock(&comm->lock);
    memset(&open_group, 0, sizeof open_group);
    return ncclInProgress;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, struct CUstream_st *stream)
{
    struct group *group = &open_group.group;
    if (from != to || type != ncclFloat || (op != ncclSum && (int)op != ncclNumOps) ||
        open_group.depth == 0 || group->count == GROUP_CALLS)
        abort();
    if (fault_at(comm, "refuse", comm->calls + group->count))
        return ncclInvalidUsage;
    open_group.comm = comm;
    group->stream = stream;
    group->calls[group->count++] = (struct call){.data = to,
                                                 .count = count,
                                                 .scale = op == ncclSum ? 1 : comm->scale,
                                                 .registered = is_registered(comm, to, count)};
    return ncclInProgress;
}
