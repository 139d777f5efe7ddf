/* A row of bench's results: formulas, columns that other programs read, and unknown values. */
#include "experiments/bench/row.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "experiments/bench/bench.h"
#include "experiments/bench/measure.h"
#include "experiments/bench/connect.h"
#include "tests/lib/capture.h"

/* 4 workers, 24 MB in a second over links of 50 MB/s. */
static struct bench_row example(void)
{
    return (struct bench_row){
        .backend = "ps",
        .transport = "zmq",
        .device = "cpu",
        .network = "vcluster-400mbit",
        .placement = "dedicated",
        .compress = "none",
        .error_feedback = "none",
        .element_bytes = 4,
        .workers = 4,
        .servers = 1,
        .hosts = 4,
        .inter_host_hops = 4,
        .bytes = 24000000,
        .iters = 3,
        .warmup = 2,
        .time_us = {900000, 1000000, 1200000, 1240000, 1250000},
        .time_us_median_low = 900000,
        .time_us_median_high = 1250000,
        .exposed_us_median = 1000000,
        .round_trip_s = 1.5e-3,
        .series_iters = 1,
        .link_bytes_per_s = 50e6,
        .nominal_link_bytes_per_s = 52.5e6,
        .link_source = "probe",
        .cpu_busy = 0.375,
        .cpu_other = 0.125,
        .link_idle_us_median = 250,
        .cpu_s = 0.09,
        .bytes_known = true,
        .worker = {24000000, 24000000},
        .server = {96000000, 96000000},
        .theory_worker = {24000000, 24000000},
        .theory_server = {96000000, 96000000},
        .rank = {96000000, 96000000},
        .theory_rank = {96000000, 96000000},
        .wire_known = true,
        .wire_sent_bytes_max = 99000000,
        .theory_time_us = 1950000,
        .limits = {.add_bytes_per_s = 16e9,
                   .reduce_bytes_per_s = 20e9,
                   .round_trip_us = 45.5,
                   .socket_trip_us = 17.25,
                   .server_us = 500000,
                   .server_workers = 4},
    };
}

static void expect_close(double found, double expected)
{
    cr_expect(fabs(found - expected) <= 1e-12 * fabs(expected), "found %.15g, expected %.15g",
              found, expected);
}

/* The output of `print`, in a buffer that the next call overwrites. */
static const char *printed(void (*print)(FILE *, const struct bench_row *), struct bench_row row)
{
    static char text[4096];
    memset(text, 0, sizeof text);
    FILE *file = fmemopen(text, sizeof text - 1, "w");
    cr_assert(file);
    print(file, &row);
    fclose(file);
    return text;
}

/* -------- formulas ---------------------------------------------------------------------------- */

Test(bench_row, bandwidths)
{
    struct bench_row row = example();
    expect_close(bench_row_algbw(&row), 24e6);
    expect_close(bench_row_busbw(&row), 24e6 * 2 * 3 / 4);
    expect_close(bench_row_efficiency(&row), 24e6 * 1.5 / 50e6);
    row.workers = row.hosts = 2;
    expect_close(bench_row_busbw(&row), 24e6);
    expect_close(bench_row_efficiency(&row), 24e6 / 50e6);
}

/* An all-reduce at the bound has efficiency 1 and the link's rate as busbw, for any W. */
Test(bench_row, bound_is_all_of_the_link)
{
    struct bench_row row = example();
    for (row.workers = 2; row.workers <= 8; row.workers++) {
        row.hosts = row.workers;
        row.time_us.median = 1e6 * cost_bound_s(row.workers, 6000000, 50e6);
        expect_close(bench_row_efficiency(&row), 1);
        expect_close(bench_row_busbw(&row), 50e6);
    }
}

/* One link for each host, shared by its workers. On a single host: one link for each worker. */
Test(bench_row, workers_share_their_hosts_links)
{
    struct bench_row row = example();
    row.workers = 8;
    row.time_us.median = 1e6 * cost_bound_s(4, 6000000, 50e6);
    expect_close(bench_row_efficiency(&row), 1);
    row.hosts = 1;
    expect_close(bench_row_efficiency(&row), 1.75 / 1.5);
}

