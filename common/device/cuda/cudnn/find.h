/* Finding cuDNN on this machine, and in it the functions of api.h. */
#ifndef PSRING_COMMON_DEVICE_CUDA_CUDNN_FIND_H
#define PSRING_COMMON_DEVICE_CUDA_CUDNN_FIND_H

#include <limits.h>
#include <stdbool.h>

#include "common/device/cuda/cudnn/api.h"
#include "common/device/cuda/cudnn/cudnn.h"

struct dnn_library {
    void *handle; /* the library stays loaded */
    struct dnn_calls call;
    char version[16]; /* "9.19.0" */
    char path[PATH_MAX];
};

/*
 * The first that suits of: the one that was there when this was configured, what the loader finds
 * (LD_LIBRARY_PATH, ldconfig), cuBLAS's folder and the one beside it (as NVIDIA's packages of
 * Python lie), and the packages of the Pythons of /usr, /usr/local and /opt, where PyTorch's is.
 * False: `reason` says what was looked for, or what is wrong with what was found.
 */
bool dnn_find(struct dnn_library *library, char reason[CUDA_DNN_TEXT_BYTES]);

#endif
