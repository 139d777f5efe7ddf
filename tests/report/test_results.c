/* Rows of bench.csv and train.csv in the summary: configurations, one link rate, the claims of the
 * answer, and a run with wrong sums. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "experiments/report/report.h"
#include "tests/lib/capture.h"

/* -------- files ------------------------------------------------------------------------------- */

static char dir[64];

static void make_folder(void)
{
    folder_new(dir);
}

static void remove_folder(void)
{
    folder_free(dir);
}

TestSuite(results, .init = make_folder, .fini = remove_folder);

/* The required columns in another order, plus one more: columns are found by name. */
static const char bench_header[] =
    "network,backend,transport,device,workers,servers,placement,bytes,further,iters,"
    "time_us_median,time_us_median_low,time_us_median_high,theory_time_us,efficiency,"
    "link_bytes_per_s,link_source,worker_sent_bytes,theory_worker_sent_bytes,server_sent_bytes,"
    "theory_server_sent_bytes,wrong,cpu_busy,cpu_other,mpi_algorithm,hosts,inter_host_hops,"
    "compress,interface,model_gradients,cpu_s_per_gb,skew_ms,radix,error_feedback";

struct made {
    const char *backend, *transport, *placement, *algorithm, *compress, *network, *interface,
        *device, *feedback;
    int workers, servers, iters, hosts, apart;
    double bytes, us, half, theory_us, rate, wrong, busy, other, skew;
    int radix; /* 0: none in the file */
};

enum { MODEL = 4799528 };

/* Defaults of most rows: 7 iterations, an interval of 1% on each side. */
#define ROW(...)                                                                                   \
    &(struct made)                                                                                 \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static void fill(struct made *row)
{
    row->backend = row->backend ? row->backend : "ring";
    row->transport = row->transport ? row->transport : "tcp";
    row->placement = row->placement ? row->placement : "none";
    row->algorithm = row->algorithm ? row->algorithm : "";
    row->compress = row->compress ? row->compress : "none";
    row->network = row->network ? row->network : "vcluster:800mbit";
    row->interface = row->interface ? row->interface : "comm";
    row->device = row->device ? row->device : "cpu";
    row->workers = row->workers > 0 ? row->workers : 4;
    row->iters = row->iters > 0 ? row->iters : 7;
    row->bytes = row->bytes > 0 ? row->bytes : MODEL;
    row->half = row->half > 0 ? row->half : 0.01;
    row->theory_us = row->theory_us > 0 ? row->theory_us : 72000;
    row->rate = row->rate > 0 ? row->rate : 1e8;
    row->busy = row->busy > 0 ? row->busy : 0.5;
}

static void add_text(const char *name, const char *format, ...)
{
    char path[128];
    va_list arguments;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, "a");
    cr_assert(file);
    va_start(arguments, format);
    vfprintf(file, format, arguments);
    va_end(arguments);
    cr_assert(fclose(file) == 0);
}

static void add(struct made *row)
{
    char path[128], hosts[16] = "", apart[16] = "", radix[16] = "";
    fill(row);
    snprintf(path, sizeof path, "%s/bench.csv", dir);
    if (access(path, F_OK) != 0)
        add_text("bench.csv", "%s\n", bench_header);
    if (row->hosts > 0) {
        snprintf(hosts, sizeof hosts, "%d", row->hosts);
        snprintf(apart, sizeof apart, "%d", row->apart);
    }
    if (row->radix > 0)
        snprintf(radix, sizeof radix, "%d", row->radix);
    add_text("bench.csv",
             "%s,%s,%s,%s,%d,%d,%s,%.0f,x,%d,%.1f,%.1f,%.1f,%.1f,%.3f,%.0f,probe,%.0f,%.0f,%.0f,"
             "%.0f,%.0f,%.3f,%.3f,%s,%s,%s,%s,%s,,%g,%g,%s,%s\n",
             row->network, row->backend, row->transport, row->device, row->workers, row->servers,
             row->placement, row->bytes, row->iters, row->us, row->us * (1 - row->half),
             row->us * (1 + row->half), row->theory_us, 0.75, row->rate, row->bytes, row->bytes,
             row->servers > 0 ? row->bytes : 0, row->servers > 0 ? row->bytes : 0, row->wrong,
             row->busy, row->other, row->algorithm, hosts, apart, row->compress, row->interface,
             1.25, row->skew, radix, row->feedback ? row->feedback : "on");
}

/* Two starts that differ by 0.2%. */
static void add_twice(struct made *row)
{
    add(row);
    row->us *= 1.002;
    add(row);
}

