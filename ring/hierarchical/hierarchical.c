/*
 * Hierarchical all-reduce
 * =======================
 *
 * Where a host runs several workers, they share its link. In a ring of all W workers, in the order
 * of the hosts, each link carries 2(W-1)/W M; in another order, in which neighbours are on
 * different hosts, as often as there are workers on a host. But a host has to send only
 * 2(H-1)/H M, with H the number of hosts: what its workers have can be added up before it leaves.
 *
 * How. Each of H hosts has L workers. The vector is cut into L parts, one for each local number l:
 *
 *     1. reduce-scatter within the host    worker l adds up part l of all its host's workers
 *     2. all-reduce across the hosts       a ring of the workers l of all hosts, on part l
 *     3. all-gather within the host        all take the other parts from those who have them
 *
 * Steps 1 and 3 go through memory that the host's workers share (shared.h): a worker writes its
 * vector there, where those read who add; the sums come back the same way. The L rings of step 2
 * run at the same time, each with an L-th of the bytes.
 *
 * Step 1 is done as step 2 needs it: the ring (ring/ring.c) asks for a segment of the host's sum
 * when that sets out or has something to be added to, so adding hides behind the network.
 *
 * Order. A vector of W = H L chunks, part l being chunks l, L+l, 2L+l, ..: with chunk h L + l the
 * ring of l begins at host h. With --reduce-order ring the sum must begin at worker h L + l itself,
 * go on to h L + l + 1, .. and end with the workers of host h that come before: so chunk h L + l
 * sets out with what workers l .. L-1 of host h have, at every other host 0 .. L-1 are added, one
 * after the other, and it comes back to host h for 0 .. l-1. For two hosts of two workers:
 *
 *                       sets out at host 0    at host 1      back at host 0
 *     chunk 0 (l = 0)   01                    0123
 *     chunk 1 (l = 1)   1                     123            1230
 *
 * That return is one hop more for L-1 of L chunks, so a host then sends (2(H-1) + (L-1)/L)/H M. The
 * workers of a host must be neighbours for it; without it they may be anywhere.
 */
#include "ring/hierarchical/hierarchical.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/chunk.h"
#include "common/comm/reduce.h"
#include "ring/hierarchical/hierarchical_cost.h"
#include "ring/hierarchical/hosts.h"
#include "ring/hierarchical/shared.h"
#include "ring/ring.h"

struct hierarchical {
    const struct comm_site *site; /* borrowed */
    struct group *host;           /* the workers of this host, by local number */
    struct group *across;         /* those of this local number, one on each host */
    struct shared *shared;        /* NULL: alone on this host */
    bool in_order;                /* sums are made in the ring's order, and others are here, too */
    uint32_t operation;           /* all-reduces begun, over all buckets and plans */
    struct comm_site ring_site;   /* the ring's: `across` in place of all workers */
    struct ring_share share;
    void *ring; /* NULL: one host */
};

/* Chunk `across` of the part of local number `local`. */
static struct chunk chunk_at(const struct hierarchical *self, size_t bucket, int across, int local)
{
    return chunk_of(self->site->layout->counts[bucket], (size_t)self->site->workers,
                    (size_t)(across * self->host->size + local));
}

/* -------- what workers of a host show to each other ------------------------------------------- */

/* data[span] += what the host's workers first .. end-1 have. */
static void add_locals(const struct hierarchical *self, float *data, struct chunk span, int first,
                       int end)
{
    for (int local = first; local < end; local++) {
        const float *theirs = shared_vector(self->shared, local) + span.offset;
        reduce_add(data + span.offset, theirs, span.count);
    }
}

/* Of ours, all that others add; in order what we add, too, because what comes before it must be in
 * its place. */
static void show_vector(const struct hierarchical *self, size_t bucket, const float *data)
{
    float *shown = shared_vector(self->shared, self->host->rank);
    for (int across = 0; across < self->across->size; across++) {
        for (int local = 0; local < self->host->size; local++) {
            struct chunk chunk = chunk_at(self, bucket, across, local);
            if (self->in_order || local != self->host->rank)
                memcpy(shown + chunk.offset, data + chunk.offset, chunk.count * sizeof *data);
        }
    }
}