/* Processor seconds for 1e9 bytes of messages, over all iterations. The bytes are those of float32,
 * even with fp16 on the wire. */
Test(bench_row, processor_seconds_per_gb)
{
    struct bench_row row = example();
    expect_close(bench_row_cpu_s_per_gb(&row), 0.09 / (24e6 * 3 / 1e9));
    row.element_bytes = 2;
    expect_close(bench_row_cpu_s_per_gb(&row), 1.25);
    row.bytes = 4;
    cr_expect(strstr(printed(bench_table_line, row), "   38%  7500000       0\n"));
    row.bytes = 0;
    cr_expect(isnan(bench_row_cpu_s_per_gb(&row)));
}

/* Half the bytes in half the time: equal use of the link, the same message size. */
Test(bench_row, compressed)
{
    struct bench_row row = example(), half = row;
    half.compress = "fp16";
    half.error_feedback = "on";
    half.element_bytes = 2;
    half.time_us.median /= 2;
    expect_close(bench_row_efficiency(&half), bench_row_efficiency(&row));
    expect_close(bench_row_busbw(&half), 2 * bench_row_busbw(&row));
    cr_expect(strstr(printed(bench_table_head, half), ", fp16 on the wire with error feedback,"));
    half.error_feedback = "off";
    cr_expect(strstr(printed(bench_table_head, half), ", fp16 on the wire, transport"));
    cr_expect_null(strstr(printed(bench_table_head, row), "on the wire"));
}

/* The hidden share of the second that the all-reduce takes alone. Noise can give less than 0 or
 * more than 1. */
Test(bench_row, hidden)
{
    struct bench_row row = example();
    cr_expect_eq(bench_row_hidden(&row), 0);
    row.overlap = true;
    row.exposed_us_median = 62500;
    expect_close(bench_row_hidden(&row), 0.9375);
    cr_expect(
        strstr(printed(bench_table_line, row), "    38%     1.25       0      62500.0   93.8%\n"));
    cr_expect(strstr(printed(bench_table_head, row), "   wrong           us        \n"));
    row.cpu_busy = 1;
    cr_expect(strstr(printed(bench_table_line, row), "   93.8%  CPU-limited\n"));
    row.exposed_us_median = 1100000;
    cr_expect_eq(bench_row_hidden(&row), 0);
    row.exposed_us_median = -1;
    cr_expect_eq(bench_row_hidden(&row), 1);
    cr_expect_null(strstr(printed(bench_table_head, example()), "exposed"));
}

Test(bench_row, no_efficiency_without_a_link_or_a_peer)
{
    struct bench_row row = example();
    row.link_bytes_per_s = 0;
    cr_expect(isnan(bench_row_efficiency(&row)));
    row = example();
    row.workers = 1;
    cr_expect(isnan(bench_row_efficiency(&row)));
    cr_expect_eq(bench_row_busbw(&row), 0);
    row = example();
    row.bytes = 0;
    cr_expect(isnan(bench_row_efficiency(&row)));
    cr_expect_eq(bench_row_algbw(&row), 0);
}

Test(bench_row, bytes_agree_to_the_byte)
{
    struct bench_row row = example();
    cr_expect(bench_row_bytes_agree(&row));
    row.server.received_bytes--;
    cr_expect_not(bench_row_bytes_agree(&row));
    row = example();
    row.worker.sent_bytes++;
    cr_expect_not(bench_row_bytes_agree(&row));
    row = example();
    row.rank.sent_bytes -= 4;
    cr_expect_not(bench_row_bytes_agree(&row));
    row.bytes_known = false;
    cr_expect(bench_row_bytes_agree(&row));
}

Test(bench_row, sizes_are_whole_floats)
{
    cr_expect_eq(bench_whole_bytes(0), 0);
    cr_expect_eq(bench_whole_bytes(1), 4);
    cr_expect_eq(bench_whole_bytes(4), 4);
    cr_expect_eq(bench_whole_bytes(1001), 1004);
    cr_expect_eq(bench_next_bytes(1024, 4), 4096);
    cr_expect_eq(bench_next_bytes(4, 1.5), 8);
    cr_expect_eq(bench_next_bytes(1000, 1.01), 1012);
    cr_expect_eq(bench_next_bytes(0, 4), 4); /* or a sweep from 0 would never end */
    cr_expect_eq(bench_next_bytes(4, 1.01), 8);
}

