#include "common/net/world/group.h"

#include <stdlib.h>

#include "common/base/status.h"

enum status group_from_colors(struct group **out, const int *colors, int world_size, int rank)
{
    int size = 0;
    *out = NULL;
    CHECK(rank >= 0 && rank < world_size);
    if (colors[rank] < 0)
        return STATUS_OK;
    for (int i = 0; i < world_size; i++)
        size += colors[i] == colors[rank];
    struct list {
        struct group group;
        int ranks[];
    } *list = calloc(1, sizeof *list + (size_t)size * sizeof *list->ranks);
    if (!list) {
        log_error("group: no memory for %d ranks", size);
        return STATUS_NO_MEMORY;
    }
    struct group *group = &list->group;
    group->ranks = list->ranks;
    for (int i = 0; i < world_size; i++) {
        if (colors[i] != colors[rank])
            continue;
        if (i == rank)
            group->rank = group->size;
        list->ranks[group->size++] = i;
    }
    *out = group;
    return STATUS_OK;
}

void group_free(struct group **group)
{
    if (!*group)
        return;
    CHECK(!(*group)->impl);
    free(*group);
    *group = NULL;
}
