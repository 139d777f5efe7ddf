/* Finding functions in libraries that are opened at run time. */
#ifndef PSRING_COMMON_BASE_SYMBOL_H
#define PSRING_COMMON_BASE_SYMBOL_H

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

/* Sets *function, a pointer to a function; false and NULL if the library has none of that name.
 * ISO C has no cast from void * to a function. */
static inline bool symbol_find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

#endif
