#include "common/base/options.h"

#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/status.h"
#include "common/base/text.h"

enum { OPTIONS_MAX = 96, LETTER_BASE = 256, HELP_INDEX = OPTIONS_MAX, HINT_BYTES = 64 };

static void *field_of(const struct option_spec *spec, void *config)
{
    return (char *)config + spec->offset;
}

static const void *value_of(const struct option_spec *spec, const void *config)
{
    return (const char *)config + spec->offset;
}

static bool in_range(const struct option_spec *spec, double value)
{
    return (spec->min == 0 && spec->max == 0) || (value >= spec->min && value <= spec->max);
}

/* "a whole number from 8 to 1048576", or the words of a choice; for messages and --help. */
static void describe_expected(const struct option_spec *spec, char *text, size_t size)
{
    if (spec->type == OPTION_CHOICE) {
        struct line line = line_in(text, size);
        for (int i = 0; spec->choices[i]; i++)
            line_add(&line, "%s%s", i ? " | " : "", spec->choices[i]);
        return;
    }
    const char *kind = spec->type == OPTION_DOUBLE ? "a number"
                       : spec->type == OPTION_RATE ? "bits/s (or with kbit, mbit or gbit: 25gbit)"
                       : spec->type == OPTION_SIZE ? "a size in bytes (suffix k, m or g)"
                                                   : "a whole number";
    if (spec->min == 0 && spec->max == 0)
        snprintf(text, size, "%s", kind);
    else
        snprintf(text, size, "%s from %.15g to %.15g", kind, spec->min, spec->max);
}

static bool parse_size(const char *text, uint64_t *value)
{
    static const char suffixes[] = "kmg"; /* each 1024 times the one before */
    char *end = NULL;
    errno = 0;
    if (!isdigit((unsigned char)text[0]))
        return false;
    uint64_t number = strtoull(text, &end, 10);
    const char *suffix = *end ? strchr(suffixes, tolower((unsigned char)*end)) : NULL;
    int shift = suffix ? 10 * (int)(suffix - suffixes + 1) : 0;
    end += suffix != NULL;
    if (errno || *end || number > UINT64_MAX >> shift)
        return false;
    *value = number << shift;
    return true;
}

static bool parse_double(const char *text, double *value, char **end)
{
    errno = 0;
    *value = strtod(text, end);
    return !errno && *end != text && *value - *value == 0; /* finite */
}

bool options_parse_rate(const char *text, double *bits)
{
    static const struct {
        const char *unit;
        double bits;
    } units[] = {{"", 1}, {"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}};
    char *end = NULL;
    double number;
    if (!parse_double(text, &number, &end) || number < 0)
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(end, units[i].unit) == 0) {
            *bits = number * units[i].bits;
            return *bits <= DBL_MAX;
        }
    }
    return false;
}

static bool parse_choice(const struct option_spec *spec, const char *text, int *index)
{
    for (int i = 0; spec->choices[i]; i++) {
        if (strcmp(spec->choices[i], text) == 0) {
            *index = i;
            return true;
        }
    }
    return false;
}

/* Stores `text` in the field. False: not a value of the option's type and range. */
static bool store(const struct option_spec *spec, const char *text, void *field)
{
    char *end = NULL;
    errno = 0;
    switch (spec->type) {
    case OPTION_FLAG:
        *(bool *)field = strcmp(text, "true") == 0;
        return true;
    case OPTION_INT: {
        int64_t number = strtoll(text, &end, 10);
        if (errno || end == text || *end || !in_range(spec, (double)number))
            return false;
        *(int64_t *)field = number;
        return true;
    }
    case OPTION_SIZE: {
        uint64_t number;
        if (!parse_size(text, &number) || !in_range(spec, (double)number))
            return false;
        *(uint64_t *)field = number;
        return true;
    }
    case OPTION_DOUBLE: {
        double number;
        if (!parse_double(text, &number, &end) || *end || !in_range(spec, number))
            return false;
        *(double *)field = number;
        return true;
    }
    case OPTION_RATE: {
        double bits;
        if (!options_parse_rate(text, &bits) || !in_range(spec, bits))
            return false;
        *(double *)field = bits;
        return true;
    }
    case OPTION_STRING:
        *(const char **)field = text;
        return true;
    case OPTION_CHOICE:
        return parse_choice(spec, text, field);
    }
    return false;
}

static enum status apply(const struct options *options, const struct option_spec *spec,
                         const char *text, void *config)
{
    if (spec->missing && (!spec->missing_word || strcmp(text, spec->missing_word) == 0))
        return FAIL(STATUS_USAGE, "--%s%s%s: %s", spec->name, spec->missing_word ? " " : "",
                    spec->missing_word ? spec->missing_word : "", spec->missing);
    if (store(spec, text, field_of(spec, config)))
        return STATUS_OK;
    char expected[256], hint[HINT_BYTES];
    struct nearest nearest = nearest_to(text);
    for (int i = 0; spec->type == OPTION_CHOICE && spec->choices[i]; i++)
        nearest_offer(&nearest, spec->choices[i]);
    for (const struct option_renamed *renamed = options->renamed; renamed && renamed->old;
         renamed++) {
        size_t length = strlen(spec->name);
        if (strncmp(renamed->old, spec->name, length) == 0 && renamed->old[length] == '=' &&
            strcmp(renamed->old + length + 1, text) == 0)
            nearest = (struct nearest){.text = text, .word = renamed->now};
    }
    describe_expected(spec, expected, sizeof expected);
    return FAIL(STATUS_USAGE, "--%s: found '%s', expected %s%s; see %s --help", spec->name, text,
                expected, nearest_hint(&nearest, "", hint, sizeof hint), options->command);
}

