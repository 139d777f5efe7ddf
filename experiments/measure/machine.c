#include "experiments/measure/machine.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* The value on `line` if it is KEY's; NULL if not. Cuts the line's end off. */
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

#if defined(__x86_64__) || defined(__i386__)
static void append_if(bool have, const char *word, char *text, size_t size)
{
    size_t used = strlen(text);
    if (have)
        snprintf(text + used, size - used, "%s%s", used ? " " : "", word);
}

static void read_simd(char *text, size_t size)
{
    text[0] = '\0';
    append_if(__builtin_cpu_supports("sse4.2"), "sse4.2", text, size);
    append_if(__builtin_cpu_supports("avx"), "avx", text, size);
    append_if(__builtin_cpu_supports("avx2"), "avx2", text, size);
    append_if(__builtin_cpu_supports("fma"), "fma", text, size);
    append_if(__builtin_cpu_supports("avx512f"), "avx512f", text, size);
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

void machine_read(struct machine *machine)
{
    struct utsname names;
    cpu_set_t usable;
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    *machine = (struct machine){.host = "unknown",
                                .cpu = "unknown",
                                .kernel = "unknown",
                                .system = "unknown",
                                .cores = cores > 0 ? (int)cores : 1};
    machine->cores_usable = machine->cores;
    if (pages > 0 && page_bytes > 0)
        machine->memory_bytes = (uint64_t)pages * (uint64_t)page_bytes;
    if (sched_getaffinity(0, sizeof usable, &usable) == 0)
        machine->cores_usable = CPU_COUNT(&usable);
    if (uname(&names) == 0) {
        snprintf(machine->host, sizeof machine->host, "%s", names.nodename);
        snprintf(machine->kernel, sizeof machine->kernel, "%s %s %s", names.sysname, names.release,
                 names.machine);
    }
    machine_read_field("/proc/cpuinfo", "model name", ':', machine->cpu, sizeof machine->cpu);
    machine_read_field("/etc/os-release", "PRETTY_NAME", '=', machine->system,
                       sizeof machine->system);
    read_simd(machine->simd, sizeof machine->simd);
}
