#include "experiments/trace/trace.h"

#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "experiments/trace/timeline.h"

/* One step of all workers: from the first worker's begin to the last worker's end. */
struct step {
    int64_t number, begin_ns, end_ns;
    int64_t latest_ns; /* latest end of this step and all before it */
    int workers;
    size_t messages;
};

static int workers_of(const struct trace_file *file)
{
    int workers = 0;
    for (int rank = 0; rank < file->rank_count; rank++)
        workers += file->ranks[rank].worker;
    return workers;
}

static int by_number(const void *a, const void *b)
{
    const struct step *one = a, *two = b;
    return (one->number > two->number) - (one->number < two->number);
}

static int by_begin(const void *a, const void *b)
{
    const struct step *one = a, *two = b;
    return (one->begin_ns > two->begin_ns) - (one->begin_ns < two->begin_ns);
}

/* Sorts by messages, descending, then by length. */
static int by_messages(const void *a, const void *b)
{
    const struct step *one = a, *two = b;
    int64_t first = one->end_ns - one->begin_ns, second = two->end_ns - two->begin_ns;
    if (one->messages != two->messages)
        return one->messages > two->messages ? -1 : 1;
    return (first > second) - (first < second);
}

/* Finds the steps of all workers, sorted by begin. Returns their number. O(ranges log ranges). */
static size_t find_steps(const struct trace_file *file, struct step *list)
{
    size_t count = 0, whole = 0;
    for (size_t i = 0; i < file->range_count; i++) {
        const struct trace_range *range = &file->ranges[i];
        if (range->kind == RANGE_STEP)
            list[count++] = (struct step){range->step, range->begin_ns, range->end_ns, 0, 1, 0};
    }
    if (count == 0)
        return 0;
    qsort(list, count, sizeof *list, by_number);
    for (size_t i = 0, next; i < count; i = next) {
        struct step step = list[i];
        for (next = i + 1; next < count && list[next].number == step.number; next++) {
            step.begin_ns =
                list[next].begin_ns < step.begin_ns ? list[next].begin_ns : step.begin_ns;
            step.end_ns = list[next].end_ns > step.end_ns ? list[next].end_ns : step.end_ns;
            step.workers++;
        }
        if (step.workers == workers_of(file))
            list[whole++] = step;
    }
    if (whole > 0)
        qsort(list, whole, sizeof *list, by_begin);
    for (size_t s = 0; s < whole; s++) {
        list[s].latest_ns = list[s].end_ns;
        if (s > 0 && list[s - 1].latest_ns > list[s].end_ns)
            list[s].latest_ns = list[s - 1].latest_ns;
    }
    return whole;
}

static bool is_within(const struct trace_file *file, const struct trace_message *message,
                      const struct step *step)
{
    return message->from >= 0 && message->to >= 0 && message->from < file->rank_count &&
           message->to < file->rank_count && message->bytes > 0 &&
           message->sent_ns >= step->begin_ns && message->received_ns <= step->end_ns;
}

/* Counts the message in each step that contains it. Walks back from the last step begun before the
 * send, until no earlier step ends late enough. */
static void count_message(const struct trace_file *file, const struct trace_message *message,
                          struct step *list, size_t count)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list[middle].begin_ns <= message->sent_ns)
            low = middle + 1;
        else
            high = middle;
    }
    while (low-- > 0 && list[low].latest_ns >= message->received_ns)
        list[low].messages += is_within(file, message, &list[low]);
}

/* Chooses among the steps with the most messages the one of median length. Steps with fewer
 * messages lack ends, because ranks do not begin to record at the same time. `list` must have space
 * for all ranges. Returns false if there is no step. */
static bool choose_step(const struct trace_file *file, struct step *list, struct step *chosen)
{
    size_t count = find_steps(file, list), alike = 0;
    if (count == 0)
        return false;
    for (size_t i = 0; i < file->message_count; i++)
        count_message(file, &file->messages[i], list, count);
    qsort(list, count, sizeof *list, by_messages);
    while (alike < count && list[alike].messages == list[0].messages)
        alike++;
    *chosen = list[alike / 2];
    return true;
}

static int by_pair(const void *a, const void *b)
{
    const struct trace_message *one = a, *two = b;
    if (one->from != two->from)
        return one->from - two->from;
    if (one->to != two->to)
        return one->to - two->to;
    return (one->received_ns > two->received_ns) - (one->received_ns < two->received_ns);
}

