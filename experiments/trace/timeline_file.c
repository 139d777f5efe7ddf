#include "experiments/trace/timeline.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/base/util.h"

/* A member of the facts and its type. */
#define FACT(type, name, member)                                                                   \
    {                                                                                              \
        name, offsetof(struct bottleneck_facts, member), type                                      \
    }

enum fact_type { FACT_INT, FACT_BOOL, FACT_DOUBLE };

static const struct fact {
    const char *name;
    size_t offset;
    enum fact_type type;
} list[] = {
    FACT(FACT_INT, "loaders", loaders),
    FACT(FACT_INT, "cores", cores),
    FACT(FACT_INT, "threads", threads),
    FACT(FACT_BOOL, "waits", waits),
    FACT(FACT_BOOL, "dedicated_servers", dedicated_servers),
    FACT(FACT_BOOL, "compressed", compressed),
    FACT(FACT_DOUBLE, "link_bits_per_s", link_bits_per_s),
    FACT(FACT_DOUBLE, "faster_bits_per_s", faster_bits_per_s),
    FACT(FACT_DOUBLE, "model_ms", model),
    FACT(FACT_DOUBLE, "model_faster_ms", model_faster),
    FACT(FACT_DOUBLE, "model_spread_ms", model_spread),
    FACT(FACT_DOUBLE, "cpu_busy", cpu_busy),
    FACT(FACT_DOUBLE, "cpu_other", cpu_other),
};

enum { FACTS = sizeof list / sizeof *list };

static double value_of(const struct fact *fact, const struct bottleneck_facts *facts)
{
    const void *at = (const char *)facts + fact->offset;
    if (fact->type == FACT_INT)
        return *(const int *)at;
    return fact->type == FACT_BOOL ? (double)*(const bool *)at : *(const double *)at;
}

void trace_facts_write(FILE *out, const struct bottleneck_facts *facts)
{
    fprintf(out,
            "{\"ph\":\"M\",\"pid\":0,\"tid\":0,\"name\":\"" TRACE_FACTS_NAME
            "\",\"args\":{\"backend\":\"%s\"",
            facts->backend);
    for (size_t f = 0; f < FACTS; f++)
        fprintf(out, ",\"%s\":%.17g", list[f].name, value_of(&list[f], facts));
    fprintf(out, "}},\n");
}

/* Reads the event's arguments into file->facts. An absent fact is 0, which means unknown. */
static void trace_facts_read(struct trace_file *file, const cJSON *arguments)
{
    struct bottleneck_facts *facts = &file->facts;
    *facts = (struct bottleneck_facts){0};
    const cJSON *backend = cJSON_GetObjectItemCaseSensitive(arguments, "backend");
    snprintf(file->backend, sizeof file->backend, "%s",
             cJSON_IsString(backend) ? backend->valuestring : "averaging");
    for (size_t f = 0; f < FACTS; f++) {
        void *at = (char *)facts + list[f].offset;
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(arguments, list[f].name);
        double value = cJSON_IsNumber(item) ? item->valuedouble : 0;
        if (list[f].type == FACT_INT)
            *(int *)at = value >= 0 && value < 1e9 ? (int)value : 0;
        else if (list[f].type == FACT_BOOL)
            *(bool *)at = value != 0;
        else
            *(double *)at = value;
    }
    file->has_facts = true;
}

enum { RANKS_MOST = 65536, NUMBER_MOST = 1000000000 /* of a row, a bucket */ };

/* The longest time of all ranges together: no sum of times overflows. */
#define TIME_MOST_NS (INT64_MAX / 4)

struct timeline_reader {
    const char *path;
    struct trace_file *file;
    size_t line, range_room, message_room;
    int64_t time_ns; /* of all ranges so far */
    bool ended;      /* the last line was found */
};

/* -------- pieces of a line -------------------------------------------------------------------- */

static int64_t integer(const cJSON *object, const char *key, int64_t absent)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    bool fits = cJSON_IsNumber(item) && fabs(item->valuedouble) < 9e15;
    return fits ? (int64_t)item->valuedouble : absent;
}

/* A number from -1 to NUMBER_MOST. */
static int small_integer(const cJSON *object, const char *key, int absent)
{
    int64_t number = integer(object, key, absent);
    return number >= -1 && number <= NUMBER_MOST ? (int)number : absent;
}

