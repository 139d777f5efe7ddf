#include "experiments/timeline/timeline_events.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/status.h"
#include "common/base/clock.h"
#include "experiments/timeline/timeline_link.h"
#include "experiments/trace/trace_file.h"

/* Rows of a process: threads, then buckets, then chunks on their way to servers. */
enum {
    ROW_THREAD = 1,
    ROW_BUCKET = TRACE_ROW_BUCKET,
    ROW_SHARD = 1 << 20, /* no plan has so many buckets */
    SHARD_LANES = 1024,  /* of --push-window the most */
};

static const char *const categories[RANGE_KINDS] = {
    [RANGE_STEP] = "step",
    [RANGE_COMPUTE] = "compute",
    [RANGE_DATA] = "data",
    [RANGE_OPTIMIZER] = "optimizer",
    [RANGE_EXPOSED] = "exposed",
    [RANGE_BUCKET] = "bucket",
    [RANGE_ALLREDUCE] = "allreduce",
    [RANGE_TRANSFER] = "transfer",
    [RANGE_SHARD] = "shard",
    [RANGE_SERVER] = "server",
    [RANGE_WAIT] = "wait",
    [RANGE_WAIT_HOST] = "wait",
    [RANGE_SEND] = "message",
    [RANGE_RECEIVE] = "message",
    [RANGE_GPU] = "gpu",
    [RANGE_CPU] = "cpu",
};

struct writer {
    const struct timeline_rank *rank;
    FILE *out;
    const struct trace_event **events; /* of all threads, sorted */
    size_t count;
};

/* -------- pieces of a line -------------------------------------------------------------------- */

static int64_t aligned_ns(const struct timeline_rank *rank, int64_t ns)
{
    return clock_offset_apply(&rank->before, &rank->after, ns) - rank->zero_ns;
}

/* "12.345": microseconds. */
static void put_us(FILE *out, const char *key, int64_t ns)
{
    const char *sign = ns < 0 ? "-" : "";
    uint64_t absolute = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
    fprintf(out, ",\"%s\":%s%" PRIu64 ".%03d", key, sign, absolute / 1000, (int)(absolute % 1000));
}

void timeline_put_head(const struct timeline_rank *rank, FILE *out, const char *phase, int row,
                       int64_t ns)
{
    fprintf(out, "{\"ph\":\"%s\",\"pid\":%d,\"tid\":%d", phase, rank->world->rank, row);
    put_us(out, "ts", aligned_ns(rank, ns));
}

static void put_head(const struct writer *writer, const char *phase, int row, int64_t ns)
{
    timeline_put_head(writer->rank, writer->out, phase, row, ns);
}

static int rank_of(const struct writer *writer, int node)
{
    return topology_rank(writer->rank->topology, node);
}

static void put_arguments(const struct writer *writer, const struct range_about *about)
{
    FILE *out = writer->out;
    fprintf(out, ",\"args\":{");
    switch (about->kind) {
    case RANGE_STEP:
        fprintf(out, "\"step\":%" PRIu64, about->number);
        break;
    case RANGE_EXPOSED:
        fprintf(out, "\"bucket\":%u", about->bucket);
        break;
    case RANGE_BUCKET:
    case RANGE_ALLREDUCE:
        fprintf(out, "\"bucket\":%u,\"step\":%" PRIu64 ",\"bytes\":%" PRIu64, about->bucket,
                about->number, about->bytes);
        break;
    case RANGE_TRANSFER:
        fprintf(out, "\"bucket\":%u,\"step\":%" PRIu64 ",\"chunk\":%u,\"from\":%d", about->bucket,
                about->number, about->chunk, rank_of(writer, about->peer));
        break;
    case RANGE_SHARD:
    case RANGE_SERVER:
        fprintf(out, "\"bucket\":%u,\"chunk\":%u,\"operation\":%" PRIu64 ",\"bytes\":%" PRIu64,
                about->bucket, about->chunk, about->number, about->bytes);
        break;
    case RANGE_WAIT_HOST:
        fprintf(out, "\"for\":%d", rank_of(writer, about->peer));
        break;
    case RANGE_SEND:
        fprintf(out, "\"to\":%d,\"bucket\":%u,\"bytes\":%" PRIu64, rank_of(writer, about->peer),
                about->bucket, about->bytes);
        break;
    default:
        break;
    }
    fprintf(out, "}");
}

static void put_range(const struct writer *writer, int row, const struct trace_event *event)
{
    const struct timeline_rank *rank = writer->rank;
    put_head(writer, "X", row, event->begin_ns);
    put_us(writer->out, "dur", aligned_ns(rank, event->end_ns) - aligned_ns(rank, event->begin_ns));
    fprintf(writer->out, ",\"name\":\"%s\",\"cat\":\"%s\"", event->name,
            categories[event->about.kind]);
    put_arguments(writer, &event->about);
    fprintf(writer->out, "},\n");
}