/* All parts but ours, which is in data. */
static void take_sums(const struct hierarchical *self, size_t bucket, float *data)
{
    const float *sums = shared_sums(self->shared);
    for (int across = 0; across < self->across->size; across++) {
        for (int local = 0; local < self->host->size; local++) {
            struct chunk chunk = chunk_at(self, bucket, across, local);
            if (local != self->host->rank)
                memcpy(data + chunk.offset, sums + chunk.offset, chunk.count * sizeof *data);
        }
    }
}

static enum status wait_for_others(const struct hierarchical *self, enum shared_event event)
{
    enum status status = STATUS_OK;
    for (int local = 0; local < self->host->size && status == STATUS_OK; local++) {
        if (local != self->host->rank)
            status = shared_wait(self->shared, local, event, self->operation);
    }
    return status;
}

/* -------- what the ring asks for (struct ring_share) ------------------------------------------ */

static void begin(void *context, float *data, struct chunk segment)
{
    const struct hierarchical *self = context;
    int rank = self->host->rank;
    if (!self->in_order)
        add_locals(self, data, segment, 0, rank);
    add_locals(self, data, segment, rank + 1, self->host->size);
}

/* In order, what has come is added to before ours is, which is in our shared vector, too. */
static const void *add(void *context, float *data, struct chunk segment, const void *partial,
                       bool completes)
{
    const struct hierarchical *self = context;
    shared_moved(self->shared);
    if (!self->in_order) {
        begin(context, data, segment);
        return partial;
    }
    int end = completes && self->share.part.returns ? self->host->rank : self->host->size;
    memcpy(data + segment.offset, partial, segment.count * sizeof *data);
    add_locals(self, data, segment, 0, end - 1);
    return shared_vector(self->shared, end - 1) + segment.offset;
}

static void complete(void *context, const float *data, struct chunk segment)
{
    const struct hierarchical *self = context;
    shared_moved(self->shared);
    memcpy(shared_sums(self->shared) + segment.offset, data + segment.offset,
           segment.count * sizeof *data);
}

/* -------- the all-reduce ---------------------------------------------------------------------- */

/* Of our part, where there is no other host. */
static void sum_alone(struct hierarchical *self, size_t bucket, float *data)
{
    struct chunk part = chunk_at(self, bucket, 0, self->host->rank);
    begin(self, data, part);
    if (self->in_order)
        add_locals(self, data, part, 0, self->host->rank);
    reduce_scale(data + part.offset, part.count, self->site->layout->scale);
    complete(self, data, part);
}

static enum status allreduce_with_others(struct hierarchical *self, size_t bucket, float *data)
{
    enum status status;
    self->operation++;
    show_vector(self, bucket, data);
    shared_tell(self->shared, SHARED_FILLED, self->operation);
    TRY(wait_for_others(self, SHARED_FILLED));
    if (self->ring)
        TRY(backend_ring.allreduce(self->ring, bucket, data));
    else
        sum_alone(self, bucket, data);
    shared_tell(self->shared, SHARED_DONE, self->operation);
    TRY(wait_for_others(self, SHARED_DONE));
    take_sums(self, bucket, data);
out:
    return status;
}

static enum status hierarchical_allreduce(void *context, size_t bucket, float *data)
{
    struct hierarchical *self = context;
    if (self->shared)
        return allreduce_with_others(self, bucket, data);
    if (self->ring) /* one worker a host: the ring, and nothing else */
        return backend_ring.allreduce(self->ring, bucket, data);
    reduce_scale(data, self->site->layout->counts[bucket], self->site->layout->scale);
    return STATUS_OK;
}

/* -------- opening, planning, closing ---------------------------------------------------------- */

