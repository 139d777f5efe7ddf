#include "experiments/bench/info.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <openssl/crypto.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>
#include <zmq.h>

#include "common/base/status.h"
#include "common/base/text.h"
#include "common/data/dataset.h"
#include "common/device/device.h"
#include "common/net/host.h"
#include "experiments/config/backends.h"
#include "experiments/bench/commit.h"
#include "ring/baselines/baselines.h"

enum item_kind { ITEM_HAVE, ITEM_LACK, ITEM_FACT };

enum { ITEMS_MAX = 96, NAME_BYTES = 24, DETAIL_BYTES = 512 };

struct item {
    const char *section;
    char name[NAME_BYTES];
    enum item_kind kind;
    char detail[DETAIL_BYTES];
};

struct items {
    struct item list[ITEMS_MAX];
    size_t count;
};

/* The length of the UTF-8 character at `text`; 0: there is none. */
static size_t utf8_length(const unsigned char *text)
{
    /* The first byte, from and to, the second byte, from and to, and the bytes of the character. */
    static const struct {
        unsigned char first, last, low, high;
        size_t length;
    } forms[] = {
        {0x01, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (text[0] < forms[i].first || text[0] > forms[i].last)
            continue;
        size_t length = 1;
        while (length < forms[i].length &&
               (length == 1 ? text[1] >= forms[i].low && text[1] <= forms[i].high
                            : (text[length] & 0xc0) == 0x80))
            length++;
        return length == forms[i].length ? length : 0;
    }
    return 0;
}

/* Replaces bytes that are not UTF-8 (a path in Latin-1, for example), because JSON is UTF-8. */
static void make_utf8(char *text)
{
    while (*text) {
        size_t length = utf8_length((const unsigned char *)text);
        if (length == 0)
            *text = '?';
        text += length ? length : 1;
    }
}

__attribute__((format(printf, 5, 6))) static void add(struct items *items, const char *section,
                                                      const char *name, enum item_kind kind,
                                                      const char *format, ...)
{
    CHECK(items->count < ITEMS_MAX);
    struct item *item = &items->list[items->count++];
    *item = (struct item){.section = section, .kind = kind};
    snprintf(item->name, sizeof item->name, "%s", name);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(item->detail, sizeof item->detail, format, arguments);
    va_end(arguments);
    make_utf8(item->detail);
}

/* A machine with more GPUs than this has equal ones, so the list may end here. */
enum { DEVICE_ITEMS_MAX = 48 };

static void add_device(void *context, const char *name, const char *text)
{
    struct items *items = context;
    if (items->count < DEVICE_ITEMS_MAX)
        add(items, "devices", name, ITEM_FACT, "%s", text);
}

/* -------- what this build has ----------------------------------------------------------------- */

static void add_build(struct items *items)
{
    add(items, "build", "psring", ITEM_FACT, "%s", PSRING_VERSION);
    add(items, "build", "commit", ITEM_FACT, "%s", PSRING_COMMIT);
    add(items, "build", "type", ITEM_FACT, "%s", PSRING_BUILD_TYPE);
    add(items, "build", "compiler", ITEM_FACT, "%s", PSRING_COMPILER);
}

static void add_parts(struct items *items)
{
    for (size_t i = 0; i < backend_count(); i++) {
        const struct backend *backend = backend_get(i);
        add(items, "backends", backend->name, backend->unavailable ? ITEM_LACK : ITEM_HAVE, "%s",
            backend->unavailable ? backend->unavailable : backend->summary);
    }
    for (enum transport_kind kind = 0; kind < TRANSPORT_KINDS; kind++) {
        const char *reason = transport_kind_unavailable(kind);
        add(items, "transports", transport_kind_name(kind), reason ? ITEM_LACK : ITEM_HAVE, "%s",
            reason ? reason : transport_kind_summary(kind));
    }
    for (int kind = 0; device_kind_names[kind]; kind++) {
        char text[DEVICE_REASON_BYTES];
        const char *reason = device_unavailable(kind, text);
        add(items, "devices", device_kind_names[kind], reason ? ITEM_LACK : ITEM_HAVE, "%s",
            reason ? reason : "ready");
        if (!reason)
            device_list(kind, add_device, items);
    }
}

/* -------- libraries --------------------------------------------------------------------------- */

/* The processor for which OpenBLAS chose its kernels. Other CBLAS libraries lack this function. */
static const char *cblas_kernels(void)
{
    const char *(*corename)(void) = NULL;
    void *symbol = dlsym(RTLD_DEFAULT, "openblas_get_corename");
    memcpy(&corename, &symbol, sizeof corename); /* ISO C has no cast from void * to a function */
    return corename ? corename() : NULL;
}

static void add_libraries(struct items *items, const struct config *config)
{
    int major, minor, patch;
    char mpi[DETAIL_BYTES];
    const char *kernels = cblas_kernels();
    zmq_version(&major, &minor, &patch);
    add(items, "libraries", "zeromq", ITEM_HAVE, "%d.%d.%d%s", major, minor, patch,
        zmq_has("curve") ? ", with CURVE" : "");
    if (world_mpi_version(mpi, sizeof mpi)) {
        bool aware = !config->rendezvous && library_is_cuda_aware(); /* needs a running MPI */
        add(items, "libraries", "mpi", ITEM_HAVE, "%s", mpi);
        add(items, "libraries", "mpi on GPUs", aware ? ITEM_HAVE : ITEM_LACK, "%s",
            aware ? "CUDA-aware: --backend mpi averages a GPU's memory where it is"
                  : "does not say that it is CUDA-aware: --backend mpi uses host memory");
    } else
        add(items, "libraries", "mpi", ITEM_LACK, "%s", transport_kind_unavailable(TRANSPORT_MPI));
    add(items, "libraries", "cblas", ITEM_HAVE, "%s%s%s", PSRING_CBLAS,
        kernels ? ", kernels for " : "", kernels ? kernels : "");
    add(items, "libraries", "zlib", ITEM_HAVE, "%s", zlibVersion());
    add(items, "libraries", "openssl", ITEM_HAVE, "%s", OpenSSL_version(OPENSSL_VERSION));
    add(items, "libraries", "cjson", ITEM_HAVE, "%s", cJSON_Version());
    char version[32];
    bool cuda = PSRING_TOOLKIT_CUDA[0] != '\0', nccl = PSRING_TOOLKIT_NCCL[0] != '\0';
    add(items, "libraries", "cuda", cuda ? ITEM_HAVE : ITEM_LACK, "%s",
        cuda ? PSRING_TOOLKIT_CUDA : "no CUDA toolkit was found when this was configured");
    bool opened = nccl && nccl_version(version, sizeof version);
    add(items, "libraries", "nccl", opened ? ITEM_HAVE : ITEM_LACK, "%s",
        opened ? version
        : nccl ? "its library cannot be loaded: install libnccl.so.2 or name its folder in "
                 "LD_LIBRARY_PATH"
               : "not found when this was configured");
}

/* -------- the machine ------------------------------------------------------------------------- */

static bool have_tool(const char *name)
{
    static const char *const folders[] = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
                                          "/usr/bin",        "/sbin",          "/bin"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char path[64];
        snprintf(path, sizeof path, "%s/%s", folders[i], name);
        if (access(path, X_OK) == 0)
            return true;
    }
    return false;
}