/* -------- files ------------------------------------------------------------------------------- */

static const char contract[] =
    "backend,transport,device,network,workers,servers,placement,bytes,iters,time_us_min,"
    "time_us_median,time_us_p95,time_us_max,algbw_bytes_per_s,busbw_bytes_per_s,link_bytes_per_s,"
    "efficiency,worker_sent_bytes,worker_recv_bytes,server_sent_bytes,server_recv_bytes,"
    "theory_worker_sent_bytes,theory_server_sent_bytes,wire_tx_bytes_max,wrong,"
    "time_us_median_low,time_us_median_high,warmup,theory_worker_recv_bytes,"
    "theory_server_recv_bytes,theory_time_us,nominal_link_bytes_per_s,link_source,cpu_busy,mpi_"
    "algorithm,nccl_algorithm,memory_add_bytes_per_s,memory_reduce_bytes_per_s,zmq_rtt_us,"
    "tcp_rtt_us,stream_bytes_per_s,rank_sent_bytes,theory_rank_sent_bytes,compress,error_"
    "feedback,"
    "compute_us_median,exposed_us_median,hosts,inter_host_hops,cpu_s_per_gb,interface,model_"
    "gradients,"
    "buckets,backward_us,scaling_efficiency,cpu_other,link_idle_us_median,time_us_p99,skew_ms,"
    "link_rtt_us,series_iters,radix,rack_ranks,oversubscribed,uplink_bytes,theory_uplink_bytes,"
    "tcp_server_us\n";

static void write_row(const char *path, const struct bench_row *row)
{
    struct csv *csv = NULL;
    cr_assert_eq(bench_csv_open(&csv, path), STATUS_OK);
    cr_assert_eq(bench_csv_write(csv, row), STATUS_OK);
    cr_assert_eq(csv_close(&csv), STATUS_OK);
}

Test(bench_row, csv)
{
    char folder[64], path[80], line[2048];
    folder_new(folder);
    snprintf(path, sizeof path, "%s/bench.csv", folder);
    struct bench_row row = example();
    write_row(path, &row);
    row.bytes_known = row.wire_known = false;
    row.link_bytes_per_s = row.nominal_link_bytes_per_s = 0;
    row.link_source = NULL;
    row.cpu_busy = -1;
    row.theory_time_us = (double)NAN;
    row.wrong = 5;
    row.mpi_algorithm = "ring";
    row.nccl_algorithm = "ring/simple";
    row.limits = (struct limits){0};
    row.compress = "bf16";
    row.error_feedback = "off";
    row.overlap = true;
    row.compute_us_median = 1000000;
    row.exposed_us_median = 62500;
    row.hosts = 0;
    row.library = true;
    row.round_trip_s = 0;
    row.series_iters = 10;
    row.skew_ms = 12.5;
    row.radix = 4;
    row.rack_ranks = 16;
    row.oversubscribed = 4;
    row.uplink_bytes = 1000;
    row.theory_uplink_bytes = 1004;
    write_row(path, &row); /* appended, without a second header */
    row.link_idle_us_median = 0;
    row.model = (struct bench_row_model){
        .name = "vgg16", .input = "an image", .buckets = 35, .tensors = 32, .backward_us = 600000};
    write_row(path, &row);

    FILE *file = fopen(path, "r");
    cr_assert(file);
    cr_assert(fgets(line, sizeof line, file));
    cr_expect_eq(strncmp(line, contract, strlen(contract)), 0, "header: %s", line);
    cr_assert(fgets(line, sizeof line, file));
    cr_expect_str_eq(line,
                     "ps,zmq,cpu,vcluster-400mbit,4,1,dedicated,24000000,3,900000,1000000,"
                     "1200000,1250000,24000000,36000000,50000000,0.72,24000000,24000000,"
                     "96000000,96000000,24000000,96000000,99000000,0,900000,1250000,2,"
                     "24000000,96000000,1950000,52500000,probe,0.375,,,1.6e+10,2e+10,45.5,17.25,,"
                     "96000000,96000000,none,none,0,1000000,4,4,1.25,comm,,,,,0.125,250,1240000,0,"
                     "1500,1,,,,,,500000\n");
    cr_assert(fgets(line, sizeof line, file));
    cr_expect_str_eq(
        line, "ps,zmq,cpu,vcluster-400mbit,4,1,dedicated,24000000,3,900000,1000000,"
              "1200000,1250000,24000000,36000000,,,,,,,,,,5,900000,1250000,2,,,,,,,"
              "ring,ring/simple,,,,,,,,bf16,off,1000000,62500,,,1.25,library,,,,,,250,1240000,"
              "12.5,,10,4,16,4,1000,1004,\n");
    cr_assert(fgets(line, sizeof line, file));
    cr_expect(
        strstr(line, ",library,vgg16,35,600000,0.941176471,,,1240000,12.5,,10,4,16,4,1000,1004,\n"),
        "a model's row: %s", line);
    cr_expect_null(fgets(line, sizeof line, file));
    fclose(file);
    folder_free(folder);
}

