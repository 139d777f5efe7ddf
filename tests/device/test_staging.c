/* Buckets between the memory of a device and the host's, on a stand-in for a GPU. The host cannot
 * read the device's memory: every value there has the opposite sign. The streams do nothing until
 * the host waits, and then keep only the order that events require. */
#include "common/comm/comm_impl.h"

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdlib.h>

enum { WORK_MAX = 64, STREAMS_MAX = 4 };

enum work_kind { COPY, RECORD, WAIT, ADD_ONE, HALVE };

struct work {
    enum work_kind kind;
    float *to;
    const float *from;
    size_t count;
    struct device_event *event;
    int version; /* the number of the event's record */
};

struct device_stream {
    struct work work[WORK_MAX];
    size_t given, done;
};

struct device_event {
    int recorded, reached;
};

struct fake {
    struct device device;
    struct device_stream streams[STREAMS_MAX]; /* 0: compute */
    size_t stream_count;
    bool compute_first;
};

static struct fake *fake_of(struct device *device)
{
    return (struct fake *)(void *)device;
}

static struct device_stream *stream_of(struct device *device, struct device_stream *stream)
{
    return stream ? stream : &fake_of(device)->streams[0];
}

static void give(struct device *device, struct device_stream *stream, struct work work)
{
    stream = stream_of(device, stream);
    cr_assert_lt(stream->given, WORK_MAX);
    stream->work[stream->given++] = work;
}

static void do_work(const struct work *work)
{
    if (work->kind == RECORD)
        work->event->reached = work->version;
    for (size_t i = 0; i < work->count; i++) {
        if (work->kind == ADD_ONE)
            work->to[i] -= 1; /* minus, because the sign is reversed */
        else if (work->kind == HALVE)
            work->to[i] *= 0.5f;
        else
            work->to[i] = -work->from[i];
    }
}

/* Does as much as possible on one stream before the next. Results that are right in both orders are
 * right because of events. */
static void run_all(struct fake *fake)
{
    bool moved = true;
    while (moved) {
        moved = false;
        for (size_t s = 0; s < STREAMS_MAX && !moved; s++) {
            size_t first = fake->compute_first ? s : STREAMS_MAX - 1 - s;
            struct device_stream *stream = &fake->streams[first];
            if (stream->done == stream->given)
                continue;
            const struct work *work = &stream->work[stream->done];
            if (work->kind == WAIT && work->event->reached < work->version)
                continue;
            do_work(work);
            stream->done++;
            moved = true;
        }
    }
}

static enum status stream_new(struct device *device, struct device_stream **stream)
{
    struct fake *fake = fake_of(device);
    cr_assert_lt(fake->stream_count + 1, STREAMS_MAX);
    *stream = &fake->streams[++fake->stream_count];
    return STATUS_OK;
}

static void stream_free(struct device *device, struct device_stream *stream)
{
    (void)device;
    (void)stream;
}

static enum status event_new(struct device *device, struct device_event **event)
{
    (void)device;
    *event = calloc(1, sizeof **event);
    return STATUS_OK;
}

static void event_free(struct device *device, struct device_event *event)
{
    (void)device;
    free(event);
}

static void record(struct device *device, struct device_event *event, struct device_stream *stream)
{
    give(device, stream,
         (struct work){.kind = RECORD, .event = event, .version = ++event->recorded});
}

static void stream_wait(struct device *device, struct device_stream *stream,
                        struct device_event *event)
{
    give(device, stream, (struct work){.kind = WAIT, .event = event, .version = event->recorded});
}

static enum status event_wait(struct device *device, struct device_event *event)
{
    run_all(fake_of(device));
    cr_assert_eq(event->reached, event->recorded, "waits for an event that never comes");
    return STATUS_OK;
}

static enum status host_alloc(struct device *device, size_t bytes, void **memory)
{
    (void)device;
    *memory = calloc(1, bytes + 1);
    return STATUS_OK;
}

static void host_free(struct device *device, void *memory)
{
    struct fake *fake = fake_of(device);
    for (size_t s = 0; s < STREAMS_MAX; s++) {
        const struct device_stream *stream = &fake->streams[s];
        for (size_t w = stream->done; w < stream->given; w++)
            cr_assert(stream->work[w].to != memory && stream->work[w].from != memory,
                      "freed while a copy may still use the memory");
    }
    free(memory);
}

static void transfer(struct device *device, struct device_stream *stream, void *to,
                     const void *from, size_t bytes)
{
    give(device, stream,
         (struct work){.kind = COPY, .to = to, .from = from, .count = bytes / sizeof(float)});
}

/* Like a GPU's: waits for the compute stream, and for other streams only if it waits for them. */
static enum status sync_compute(struct device *device)
{
    struct fake *fake = fake_of(device);
    const struct device_stream *compute = &fake->streams[0];
    while (compute->done < compute->given) {
        const struct work *work = &compute->work[compute->done];
        bool blocked = work->kind == WAIT && work->event->reached < work->version;
        if (blocked) {
            run_all(fake);
            cr_assert_geq(work->event->reached, work->version,
                          "waits for an event that never comes");
            continue;
        }
        do_work(work);
        fake->streams[0].done++;
    }
    return STATUS_OK;
}