/* The programs that experiments/vcluster.sh needs. */
static void add_virtual_cluster(struct items *items)
{
    const char *missing = !have_tool("ip")        ? "ip (Debian: iproute2)"
                          : !have_tool("tc")      ? "tc (Debian: iproute2)"
                          : !have_tool("unshare") ? "unshare (Debian: util-linux)"
                          : !have_tool("mpirun")  ? "mpirun (Debian: openmpi-bin)"
                                                  : NULL;
    if (missing)
        add(items, "machine", "virtual cluster", ITEM_LACK, "needs %s", missing);
    else
        add(items, "machine", "virtual cluster", ITEM_HAVE,
            "ip, tc, unshare and mpirun are there%s",
            geteuid() == 0 ? "" : "; without root, the system must allow user namespaces");
}

#if defined(__x86_64__) || defined(__i386__)
static void read_simd(char *text, size_t size)
{
    const struct {
        const char *name;
        bool has;
    } all[] = {{"sse4.2", __builtin_cpu_supports("sse4.2")},
               {"avx", __builtin_cpu_supports("avx")},
               {"avx2", __builtin_cpu_supports("avx2")},
               {"fma", __builtin_cpu_supports("fma")},
               {"avx512f", __builtin_cpu_supports("avx512f")}};
    struct line line = line_in(text, size);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i].has)
            line_add(&line, "%s%s", line.used > 0 ? " " : "", all[i].name);
    }
}
#elif defined(__ARM_NEON)
static void read_simd(char *text, size_t size)
{
    snprintf(text, size, "neon");
}
#else
static void read_simd(char *text, size_t size)
{
    snprintf(text, size, "unknown");
}
#endif