static void add_ring_and_server(double bytes, double ring_us, double server_us)
{
    add_twice(ROW(.bytes = bytes, .us = ring_us));
    add_twice(ROW(.bytes = bytes, .us = server_us, .backend = "ps", .transport = "zmq",
                  .placement = "dedicated", .servers = 1, .theory_us = 192000));
}

static struct run run;

/* The whole summary of the folder. */
static const char *summary(void)
{
    static char text[32768];
    cr_assert(run_read(&run, dir) == STATUS_OK);
    FILE *out = fmemopen(text, sizeof text, "w");
    summary_print(&run, out);
    fclose(out);
    run_free(&run);
    return text;
}

#define says(text, words) cr_expect(strstr(text, words), "no '%s' in:\n%s", words, text)
#define is_silent(text, words) cr_expect(!strstr(text, words), "'%s' in:\n%s", words, text)

static const struct point *find(const struct results *results, enum part part, const char *who,
                                const char *variant, int workers)
{
    const struct point *point = results_find(results, part, who, variant, workers, MODEL);
    cr_assert(point, "no %s, %s, %d workers", who, variant, workers);
    return point;
}

static void read_results(struct results *results)
{
    char path[128];
    snprintf(path, sizeof path, "%s/bench.csv", dir);
    cr_assert(results_read(results, path) == STATUS_OK);
}

/* -------- what is one configuration ----------------------------------------------------------- */

Test(results, rows_alike_are_starts_of_one_configuration)
{
    struct results results;
    add(ROW(.us = 80000));
    add(ROW(.us = 98000, .workers = 2, .backend = "ps", .placement = "dedicated", .servers = 2));
    add(ROW(.us = 82000));
    add(ROW(.us = 60000, .transport = "zmq"));
    add(ROW(.us = 40000, .transport = "zmq", .compress = "fp16"));
    add(ROW(.us = 70000, .backend = "rhd", .radix = 2));
    add(ROW(.us = 50000, .backend = "rhd", .radix = 4));
    add(ROW(.us = 171000, .workers = 8, .hosts = 4, .apart = 8));
    add(ROW(.us = 90000, .workers = 5, .hosts = 2, .apart = 4));
    add(ROW(.us = 7, .interface = "library"));
    add(ROW(.us = 7, .network = "time-slicing"));
    add(ROW(.us = 7, .network = "another"));
    read_results(&results);
    const struct point *ring = find(&results, PART_PLAIN, "ring", "", 4);
    cr_expect(ring->time.starts == 2 && ring->time.median_us == 81000);
    cr_expect(ring->time.low_us <= 79200 && ring->time.high_us >= 82820);
    cr_expect(find(&results, PART_PLAIN, "ps dedicated 2", "", 2)->machines == 4);
    cr_expect(find(&results, PART_VARIANT, "ring", "over zmq", 4)->time.median_us == 60000);
    cr_expect(find(&results, PART_VARIANT, "ring", "over zmq, fp16", 4)->time.starts == 1);
    cr_expect(find(&results, PART_PLAIN, "rhd", "", 4)->time.median_us == 70000);
    cr_expect(find(&results, PART_PLAIN, "rhd radix 4", "", 4)->time.median_us == 50000);
    find(&results, PART_SLOTS, "ring, 8 on 4 hosts, worst order", "", 8);
    find(&results, PART_SLOTS, "ring, 5 on 2 hosts, 4 neighbours apart", "", 5);
    cr_expect(results.worker_count == 2 && results.size_count == 1);
    cr_expect_str_eq(results.network, "vcluster:800mbit");
    results_free(&results);
}

/* By message and workers, of all ways with a theory. Theory may name another way; it is as good
 * within 3%. */
Test(results, the_fastest_way_and_what_theory_names)
{
    add_ring_and_server(65536, 900, 700);
    add_ring_and_server(MODEL, 81000, 190000);
    add_twice(ROW(.us = 79000, .backend = "rhd", .theory_us = 73000));
    const char *text = summary();
    says(text, "The fastest way, by message and workers W");
    says(text, "   65.5 kB   W=4: 1 server (theory: ring, 29% slower)\n");
    says(text, "    4.8 MB   W=4: rhd\n");
    says(text, "or one at most 3% slower, in 1 of 2 cells");
}

/* All parts have the verdict of answer_compare. W servers have the least median, but no difference
 * from the ring; then one start of the ring is not steady. */
