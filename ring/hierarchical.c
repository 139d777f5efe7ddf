/*
 * Hierarchical all-reduce
 * =======================
 *
 * The workers of a host share its link. In a ring of all W workers in the order of the hosts, each
 * link carries 2(W-1)/W M. In an order in which neighbours are on different hosts, it carries that
 * once for every worker on the host. But a host has to send only 2(H-1)/H M, with H the number of
 * hosts, because the vectors of its workers can be added before they leave.
 *
 * Algorithm. Each of H hosts has L workers. The vector is cut into L parts, one for each local
 * number l:
 *
 *     1. reduce-scatter within the host    worker l adds up part l of all its host's workers
 *     2. all-reduce across the hosts       a ring of the workers l of all hosts, on part l
 *     3. all-gather within the host        each worker copies the parts of the other workers
 *
 * Steps 1 and 3 use memory that the host's workers share (shared_memory.h). A worker writes its
 * vector there, and the workers that add read it. The sums come back the same way. The L rings of
 * step 2 run at the same time, each with an L-th of the bytes.
 *
 * Step 1 runs inside step 2. The ring (ring/ring.c) asks for a segment of the host's sum when that
 * segment starts or arrives. The additions thus overlap with the network.
 *
 * Order of addition. The vector has W = H L chunks. Part l consists of the chunks l, L+l, 2L+l, ...
 * and the ring of l starts chunk h L + l at host h. With --reduce-order ring the sum must begin at
 * worker h L + l. It continues with h L + l + 1, ... and ends with the earlier workers of host h.
 * Therefore chunk h L + l
 *
 * - starts with the vectors of the workers l .. L-1 of host h,
 * - at every other host adds workers 0 .. L-1, one after the other,
 * - returns to host h, which adds its workers 0 .. l-1.
 *
 * For two hosts of two workers:
 *
 *                       sets out at host 0    at host 1      back at host 0
 *     chunk 0 (l = 0)   01                    0123
 *     chunk 1 (l = 1)   1                     123            1230
 *
 * The return is one hop more for L-1 of L chunks, so a host then sends (2(H-1) + (L-1)/L)/H M. This
 * order requires that the workers of a host are neighbours. Without --reduce-order ring they may
 * have any ranks.
 */
#include "ring/hierarchical.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/util.h"
#include "common/comm/codec.h"
#include "common/base/range.h"
#include "ring/ring.h"
#include "ring/shared_memory.h"

struct hierarchical {
    const struct backend_env *site;  /* borrowed */
    struct host_groups own, *groups; /* groups: `own`, or the caller's */
    const struct group *host;        /* of `groups` */
    const struct group *across;
    struct shared *shared;        /* NULL: alone on this host */
    bool in_order;                /* sums have the ring's order, and this host has other workers */
    struct codec elements;        /* of the vector in memory: not compressed */
    struct backend_env ring_site; /* of the ring: `across` replaces all workers */
    struct ring_share share;
    void *ring; /* NULL: there is only one host */
};

/* Chunk `across` of the part of local number `local`. */
static struct chunk chunk_at(const struct hierarchical *self, size_t bucket, int across, int local)
{
    return chunk_of(self->site->layout->counts[bucket], (size_t)self->site->workers,
                    (size_t)across * (size_t)self->host->size + (size_t)local);
}

/* Address of `chunk` in `vector`. */
static void *part_of(const struct hierarchical *self, void *vector, struct chunk chunk)
{
    return codec_wire(&self->elements, vector, chunk);
}

static void copy(const struct hierarchical *self, void *into, const void *from, struct chunk chunk)
{
    size_t bytes = codec_memory_bytes(self->site->options), offset = chunk.offset * bytes;
    memcpy((char *)into + offset, (const char *)from + offset, chunk.count * bytes);
}

/* -------- what workers of a host show to each other ------------------------------------------- */

static const void *local_part(const struct hierarchical *self, int local, struct chunk span)
{
    return part_of(self, shared_vector(self->shared, local), span);
}

/* Adds the vectors of the host's workers first .. end-1 to data, in `span`. */
static void add_locals(const struct hierarchical *self, void *data, struct chunk span, int first,
                       int end)
{
    for (int local = first; local < end; local++)
        codec_add(&self->elements, data, span, local_part(self, local, span));
}