/* Keeps the messages of the step, in place. Returns their number. */
static size_t keep_messages(struct trace_file *file, const struct step *step)
{
    size_t kept = 0;
    for (size_t i = 0; i < file->message_count; i++) {
        if (is_within(file, &file->messages[i], step))
            file->messages[kept++] = file->messages[i];
    }
    if (kept > 0)
        qsort(file->messages, kept, sizeof *file->messages, by_pair);
    return kept;
}

static bool same_pair(const struct trace_message *one, const struct trace_message *other)
{
    return one->from == other->from && one->to == other->to;
}

static double whole_us(int64_t ns)
{
    int64_t us = ns / NS_PER_US;
    return (double)us;
}

static void put_message(cJSON *messages, const struct trace_message *message, int64_t zero_ns,
                        size_t together)
{
    const double numbers[] = {message->from,
                              message->to,
                              whole_us(message->sent_ns - zero_ns),
                              whole_us(message->received_ns - zero_ns),
                              (double)message->bytes,
                              (double)together};
    cJSON_AddItemToArray(messages,
                         cJSON_CreateDoubleArray(numbers, sizeof numbers / sizeof *numbers));
}

/* Writes the messages. Each begins at its send or at the arrival of the previous one of its pair.
 * Merges `together` of a pair into one. */
static void put_messages(cJSON *json, struct trace_message *messages, size_t count)
{
    int64_t zero_ns = messages[0].sent_ns, end_ns = messages[0].received_ns;
    for (size_t i = 0; i < count; i++) {
        zero_ns = messages[i].sent_ns < zero_ns ? messages[i].sent_ns : zero_ns;
        /* possible within the clock errors */
        zero_ns = messages[i].received_ns < zero_ns ? messages[i].received_ns : zero_ns;
        end_ns = messages[i].received_ns > end_ns ? messages[i].received_ns : end_ns;
    }
    cJSON *list = cJSON_AddArrayToObject(json, "messages");
    const size_t together = (count + REPLAY_MESSAGES_MOST - 1) / REPLAY_MESSAGES_MOST;
    int64_t free_ns = zero_ns;
    for (size_t i = 0; i < count;) {
        struct trace_message merged = messages[i];
        size_t taken = 1;
        if (i == 0 || !same_pair(&messages[i - 1], &merged))
            free_ns = merged.sent_ns;
        merged.sent_ns = merged.sent_ns > free_ns ? merged.sent_ns : free_ns;
        for (; taken < together && i + taken < count && same_pair(&merged, &messages[i + taken]);
             taken++) {
            merged.bytes += messages[i + taken].bytes;
            merged.received_ns = messages[i + taken].received_ns;
        }
        if (merged.sent_ns > merged.received_ns) /* possible within the clock errors */
            merged.sent_ns = merged.received_ns;
        free_ns = merged.received_ns;
        put_message(list, &merged, zero_ns, taken);
        i += taken;
    }
    cJSON_AddNumberToObject(json, "end_us", whole_us(end_ns - zero_ns));
}

enum status replay_add(cJSON *replays, const char *name, const char *path)
{
    struct trace_file file;
    struct step step, *steps;
    enum status status = trace_file_read(&file, path);
    if (status != STATUS_OK)
        return status;
    steps = calloc(file.range_count + 1, sizeof *steps);
    if (!steps)
        TRY(FAIL(STATUS_NO_MEMORY, "psring report: no memory for the steps of %s", path));
    size_t count = choose_step(&file, steps, &step) ? keep_messages(&file, &step) : 0;
    if (count == 0)
        goto out;
    cJSON *json = cJSON_CreateObject();
    cJSON_AddItemToArray(replays, json);
    cJSON_AddStringToObject(json, "name", name);
    cJSON_AddNumberToObject(json, "step", (double)step.number);
    cJSON *workers = cJSON_AddArrayToObject(json, "workers");
    for (int rank = 0; rank < file.rank_count; rank++)
        cJSON_AddItemToArray(workers, cJSON_CreateBool(file.ranks[rank].worker));
    put_messages(json, file.messages, count);
out:
    free(steps);
    trace_file_free(&file);
    return status;
}