static int64_t nanoseconds(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    bool fits = cJSON_IsNumber(item) && fabs(item->valuedouble) < 9e12;
    return fits ? llround(item->valuedouble * 1000) : 0;
}

static const char *text(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsString(item) ? item->valuestring : "";
}

static int kind_of(const char *category, const char *name)
{
    if (strcmp(category, "wait") == 0)
        return strstr(name, "host") ? RANGE_WAIT_HOST : RANGE_WAIT;
    for (int kind = 0; kind <= RANGE_SEND; kind++) {
        if (strcmp(category, trace_categories[kind]) == 0)
            return kind;
    }
    return -1;
}

static enum status find_rank(struct timeline_reader *reader, int64_t number,
                             struct trace_rank **rank)
{
    struct trace_file *file = reader->file;
    if (number < 0 || number >= RANKS_MOST)
        return FAIL(STATUS_INPUT,
                    "%s: line %zu names process %lld, expected a rank; use a file of psring train "
                    "--timeline",
                    reader->path, reader->line, (long long)number);
    if (number >= file->rank_count) {
        size_t count = (size_t)number + 1;
        struct trace_rank *ranks = realloc(file->ranks, count * sizeof *ranks);
        if (!ranks)
            return FAIL(STATUS_NO_MEMORY, "psring trace: no memory for %zu ranks", count);
        memset(ranks + file->rank_count, 0, (count - (size_t)file->rank_count) * sizeof *ranks);
        file->ranks = ranks;
        file->rank_count = (int)count;
    }
    *rank = &file->ranks[number];
    return STATUS_OK;
}

/* -------- lines ------------------------------------------------------------------------------- */

static void take_facts(struct timeline_reader *reader, struct trace_rank *rank, const cJSON *event)
{
    const cJSON *facts = cJSON_GetObjectItemCaseSensitive(event, "args");
    const char *name = text(event, "name");
    if (strcmp(name, "process_name") == 0)
        snprintf(rank->name, sizeof rank->name, "%s", text(facts, "name"));
    if (strcmp(name, "psring_end") == 0)
        reader->ended = true;
    if (strcmp(name, TRACE_FACTS_NAME) == 0)
        trace_facts_read(reader->file, facts);
    if (strcmp(name, "psring_rank") != 0)
        return;
    int64_t before = integer(facts, "clock_start_error_ns", 0);
    int64_t after = integer(facts, "clock_end_error_ns", 0);
    rank->worker = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(facts, "worker"));
    reader->file->in_step = !cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(facts, "in_step"));
    rank->clock_error_ns = before > after ? before : after;
    rank->dropped = (uint64_t)integer(facts, "dropped_events", 0);
}

static enum status take_range(struct timeline_reader *reader, int rank, const cJSON *event,
                              int kind)
{
    struct trace_file *file = reader->file;
    const cJSON *facts = cJSON_GetObjectItemCaseSensitive(event, "args");
    int64_t begin_ns = nanoseconds(event, "ts"), ns = nanoseconds(event, "dur");
    if (kind < 0)
        return STATUS_OK;
    if (ns < 0 || ns > TIME_MOST_NS - reader->time_ns)
        return FAIL(STATUS_INPUT,
                    "%s: line %zu: found a range of %lld ns, expected a file of psring train "
                    "--timeline; record it again",
                    reader->path, reader->line, (long long)ns);
    reader->time_ns += ns;
    struct trace_range *grown = memory_grow(file->ranges, &reader->range_room, file->range_count,
                                            sizeof *grown, "ranges of a timeline");
    if (!grown)
        return STATUS_NO_MEMORY;
    file->ranges = grown;
    struct trace_range *range = &file->ranges[file->range_count++];
    int peer = small_integer(facts, kind == RANGE_WAIT_HOST ? "for" : "from", -1);
    *range = (struct trace_range){.rank = rank,
                                  .row = small_integer(event, "tid", 0),
                                  .begin_ns = begin_ns,
                                  .end_ns = begin_ns + ns,
                                  .kind = (enum range_kind)kind,
                                  .step = integer(facts, "step", -1),
                                  .bucket = small_integer(facts, "bucket", -1),
                                  .peer_rank = peer};
    if (kind == RANGE_CPU)
        range->step = 1000 * nanoseconds(facts, "ms");
    snprintf(range->name, sizeof range->name, "%s", text(event, "name"));
    return STATUS_OK;
}