/* Copies to shared memory the parts of our vector that other workers add. In the ring's order it
 * copies our own part too, because the received sum overwrites that part of data. */
static void show_vector(const struct hierarchical *self, size_t bucket, const void *data)
{
    void *shown = shared_vector(self->shared, self->host->rank);
    for (int across = 0; across < self->across->size; across++) {
        for (int local = 0; local < self->host->size; local++) {
            if (self->in_order || local != self->host->rank)
                copy(self, shown, data, chunk_at(self, bucket, across, local));
        }
    }
}

static struct host_content *content_of(const struct hierarchical *self, int local)
{
    void *at = (char *)shared_vector(self->shared, local) + self->groups->content_offset;
    return at;
}

static void show_content(const struct hierarchical *self, size_t bucket)
{
    const struct reduction *reduction = self->elements.reduction;
    *content_of(self, self->host->rank) = (struct host_content){
        self->site->layout->counts[bucket], reduction ? reduction->dtype : MESSAGE_FLOAT32,
        reduction ? reduction->op : REDUCE_SUM, *transport_call(self->site->transport)};
}

/* Checks that the other workers of the host show the same content. */
static enum status check_contents(const struct hierarchical *self)
{
    enum status status = STATUS_OK;
    const struct host_content *ours = content_of(self, self->host->rank);
    for (int local = 0; local < self->host->size; local++) {
        const struct host_content *theirs = content_of(self, local);
        TRY(transport_compare_call(self->site->transport, self->host->ranks[local], &theirs->call));
        bool types = theirs->dtype == ours->dtype, lengths = theirs->count == ours->count;
        if (types && lengths && theirs->op == ours->op)
            continue;
        return FAIL(STATUS_PROTOCOL,
                    "hierarchical: ranks %d and %d on %s reduce vectors %s; all ranks of a group "
                    "must make the same calls",
                    self->host->ranks[self->host->rank], self->host->ranks[local],
                    self->site->world->host,
                    !lengths ? "of different lengths"
                    : types  ? "by different operations"
                             : "of different types");
    }
out:
    return status;
}

/* Copies all parts except ours, which is in data. */
static void take_sums(const struct hierarchical *self, size_t bucket, void *data)
{
    for (int across = 0; across < self->across->size; across++) {
        for (int local = 0; local < self->host->size; local++) {
            if (local != self->host->rank)
                copy(self, data, shared_sums(self->shared), chunk_at(self, bucket, across, local));
        }
    }
}

static enum status wait_for_others(const struct hierarchical *self, enum shared_event event)
{
    enum status status = STATUS_OK;
    for (int local = 0; local < self->host->size && status == STATUS_OK; local++) {
        if (local == self->host->rank)
            continue;
        range_detail_begin(
            "wait for a rank of this host",
            &(struct range_about){.kind = RANGE_WAIT_HOST, .peer = self->host->ranks[local]});
        status = shared_wait(self->shared, local, event, self->groups->operation);
        range_detail_end();
    }
    return status;
}

/* -------- what the ring asks for (struct ring_share) ------------------------------------------ */

static void begin(void *context, void *data, struct chunk segment)
{
    const struct hierarchical *self = context;
    int rank = self->host->rank;
    if (!self->in_order)
        add_locals(self, data, segment, 0, rank);
    add_locals(self, data, segment, rank + 1, self->host->size);
}

/* In the ring's order, the received partial sum comes first and our vector later. Our vector is
 * therefore read from shared memory. */
static const void *add(void *context, void *data, struct chunk segment, const void *partial,
                       bool completes)
{
    const struct hierarchical *self = context;
    shared_moved(self->shared);
    if (!self->in_order) {
        begin(context, data, segment);
        return partial;
    }
    int end = completes && self->share.part.returns ? self->host->rank : self->host->size;
    memcpy(part_of(self, data, segment), partial,
           segment.count * codec_memory_bytes(self->site->options));
    add_locals(self, data, segment, 0, end - 1);
    return local_part(self, end - 1, segment);
}

static void complete(void *context, const void *data, struct chunk segment)
{
    const struct hierarchical *self = context;
    shared_moved(self->shared);
    copy(self, shared_sums(self->shared), data, segment);
}

/* -------- the all-reduce ---------------------------------------------------------------------- */

/* Adds up our part over the workers of the host, if there is no other host. Always uses the ring's
 * order. */
