#include "experiments/predict/model.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "common/net/transport/transport.h"
#include "experiments/config/backends.h"
#include "experiments/config/config_table.h"
#include "common/net/cpu_watch.h"
#include "experiments/bench/info.h"
#include "experiments/predict/rows.h"

/* -------- rows -------------------------------------------------------------------------------- */

const struct backend *predict_backend(const char *name)
{
    int index = backend_find(name);
    return index >= 0 ? backend_get((size_t)index) : NULL;
}

/* The backend whose formula describes a row. For MPI_Allreduce, the backend with the same
 * algorithm. */
static const struct backend *backend_of(const struct predict_row *row)
{
    const char *name = row->backend;
    if (strcmp(name, "mpi") == 0)
        name = strcmp(row->algorithm, "rabenseifner") == 0 ? "rhd" : "ring";
    return predict_backend(name);
}

static int word_number(const char *const *words, const char *word)
{
    for (int i = 0; words[i]; i++) {
        if (strcmp(words[i], word) == 0)
            return i;
    }
    return -1;
}

/* Puts equal numbers of workers on each host: consecutive ranks, or round robin if all neighbours
 * are on different hosts. Each spare server has its own host. */
static void place(const struct predict_row *row, int spare, int *hosts)
{
    int each = row->workers / row->hosts;
    for (int w = 0; w < row->workers; w++)
        hosts[w] = row->inter_host_hops == row->workers ? w % row->hosts : w / each;
    for (int s = 0; s < spare; s++)
        hosts[row->workers + s] = row->hosts + s;
}

/* Whether all processes of this network run on one machine. */
static bool predict_one_machine(const char *network)
{
    return strncmp(network, "vcluster:", 9) == 0 || strncmp(network, "loopback", 8) == 0;
}

bool predict_networks_alike(const char *network, const char *other)
{
    static const char kind[] = "vcluster:";
    const size_t length = sizeof kind - 1;
    return strncmp(network, kind, length) == 0 && strncmp(other, kind, length) == 0 &&
           !strchr(network, '/') && !strchr(other, '/') &&
           strcmp(strchrnul(network, '+'), strchrnul(other, '+')) == 0;
}

/* Whether the cluster has racks or hosts with different rates (vcluster.sh --shape). The formulas
 * describe only racks of equal hosts. */
static bool is_shaped(const char *network)
{
    return strncmp(network, "vcluster:", 9) == 0 && strchr(network, '/');
}

enum state predict_row_state(const struct predict_row *row)
{
    return judge_row(&(struct evidence){.wrong = (double)row->wrong,
                                        .time_us = row->median_s * 1e6,
                                        .cpu_busy = row->cpu_busy,
                                        .cpu_other = row->cpu_other,
                                        .starts = row->runs});
}

/* Whether other processes disturbed the row; the model does not describe that. MPI_Allreduce polls,
 * so its CPUs are busy whether it waits or works. */
static bool is_disturbed(const struct predict_row *row)
{
    return strcmp(row->transport, "none") != 0 && predict_row_state(row) == STATE_DISTURBED;
}

/* Half of the round trip, where schedules depend on it. Nearer hosts only have the fitted latency.
 */
static double distance_of(const struct predict_row *row)
{
    double round_trip_s = row->round_trip_us * 1e-6;
    return round_trip_s < COMM_DISTANT_S ? 0 : round_trip_s / 2;
}