Test(results, the_parts_of_the_summary_agree)
{
    struct made *servers = ROW(.us = 79800, .backend = "ps", .transport = "zmq",
                               .placement = "dedicated", .servers = 4);
    add_ring_and_server(MODEL, 80000, 240000);
    add_twice(servers);
    const char *text = summary();
    says(text, "  Would change: W servers: no difference.\n");
    says(text, "  - W servers: no difference from the ring was measured");
    says(text, "    4.8 MB   W=4: W servers, ring\n");
    add(ROW(.us = 80100, .rate = 5e7));
    text = summary();
    says(text, "  Would change: W servers: (1.00) times the winner's time.\n");
    says(text, "  - W servers: 1.00 times the ring's time, without a verdict (not steady)");
    says(text, "    4.8 MB   W=4: (W servers)\n");
    is_silent(text, "slower than the ring");
}

/* Their times belong to another experiment, but their sums must be right. */
Test(results, rows_whose_ranks_started_apart_are_not_shown)
{
    struct results results;
    add(ROW(.us = 7, .skew = 5));
    add(ROW(.us = 80000));
    add(ROW(.us = 7, .skew = 5, .wrong = 3));
    read_results(&results);
    const struct point *ring = find(&results, PART_PLAIN, "ring", "", 4);
    cr_expect(ring->time.starts == 1 && ring->time.median_us == 80000);
    cr_expect(results.elements == MODEL / 4 * 7 && results.other_ways == 2);
    cr_expect(results.wrong == 3 && results.worst == STATE_WRONG);
    results_free(&results);
    add(ROW(.us = 7, .network = "hosts:other"));
    says(summary(), "Not shown: 2 measurements of psring bench --skew or --back-to-back");
    says(summary(), "Not shown: 1 measurement of another network;");
}

Test(results, compressed_rows_of_gpus_are_no_starts_of_plain_ones)
{
    struct results results;
    add(ROW(.us = 80000, .device = "cuda"));
    add(ROW(.us = 40000, .device = "cuda", .compress = "fp16"));
    read_results(&results);
    cr_expect(find(&results, PART_GPU, "ring", "", 4)->time.starts == 1);
    cr_expect(find(&results, PART_GPU, "ring", "fp16", 4)->time.median_us == 40000);
    results_free(&results);
    says(summary(), "Not shown: 1 configuration over a further transport or compressed.");
}

/* One probe was disturbed: all rows are compared with the median of the probes. */
Test(results, one_rate_for_all_rows)
{
    struct results results;
    add(ROW(.us = 80000));
    add(ROW(.us = 82000, .backend = "rhd"));
    add(ROW(.us = 240000, .backend = "ps", .placement = "dedicated", .servers = 1, .rate = 5e7,
            .theory_us = 384000));
    read_results(&results);
    const struct point *server = find(&results, PART_PLAIN, "ps dedicated 1", "", 4);
    cr_expect(results.rate == 1e8);
    cr_expect_float_eq(server->theory_us, 192000, 1);
    cr_expect_float_eq(server->efficiency, 0.375, 1e-9);
    cr_expect_str_eq(server->unsteady, "its probe found 400.0 Mbit/s");
    results_free(&results);
    says(summary(), "Not steady: 1 server, 4 workers, 4.8 MB: its probe found 400.0 Mbit/s");
}

Test(results, links_that_differ_have_a_rate_for_as_many_machines)
{
    struct results results;
    const char *const lan = "hosts:lan";
    add(ROW(.us = 80000, .network = lan, .workers = 2));
    add(ROW(.us = 80000, .network = lan, .rate = 5e7));
    add(ROW(.us = 80000, .network = lan, .backend = "ps", .placement = "dedicated", .workers = 2,
            .servers = 2, .rate = 6e7));
    read_results(&results);
    cr_expect(isnan(results.rate) && results.last_rate == 5.5e7);
    cr_expect_float_eq(find(&results, PART_PLAIN, "ring", "", 2)->efficiency, 0.75, 1e-9);
    cr_expect_float_eq(find(&results, PART_PLAIN, "ring", "", 4)->efficiency, 0.75 / 1.1, 1e-9);
    cr_expect_float_eq(find(&results, PART_PLAIN, "ps dedicated 2", "", 2)->efficiency,
                       0.75 * 6 / 5.5, 1e-9);
    results_free(&results);
}

