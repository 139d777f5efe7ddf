/*
 * Command-line options from one table. The table is used to parse, to validate, to print --help and
 * to list all values for the result files. Long options (--name VALUE, --name=VALUE) and optional
 * one-letter forms.
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

/* One line of the table. `offset` is the place of the value in the config struct. */
struct option_spec {
    const char *name;           /* long name without dashes */
    char letter;                /* one-letter form or 0 */
    enum option_type type;      /* decides the C type at `offset` */
    size_t offset;              /* offsetof(struct config, field) */
    const char *initial;        /* default, parsed like user input; NULL = leave the field alone */
    double min, max;            /* inclusive, for the numeric types; both 0 = any */
    const char *const *choices; /* OPTION_CHOICE: NULL-terminated list of words */
    const char *bare;           /* OPTION_CHOICE: the word for --NAME without a value; another word
                                 * is given as --NAME=WORD. NULL: a word must follow */
    const char *metavar;        /* the value's name in --help; NULL = derived */
    const char *help;           /* one sentence; NULL = not listed */
    const char *group;          /* the heading in --help and the manual; NULL: none */
    const char *missing;        /* why this build lacks the option, or its word `missing_word`, and
                                 * what to do. NULL: the build has it */
    const char *missing_word;   /* the word that this build's `choices` lack */
};

/* A name that the table no longer has. If argv has `old` and the table has `now` but not `old`, the
 * error names `now`. "OPTION=WORD" in `old` is a word of a choice; `now` is then the new word. */
struct option_renamed {
    const char *old, *now;
};

struct options {
    const char *command;                  /* "psring train", for messages */
    const char *summary;                  /* printed under the usage line of --help */
    const struct option_spec *specs;      /* ended by name == NULL */
    const char *operands;                 /* (optional) the operands in the usage line: "FILE" */
    const char *operands_error;           /* logged if argv has another number of operands */
    const char **found;                   /* (operand_count): the operands in argv, borrowed */
    int operand_count;                    /* the number that argv must have */
    const struct option_renamed *renamed; /* (optional) ended by old == NULL */
    bool *given;                          /* (optional) by spec: set to true if argv has it */
};

/*
 * Fills `config` with the defaults, then from argv[1..], which may hold only options and operands.
 * On --help prints help to stdout and sets *helped. Errors (STATUS_USAGE) have been logged; they
 * name the option, the value and what is expected. argv may be permuted.
 */
enum status options_parse(const struct options *options, int argc, char **argv, void *config,
                          bool *helped);

/* Sets one option to `text` as argv would, but does not count it as given. */
enum status options_set(const struct options *options, const char *name, const char *text,
                        void *config);

/* Parses bits per second: "25e9", or with kbit, mbit or gbit (powers of 1000): "25gbit". Returns
 * false and leaves *bits unchanged if `text` is not a rate. */
bool options_parse_rate(const char *text, double *bits);

/* The value's name in --help: "FILE", "on | off", "N"; "" for a flag. Returns `text` or a string
 * that belongs to the option. */
const char *options_value_name(const struct option_spec *spec, char *text, size_t size);

/* Calls `visit` for each option with its current value as text, in table order. options_set takes
 * the text back to the same value. */
void options_visit(const struct options *options, const void *config,
                   void (*visit)(void *context, const char *name, const char *value),
                   void *context);

#endif
