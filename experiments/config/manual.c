#include "experiments/config/config_table.h"

#include <ctype.h>
#include <string.h>

/* -------- the manual page --------------------------------------------------------------------- */

/* Escapes text for roff: hyphens stay copyable, and no line starts a request. */
static void print_text(FILE *out, const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", out);
    for (; *text; text++) {
        if (*text == '-')
            fputs("\\-", out);
        else if (*text == '\\')
            fputs("\\e", out);
        else
            putc(*text, out);
    }
}

/* The option in bold, as the user types it, then its explanation. */
static void print_option(FILE *out, const struct option_spec *spec)
{
    char words[256];
    const char *value = options_value_name(spec, words, sizeof words);
    fputs(".TP\n\\fB", out);
    if (spec->letter)
        fprintf(out, "\\-%c\\fR, \\fB", spec->letter);
    fputs("\\-\\-", out);
    print_text(out, spec->name);
    fputs("\\fR", out);
    if (value[0]) {
        fputs(spec->bare ? "[=\\fI" : " \\fI", out);
        print_text(out, value);
        fputs(spec->bare ? "\\fR]" : "\\fR", out);
    }
    putc('\n', out);
    print_text(out, spec->help);
    if (spec->initial && spec->type != OPTION_FLAG && spec->initial[0]) {
        fputs(" Default: ", out);
        print_text(out, spec->initial);
        putc('.', out);
    }
    putc('\n', out);
}

static void print_command(FILE *out, const struct manual_command *command)
{
    struct config_table table;
    if (!command->options) {
        fprintf(out, ".SS psring %s \\fIARGUMENT\\fR...\n", command->name);
        print_text(out, command->summary);
        fprintf(out, "\nIts arguments: \\fBpsring %s \\-\\-help\\fR.\n", command->name);
        return;
    }
    config_table_init(&table, command->options);
    fprintf(out, ".SS psring %s [\\fIOPTION\\fR...]\n", command->name);
    print_text(out, table.options.summary);
    putc('\n', out);
    const char *group = NULL;
    for (const struct option_spec *spec = table.options.specs; spec->name; spec++) {
        if (!spec->help)
            continue;
        if (spec->group && (!group || strcmp(spec->group, group) != 0)) {
            fputs(".PP\n\\fI", out);
            print_text(out, spec->group);
            fputs("\\fR\n", out);
        }
        group = spec->group;
        print_option(out, spec);
    }
}

static const char head[] =
    ".TH PSRING 1 \"\" \"psring " PSRING_VERSION "\"\n"
    ".SH NAME\n"
    "psring \\- parameter server against ring all\\-reduce, measured by training a small CNN\n"
    ".SH SYNOPSIS\n"
    ".B psring\n"
    ".I COMMAND\n"
    "[\\fIOPTION\\fR...]\n"
    ".br\n"
    ".B mpirun \\-n\n"
    ".I N\n"
    ".B psring\n"
    ".I COMMAND\n"
    "[\\fIOPTION\\fR...]\n"
    ".SH DESCRIPTION\n"
    "Trains a convolutional network on MNIST with several workers. Parameter servers or a ring\n"
    "all\\-reduce average the gradients, and psring measures both. Start ranks with mpirun or\n"
    "srun, or each by hand with \\fB\\-\\-rendezvous\\fR.\n"
    ".PP\n"
    "\\fBpsring help\\fR \\fICOMMAND\\fR prints a command's options, like\n"
    "\\fBpsring\\fR \\fICOMMAND\\fR \\fB\\-\\-help\\fR.\n"
    "\\fBpsring \\-\\-version\\fR prints the version, and \\fBpsring \\-\\-manual\\fR this page.\n"
    "\\fBpsring \\-\\-completion\\fR prints a script that completes options in bash:\n"
    "\\fBsource <(psring \\-\\-completion)\\fR.\n"
    ".SH COMMANDS\n";

