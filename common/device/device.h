/*
 * A device computes: it owns memory and offers the operations of training a CNN, through one const
 * table (ops.h). Callers never branch on which device they have.
 *
 * Operations run in the order of the calls, possibly asynchronously (CUDA's compute stream). They
 * report no error by themselves: a device that fails keeps its first failure, and device_sync
 * returns it. Results are bit-identical for any number of threads. Nothing is allocated inside an
 * operation: the `*_prepare` entries reserve the scratch memory that a shape needs, once.
 *
 * Threads: one thread at a time drives a device; the device's own threads are its own business.
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

/* Whether device_repeat records what it repeats; auto: where the device can. */
enum device_graph { DEVICE_GRAPH_AUTO, DEVICE_GRAPH_ON, DEVICE_GRAPH_OFF };

/* Whose convolutions; auto: cuDNN's, where it is found and computes what psring's own do. */
enum device_conv { DEVICE_CONV_AUTO, DEVICE_CONV_CUDNN, DEVICE_CONV_OWN };

/* Names by enum device_conv, ended by NULL: the choices of --conv. */
extern const char *const device_conv_names[];

struct device_options {
    enum device_kind kind;
    int threads;             /* cpu: threads that compute, the caller's included; 0 means 1 */
    int gpu;                 /* cuda: its number, as CUDA counts in this process */
    enum device_graph graph; /* cuda: whole steps as CUDA graphs */
    enum device_conv conv;   /* cuda */
    bool tf32; /* cuda: products of float32 with 10 bits of mantissa, on tensor cores */
};

/* The first member of every kind's own struct. */
struct device {
    const struct device_ops *ops;
    struct device_inputs *inputs; /* inputs.h; NULL: none yet */
};

/*
 * Opens a device; the caller closes it after all that uses it. STATUS_UNSUPPORTED, with one logged
 * line that says what to do, if this build or this machine does not have it.
 */
enum status device_open(struct device **device, const struct device_options *options);

/* Why this build or this machine does not have the kind, and what to do, in `reason`, which is also
 * returned; NULL where it does. */
enum { DEVICE_REASON_BYTES = 256 };
const char *device_unavailable(enum device_kind kind, char reason[DEVICE_REASON_BYTES]);

/* The GPUs that this process sees: how many, and the PCI bus id ("0000:3b:00.0") of each by its
 * number. No more than DEVICE_GPUS_MAX are told of. The parts of a divided GPU (MIG) have one id.
 */
enum { DEVICE_GPUS_MAX = 16, DEVICE_GPU_ID_BYTES = 20 };
int device_gpus(char ids[DEVICE_GPUS_MAX][DEVICE_GPU_ID_BYTES]);

/* Calls `visit` with a name and a line of text for everything worth knowing of a kind: each of the
 * devices, the libraries that it needs. Nothing where it is unavailable. */
typedef void device_visitor(void *context, const char *name, const char *text);
void device_list(enum device_kind kind, device_visitor *visit, void *context);

/* Waits for what was started, frees and sets *device to NULL. NULL is fine. */
void device_close(struct device **device);

/* Waits until all operations have ended; returns the first failure since the device was opened. */
enum status device_sync(struct device *device);

/* What a device that is shared with others says of itself. */
struct device_usage {
    uint64_t memory_bytes; /* in use on it, by all processes; 0: not known */
    double utilization;    /* of the last second or less, the share in which it computed; or NAN */
};
#define DEVICE_USAGE_UNKNOWN ((struct device_usage){.utilization = (double)NAN})

/* Of this moment. Not known on the CPU, nor where the device's driver does not tell. From any
 * thread. */
void device_usage(const struct device *device, struct device_usage *usage);

/* Whose convolutions compute the shapes that were prepared, and the sizes of batches that have come
 * or are expected: "own", "cudnn 9.19.0", or "cudnn 9.19.0 and own", by shape and size. The
 * device's. */
const char *device_convolutions(const struct device *device);

/* What decides a result's bits beside the program: "cpu", "cuda", "cuda with cudnn 9.19.0". In
 * `text`, which is also returned. */
enum { DEVICE_TEXT_BYTES = 64 };
const char *device_describe(const struct device *device, char text[DEVICE_TEXT_BYTES]);

/*
 * `bytes` of device memory aligned to 64 bytes, uninitialised; the caller frees it. 0 bytes gives a
 * valid pointer. STATUS_NO_MEMORY is logged with the size and with `what` it was for.
 */
enum status device_alloc(struct device *device, const char *what, size_t bytes, void **memory);

/* " (cudaErrorMemoryAllocation)", say, what the device's library calls that; or "". */
const char *device_no_memory(const struct device *device);

/* NULL is fine. */
void device_free(struct device *device, void *memory);

/*
 * Host to device, device to host: on return the host memory may be reused (upload) or read
 * (download, which therefore waits for the operations before it).
 */
void device_upload(struct device *device, void *to, const void *from_host, size_t bytes);
enum status device_download(struct device *device, void *to_host, const void *from, size_t bytes);

#endif