static const struct option_spec *spec_named(const struct options *options, const char *name,
                                            size_t length)
{
    const struct option_spec *spec = options->specs;
    while (spec->name && (strlen(spec->name) != length || strncmp(spec->name, name, length) != 0))
        spec++;
    return spec->name ? spec : NULL;
}

/* Runs before getopt_long, which would take an old name for the beginning of a longer one. */
static enum status check_renamed(const struct options *options, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i] + 2;
        size_t length = strcspn(argv[i], "=") - 2;
        if (strncmp(argv[i], "--", 2) != 0 || spec_named(options, name, length))
            continue;
        for (const struct option_renamed *renamed = options->renamed; renamed && renamed->old;
             renamed++) {
            if (strlen(renamed->old) != length || strncmp(renamed->old, name, length) != 0 ||
                !spec_named(options, renamed->now, strlen(renamed->now)))
                continue;
            return FAIL(STATUS_USAGE, "--%s: no such option (did you mean --%s?); see %s --help",
                        renamed->old, renamed->now, options->command);
        }
    }
    return STATUS_OK;
}

/* The tables that getopt_long wants; `val` is the index into options->specs. */
static void build_tables(const struct options *options, struct option *longs, char *shorts)
{
    int count = 0;
    *shorts++ = ':'; /* a missing value is reported as ':' */
    for (; options->specs[count].name; count++) {
        const struct option_spec *spec = &options->specs[count];
        CHECK(count < OPTIONS_MAX);
        bool takes_value = spec->type != OPTION_FLAG;
        int argument = spec->bare    ? optional_argument
                       : takes_value ? required_argument
                                     : no_argument;
        longs[count] = (struct option){spec->name, argument, NULL, LETTER_BASE + count};
        if (spec->letter) {
            *shorts++ = spec->letter;
            if (takes_value)
                *shorts++ = ':';
        }
    }
    longs[count++] = (struct option){"help", no_argument, NULL, LETTER_BASE + HELP_INDEX};
    longs[count] = (struct option){0};
    *shorts++ = 'h';
    *shorts = '\0';
}

static const struct option_spec *find_spec(const struct options *options, int code)
{
    if (code >= LETTER_BASE)
        return &options->specs[code - LETTER_BASE];
    for (const struct option_spec *spec = options->specs; spec->name; spec++) {
        if (spec->letter == code)
            return spec;
    }
    return NULL;
}

const char *options_value_name(const struct option_spec *spec, char *text, size_t size)
{
    if (spec->metavar)
        return spec->metavar;
    if (spec->type != OPTION_CHOICE)
        return spec->type == OPTION_FLAG ? "" : "N";
    describe_expected(spec, text, size);
    return text;
}

static void print_help(const struct options *options)
{
    printf("usage: %s%s%s [OPTION...]\n%s\n\n", options->command, options->operands ? " " : "",
           options->operands ? options->operands : "", options->summary);
    const char *group = NULL;
    for (const struct option_spec *spec = options->specs; spec->name; spec++) {
        if (!spec->help)
            continue;
        if (spec->group && (!group || strcmp(spec->group, group) != 0))
            printf("%s%s:\n", group ? "\n" : "", spec->group);
        group = spec->group;
        char left[512], choices[256];
        const char *metavar = options_value_name(spec, choices, sizeof choices);
        char letter[8] = "    ";
        if (spec->letter)
            snprintf(letter, sizeof letter, "-%c, ", spec->letter);
        snprintf(left, sizeof left, spec->bare ? "%s--%s[=%s]" : "%s--%s %s", letter, spec->name,
                 metavar);
        printf("  %-34s", left);
        if (strlen(left) > 34)
            printf("\n%36s", ""); /* the sentence still starts in its column */
        printf(" %s", spec->help);
        if (spec->initial && spec->type != OPTION_FLAG && spec->initial[0])
            printf(" [%s]", spec->initial);
        putchar('\n');
    }
    printf("%s  %-34s %s\n", group ? "\n" : "", "-h, --help", "Print this and exit.");
}

/* getopt has just passed one of these: a long option that does not exist, a value for an option
 * that takes none, or an unknown letter. */