/* One end of a message's flow: in the range that is open on the thread. Both ends make the same
 * number of it (hexadecimal, as Perfetto reads text). */
static void put_flow(const struct writer *writer, int row, const struct trace_event *event)
{
    const struct range_about *about = &event->about;
    bool sends = about->kind == RANGE_SEND;
    put_head(writer, sends ? "s" : "f", row, event->begin_ns);
    fprintf(writer->out,
            ",\"id\":\"%04x%04x%08" PRIx64
            "\",\"name\":\"message\",\"cat\":\"message\"%s,\"args\":{\"bytes\":%" PRIu64 "}},\n",
            (unsigned)(sends ? about->node : about->peer),
            (unsigned)(sends ? about->peer : about->node), about->number & UINT32_MAX,
            sends ? "" : ",\"bp\":\"e\"", about->bytes);
}

static void put_gpu(const struct writer *writer, const struct trace_event *event)
{
    put_head(writer, "C", 0, event->begin_ns);
    fprintf(writer->out, ",\"name\":\"GPU busy\",\"args\":{\"%%\":%.1f}},\n",
            (double)event->about.number / 10);
    put_head(writer, "C", 0, event->begin_ns);
    fprintf(writer->out, ",\"name\":\"GPU memory\",\"args\":{\"MiB\":%.1f}},\n",
            (double)event->about.bytes / (1 << 20));
}

static void put_cpu(const struct writer *writer, int row, const struct trace_event *event)
{
    put_head(writer, "C", row, event->begin_ns);
    fprintf(writer->out, ",\"name\":\"" TRACE_CPU_NAME "\",\"args\":{\"ms\":%.6f}},\n",
            (double)event->about.number / (double)NS_PER_MS);
}

static void put_queue(const struct writer *writer, const struct trace_event *event)
{
    bool sends = event->about.kind == RANGE_SEND;
    put_head(writer, "C", 0, event->begin_ns);
    fprintf(writer->out, ",\"name\":\"%s rank %d\",\"args\":{\"messages\":%u}},\n",
            sends ? "unsent to" : "receives posted for", rank_of(writer, event->about.peer),
            event->about.queue);
}

/* -------- names ------------------------------------------------------------------------------- */

static void put_name(const struct writer *writer, const char *what, int row, const char *name)
{
    fprintf(writer->out,
            "{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"%s\",\"args\":{\"name\":\"%s\"}},\n",
            writer->rank->world->rank, row, what, name);
}

static void put_process(const struct writer *writer)
{
    const struct timeline_rank *rank = writer->rank;
    int number = rank->world->rank;
    int server = topology_node(rank->topology, number, NODE_SERVER);
    bool works = topology_node(rank->topology, number, NODE_WORKER) >= 0;
    char name[WORLD_HOST_BYTES + 64], roles[48] = "";
    if (works)
        snprintf(roles, sizeof roles, "worker%s", server >= 0 ? ", " : "");
    if (server >= 0)
        snprintf(roles + strlen(roles), sizeof roles - strlen(roles), "server %d",
                 server - rank->topology->workers);
    snprintf(name, sizeof name, "rank %d (%s) on %s", number, roles, rank->world->host);
    put_name(writer, "process_name", 0, name);
    fprintf(writer->out,
            "{\"ph\":\"M\",\"pid\":%d,\"tid\":0,\"name\":\"process_sort_index\","
            "\"args\":{\"sort_index\":%d}},\n",
            number, number);
    fprintf(writer->out,
            "{\"ph\":\"M\",\"pid\":%d,\"tid\":0,\"name\":\"psring_rank\",\"args\":{"
            "\"worker\":%s,\"in_step\":%s,\"clock_start_offset_ns\":%" PRId64
            ",\"clock_start_error_ns\":%" PRId64 ",\"clock_end_offset_ns\":%" PRId64
            ",\"clock_end_error_ns\":%" PRId64 ",\"dropped_events\":%zu}},\n",
            number, works ? "true" : "false", rank->in_step ? "true" : "false",
            rank->before.offset_ns, rank->before.error_ns, rank->after.offset_ns,
            rank->after.error_ns, trace_dropped(rank->trace));
}

static void put_thread_name(const struct writer *writer, int row, const char *name)
{
    bool server = topology_node(writer->rank->topology, writer->rank->world->rank, NODE_WORKER) < 0;
    if (strcmp(name, "main") == 0)
        name = server ? "server" : "training";
    else if (strcmp(name, "psring-comm") == 0)
        name = "averaging";
    else if (strncmp(name, "psring-", 7) == 0)
        name += 7;
    put_name(writer, "thread_name", row, name);
}

/* -------- rows -------------------------------------------------------------------------------- */

