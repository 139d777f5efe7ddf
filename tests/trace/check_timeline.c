/*
 * check_timeline FILE: checks that a file conforms to Chrome's "Trace Event Format" and Perfetto.
 * Every event has its fields. Ranges of a row nest. A flow goes forward from one range to another.
 * Rows have names. Prints the number of events of each kind: "RANK CATEGORY COUNT". Exits with 1,
 * and the reason, if a check fails.
 */
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct event {
    const char *phase, *name, *category, *id;
    int pid, tid;
    double begin, end; /* us */
    const cJSON *arguments;
};

static struct event *events;
static size_t count;

static void fail(const char *what, const struct event *event)
{
    if (event)
        printf("%s: %s '%s' of row %d in process %d at %.3f us\n", what, event->phase, event->name,
               event->tid, event->pid, event->begin);
    else
        printf("%s\n", what);
    exit(1);
}

static cJSON *parse(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        fail("cannot be opened", NULL);
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    char *text = malloc(size + 1);
    if (!text || fread(text, 1, size, file) != size)
        fail("cannot be read", NULL);
    text[size] = '\0';
    fclose(file);
    cJSON *document = cJSON_Parse(text);
    free(text);
    if (!document)
        fail("is not JSON", NULL);
    return document;
}

static const char *text_of(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return item ? cJSON_GetStringValue(item) : NULL;
}

static double number_of(const cJSON *object, const char *key, bool *there)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    *there = *there && cJSON_IsNumber(item);
    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static void take(const cJSON *item)
{
    struct event *event = &events[count++];
    bool whole = true;
    event->phase = text_of(item, "ph");
    event->name = text_of(item, "name");
    event->category = text_of(item, "cat");
    event->id = text_of(item, "id");
    event->arguments = cJSON_GetObjectItemCaseSensitive(item, "args");
    event->pid = (int)number_of(item, "pid", &whole);
    event->tid = (int)number_of(item, "tid", &whole);
    if (!event->phase || !event->name || !whole || !strchr("XsfCM", event->phase[0]))
        fail("lacks a field", event->phase && event->name ? event : NULL);
    if (event->phase[0] != 'M')
        event->begin = number_of(item, "ts", &whole);
    event->end = event->begin;
    if (event->phase[0] == 'X')
        event->end += number_of(item, "dur", &whole);
    bool has_args = cJSON_IsObject(event->arguments);
    if (!whole || event->end < event->begin || (strchr("XCM", event->phase[0]) && !has_args) ||
        (strchr("Xsf", event->phase[0]) && !event->category) ||
        (strchr("sf", event->phase[0]) && !event->id))
        fail("lacks a field", event);
    if (event->phase[0] == 'f' && (!text_of(item, "bp") || strcmp(text_of(item, "bp"), "e") != 0))
        fail("binds to the next range", event);
    for (const cJSON *value = has_args ? event->arguments->child : NULL;
         value && event->phase[0] == 'C'; value = value->next) {
        if (!cJSON_IsNumber(value))
            fail("counts no number", event);
    }
}

/* Sorts by row, then time, outer ranges first. A flow comes after the ranges that begin with it. */
static int compare(const void *a, const void *b)
{
    const struct event *one = a, *two = b;
    if (one->pid != two->pid)
        return one->pid - two->pid;
    if (one->tid != two->tid)
        return one->tid - two->tid;
    if (one->begin != two->begin)
        return one->begin < two->begin ? -1 : 1;
    bool range[2] = {one->phase[0] == 'X', two->phase[0] == 'X'};
    if (range[0] != range[1])
        return range[0] ? -1 : 1;
    return (one->end < two->end) - (one->end > two->end);
}

/* Compares with a tolerance: sums of decimal fractions differ in rounding, and 1 ns is the
 * resolution. */
static bool before(double one, double two)
{
    return one < two - 0.0005;
}

