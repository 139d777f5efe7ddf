/* The probe's arithmetic: the steady rate of a stream, and the busy share of the CPUs from
 * /proc/stat. */
#include "experiments/bench/probe.h"

#include <criterion/criterion.h>
#include <math.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/net/cpu_watch.h"

/* -------- the rate ---------------------------------------------------------------------------- */

enum { END_NS = PROBE_SKIP_NS + PROBE_LENGTH_NS };

/* Pieces every `gap_ns` from `from_ns` until `to_ns`. */
static void arrive(struct probe_meter *meter, int64_t from_ns, int64_t to_ns, int64_t gap_ns,
                   uint64_t bytes)
{
    for (int64_t at = from_ns; at < to_ns; at += gap_ns)
        probe_meter_add(meter, at, bytes);
}

static void expect_rate(const struct probe_meter *meter, double expected)
{
    double found = probe_meter_rate(meter);
    cr_expect(fabs(found - expected) <= 1e-9 * expected, "found %.15g, expected %.15g", found,
              expected);
}

Test(probe, rate_of_a_steady_stream)
{
    struct probe_meter meter = probe_meter_for(0);
    arrive(&meter, 1, 2 * END_NS, NS_PER_MS, 25000);
    expect_rate(&meter, 25e6);
    cr_expect_eq(meter.bytes, 2000 * 25000);
}

/* The stream starts ten times as fast, and its last pieces come after the end: neither counts. */
Test(probe, rate_without_start_and_end)
{
    struct probe_meter meter = probe_meter_for(0);
    arrive(&meter, 1, PROBE_SKIP_NS, NS_PER_MS, 250000);
    arrive(&meter, PROBE_SKIP_NS, END_NS, NS_PER_MS, 25000);
    arrive(&meter, END_NS + 1, 2 * END_NS, NS_PER_MS, 1000000);
    expect_rate(&meter, 25e6);
}

/* At a distance the stream starts slowly for longer. */
Test(probe, rate_at_a_distance)
{
    struct probe_meter meter = probe_meter_for(0.1);
    const int64_t start_ns = PROBE_SKIP_NS + PROBE_SKIP_TRIPS * 100 * NS_PER_MS;
    arrive(&meter, 1, start_ns, NS_PER_MS, 5000);
    arrive(&meter, start_ns, start_ns + PROBE_LENGTH_NS, NS_PER_MS, 25000);
    expect_rate(&meter, 25e6);
}

/* The interval is not a whole number of bursts: a rate over all of it would be wrong by up to one
 * seventh. */
Test(probe, rate_of_bursts)
{
    for (int64_t shift = 0; shift < 90; shift += 7) {
        struct probe_meter meter = probe_meter_for(0);
        arrive(&meter, PROBE_SKIP_NS + shift * NS_PER_MS, END_NS, 90 * NS_PER_MS, 900000);
        expect_rate(&meter, 10e6);
    }
}

Test(probe, no_rate_from_too_little)
{
    struct probe_meter meter = probe_meter_for(0);
    cr_expect_eq(probe_meter_rate(&meter), 0);
    probe_meter_add(&meter, PROBE_SKIP_NS - 1, 1000);
    cr_expect_eq(probe_meter_rate(&meter), 0);
    probe_meter_add(&meter, PROBE_SKIP_NS, 1000);
    probe_meter_add(&meter, END_NS + 1, 1000);
    cr_expect_eq(probe_meter_rate(&meter), 0);
    probe_meter_add(&meter, END_NS, 1200);
    cr_expect(probe_meter_rate(&meter) > 0);
}

