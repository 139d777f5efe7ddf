#include "ring/hierarchical/host_groups.h"

#include <stdlib.h>

#include "common/base/size.h"
#include "ring/hierarchical/hosts.h"

/* As mere lists. */
static enum status find_groups(struct host_groups *groups, const struct comm_site *site)
{
    enum status status;
    int size = site->world->size, rank = site->world->rank;
    int *colors = malloc((size_t)size * sizeof *colors);
    if (!colors) {
        log_error("hierarchical: no memory for %d ranks", size);
        return STATUS_NO_MEMORY;
    }
    for (int other = 0; other < size; other++)
        colors[other] = GROUP_NONE;
    for (int worker = 0; worker < site->workers; worker++)
        colors[site->group->ranks[worker]] = site->hosts[worker];
    TRY(group_from_colors(&groups->host, colors, size, rank));
    for (int worker = 0; worker < site->workers; worker++)
        colors[site->group->ranks[worker]] = hosts_place_of(site->hosts, worker).local;
    TRY(group_from_colors(&groups->across, colors, size, rank));
out:
    free(colors);
    return status;
}

enum status host_groups_open(struct host_groups *groups, const struct comm_site *site,
                             const struct group *callers, size_t vector_bytes)
{
    enum status status;
    *groups = (struct host_groups){0};
    if (site->group)
        TRY(find_groups(groups, site));
    groups->content_offset =
        size_divide_up(vector_bytes, sizeof(struct host_content)) * sizeof(struct host_content);
    const struct shared_options options = {
        .world = site->world,
        .workers = callers,
        .group = groups->host,
        .transport = site->transport,
        .vector_bytes = groups->content_offset + sizeof(struct host_content),
        .timeout_ms = site->options->timeout_ms,
    };
    TRY(shared_open(&groups->shared, &options));
    return STATUS_OK;
out:
    host_groups_close(groups);
    return status;
}

void host_groups_close(struct host_groups *groups)
{
    shared_close(&groups->shared);
    group_free(&groups->host);
    group_free(&groups->across);
    *groups = (struct host_groups){0};
}
