#include "experiments/timeline/timeline.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "common/base/status.h"
#include "common/obs/trace.h"
#include "experiments/timeline/timeline_events.h"
#include "experiments/trace/trace_facts.h"

enum {
    EVENTS = 1 << 18, /* of a thread; memory is used as it fills */
    PIECE_BYTES = 1 << 18,
};

struct timeline {
    struct world *world;
    struct timeline_options options;
    struct trace *trace;
    FILE *file; /* on rank 0 */
    struct clock_offset before;
};

/* What a rank has for the file: its lines, deflated. */
struct part {
    uint64_t text_bytes, bytes;
    uint64_t dropped, unrecorded; /* of the events that are not in them: of too many threads */
};

/* -------- the file ---------------------------------------------------------------------------- */

static enum status file_error(const struct timeline *timeline, const char *what)
{
    log_error("--timeline %s: %s: %s; choose another place or make room", timeline->options.file,
              what, strerror(errno));
    return STATUS_IO;
}

/* What an earlier run has left there is not to be taken for this one's. */
static enum status open_file(struct timeline *timeline)
{
    if (timeline->world->rank > 0)
        return STATUS_OK;
    timeline->file = fopen(timeline->options.file, "w");
    return timeline->file ? STATUS_OK : file_error(timeline, "cannot be written");
}

static enum status inflate_into_file(const struct timeline *timeline, const struct part *part,
                                     const unsigned char *bytes)
{
    uLongf length = part->text_bytes;
    unsigned char *text = malloc(length + 1);
    if (!text) {
        log_error("timeline: no memory for %llu bytes", (unsigned long long)part->text_bytes);
        return STATUS_NO_MEMORY;
    }
    enum status status = STATUS_OK;
    if (uncompress(text, &length, bytes, part->bytes) != Z_OK || length != part->text_bytes) {
        log_error("timeline: a rank's part came damaged");
        status = STATUS_PROTOCOL;
    } else if (fwrite(text, 1, length, timeline->file) != length) {
        status = file_error(timeline, "cannot be written");
    }
    free(text);
    return status;
}

/* -------- collecting -------------------------------------------------------------------------- */

/* This rank's lines, deflated; caller frees *bytes. */
static enum status make_part(const struct timeline *timeline, const struct timeline_rank *rank,
                             struct part *part, unsigned char **bytes)
{
    enum status status = STATUS_OK;
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    *bytes = NULL;
    if (memory)
        TRY(timeline_write_events(rank, memory));
    bool whole = memory && fclose(memory) == 0;
    memory = NULL;
    uLongf length = whole ? compressBound(size) : 0;
    *bytes = whole ? malloc(length + PIECE_BYTES) : NULL;
    if (!*bytes || compress2(*bytes, &length, (unsigned char *)text, size, 1) != Z_OK) {
        log_error("timeline: no memory for its text");
        status = STATUS_NO_MEMORY;
        goto out;
    }
    *part = (struct part){.text_bytes = size,
                          .bytes = length,
                          .dropped = trace_dropped(timeline->trace),
                          .unrecorded = atomic_load(&timeline->trace->unrecorded)};
out:
    if (memory)
        fclose(memory);
    free(text);
    return status;
}

/* Collective: every rank's bytes to rank 0, piece by piece. all_bytes: (size), caller frees each;
 * on rank 0 alone. */
static enum status collect(const struct timeline *timeline, const struct part *parts,
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
    if (!whole || !pieces) {
        log_error("timeline: no memory for what %zu ranks have recorded", size);
        status = STATUS_NO_MEMORY;
        goto out;
    }
    for (size_t at = 0; at < longest; at += PIECE_BYTES) {
        TRY(world_gather(timeline->world, NULL, own + (at < own_bytes ? at : 0), PIECE_BYTES,
                         pieces));
        for (size_t rank = 0; rank < size && timeline->world->rank == 0; rank++) {
            if (at < parts[rank].bytes)
                memcpy(all_bytes[rank] + at, pieces + rank * PIECE_BYTES, PIECE_BYTES);
        }
    }
out:
    free(pieces);
    return status;
}

static enum status write_file(struct timeline *timeline, const struct bottleneck_facts *facts,
                              const struct part *parts, unsigned char *const *all_bytes)
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
    int failed = fclose(file);
    timeline->file = NULL;
    if (failed)
        return file_error(timeline, "cannot be written");
    if (dropped > 0)
        log_warn("--timeline %s: there was no room for %llu events, the last ones of their "
                 "threads; record fewer steps (--timeline-steps)",
                 timeline->options.file, (unsigned long long)dropped);
    if (unrecorded > 0)
        log_warn("--timeline %s: %llu events are of more than %d threads of a rank, and not in it",
                 timeline->options.file, (unsigned long long)unrecorded, TRACE_THREADS);
out:
    return status;
}

/* -------- a timeline's life ------------------------------------------------------------------- */

enum status timeline_open(struct timeline **out, struct world *world,
                          const struct timeline_options *options)
{
    enum status status = STATUS_OK;
    struct timeline *timeline = calloc(1, sizeof *timeline);
    *out = timeline;
    if (!timeline) {
        log_error("timeline: out of memory");
        return STATUS_NO_MEMORY;
    }
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

enum status timeline_write(struct timeline *timeline, const struct bottleneck_facts *facts)
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
    struct part part, *parts = calloc(size, sizeof *parts);
    if (!all_bytes || !parts) {
        log_error("timeline: no memory for %zu ranks", size);
        status = STATUS_NO_MEMORY;
        goto out;
    }
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

void timeline_close(struct timeline **out)
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