/* After a pause the waiting data arrives at once: only the whole can have the right rate. */
Test(probe, spread_tells_a_pause)
{
    int64_t part_ns = PROBE_LENGTH_NS / PROBE_PARTS;
    struct probe_meter steady = probe_meter_for(0), paused = steady, silent = steady;
    arrive(&steady, 1, END_NS, NS_PER_MS, 25000);
    cr_expect(probe_meter_spread(&steady) < 1e-9);
    arrive(&paused, 1, PROBE_SKIP_NS + part_ns / 2, NS_PER_MS, 25000);
    probe_meter_add(&paused, PROBE_SKIP_NS + part_ns, 25000 * (uint64_t)(part_ns / NS_PER_MS / 2));
    arrive(&paused, PROBE_SKIP_NS + part_ns, END_NS, NS_PER_MS, 20000);
    cr_expect(probe_meter_spread(&paused) > PROBE_STEADY);
    arrive(&silent, PROBE_SKIP_NS + part_ns, END_NS, NS_PER_MS, 25000);
    cr_expect_eq(probe_meter_spread(&silent), 1);
}

/* -------- the CPUs ---------------------------------------------------------------------------- */

Test(cpu_share, parse)
{
    struct cpu_ticks ticks;
    cr_expect(cpu_ticks_parse("cpu  100 20 30 4000 500 6 7 8 99 9\ncpu0 1 1 1 1\n", &ticks));
    cr_expect_eq(ticks.busy, 100 + 20 + 30 + 6 + 7 + 8); /* user contains guest */
    cr_expect_eq(ticks.processes, 100 + 20 + 30 + 8);
    cr_expect_eq(ticks.total, 171 + 4000 + 500);
    cr_expect(cpu_ticks_parse("cpu 1 2 3 4\n", &ticks)); /* format before Linux 2.5 */
    cr_expect(ticks.busy == 6 && ticks.total == 10);
}

Test(cpu_share, parse_refuses)
{
    static const char *const wrong[] = {"", "cpu", "cpu 1 2 3", "cpu0 1 2 3 4", "intr 1 2 3 4"};
    struct cpu_ticks ticks;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_expect_not(cpu_ticks_parse(wrong[i], &ticks), "'%s'", wrong[i]);
}

Test(cpu_share, share)
{
    struct cpu_watch watch = {0};
    cr_expect_eq(cpu_watch_share(&watch), -1);
    watch.passed = (struct cpu_ticks){CPU_WATCH_LEAST_TICKS - 1, CPU_WATCH_LEAST_TICKS - 1, 0};
    cr_expect_eq(cpu_watch_share(&watch), -1);
    watch.passed = (struct cpu_ticks){30, 40, 0};
    cr_expect_eq(cpu_watch_share(&watch), 0.75);
    watch.passed = (struct cpu_ticks){41, 40, 0}; /* idle time that stepped back */
    cr_expect_eq(cpu_watch_share(&watch), 1);
}

Test(cpu_share, seconds)
{
    struct cpu_watch watch = {.passed = {90, CPU_WATCH_STEADY_TICKS - 1, 60}};
    double total_s, processes_s, a_second = (double)sysconf(_SC_CLK_TCK);
    cr_expect_not(cpu_watch_seconds(&watch, &total_s, &processes_s));
    watch.passed.total = CPU_WATCH_STEADY_TICKS;
    cr_expect(cpu_watch_seconds(&watch, &total_s, &processes_s));
    cr_expect_float_eq(total_s, CPU_WATCH_STEADY_TICKS / a_second, 1e-9);
    cr_expect_float_eq(processes_s, 60 / a_second, 1e-9);
}

/* The kernel's counters only grow. A stop without a start adds nothing. */
Test(cpu_share, watch)
{
    struct cpu_watch watch = {0};
    cpu_watch_stop(&watch);
    cr_expect_eq(watch.passed.total, 0);
    cpu_watch_start(&watch);
    cpu_watch_stop(&watch);
    cr_expect(watch.passed.busy <= watch.passed.total);
    struct cpu_ticks once = watch.passed;
    cpu_watch_stop(&watch);
    cr_expect(watch.passed.busy == once.busy && watch.passed.total == once.total);
}
