#include "experiments/timeline/timeline_link.h"

#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/status.h"

enum { BINS = 10000 };

/* Messages of all threads: bytes by the time in which they were handed over, or came in. */
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

enum status timeline_write_link(const struct timeline_rank *rank, FILE *out)
{
    const struct trace *trace = rank->trace;
    int64_t begin_ns, end_ns;
    find_span(trace, &begin_ns, &end_ns);
    if (begin_ns >= end_ns)
        return STATUS_OK;
    struct traffic traffic = {begin_ns, (end_ns - begin_ns) / BINS + 1, NULL};
    if (traffic.bin_ns < NS_PER_MS)
        traffic.bin_ns = NS_PER_MS;
    traffic.bytes = calloc(BINS + 1, sizeof *traffic.bytes);
    if (!traffic.bytes) {
        log_error("timeline: no memory for counters");
        return STATUS_NO_MEMORY;
    }
    for (size_t t = 0; t < trace_threads(trace); t++)
        add_traffic(&traffic, &trace->threads[t]);
    double seconds = (double)traffic.bin_ns / (double)NS_PER_S;
    for (int64_t bin = 0; bin <= (end_ns - begin_ns) / traffic.bin_ns; bin++) {
        const uint64_t *bytes = traffic.bytes[bin], *last = traffic.bytes[bin > 0 ? bin - 1 : 0];
        if (bin > 0 && bytes[0] == last[0] && bytes[1] == last[1])
            continue;
        timeline_put_head(rank, out, "C", 0, begin_ns + bin * traffic.bin_ns);
        fprintf(out, ",\"name\":\"link\",\"args\":{\"sent MB/s\":%.3f,\"received MB/s\":%.3f}},\n",
                (double)bytes[0] / seconds / 1e6, (double)bytes[1] / seconds / 1e6);
    }
    free(traffic.bytes);
    return STATUS_OK;
}