Test(bench_row, json)
{
    struct bench_row row = example();
    row.wire_known = false;
    cJSON *json = bench_row_json(&row);
    cr_assert(json);
    cr_expect_str_eq(cJSON_GetObjectItemCaseSensitive(json, "backend")->valuestring, "ps");
    expect_close(cJSON_GetObjectItemCaseSensitive(json, "efficiency")->valuedouble, 0.72);
    expect_close(cJSON_GetObjectItemCaseSensitive(json, "cpu_s_per_gb")->valuedouble, 1.25);
    cr_expect_eq(cJSON_GetObjectItemCaseSensitive(json, "server_sent_bytes")->valuedouble, 96e6);
    cr_expect(cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(json, "wire_tx_bytes_max")));
    cJSON_Delete(json);
}

/* -------- the table --------------------------------------------------------------------------- */

Test(bench_row, table_line)
{
    struct bench_row row = example();
    cr_expect_str_eq(
        printed(bench_table_line, row),
        "    24000000       3    1000000.0    900000.0-1250000.0    1200000.0    1240000.0    "
        "1950000.0     24.00     "
        "36.00    72.0%     24000000     24000000     96000000     96000000    38%     1.25       "
        "0\n# a server on plain sockets, with 4 workers: 500000.0 us, 0.50 of the median\n");
    row.limits.server_us = 0;
    row.bytes_known = false;
    row.link_bytes_per_s = 0;
    row.theory_time_us = (double)NAN;
    row.wrong = 12;
    row.cpu_busy = -1;
    row.cpu_s = (double)NAN;
    cr_expect_str_eq(
        printed(bench_table_line, row),
        "    24000000       3    1000000.0    900000.0-1250000.0    1200000.0    1240000.0    "
        "        -     24.00     "
        "36.00        -            -            -            -            -      -        -      "
        "12\n");
}

Test(bench_row, limited_by_the_cpus)
{
    struct bench_row row = example();
    row.cpu_busy = 0.85;
    cr_expect_str_eq(bench_row_cpu_verdict(&row), "");
    cr_expect_null(strstr(printed(bench_table_line, row), "CPU-limited"));
    row.cpu_busy = 0.951;
    row.cpu_other = 0.1; /* busy without the other processes, too */
    cr_expect_str_eq(bench_row_cpu_verdict(&row), "CPU-limited");
    row.cpu_other = 0.102;
    cr_expect(strstr(printed(bench_table_line, row), "    0  busy with other work\n"));
    row.cpu_busy = 0.851;
    row.cpu_other = 0.05; /* too little to distinguish from 0 */
    cr_expect_str_eq(bench_row_cpu_verdict(&row), "CPU-limited");
    row.cpu_other = -1;
    cr_expect_str_eq(bench_row_cpu_verdict(&row), "CPU-limited");
    cr_expect(strstr(printed(bench_table_line, row), " 85%     1.25       0  CPU-limited\n"));
    row.cpu_busy = -1;
    cr_expect_str_eq(bench_row_cpu_verdict(&row), "");
}