static const char tail[] =
    ".SH EXIT STATUS\n"
    ".TP\n"
    "0\n"
    "success\n"
    ".TP\n"
    "1\n"
    "an error, which the last line on standard error names\n"
    ".TP\n"
    "2\n"
    "bad usage\n"
    ".TP\n"
    "75\n"
    "a signal stopped training, and psring saved a checkpoint: continue with\n"
    "\\fB\\-\\-resume\\fR\n"
    ".PP\n"
    "mpirun returns the code of the rank that ends first with a code other than 0. If mpirun\n"
    "itself gets SIGTERM or SIGINT, it returns 1, whether the ranks have saved or not. mpirun\n"
    "passes SIGUSR1 on and returns the 75 of its ranks. \\fBmpirun \\-\\-quiet\\fR hides the "
    "lines\n"
    "that mpirun adds to an error of psring.\n"
    ".SH ENVIRONMENT\n"
    ".TP\n"
    "PSRING_DATA, PSRING_NETWORK, PSRING_LINK_BITS, PSRING_RACKS, PSRING_BIND_SUBNET\n"
    "give the defaults of \\fB\\-\\-data\\fR, \\fB\\-\\-network\\fR, \\fB\\-\\-link\\-rate\\fR,\n"
    "\\fB\\-\\-racks\\fR and\n"
    "\\fB\\-\\-subnet\\fR\n"
    ".TP\n"
    "PSRING_TOKEN\n"
    "gives the default of \\fB\\-\\-token\\fR; without both, elastic jobs use\n"
    "\\fI~/.psring\\-token\\fR, and ranks of torchrun use TORCHELASTIC_RUN_ID\n"
    ".TP\n"
    "PSRING_SECURE\n"
    "gives the default of \\fB\\-\\-secure\\fR\n"
    ".TP\n"
    "RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT\n"
    "set by torchrun: replace \\fB\\-\\-rank\\fR, \\fB\\-\\-world\\-size\\fR and\n"
    "\\fB\\-\\-rendezvous\\fR\n"
    ".SH EXAMPLES\n"
    ".EX\n"
    "mpirun \\-n 4 psring train \\-\\-backend ring \\-\\-data \\fIDIR\\fR\n"
    "mpirun \\-n 5 psring bench \\-\\-backend ps \\-\\-servers 1\n"
    "srun \\-K \\-\\-mpi=pmix \\-N 4 psring train \\-\\-data \\fIDIR\\fR\n"
    ".EE\n"
    ".SH SEE ALSO\n"
    ".BR mpirun (1),\n"
    ".BR srun (1)\n";

void manual_print(FILE *out, const struct manual_command *commands, size_t count)
{
    fputs(head, out);
    for (size_t c = 0; c < count; c++)
        print_command(out, &commands[c]);
    fputs(tail, out);
}

/* -------- completion -------------------------------------------------------------------------- */

static void print_words(FILE *out, const char *const *words)
{
    fputs("words=(-W '", out);
    for (int i = 0; words[i]; i++)
        fprintf(out, "%s%s", i > 0 ? " " : "", words[i]);
    fputs("')", out);
}

/* The words in "bsp|ssp:S|async", each up to its first capital: capitals mean a value. "ssp:" is
 * the beginning of a word. */
static void print_metavar(FILE *out, const char *metavar)
{
    fputs("words=(-W '", out);
    for (const char *word = metavar; *word;) {
        size_t length = strcspn(word, "|"), fixed = 0;
        while (fixed < length && !isupper((unsigned char)word[fixed]))
            fixed++;
        fprintf(out, "%s%.*s", word > metavar ? " " : "", (int)fixed, word);
        word += length + (word[length] == '|');
    }
    fputs("')", out);
}

/* The case branch for the value of an option: its words, or the files or folders that its metavar
 * stands for. An option with a bare form takes a word only after '='. */
static void print_values(FILE *out, const char *command, const struct option_spec *spec)
{
    const char *kind = spec->metavar && strcmp(spec->metavar, "FILE") == 0  ? "-f"
                       : spec->metavar && strcmp(spec->metavar, "DIR") == 0 ? "-d"
                                                                            : NULL;
    fprintf(out, "    '%s --%s='", command, spec->name);
    if (!spec->bare)
        fprintf(out, " | '%s --%s'", command, spec->name);
    if (spec->letter)
        fprintf(out, " | '%s -%c'", command, spec->letter);
    fputs(")\n        ", out);
    if (kind)
        fprintf(out, "compopt -o filenames 2>/dev/null || true\n        words=(%s)", kind);
    else if (spec->type == OPTION_CHOICE)
        print_words(out, spec->choices);
    else if (spec->metavar && strchr(spec->metavar, '|'))
        print_metavar(out, spec->metavar);
    else
        fputs("words=()", out);
    fputs(" ;;\n", out);
}

