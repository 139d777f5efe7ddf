/* Reads a timeline: parts of steps, order of messages, critical path. The file is made by hand, so
 * all results are known. Bad files are refused. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiments/trace/timeline.h"
#include "experiments/trace/trace.h"
#include "tests/lib/capture.h"

#define HEAD "{\"displayTimeUnit\":\"ms\",\"otherData\":{},\"traceEvents\":[\n"
#define END "{\"ph\":\"M\",\"pid\":0,\"tid\":0,\"name\":\"psring_end\",\"args\":{}}\n]}\n"
#define RANK(pid, error)                                                                           \
    "{\"ph\":\"M\",\"pid\":" #pid ",\"tid\":0,\"name\":\"psring_rank\",\"args\":{\"worker\":true," \
    "\"clock_start_error_ns\":" #error ",\"clock_end_error_ns\":0,\"dropped_events\":0}},\n"
#define RANGE(pid, tid, ts, dur, name, cat, args)                                                  \
    "{\"ph\":\"X\",\"pid\":" #pid ",\"tid\":" #tid ",\"ts\":" #ts ",\"dur\":" #dur                 \
    ",\"name\":\"" name "\",\"cat\":\"" cat "\",\"args\":{" args "}},\n"
#define FLOW(ph, pid, tid, ts, id)                                                                 \
    "{\"ph\":\"" ph "\",\"pid\":" #pid ",\"tid\":" #tid ",\"ts\":" #ts ",\"id\":\"" id             \
    "\",\"name\":\"message\",\"cat\":\"message\",\"args\":{}},\n"

#define COUNTER(pid, tid, ts, name, args)                                                          \
    "{\"ph\":\"C\",\"pid\":" #pid ",\"tid\":" #tid ",\"ts\":" #ts ",\"name\":\"" name              \
    "\",\"args\":{" args "}},\n"

/*
 * Two ranks, times in us. Rank 0 computes for 40. Rank 1 computes for 60, then requests its bucket;
 * its message takes 20. Rank 0 adds for 5, and updates for 10.
 *
 *     rank 0  training   |data 5|forward 35     |wait for the bucket         88|update 10|
 *             averaging                        |allreduce 42 .. wait 80, add 85|
 *     rank 1  training   |forward 60                        |
 *             averaging                                  61 |send 62|
 */
static const char steps[] = HEAD RANK(0, 300) RANK(1, 200) RANGE(
    0, 1, 0.000, 98.000, "step", "step", "\"step\":0") RANGE(0, 1, 0.000, 5.000, "data", "data", "")
    RANGE(0, 1, 5.000, 35.000, "forward conv1", "compute",
          "") RANGE(0, 1, 38.000, 1.000, "start of a bucket", "exposed", "\"bucket\":0")
        RANGE(0, 1, 40.000, 48.000, "wait for a bucket", "exposed",
              "\"bucket\":0") RANGE(0, 1, 88.000, 10.000, "optimizer", "optimizer", "")
            COUNTER(0, 1, 97.500, "computed on a processor", "\"ms\":0.020") RANGE(
                0,
                2, 42.000, 43.000, "bucket 0 allreduce", "allreduce",
                "\"bucket\":0,\"step\":0") RANGE(0, 2, 43.000, 42.000, "reduce-scatter", "transfer",
                                                 "\"bucket\":0,\"step\":3,\"chunk\":1,\"from\":1")
                RANGE(0, 2, 44.000, 38.000, "wait for a message", "wait", "")
                    RANGE(0, 100, 38.000, 50.000, "bucket 0", "bucket", "\"bucket\":0,\"step\":0")
                        FLOW("f", 0, 2, 82.000, "0001000000000007")
                            RANGE(1, 1, 0.000, 90.000, "step", "step", "\"step\":0")
                                RANGE(1, 1, 0.000, 60.000, "forward conv1", "compute", "")
                                    RANGE(1, 1, 60.000, 30.000, "wait for a bucket", "exposed",
                                          "\"bucket\":0")
                                        RANGE(1, 2, 61.000, 9.000, "bucket 0 allreduce",
                                              "allreduce", "\"bucket\":0,\"step\":0")
                                            RANGE(1, 2, 62.000, 1.000, "send", "message",
                                                  "\"to\":0,\"bucket\":0")
                                                RANGE(1, 100, 60.000, 30.000, "bucket 0", "bucket",
                                                      "\"bucket\":0,\"step\":0")
                                                    FLOW("s", 1, 2, 62.000, "0001000000000007") END;