Test(results, series_are_those_of_the_figures)
{
    static const struct {
        const char *backend, *placement;
        int servers, radix, workers, series[SERIES_MOST];
    } cases[] = {{"ps", "dedicated", 1, 0, 4, {1}},    {"ps", "dedicated", 2, 0, 4, {3, 2}},
                 {"ps", "dedicated", 1, 0, 1, {1, 4}}, {"ps", "colocated", 4, 0, 4, {8}},
                 {"ps", "colocated", 1, 0, 2, {5, 7}}, {"ps", "mixed", 2, 0, 5, {9}},
                 {"ps", "mixed", 1, 0, 4, {0}},        {"ring", "none", 0, 0, 4, {10}},
                 {"rhd", "none", 0, 2, 4, {11}},       {"tree", "none", 0, 0, 4, {13}},
                 {"rhd", "none", 0, 4, 4, {15}},       {"rhd", "none", 0, 4, 8, {0}},
                 {"rhd", "none", 0, 2, 5, {11, 15}},   {"rhd", "none", 0, 0, 4, {11}},
                 {"ps", "switch", 1, 0, 4, {14}},      {"ps", "switch", 2, 0, 4, {0}},
                 {"mpi", "none", 0, 0, 4, {12}},       {"nccl", "none", 0, 0, 4, {0}}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        int series[SERIES_MOST];
        results_series(series, cases[c].backend, cases[c].placement, cases[c].servers,
                       cases[c].radix, cases[c].workers);
        cr_expect(memcmp(series, cases[c].series, sizeof series) == 0, "case %zu: %d %d", c,
                  series[0], series[1]);
    }
}

/* One name in summary, page and figures. The last columns have no series, or several workers a
 * host.
 */
Test(results, a_configuration_has_one_name)
{
    static const struct {
        const char *who;
        int workers;
        const char *name;
    } cases[] = {{"ring", 4, "ring"},
                 {"ps dedicated 1", 4, "1 server"},
                 {"ps dedicated 4", 4, "W servers"},
                 {"ps dedicated 3", 8, "3 servers"},
                 {"ps colocated 1", 4, "1 in a worker"},
                 {"ps colocated 4", 4, "W in workers"},
                 {"ps colocated 3", 8, "3 in workers"},
                 {"ps mixed 2", 4, "W in workers + W/2"},
                 {"ps mixed 3", 4, "W in workers + 3"},
                 {"ps switch 1", 4, "1 in the switch"},
                 {"rhd", 8, "rhd"},
                 {"rhd radix 8", 8, "rhd radix W"},
                 {"rhd radix 4", 8, "rhd radix 4"},
                 {"tree", 4, "tree"},
                 {"mpi segmented", 4, "MPI_Allreduce (segmented)"},
                 {"nccl tree", 4, "nccl tree"},
                 {"hierarchical, 8 on 4 hosts", 8, "hierarchical, 8 on 4 hosts"},
                 {"ring, 8 on 4 hosts, worst order", 8, "ring, 8 on 4 hosts, worst order"}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        char name[64];
        results_name(name, sizeof name, cases[c].who, cases[c].workers);
        cr_expect_str_eq(name, cases[c].name);
    }
    for (int series = 1; series <= SERIES_LAST; series++)
        for (int other = 1; other <= series; other++)
            cr_expect((strcmp(results_series_name(series), results_series_name(other)) == 0) ==
                      (series == other));
}

/* -------- the answer -------------------------------------------------------------------------- */

/* The ring with the most workers failed. */
Test(results, the_answer_has_the_most_workers_of_the_ring)
{
    add_ring_and_server(MODEL, 80000, 240000);
    add_twice(ROW(.us = 90000, .backend = "tree", .workers = 8));
    const char *text = summary();
    says(text, "4 workers, a message of 4.8 MB, this network. The ring took 80");
    says(text, "  - 1 server: slower than the ring");
}

