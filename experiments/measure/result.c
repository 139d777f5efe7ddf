#include "experiments/measure/result.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum status refused(const char *path)
{
    log_error("%s: cannot be written: %s; choose another place or make room", path,
              strerror(errno));
    return STATUS_IO;
}

enum status result_flush_stdout(void)
{
    return fflush(stdout) == 0 && !ferror(stdout) ? STATUS_OK : refused("standard output");
}

/* Writes all of `text` and a line's end; closes the stream unless it is stdout. */
static bool put(FILE *file, const char *text)
{
    bool good = fputs(text, file) >= 0 && fputc('\n', file) != EOF && fflush(file) == 0;
    if (file != stdout && fclose(file) != 0)
        good = false;
    return good;
}

/* Something that is there and is no regular file (a pipe, /dev/stdout) is written to, not replaced.
 */
static bool is_special(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && !S_ISREG(info.st_mode);
}

static enum status write_text(const char *path, const char *text)
{
    if (strcmp(path, "-") == 0)
        return put(stdout, text) ? STATUS_OK : refused("standard output");
    if (is_special(path)) {
        FILE *file = fopen(path, "w");
        return file && put(file, text) ? STATUS_OK : refused(path);
    }
    size_t size = strlen(path) + sizeof ".part";
    char *part = malloc(size);
    if (!part) {
        log_error("%s: no memory to write it", path);
        return STATUS_NO_MEMORY;
    }
    snprintf(part, size, "%s.part", path);
    FILE *file = fopen(part, "w");
    enum status status =
        file && put(file, text) && rename(part, path) == 0 ? STATUS_OK : refused(path);
    if (status != STATUS_OK && file)
        unlink(part);
    free(part);
    return status;
}

enum status result_write_json(const char *path, const cJSON *json)
{
    char *text = json ? cJSON_Print(json) : NULL;
    if (!text) {
        log_error("%s: no memory to write it", path);
        return STATUS_NO_MEMORY;
    }
    enum status status = write_text(path, text);
    cJSON_free(text);
    return status;
}

static void add_option(void *context, const char *name, const char *value)
{
    cJSON_AddStringToObject(context, name, value);
}

cJSON *result_config_json(const struct config *config)
{
    cJSON *object = cJSON_CreateObject();
    if (object)
        config_visit(config, add_option, object);
    return object;
}