/* All workers meet these alike; one speaks. */
static enum status check_site(const struct comm_site *site)
{
    const int *hosts = site->hosts;
    char(*const names)[WORLD_HOST_BYTES] = site->world->hosts;
    const int *ranks = site->group->ranks;
    int locals = hosts_locals(hosts, site->workers, 0), uneven = hosts_uneven(hosts, site->workers);
    if (uneven >= 0) {
        if (site->index == 0)
            log_error("hierarchical: %s has %d workers and %s %d: each worker averages with those "
                      "of its number on the other hosts, so all need as many; start as many on "
                      "each, or use --backend ring",
                      names[ranks[0]], locals, names[ranks[uneven]],
                      hosts_locals(hosts, site->workers, uneven));
        return STATUS_USAGE;
    }
    if (site->options->reduce_order == REDUCE_ORDER_RING && !hosts_in_order(hosts, site->workers)) {
        if (site->index == 0)
            log_error("hierarchical: with --reduce-order ring the %d workers of a host must be "
                      "neighbours in the order of the ranks, and those of %s are not; start them "
                      "host by host (mpirun --map-by slot), leave it out, or use --backend ring",
                      locals, names[ranks[0]]);
        return STATUS_USAGE;
    }
    if (site->options->reduce_order == REDUCE_ORDER_RING &&
        site->options->compress != COMPRESS_NONE) {
        if (site->index == 0)
            log_error("hierarchical: adds in the ring's order what has come uncompressed only");
        return STATUS_UNSUPPORTED;
    }
    return STATUS_OK;
}

/* The two groups, as mere lists. */
static enum status find_groups(struct hierarchical *self)
{
    enum status status;
    const struct comm_site *site = self->site;
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
    TRY(group_from_colors(&self->host, colors, size, rank));
    for (int worker = 0; worker < site->workers; worker++)
        colors[site->group->ranks[worker]] = hosts_place_of(site->hosts, worker).local;
    TRY(group_from_colors(&self->across, colors, size, rank));
out:
    free(colors);
    return status;
}

static enum status open_ring(struct hierarchical *self)
{
    const struct group *host = self->host;
    self->ring_site = *self->site;
    self->ring_site.group = self->across;
    self->ring_site.workers = self->across->size;
    self->ring_site.index = self->across->rank;
    self->share = (struct ring_share){
        .part = {host->size, host->rank, .returns = self->in_order && host->rank > 0},
        .context = self,
        .begin = begin,
        .add = add,
        .complete = complete,
    };
    return ring_open_share(&self->ring, &self->ring_site, self->shared ? &self->share : NULL);
}

static enum status hierarchical_plan(void *context)
{
    struct hierarchical *self = context;
    return self->ring ? backend_ring.plan(self->ring) : STATUS_OK;
}

static void hierarchical_close(void *context)
{
    struct hierarchical *self = context;
    if (self->ring)
        backend_ring.close(self->ring);
    shared_close(&self->shared);
    group_free(&self->host);
    group_free(&self->across);
    free(self);
}

static enum status hierarchical_open(void **out, const struct comm_site *site)
{
    enum status status;
    const struct comm_options *options = site->options;
    struct hierarchical *self = calloc(1, sizeof *self);
    if (!self) {
        log_error("hierarchical: out of memory");
        return STATUS_NO_MEMORY;
    }
    self->site = site;
    TRY(check_site(site));
    TRY(find_groups(self));
    const struct shared_options shared = {
        .world = site->world,
        .workers = site->group,
        .group = self->host,
        .transport = site->transport,
        .vector_bytes = options->bucket_counts_max * sizeof(float),
        .timeout_ms = options->timeout_ms,
    };
    TRY(shared_open(&self->shared, &shared));
    self->in_order = self->shared && options->reduce_order == REDUCE_ORDER_RING;
    if (self->across->size > 1)
        TRY(open_ring(self));
    *out = self;
    return STATUS_OK;
out:
    hierarchical_close(self);
    return status;
}

const struct backend backend_hierarchical = {
    .name = "hierarchical",
    .summary = "ring between hosts on what each host's ranks have added up in shared memory",
    .uses_transport = true,
    .cuts_segments = true,
    .compresses = true,
    .orders_sums = true,
    .counts_bytes = true,
    .default_transport = TRANSPORT_TCP,
    .cost = &hierarchical_cost,
    .open = hierarchical_open,
    .plan = hierarchical_plan,
    .allreduce = hierarchical_allreduce,
    .close = hierarchical_close,
};