static enum status take_flow(struct timeline_reader *reader, int rank, const cJSON *event,
                             bool sends)
{
    struct trace_file *file = reader->file;
    struct trace_message *grown =
        memory_grow(file->messages, &reader->message_room, file->message_count, sizeof *grown,
                    "messages of a timeline");
    if (!grown)
        return STATUS_NO_MEMORY;
    file->messages = grown;
    struct trace_message *message = &file->messages[file->message_count++];
    const cJSON *facts = cJSON_GetObjectItemCaseSensitive(event, "args");
    int row = small_integer(event, "tid", 0);
    int64_t ns = nanoseconds(event, "ts");
    *message = (struct trace_message){.id = strtoull(text(event, "id"), NULL, 16),
                                      .from = sends ? rank : -1,
                                      .from_row = row,
                                      .to = sends ? -1 : rank,
                                      .to_row = row,
                                      .sent_ns = ns,
                                      .received_ns = ns,
                                      .bytes = (uint64_t)integer(facts, "bytes", 0)};
    return STATUS_OK;
}

static enum status take_event(struct timeline_reader *reader, const cJSON *event)
{
    enum status status = STATUS_OK;
    struct trace_rank *rank;
    int64_t number = integer(event, "pid", -1);
    TRY(find_rank(reader, number, &rank));
    switch (text(event, "ph")[0]) {
    case 'M':
        take_facts(reader, rank, event);
        break;
    case 'X':
        status = take_range(reader, (int)number, event,
                            kind_of(text(event, "cat"), text(event, "name")));
        break;
    case 'C':
        if (strcmp(text(event, "name"), TRACE_CPU_NAME) == 0)
            status = take_range(reader, (int)number, event, RANGE_CPU);
        break;
    case 's':
    case 'f':
        status = take_flow(reader, (int)number, event, text(event, "ph")[0] == 's');
        break;
    default:
        break;
    }
out:
    return status;
}

static enum status take_line(struct timeline_reader *reader, const char *line)
{
    if (reader->line == 1 && strncmp(line, "{\"displayTimeUnit\"", 18) != 0)
        return FAIL(
            STATUS_INPUT,
            "%s: is not a timeline of psring train --timeline, or another program has rewritten "
            "it; use the original file",
            reader->path);
    if (reader->line == 1 || line[0] != '{')
        return STATUS_OK;
    cJSON *event = cJSON_Parse(line); /* a comma may follow */
    if (!event)
        return FAIL(STATUS_INPUT,
                    "%s: line %zu is not an event, expected a file of psring train --timeline; "
                    "record it again",
                    reader->path, reader->line);
    enum status status = take_event(reader, event);
    cJSON_Delete(event);
    return status;
}

/* -------- order ------------------------------------------------------------------------------- */

static int compare_ranges(const void *a, const void *b)
{
    const struct trace_range *one = a, *two = b;
    if (one->rank != two->rank)
        return one->rank - two->rank;
    if (one->row != two->row)
        return one->row - two->row;
    if (one->begin_ns != two->begin_ns)
        return one->begin_ns < two->begin_ns ? -1 : 1;
    if (one->end_ns != two->end_ns)
        return one->end_ns > two->end_ns ? -1 : 1;
    return (int)one->kind - (int)two->kind;
}

static int compare_ids(const void *a, const void *b)
{
    const struct trace_message *one = a, *two = b;
    if (one->id != two->id)
        return one->id < two->id ? -1 : 1;
    return (one->from < 0) - (two->from < 0); /* send before receive */
}

static int compare_arrivals(const void *a, const void *b)
{
    const struct trace_message *one = a, *two = b;
    if (one->to != two->to)
        return one->to - two->to;
    if (one->to_row != two->to_row)
        return one->to_row - two->to_row;
    return (one->received_ns > two->received_ns) - (one->received_ns < two->received_ns);
}

