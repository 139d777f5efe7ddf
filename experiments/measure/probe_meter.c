#include "experiments/measure/probe_meter.h"

static void span_add(struct probe_span *span, int64_t at_ns, uint64_t bytes)
{
    span->last_ns = at_ns;
    span->last_bytes = bytes;
    if (span->first_ns == 0) {
        span->first_ns = at_ns;
        span->first_bytes = bytes;
    }
}

static double span_rate(const struct probe_span *span)
{
    int64_t length_ns = span->last_ns - span->first_ns;
    if (length_ns <= 0)
        return 0;
    return (double)(span->last_bytes - span->first_bytes) / ((double)length_ns * 1e-9);
}

void probe_meter_add(struct probe_meter *meter, int64_t since_start_ns, uint64_t bytes)
{
    int64_t counted_ns = since_start_ns - PROBE_SKIP_NS;
    meter->bytes += bytes;
    if (counted_ns < 0 || since_start_ns > PROBE_END_NS)
        return;
    span_add(&meter->whole, since_start_ns, meter->bytes);
    int64_t part = counted_ns * PROBE_PARTS / (PROBE_END_NS - PROBE_SKIP_NS + 1);
    span_add(&meter->part[part], since_start_ns, meter->bytes);
}

double probe_meter_rate(const struct probe_meter *meter)
{
    return span_rate(&meter->whole);
}

double probe_meter_spread(const struct probe_meter *meter)
{
    double slowest = span_rate(&meter->part[0]), fastest = slowest;
    for (int i = 1; i < PROBE_PARTS; i++) {
        double rate = span_rate(&meter->part[i]);
        slowest = rate < slowest ? rate : slowest;
        fastest = rate > fastest ? rate : fastest;
    }
    return fastest > 0 ? 1 - slowest / fastest : 1;
}