static void sum_alone(struct hierarchical *self, size_t bucket, void *data)
{
    struct chunk part = chunk_at(self, bucket, 0, self->host->rank);
    int size = self->host->size, rank = self->host->rank, last = (rank + size - 1) % size;
    for (int local = (rank + 1) % size; local != last; local = (local + 1) % size)
        add_locals(self, data, part, local, local + 1);
    codec_complete(&self->elements, data, part, local_part(self, last, part),
                   self->site->layout->scale);
    complete(self, data, part);
}

static enum status allreduce_with_others(struct hierarchical *self, size_t bucket, void *data)
{
    enum status status;
    uint32_t operation = ++self->groups->operation;
    show_vector(self, bucket, data);
    show_content(self, bucket);
    shared_notify(self->shared, SHARED_FILLED, operation);
    TRY(wait_for_others(self, SHARED_FILLED));
    TRY(check_contents(self));
    if (self->ring)
        TRY(backend_ring.allreduce(self->ring, bucket, data));
    else
        sum_alone(self, bucket, data);
    shared_notify(self->shared, SHARED_DONE, operation);
    TRY(wait_for_others(self, SHARED_DONE));
    take_sums(self, bucket, data);
    return STATUS_OK;
out:
    shared_fail(self->shared);
    return status;
}

static enum status hierarchical_allreduce(void *context, size_t bucket, void *data)
{
    struct hierarchical *self = context;
    if (self->shared)
        return allreduce_with_others(self, bucket, data);
    if (self->ring) /* one worker a host: only the ring */
        return backend_ring.allreduce(self->ring, bucket, data);
    self->elements.count = self->site->layout->counts[bucket];
    codec_alone(&self->elements, data, self->site->layout->scale);
    return STATUS_OK;
}

/* -------- where workers are ------------------------------------------------------------------- */

static bool together(const int *hosts, int one, int other)
{
    return hosts ? hosts[one] == hosts[other] : one == other;
}

struct hosts_place *hosts_places(const int *hosts, int workers)
{
    int numbers = workers;
    for (int worker = 0; hosts && worker < workers; worker++)
        numbers = hosts[worker] >= numbers ? hosts[worker] + 1 : numbers;
    struct hosts_place *places = calloc((size_t)workers, sizeof *places);
    int *on_host = calloc((size_t)numbers + (size_t)workers, sizeof *on_host);
    int *with_local = on_host ? on_host + numbers : NULL;
    for (int worker = 0; places && on_host && worker < workers; worker++) {
        places[worker].local = on_host[hosts ? hosts[worker] : worker]++;
        places[worker].across = with_local[places[worker].local]++;
    }
    if (!places || !on_host) {
        free(places);
        places = NULL;
    }
    free(on_host);
    return places;
}

int hosts_locals(const int *hosts, int workers, int worker)
{
    int locals = 0;
    for (int other = 0; other < workers; other++)
        locals += together(hosts, other, worker);
    return locals;
}

int hosts_uneven(const int *hosts, int workers)
{
    int locals = hosts_locals(hosts, workers, 0);
    for (int worker = 1; worker < workers; worker++) {
        if (hosts_locals(hosts, workers, worker) != locals)
            return worker;
    }
    return -1;
}

bool hosts_in_order(const int *hosts, int workers)
{
    int locals = hosts_locals(hosts, workers, 0);
    for (int worker = 0; worker < workers; worker++) {
        if (!together(hosts, worker, worker - worker % locals))
            return false;
    }
    return true;
}

/* -------- the groups and the memory of hosts -------------------------------------------------- */

/* Builds both groups as lists only, without communication. */
static enum status find_groups(struct host_groups *groups, const struct backend_env *site)
{
    enum status status;
    int size = site->world->size, rank = site->world->rank;
    int *colors = malloc((size_t)size * sizeof *colors);
    struct hosts_place *places = hosts_places(site->hosts, site->workers);
    if (!colors || !places)
        TRY(FAIL(STATUS_NO_MEMORY, "hierarchical: no memory for %d ranks", size));
    for (int other = 0; other < size; other++)
        colors[other] = GROUP_NONE;
    for (int worker = 0; worker < site->workers; worker++)
        colors[site->group->ranks[worker]] = site->hosts[worker];
    TRY(group_from_colors(&groups->host, colors, size, rank));
    for (int worker = 0; worker < site->workers; worker++)
        colors[site->group->ranks[worker]] = places[worker].local;
    TRY(group_from_colors(&groups->across, colors, size, rank));
out:
    free(places);
    free(colors);
    return status;
}

