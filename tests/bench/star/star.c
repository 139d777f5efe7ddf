#include "tests/bench/star/star.h"

#include <stdlib.h>

#include "common/comm/reduce.h"

/* -------- what it costs ----------------------------------------------------------------------- */

static struct cost_traffic star_traffic(const struct cost_shape *shape, int rank)
{
    uint64_t others = (uint64_t)shape->topology.workers - 1;
    uint64_t bytes = (rank == 0 ? others : others > 0) * cost_bytes(shape, shape->count);
    return (struct cost_traffic){bytes, bytes};
}

static double star_time_s(const struct cost_shape *shape, const struct cost_link *link)
{
    double others = shape->topology.workers - 1, bytes = (double)cost_bytes(shape, shape->count);
    return 2 * link->latency_s + 2 * others * bytes / link->bytes_per_s +
           others * bytes * link->reduce_s_per_byte;
}

static const struct cost_formula star_cost = {.traffic = star_traffic, .time_s = star_time_s};

/* -------- what it does ------------------------------------------------------------------------ */

struct star {
    const struct backend_env *site;
    uint64_t step;
    struct transport_slot *slots; /* worker 0: one for each worker; else one, for worker 0 */
    int slot_count;
};

static struct message describe(const struct star *star, size_t bucket)
{
    size_t bytes = star->site->layout->counts[bucket] * sizeof(float);
    return (struct message){.kind = MESSAGE_SEGMENT,
                            .step = star->step,
                            .bucket = (uint32_t)bucket,
                            .length = bytes,
                            .dtype = MESSAGE_FLOAT32};
}

/* Receives the next message of slot `at`: adds it, or stores it. */
static enum status receive(struct star *star, int at, size_t bucket, float *data, bool adds)
{
    enum status status;
    struct transport *transport = star->site->transport;
    struct transport_slot *slot = &star->slots[at];
    const struct message expected = describe(star, bucket);
    transport_slot_expect(slot, &expected);
    TRY(transport_post(transport, slot, adds ? NULL : data));
    TRY(transport_wait(transport, slot));
    if (adds)
        reduce_add(data, slot->payload, star->site->layout->counts[bucket]);
    transport_release(transport, slot);
out:
    return status;
}

static enum status send(struct star *star, int worker, size_t bucket, const float *data)
{
    const struct message message = describe(star, bucket);
    return transport_send(star->site->transport, star->site->group->ranks[worker], &message, data,
                          NULL);
}

static enum status star_allreduce(void *self, size_t bucket, void *data)
{
    enum status status = STATUS_OK;
    struct star *star = self;
    const struct backend_env *site = star->site;
    if (site->index > 0) {
        TRY(send(star, 0, bucket, data));
        TRY(transport_flush(site->transport)); /* before the sum overwrites the data being sent */
        TRY(receive(star, 0, bucket, data, false));
    }
    for (int worker = 1; site->index == 0 && worker < site->workers; worker++)
        TRY(receive(star, worker, bucket, data, true));
    if (site->index == 0)
        reduce_scale(data, site->layout->counts[bucket], site->layout->scale);
    for (int worker = 1; site->index == 0 && worker < site->workers; worker++)
        TRY(send(star, worker, bucket, data));
    TRY(transport_flush(site->transport));
    star->step++;
out:
    return status;
}

/* -------- open and close ---------------------------------------------------------------------- */

static void star_close(void *self)
{
    struct star *star = self;
    for (int i = 0; i < star->slot_count; i++)
        transport_slot_fini(&star->slots[i], star->site->transport);
    free(star->slots);
    free(star);
}

static enum status star_open(void **self, const struct backend_env *site)
{
    enum status status = STATUS_OK;
    struct star *star = calloc(1, sizeof *star);
    if (!star || !(star->slots = calloc((size_t)site->workers, sizeof *star->slots))) {
        free(star);
        return STATUS_NO_MEMORY;
    }
    star->site = site;
    for (int i = 0; i < (site->index == 0 ? site->workers : 1); i++, star->slot_count++)
        TRY(transport_slot_init(&star->slots[i], site->transport, site->group->ranks[i],
                                site->options->bucket_counts_max * sizeof(float)));
    *self = star;
    return STATUS_OK;
out:
    star_close(star);
    return status;
}

const struct backend backend_star = {
    .name = "star",
    .summary = "all to worker 0 and back",
    .uses_transport = true,
    .counts_bytes = true,
    .default_transport = TRANSPORT_ZMQ,
    .cost = &star_cost,
    .open = star_open,
    .allreduce = star_allreduce,
    .close = star_close,
};
