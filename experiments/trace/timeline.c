#include "experiments/trace/timeline.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/net/topology.h"
#include "common/net/world.h"

/* Writes the events of one rank as lines of the file. */

struct timeline_rank {
    const struct world *world;
    const struct topology *topology;
    const struct trace *trace;
    bool in_step; /* timeline_options */
    struct clock_offset before, after;
    int64_t zero_ns; /* zero of the file, in rank 0's time */
};

/* Rows of a process: threads, then buckets, then chunks on their way to servers. */
enum {
    ROW_THREAD = 1,
    ROW_BUCKET = TRACE_ROW_BUCKET,
    ROW_SHARD = 1 << 20, /* more than the buckets of any plan */
    SHARD_LANES = 1024,  /* the largest --push-window */
};

const char *const trace_categories[RANGE_KINDS] = {
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

struct timeline_writer {
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

/* Begins a line: an event of a row, at `ns` of this rank's clock. */
static void put_head(const struct timeline_writer *writer, const char *phase, int row, int64_t ns)
{
    fprintf(writer->out, "{\"ph\":\"%s\",\"pid\":%d,\"tid\":%d", phase, writer->rank->world->rank,
            row);
    put_us(writer->out, "ts", aligned_ns(writer->rank, ns));
}

static int rank_of(const struct timeline_writer *writer, int node)
{
    return topology_rank(writer->rank->topology, node);
}

static void put_arguments(const struct timeline_writer *writer, const struct range_about *about)
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

static void put_range(const struct timeline_writer *writer, int row,
                      const struct trace_event *event)
{
    const struct timeline_rank *rank = writer->rank;
    put_head(writer, "X", row, event->begin_ns);
    put_us(writer->out, "dur", aligned_ns(rank, event->end_ns) - aligned_ns(rank, event->begin_ns));
    fprintf(writer->out, ",\"name\":\"%s\",\"cat\":\"%s\"", event->name,
            trace_categories[event->about.kind]);
    put_arguments(writer, &event->about);
    fprintf(writer->out, "},\n");
}

/* Writes one end of a message's flow, inside the open range of the thread. Both ends compute the
 * same id (hexadecimal, because Perfetto reads text). */
static void put_flow(const struct timeline_writer *writer, int row, const struct trace_event *event)
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

static void put_gpu(const struct timeline_writer *writer, const struct trace_event *event)
{
    put_head(writer, "C", 0, event->begin_ns);
    fprintf(writer->out, ",\"name\":\"GPU busy\",\"args\":{\"%%\":%.1f}},\n",
            (double)event->about.number / 10);
    put_head(writer, "C", 0, event->begin_ns);
    fprintf(writer->out, ",\"name\":\"GPU memory\",\"args\":{\"MiB\":%.1f}},\n",
            (double)event->about.bytes / (1 << 20));
}

static void put_cpu(const struct timeline_writer *writer, int row, const struct trace_event *event)
{
    put_head(writer, "C", row, event->begin_ns);
    fprintf(writer->out, ",\"name\":\"" TRACE_CPU_NAME "\",\"args\":{\"ms\":%.6f}},\n",
            (double)event->about.number / (double)NS_PER_MS);
}

static void put_queue(const struct timeline_writer *writer, const struct trace_event *event)
{
    bool sends = event->about.kind == RANGE_SEND;
    put_head(writer, "C", 0, event->begin_ns);
    fprintf(writer->out, ",\"name\":\"%s rank %d\",\"args\":{\"messages\":%u}},\n",
            sends ? "unsent to" : "receives posted for", rank_of(writer, event->about.peer),
            event->about.queue);
}

/* -------- names ------------------------------------------------------------------------------- */

static void put_name(const struct timeline_writer *writer, const char *what, int row,
                     const char *name)
{
    fprintf(writer->out,
            "{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"%s\",\"args\":{\"name\":\"%s\"}},\n",
            writer->rank->world->rank, row, what, name);
}

static void put_process(const struct timeline_writer *writer)
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

static void put_thread_name(const struct timeline_writer *writer, int row, const char *name)
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

/* Sorts outer ranges before inner ones. An outer range was recorded later. */
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

static void take_events(struct timeline_writer *writer, const struct trace_thread *thread)
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

static void put_thread(const struct timeline_writer *writer, int row)
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

/* Upper bound of the bucket numbers in the events. */
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
static void put_buckets(const struct timeline_writer *writer, bool *named)
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

/* Writes the chunks of a server. They overlap, up to its window, so each goes to the first free
 * row. */
static void put_shards(const struct timeline_writer *writer, int server)
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

/* -------- bytes per second -------------------------------------------------------------------- */

enum { BINS = 10000 };

/* Bytes of the messages of all threads, by the time of sending or arrival. */
struct traffic {
    int64_t begin_ns, bin_ns;
    uint64_t (*bytes)[2]; /* (BINS + 1): sent, received */
};

static void add_traffic(struct traffic *traffic, const struct trace_thread *thread)
{
    for (size_t i = 0; i < thread->count; i++) {
        const struct trace_event *event = &thread->events[i];
        enum range_kind kind = event->about.kind;
        int64_t bin = (event->begin_ns - traffic->begin_ns) / traffic->bin_ns;
        if (kind == RANGE_SEND || kind == RANGE_RECEIVE)
            traffic->bytes[bin][kind == RANGE_RECEIVE] += event->about.bytes;
    }
}

static void find_span(const struct trace *trace, int64_t *begin_ns, int64_t *end_ns)
{
    *begin_ns = INT64_MAX;
    *end_ns = INT64_MIN;
    for (size_t t = 0; t < trace_threads(trace); t++) {
        const struct trace_thread *thread = &trace->threads[t];
        for (size_t i = 0; i < thread->count; i++) {
            const struct trace_event *event = &thread->events[i];
            *begin_ns = event->begin_ns < *begin_ns ? event->begin_ns : *begin_ns;
            *end_ns = event->end_ns > *end_ns ? event->end_ns : *end_ns;
        }
    }
}

static enum status put_link(const struct timeline_writer *writer)
{
    const struct trace *trace = writer->rank->trace;
    int64_t begin_ns, end_ns;
    find_span(trace, &begin_ns, &end_ns);
    if (begin_ns >= end_ns)
        return STATUS_OK;
    struct traffic traffic = {begin_ns, (end_ns - begin_ns) / BINS + 1, NULL};
    if (traffic.bin_ns < NS_PER_MS)
        traffic.bin_ns = NS_PER_MS;
    traffic.bytes = calloc(BINS + 1, sizeof *traffic.bytes);
    if (!traffic.bytes)
        return FAIL(STATUS_NO_MEMORY, "timeline: no memory for counters");
    for (size_t t = 0; t < trace_threads(trace); t++)
        add_traffic(&traffic, &trace->threads[t]);
    double seconds = (double)traffic.bin_ns / (double)NS_PER_S;
    for (int64_t bin = 0; bin <= (end_ns - begin_ns) / traffic.bin_ns; bin++) {
        const uint64_t *bytes = traffic.bytes[bin], *last = traffic.bytes[bin > 0 ? bin - 1 : 0];
        if (bin > 0 && bytes[0] == last[0] && bytes[1] == last[1])
            continue;
        put_head(writer, "C", 0, begin_ns + bin * traffic.bin_ns);
        fprintf(writer->out,
                ",\"name\":\"link\",\"args\":{\"sent MB/s\":%.3f,\"received MB/s\":%.3f}},\n",
                (double)bytes[0] / seconds / 1e6, (double)bytes[1] / seconds / 1e6);
    }
    free(traffic.bytes);
    return STATUS_OK;
}

/* -------- the whole --------------------------------------------------------------------------- */

static enum status write_events(const struct timeline_rank *rank, FILE *out)
{
    enum status status = STATUS_OK;
    struct timeline_writer writer = {.rank = rank, .out = out};
    bool *named = calloc(count_buckets(rank->trace) + 1, sizeof *named);
    writer.events = calloc(rank->trace->options.events + 1, sizeof(struct trace_event *));
    if (!writer.events || !named)
        TRY(FAIL(STATUS_NO_MEMORY, "timeline: no memory to sort %zu events",
                 rank->trace->options.events));
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
    TRY(put_link(&writer));
out:
    free(writer.events);
    free(named);
    return status;
}

enum {
    EVENTS = 1 << 18, /* capacity per thread; memory is used as it fills */
    PIECE_BYTES = 1 << 18,
};

struct timeline {
    struct world *world;
    struct timeline_options options;
    struct trace *trace;
    FILE *file; /* on rank 0 */
    struct clock_offset before;
};

/* The lines of a rank, deflated. */
struct timeline_part {
    uint64_t text_bytes, bytes;
    uint64_t dropped,
        unrecorded; /* events that are missing; unrecorded: because of too many threads */
};

/* -------- the file ---------------------------------------------------------------------------- */

static enum status file_error(const struct timeline *timeline, const char *what)
{
    return FAIL(STATUS_IO, "--timeline %s: %s: %s; choose another path or free disk space",
                timeline->options.file, what, strerror(errno));
}

/* Opens the file on rank 0, which also empties the file of an earlier run. */
static enum status open_file(struct timeline *timeline)
{
    if (timeline->world->rank > 0)
        return STATUS_OK;
    timeline->file = fopen(timeline->options.file, "w");
    return timeline->file ? STATUS_OK : file_error(timeline, "cannot be written");
}

static enum status inflate_into_file(const struct timeline *timeline,
                                     const struct timeline_part *part, const unsigned char *bytes)
{
    uLongf length = part->text_bytes;
    unsigned char *text = malloc(length + 1);
    if (!text)
        return FAIL(STATUS_NO_MEMORY, "timeline: no memory for %llu bytes",
                    (unsigned long long)part->text_bytes);
    enum status status = STATUS_OK;
    if (uncompress(text, &length, bytes, part->bytes) != Z_OK || length != part->text_bytes) {
        log_error("timeline: received a damaged part of a rank");
        status = STATUS_PROTOCOL;
    } else if (fwrite(text, 1, length, timeline->file) != length) {
        status = file_error(timeline, "cannot be written");
    }
    free(text);
    return status;
}

/* -------- collecting -------------------------------------------------------------------------- */

/* Writes and deflates the lines of this rank. The caller frees *bytes. */
static enum status make_part(const struct timeline *timeline, const struct timeline_rank *rank,
                             struct timeline_part *part, unsigned char **bytes)
{
    enum status status = STATUS_OK;
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    *bytes = NULL;
    if (memory)
        TRY(write_events(rank, memory));
    bool whole = memory && fclose(memory) == 0;
    memory = NULL;
    uLongf length = whole ? compressBound(size) : 0;
    *bytes = whole ? malloc(length + PIECE_BYTES) : NULL;
    if (!*bytes || compress2(*bytes, &length, (unsigned char *)text, size, 1) != Z_OK)
        TRY(FAIL(STATUS_NO_MEMORY, "timeline: no memory for its text"));
    *part = (struct timeline_part){.text_bytes = size,
                                   .bytes = length,
                                   .dropped = trace_dropped(timeline->trace),
                                   .unrecorded = atomic_load(&timeline->trace->unrecorded)};
out:
    if (memory)
        fclose(memory);
    free(text);
    return status;
}

/* Gathers the bytes of every rank on rank 0, piece by piece. Collective. all_bytes: (size), only on
 * rank 0; the caller frees each. */
static enum status collect(const struct timeline *timeline, const struct timeline_part *parts,
                           const unsigned char *own, unsigned char **all_bytes)
{
    enum status status = STATUS_OK;
    size_t size = (size_t)timeline->world->size, longest = 0;
    bool whole = true;
    for (size_t rank = 0; rank < size; rank++) {
        longest = parts[rank].bytes > longest ? parts[rank].bytes : longest;
        if (timeline->world->rank == 0)
            whole = (all_bytes[rank] = malloc(parts[rank].bytes + PIECE_BYTES)) && whole;
    }
    unsigned char *pieces = malloc(size * PIECE_BYTES);
    size_t own_bytes = parts[timeline->world->rank].bytes;
    if (!whole || !pieces)
        TRY(FAIL(STATUS_NO_MEMORY, "timeline: no memory for the events of %zu ranks", size));
    for (size_t at = 0; at < longest; at += PIECE_BYTES) {
        TRY(world_gather(timeline->world, NULL, own + (at < own_bytes ? at : 0), PIECE_BYTES,
                         pieces));
        for (size_t rank = 0; rank < size && timeline->world->rank == 0; rank++) {
            if (at < parts[rank].bytes)
                /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): allocated above */
                memcpy(all_bytes[rank] + at, pieces + rank * PIECE_BYTES, PIECE_BYTES);
        }
    }
out:
    free(pieces);
    return status;
}

static enum status write_file(struct timeline *timeline, const struct bottleneck_facts *facts,
                              const struct timeline_part *parts, unsigned char *const *all_bytes)
{
    enum status status = STATUS_OK;
    FILE *file = timeline->file;
    uint64_t dropped = 0, unrecorded = 0;
    fprintf(file,
            "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"program\":\"psring %s\"},"
            "\"traceEvents\":[\n",
            PSRING_VERSION);
    if (facts)
        trace_facts_write(file, facts);
    for (int rank = 0; rank < timeline->world->size; rank++) {
        TRY(inflate_into_file(timeline, &parts[rank], all_bytes[rank]));
        dropped += parts[rank].dropped - parts[rank].unrecorded;
        unrecorded += parts[rank].unrecorded;
    }
    fprintf(file, "{\"ph\":\"M\",\"pid\":0,\"tid\":0,\"name\":\"psring_end\",\"args\":{}}\n]}\n");
    bool failed = ferror(file);
    failed = fclose(file) != 0 || failed;
    timeline->file = NULL;
    if (failed)
        return file_error(timeline, "cannot be written");
    if (dropped > 0)
        log_warn("--timeline %s: dropped the last %llu events, because the buffers were full; "
                 "record fewer "
                 "steps (--timeline-steps)",
                 timeline->options.file, (unsigned long long)dropped);
    if (unrecorded > 0)
        log_warn("--timeline %s: dropped %llu events of ranks with more than %d threads",
                 timeline->options.file, (unsigned long long)unrecorded, TRACE_THREADS);
out:
    return status;
}

/* -------- a timeline's life ------------------------------------------------------------------- */

static enum status open_timeline(struct timeline **out, struct world *world,
                                 const struct timeline_options *options)
{
    enum status status = STATUS_OK;
    struct timeline *timeline = calloc(1, sizeof *timeline);
    *out = timeline;
    if (!timeline)
        return FAIL(STATUS_NO_MEMORY, "timeline: out of memory");
    timeline->world = world;
    timeline->options = *options;
    TRY(open_file(timeline));
    TRY(clock_offset_measure(world, &timeline->before));
    TRY(trace_new(&timeline->trace, &(struct trace_options){.events = EVENTS,
                                                            .first_step = options->first_step,
                                                            .end_step = options->end_step}));
out:
    return status;
}

static enum status write_timeline(struct timeline *timeline, const struct bottleneck_facts *facts)
{
    enum status status = STATUS_OK;
    struct world *world = timeline->world;
    size_t size = (size_t)world->size;
    struct timeline_rank rank = {.world = world,
                                 .topology = timeline->options.topology,
                                 .trace = timeline->trace,
                                 .in_step = timeline->options.in_step,
                                 .before = timeline->before,
                                 .zero_ns = timeline->before.at_ns};
    unsigned char *bytes = NULL, **all_bytes = calloc(size, sizeof *all_bytes);
    struct timeline_part part, *parts = calloc(size, sizeof *parts);
    if (!all_bytes || !parts)
        TRY(FAIL(STATUS_NO_MEMORY, "timeline: no memory for %zu ranks", size));
    trace_stop(timeline->trace);
    TRY(clock_offset_measure(world, &rank.after));
    TRY(world_broadcast(world, NULL, &rank.zero_ns, sizeof rank.zero_ns)); /* rank 0's */
    TRY(make_part(timeline, &rank, &part, &bytes));
    TRY(world_gather(world, NULL, &part, sizeof part, parts));
    TRY(collect(timeline, parts, bytes, all_bytes));
    if (timeline->file)
        TRY(write_file(timeline, facts, parts, all_bytes));
out:
    for (size_t r = 0; all_bytes && r < size; r++)
        free(all_bytes[r]);
    free(all_bytes);
    free(parts);
    free(bytes);
    return status;
}

static void close_timeline(struct timeline **out)
{
    struct timeline *timeline = *out;
    if (!timeline)
        return;
    *out = NULL;
    trace_free(&timeline->trace);
    if (timeline->file)
        fclose(timeline->file);
    free(timeline);
}

const struct timeline_recorder timeline_recorder = {
    .open = open_timeline,
    .write = write_timeline,
    .close = close_timeline,
};