static void check_nesting(void)
{
    enum { DEPTH = 32 };
    const struct event *open[DEPTH];
    int depth = 0;
    for (size_t i = 0; i < count; i++) {
        const struct event *event = &events[i];
        if (i > 0 && (event->pid != event[-1].pid || event->tid != event[-1].tid))
            depth = 0;
        if (!strchr("Xsf", event->phase[0]))
            continue;
        while (depth > 0 && (event->phase[0] == 'X' ? !before(event->begin, open[depth - 1]->end)
                                                    : before(open[depth - 1]->end, event->begin)))
            depth--;
        if (event->phase[0] != 'X' && depth == 0)
            fail("a flow outside all ranges", event);
        if (event->phase[0] != 'X')
            continue;
        if (depth > 0 && before(open[depth - 1]->end, event->end))
            fail("ends after its enclosing range", event);
        if (depth == DEPTH)
            fail("too deep", event);
        open[depth++] = event;
    }
}

static int compare_flows(const void *a, const void *b)
{
    const struct event *one = *(const struct event *const *)a,
                       *two = *(const struct event *const *)b;
    int order = strcmp(one->id, two->id);
    return order ? order : two->phase[0] - one->phase[0]; /* s, then f */
}

/* Prints the number of flows, and of flows with one end because the other was not recorded. */
static void check_flows(void)
{
    const struct event **flows = calloc(count + 1, sizeof(struct event *));
    size_t ends = 0, pairs = 0;
    for (size_t i = 0; i < count; i++) {
        if (strchr("sf", events[i].phase[0]))
            flows[ends++] = &events[i];
    }
    qsort(flows, ends, sizeof *flows, compare_flows);
    for (size_t i = 1; i < ends; i++) {
        const struct event *one = flows[i - 1], *two = flows[i];
        if (strcmp(one->id, two->id) != 0)
            continue;
        if (one->phase[0] == two->phase[0])
            fail("a flow has this end twice", two);
        if (strcmp(one->name, two->name) != 0 || strcmp(one->category, two->category) != 0)
            fail("a flow's ends have two names", two);
        if (before(two->begin, one->begin))
            fail("received before it was sent", two);
        pairs++;
    }
    printf("all flows %zu\nall loose %zu\n", pairs, ends - 2 * pairs);
    free(flows);
}

/* Whether an event of a row (row 0: of its process) gives the name. The events of a row are
 * adjacent. */
static bool has_name(size_t first, size_t end, const char *kind)
{
    for (size_t i = first; i < end; i++) {
        if (events[i].phase[0] == 'M' && strcmp(events[i].name, kind) == 0 &&
            text_of(events[i].arguments, "name"))
            return true;
    }
    return false;
}

static void check_names(void)
{
    bool process = false;
    for (size_t first = 0, end; first < count; first = end) {
        bool ranges = false;
        for (end = first; end < count && events[end].pid == events[first].pid &&
                          events[end].tid == events[first].tid;
             end++)
            ranges = ranges || events[end].phase[0] == 'X';
        if (events[first].tid == 0)
            process = has_name(first, end, "process_name");
        if (ranges && !process)
            fail("a process without a name", &events[first]);
        if (ranges && !has_name(first, end, "thread_name"))
            fail("a row without a name", &events[first]);
    }
}

static const char *key_of(const struct event *event)
{
    return event->phase[0] == 'X' ? event->category : event->name;
}

static int compare_keys(const void *a, const void *b)
{
    const struct event *one = a, *two = b;
    if (one->pid != two->pid)
        return one->pid - two->pid;
    if (one->phase[0] != two->phase[0])
        return one->phase[0] - two->phase[0];
    return strcmp(key_of(one), key_of(two));
}

static void print_counts(void)
{
    qsort(events, count, sizeof *events, compare_keys);
    for (size_t first = 0, end; first < count; first = end) {
        end = first + 1;
        if (!strchr("XC", events[first].phase[0]))
            continue;
        while (end < count && compare_keys(&events[first], &events[end]) == 0)
            end++;
        printf("%d %s %zu\n", events[first].pid, key_of(&events[first]), end - first);
    }
}

int main(int argc, char **argv)
{
    if (argc != 2)
        fail("usage: check_timeline FILE", NULL);
    cJSON *document = parse(argv[1]);
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(document, "traceEvents"), *item;
    if (!cJSON_IsArray(list))
        fail("has no traceEvents", NULL);
    events = calloc((size_t)cJSON_GetArraySize(list) + 1, sizeof *events);
    cJSON_ArrayForEach(item, list) take(item);
    qsort(events, count, sizeof *events, compare);
    check_nesting();
    check_flows();
    check_names();
    print_counts();
    free(events);
    cJSON_Delete(document);
    return 0;
}
