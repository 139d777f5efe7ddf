#include "common/library/shapes.h"

#include "ring/hierarchical.h"

static void shape_close(struct shape *shape)
{
    if (shape->self && shape->backend->close)
        shape->backend->close(shape->self);
    *shape = (struct shape){0};
}

static enum status shape_open(struct shape *shape, const struct shapes *shapes,
                              const struct backend *backend, const struct group *group,
                              const struct reduction *reduction, size_t count)
{
    enum status status = STATUS_OK;
    *shape =
        (struct shape){.backend = backend, .group = group, .reduction = reduction, .count = count};
    shape->options =
        (struct comm_options){.group = group, .reduction = reduction, .bucket_counts_max = count};
    shape->layout = (struct comm_layout){.counts = &shape->count, .buckets = 1, .scale = 1.0f};
    shape->site = (struct backend_env){.world = shapes->world,
                                     .group = group,
                                     .transport = shapes->transport,
                                     .topology = {.workers = shapes->world->size},
                                     .workers = group->size,
                                     .index = group->rank,
                                     .hosts = shapes->hosts,
                                     .options = &shape->options,
                                     .layout = &shape->layout};
    if (backend == &backend_hierarchical) /* its memory is the communicator's */
        TRY(hierarchical_open_in(&shape->self, &shape->site, shapes->groups));
    else
        TRY(backend->open(&shape->self, &shape->site));
    TRY(backend->plan(shape->self));
    return STATUS_OK;
out:
    shape_close(shape);
    return status;
}

enum status shapes_get(struct shapes *shapes, const struct backend *backend,
                       const struct group *group, const struct reduction *reduction, size_t count,
                       struct shape **found)
{
    struct shape *oldest = &shapes->list[0];
    for (int i = 0; i < SHAPES_KEPT; i++) {
        struct shape *shape = &shapes->list[i];
        if (shape->backend == backend && shape->group == group && shape->count == count &&
            shape->reduction == reduction) {
            shape->used = ++shapes->uses;
            *found = shape;
            return STATUS_OK;
        }
        if (shape->used < oldest->used)
            oldest = shape;
    }
    shape_close(oldest);
    enum status status = shape_open(oldest, shapes, backend, group, reduction, count);
    if (status == STATUS_OK)
        oldest->used = ++shapes->uses;
    *found = oldest;
    return status;
}

void shapes_fini(struct shapes *shapes)
{
    for (int i = 0; i < SHAPES_KEPT; i++)
        shape_close(&shapes->list[i]);
}