enum status host_groups_open(struct host_groups *groups, const struct backend_env *site,
                             const struct group *callers, size_t vector_bytes, bool *agreed)
{
    enum status status;
    *groups = (struct host_groups){0};
    if (site->group)
        TRY(find_groups(groups, site));
    groups->content_offset =
        size_divide_up(vector_bytes, sizeof(struct host_content)) * sizeof(struct host_content);
    const struct shared_memory_options options = {
        .world = site->world,
        .workers = callers,
        .group = groups->host,
        .transport = site->transport,
        .vector_bytes = groups->content_offset + sizeof(struct host_content),
        .timeout_ms = site->options->timeout_ms,
        .agreed = agreed,
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

/* -------- opening, planning, closing ---------------------------------------------------------- */

/* All workers find the same errors; worker 0 logs them. */
static enum status check_site(const struct backend_env *site)
{
    const int *hosts = site->hosts;
    char(*const names)[WORLD_HOST_BYTES] = site->world->hosts;
    const int *ranks = site->group->ranks;
    int locals = hosts_locals(hosts, site->workers, 0), uneven = hosts_uneven(hosts, site->workers);
    if (uneven >= 0) {
        if (site->index == 0)
            log_error("hierarchical: %s has %d of the workers and %s %d, expected as many on each "
                      "host; start as many on each, or use --backend ring",
                      names[ranks[0]], locals, names[ranks[uneven]],
                      hosts_locals(hosts, site->workers, uneven));
        return STATUS_USAGE;
    }
    if (site->options->reduce_order == REDUCE_ORDER_RING && !hosts_in_order(hosts, site->workers)) {
        if (site->index == 0)
            log_error("hierarchical: with --reduce-order ring the %d workers of a host must be "
                      "neighbours in the order of the ranks, but those of %s are not; start them "
                      "host by host (mpirun --map-by slot), omit the option, or use --backend ring",
                      locals, names[ranks[0]]);
        return STATUS_USAGE;
    }
    if (site->options->reduce_order == REDUCE_ORDER_RING &&
        site->options->compress != COMPRESS_NONE) {
        if (site->index == 0)
            log_error(
                "hierarchical: --reduce-order ring cannot be combined with --compress; omit one");
        return STATUS_UNSUPPORTED;
    }
    return STATUS_OK;
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

static float *hierarchical_state(void *context, size_t index, size_t *count)
{
    struct hierarchical *self = context;
    return self->ring ? backend_ring.state(self->ring, index, count) : NULL;
}

static void hierarchical_close(void *context)
{
    struct hierarchical *self = context;
    if (self->ring)
        backend_ring.close(self->ring);
    host_groups_close(&self->own);
    free(self);
}

static enum status hierarchical_open(void **out, const struct backend_env *site)
{
    enum status status;
    const struct comm_options *options = site->options;
    struct host_groups *groups = options->host_groups;
    struct hierarchical *self = calloc(1, sizeof *self);
    if (!self)
        return FAIL(STATUS_NO_MEMORY, "hierarchical: out of memory");
    self->site = site;
    self->elements = (struct codec){.reduction = options->reduction,
                                    .workers = site->workers,
                                    .count = options->bucket_counts_max};
    self->groups = groups ? groups : &self->own;
    if (!groups) {
        TRY(check_site(site));
        TRY(host_groups_open(&self->own, site, site->group,
                             options->bucket_counts_max * codec_memory_bytes(options), NULL));
    }
    self->host = self->groups->host;
    self->across = self->groups->across;
    self->shared = self->groups->shared;
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
    .summary = "ring between hosts; the ranks of a host add up in shared memory first",
    .uses_transport = true,
    .obeys_segment_bytes = true,
    .reduces = true,
    .compresses = true,
    .obeys_reduce_order = true,
    .sums_within_host_first = true,
    .counts_bytes = true,
    .default_transport = TRANSPORT_TCP,
    .cost = &hierarchical_cost,
    .open = hierarchical_open,
    .plan = hierarchical_plan,
    .allreduce = hierarchical_allreduce,
    .state = hierarchical_state,
    .close = hierarchical_close,
};