bool predict_shape_of(const struct predict_row *row, int *hosts, struct predict_shape *shape,
                      const char **why)
{
    int compress = *row->compress ? word_number(compress_names, row->compress) : COMPRESS_NONE;
    int placement = word_number(config_placement_words, row->placement);
    const struct backend *backend = backend_of(row);
    *why = NULL;
    if (row->workers < 2 || row->bytes < sizeof(float))
        *why = "nothing is averaged";
    else if (predict_row_state(row) == STATE_WRONG)
        *why = "its sums are wrong";
    else if (*row->model || strcmp(row->interface, "library") == 0)
        *why = "it is not one vector averaged by psring itself";
    else if (row->skew_ms > 0)
        *why = "its ranks started at different times";
    else if (row->series_iters > 1)
        *why = "its operations followed each other without a barrier";
    else if (strcmp(row->device, "cuda") == 0 && strcmp(row->backend, "nccl") != 0)
        *why = "its vectors were in a GPU's memory";
    else if (strcmp(row->network, "time-slicing") == 0)
        *why = "processes took turns on a GPU";
    else if (strcmp(row->backend, "nccl") == 0 && !*row->nccl)
        *why = "NCCL's algorithm is not known";
    else if (*row->nccl && strncmp(row->nccl, "ring/", strlen("ring/")) != 0)
        *why = "NCCL used another algorithm than the ring";
    else if (is_shaped(row->network) && row->rack_ranks == 0)
        *why = "its links have different rates";
    else if (!backend || compress < 0)
        *why = "no formula is known for it";
    else if (backend->uses_servers &&
             (placement < 0 || (row->servers == 0 && placement != PLACEMENT_MIXED)))
        *why = "it has no servers";
    else if (row->hosts > 1 && row->hosts < row->workers && row->workers % row->hosts > 0)
        *why = "its hosts have different numbers of workers";
    if (*why)
        return false;
    *shape = (struct predict_shape){
        .backend = backend,
        .count = row->bytes / sizeof(float),
        .nominal_bytes_per_s = row->nominal_bytes_per_s,
        .compress = compress,
        .radix = row->radix,
        .one_machine = predict_one_machine(row->network),
        .rest_s = row->rest_s,
        .distance_s = distance_of(row),
    };
    if (row->nominal_bytes_per_s > 0)
        shape->link_s_per_byte = 1 / row->nominal_bytes_per_s;
    int world = row->workers, servers = backend->uses_servers ? row->servers : 0;
    if (!backend->uses_servers)
        placement = PLACEMENT_DEDICATED; /* of no server: the row may name another */
    if (placement != PLACEMENT_COLOCATED)
        world += servers;
    if (topology_init(&shape->topology, world, servers, placement) != STATUS_OK) {
        *why = "there is no such placement";
        return false;
    }
    if (row->hosts > 1 && row->hosts < row->workers) {
        place(row, topology_spare(&shape->topology), hosts);
        shape->hosts = hosts;
    }
    if (row->rack_ranks > 0)
        shape->uplink_delay = predict_uplink_delay(shape, row->rack_ranks, row->oversubscribed);
    return true;
}

/* -------- models ------------------------------------------------------------------------------ */

bool predict_is_transport(const struct predict_model *model)
{
    return transport_kind_find(model->transport) < TRANSPORT_KINDS && model->fit.error_count > 0;
}

bool predict_is_first(const struct predict_models *models, size_t index)
{
    size_t first = 0;
    while (strcmp(models->models[first].network, models->models[index].network) != 0)
        first++;
    return first == index;
}

/* The name of a model's transport. MPI_Allreduce without a known algorithm is "mpi-default", so it
 * is not mistaken for psring over the transport mpi. */
static void transport_of(const struct predict_row *row, char transport[PREDICT_WORD])
{
    const char *algorithm = *row->algorithm ? row->algorithm : "default";
    bool own = strcmp(row->transport, "none") != 0;
    if (own)
        snprintf(transport, PREDICT_WORD, "%.15s", row->transport);
    else
        snprintf(transport, PREDICT_WORD, "%.15s-%.20s", row->backend, algorithm);
}

static int find_model(const struct predict_models *models, const struct predict_row *row)
{
    char transport[PREDICT_WORD];
    transport_of(row, transport);
    for (size_t m = 0; m < models->count; m++) {
        if (strcmp(models->models[m].network, row->network) == 0 &&
            strcmp(models->models[m].transport, transport) == 0)
            return (int)m;
    }
    return -1;
}

/* Some rows of a network may have been measured without --link-rate. */
static void share_rate(struct predict_models *models, const struct predict_row *row)
{
    double rate = 0;
    for (size_t m = 0; m < models->count; m++) {
        const struct predict_model *model = &models->models[m];
        if (rate == 0 && strcmp(model->network, row->network) == 0)
            rate = model->nominal_bytes_per_s;
    }
    rate = rate > 0 ? rate : row->nominal_bytes_per_s;
    for (size_t m = 0; m < models->count; m++) {
        struct predict_model *model = &models->models[m];
        if (model->nominal_bytes_per_s == 0 && strcmp(model->network, row->network) == 0)
            model->nominal_bytes_per_s = rate;
    }
}