Test(results, the_answer_names_differences_and_their_intervals)
{
    add_ring_and_server(MODEL, 80000, 240000);
    add_twice(ROW(.us = 52000, .backend = "ps", .transport = "zmq", .placement = "dedicated",
                  .servers = 4, .theory_us = 48000));
    add_twice(ROW(.us = 80400, .backend = "ps", .transport = "zmq", .placement = "colocated",
                  .servers = 4));
    add_twice(ROW(.us = 130000, .backend = "mpi", .transport = "none", .algorithm = "default"));
    add_twice(ROW(.us = 99000, .backend = "mpi", .transport = "none", .algorithm = "segmented"));
    const char *text = summary();
    says(text, "The ring took 80.1 ms (95% interval 79.2 ms-81.0 ms, 2 starts), 74.9% of the best");
    says(text, "  Winner:       ring, 80.1 ms (4 workers, 4.8 MB, no further machine). No "
               "difference from it: W in workers.\n");
    says(text, "  By how much:  1 server: 3.00 (2.93 to 3.07) times "
               "the winner's time.\n  By theory:    2.67 times. The winner reaches 74.9%");
    says(text, "  Confidence:   95%, over 2 starts");
    says(text, "  Would change: W servers: 0.65 (0.64 to 0.66) times the winner's time.");
    says(text,
         "  - 1 server: slower than the ring, 3.00 (2.93 to 3.07) times its time; theory: 2.67.");
    says(text, "  - W servers: faster than the ring, 0.65 (0.64 to 0.66) times its time");
    says(text, "  - W in workers: no difference from the ring was measured; theory: 1.00.");
    says(text, "  - MPI_Allreduce (segmented): slower than the ring, 1.24");
    says(text, "every count equals theory");
    says(text, "Checked: all 100,790,088 elements");
    is_silent(text, "WRONG");
    is_silent(text, "INCOMPLETE");
    is_silent(text, "CPU-limited");
}

/* The winner is compared with each other column, the ring among them. A column of one start is
 * named, but decides nothing. */
Test(results, the_first_lines_compare_with_the_winner)
{
    add_ring_and_server(MODEL, 100000, 240000);
    add_twice(ROW(.us = 75000, .backend = "rhd"));
    add_twice(ROW(.us = 100400, .backend = "ps", .transport = "zmq", .placement = "colocated",
                  .servers = 4));
    const char *text = summary();
    says(text, "  Winner:       rhd, 75.1 ms (4 workers, 4.8 MB, no further machine).\n");
    says(text, "  By how much:  1 server: 3.20 (");
}

/* The tree has a column, a claim, and a place among what needs only the workers' machines. */
Test(results, the_tree_is_compared_like_halving_doubling)
{
    add_ring_and_server(MODEL, 100000, 240000);
    add_twice(ROW(.us = 133000, .backend = "tree", .theory_us = 96000));
    add_twice(ROW(.us = 61000, .bytes = 65536));
    add_twice(ROW(.us = 50000, .bytes = 65536, .backend = "tree"));
    const char *text = summary();
    says(text, "  - tree: slower than the ring, 1.33 (1.30 to 1.36) times its time; "
               "theory: 1.33.");
    says(text, "   W  message   1 server      ring      tree    1 server / ring");
    says(text, "   4   4.8 MB     240 ms    100 ms    133 ms ");
    says(text, "   65.5 kB          -   61.1 ms   50.0 ms ");
    is_silent(text, "  rhd"); /* no row has it */
}

Test(results, the_tree_can_win)
{
    add_ring_and_server(MODEL, 100000, 240000);
    add_twice(ROW(.us = 75000, .backend = "tree"));
    says(summary(), "  Winner:       tree, 75.1 ms (4 workers, 4.8 MB, no further machine).\n");
}

Test(results, a_column_of_one_start_does_not_win)
{
    add_ring_and_server(MODEL, 100000, 240000);
    add(ROW(.us = 75000, .backend = "rhd"));
    says(summary(), "  Winner:       ring, 100 ms (4 workers, 4.8 MB, no further machine). Without "
                    "a verdict: rhd.\n");
}

Test(results, the_first_lines_name_a_faster_mpi_and_busy_processors)
{
    add_ring_and_server(MODEL, 100000, 240000);
    add_twice(ROW(.us = 80000, .backend = "mpi", .transport = "none", .algorithm = "ring"));
    add_twice(ROW(.us = 52000, .backend = "ps", .transport = "zmq", .placement = "dedicated",
                  .servers = 4, .theory_us = 48000, .busy = 0.99));
    const char *text = summary();
    says(text, "  Winner:       ring, 100 ms (4 workers, 4.8 MB, no further machine). Faster than "
               "the winner: MPI_Allreduce (ring), 0.80 (0.78 to 0.82) times the winner's time.");
    says(text, "  Would change: W servers: 0.52 (0.51 to 0.53) times the winner's time; "
               "CPU-limited*.\n");
}

/* Rounding with and without error feedback are two configurations. */
Test(results, error_feedback_is_a_variant)
{
    add_ring_and_server(MODEL, 100000, 240000);
    add_twice(ROW(.us = 52000, .compress = "fp16"));
    add_twice(ROW(.us = 57000, .compress = "fp16", .feedback = "off"));
    const char *text = summary();
    says(text, "52.1 ms");
    says(text, "57.1 ms");
    says(text, "fp16, no feedback");
}

