/* Libraries that are opened at run time, and functions in them. */
#ifndef PSRING_COMMON_BASE_DYNAMIC_H
#define PSRING_COMMON_BASE_DYNAMIC_H

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Sets *function, a pointer to a function. Returns false and sets NULL if the library has no
 * function of that name. ISO C has no cast from void * to a function, hence memcpy. */
static inline bool symbol_find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

/* NVIDIA's libraries in the folders of Python wheels, opened at run time. */

/* The folders of Python's packages, also in virtual environments. */
#define WHEELS_PYTHON                                                                              \
    "/usr{,/local}/lib/python3*/{dist,site}-packages/nvidia/",                                     \
        "/opt/{,*/}{,.venv/,venv/}lib/python3*/{dist,site}-packages/nvidia/"

/* Opens library `name` of the wheel `package` ("cublas"), or of a wheel with all libraries (cu13).
 * NULL: no wheel has a library of this name that can be opened. */
static inline void *wheels_open(const char *package, const char *name)
{
    static const char *const folders[] = {WHEELS_PYTHON};
    void *library = NULL;
    for (size_t i = 0; i < sizeof folders / sizeof *folders && !library; i++) {
        char pattern[PATH_MAX];
        glob_t found;
        snprintf(pattern, sizeof pattern, "%s{%s,cu[0-9]*}/lib/%s", folders[i], package, name);
        if (glob(pattern, GLOB_BRACE, NULL, &found) != 0)
            continue;
        for (size_t j = 0; j < found.gl_pathc && !library; j++)
            library = dlopen(found.gl_pathv[j], RTLD_NOW | RTLD_LOCAL);
        globfree(&found);
    }
    return library;
}

#endif
