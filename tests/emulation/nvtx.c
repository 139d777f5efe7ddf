/*
 * A stand-in for a profiler: NVTX opens the library that NVTX_INJECTION64_PATH names and calls its
 * InitializeInjectionNvtx2. Every call appends a line "THREAD push|pop|open|close [ID] [NAME]" to
 * the file NVTX_LOG.PID of its process.
 */
#include <fcntl.h>
#include <nvtx3/nvToolsExt.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int log_file = -1;
static atomic_ullong ranges;

/* One write for each line, so that lines of several threads stay whole and in order. */
static void say(const char *what, unsigned long long id, const char *name)
{
    char line[256];
    int length = snprintf(line, sizeof line, "%d %s %llu %s\n", (int)gettid(), what, id, name);
    if (length < 0 || length >= (int)sizeof line || write(log_file, line, (size_t)length) != length)
        abort();
}

static int push(const char *name)
{
    say("push", 0, name);
    return 0;
}

static int pop(void)
{
    say("pop", 0, "");
    return 0;
}

static nvtxRangeId_t start(const char *name)
{
    nvtxRangeId_t id = atomic_fetch_add(&ranges, 1) + 1;
    say("open", id, name);
    return id;
}

static void end(nvtxRangeId_t id)
{
    say("close", id, "");
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t export_table);

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t export_table)
{
    const NvtxExportTableCallbacks *callbacks = export_table(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table;
    unsigned size;
    char path[512];
    const char *prefix = getenv("NVTX_LOG");
    if (!prefix || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size))
        return 0;
    snprintf(path, sizeof path, "%s.%d", prefix, (int)getpid());
    log_file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    *table[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)push;
    *table[NVTX_CBID_CORE_RangePop] = (NvtxFunctionPointer)pop;
    *table[NVTX_CBID_CORE_RangeStartA] = (NvtxFunctionPointer)start;
    *table[NVTX_CBID_CORE_RangeEnd] = (NvtxFunctionPointer)end;
    return log_file >= 0;
}
