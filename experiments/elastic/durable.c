/*
 * Durable jobs: what servers keep in the folder of --checkpoint, in the format of
 * common/checkpoint.
 *
 *   - job.checkpoint, the record: the job's options, and the number and workers of the last
 *     generation. The first server writes it before each generation. Another server writes once
 *     where its coordinator listens, and the job's first number.
 *   - weights.checkpoint, the first server's: worker 0's weights, optimizer and position at the
 *     beginning of a generation. Between generations worker 0 has them in host memory, so no step
 *     waits for a copy.
 *
 * Workers that are left have newer weights. Only if none is left, worker 0 gets these back.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/sha256.h"
#include "common/checkpoint/checkpoint.h"
#include "common/net/world.h"
#include "experiments/elastic/coordinator.h"
#include "experiments/elastic/elastic.h"
#include "models/optim.h"

#define KIND "a job of psring serve" /* in place of a model */

enum { PATH_BYTES = 4096, OWN_OPTIONS = 16, WORKERS_BYTES = 11 * COORDINATOR_MEMBERS + 1 };

static enum status path_of(const char *dir, const char *file, char path[PATH_BYTES])
{
    int length = snprintf(path, PATH_BYTES, "%s/%s.checkpoint", dir, file);
    if (length < PATH_BYTES)
        return STATUS_OK;
    return FAIL(STATUS_USAGE,
                "--checkpoint %.60s...: the name is too long, expected at most %d bytes", dir,
                PATH_BYTES - 32);
}

/* -------- the record -------------------------------------------------------------------------- */

/* The texts to which a checkpoint's options point. */
struct record_text {
    struct checkpoint_option options[CHECKPOINT_OPTIONS_MAX];
    size_t count;
    char values[OWN_OPTIONS][SHA256_HEX_SIZE + MEMBER_ADDRESS_BYTES];
    char workers[WORKERS_BYTES], job[COORDINATOR_JOB_BYTES];
};

static void add(struct record_text *text, const char *name, const char *value)
{
    CHECK(text->count < CHECKPOINT_OPTIONS_MAX);
    text->options[text->count++] = (struct checkpoint_option){.name = name, .value = value};
}

__attribute__((format(printf, 3, 4))) static void add_own(struct record_text *text,
                                                          const char *name, const char *format, ...)
{
    va_list arguments;
    CHECK(text->count < OWN_OPTIONS);
    char *value = text->values[text->count];
    va_start(arguments, format);
    vsnprintf(value, sizeof text->values[0], format, arguments);
    va_end(arguments);
    add(text, name, value);
}