/* The iterations of one start agree to 1%, but it is still one start. */
Test(results, one_start_draws_no_verdict)
{
    add(ROW(.us = 80000));
    add(ROW(.us = 240000, .backend = "ps", .placement = "dedicated", .servers = 1));
    const char *text = summary();
    says(text, "  - 1 server: 3.00 times the ring's time, without a verdict (only one start)");
    says(text, "  Winner:       no verdict. ring, 80.0 ms");
    says(text, "  Confidence:   none: only one start.");
    is_silent(text, "slower than the ring");
}

/* Rows of earlier versions: intervals of five iterations or fewer. */
Test(results, fewer_than_six_iterations_have_no_interval)
{
    add_twice(ROW(.us = 80000, .iters = 5));
    add_twice(
        ROW(.us = 240000, .iters = 5, .backend = "ps", .placement = "dedicated", .servers = 1));
    const char *text = summary();
    says(text, "The ring took 80.1 ms (2 starts, without an interval)");
    says(text,
         "  - 1 server: 3.00 times the ring's time, without a verdict (fewer than six iterations)");
    is_silent(text, "slower than the ring");
}

/* At the smallest size there is no difference, and above it the server is faster twice. */
Test(results, sizes_that_were_compared_are_named)
{
    add_ring_and_server(4, 100, 100);
    add_ring_and_server(4096, 200, 88);
    add_ring_and_server(16384, 400, 200);
    add_ring_and_server(65536, 1000, 3000);
    add_twice(ROW(.bytes = 262144, .us = 4000));
    const char *text = summary();
    says(text,
         "1 server compared with the ring, by size, 4 workers: faster at 4.1 kB (0.44 times), "
         "16.4 kB (0.50 times); no difference at 4 B; slower at 65.5 kB (3.00 times). No "
         "other size was compared.");
    says(text, "1 server is faster than the ring at 4.1 kB (0.44 times), 16.4 kB (0.50 times).");
    is_silent(text, "nowhere");
}

/* On N machines the ring has N workers, so a dedicated server never fits. It is judged with the
 * largest number of workers with which it was measured. */
Test(results, servers_are_judged_with_workers_that_they_were_measured_with)
{
    add_twice(ROW(.us = 85000, .workers = 5));
    add_ring_and_server(MODEL, 80000, 240000);
    add_ring_and_server(4096, 200, 88);
    for (int bytes = 4096; bytes <= 65536; bytes *= 4) { /* more sizes, but one start */
        add(ROW(.us = 80, .workers = 2, .bytes = bytes));
        add(ROW(.us = 90, .workers = 2, .bytes = bytes, .backend = "ps", .placement = "dedicated",
                .servers = 1, .transport = "zmq"));
    }
    const char *text = summary();
    says(text, "  - 1 server: slower than the ring, 3.00 (2.93 to 3.07) times its time; theory: "
               "2.67; with "
               "4 workers.");
    says(text, "by size, 4 workers: faster at 4.1 kB (0.44 times); slower at 4.8 MB");
}

Test(results, nothing_is_said_of_sizes_without_the_ring)
{
    add_twice(ROW(.us = 80000));
    add_twice(
        ROW(.bytes = 4096, .us = 88, .backend = "ps", .placement = "dedicated", .servers = 1));
    is_silent(summary(), "compared with the ring, by size");
}

Test(results, limits_and_disturbances_are_marked)
{
    add_ring_and_server(MODEL, 80000, 240000);
    add_twice(ROW(.us = 82000, .backend = "rhd", .busy = 0.9));
    add_twice(ROW(.us = 52000, .backend = "ps", .transport = "zmq", .placement = "dedicated",
                  .servers = 4, .busy = 0.95, .other = 0.2));
    const char *text = summary();
    says(text, "82.1 ms*");
    says(text, "52.1 ms+");
    says(text, "  - rhd: slower than the ring");
    says(text, "; CPU-limited*.");
    says(text, "; the machine was busy with other work+.");
}

/* -------- WRONG ------------------------------------------------------------------------------- */

Test(results, a_run_with_wrong_sums_shows_no_time)
{
    add_ring_and_server(MODEL, 80000, 240000);
    add_twice(ROW(.us = 25000, .backend = "rhd", .wrong = 3));
    const char *text = summary(), *second = strchr(text, '\n') + 1;
    cr_expect(strncmp(second, "WRONG: 6 elements differ from the exact sum.", 44) == 0, "%s", text);
    says(text, "Do not use this run. Its times are not shown.");
    says(text, "  - rhd, 4 workers, 4.8 MB: 6 wrong elements");
    is_silent(text, " ms");
    is_silent(text, "faster");
    is_silent(text, "Checked");
    says(text, "bytes sent by one node");
}