/* A text that the system does not provide is "unknown". */
static void add_machine(struct items *items)
{
    char cpu[DETAIL_BYTES] = "unknown", system[DETAIL_BYTES] = "unknown", when[32] = "unknown";
    char usable[PIN_LIST_BYTES], simd[64];
    struct utsname names;
    struct tm utc;
    cpu_set_t set;
    time_t now = time(NULL);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    double bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if (gmtime_r(&now, &utc))
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &utc);
    CHECK(uname(&names) == 0); /* only a bad pointer makes it fail */
    machine_read_field("/etc/os-release", "PRETTY_NAME", '=', system, sizeof system);
    machine_read_field("/proc/cpuinfo", "model name", ':', cpu, sizeof cpu);
    cores = cores > 0 ? cores : 1;
    bool known = sched_getaffinity(0, sizeof set, &set) == 0;
    pin_list_own(usable);
    read_simd(simd, sizeof simd);
    add(items, "machine", "time", ITEM_FACT, "%s", when);
    add(items, "machine", "host", ITEM_FACT, "%s", names.nodename);
    add(items, "machine", "system", ITEM_FACT, "%s", system);
    add(items, "machine", "kernel", ITEM_FACT, "%s %s %s", names.sysname, names.release,
        names.machine);
    add(items, "machine", "cpu", ITEM_FACT, "%s", cpu);
    add(items, "machine", "cores", ITEM_FACT, "%ld usable of %ld: %s",
        known ? (long)CPU_COUNT(&set) : cores, cores, usable);
    add(items, "machine", "simd", ITEM_FACT, "%s", simd);
    add(items, "machine", "memory", ITEM_FACT, "%.1f GiB", fmax(bytes, 0) * 0x1p-30);
    add_virtual_cluster(items);
    if (have_tool("gnuplot"))
        add(items, "machine", "gnuplot", ITEM_HAVE, "plots can be drawn");
    else
        add(items, "machine", "gnuplot", ITEM_LACK, "no plots (Debian: gnuplot-nox)");
}

/* Adds a setting of /proc/sys/net/ipv4; skips one that cannot be read. */
static void add_kernel_setting(struct items *items, const char *name, const char *path)
{
    char text[128] = "";
    FILE *file = fopen(path, "r");
    if (!file)
        return;
    if (fgets(text, sizeof text, file)) {
        text[strcspn(text, "\n")] = '\0';
        for (char *tab = text; (tab = strchr(tab, '\t'));)
            *tab = ' ';
        add(items, "network", name, ITEM_FACT, "%s", text);
    }
    fclose(file);
}

static void append_parameter(void *context, const char *name, const char *value)
{
    char *text = context;
    size_t used = strlen(text);
    snprintf(text + used, DETAIL_BYTES - used, "%s%s=%s", used ? " " : "", name, value);
}

/* Settings outside psring that decide the speed of messages. */
static void add_network(struct items *items)
{
    char parameters[DETAIL_BYTES] = "", transports[DETAIL_BYTES] = "";
    for (size_t i = 0; i < backend_count(); i++) {
        const struct backend *backend = backend_get(i);
        if (backend->uses_transport)
            append_parameter(transports, backend->name,
                             transport_kind_name(backend->default_transport));
    }
    config_visit_mca(append_parameter, parameters);
    add_kernel_setting(items, "congestion", "/proc/sys/net/ipv4/tcp_congestion_control");
    add_kernel_setting(items, "receive buffers", "/proc/sys/net/ipv4/tcp_rmem");
    add_kernel_setting(items, "send buffers", "/proc/sys/net/ipv4/tcp_wmem");
    add(items, "network", "mpi parameters", ITEM_FACT, "%s",
        parameters[0] ? parameters : "all of Open MPI's own");
    add(items, "network", "default of", ITEM_FACT, "%s", transports);
}

static void add_data(struct items *items, const char *folder)
{
    struct dataset *dataset = NULL;
    if (dataset_open(&dataset, folder) == STATUS_OK)
        add(items, "data", dataset->name, ITEM_HAVE, "%zu images to train, %zu to test, in %s",
            dataset->train.count, dataset->test.count, folder);
    else
        add(items, "data", "images", ITEM_LACK, "%s cannot be used: see the message above", folder);
    dataset_free(&dataset);
}

