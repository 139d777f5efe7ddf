#include "experiments/trace/trace_facts.h"

#include <stddef.h>
#include <string.h>

/* Its place, as `type`. */
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
    const char *at = (const char *)facts + fact->offset;
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

void trace_facts_read(struct trace_file *file, const cJSON *arguments)
{
    struct bottleneck_facts *facts = &file->facts;
    *facts = (struct bottleneck_facts){0};
    const cJSON *backend = cJSON_GetObjectItemCaseSensitive(arguments, "backend");
    snprintf(file->backend, sizeof file->backend, "%s",
             cJSON_IsString(backend) ? backend->valuestring : "averaging");
    for (size_t f = 0; f < FACTS; f++) {
        char *at = (char *)facts + list[f].offset;
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