static char path[] = "/tmp/psring-trace-XXXXXX";

static void write_file(const char *text)
{
    strcpy(path + sizeof path - 7, "XXXXXX");
    int fd = mkstemp(path);
    cr_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

static void read_file(struct trace_file *file, const char *text)
{
    write_file(text);
    cr_assert_eq(trace_file_read(file, path), STATUS_OK);
    unlink(path);
}

Test(trace_file, parts_of_a_step_add_up)
{
    static const int64_t expected[2][TRACE_PARTS] = {
        {98000, 34000, 49000, 5000, 10000, 0, 44000, 43000, 20000},
        {90000, 60000, 30000, 0, 0, 0, 60000, 9000, -1}};
    struct trace_file file;
    struct trace_step *found;
    size_t count;
    double median_ms[TRACE_PARTS];
    read_file(&file, steps);
    cr_assert_eq(file.rank_count, 2);
    cr_assert_eq(trace_steps(&file, &found, &count), STATUS_OK);
    cr_assert_eq(count, 2);
    for (int rank = 0; rank < 2; rank++) {
        for (int part = 0; part < TRACE_PARTS; part++)
            cr_expect_eq(found[rank].ns[part], expected[rank][part], "rank %d, part %d: %lld", rank,
                         part, (long long)found[rank].ns[part]);
    }
    cr_assert_eq(trace_medians(found, count, -1, median_ms), 1);
    cr_expect_float_eq(median_ms[TRACE_PART_STEP], 0.098, 1e-9);
    cr_assert_eq(trace_medians(found, count, 1, median_ms), 1);
    cr_expect_float_eq(median_ms[TRACE_PART_REST], 0.060, 1e-9);
    free(found);
    trace_file_free(&file);
}

/* Two ranks end early and late in turn. Every step takes 45 ms, not the 60 of the late rank. */
Test(trace_file, steps_of_all_go_from_last_to_last)
{
    enum { STEPS = 5 };
    static const int64_t ends_ms[2][STEPS] = {{60, 90, 150, 180, 240}, {45, 105, 135, 195, 225}};
    static const int64_t rest_ms[2] = {20, 28}, data_ms[2] = {5, 2}; /* rank 1 is the busiest */
    struct trace_step steps_of_two[2 * STEPS] = {{0}};
    double median_ms[TRACE_PARTS];
    for (int rank = 0; rank < 2; rank++) {
        for (int i = 0; i < STEPS; i++) {
            struct trace_step *step = &steps_of_two[rank * STEPS + i];
            int64_t begin_ms = i > 0 ? ends_ms[rank][i - 1] : 0;
            *step = (struct trace_step){.rank = rank,
                                        .number = 7 + i,
                                        .begin_ns = (100 + begin_ms) * 1000000,
                                        .end_ns = (100 + ends_ms[rank][i]) * 1000000};
            step->ns[TRACE_PART_STEP] = step->end_ns - step->begin_ns;
            step->ns[TRACE_PART_REST] = rest_ms[rank] * 1000000;
            step->ns[TRACE_PART_DATA] = data_ms[rank] * 1000000;
            step->ns[TRACE_PART_EXPOSED] =
                step->ns[TRACE_PART_STEP] - step->ns[TRACE_PART_REST] - step->ns[TRACE_PART_DATA];
        }
    }
    cr_assert_eq(trace_medians(steps_of_two, (size_t)2 * STEPS, -1, median_ms), STEPS);
    cr_expect_float_eq(median_ms[TRACE_PART_STEP], 45, 1e-9);
    cr_expect_float_eq(median_ms[TRACE_PART_EXPOSED], 15, 1e-9);
    cr_expect_float_eq(median_ms[TRACE_PART_REST], 28, 1e-9);
    cr_expect_float_eq(median_ms[TRACE_PART_DATA], 2, 1e-9);
    cr_assert_eq(trace_medians(steps_of_two, (size_t)2 * STEPS, 0, median_ms), STEPS);
    cr_expect_float_eq(median_ms[TRACE_PART_STEP], 60, 1e-9);
}

struct expected_stretch {
    enum trace_place place;
    int rank, peer;
    int64_t begin_ns, end_ns;
};

static void expect_path(const struct trace_path *found, const struct expected_stretch *expected,
                        size_t count)
{
    cr_assert_eq(found->count, count, "%zu stretches", found->count);
    for (size_t i = 0; i < count; i++) {
        const struct trace_stretch *stretch = &found->stretches[i];
        cr_expect(stretch->place == expected[i].place && stretch->rank == expected[i].rank &&
                      stretch->peer == expected[i].peer &&
                      stretch->begin_ns == expected[i].begin_ns &&
                      stretch->end_ns == expected[i].end_ns,
                  "stretch %zu: place %d, rank %d, %lld to %lld", i, (int)stretch->place,
                  stretch->rank, (long long)stretch->begin_ns, (long long)stretch->end_ns);
    }
}

Test(trace_file, the_path_goes_through_the_late_rank_and_the_link)
{
    static const struct expected_stretch expected[] = {
        {TRACE_PLACE_COMPUTE, 1, -1, 0, 60000},      {TRACE_PLACE_WAKE, 1, -1, 60000, 61000},
        {TRACE_PLACE_ADD, 1, -1, 61000, 62000},      {TRACE_PLACE_LINK, 1, 0, 62000, 82000},
        {TRACE_PLACE_ADD, 0, -1, 82000, 85000},      {TRACE_PLACE_WAKE, 0, -1, 85000, 88000},
        {TRACE_PLACE_OPTIMIZER, 0, -1, 88000, 98000}};
    struct trace_file file;
    struct trace_path found;
    read_file(&file, steps);
    cr_assert_eq(file.ranges[0].kind, RANGE_STEP);
    cr_assert_eq(trace_path_find(&file, 0, &found), STATUS_OK);
    expect_path(&found, expected, sizeof expected / sizeof *expected);
    cr_expect(found.stretches[3].bucket == 0 && found.stretches[3].step == 3);
    trace_path_free(&found);
    trace_file_free(&file);
}

/* The message was sent before rank 0 began to wait for it, so the path contains the activity that
 * delayed rank 0. */
Test(trace_file, a_message_that_waits_for_a_late_receiver_is_not_the_links)
{
    static const struct expected_stretch expected[] = {
        {TRACE_PLACE_DATA, 0, -1, 0, 5000},      {TRACE_PLACE_COMPUTE, 0, -1, 5000, 38000},
        {TRACE_PLACE_WAKE, 0, -1, 38000, 42000}, {TRACE_PLACE_ADD, 0, -1, 42000, 44000},
        {TRACE_PLACE_LINK, 1, 0, 44000, 82000},  {TRACE_PLACE_ADD, 0, -1, 82000, 85000},
        {TRACE_PLACE_WAKE, 0, -1, 85000, 88000}, {TRACE_PLACE_OPTIMIZER, 0, -1, 88000, 98000}};
    static char text[sizeof steps];
    struct trace_file file;
    struct trace_path found;
    strcpy(text, steps);
    for (char *at = text; (at = strstr(at, "\"ts\":62.000")) != NULL;)
        memcpy(at, "\"ts\":43.000", 11); /* its range, and the begin of the flow */
    read_file(&file, text);
    cr_assert_eq(trace_path_find(&file, 0, &found), STATUS_OK);
    expect_path(&found, expected, sizeof expected / sizeof *expected);
    trace_path_free(&found);
    trace_file_free(&file);
}

Test(trace_file, messages_that_come_before_they_go)
{
    struct trace_file file;
    size_t beyond, pairs;
    read_file(&file, HEAD RANK(0, 300) RANK(1, 200) FLOW("s", 0, 1, 10.000, "1")
                         FLOW("f", 1, 1, 9.600, "1") FLOW("s", 0, 1, 20.000, "2")
                             FLOW("f", 1, 1, 19.400, "2") FLOW("s", 0, 1, 30.000, "3")
                                 FLOW("f", 1, 1, 30.100, "3") FLOW("s", 0, 1, 40.000, "4") END);
    cr_expect_eq(trace_file_disordered(&file, &beyond, &pairs), 2);
    cr_expect_eq(beyond, 1, "one by more than 300 + 200 ns");
    cr_expect_eq(pairs, 3);
    trace_file_free(&file);
}

/* The output of psring trace for a file. */
static const char *say(const char *file)
{
    static struct capture capture;
    char name[] = "trace";
    char *arguments[] = {name, path, NULL};
    write_file(file);
    capture_start_of(&capture, stdout);
    enum status status = trace_command(2, arguments);
    capture_stop(&capture);
    cr_expect_eq(status, STATUS_OK);
    unlink(path);
    return capture.text;
}

Test(trace_file, the_command_prints_it)
{
    const char *text = say(steps);
    cr_expect(strncmp(text, "limited by nothing that is known: a median needs at least 6", 58) == 0,
              "%s", text);
    cr_expect(strstr(text, "link from rank 1 to rank 0, step 3 of bucket 0"), "%s", text);
    cr_expect(strstr(text, "rank 1 computes: forward conv1"), "%s", text);
    cr_expect(strstr(text, "no facts about loaders, processors, servers and the link rate"), "%s",
              text);
    cr_expect(strstr(text, "in steps 1 to 1,"), "%s", text);
    cr_expect(strstr(text, "messages 1; received before they were sent: 0"), "%s", text);
}

/* Appends an event of step 0 as an event of step `step`, 100 us later for each step. */
static void add_event(char *text, const char *event, int length, int step)
{
    const char *at = strstr(event, "\"ts\":");
    char *end, *begin = text + strlen(text);
    double us = strtod(at + 5, &end) + 100 * step;
    sprintf(begin, "%.*s%.3f%.*s\n", (int)(at + 5 - event), event, us, (int)(event + length - end),
            end);
    char *number = strstr(begin, "\"step\":0"), *id = strstr(begin, "\"id\":\"");
    if (number)
        number[7] = (char)('0' + step);
    if (id)
        id[6] = (char)('0' + step);
}

/* The output for the step of `steps`, repeated `count` times, with facts of psring train. */
static const char *say_with(int count, const char *facts)
{
    static char text[8 * sizeof steps];
    snprintf(text, sizeof text,
             HEAD
             "{\"ph\":\"M\",\"pid\":0,\"tid\":0,\"name\":\"psring_run\",\"args\":{%s}},\n" RANK(
                 0, 300) RANK(1, 200),
             facts);
    for (int step = 0; step < count; step++) {
        for (const char *line = steps, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
            const char *at = strstr(line, "\"ts\":");
            if (at && at < end)
                add_event(text, line, (int)(end - line), step);
        }
    }
    strcat(text, END);
    return say(text);
}

/* Averaging takes 9 us on the last rank, all of it exposed. */
Test(trace_file, judges_by_what_the_run_knew)
{
    const char *text =
        say_with(6, "\"backend\":\"ps\",\"waits\":1,\"dedicated_servers\":1,"
                    "\"link_bits_per_s\":1e9,\"faster_bits_per_s\":1e10,"
                    "\"model_ms\":0.009,\"model_faster_ms\":0.0009,\"model_spread_ms\":0.003");
    cr_expect(strncmp(text, "limited by the server", 21) == 0, "%s", text);
    cr_expect(strstr(text, "in steps 1 to 6,"), "%s", text);
    cr_expect(!strstr(text, "no facts about loaders"), "%s", text);
    text = say_with(5, "\"backend\":\"ps\",\"waits\":1");
    cr_expect(strstr(text, "limited by nothing that is known: a median needs at least 6 steps, "
                           "found 5"),
              "%s", text);
    text =
        say_with(6, "\"backend\":\"ring\",\"waits\":1,\"link_bits_per_s\":1e9,"
                    "\"faster_bits_per_s\":1e10,\"model_ms\":0.0088,\"model_faster_ms\":0.00088");
    cr_expect(strstr(text, "limited by the link"), "%s", text);
    cr_expect(strstr(text, "ring is at 98% of the link, 1 Gbit/s"), "%s", text);
    cr_expect(strstr(text, "--compress fp16 would save"), "%s", text);
    text = say_with(6, "\"backend\":\"ring\",\"waits\":1,\"cpu_busy\":0.95,\"cpu_other\":0.02");
    cr_expect(strstr(text, "limited by the processors: averaging"), "%s", text);
    cr_expect(!strstr(text, "would"), "%s", text);
    /* Rank 0 computed for 20 of 44 us. The lower value of both ranks counts. */
    text = say_with(6, "\"backend\":\"ring\",\"waits\":0,\"cores\":1,\"threads\":1");
    cr_expect(strncmp(text, "limited by the processors", 25) == 0, "%s", text);
}

#define THERE_AND_BACK(ts0, ts10, ts20, number)                                                    \
    RANGE(0, 1, ts0, 20.000, "wait for a message", "wait", "")                                     \
    RANGE(1, 1, ts0, 10.000, "wait for a message", "wait", "")                                     \
    FLOW("s", 0, 1, ts0, "a" number)                                                               \
    FLOW("f", 1, 1, ts10, "a" number)                                                              \
    FLOW("s", 1, 1, ts10, "b" number) FLOW("f", 0, 1, ts20, "b" number)

/* Rank 0 asks and rank 1 answers, three times, 10 us each way. */
Test(trace_file, what_goes_to_and_fro_is_a_line_each_way)
{
    const char *text = say(
        HEAD RANK(0, 0) RANK(1, 0) RANGE(0, 1, 0.000, 100.000, "step", "step", "\"step\":0") RANGE(
            0, 1, 10.000, 60.000, "bucket 0 allreduce", "allreduce", "\"bucket\":0,\"step\":0")
            RANGE(1, 1, 10.000, 60.000, "bucket 0 allreduce", "allreduce",
                  "\"bucket\":0,\"step\":0") THERE_AND_BACK(10.000, 20.000, 30.000, "1")
                THERE_AND_BACK(30.000, 40.000, 50.000, "2")
                    THERE_AND_BACK(50.000, 60.000, 70.000, "3") END);
    cr_expect(strstr(text,
                     "     0.010     +0.030 ms  link from rank 0 to rank 1, bucket 0, 3 times "
                     "until 0.060\n"),
              "%s", text);
    cr_expect(strstr(text,
                     "     0.020     +0.030 ms  link from rank 1 to rank 0, bucket 0, 3 times "
                     "until 0.070\n"),
              "%s", text);
}

static void refuse(const char *text, const char *reason)
{
    struct trace_file file;
    write_file(text);
    assert_refused(trace_file_read(&file, path), STATUS_INPUT, reason);
    unlink(path);
}

Test(trace_file, refuses_what_is_none)
{
    refuse("", "is empty");
    refuse("{\"traceEvents\":[]}\n", "is not a timeline");
    refuse("PNG", "is not a timeline");
    refuse(HEAD RANK(0, 0), "cut off");
    refuse(HEAD "{\"ph\":\"X\",\"pid\":\n" END, "line 2 is not an event");
    refuse(HEAD "{\"ph\":\"X\",\"pid\":-3,\"tid\":1},\n" END, "names process -3");
    refuse(HEAD "{\"ph\":\"X\",\"pid\":1e300,\"tid\":1},\n" END, "names process -1");
    refuse(HEAD RANGE(0, 1, 5, -3, "step", "step", "") END, "found a range of -3000 ns");
}

/* Each range is possible, but the sum of all would not fit. */
Test(trace_file, refuses_more_time_than_it_can_add_up)
{
    enum { RANGES = 300 };
    static const char range[] = RANGE(0, 1, 0, 8e12, "step", "step", "");
    static char text[sizeof HEAD + RANGES * sizeof range + sizeof END];
    strcpy(text, HEAD);
    for (int i = 0; i < RANGES; i++)
        strcat(text, range);
    strcat(text, END);
    refuse(text, "line 290: found a range of 8000000000000000 ns");
}
