#include "experiments/report/link_rate.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"

static double number_of(const struct csv_table *table, size_t row, const char *name)
{
    const char *field = csv_table_field(table, row, name);
    return *field ? strtod(field, NULL) : (double)NAN;
}

/* Of a row that counts machines or the like; 0: it does not say. */
static int count_of(const struct csv_table *table, size_t row, const char *name)
{
    const double most = 1e6;
    double number = number_of(table, row, name);
    return number > 0 && number <= most ? (int)number : 0;
}

/* Rows of one group have one rate. */
enum { GROUP_NONE = -1, GROUP_ALL = 0 };

/* As sweep/rows/{read,rates}.awk, for summary.txt: on real machines and in clusters with a shape,
 * whose links differ, the number of machines; else GROUP_ALL. GROUP_NONE: no row of the series. */
static int group_of(const struct csv_table *table, size_t row)
{
    const char *network = csv_table_field(table, row, "network");
    const char *placement = csv_table_field(table, row, "placement");
    bool own = strcmp(placement, "dedicated") == 0 || strcmp(placement, "mixed") == 0;
    bool shaped = strncmp(network, "vcluster:", 9) == 0 && strchr(network, '/');
    int workers = count_of(table, row, "workers"), hosts = count_of(table, row, "hosts");
    if (strcmp(network, "time-slicing") == 0 || *csv_table_field(table, row, "model_gradients") ||
        strcmp(csv_table_field(table, row, "api"), "library") == 0 ||
        strcmp(csv_table_field(table, row, "device"), "cuda") == 0)
        return GROUP_NONE;
    if (strncmp(network, "hosts", 5) != 0 && !shaped)
        return GROUP_ALL;
    return (hosts > 1 && hosts < workers ? hosts : workers) +
           (own ? count_of(table, row, "servers") : 0);
}

struct probed {
    int group;
    double rate; /* of the group: the median of its probes; NAN: none */
};

static int by_group(const void *a, const void *b)
{
    const struct probed *one = a, *two = b;
    if (one->group != two->group)
        return one->group < two->group ? -1 : 1;
    return (one->rate > two->rate) - (one->rate < two->rate);
}

/* Into `probes`, which has room for all rows, each group's rate; returns how many groups.
 * O(rows log rows). */
static size_t rates_of(const struct csv_table *table, struct probed *probes)
{
    size_t count = 0, groups = 0;
    for (size_t row = 0; row < table->rows; row++) {
        double rate = number_of(table, row, "link_bytes_per_s");
        int group = group_of(table, row);
        if (group != GROUP_NONE && rate > 0 &&
            strcmp(csv_table_field(table, row, "link_source"), "probe") == 0)
            probes[count++] = (struct probed){group, rate};
    }
    if (count > 0)
        qsort(probes, count, sizeof *probes, by_group);
    for (size_t first = 0, next; first < count; first = next) {
        for (next = first + 1; next < count && probes[next].group == probes[first].group;)
            next++;
        const size_t middle = first + (next - first) / 2, other = first + (next - first - 1) / 2;
        probes[groups++] =
            (struct probed){probes[first].group, (probes[middle].rate + probes[other].rate) / 2};
    }
    return groups;
}

static double rate_of(const struct probed *rates, size_t groups, int group)
{
    for (size_t g = 0; g < groups; g++) {
        if (rates[g].group == group)
            return rates[g].rate;
    }
    return (double)NAN;
}

static void scale(const cJSON *columns, cJSON *row, const char *name, double factor)
{
    int at = 0;
    const cJSON *column;
    cJSON_ArrayForEach(column, columns)
    {
        cJSON *value = cJSON_GetArrayItem(row, at++);
        if (strcmp(column->valuestring, name) == 0 && cJSON_IsNumber(value))
            cJSON_SetNumberHelper(value, value->valuedouble * factor);
    }
}

enum status link_rate_settle(cJSON *data, cJSON *bench, const struct csv_table *table)
{
    cJSON *columns = cJSON_GetObjectItem(bench, "columns"), *row_json;
    struct probed *rates = malloc((table->rows + 1) * sizeof *rates);
    double rate = (double)NAN;
    size_t row = 0;
    if (!rates) {
        log_error("psring report: out of memory");
        return STATUS_NO_MEMORY;
    }
    const size_t groups = rates_of(table, rates);
    cJSON_ArrayForEach(row_json, cJSON_GetObjectItem(bench, "rows"))
    {
        double own = number_of(table, row, "link_bytes_per_s");
        double settled = rate_of(rates, groups, group_of(table, row));
        if (own > 0 && settled > 0) {
            rate = settled;
            scale(columns, row_json, "efficiency", own / rate);
            scale(columns, row_json, "theory_time_us", own / rate);
        }
        row++;
    }
    cJSON_AddItemToObject(data, "link_bytes_per_s",
                          isfinite(rate) ? cJSON_CreateNumber(rate) : cJSON_CreateNull());
    free(rates);
    return STATUS_OK;
}