/* Its times appear in no table, but its sums count. */
Test(results, wrong_sums_through_the_library_count)
{
    add_ring_and_server(MODEL, 80000, 240000);
    add(ROW(.us = 25000, .interface = "library", .wrong = 1));
    says(summary(), "WRONG: 1 element differs");
}

Test(results, columns_of_earlier_versions_have_their_present_names)
{
    struct csv_table table;
    char path[128];
    add_text("old.csv", "neighbours_apart,api,limit,wrong,socket_round_trip_us,loaders\n"
                        "3,library,rank,0,17,2\n");
    snprintf(path, sizeof path, "%s/old.csv", dir);
    cr_assert(results_read_table(&table, path) == STATUS_OK);
    cr_expect_str_eq(csv_table_field(&table, 0, "inter_host_hops"), "3");
    cr_expect_str_eq(csv_table_field(&table, 0, "interface"), "library");
    cr_expect_str_eq(csv_table_field(&table, 0, "bottleneck"), "rank");
    cr_expect_str_eq(csv_table_field(&table, 0, "wrong"), "0");
    cr_expect_str_eq(csv_table_field(&table, 0, "tcp_rtt_us"), "17");
    cr_expect_str_eq(csv_table_field(&table, 0, "data_threads"), "2");
    csv_table_free(&table);
}

/* -------- trainings --------------------------------------------------------------------------- */

static const char *settings = "eeee"; /* the sum of the next training */
static int seed = 1;                  /* of the next training */

static void add_training_of(const char *model, const char *backend, const char *compute,
                            long images, const char *weights, const char *order)
{
    char path[128];
    bool server = strcmp(backend, "ps") == 0;
    snprintf(path, sizeof path, "%s/train.csv", dir);
    if (access(path, F_OK) != 0)
        add_text("train.csv",
                 "backend,network,device,compute,workers,servers,placement,model,dataset,step,"
                 "images,seconds,images_per_s,test_loss,test_accuracy,weights_sha256,batch,seed,"
                 "reduce_order,bottleneck,bottleneck_rank,settings_sha256\n");
    add_text("train.csv",
             "%s,vcluster:800mbit,cpu,%s,4,%d,%s,%s,mnist,%ld,%ld,90,284,0.05,0.9853,%s,64,"
             "%d,%s,rank,2,%s\n",
             backend, compute, server, server ? "dedicated" : "none", model, images / 256, images,
             weights, seed, order, settings);
}

static void add_training(const char *backend, const char *compute, long images, const char *weights,
                         const char *order)
{
    add_training_of("keras-cnn", backend, compute, images, weights, order);
}

Test(results, trainings_of_other_images_are_not_compared)
{
    add_training("ps", "real", 240000, "aaaa", "any");
    add_training("ring", "real", 720000, "bbbb", "any");
    const char *text = summary();
    says(text, "These trainings are not compared: they differ in images ('240000' and '720000').");
    is_silent(text, "the same gradients");
    is_silent(text, "WRONG");
}

Test(results, trainings_alike_agree_by_bits_or_rounding)
{
    add_training("ps", "real", 25600, "aaaa", "any");
    add_training("ps", "real", 51200, "cccc", "any"); /* the last row of a training counts */
    add_training("ring", "real", 51200, "cccc", "any");
    says(summary(), "the same weights, bit for bit (SHA-256 cccc)");
    add_training("ring", "real", 51200, "dddd", "any");
    says(summary(), "Their weights differ, as sums in different orders do. This run cannot show");
}

Test(results, the_same_order_must_give_the_same_weights)
{
    add_training("ps", "real", 51200, "aaaa", "ring");
    add_training("ring", "real", 51200, "bbbb", "ring");
    says(summary(), "WRONG: two trainings that must end with the same weights, bit for bit, do "
                    "not.");
}

/* Some settings have no column. A file of an earlier version has no sum of them. */
Test(results, other_settings_may_give_other_weights)
{
    const char *differ =
        "These trainings are not compared: not all of their settings are known to be equal.";
    settings = "";
    add_training("ps", "real", 51200, "aaaa", "ring");
    add_training("ring", "real", 51200, "bbbb", "ring");
    says(summary(), differ);
    settings = "ffff";
    add_training("ring", "real", 51200, "bbbb", "ring");
    says(summary(), differ);
    is_silent(summary(), "WRONG");
    add_training("ring", "real", 51200, "aaaa", "ring");
    says(summary(), "the same weights, bit for bit (SHA-256 aaaa)");
}