static enum status add_model(struct predict_models *models, struct predict_row *row)
{
    row->model_index = find_model(models, row);
    if (row->model_index >= 0) {
        share_rate(models, row);
        return STATUS_OK;
    }
    struct predict_model *more =
        realloc(models->models, (models->count + 1) * sizeof *models->models);
    if (!more)
        return FAIL(STATUS_NO_MEMORY, "predict: no memory for %zu models", models->count + 1);
    models->models = more;
    struct predict_model *model = &more[models->count];
    *model = (struct predict_model){.nominal_bytes_per_s = row->nominal_bytes_per_s,
                                    .distance_s = distance_of(row),
                                    .rack_ranks = row->rack_ranks,
                                    .oversubscribed = row->oversubscribed,
                                    .one_machine = predict_one_machine(row->network)};
    snprintf(model->network, sizeof model->network, "%s", row->network);
    transport_of(row, model->transport);
    row->model_index = (int)models->count++;
    share_rate(models, row);
    return STATUS_OK;
}

static void widen(struct predict_range *range, uint64_t number, bool first)
{
    range->least = first || number < range->least ? number : range->least;
    range->most = first || number > range->most ? number : range->most;
}

/* How long all cores together were busy with a row's processes; 0: unknown. Known only if all
 * processes share one machine and sleep while they wait: over zmq. Processes over mpi poll, and
 * those over tcp poll for some time. Also unknown below CPU_WATCH_LONG_US: there the busy share is
 * that of the whole loop, which also fills and checks vectors. */
static double processors_s(const struct predict_row *row)
{
    bool sleeps = strcmp(row->transport, "zmq") == 0;
    if (!sleeps || !predict_one_machine(row->network) || row->cpu_busy <= row->cpu_other ||
        row->median_s < CPU_WATCH_LONG_US * 1e-6)
        return 0;
    return (row->cpu_busy - row->cpu_other) * row->median_s;
}

/* Collects the fitted rows of a model. With `pool`, collects those of psring's other transports on
 * the same network. `samples` must have space for all rows. */
static size_t collect(const struct predict_models *models, size_t index, bool pool,
                      const struct predict_rows *rows, struct predict_sample *samples)
{
    size_t count = 0;
    for (size_t i = 0; i < rows->count; i++) {
        const struct predict_row *row = &rows->rows[i];
        bool own = row->model_index == (int)index;
        bool other = !own && strcmp(row->network, models->models[index].network) == 0 &&
                     strcmp(row->transport, "none") != 0;
        if (row->use == PREDICT_FIT && (pool ? other : own))
            samples[count++] = (struct predict_sample){.terms = row->terms,
                                                       .seconds = row->median_s,
                                                       .noise_s = row->noise_s,
                                                       .processors_s = processors_s(row),
                                                       .workers = (uint64_t)row->workers,
                                                       .bytes = row->bytes};
    }
    return count;
}

static void describe(struct predict_model *model, int index, const struct predict_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        const struct predict_row *row = &rows->rows[i];
        if (row->model_index != index)
            continue;
        model->held_out += row->use == PREDICT_HOLD_OUT;
        if (row->use != PREDICT_FIT)
            continue;
        bool first = model->fitted++ == 0;
        widen(&model->workers, (uint64_t)row->workers, first);
        widen(&model->servers, (uint64_t)row->servers, first);
        widen(&model->bytes, row->bytes, first);
    }
}

/* Fits one model. With too few rows it keeps no errors, which marks it as not fitted. */
static enum status fit_model(struct predict_models *models, size_t index,
                             const struct predict_rows *rows, struct predict_sample *samples,
                             uint64_t seed)
{
    enum status status = STATUS_OK;
    struct predict_model *model = &models->models[index];
    struct predict_fit pooled = {0};
    describe(model, (int)index, rows);
    if (model->fitted < PREDICT_FIT_ENOUGH) {
        size_t pool = collect(models, index, true, rows, samples);
        if (pool >= PREDICT_FIT_LEAST)
            TRY(predict_fit(&pooled, samples, pool, NULL, seed));
    }
    model->pooled = pooled.error_count > 0;
    size_t count = collect(models, index, false, rows, samples);
    if (count >= (model->pooled ? PREDICT_POOLED_LEAST : PREDICT_FIT_LEAST))
        TRY(predict_fit(&model->fit, samples, count, model->pooled ? &pooled : NULL, seed));
out:
    predict_fit_free(&pooled);
    return status;
}