static void print_all_values(FILE *out, const struct manual_command *command)
{
    struct config_table table;
    if (!command->options)
        return;
    config_table_init(&table, command->options);
    for (const struct option_spec *spec = table.options.specs; spec->name; spec++) {
        if (spec->help && spec->type != OPTION_FLAG)
            print_values(out, command->name, spec);
    }
}

/* The command's options, or files and own_options for a command without an option table. */
static void print_options(FILE *out, const struct manual_command *command)
{
    struct config_table table;
    if (!command->options) {
        fprintf(out,
                "    '%s '*)\n        compopt -o filenames 2>/dev/null || true\n"
                "        words=(-f)\n        [[ $current != -* ]] || words=(-W '%s') ;;\n",
                command->name, command->own_options);
        return;
    }
    config_table_init(&table, command->options);
    fprintf(out, "    '%s '*) words=(-W '--help", command->name);
    for (const struct option_spec *spec = table.options.specs; spec->name; spec++) {
        if (spec->help)
            fprintf(out, " --%s", spec->name);
    }
    fputs("') ;;\n", out);
}

/* bash makes '=' a separate word: "--resume=mu" is three words, unless COMP_WORDBREAKS has been
 * changed. */
static const char completion_head[] =
    "# Completion of psring's options in bash: source this file.\n"
    "_psring()\n"
    "{\n"
    "    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words=()\n"
    "    local prefix=''\n"
    "    if [[ $current == --*=* ]]; then\n"
    "        prefix=${current%%=*}=\n"
    "        before=$prefix current=${current#*=}\n"
    "    elif [[ $current == = ]]; then\n"
    "        before=$before= current=''\n"
    "    elif [[ $before == = ]] && ((COMP_CWORD > 2)); then\n"
    "        before=${COMP_WORDS[COMP_CWORD - 2]}=\n"
    "    fi\n"
    "    COMPREPLY=()\n"
    "    ((COMP_CWORD > 1)) || before=''\n"
    "    case \"${COMP_WORDS[1]} $before\" in\n";

void manual_print_completion(FILE *out, const struct manual_command *commands, size_t count)
{
    fputs(completion_head, out);
    for (size_t c = 0; c < count; c++)
        print_all_values(out, &commands[c]);
    for (size_t c = 0; c < count; c++)
        print_options(out, &commands[c]);
    fputs("    'help '*) words=(-W '", out);
    for (size_t c = 0; c < count; c++)
        fprintf(out, "%s%s", c > 0 ? " " : "", commands[c].name);
    fputs("') ;;\n    esac\n    ((COMP_CWORD > 1)) || words=(-W '", out);
    for (size_t c = 0; c < count; c++)
        fprintf(out, "%s ", commands[c].name);
    fputs(
        "help --help --version --manual --completion')\n"
        "    ((${#words[@]} == 0)) ||\n"
        "        mapfile -t COMPREPLY < <(compgen \"${words[@]}\" -P \"$prefix\" -- \"$current\")\n"
        "}\n"
        "complete -F _psring psring\n"
        "# Behind a launcher: from the word psring on; before it, files.\n"
        "_psring_launched()\n"
        "{\n"
        "    local i\n"
        "    COMPREPLY=()\n"
        "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
        "        [[ ${COMP_WORDS[i]##*/} == psring ]] || continue\n"
        "        COMP_WORDS=(\"${COMP_WORDS[@]:i}\") COMP_CWORD=$((COMP_CWORD - i))\n"
        "        _psring\n"
        "        return\n"
        "    done\n"
        "}\n"
        "for _psring_launcher in mpirun srun; do\n"
        "    complete -p \"$_psring_launcher\" >/dev/null 2>&1 ||\n"
        "        complete -o default -F _psring_launched \"$_psring_launcher\"\n"
        "done\n"
        "unset _psring_launcher\n",
        out);
}
