/*
 * Input: a timeline, as psring train --timeline writes it.
 * - Ranges and messages are sorted, and name ranks of the file. The parent of a range encloses it.
 * - The parts of a step add up to the step.
 * - The critical path of a step covers the step, without gaps and in the order of time.
 * - The replay of a step has messages between ranks of the file, within the time of the replay.
 * - `psring trace` accepts a timeline if and only if it has a step.
 */
#include "tests/fuzz/fuzz.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/status.h"
#include "experiments/trace/timeline.h"
#include "experiments/trace/trace.h"

static void check_ranges(const struct trace_file *file)
{
    for (size_t i = 0; i < file->range_count; i++) {
        const struct trace_range *range = &file->ranges[i], *last = i > 0 ? range - 1 : range;
        CHECK(range->rank >= 0 && range->rank < file->rank_count);
        CHECK(range->kind < RANGE_KINDS && range->begin_ns <= range->end_ns);
        if (i > 0 && last->rank == range->rank && last->row == range->row)
            CHECK(last->begin_ns <= range->begin_ns);
        else if (i > 0)
            CHECK(last->rank < range->rank ||
                  (last->rank == range->rank && last->row < range->row));
        if (range->parent < 0)
            continue;
        const struct trace_range *parent = &file->ranges[range->parent];
        CHECK(parent < range && parent->rank == range->rank && parent->row == range->row);
        CHECK(parent->begin_ns <= range->begin_ns && parent->end_ns >= range->end_ns);
    }
}

static void check_messages(const struct trace_file *file)
{
    size_t beyond, pairs, disordered = trace_file_disordered(file, &beyond, &pairs), both = 0;
    for (size_t i = 0; i < file->message_count; i++) {
        const struct trace_message *message = &file->messages[i];
        const struct trace_message *last = i > 0 ? message - 1 : message;
        CHECK(message->from >= -1 && message->from < file->rank_count);
        CHECK(message->to >= -1 && message->to < file->rank_count);
        CHECK(message->from >= 0 || message->to >= 0);
        both += message->from >= 0 && message->to >= 0;
        CHECK(last->to < message->to ||
              (last->to == message->to && last->to_row <= message->to_row));
    }
    CHECK(pairs == both && disordered <= pairs && beyond <= disordered);
}

static void check_path(const struct trace_file *file, size_t at)
{
    const struct trace_range *step = &file->ranges[at];
    struct trace_path path;
    int64_t ns = step->begin_ns;
    CHECK(trace_path_find(file, at, &path) == STATUS_OK);
    for (size_t i = 0; i < path.count; i++) {
        const struct trace_stretch *stretch = &path.stretches[i];
        CHECK(stretch->begin_ns == ns && stretch->end_ns > ns && stretch->place < TRACE_PLACES);
        CHECK(stretch->rank >= 0 && stretch->rank < file->rank_count);
        ns = stretch->end_ns;
    }
    CHECK(ns == step->end_ns);
    trace_path_free(&path);
}

/* Returns the number of steps. */
static size_t check_steps(const struct trace_file *file)
{
    struct trace_step *steps;
    size_t count, of_ranks = 0;
    double median_ms[TRACE_PARTS];
    CHECK(trace_steps(file, &steps, &count) == STATUS_OK);
    for (size_t i = 0; i < count; i++) {
        const int64_t *ns = steps[i].ns;
        CHECK(ns[TRACE_PART_STEP] == steps[i].end_ns - steps[i].begin_ns);
        CHECK(ns[TRACE_PART_COMPUTE] + ns[TRACE_PART_EXPOSED] + ns[TRACE_PART_DATA] +
                  ns[TRACE_PART_OPTIMIZER] + ns[TRACE_PART_OTHER] ==
              ns[TRACE_PART_STEP]);
        CHECK(ns[TRACE_PART_COMM] >= 0);
        CHECK(steps[i].range < file->range_count);
        check_path(file, steps[i].range);
    }
    for (int rank = 0; rank < file->rank_count && rank < 64; rank++)
        of_ranks += trace_medians(steps, count, rank, median_ms);
    CHECK(of_ranks == count || file->rank_count > 64);
    CHECK(trace_medians(steps, count, -1, median_ms) <= count);
    free(steps);
    return count;
}

static double number(const cJSON *list, int index)
{
    const cJSON *item = cJSON_GetArrayItem(list, index);
    CHECK(cJSON_IsNumber(item));
    return item->valuedouble;
}

static void check_replay(const char *path, int ranks)
{
    cJSON *replays = cJSON_CreateArray();
    const cJSON *replay, *message;
    CHECK(replays && replay_add(replays, "fuzz", path) == STATUS_OK);
    cJSON_ArrayForEach(replay, replays)
    {
        const cJSON *end = cJSON_GetObjectItem(replay, "end_us");
        const cJSON *messages = cJSON_GetObjectItem(replay, "messages");
        CHECK(cJSON_IsNumber(end) && cJSON_GetArraySize(messages) > 0);
        CHECK(cJSON_GetArraySize(cJSON_GetObjectItem(replay, "workers")) == ranks);
        cJSON_ArrayForEach(message, messages)
        {
            CHECK(number(message, 0) >= 0 && number(message, 0) < ranks);
            CHECK(number(message, 1) >= 0 && number(message, 1) < ranks);
            CHECK(number(message, 2) >= 0 && number(message, 2) <= number(message, 3));
            CHECK(number(message, 3) <= end->valuedouble && number(message, 5) >= 1);
        }
    }
    cJSON_Delete(replays);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64], name[] = "trace";
    struct trace_file file;
    size_t steps = 0;
    fuzz_quiet();
    int fd = fuzz_file(data, size, path, sizeof path);
    enum status status = trace_file_read(&file, path);
    CHECK(status == STATUS_OK || status == STATUS_INPUT);
    if (status == STATUS_OK) {
        check_ranges(&file);
        check_messages(&file);
        steps = check_steps(&file);
        check_replay(path, file.rank_count);
        trace_file_free(&file);
    }
    char *argv[] = {name, path, NULL};
    CHECK((trace_command(2, argv) == STATUS_OK) == (steps > 0));
    close(fd);
    return 0;
}