static enum status choose_rows(struct predict_models *models, struct predict_rows *rows, int *hosts)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < rows->count; i++) {
        struct predict_row *row = &rows->rows[i];
        struct predict_shape shape;
        bool known = predict_shape_of(row, hosts, &shape, &row->why);
        if (known && !predict_terms_of(&shape, &row->terms)) {
            row->why = "no formula is known for it";
            known = false;
        }
        row->use = known ? PREDICT_FIT : PREDICT_NOT_USED;
        if (known && is_disturbed(row)) {
            row->why = "the machine was busy with other work";
            row->use = PREDICT_NOT_USED;
        } else if (known) {
            TRY(add_model(models, row));
        }
    }
    for (size_t i = 0; i < rows->count; i++) {
        struct predict_row *row = &rows->rows[i];
        if (row->use == PREDICT_NOT_USED && row->terms.of[TERM_LINK] > 0)
            row->model_index = find_model(models, row);
    }
out:
    return status;
}

static void log_too_few(const struct predict_rows *rows)
{
    size_t usable = 0, held = 0;
    const char *why = NULL;
    for (size_t i = 0; i < rows->count; i++) {
        usable += rows->rows[i].use == PREDICT_FIT;
        held += rows->rows[i].use == PREDICT_HOLD_OUT;
        why = why ? why : rows->rows[i].why;
    }
    log_error(
        "predict: %zu rows (runs of one point count once), %zu to fit, %zu held out: no network "
        "and transport has the %d rows of a fit%s%s; give more rows (--fit FILE,...)%s",
        rows->count, usable, held, PREDICT_FIT_LEAST, why ? "; the first unused row: " : "",
        why ? why : "", held > 0 ? ", or hold fewer out (--hold-out none)" : "");
}

enum status predict_models_fit(struct predict_models *models, struct predict_rows *rows,
                               const char *hold_out, uint64_t seed)
{
    enum status status = STATUS_NO_MEMORY;
    size_t fitted = 0;
    int *hosts = malloc(sizeof *hosts * 2 * PREDICT_WORKERS_MOST);
    struct predict_sample *samples = malloc((rows->count + 1) * sizeof *samples);
    *models = (struct predict_models){0};
    if (!hosts || !samples) {
        log_error("predict: no memory to fit %zu rows", rows->count);
        goto out;
    }
    TRY(choose_rows(models, rows, hosts));
    TRY(predict_rows_join(rows));
    TRY(predict_hold_out(rows, hold_out));
    for (size_t m = 0; m < models->count; m++) {
        TRY(fit_model(models, m, rows, samples, seed));
        fitted += models->models[m].fit.error_count > 0;
    }
    if (fitted == 0) {
        log_too_few(rows);
        status = STATUS_INPUT;
    }
out:
    free(hosts);
    free(samples);
    return status;
}

void predict_models_free(struct predict_models *models)
{
    for (size_t m = 0; m < models->count; m++)
        predict_fit_free(&models->models[m].fit);
    free(models->models);
    *models = (struct predict_models){0};
}

/* model.json: everything that a prediction needs, and the range in which it holds. */

static const char format[] = "psring-model-2";

/* -------- writing ----------------------------------------------------------------------------- */

static void write_range(cJSON *object, const char *name, struct predict_range range)
{
    const double ends[] = {(double)range.least, (double)range.most};
    cJSON_AddItemToObject(object, name, cJSON_CreateDoubleArray(ends, 2));
}

static cJSON *constants_json(const struct predict_fit *fit)
{
    cJSON *constants = cJSON_CreateObject();
    for (int t = 0; t < PREDICT_TERMS; t++) {
        cJSON *constant = cJSON_AddObjectToObject(constants, predict_term_names[t]);
        cJSON_AddNumberToObject(constant, "value", fit->constants.of[t]);
        cJSON_AddNumberToObject(constant, "low", fit->low.of[t]);
        cJSON_AddNumberToObject(constant, "high", fit->high.of[t]);
        cJSON_AddItemToObject(constant, "covariance",
                              cJSON_CreateDoubleArray(fit->covariance[t], PREDICT_TERMS));
        cJSON_AddStringToObject(constant, "meaning", predict_term_meanings[t]);
    }
    return constants;
}