Test(results, every_pair_of_equal_settings_is_compared)
{
    add_training_of("lenet", "ps", "real", 51200, "aaaa", "ring");
    add_training("ps", "real", 51200, "bbbb", "ring");
    add_training("ring", "real", 51200, "bbbb", "ring");
    const char *text = summary();
    says(text, "Those with equal settings and known weights ended with the same weights");
    says(text, "1 server, lenet 4 workers: 98.53%");
    says(text, "1 server, keras-cnn 4 workers: 98.53%");
    add_training_of("lenet", "ring", "real", 51200, "cccc", "ring");
    text = summary();
    says(text, "WRONG: two trainings that must end with the same weights, bit for bit, do not.\n"
               "  4 workers, 1 server, lenet and ring, lenet");
}

Test(results, trainings_of_other_seeds_are_others)
{
    add_training("ring", "real", 51200, "aaaa", "ring");
    seed = 2;
    add_training("ring", "real", 51200, "bbbb", "ring");
    const char *text = summary();
    says(text, "ring, seed 1    4 workers: 98.53%");
    says(text, "ring, seed 2    4 workers: 98.53%");
    is_silent(text, "WRONG");
}

Test(results, paced_trainings_of_one_setting_are_shown)
{
    add_training_of("lenet", "ring", "paced:50", 2304, "", "");
    add_training("ring", "paced:50", 2304, "", "");
    add_training("ps", "paced:20", 2304, "", "");
    const char *text = summary();
    says(text, "Training lenet with 50 ms of computation a step");
    says(text, "Not shown: 2 trainings of another model, computation");
}

Test(results, paced_trainings_have_a_table_and_their_limit)
{
    add_training("ring", "paced:50", 2304, "", "");
    const char *text = summary();
    says(text, "Training keras-cnn with 50 ms of computation a step");
    says(text, "5,120");
    says(text, "rank 2");
}

/* -------- what else the run knows ------------------------------------------------------------- */

Test(results, provenance_has_what_failed_and_was_left_out)
{
    add_ring_and_server(MODEL, 80000, 240000);
    add_text(
        "provenance.json",
        "{\"cores\": 2, \"failed_measurements\": 2, \"machine_count\": 4, \"left_out\": "
        "\"ps-dedicated-1 5 6;ps-dedicated-2 5 7\", \"too_long\": \"ring 4 bert-large 243;ring "
        "4 vgg16 6.7GB\"}");
    const char *text = summary();
    says(text, "INCOMPLETE: 2 measurements failed; log.txt has the messages");
    says(text, "2 cores; ps over zmq, ring over tcp");
    says(text, "5 workers: 6 machines for 1 server; 7 for W/2 servers\n");
    says(text, "not measured, it would take too long: bert-large: ring 243 s");
    says(text, "not measured, it needs more memory than there is: vgg16: ring 6.7 GB");
}

Test(results, what_was_disturbed_is_listed_for_the_sweep)
{
    char text[1024];
    add(ROW(.us = 80000));
    add(ROW(.us = 80000));
    add(ROW(.us = 90000, .transport = "zmq", .rate = 7e7));
    add(ROW(.us = 90000, .rate = 7e7));
    add(ROW(.us = 98000, .backend = "ps", .placement = "dedicated", .servers = 1,
            .transport = "mpi", .rate = 2e8));
    add(ROW(.us = 90000, .workers = 2, .half = 0.2));
    for (int start = 0; start < 2; start++) /* several starts */
        add(ROW(.us = 90000, .backend = "ps", .placement = "dedicated", .servers = 2,
                .transport = "mpi", .rate = start ? 7e7 : 1e8));
    cr_assert(run_read(&run, dir) == STATUS_OK);
    FILE *out = fmemopen(text, sizeof text, "w");
    summary_print_unsteady(&run, out);
    fclose(out);
    run_free(&run);
    /* The lines of bench.csv; the first has the names. */
    cr_expect_str_eq(text, "ring 4 5 its probe found 560.0 Mbit/s\n"
                           "ps-dedicated-2 4 9 its probe found 560.0 Mbit/s\n"
                           "ps-dedicated-1 4 6 its probe found 1600.0 Mbit/s\n"
                           "ring 2 7 its iterations scatter\n"
                           "ring+zmq 4 4 its probe found 560.0 Mbit/s\n");
}