static void find_parents(struct trace_file *file)
{
    int64_t open = -1;
    for (size_t i = 0; i < file->range_count; i++) {
        struct trace_range *range = &file->ranges[i];
        if (i > 0 && (range->rank != range[-1].rank || range->row != range[-1].row))
            open = -1;
        while (open >= 0 && file->ranges[open].end_ns < range->end_ns)
            open = file->ranges[open].parent;
        while (open >= 0 && file->ranges[open].end_ns <= range->begin_ns &&
               file->ranges[open].begin_ns < range->begin_ns)
            open = file->ranges[open].parent;
        range->parent = open;
        open = (int64_t)i;
    }
}

/* Joins the send and the receive of one id into one message. */
static void join_messages(struct trace_file *file)
{
    struct trace_message *messages = file->messages;
    size_t kept = 0;
    if (file->message_count == 0)
        return;
    qsort(messages, file->message_count, sizeof *messages, compare_ids);
    for (size_t i = 0; i < file->message_count; i++) {
        struct trace_message *last = &messages[kept > 0 ? kept - 1 : 0];
        if (kept > 0 && last->id == messages[i].id && last->to < 0 && messages[i].from < 0) {
            last->to = messages[i].to;
            last->to_row = messages[i].to_row;
            last->received_ns = messages[i].received_ns;
        } else {
            messages[kept++] = messages[i];
        }
    }
    file->message_count = kept;
    qsort(messages, kept, sizeof *messages, compare_arrivals);
}

/* -------- the file ---------------------------------------------------------------------------- */

static enum status read_lines(struct timeline_reader *reader, FILE *stream)
{
    enum status status = STATUS_OK;
    char *line = NULL;
    size_t room = 0;
    while (status == STATUS_OK && getline(&line, &room, stream) > 0) {
        reader->line++;
        status = take_line(reader, line);
    }
    free(line);
    return status;
}

enum status trace_file_read(struct trace_file *file, const char *path)
{
    enum status status = STATUS_OK;
    struct timeline_reader reader = {.path = path, .file = file};
    *file = (struct trace_file){0};
    FILE *stream = fopen(path, "r");
    if (!stream)
        return FAIL(STATUS_INPUT,
                    "%s: cannot be opened: %s; name the file that psring train --timeline wrote",
                    path, strerror(errno));
    TRY(read_lines(&reader, stream));
    if (!reader.ended)
        TRY(FAIL(STATUS_INPUT, "%s: %s", path,
                 reader.line == 0
                     ? "is empty, because its run failed or has not finished; record it again"
                     : "is cut off, expected its last line; record it again"));
    if (file->range_count > 0)
        qsort(file->ranges, file->range_count, sizeof *file->ranges, compare_ranges);
    find_parents(file);
    join_messages(file);
out:
    fclose(stream);
    if (status != STATUS_OK)
        trace_file_free(file);
    return status;
}

void trace_file_free(struct trace_file *file)
{
    free(file->ranks);
    free(file->ranges);
    free(file->messages);
    *file = (struct trace_file){0};
}

/* -------- looking things up ------------------------------------------------------------------- */

/* The index of the first range that is not before rank and row. */
static size_t lower_bound(const struct trace_file *file, int rank, int row)
{
    size_t low = 0, high = file->range_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct trace_range *range = &file->ranges[middle];
        if (range->rank < rank || (range->rank == rank && range->row < row))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void trace_file_row(const struct trace_file *file, int rank, int row, size_t *first, size_t *end)
{
    *first = lower_bound(file, rank, row);
    *end = lower_bound(file, rank, row + 1);
}

size_t trace_file_disordered(const struct trace_file *file, size_t *beyond, size_t *pairs)
{
    size_t disordered = 0;
    *beyond = *pairs = 0;
    for (size_t i = 0; i < file->message_count; i++) {
        const struct trace_message *message = &file->messages[i];
        if (message->from < 0 || message->to < 0 || message->from >= file->rank_count ||
            message->to >= file->rank_count)
            continue;
        int64_t error_ns =
            file->ranks[message->from].clock_error_ns + file->ranks[message->to].clock_error_ns;
        int64_t early_ns = message->sent_ns - message->received_ns;
        (*pairs)++;
        disordered += early_ns > 0;
        *beyond += early_ns > error_ns;
    }
    return disordered;
}