/* "--batch=8" becomes the option --batch with the value 8. */
static void add_job(struct record_text *text, const char *job)
{
    char *rest, *value;
    snprintf(text->job, sizeof text->job, "%s", job);
    for (char *line = strtok_r(text->job, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        value = strchr(line, '=');
        if (value)
            *value++ = '\0';
        add(text, line, value ? value : "");
    }
}

/* The file does not have the token itself, because others may read it. */
static enum status token_text(uint64_t token, char hex[SHA256_HEX_SIZE])
{
    return sha256_hex(&token, sizeof token, hex);
}

enum status job_save(const char *dir, const struct job_record *record)
{
    enum status status = STATUS_OK;
    char path[PATH_BYTES], token[SHA256_HEX_SIZE];
    size_t used = 0;
    struct record_text *text = calloc(1, sizeof *text);
    if (!text)
        return FAIL(STATUS_NO_MEMORY, "%s: no memory for the job's record", dir);
    TRY(path_of(dir, "job", path));
    TRY(token_text(record->token, token));
    for (int i = 0; i < record->worker_count; i++)
        used += (size_t)snprintf(text->workers + used, sizeof text->workers - used, "%" PRIu32 " ",
                                 record->workers[i]);
    add_own(text, "token", "%s", token);
    add_own(text, "address", "%s", record->job.address);
    add_own(text, "server", "%d", record->job.index);
    add_own(text, "generation", "%" PRIu32, record->generation);
    add_own(text, "servers", "%d", record->servers);
    add_own(text, "first-id", "%" PRIu32, record->first_id);
    add_own(text, "next-id", "%" PRIu32, record->next_id);
    add_own(text, "done", "%d", record->done);
    add_own(text, "ended", "%d", record->ended);
    add(text, "workers", text->workers);
    add_job(text, record->job.options);
    status = checkpoint_save(path, &(struct checkpoint){.model = KIND,
                                                        .optimizer = "",
                                                        .step = record->step,
                                                        .images = record->images,
                                                        .options = text->options,
                                                        .option_count = text->count});
out:
    free(text);
    return status;
}

static const char *text_of(const struct checkpoint *file, const char *name)
{
    const char *text = checkpoint_option(file, name);
    return text ? text : "";
}

static uint32_t number_of(const struct checkpoint *file, const char *name)
{
    return (uint32_t)strtoul(text_of(file, name), NULL, 10);
}

static void read_workers(const struct checkpoint *file, struct job_record *record)
{
    const char *at = text_of(file, "workers");
    char *end;
    for (int i = 0; i < COORDINATOR_MEMBERS; i++, at = end) {
        uint32_t id = (uint32_t)strtoul(at, &end, 10);
        if (end == at)
            return;
        record->workers[record->worker_count++] = id;
    }
}

/* False if the lines are too long. */
static bool read_job(const struct checkpoint *file, char text[COORDINATOR_JOB_BYTES])
{
    size_t used = 0;
    for (size_t i = 0; i < file->option_count && used < COORDINATOR_JOB_BYTES; i++) {
        const struct checkpoint_option *option = &file->options[i];
        if (strncmp(option->name, "--", 2) == 0)
            used += (size_t)snprintf(text + used, COORDINATOR_JOB_BYTES - used, "%s%s%s\n",
                                     option->name, option->value[0] ? "=" : "", option->value);
    }
    return used < COORDINATOR_JOB_BYTES;
}

/* `record` has the expected token. */
static enum status read_record(const char *path, const struct checkpoint *file,
                               struct job_record *record)
{
    enum status status = STATUS_OK;
    char token[SHA256_HEX_SIZE];
    if (strcmp(file->model, KIND) != 0)
        return FAIL(STATUS_INPUT,
                    "%s: found a checkpoint of %s, expected one of " KIND "; give this server a "
                    "folder of its own",
                    path, file->model);
    TRY(token_text(record->token, token));
    if (strcmp(text_of(file, "token"), token) != 0)
        return FAIL(STATUS_USAGE,
                    "%s: the job there has another token than this server; give the same --token "
                    "(or PSRING_TOKEN, or ~/.psring-token), or remove the file to begin a new job",
                    path);
    record->job.index = (int)number_of(file, "server");
    record->job.summoned = record->job.index > 0;
    snprintf(record->job.address, sizeof record->job.address, "%s", text_of(file, "address"));
    record->generation = number_of(file, "generation");
    record->servers = (int)number_of(file, "servers");
    record->first_id = number_of(file, "first-id");
    record->next_id = number_of(file, "next-id");
    record->done = (int)number_of(file, "done");
    record->ended = number_of(file, "ended") == 1;
    record->step = file->step;
    record->images = file->images;
    read_workers(file, record);
    bool first = record->servers > 0 && record->first_id > 0;
    if (!read_job(file, record->job.options) || record->generation == 0 || record->job.index < 0 ||
        record->done < 0 || record->done > record->worker_count || !(first || record->job.summoned))
        status = FAIL(STATUS_INPUT,
                      "%s: its values cannot be true; another version of psring wrote it, remove "
                      "it to begin a new job",
                      path);
out:
    return status;
}

/* Loads a file of the folder. *file is NULL if there is none. */
static enum status load(const char *path, struct checkpoint **file)
{
    *file = NULL;
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return STATUS_OK;
    return checkpoint_load(file, path);
}

enum status job_load(const char *dir, uint64_t token, struct job_record *record)
{
    enum status status = STATUS_OK;
    struct checkpoint *file = NULL;
    char path[PATH_BYTES];
    *record = (struct job_record){.token = token};
    TRY(path_of(dir, "job", path));
    TRY(load(path, &file));
    if (file)
        TRY(read_record(path, file, record));
out:
    checkpoint_free(&file);
    return status;
}

/* -------- the folder -------------------------------------------------------------------------- */

/* Two servers in one folder would replace each other's files. */
static enum status lock(const char *dir, int *folder)
{
    *folder = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*folder >= 0 && flock(*folder, LOCK_EX | LOCK_NB) == 0)
        return STATUS_OK;
    return FAIL(
        STATUS_USAGE,
        "--checkpoint %s: the folder cannot be locked: %s; give each server a folder of its "
        "own",
        dir, errno == EWOULDBLOCK ? "another server uses it" : strerror(errno));
}

void durable_remove(const char *dir)
{
    static const char *const files[] = {"job", "weights"}; /* without the first, no job */
    char path[PATH_BYTES];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (path_of(dir, files[i], path) == STATUS_OK && unlink(path) != 0 && errno != ENOENT)
            log_warn("%s: cannot be removed: %s", path, strerror(errno));
    }
}

enum status durable_open(const char *dir, uint64_t token, int *folder, struct job_record *record)
{
    enum status status = STATUS_OK;
    TRY(checkpoint_prepare(dir));
    TRY(lock(dir, folder));
    TRY(job_load(dir, token, record));
    if (record->generation > 0) {
        log_info("--checkpoint %s: continues the job there, after generation %" PRIu32
                 "; remove the folder to begin a new job",
                 dir, record->generation);
        return STATUS_OK;
    }
    durable_remove(dir);
    while (record->first_id == 0) {
        if (getrandom(&record->first_id, sizeof record->first_id, 0) < 0)
            return FAIL(STATUS_IO, "--checkpoint %s: no random number for the job: %s", dir,
                        strerror(errno));
        record->first_id >>= 1;
    }
out:
    return status;
}

/* -------- the state --------------------------------------------------------------------------- */

