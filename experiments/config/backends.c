#include "experiments/config/backends.h"

#include <stdio.h>
#include <string.h>

#include "common/base/check.h"
#include "common/comm/none.h"
#include "ps/ps.h"
#include "ring/halving/halving.h"
#include "ring/hierarchical/hierarchical.h"
#include "ring/ring.h"
#include "ring/vendor/library.h"
#include "ring/vendor/nccl.h"

/* Not const: a program may have further ones. */
static const struct backend *list[BACKENDS_MOST] = {
    &backend_none, &backend_ps,  &backend_ring,         &backend_mpi,
    &backend_nccl, &backend_rhd, &backend_hierarchical,
};

size_t backend_count(void)
{
    size_t count = 0;
    while (count < BACKENDS_MOST && list[count])
        count++;
    return count;
}

const struct backend *backend_get(size_t index)
{
    CHECK(index < backend_count());
    return list[index];
}

const char *const *backend_names(void)
{
    static const char *names[BACKENDS_MOST + 1];
    size_t count = backend_count();
    for (size_t i = 0; i < count; i++)
        names[i] = list[i]->name;
    names[count] = NULL;
    return names;
}

void backend_add(const struct backend *backend)
{
    size_t count = backend_count();
    CHECK(count < BACKENDS_MOST);
    list[count] = backend;
}

bool backend_can(const struct backend *backend, size_t ability)
{
    bool can;
    CHECK(ability + sizeof can <= sizeof *backend);
    memcpy(&can, (const char *)backend + ability, sizeof can);
    return can;
}

const char *backends_that(size_t ability, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < backend_count() && used < size; i++) {
        if (backend_can(list[i], ability))
            used += (size_t)snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "",
                                     list[i]->name);
    }
    return text;
}
