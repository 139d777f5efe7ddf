/*
 * Command-line options from one table: it parses, validates, prints --help and lists every value
 * for the result files. Long options (--name VALUE, --name=VALUE) and optional one-letter forms.
 */
#ifndef PSRING_COMMON_BASE_OPTIONS_H
#define PSRING_COMMON_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"

enum option_type {
    OPTION_FLAG,   /* bool; no value */
    OPTION_INT,    /* int64_t in [min, max] */
    OPTION_SIZE,   /* uint64_t bytes in [min, max]; suffixes k, m, g (powers of 1024) */
    OPTION_DOUBLE, /* double in [min, max] */
    OPTION_RATE,   /* double in [min, max], bits per second: options_parse_rate */
    OPTION_STRING, /* const char *, borrowed from argv */
    OPTION_CHOICE, /* int: index into `choices` */
};

/* One line of the table. `offset` is where the value lives in the config struct. */
struct option_spec {
    const char *name;           /* long name without dashes */
    char letter;                /* one-letter form or 0 */
    enum option_type type;      /* decides the C type at `offset` */
    size_t offset;              /* offsetof(struct config, field) */
    const char *initial;        /* default, parsed like user input; NULL = leave the field alone */
    double min, max;            /* inclusive, for the numeric types; both 0 = any */
    const char *const *choices; /* OPTION_CHOICE: NULL-terminated list of words */
    const char *bare;           /* OPTION_CHOICE: the word that --NAME alone stands for; another one
                                 * is given as --NAME=WORD. NULL: a word must follow */
    const char *metavar;        /* what --help shows for the value; NULL = derived */
    const char *help;           /* one sentence; NULL = not listed */
    const char *group;          /* the heading above it in --help and the manual; NULL: none */
    const char *missing;        /* why this build has no such option, and what to do; or, with
                                 * `missing_word`, no such word of it. NULL: it has */
    const char *missing_word;   /* a word that `choices` is then without */
};

/* A name that the table no longer has. Where the table has `now` and not `old`, argv's `old` is an
 * error that names `now`. "OPTION=WORD" stands for a word of a choice, and `now` then for the new
 * word. */
struct option_renamed {
    const char *old, *now;
};

struct options {
    const char *command;             /* "psring train", for messages */
    const char *summary;             /* printed under the usage line of --help */
    const struct option_spec *specs; /* ended by name == NULL */
    const char *operands;            /* (optional) "FILE": the usage line's words beside options */
    const char *operands_error;      /* logged where argv has another number of them */
    const char **found;              /* (operand_count): the operands of argv, borrowed */
    int operand_count;               /* that argv must have */
    const struct option_renamed *renamed; /* (optional) ended by old == NULL */
    bool *given;                          /* (optional) by spec: set to true where argv has it */
};

/*
 * Fills `config` with the defaults, then from argv[1..], in which nothing but options and operands
 * may stand. Prints help to stdout and sets *helped on --help. Errors (STATUS_USAGE) have been
 * logged, naming option, value and what is expected. argv may be permuted.
 */
enum status options_parse(const struct options *options, int argc, char **argv, void *config,
                          bool *helped);

/* Sets one option to `text`, as argv would, but does not count it as given. */
enum status options_set(const struct options *options, const char *name, const char *text,
                        void *config);

/* "25e9", or with kbit, mbit or gbit (powers of 1000), as "25gbit", in bits per second. False if
 * `text` is none; *bits is then left as it is. */
bool options_parse_rate(const char *text, double *bits);

/* What --help shows for the option's value: "FILE", "on | off", "N"; "" for a flag. Returns `text`
 * or a string of the option's. */
const char *options_value_name(const struct option_spec *spec, char *text, size_t size);

/* Calls `visit` for each option with its current value as text, in table order. */
void options_visit(const struct options *options, const void *config,
                   void (*visit)(void *context, const char *name, const char *value),
                   void *context);

#endif