/* What encloses comes before what it encloses, and was recorded after it. */
static int compare_events(const void *a, const void *b)
{
    const struct trace_event *one = *(const struct trace_event *const *)a;
    const struct trace_event *two = *(const struct trace_event *const *)b;
    if (one->begin_ns != two->begin_ns)
        return one->begin_ns < two->begin_ns ? -1 : 1;
    if (one->end_ns != two->end_ns)
        return one->end_ns > two->end_ns ? -1 : 1;
    return one > two ? -1 : one < two;
}

static void take_events(struct writer *writer, const struct trace_thread *thread)
{
    writer->count = thread->count;
    for (size_t i = 0; i < thread->count; i++)
        writer->events[i] = &thread->events[i];
    qsort(writer->events, writer->count, sizeof *writer->events, compare_events);
}

static bool has_row_of_its_own(const struct trace_event *event)
{
    return event->about.kind == RANGE_BUCKET || event->about.kind == RANGE_SHARD;
}

static void put_thread(const struct writer *writer, int row)
{
    for (size_t i = 0; i < writer->count; i++) {
        const struct trace_event *event = writer->events[i];
        enum range_kind kind = event->about.kind;
        if (has_row_of_its_own(event))
            continue;
        if (kind == RANGE_GPU) {
            put_gpu(writer, event);
            continue;
        }
        if (kind == RANGE_CPU)
            put_cpu(writer, row, event);
        else if (kind != RANGE_RECEIVE)
            put_range(writer, row, event);
        if (kind == RANGE_RECEIVE || kind == RANGE_SEND) {
            put_flow(writer, row, event);
            put_queue(writer, event);
        }
    }
}

/* How many buckets there are events of, at most. */
static size_t count_buckets(const struct trace *trace)
{
    size_t count = 0;
    for (size_t t = 0; t < trace_threads(trace); t++) {
        for (size_t i = 0; i < trace->threads[t].count; i++) {
            const struct range_about *about = &trace->threads[t].events[i].about;
            if (about->kind == RANGE_BUCKET && about->bucket >= count)
                count = (size_t)about->bucket + 1;
        }
    }
    return count;
}

/* named: (buckets) */
static void put_buckets(const struct writer *writer, bool *named)
{
    char name[32];
    for (size_t i = 0; i < writer->count; i++) {
        const struct trace_event *event = writer->events[i];
        uint32_t bucket = event->about.bucket;
        if (event->about.kind != RANGE_BUCKET)
            continue;
        snprintf(name, sizeof name, "bucket %u", bucket);
        if (!named[bucket])
            put_name(writer, "thread_name", ROW_BUCKET + (int)bucket, name);
        named[bucket] = true;
        put_range(writer, ROW_BUCKET + (int)bucket, event);
    }
}

/* Chunks of a server overlap, as many as its window has: each goes to the first row that is free.
 */
static void put_shards(const struct writer *writer, int server)
{
    int64_t free_ns[SHARD_LANES];
    int lanes = 0, node = writer->rank->topology->workers + server;
    for (size_t i = 0; i < writer->count; i++) {
        const struct trace_event *event = writer->events[i];
        if (event->about.kind != RANGE_SHARD || event->about.peer != node)
            continue;
        int lane = 0;
        while (lane < lanes && free_ns[lane] > event->begin_ns)
            lane++;
        CHECK(lane < SHARD_LANES);
        int row = ROW_SHARD + server * SHARD_LANES + lane;
        if (lane == lanes) {
            char name[32];
            snprintf(name, sizeof name, "shard %d", server);
            put_name(writer, "thread_name", row, name);
            lanes++;
        }
        free_ns[lane] = event->end_ns;
        put_range(writer, row, event);
    }
}

/* -------- the whole --------------------------------------------------------------------------- */

enum status timeline_write_events(const struct timeline_rank *rank, FILE *out)
{
    enum status status = STATUS_OK;
    struct writer writer = {.rank = rank, .out = out};
    bool *named = calloc(count_buckets(rank->trace) + 1, sizeof *named);
    writer.events = calloc(rank->trace->options.events + 1, sizeof(struct trace_event *));
    if (!writer.events || !named) {
        log_error("timeline: no memory to sort %zu events", rank->trace->options.events);
        status = STATUS_NO_MEMORY;
        goto out;
    }
    put_process(&writer);
    for (size_t t = 0; t < trace_threads(rank->trace); t++) {
        const struct trace_thread *thread = &rank->trace->threads[t];
        take_events(&writer, thread);
        if (writer.count > 0)
            put_thread_name(&writer, ROW_THREAD + (int)t, thread->name);
        put_thread(&writer, ROW_THREAD + (int)t);
        put_buckets(&writer, named);
        for (int server = 0; server < rank->topology->servers; server++)
            put_shards(&writer, server);
    }
    TRY(timeline_write_link(rank, out));
out:
    free(writer.events);
    free(named);
    return status;
}
