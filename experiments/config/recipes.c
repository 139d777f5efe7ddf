#include "experiments/config/config_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "models/lr.h"
#include "models/optim.h"

enum { RECIPE_OPTIONS = 12 };

struct recipe {
    const char *name, *text;
    struct {
        const char *name, *value;
    } options[RECIPE_OPTIONS + 1]; /* ended by a NULL */
};

/* experiments/run_recipes.sh measures the accuracy of each. */
static const struct recipe recipes[] = {
    {.name = "keras-horovod",
     .text =
         "Keras' MNIST example as Horovod's users run it. Each worker reads all the data. The\n"
         "    rate is multiplied and the epochs are divided by the number of workers. As in every\n"
         "    run, variables come from rank 0, and only rank 0 writes checkpoints.",
     .options = {{"model", "keras-cnn"},
                 {"optimizer", "adadelta"},
                 {"lr", "1"},
                 {"lr-scale", "linear"},
                 {"lr-schedule", "constant"},
                 {"warmup-epochs", "0"},
                 {"batch", "128"},
                 {"epochs", "12"},
                 {"epochs-divided", "true"},
                 {"no-shard", "true"}}},
    {.name = "large-batch",
     .text = "For about 8 workers: the rate of one worker times the number of workers, after a\n"
             "    warm-up (Goyal et al. 2017).",
     .options = {{"model", "keras-cnn"},
                 {"optimizer", "sgd"},
                 {"momentum", "0.9"},
                 {"weight-decay", "5e-4"},
                 {"lr", "0.04"},
                 {"lr-scale", "linear"},
                 {"lr-schedule", "cosine"},
                 {"warmup-epochs", "2"},
                 {"batch", "64"},
                 {"epochs", "12"}}},
    {.name = "lars-8192",
     .text = "8,192 images per step, for any number of workers: LARS (You et al. 2017).",
     .options = {{"model", "keras-cnn"},
                 {"optimizer", "lars"},
                 {"momentum", "0.9"},
                 {"lars-coefficient", "0.02"},
                 {"weight-decay", "1e-4"},
                 {"lr", "0.8"},
                 {"lr-scale", "none"},
                 {"lr-schedule", "cosine"},
                 {"warmup-epochs", "2"},
                 {"global-batch", "8192"},
                 {"epochs", "10"}}},
};
enum { RECIPES = sizeof recipes / sizeof *recipes };

static void print_recipe(const struct recipe *recipe)
{
    printf("%s\n    %s\n   ", recipe->name, recipe->text);
    for (int i = 0; recipe->options[i].name; i++) {
        const char *value = recipe->options[i].value;
        bool flag = strcmp(value, "true") == 0;
        printf(" --%s%s%s", recipe->options[i].name, flag ? "" : " ", flag ? "" : value);
    }
    printf("\n");
}

static enum status not_found(const char *name)
{
    char names[160], hint[64];
    struct line line = line_in(names, sizeof names);
    struct nearest nearest = nearest_to(name);
    for (int i = 0; i < RECIPES; i++) {
        nearest_offer(&nearest, recipes[i].name);
        line_add(&line, "%s%s", i ? " | " : "", recipes[i].name);
    }
    return FAIL(STATUS_USAGE,
                "--recipe: found '%s', expected %s%s; --recipe list prints what each sets", name,
                names, nearest_hint(&nearest, "", hint, sizeof hint));
}

/* NULL: the recipe does not set the option. */
static const char *value_in(const struct recipe *recipe, const char *option)
{
    for (int i = 0; recipe->options[i].name; i++) {
        if (strcmp(recipe->options[i].name, option) == 0)
            return recipe->options[i].value;
    }
    return NULL;
}

/* The option in argv that makes the recipe's rate meaningless, or NULL. Call after the optimizer is
 * set (by argv or by the recipe). */
static const char *spoils_rate(const struct config_table *table, const struct recipe *recipe,
                               const struct config *config)
{
    if (config_table_given(table, "lr"))
        return NULL;
    if (strcmp(value_in(recipe, "optimizer"), optimizer_kind_names[config->learning.optimizer]) !=
        0)
        return "--optimizer";
    if (!value_in(recipe, "global-batch"))
        return NULL; /* the rate is that of one worker */
    return config_table_given(table, "global-batch") ? "--global-batch"
           : config_table_given(table, "batch")      ? "--batch"
                                                     : NULL;
}

/* Whether argv decides the option: argv has it, or has an option that excludes it. */
static bool is_decided(const struct config_table *table, const char *option)
{
    static const char *const against[][2] = {
        {"batch", "global-batch"}, {"global-batch", "batch"}, {"epochs-divided", "steps"}};
    for (size_t i = 0; i < sizeof against / sizeof *against; i++) {
        if (strcmp(option, against[i][0]) == 0 && config_table_given(table, against[i][1]))
            return true;
    }
    return config_table_given(table, option);
}

/* Refuses a rate that is scaled by the number of workers where --global-batch fixes the images per
 * step. */
static enum status check_scale(const struct config_table *table, const struct recipe *recipe,
                               const struct config *config)
{
    char rate[32] = "";
    const char *batch = value_in(recipe, "batch");
    if (config->train.global_batch == 0 || config->learning.lr_scale != LR_SCALE_LINEAR ||
        config_table_given(table, "lr-scale"))
        return STATUS_OK;
    if (!config_table_given(table, "lr"))
        snprintf(rate, sizeof rate, " --lr %g",
                 config->learning.lr * (double)config->train.global_batch / strtod(batch, NULL));
    return FAIL(
        STATUS_USAGE,
        "--recipe %s: sets --lr-scale linear (the rate of a worker with %s images, times the "
        "number of workers), which does not suit --global-batch %lld; add --lr-scale none%s",
        recipe->name, batch, (long long)config->train.global_batch, rate);
}

enum status recipes_apply(const struct config_table *table, struct config *config, bool *listed)
{
    enum status status = STATUS_OK;
    const struct recipe *recipe = NULL;
    if (!config->learning.recipe)
        return STATUS_OK;
    *listed = strcmp(config->learning.recipe, "list") == 0;
    for (int i = 0; i < RECIPES; i++) {
        if (*listed)
            print_recipe(&recipes[i]);
        else if (strcmp(recipes[i].name, config->learning.recipe) == 0)
            recipe = &recipes[i];
    }
    if (*listed)
        return STATUS_OK;
    if (!recipe)
        return not_found(config->learning.recipe);
    const char *spoiler = NULL;
    for (int i = 0; recipe->options[i].name; i++) {
        const char *name = recipe->options[i].name;
        if (strcmp(name, "lr") == 0)
            spoiler = spoils_rate(table, recipe, config);
        bool is_rate = strcmp(name, "lr") == 0 || strcmp(name, "lr-scale") == 0;
        if (!is_decided(table, name) && !(spoiler && is_rate))
            TRY(options_set(&table->options, name, recipe->options[i].value, config));
    }
    if (spoiler)
        log_warn("--recipe %s: its --lr %s does not go with this %s; the default rate is used; "
                 "give another with --lr",
                 recipe->name, value_in(recipe, "lr"), spoiler);
    TRY(check_scale(table, recipe, config));
out:
    return status;
}
