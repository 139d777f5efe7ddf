/* JSON results, and the build and machine facts of psring info. */
#include "experiments/bench/info.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/capture.h"

static void read_all(const char *path, char text[4096])
{
    FILE *file = fopen(path, "r");
    cr_assert(file, "%s is missing", path);
    size_t count = fread(text, 1, 4095, file);
    text[count] = '\0';
    fclose(file);
}

static void expect_number(const char *path, double expected)
{
    char text[4096];
    read_all(path, text);
    cJSON *json = cJSON_Parse(text);
    cr_assert(json, "not JSON: %s", text);
    cr_expect_eq(cJSON_GetObjectItem(json, "n")->valuedouble, expected);
    cJSON_Delete(json);
}

Test(result, replaces_the_file)
{
    char folder[64], path[80], part[96];
    folder_new(folder);
    snprintf(path, sizeof path, "%s/x.json", folder);
    snprintf(part, sizeof part, "%s.part", path);
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "n", 1);
    cr_assert_eq(result_write_json(path, json), STATUS_OK);
    expect_number(path, 1);
    cJSON_SetNumberValue(cJSON_GetObjectItem(json, "n"), 2);
    cr_assert_eq(result_write_json(path, json), STATUS_OK);
    expect_number(path, 2);
    cr_expect_neq(access(part, F_OK), 0);
    cJSON_Delete(json);
    folder_free(folder);
}

Test(result, refuses)
{
    cJSON *json = cJSON_CreateObject();
    assert_refused(result_write_json("/nowhere/x.json", json), STATUS_IO, "/nowhere/x.json");
    assert_refused(result_write_json("/dev/full", json), STATUS_IO, "/dev/full");
    assert_refused(result_write_json("x.json", NULL), STATUS_NO_MEMORY, "x.json");
    cr_expect_neq(access("/nowhere", F_OK), 0);
    cJSON_Delete(json);
}

Test(result, configuration_is_complete)
{
    char command[] = "bench", backend[] = "--backend=none", first[] = "-b4k";
    char *arguments[] = {command, backend, first, NULL};
    struct config config;
    bool helped;
    cr_assert_eq(config_parse(CONFIG_BENCH, 3, arguments, &config, &helped), STATUS_OK);
    cJSON *json = result_config_json(&config);
    cr_expect_str_eq(cJSON_GetObjectItem(json, "backend")->valuestring, "none");
    cr_expect_str_eq(cJSON_GetObjectItem(json, "min-bytes")->valuestring, "4096");
    cr_expect_not_null(cJSON_GetObjectItem(json, "iters"));
    cJSON_Delete(json);
}

static const cJSON *item(const cJSON *json, const char *section, const char *name)
{
    const cJSON *object = cJSON_GetObjectItem(cJSON_GetObjectItem(json, section), name);
    cr_assert(object, "%s: %s is missing", section, name);
    return object;
}

static bool available(const cJSON *json, const char *section, const char *name)
{
    return cJSON_IsTrue(cJSON_GetObjectItem(item(json, section, name), "available"));
}

Test(info, says_what_there_is)
{
    struct config config = {.command = CONFIG_INFO};
    cJSON *json = info_json(&config);
    cr_assert(json);
    cr_expect_str_eq(item(json, "build", "psring")->valuestring, PSRING_VERSION);
    cr_expect(available(json, "backends", "ring"));
    cr_expect(available(json, "backends", "ps"));
    cr_expect(available(json, "backends", "mpi"));
    cr_expect(available(json, "transports", "zmq"));
    cr_expect(available(json, "devices", "cpu"));
    cr_expect(available(json, "libraries", "zeromq"));
    cr_expect_neq(item(json, "machine", "cpu")->valuestring[0], '\0');
    item(json, "backends", "nccl");
    item(json, "build", "commit");
    cJSON_Delete(json);
}

Test(machine, fields_of_files)
{
    char folder[64], path[80], text[32] = "unknown";
    folder_new(folder);
    snprintf(path, sizeof path, "%s/cpuinfo", folder);
    FILE *file = fopen(path, "w");
    cr_assert(file);
    fputs("model\t\t: 17\nmodel name\t: Some CPU @ 2.0\nmodel name\t: Other\nNAME=\"A B\"\n", file);
    fclose(file);
    machine_read_field(path, "nothing", ':', text, sizeof text);
    cr_expect_str_eq(text, "unknown");
    machine_read_field(path, "model name", ':', text, sizeof text);
    cr_expect_str_eq(text, "Some CPU @ 2.0");
    machine_read_field(path, "NAME", '=', text, sizeof text);
    cr_expect_str_eq(text, "A B");
    machine_read_field(path, "model", ':', text, sizeof text);
    cr_expect_str_eq(text, "17");
    machine_read_field("/nowhere", "model", ':', text, sizeof text);
    cr_expect_str_eq(text, "17");
    folder_free(folder);
}

Test(machine, has_cores_and_a_kernel)
{
    struct config config = {.command = CONFIG_INFO};
    cJSON *json = info_json(&config);
    int usable = 0, cores = 0;
    sscanf(item(json, "machine", "cores")->valuestring, "%d usable of %d", &usable, &cores);
    cr_expect_geq(usable, 1);
    cr_expect_geq(cores, usable);
    cr_expect_neq(strcmp(item(json, "machine", "kernel")->valuestring, "unknown"), 0);
    cJSON_Delete(json);
}