/* Short operations get more iterations than long ones, within the limits. */
Test(bench_row, iterations)
{
    cr_expect_eq(bench_auto_iters(0), BENCH_ITERS_MOST);
    cr_expect_eq(bench_auto_iters(10), BENCH_ITERS_MOST);
    cr_expect_eq(bench_auto_iters(1000), 100);
    cr_expect_eq(bench_auto_iters(5000), 20);
    cr_expect_eq(bench_auto_iters(100e3), 20);
    cr_expect_eq(bench_auto_iters(150e3), 14); /* the last one may pass the two seconds */
    cr_expect_eq(bench_auto_iters(400e3), 6);
    cr_expect_eq(bench_auto_iters(60e6), 6);
}

Test(bench_row, table_head)
{
    struct bench_row row = example();
    const char *text = printed(bench_table_head, row);
    cr_expect(strstr(text, "# psring bench: ps with 1 dedicated server, transport zmq, 4 workers, "
                           "network vcluster-400mbit, 2 iterations to warm up\n"
                           "# a link: 400 Mbit/s each way of payload, measured by TCP streams in "
                           "this run; nominal: 420\n"),
              "%s", text);
    cr_expect_null(strstr(text, "no per-node limit"));
    cr_expect(strstr(text, "# memory, one core, 12 bytes an element: c = a + b 16.00 GB/s, the "
                           "reduction's a += b 20.00 (1.25 of it)\n"
                           "# 4 bytes through ZeroMQ, DEALER to ROUTER and back: 45.5 us\n"),
              "%s", text);
    cr_expect_null(strstr(text, "plain TCP"));
    for (int dtype = MESSAGE_FLOAT32; dtype < MESSAGE_DTYPES; dtype++)
        row.limits.type_bytes_per_s[dtype] = 4e9 * dtype;
    text = printed(bench_table_head, row);
    cr_expect(strstr(text, "#   float32     4.00 GB/s  0.25 of c = a + b ###\n"
                           "#   float16     8.00 GB/s  0.50 of c = a + b #####\n"),
              "%s", text);
    cr_expect(strstr(text, "#   int64      24.00 GB/s  1.50 of c = a + b ###############\n"));
    row.limits = (struct limits){.stream_bytes_per_s = 2e9};
    text = printed(bench_table_head, row);
    cr_expect(strstr(text, "# plain TCP: 2000.0 MB/s each way, both ways at once\n"), "%s", text);
    cr_expect_null(strstr(text, "# memory"));
    row.link_source = "nominal";
    text = printed(bench_table_head, row);
    cr_expect(strstr(text, "# a link: 400 Mbit/s each way, nominal: not measured"), "%s", text);
    row.link_bytes_per_s = row.nominal_link_bytes_per_s = 0;
    row.link_source = NULL;
    cr_expect_null(strstr(printed(bench_table_head, row), "a link:"));
    cr_expect_null(strstr(text, "algorithm"));
    cr_expect_null(strstr(text, "# skew"));
    row.skew_ms = 12.5;
    text = printed(bench_table_head, row);
    cr_expect(strstr(text, "# skew: each worker starts up to 12.5 ms late"), "%s", text);
    row.network = "loopback";
    row.mpi_algorithm = "segmented";
    text = printed(bench_table_head, row);
    cr_expect(strstr(text, ", algorithm segmented, transport"), "%s", text);
    row.mpi_algorithm = NULL;
    row.nccl_algorithm = "ring/simple";
    const char *nccl = strstr(printed(bench_table_head, row), ", algorithm ring/simple by its own");
    cr_expect(nccl);
    text = printed(bench_table_head, row);
    cr_expect(strstr(text, "network=loopback: no per-node limit, topology effects do not show"),
              "%s", text);
    for (const char *line = text; *line; line = strchr(line, '\n') + 1)
        cr_expect_eq(*line, '#');
}

static struct bench_verdict verdict_of(size_t rows, size_t known, size_t differ, uint64_t wrong)
{
    return (struct bench_verdict){
        .rows = rows, .rows_known = known, .rows_differ = differ, .wrong = wrong};
}

