/* model.json: all that a prediction needs, and where it holds. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/fit/model.h"
#include "experiments/measure/info.h"

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
    log_error("%s: %s; expected a model.json of this version, as psring predict --fit writes it: "
              "fit again",
              path, what);
    return STATUS_INPUT;
}

/* NAN: it is no finite number of at least 0. */
static double number(const cJSON *item)
{
    bool good = cJSON_IsNumber(item) && isfinite(item->valuedouble) && item->valuedouble >= 0;
    return good ? item->valuedouble : (double)NAN;
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
        fit->constants.of[t] = number(cJSON_GetObjectItemCaseSensitive(constant, "value"));
        fit->low.of[t] = number(cJSON_GetObjectItemCaseSensitive(constant, "low"));
        fit->high.of[t] = number(cJSON_GetObjectItemCaseSensitive(constant, "high"));
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
    double fitted = number(cJSON_GetObjectItemCaseSensitive(object, "rows_fitted"));
    double held_out = number(cJSON_GetObjectItemCaseSensitive(object, "rows_held_out"));
    if (!cJSON_IsString(network) || !cJSON_IsString(transport) || !(fitted < 1e9) ||
        !(held_out < 1e9) || strlen(network->valuestring) >= sizeof model->network ||
        strlen(transport->valuestring) >= sizeof model->transport)
        return false;
    snprintf(model->network, sizeof model->network, "%s", network->valuestring);
    snprintf(model->transport, sizeof model->transport, "%s", transport->valuestring);
    model->nominal_bytes_per_s =
        number(cJSON_GetObjectItemCaseSensitive(object, "nominal_link_bytes_per_s"));
    model->one_machine = predict_one_machine(model->network);
    model->fitted = (size_t)fitted;
    model->held_out = (size_t)held_out;
    return !isnan(model->nominal_bytes_per_s) && read_range(object, "workers", &model->workers) &&
           read_range(object, "servers", &model->servers) &&
           read_range(object, "bytes", &model->bytes) && read_constants(object, &model->fit) &&
           read_errors(object, &model->fit);
}

/* Files of earlier versions have none. */
static bool read_choice(const cJSON *object, struct predict_held_out *choice)
{
    double cases = number(cJSON_GetObjectItemCaseSensitive(object, "cases"));
    choice->mean = number(cJSON_GetObjectItemCaseSensitive(object, "slower_mean"));
    choice->worst = number(cJSON_GetObjectItemCaseSensitive(object, "slower_worst"));
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
        return refuse(path, "its choice_held_out is not whole");
    models->models = calloc((size_t)cJSON_GetArraySize(list) + 1, sizeof *models->models);
    if (!models->models)
        return STATUS_NO_MEMORY;
    cJSON_ArrayForEach(object, list)
    {
        if (!read_model(object, &models->models[models->count++]))
            return refuse(path, "a model in it is not whole");
    }
    return models->count > 0 ? STATUS_OK : refuse(path, "no model in it");
}

/* The caller frees; NULL: errno says why. */
static char *read_text(const char *path)
{
    enum { TEXT_MOST = 64 << 20 };
    FILE *file = fopen(path, "r");
    size_t room = 1 << 16, used = 0;
    char *text = file ? malloc(room) : NULL;
    while (text && !feof(file) && !ferror(file) && used < TEXT_MOST) {
        used += fread(text + used, 1, room - 1 - used, file);
        text[used] = 0;
        if (used + 1 < room)
            continue;
        char *more = realloc(text, room *= 2);
        if (!more)
            free(text);
        text = more;
    }
    if (file)
        fclose(file);
    return text;
}

enum status predict_models_read(struct predict_models *models, const char *path)
{
    *models = (struct predict_models){0};
    char *text = read_text(path);
    if (!text)
        return refuse(path, strerror(errno));
    cJSON *root = cJSON_Parse(text);
    enum status status = root ? read_models(models, root, path) : refuse(path, "no JSON");
    cJSON_Delete(root);
    free(text);
    return status;
}