static cJSON *errors_json(const struct predict_fit *fit)
{
    cJSON *errors = cJSON_CreateArray();
    for (size_t e = 0; e < fit->error_count; e++) {
        const double pair[] = {fit->errors[e].seconds, fit->errors[e].error};
        cJSON_AddItemToArray(errors, cJSON_CreateDoubleArray(pair, 2));
    }
    return errors;
}

static cJSON *model_json(const struct predict_model *model)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "network", model->network);
    cJSON_AddStringToObject(object, "transport", model->transport);
    cJSON_AddNumberToObject(object, "nominal_link_bytes_per_s", model->nominal_bytes_per_s);
    cJSON_AddNumberToObject(object, "distance_s", model->distance_s);
    cJSON_AddNumberToObject(object, "rack_ranks", model->rack_ranks);
    cJSON_AddNumberToObject(object, "oversubscribed", model->oversubscribed);
    write_range(object, "workers", model->workers);
    write_range(object, "servers", model->servers);
    write_range(object, "bytes", model->bytes);
    cJSON_AddNumberToObject(object, "rows_fitted", (double)model->fitted);
    cJSON_AddNumberToObject(object, "rows_held_out", (double)model->held_out);
    cJSON_AddItemToObject(object, "constants", constants_json(&model->fit));
    cJSON_AddItemToObject(object, "errors", errors_json(&model->fit));
    return object;
}

static cJSON *choice_json(const struct predict_held_out *choice)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddNumberToObject(object, "cases", (double)choice->cases);
    cJSON_AddNumberToObject(object, "slower_mean", choice->mean);
    cJSON_AddNumberToObject(object, "slower_worst", choice->worst);
    return object;
}

enum status predict_models_write(const struct predict_models *models, const char *path)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "format", format);
    cJSON_AddItemToObject(root, "choice_held_out", choice_json(&models->choice));
    cJSON *list = cJSON_AddArrayToObject(root, "models");
    for (size_t m = 0; m < models->count; m++) {
        if (models->models[m].fit.error_count > 0)
            cJSON_AddItemToArray(list, model_json(&models->models[m]));
    }
    enum status status = result_write_json(path, root);
    cJSON_Delete(root);
    return status;
}

/* -------- reading ----------------------------------------------------------------------------- */

static enum status refuse(const char *path, const char *what)
{
    return FAIL(STATUS_INPUT,
                "%s: %s; expected a model.json of this version; run psring predict --fit again",
                path, what);
}

/* The number of an item. NAN unless it is finite and at least 0. */
static double number(const cJSON *item)
{
    bool good = cJSON_IsNumber(item) && isfinite(item->valuedouble) && item->valuedouble >= 0;
    return good ? item->valuedouble : (double)NAN;
}

static double member(const cJSON *object, const char *name)
{
    return number(cJSON_GetObjectItemCaseSensitive(object, name));
}

static bool read_range(const cJSON *object, const char *name, struct predict_range *range)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(object, name);
    double least = number(cJSON_GetArrayItem(list, 0)), most = number(cJSON_GetArrayItem(list, 1));
    if (!(least <= most && most < 1e18))
        return false;
    *range = (struct predict_range){(uint64_t)least, (uint64_t)most};
    return true;
}

static bool read_constants(const cJSON *object, struct predict_fit *fit)
{
    const cJSON *constants = cJSON_GetObjectItemCaseSensitive(object, "constants");
    for (int t = 0; t < PREDICT_TERMS; t++) {
        const cJSON *constant = cJSON_GetObjectItemCaseSensitive(constants, predict_term_names[t]);
        const cJSON *row = cJSON_GetObjectItemCaseSensitive(constant, "covariance");
        fit->constants.of[t] = member(constant, "value");
        fit->low.of[t] = member(constant, "low");
        fit->high.of[t] = member(constant, "high");
        if (isnan(fit->constants.of[t] + fit->low.of[t] + fit->high.of[t]) ||
            cJSON_GetArraySize(row) != PREDICT_TERMS)
            return false;
        for (int u = 0; u < PREDICT_TERMS; u++) {
            const cJSON *item = cJSON_GetArrayItem(row, u);
            if (!cJSON_IsNumber(item) || !isfinite(item->valuedouble))
                return false;
            fit->covariance[t][u] = item->valuedouble;
        }
    }
    return true;
}