static const struct stream_ops fake_streams = {
    .stream_new = stream_new,
    .stream_free = stream_free,
    .event_new = event_new,
    .event_free = event_free,
    .record = record,
    .stream_wait = stream_wait,
    .event_wait = event_wait,
    .host_alloc = host_alloc,
    .host_free = host_free,
    .upload = transfer,
    .download = transfer,
};

static void scale(struct device *device, float *values, float factor, size_t count)
{
    cr_assert_eq(factor, 0.5f);
    give(device, NULL, (struct work){.kind = HALVE, .to = values, .count = count});
}

static const struct device_ops fake_ops = {
    .name = "fake", .streams = &fake_streams, .sync = sync_compute, .scale = scale};

/* An operation of the device: adds one to every value, in the order of the compute stream. */
static void add_one(struct device *device, float *data, size_t count)
{
    give(device, NULL, (struct work){.kind = ADD_ONE, .to = data, .count = count});
}

static void run_steps(bool compute_first)
{
    enum { FIRST = 3, SECOND = 5, STEPS = 3 };
    const size_t counts[] = {FIRST, SECOND};
    struct fake *fake = calloc(1, sizeof *fake);
    fake->device.ops = &fake_ops;
    fake->compute_first = compute_first;
    float data[FIRST + SECOND]; /* device memory */
    float expected[FIRST + SECOND];
    struct staging *staging = NULL;
    cr_assert_eq(staging_new(&staging, &fake->device, counts, 2, false, 1.0f), STATUS_OK);
    for (size_t i = 0; i < FIRST + SECOND; i++) {
        expected[i] = (float)(10 * i);
        data[i] = -expected[i];
    }
    for (int step = 0; step < STEPS; step++) {
        float *host[2];
        add_one(&fake->device, data, FIRST);
        host[0] = staging_down(staging, 0, data);
        add_one(&fake->device, data + FIRST, SECOND);
        host[1] = staging_down(staging, 1, data + FIRST);
        for (size_t b = 0; b < 2; b++) {
            cr_assert_eq(staging_arrive(staging, b), STATUS_OK);
            for (size_t i = 0; i < counts[b]; i++) {
                size_t at = i + (b ? FIRST : 0);
                cr_assert_eq(host[b][i], expected[at] + 1, "step %d, bucket %zu, element %zu: %g",
                             step, b, i, (double)host[b][i]);
                host[b][i] *= 2; /* the averaging */
                expected[at] = (expected[at] + 1) * 2;
            }
        }
        staging_up(staging, 0);
        staging_up(staging, 1);
    }
    add_one(&fake->device, data, FIRST + SECOND); /* must see the uploaded values */
    cr_assert_eq(fake->device.ops->sync(&fake->device), STATUS_OK);
    for (size_t i = 0; i < FIRST + SECOND; i++)
        cr_assert_eq(data[i], -(expected[i] + 1), "element %zu: %g", i, (double)data[i]);
    cr_assert_geq(staging_waited_ns(staging), 0);
    staging_free(&staging);
    cr_assert_null(staging);
    free(fake);
}

Test(staging, what_is_computed_before_goes_down_and_what_comes_up_is_there_after)
{
    run_steps(false);
    run_steps(true);
}

Test(staging, in_place_data_is_computed_before_and_scaled_after)
{
    enum { COUNT = 4 };
    const size_t count = COUNT;
    struct fake *fake = calloc(1, sizeof *fake);
    fake->device.ops = &fake_ops;
    float data[COUNT] = {0, -1, -2, -3}; /* device memory */
    struct staging *staging = NULL;
    cr_assert_eq(staging_new(&staging, &fake->device, &count, 1, true, 0.5f), STATUS_OK);
    for (int step = 0; step < 2; step++) {
        add_one(&fake->device, data, COUNT);
        cr_assert_eq(staging_down(staging, 0, data), data);
        cr_assert_eq(staging_arrive(staging, 0), STATUS_OK);
        for (size_t i = 0; i < COUNT; i++) {
            cr_assert_eq(data[i], -(float)(i + 1 + step), "step %d, element %zu: %g", step, i,
                         (double)data[i]);
            data[i] *= 2; /* the averaging, which reads device memory */
        }
        staging_up(staging, 0);
    }
    add_one(&fake->device, data, COUNT); /* must see the scaled values */
    cr_assert_eq(device_sync(&fake->device), STATUS_OK);
    for (size_t i = 0; i < COUNT; i++)
        cr_assert_eq(data[i], -(float)(i + 3), "element %zu: %g", i, (double)data[i]);
    cr_assert_eq(fake->stream_count, 0);
    staging_free(&staging);
    free(fake);
}

/* After an error, a bucket has gone down for which no call waits any more. */
Test(staging, copies_under_way_end_before_their_memory)
{
    static const size_t counts[] = {4};
    static float data[4];
    struct fake *fake = calloc(1, sizeof *fake);
    struct staging *staging = NULL;
    fake->device.ops = &fake_ops;
    cr_assert_eq(staging_new(&staging, &fake->device, counts, 1, false, 1.0f), STATUS_OK);
    staging_down(staging, 0, data);
    staging_free(&staging); /* host_free checks this */
    free(fake);
}
