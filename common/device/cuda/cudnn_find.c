#include "common/device/cuda/cudnn.h"

#include <cuda_runtime_api.h>
#include <glob.h>
#include <link.h>
#include <stdio.h>
#include <unistd.h>

#include "common/base/dynamic.h"

/* Newest first. */
static const char *const names[] = {PSRING_CUDNN_NAME ".9", PSRING_CUDNN_NAME ".8"};
enum { NAMES = sizeof names / sizeof *names };

/* The parts that each version loads on demand. cuDNN ends the process if one is missing. */
static const char *const parts_of_8[] = {"ops_infer", "ops_train", "cnn_infer", "cnn_train", NULL};
static const char *const parts_of_9[] = {
    "graph", "ops", "cnn", "heuristic", "engines_precompiled", "engines_runtime_compiled", NULL};
enum { PARTS_MAX = sizeof parts_of_9 / sizeof *parts_of_9 };

struct cudnn_parts {
    void *handles[PARTS_MAX]; /* up to the first NULL */
};

/* -------- whether one suits ------------------------------------------------------------------- */

static bool find_all(void *library, struct dnn_calls *call)
{
    const struct {
        const char *name;
        void *function;
    } functions[] = {
        {"cudnnGetCudartVersion", &call->get_cudart_version},
        {"cudnnGetErrorString", &call->get_error_string},
        {"cudnnCreate", &call->create},
        {"cudnnDestroy", &call->destroy},
        {"cudnnSetStream", &call->set_stream},
        {"cudnnCreateTensorDescriptor", &call->create_tensor},
        {"cudnnDestroyTensorDescriptor", &call->destroy_tensor},
        {"cudnnSetTensor4dDescriptor", &call->set_tensor},
        {"cudnnCreateFilterDescriptor", &call->create_filter},
        {"cudnnDestroyFilterDescriptor", &call->destroy_filter},
        {"cudnnSetFilter4dDescriptor", &call->set_filter},
        {"cudnnCreateConvolutionDescriptor", &call->create_convolution},
        {"cudnnDestroyConvolutionDescriptor", &call->destroy_convolution},
        {"cudnnSetConvolution2dDescriptor", &call->set_convolution},
        {"cudnnSetConvolutionMathType", &call->set_math},
        {"cudnnGetConvolutionForwardAlgorithm_v7", &call->forward_choices},
        {"cudnnGetConvolutionBackwardDataAlgorithm_v7", &call->data_choices},
        {"cudnnGetConvolutionBackwardFilterAlgorithm_v7", &call->filter_choices},
        {"cudnnGetConvolutionForwardWorkspaceSize", &call->forward_workspace},
        {"cudnnGetConvolutionBackwardDataWorkspaceSize", &call->data_workspace},
        {"cudnnGetConvolutionBackwardFilterWorkspaceSize", &call->filter_workspace},
        {"cudnnConvolutionForward", &call->forward},
        {"cudnnConvolutionBackwardData", &call->backward_data},
        {"cudnnConvolutionBackwardFilter", &call->backward_filter},
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (!symbol_find(library, functions[i].name, functions[i].function))
            return false;
    }
    return true;
}

/* Decodes the version: 1000 major + 100 minor + patch up to 8, 10000 major + ... from 9 on. */
static bool read_version(struct dnn_library *library, size_t *major)
{
    size_t number = library->call.get_version() % 1000000;
    size_t unit = number >= 10000 ? 10000 : 1000;
    size_t minor = number % unit / 100;
    *major = number / unit;
    snprintf(library->version, sizeof library->version, "%zu.%zu.%zu", *major, minor, number % 100);
    return *major == 9 || (*major == 8 && minor >= 9);
}

/* A cuDNN for another major version of CUDA opens that version's cuBLAS by name. It ends the
 * process if that cuBLAS is missing. */
static bool is_of_this_cuda(const struct dnn_library *library, char *reason)
{
    size_t theirs = library->call.get_cudart_version() / 1000;
    size_t ours = CUDART_VERSION / 1000;
    if (theirs != ours)
        snprintf(reason, CUDA_DNN_TEXT_BYTES,
                 "%.400s is built for CUDA %zu, and this psring for CUDA %zu", library->path,
                 theirs, ours);
    return theirs == ours;
}

/* Opens "libcudnn_PART.so.9" in the folder of "libcudnn.so.9". cuDNN then finds it loaded when it
 * opens it by name. Returns false, with the cause in `reason`, if it is missing. */
static bool open_part(const char *path, const char *part, struct cudnn_parts *parts, char *reason)
{
    char name[PATH_MAX];
    size_t count = 0;
    const char *suffix = strstr(strrchr(path, '/') ? strrchr(path, '/') : path, ".so");
    while (parts->handles[count])
        count++;
    snprintf(name, sizeof name, "%.*s_%s%s", suffix ? (int)(suffix - path) : 0, path, part,
             suffix ? suffix : "");
    parts->handles[count] = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (parts->handles[count])
        return true;
    const char *error = dlerror();
    snprintf(reason, CUDA_DNN_TEXT_BYTES, "%s lacks one of its parts in the same folder (%.250s)",
             path, error ? error : part);
    return false;
}