static bool read_errors(const cJSON *object, struct predict_fit *fit)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(object, "errors"), *pair;
    int count = cJSON_GetArraySize(list);
    fit->errors = count > 0 ? calloc((size_t)count, sizeof *fit->errors) : NULL;
    if (!fit->errors)
        return false;
    cJSON_ArrayForEach(pair, list)
    {
        struct predict_error error = {number(cJSON_GetArrayItem(pair, 0)),
                                      number(cJSON_GetArrayItem(pair, 1))};
        if (isnan(error.error) || !(error.seconds > 0) ||
            (fit->error_count > 0 && error.seconds < fit->errors[fit->error_count - 1].seconds))
            return false;
        fit->errors[fit->error_count++] = error;
    }
    return true;
}

static bool read_model(const cJSON *object, struct predict_model *model)
{
    const cJSON *network = cJSON_GetObjectItemCaseSensitive(object, "network");
    const cJSON *transport = cJSON_GetObjectItemCaseSensitive(object, "transport");
    double fitted = member(object, "rows_fitted");
    double held_out = member(object, "rows_held_out"), distance_s = member(object, "distance_s");
    double rack_ranks = member(object, "rack_ranks");
    if (!cJSON_IsString(network) || !cJSON_IsString(transport) || !(fitted < 1e9) ||
        !(held_out < 1e9) || strlen(network->valuestring) >= sizeof model->network ||
        strlen(transport->valuestring) >= sizeof model->transport)
        return false;
    snprintf(model->network, sizeof model->network, "%s", network->valuestring);
    snprintf(model->transport, sizeof model->transport, "%s", transport->valuestring);
    model->nominal_bytes_per_s = member(object, "nominal_link_bytes_per_s");
    /* Files of earlier versions lack these. */
    model->distance_s = isnan(distance_s) ? 0 : distance_s;
    model->oversubscribed = member(object, "oversubscribed");
    bool racks = rack_ranks <= PREDICT_WORKERS_MOST && model->oversubscribed >= 1;
    model->rack_ranks = racks ? (int)rack_ranks : 0;
    model->one_machine = predict_one_machine(model->network);
    model->fitted = (size_t)fitted;
    model->held_out = (size_t)held_out;
    return !isnan(model->nominal_bytes_per_s) && read_range(object, "workers", &model->workers) &&
           read_range(object, "servers", &model->servers) &&
           read_range(object, "bytes", &model->bytes) && read_constants(object, &model->fit) &&
           read_errors(object, &model->fit);
}

/* Reads choice_held_out. Files of earlier versions lack it. */
static bool read_choice(const cJSON *object, struct predict_held_out *choice)
{
    double cases = member(object, "cases");
    choice->mean = member(object, "slower_mean");
    choice->worst = member(object, "slower_worst");
    if (!object)
        *choice = (struct predict_held_out){0};
    else if (!(cases < 1e9) || isnan(choice->mean + choice->worst))
        return false;
    else
        choice->cases = (size_t)cases;
    return true;
}

static enum status read_models(struct predict_models *models, const cJSON *root, const char *path)
{
    const cJSON *said = cJSON_GetObjectItemCaseSensitive(root, "format"), *object;
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, "models");
    if (!cJSON_IsString(said) || strcmp(said->valuestring, format) != 0)
        return refuse(path, "no format psring-model-2");
    if (!read_choice(cJSON_GetObjectItemCaseSensitive(root, "choice_held_out"), &models->choice))
        return refuse(path, "choice_held_out is incomplete");
    models->models = calloc((size_t)cJSON_GetArraySize(list) + 1, sizeof *models->models);
    if (!models->models)
        return STATUS_NO_MEMORY;
    cJSON_ArrayForEach(object, list)
    {
        if (!read_model(object, &models->models[models->count++]))
            return refuse(path, "a model is incomplete");
    }
    return models->count > 0 ? STATUS_OK : refuse(path, "it has no model");
}

enum status predict_models_read(struct predict_models *models, const char *path)
{
    *models = (struct predict_models){0};
    errno = 0;
    char *text = text_of_file(path, NULL);
    if (!text && errno != 0)
        return refuse(path, strerror(errno));
    cJSON *root = text ? cJSON_Parse(text) : NULL;
    enum status status = root ? read_models(models, root, path) : refuse(path, "not JSON");
    cJSON_Delete(root);
    free(text);
    return status;
}