/* -------- both forms -------------------------------------------------------------------------- */

static void collect(struct items *items, const struct config *config)
{
    items->count = 0;
    add_build(items);
    add_parts(items);
    add_libraries(items, config);
    add_machine(items);
    add_network(items);
    if (config->command == CONFIG_INFO && config->data)
        add_data(items, config->data);
}

static void print_matrix(FILE *out, const struct items *items)
{
    static const char *const marks[] = {
        [ITEM_HAVE] = "[X]", [ITEM_LACK] = "[ ]", [ITEM_FACT] = "   "};
    const char *section = "";
    for (size_t i = 0; i < items->count; i++) {
        const struct item *item = &items->list[i];
        if (strcmp(section, item->section) != 0)
            fprintf(out, "%s%s\n", i ? "\n" : "", item->section);
        section = item->section;
        fprintf(out, "  %s %-16s %s\n", marks[item->kind], item->name, item->detail);
    }
}

static bool add_item_json(cJSON *document, const struct item *item)
{
    cJSON *section = cJSON_GetObjectItemCaseSensitive(document, item->section);
    if (!section)
        section = cJSON_AddObjectToObject(document, item->section);
    if (item->kind == ITEM_FACT)
        return cJSON_AddStringToObject(section, item->name, item->detail);
    cJSON *object = cJSON_AddObjectToObject(section, item->name);
    return cJSON_AddBoolToObject(object, "available", item->kind == ITEM_HAVE) &&
           cJSON_AddStringToObject(object, "detail", item->detail);
}

static cJSON *items_json(const struct items *items)
{
    cJSON *document = cJSON_CreateObject();
    for (size_t i = 0; document && i < items->count; i++) {
        if (!add_item_json(document, &items->list[i])) {
            cJSON_Delete(document);
            document = NULL;
        }
    }
    return document;
}

cJSON *info_json(const struct config *config)
{
    struct items items;
    collect(&items, config);
    return items_json(&items);
}

enum status info_run(struct config *config, struct world *world)
{
    enum status status = STATUS_OK;
    struct items items;
    cJSON *document = NULL;
    if (world->rank != 0)
        return STATUS_OK;
    collect(&items, config);
    if (!config->json || strcmp(config->json, "-") != 0)
        print_matrix(stdout, &items);
    if (config->json) {
        document = items_json(&items);
        TRY(result_write_json(config->json, document));
    }
out:
    cJSON_Delete(document);
    return status;
}

static enum status refused(const char *path)
{
    return FAIL(STATUS_IO, "%s: cannot be written: %s; choose another place or make room", path,
                strerror(errno));
}

enum status result_flush_stdout(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return STATUS_OK;
    return FAIL(STATUS_IO, "standard output: not all of it could be written; choose another place "
                           "or make room");
}

/* Writes all of `text` and a line's end; closes the stream unless it is stdout. */
static bool put(FILE *file, const char *text)
{
    bool good = fputs(text, file) >= 0 && fputc('\n', file) != EOF && fflush(file) == 0;
    if (file != stdout && fclose(file) != 0)
        good = false;
    return good;
}

/* An existing path that is not a regular file (a pipe, /dev/stdout) is written to, not replaced. */
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
    if (!part)
        return FAIL(STATUS_NO_MEMORY, "%s: no memory to write it", path);
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
    if (!text)
        return FAIL(STATUS_NO_MEMORY, "%s: no memory to write it", path);
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

/* The value on `line` if the line has this key; else NULL. Cuts the line's end off. */
static char *field_value(char *line, const char *key, char separator)
{
    size_t length = strlen(key);
    if (strncmp(line, key, length) != 0)
        return NULL;
    char *at = line + length + strspn(line + length, " \t");
    if (*at != separator)
        return NULL;
    at++;
    at += strspn(at, " \t\"");
    at[strcspn(at, "\"\n")] = '\0';
    return at;
}

void machine_read_field(const char *path, const char *key, char separator, char *text, size_t size)
{
    char line[1024];
    FILE *file = fopen(path, "r");
    if (!file)
        return;
    while (fgets(line, sizeof line, file)) {
        const char *value = field_value(line, key, separator);
        if (value) {
            snprintf(text, size, "%s", value);
            break;
        }
    }
    fclose(file);
}