static void close_parts(struct cudnn_parts *parts)
{
    for (size_t i = 0; i < PARTS_MAX && parts->handles[i]; i++)
        dlclose(parts->handles[i]);
}

/*
 * The main library only passes calls on to its parts. At the first call (even the one for its
 * version) it opens the parts by their bare names, keeps them, and ends the process if one is
 * missing. Therefore suits() opens the parts in the library's folder before it calls the library,
 * and asks the first part for the version. A part of another library, opened by its bare name,
 * would answer for all later ones.
 */
static bool suits(const char *name, struct dnn_library *library, struct cudnn_parts *parts,
                  char *reason)
{
    const char *const *names_of_parts = strstr(name, ".so.8") ? parts_of_8 : parts_of_9;
    size_t major;
    if (!open_part(name, names_of_parts[0], parts, reason))
        return false;
    if (!symbol_find(parts->handles[0], "cudnnGetVersion", &library->call.get_version) ||
        !symbol_find(parts->handles[0], "cudnnGetCudartVersion",
                     &library->call.get_cudart_version)) {
        snprintf(reason, CUDA_DNN_TEXT_BYTES, "%s does not report its version", name);
        return false;
    }
    if (!read_version(library, &major)) {
        snprintf(reason, CUDA_DNN_TEXT_BYTES, "%s is version %s, and 8.9 or 9 is needed", name,
                 library->version);
        return false;
    }
    if (!is_of_this_cuda(library, reason))
        return false;
    for (size_t i = 1; names_of_parts[i]; i++) {
        if (!open_part(name, names_of_parts[i], parts, reason))
            return false;
    }
    if (!find_all(library->handle, &library->call)) {
        snprintf(reason, CUDA_DNN_TEXT_BYTES, "%s lacks a function that psring needs", name);
        return false;
    }
    return true;
}

/* Opens `name` (a path, or a name for the loader) if it suits. Leaves `reason` unchanged if the
 * file does not exist. */
static bool try_one(const char *name, struct dnn_library *library, char *reason)
{
    struct cudnn_parts parts = {{0}};
    struct link_map *map = NULL;
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        if (strchr(name, '/') && access(name, F_OK) == 0)
            snprintf(reason, CUDA_DNN_TEXT_BYTES, "%s cannot be loaded (%s)", name, dlerror());
        return false;
    }
    *library = (struct dnn_library){.handle = handle};
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name[0])
        name = map->l_name;
    snprintf(library->path, sizeof library->path, "%s", name);
    if (suits(name, library, &parts, reason))
        return true;
    close_parts(&parts);
    dlclose(handle);
    return false;
}

/* -------- where it may be --------------------------------------------------------------------- */

/* Tries FOLDER/libcudnn.so.9 and so on, for all expansions of FOLDER. */
static bool try_folder(const char *folder, struct dnn_library *library, char *reason)
{
    for (size_t i = 0; i < NAMES; i++) {
        char pattern[PATH_MAX];
        glob_t found;
        bool suits = false;
        snprintf(pattern, sizeof pattern, "%s%s", folder, names[i]);
        if (glob(pattern, GLOB_BRACE, NULL, &found) == 0) {
            for (size_t j = 0; j < found.gl_pathc && !suits; j++)
                suits = try_one(found.gl_pathv[j], library, reason);
            globfree(&found);
        }
        if (suits)
            return true;
    }
    return false;
}

/* cuBLAS's folder, with a slash at the end; "" if only the loader knows it. */
static void cublas_folder(char folder[PATH_MAX])
{
    snprintf(folder, PATH_MAX, "%s", PSRING_CUBLAS_PATH);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[1] = '\0';
    else
        folder[0] = '\0';
}

bool dnn_find(struct dnn_library *library, char reason[CUDA_DNN_TEXT_BYTES])
{
    static const char *const python[] = {WHEELS_PYTHON};
    char folder[PATH_MAX], beside[PATH_MAX + 32];
    reason[0] = '\0';
    if (PSRING_CUDNN_PATH[0] && try_one(PSRING_CUDNN_PATH, library, reason))
        return true;
    for (size_t i = 0; i < NAMES; i++) {
        if (try_one(names[i], library, reason))
            return true;
    }
    cublas_folder(folder);
    snprintf(beside, sizeof beside, "%s../../cudnn/lib/", folder);
    if (folder[0] && (try_folder(folder, library, reason) || try_folder(beside, library, reason)))
        return true;
    for (size_t i = 0; i < sizeof python / sizeof *python; i++) {
        snprintf(beside, sizeof beside, "%s{cudnn,cu[0-9]*}/lib/", python[i]);
        if (try_folder(beside, library, reason))
            return true;
    }
    if (!reason[0])
        snprintf(reason, CUDA_DNN_TEXT_BYTES,
                 "neither %s nor %s was found where the loader looks (LD_LIBRARY_PATH, ldconfig)%s"
                 "%.200s, or in nvidia/cudnn/lib among the packages of a Python in /usr, "
                 "/usr/local or /opt",
                 names[0], names[1], folder[0] ? ", in " : "", folder);
    return false;
}
