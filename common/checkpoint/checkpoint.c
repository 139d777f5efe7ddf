#include "common/checkpoint/checkpoint.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* True if `saved` (NULL: not recorded) is what this run has; else logs the difference. */
static bool same_text(const char *path, const struct checkpoint_option *here, const char *saved)
{
    const char *found = here->value ? here->value : "not known";
    const char *expected = here->expected ? here->expected : "the same";
    if (saved && here->value && strcmp(saved, here->value) == 0)
        return true;
    if (saved && here->advice)
        log_error("%s: %s is %s there and %s here, expected %s; %s, or start anew without --resume",
                  path, here->name, saved, found, expected, here->advice);
    else if (saved)
        log_error("%s: %s is %s there and %s here, expected %s; give --%s %s, or start anew "
                  "without --resume",
                  path, here->name, saved, found, expected, here->name, saved);
    else
        log_error("%s: %s is not recorded there and %s here, expected %s; another version of "
                  "psring wrote it, start anew without --resume",
                  path, here->name, found, expected);
    return false;
}

static bool same_word(const char *path, const char *option, const char *saved, const char *here)
{
    return same_text(path, &(struct checkpoint_option){.name = option, .value = here}, saved);
}

static bool same_number(const char *path, const char *option, uint64_t saved, uint64_t here)
{
    char saved_text[24], here_text[24];
    snprintf(saved_text, sizeof saved_text, "%" PRIu64, saved);
    snprintf(here_text, sizeof here_text, "%" PRIu64, here);
    return same_word(path, option, saved_text, here_text);
}

static bool same_count(const char *path, const char *what, size_t saved, size_t here)
{
    if (saved == here)
        return true;
    log_error("%s: %zu %s there and %zu here, expected as many; start anew without --resume", path,
              saved, what, here);
    return false;
}

static void warn_if_other(const char *path, const struct checkpoint_option *here, const char *saved)
{
    if (saved && strcmp(saved, here->value) == 0)
        return;
    log_warn("%s: %s is %s there and %s here: the run continues, but not to the same bits", path,
             here->name, saved ? saved : "not recorded", here->value);
}

const char *checkpoint_option(const struct checkpoint *checkpoint, const char *name)
{
    for (size_t i = 0; i < checkpoint->option_count; i++) {
        if (strcmp(checkpoint->options[i].name, name) == 0)
            return checkpoint->options[i].value;
    }
    return NULL;
}

enum status checkpoint_check(const struct checkpoint *loaded, const struct checkpoint *run,
                             const char *path)
{
    bool same_model = same_word(path, "model", loaded->model, run->model);
    bool same_optimizer = same_word(path, "optimizer", loaded->optimizer, run->optimizer);
    bool same = same_model && same_optimizer;
    /* Counts differ as a matter of course where the model or the optimizer does. */
    if (same) {
        same = same_count(path, "parameters", loaded->weight_count, run->weight_count) && same;
        same = same_count(path, "optimizer values", loaded->state_count, run->state_count) && same;
    }
    same = same_number(path, "seed", loaded->seed, run->seed) && same;
    for (size_t i = 0; i < run->option_count; i++) {
        const struct checkpoint_option *option = &run->options[i];
        const char *saved = checkpoint_option(loaded, option->name);
        if (option->may_differ)
            warn_if_other(path, option, saved);
        else
            same = same_text(path, option, saved) && same;
    }
    for (size_t i = 0; i < loaded->option_count; i++) {
        const char *name = loaded->options[i].name;
        if (!checkpoint_option(run, name))
            same = same_word(path, name, loaded->options[i].value, NULL);
    }
    return same ? STATUS_OK : STATUS_USAGE;
}