static enum status status_of(struct bench_verdict verdict)
{
    return bench_verdict_status(&verdict);
}

static const char *foot(struct bench_verdict verdict)
{
    static char text[256];
    memset(text, 0, sizeof text);
    FILE *file = fmemopen(text, sizeof text - 1, "w");
    cr_assert(file);
    bench_table_foot(file, &verdict);
    fclose(file);
    return text;
}

Test(bench_row, wrong_sums_and_other_bytes_are_failures)
{
    cr_expect(status_of(verdict_of(3, 3, 0, 0)) == STATUS_OK);
    cr_expect(status_of(verdict_of(3, 0, 0, 0)) == STATUS_OK);
    cr_expect(status_of(verdict_of(3, 3, 0, 1)) == STATUS_PROTOCOL);
    cr_expect(status_of(verdict_of(3, 3, 1, 0)) == STATUS_PROTOCOL);
}

Test(bench_row, an_efficiency_is_required_of_every_row)
{
    struct bench_row row = example(); /* 0.72 */
    struct bench_verdict verdict = {0};
    bench_verdict_add(&verdict, 0, &row);
    bench_verdict_add(&verdict, 0.72, &row);
    cr_expect_eq(bench_verdict_status(&verdict), STATUS_OK);
    bench_verdict_add(&verdict, 0.721, &row);
    row.time_us.median *= 2;
    row.bytes = 12000000;
    bench_verdict_add(&verdict, 0.721, &row); /* 0.18 */
    row.bytes = 24000000;
    bench_verdict_add(&verdict, 0.721, &row); /* 0.36 */
    cr_expect_eq(bench_verdict_status(&verdict), STATUS_MISSED);
    cr_expect_eq(verdict.rows_below, 3);
    cr_expect_eq(verdict.rows_required, 4);
    cr_expect_eq(verdict.lowest_bytes, 12000000);
    expect_close(verdict.lowest, 0.18);
    verdict.wrong = 1;
    cr_expect_eq(bench_verdict_status(&verdict), STATUS_PROTOCOL);

    row.link_bytes_per_s = 0;
    verdict = (struct bench_verdict){0};
    bench_verdict_add(&verdict, 0.1, &row);
    cr_expect_eq(verdict.rows_unknown, 1);
    cr_expect_eq(bench_verdict_status(&verdict), STATUS_MISSED);
}

/* A fixed pattern from 0 to the maximum: it differs by rank and operation, and scales with the
 * maximum. */
Test(bench_row, ranks_start_apart_by_a_fixed_pattern)
{
    enum { RANKS = 8, ROUNDS = 64 };
    int64_t seen[RANKS * ROUNDS], sum = 0, most = 0;
    for (int i = 0; i < RANKS * ROUNDS; i++) {
        seen[i] = bench_start_skew_ns(10, (size_t)i / ROUNDS, (uint64_t)i % ROUNDS);
        cr_expect(seen[i] >= 0 && seen[i] < 10000000);
        cr_expect_eq(seen[i], bench_start_skew_ns(10, (size_t)i / ROUNDS, (uint64_t)i % ROUNDS));
        for (int j = 0; j < i; j++)
            cr_expect_neq(seen[i], seen[j]);
        sum += seen[i];
        most = seen[i] > most ? seen[i] : most;
    }
    cr_expect(sum > 4500000LL * RANKS * ROUNDS && sum < 5500000LL * RANKS * ROUNDS);
    cr_expect(most > 9000000);
    cr_expect_eq(bench_start_skew_ns(0, 3, 5), 0);
}

Test(bench_row, table_foot)
{
    cr_expect_str_eq(foot(verdict_of(3, 3, 0, 0)),
                     "# 3 sizes; every element equals the exact sum; bytes are as in theory\n");
    cr_expect_str_eq(foot(verdict_of(1, 0, 0, 0)),
                     "# 1 size; every element equals the exact sum; the library does not count its "
                     "bytes\n");
    cr_expect_str_eq(foot(verdict_of(3, 3, 2, 17)),
                     "# 3 sizes; 17 elements are WRONG; bytes DIFFER from theory at 2 of them\n");
}