static enum status save_state(const struct config *config, const struct generation *g)
{
    enum status status = STATUS_OK;
    char path[PATH_BYTES], job[16], epoch_images[24];
    const struct checkpoint_option options[] = {{.name = "job", .value = job},
                                                {.name = "epoch-images", .value = epoch_images}};
    snprintf(job, sizeof job, "%" PRIu32, config->elastic.job);
    snprintf(epoch_images, sizeof epoch_images, "%" PRIu64, g->own.epoch_images);
    TRY(path_of(config->elastic.checkpoint, "weights", path));
    TRY(checkpoint_save(
        path, &(struct checkpoint){.model = config_model_name(config),
                                   .optimizer = optimizer_kind_names[config->learning.optimizer],
                                   .epoch = g->own.epoch,
                                   .step = g->own.step,
                                   .trained_ns = (uint64_t)(g->own.trained_s * (double)NS_PER_S),
                                   .images = g->own.images,
                                   .weights = g->weights,
                                   .weight_count = g->weight_count,
                                   .state = g->state,
                                   .state_count = g->state_count,
                                   .options = options,
                                   .option_count = sizeof options / sizeof *options}));
out:
    return status;
}

enum status durable_load_state(const struct config *config, struct generation *g)
{
    enum status status = STATUS_OK;
    struct checkpoint *file = NULL;
    char path[PATH_BYTES];
    struct generation found = {0};
    TRY(path_of(config->elastic.checkpoint, "weights", path));
    TRY(load(path, &file));
    if (!file)
        return STATUS_OK;
    if (number_of(file, "job") != config->elastic.job ||
        strcmp(file->model, config_model_name(config)) != 0 ||
        strcmp(file->optimizer, optimizer_kind_names[config->learning.optimizer]) != 0) {
        status = FAIL(STATUS_INPUT,
                      "%s: found the weights of another job (%s, %s), expected those of "
                      "job.checkpoint next to it; restore them, or remove the file if the workers "
                      "still have newer weights",
                      path, file->model, file->optimizer);
        goto out;
    }
    found = (struct generation){
        .weight_count = file->weight_count,
        .state_count = file->state_count,
        .own = {.step = file->step,
                .images = file->images,
                .trained_s = (double)file->trained_ns / (double)NS_PER_S,
                .epoch = file->epoch,
                .epoch_images = strtoull(text_of(file, "epoch-images"), NULL, 10)}};
    TRY(generation_allocate(&found));
    memcpy(found.weights, file->weights, file->weight_count * sizeof *found.weights);
    if (file->state_count > 0)
        memcpy(found.state, file->state, file->state_count * sizeof *found.state);
    generation_take(g, &found);
    g->own_images = found.own.images;
out:
    generation_fini(&found);
    checkpoint_free(&file);
    return status;
}

/* -------- from worker 0 to the first server, and back ----------------------------------------- */

/* What worker 0 and the first server have. */
struct holding {
    uint64_t weight_count, state_count; /* 0: nothing */
    struct position own;
};

static struct holding holding_of(const struct generation *g)
{
    return g->weights ? (struct holding){g->weight_count, g->state_count, g->own}
                      : (struct holding){0};
}

/* Worker 0 is the group's root. The server replaces what it has once it has received all. */
static enum status give(struct world *world, const struct group *group, struct generation *g,
                        const struct generation *held)
{
    enum status status = STATUS_OK;
    struct generation got = *held;
    bool receives = group->rank > 0;
    if (receives)
        TRY(generation_allocate(&got));
    const struct generation *all = receives ? &got : g;
    TRY(world_broadcast(world, group, all->weights, held->weight_count * sizeof *all->weights));
    TRY(world_broadcast(world, group, all->state, held->state_count * sizeof *all->state));
    if (receives) {
        generation_take(g, &got);
        g->own_images = held->own.images;
    }
out:
    generation_fini(&got);
    return status;
}

enum status durable_share_state(const struct config *config, struct world *world, int first_server,
                                struct generation *g)
{
    enum status status = STATUS_OK;
    struct group *group = NULL;
    bool server = world->rank == first_server, takes_part = server || world->rank == 0;
    struct holding mine = holding_of(g), both[2];
    TRY(world_group_new(&group, world, takes_part ? 0 : GROUP_NONE));
    if (!takes_part)
        goto out;
    TRY(world_gather(world, group, &mine, sizeof mine, both));
    bool gives = both[0].weight_count > 0, has = both[1].weight_count > 0;
    const struct holding *holder = &both[gives ? 0 : 1];
    const struct generation held = {.weight_count = holder->weight_count,
                                    .state_count = holder->state_count,
                                    .own = holder->own};
    if (!gives && has)
        TRY(generation_fetch(g, world, group, &held));
    if (!gives || (has && both[0].own.step == both[1].own.step))
        goto out;
    TRY(give(world, group, g, &held));
    if (server && save_state(config, g) != STATUS_OK)
        log_warn("the job continues; until the weights can be saved, do not end all its workers");
out:
    world_group_free(&group, world);
    return status;
}
