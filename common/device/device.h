/*
 * A device computes. It owns memory and offers the operations of training a CNN through one const
 * table (ops.h). Callers never branch on which device they have.
 *
 * Operations run in the order of the calls, possibly asynchronously (CUDA's compute stream). They
 * return no error. The device keeps its first failure, and device_sync returns it. Results are
 * bit-identical for any number of threads. No operation allocates: the `*_prepare` entries reserve
 * the scratch memory of a shape once.
 *
 * Threads: one thread at a time drives a device. A device manages its internal threads itself.
 */
#ifndef PSRING_COMMON_DEVICE_DEVICE_H
#define PSRING_COMMON_DEVICE_DEVICE_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/device/ops.h"
#include "common/device/stream.h"

enum device_kind { DEVICE_CPU, DEVICE_CUDA };

/* Names by enum device_kind, ended by NULL: the choices of --device. */
extern const char *const device_kind_names[];

/* Whether device_repeat records what it repeats. auto: record if the device can. */
enum device_graph { DEVICE_GRAPH_AUTO, DEVICE_GRAPH_ON, DEVICE_GRAPH_OFF };

struct device_options {
    enum device_kind kind;
    int threads;             /* cpu: compute threads, including the caller; 0 means 1 */
    int gpu;                 /* cuda: its number, as CUDA counts in this process */
    enum device_graph graph; /* cuda: whole steps as CUDA graphs */
    bool tf32; /* cuda: products of float32 with 10 bits of mantissa, on tensor cores */
};

/* The first member of every kind's own struct. */
struct device {
    const struct device_ops *ops;
    struct device_inputs *inputs; /* inputs.h; NULL: none exist yet */
};

/*
 * Opens a device. The caller closes it after its last use. STATUS_UNSUPPORTED if this build or this
 * machine lacks the device; one logged line says what to do.
 */
enum status device_open(struct device **device, const struct device_options *options);

/* Returns `reason`, filled with why this build or this machine lacks the kind and what to do.
 * Returns NULL if the kind is available. */
enum { DEVICE_REASON_BYTES = 256 };
const char *device_unavailable(enum device_kind kind, char reason[DEVICE_REASON_BYTES]);

/* Returns the number of GPUs that this process sees and stores the PCI bus id of each
 * ("0000:3b:00.0") by GPU number. Reports at most DEVICE_GPUS_MAX. The parts of a divided GPU (MIG)
 * share one id. */
enum { DEVICE_GPUS_MAX = 16, DEVICE_GPU_ID_BYTES = 20 };
int device_gpus(char ids[DEVICE_GPUS_MAX][DEVICE_GPU_ID_BYTES]);

/* Calls `visit` with a name and a line of text for each fact about a kind: its devices and the
 * libraries that it needs. Calls it never if the kind is unavailable. */
typedef void device_visitor(void *context, const char *name, const char *text);
void device_list(enum device_kind kind, device_visitor *visit, void *context);

/* Waits for the work in progress, frees the device and sets *device to NULL. NULL is allowed. */
void device_close(struct device **device);

/* Waits until all operations have ended; returns the first failure since the device was opened. */
enum status device_sync(struct device *device);

/* The load of a device, which other processes may share. */
struct device_usage {
    uint64_t memory_bytes; /* used on the device by all processes; 0: unknown */
    double utilization;    /* share of the last second or less in which it computed; NAN: unknown */
};
#define DEVICE_USAGE_UNKNOWN ((struct device_usage){.utilization = (double)NAN})

/* The current load. Unknown on the CPU, and if the device's driver does not report it. Any
 * thread. */
void device_usage(const struct device *device, struct device_usage *usage);

/*
 * Allocates `bytes` of uninitialised device memory, aligned to 64 bytes. The caller frees it. 0
 * bytes give a valid pointer. STATUS_NO_MEMORY is logged with the size and the purpose `what`.
 */
enum status device_alloc(struct device *device, const char *what, size_t bytes, void **memory);

/* The device library's name for that failure, e.g. " (cudaErrorMemoryAllocation)"; or "". */
const char *device_no_memory(const struct device *device);

/* NULL is allowed. */
void device_free(struct device *device, void *memory);

/*
 * Copies host to device and device to host. After upload returns, the caller may reuse the host
 * memory. Download waits for the preceding operations; after it returns, the caller may read the
 * host memory.
 */
void device_upload(struct device *device, void *to, const void *from_host, size_t bytes);
enum status device_download(struct device *device, void *to_host, const void *from, size_t bytes);

#endif
