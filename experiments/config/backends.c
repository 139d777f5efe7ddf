#include "experiments/config/backends.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/status.h"
#include "common/base/text.h"
#include "common/comm/backend.h"
#include "ps/ps.h"
#include "ring/baselines/baselines.h"
#include "ring/halving_schedule.h"
#include "ring/hierarchical.h"
#include "ring/ring.h"

/* Not const: backend_add appends to it. */
static const struct backend *list[BACKENDS_MOST] = {
    &backend_none, &backend_ps,  &backend_ring,         &backend_mpi,
    &backend_nccl, &backend_rhd, &backend_hierarchical, &backend_tree,
};

const struct backend backend_auto = {
    .name = "auto",
    .summary = "one of these by the fitted model (--cost-model)",
    .uses_transport = true,
    .uses_servers = true,
    .compresses = true,
    .obeys_reduce_order = true,
    .counts_bytes = true,
    .cost = &cost_not_known,
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

int backend_find(const char *name)
{
    for (size_t i = 0; i < backend_count(); i++) {
        if (strcmp(list[i]->name, name) == 0)
            return (int)i;
    }
    return -1;
}

/* Ends the names with `last` and NULL. */
static void fill_names(const char **names, const char *last)
{
    size_t count = backend_count();
    for (size_t i = 0; i < count; i++)
        names[i] = list[i]->name;
    names[count] = last;
    names[count + 1] = NULL;
}

const char *const *backend_names(void)
{
    static const char *names[BACKENDS_MOST + 2];
    fill_names(names, NULL);
    return names;
}

const char *const *backend_choices(void)
{
    static const char *names[BACKENDS_MOST + 2];
    fill_names(names, backend_auto.name);
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
    struct line line = line_in(text, size);
    for (size_t i = 0; i < backend_count(); i++) {
        if (backend_can(list[i], ability))
            line_add(&line, "%s%s", line.used > 0 ? ", " : "", list[i]->name);
    }
    return text;
}

/* Adds what decides how halving cuts a vector, except defaults. All slow links cut alike. */
static void describe_cuts(struct line *line, const struct world *world, int workers,
                          const struct comm_options *options)
{
    bool in_halves = doubling_is_short(workers, options->radix, 1, 0);
    if (workers == 1 || (in_halves && options->compress == COMPRESS_NONE))
        return;
    if (!in_halves && options->radix > 2)
        line_add(line, ", radix %d", options->radix);
    if (options->segment_bytes > 0)
        line_add(line, ", segments of %zu bytes", options->segment_bytes);
    else if (options->link_bytes_per_s > COMM_FAST_BYTES_PER_S)
        line_add(line, ", links of %.9g bytes/s", options->link_bytes_per_s);
    else if (options->link_bytes_per_s == 0 && world->local_size == world->size)
        line_add(line, " on one host");
}

void backend_describe(const struct backend *backend, const struct world *world,
                      const struct topology *topology, const struct comm_options *options,
                      char *text, size_t size)
{
    enum { LISTED = 8 };
    struct line line = line_in(text, size);
    uint32_t hash = 2166136261; /* FNV-1a, for more workers than the text can list */
    line_add(&line, "%s", backend->name);
    if (backend->obeys_radix)
        describe_cuts(&line, world, topology->workers, options);
    if (!backend->sums_within_host_first)
        return;
    line_add(&line, " on hosts");
    for (int worker = 0; worker < topology->workers; worker++) {
        int host = world->host_numbers[topology_rank(topology, worker)];
        hash = (hash ^ (uint32_t)host) * 16777619;
        if (worker < LISTED)
            line_add(&line, " %d", host);
    }
    if (topology->workers > LISTED)
        line_add(&line, " ... %08" PRIx32, hash);
}
