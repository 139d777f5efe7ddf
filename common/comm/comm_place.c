#include <math.h>
#include <stdlib.h>

#include "common/comm/codec.h"
#include "common/comm/comm_parts.h"

/* -------- who averages ------------------------------------------------------------------------ */

/* The workers that average. A dedicated server belongs to none of their groups. */
static enum status choose_group(struct comm_place *place)
{
    const struct group *group = place->options.group;
    bool worker = place->world->rank < place->topology.workers;
    if (group && place->topology.servers > 0)
        return FAIL(STATUS_UNSUPPORTED,
                    "comm: servers serve all workers; a group of %d workers needs a backend "
                    "without servers",
                    group->size);
    place->everyone = group;
    if (group)
        return STATUS_OK;
    enum status status = world_group_new(&place->own_group, place->world, worker ? 0 : GROUP_NONE);
    place->options.group = place->own_group;
    return status;
}

static enum status find_hosts(struct comm_place *place)
{
    const struct group *group = place->everyone;
    int ranks = group ? group->size : place->world->size;
    place->hosts = calloc((size_t)ranks, sizeof *place->hosts);
    if (!place->hosts)
        return FAIL(STATUS_NO_MEMORY, "comm: no memory for %d ranks", ranks);
    for (int rank = 0; rank < ranks; rank++)
        place->hosts[rank] = place->world->host_numbers[group ? group->ranks[rank] : rank];
    return STATUS_OK;
}

static enum status connect_all(struct comm_place *place)
{
    const struct comm_options *options = &place->options;
    size_t elements = options->bucket_counts_max > 0 ? options->bucket_counts_max : 1;
    /* Parameters are never rounded on the wire. */
    bool any_type = options->embedded || consistency_updates(&options->consistency);
    const struct transport_options transport = {
        .kind = options->transport,
        .topology = place->topology,
        .payload_bytes_max = elements * sizeof(float), /* a whole bucket */
        .dtype = any_type ? MESSAGE_ANY_DTYPE : codec_dtype(options->compress),
        .subnet = options->subnet,
        .timeout_ms = options->timeout_ms,
        .embedded = options->embedded,
        .stall_warning_ms = options->stall_warning_ms,
        .rack_ranks = options->rack_ranks,
    };
    return transport_open(place->endpoints, place->world, &transport);
}

enum status comm_place_open(struct comm_place *place, struct world *world,
                            const struct backend *backend, const struct comm_options *options)
{
    enum status status;
    *place = (struct comm_place){.options = *options, .world = world};
    place->options.round_trip_s = world->round_trip_s;
    if (options->link_bytes_per_s == 0 && world->local_size == world->size)
        place->options.link_bytes_per_s = (double)INFINITY;
    TRY(topology_init(&place->topology, world->size,
                      backend && backend->uses_servers ? options->servers : 0, options->placement));
    if (backend) {
        TRY(choose_group(place));
        TRY(find_hosts(place));
    }
    if (backend ? backend->uses_transport : world->size > 1)
        TRY(connect_all(place));
out:
    return status;
}

enum status comm_place_share(struct comm_place *place, const struct comm_place *of,
                             const struct group *group)
{
    *place = *of;
    place->own_group = NULL;
    place->options.group = place->everyone = group;
    place->shares = true;
    return find_hosts(place);
}

struct backend_env comm_place_env(const struct comm_place *place, enum node_role role)
{
    const struct topology *topology = &place->topology;
    const struct group *group = place->options.group;
    int node = topology_node(topology, place->world->rank, role);
    CHECK(node < 0 || role == NODE_SERVER || group); /* a worker has a group */
    return (struct backend_env){
        .world = place->world,
        .group = group,
        .transport = place->endpoints[role],
        .topology = *topology,
        .workers = group ? group->size : topology->workers,
        .index = node < 0              ? -1
                 : role == NODE_SERVER ? node - topology->workers
                                       : group->rank,
        .hosts = place->hosts,
        .options = &place->options,
    };
}

void comm_place_close(struct comm_place *place)
{
    for (enum node_role role = NODE_WORKER; !place->shares && role <= NODE_SERVER; role++)
        transport_close(&place->endpoints[role]);
    world_group_free(&place->own_group, place->world);
    free(place->hosts);
    *place = (struct comm_place){0};
}

/* -------- plans for vectors of any length ----------------------------------------------------- */

static void close_plan(struct comm_vector_plan *plan)
{
    if (plan->self && plan->vector.backend->close)
        plan->vector.backend->close(plan->self);
    *plan = (struct comm_vector_plan){0};
}

static enum status open_plan(struct comm_vector_plan *plan, const struct comm_place *place,
                             const struct comm_vector *vector)
{
    enum status status;
    *plan = (struct comm_vector_plan){.vector = *vector, .options = place->options};
    plan->options.group = vector->group;
    plan->options.reduction = vector->reduction;
    plan->options.bucket_counts_max = vector->count;
    plan->layout = (struct comm_layout){.counts = &plan->vector.count, .buckets = 1, .scale = 1.0f};
    plan->env = comm_place_env(place, NODE_WORKER);
    plan->env.group = vector->group;
    plan->env.index = vector->group->rank;
    plan->env.options = &plan->options;
    plan->env.layout = &plan->layout;
    TRY(vector->backend->open(&plan->self, &plan->env));
    TRY(vector->backend->plan(plan->self));
    return STATUS_OK;
out:
    close_plan(plan);
    return status;
}

static bool is_alike(const struct comm_vector *a, const struct comm_vector *b)
{
    return a->backend == b->backend && a->group == b->group && a->reduction == b->reduction &&
           a->count == b->count;
}

enum status comm_vectors_plan(struct comm_vectors *vectors, const struct comm_place *place,
                              const struct comm_vector *vector, void **self)
{
    enum status status = STATUS_OK;
    struct comm_vector_plan *plan = &vectors->list[0];
    for (int i = 0; i < COMM_VECTORS_KEPT && !is_alike(&plan->vector, vector); i++) {
        struct comm_vector_plan *other = &vectors->list[i];
        if (is_alike(&other->vector, vector) || other->used < plan->used)
            plan = other;
    }
    if (!is_alike(&plan->vector, vector)) {
        close_plan(plan); /* the one that was unused for longest */
        TRY(open_plan(plan, place, vector));
    }
    plan->used = ++vectors->uses;
    *self = plan->self;
out:
    return status;
}

void comm_vectors_close(struct comm_vectors *vectors)
{
    for (int i = 0; i < COMM_VECTORS_KEPT; i++)
        close_plan(&vectors->list[i]);
}