static void log_no_such_option(const struct options *options, const char *found)
{
    char letter[] = {'-', (char)optopt, '\0'}, name[HINT_BYTES], hint[HINT_BYTES];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(found, "="), found);
    if (optopt >= LETTER_BASE) {
        log_error("%s: takes no value, found '%s'; see %s --help", name,
                  found + strcspn(found, "=") + 1, options->command);
        return;
    }
    struct nearest nearest = nearest_to(name + strspn(name, "-"));
    for (const struct option_spec *spec = options->specs; !optopt && spec->name; spec++) {
        if (spec->help)
            nearest_offer(&nearest, spec->name);
    }
    log_error("%s: no such option%s; see %s --help", optopt ? letter : found,
              nearest_hint(&nearest, "--", hint, sizeof hint), options->command);
}

/* argv has a word in place of an option: it may be the value of an option that takes it only after
 * '='. */
static void log_not_an_option(const struct options *options, const char *found)
{
    for (const struct option_spec *spec = options->specs; spec->name; spec++) {
        int word;
        if (!spec->bare || !parse_choice(spec, found, &word))
            continue;
        log_error("%s: not an option; for a value of --%s write --%s=%s", found, spec->name,
                  spec->name, found);
        return;
    }
    log_error("%s: not an option; see %s --help", found, options->command);
}

/* "--recipe --data": the option in front has taken an option for its value. */
static bool is_option(const struct options *options, const char *text)
{
    size_t length = strcspn(text, "=");
    if (strncmp(text, "--", 2) != 0)
        return false;
    if (strcmp(text, "--help") == 0)
        return true;
    return spec_named(options, text + 2, length - 2) != NULL;
}

enum status options_parse(const struct options *options, int argc, char **argv, void *config,
                          bool *helped)
{
    struct option longs[OPTIONS_MAX + 2];
    char shorts[2 * OPTIONS_MAX + 4];
    build_tables(options, longs, shorts);
    *helped = false;
    for (const struct option_spec *spec = options->specs; spec->name; spec++) {
        if (spec->initial)
            CHECK(store(spec, spec->initial, field_of(spec, config)));
    }
    if (check_renamed(options, argc, argv) != STATUS_OK)
        return STATUS_USAGE;
    opterr = 0;
    optind = 0;
    for (;;) {
        int code = getopt_long(argc, argv, shorts, longs, NULL);
        if (code == -1)
            break;
        if (code == 'h' || code == LETTER_BASE + HELP_INDEX) {
            print_help(options);
            *helped = true;
            return STATUS_OK;
        }
        if (code == ':')
            return FAIL(STATUS_USAGE, "%s: a value is missing; see %s --help", argv[optind - 1],
                        options->command);
        if (code == '?') {
            log_no_such_option(options, argv[optind - 1]);
            return STATUS_USAGE;
        }
        const struct option_spec *spec = find_spec(options, code);
        if (optarg && optarg == argv[optind - 1] && is_option(options, optarg))
            return FAIL(STATUS_USAGE, "--%s: a value is missing before %s; see %s --help",
                        spec->name, optarg, options->command);
        const char *text = spec->type == OPTION_FLAG ? "true" : optarg ? optarg : spec->bare;
        enum status status = apply(options, spec, text, config);
        if (status != STATUS_OK)
            return status;
        if (options->given)
            options->given[spec - options->specs] = true;
    }
    if (options->operands) {
        for (int i = 0; i < options->operand_count && optind + i < argc; i++)
            options->found[i] = argv[optind + i];
        if (argc - optind == options->operand_count)
            return STATUS_OK;
        return FAIL(STATUS_USAGE, "%s: %s; see %s --help", options->command,
                    options->operands_error, options->command);
    }
    if (optind < argc) {
        log_not_an_option(options, argv[optind]);
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

enum status options_set(const struct options *options, const char *name, const char *text,
                        void *config)
{
    const struct option_spec *spec = spec_named(options, name, strlen(name));
    CHECK(spec);
    return apply(options, spec, text, config);
}

/* With nine digits, or with all if the value needs them: read again, the text gives the value. */
static void write_double(double value, char *text, size_t size)
{
    snprintf(text, size, "%.9g", value);
    double again = strtod(text, NULL);
    if (again < value || again > value)
        snprintf(text, size, "%.17g", value);
}

void options_visit(const struct options *options, const void *config,
                   void (*visit)(void *context, const char *name, const char *value), void *context)
{
    for (const struct option_spec *spec = options->specs; spec->name; spec++) {
        const void *field = value_of(spec, config);
        char text[64];
        const char *value = text;
        switch (spec->type) {
        case OPTION_FLAG:
            value = *(const bool *)field ? "true" : "false";
            break;
        case OPTION_INT:
            snprintf(text, sizeof text, "%" PRId64, *(const int64_t *)field);
            break;
        case OPTION_SIZE:
            snprintf(text, sizeof text, "%" PRIu64, *(const uint64_t *)field);
            break;
        case OPTION_DOUBLE:
        case OPTION_RATE:
            write_double(*(const double *)field, text, sizeof text);
            break;
        case OPTION_STRING:
            value = *(const char *const *)field ? *(const char *const *)field : "";
            break;
        case OPTION_CHOICE:
            value = spec->choices[*(const int *)field];
            break;
        }
        visit(context, spec->name, value);
    }
}
