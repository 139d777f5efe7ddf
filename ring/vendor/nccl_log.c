#include "ring/vendor/nccl_log.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 512 };

/* NCCL's own numbers, where it wrote numbers. Source: NCCL, src/include/nccl_common.h. */
static const char *const algorithms[] = {"tree",          "ring", "collnet_direct",
                                         "collnet_chain", "nvls", "nvls_tree"};
static const char *const protocols[] = {"ll", "ll128", "simple"};

/* "RING" or "1" as "ring". */
static void copy_name(char name[NCCL_NAME_BYTES], const char *word, const char *const *names,
                      size_t count)
{
    size_t number = isdigit((unsigned char)word[0]) ? strtoul(word, NULL, 10) : count;
    const char *from = number < count ? names[number] : word;
    size_t i = 0;
    for (; from[i] && i < NCCL_NAME_BYTES - 1; i++)
        name[i] = (char)tolower((unsigned char)from[i]);
    name[i] = '\0';
}

static void add_call(struct nccl_choice *choice, const char *algorithm_word,
                     const char *protocol_word)
{
    char algorithm[NCCL_NAME_BYTES], protocol[NCCL_NAME_BYTES];
    copy_name(algorithm, algorithm_word, algorithms, sizeof algorithms / sizeof *algorithms);
    copy_name(protocol, protocol_word, protocols, sizeof protocols / sizeof *protocols);
    if (choice->calls > 0 &&
        (strcmp(algorithm, choice->algorithm) != 0 || strcmp(protocol, choice->protocol) != 0))
        choice->mixed = true;
    choice->calls++;
    memcpy(choice->algorithm, algorithm, sizeof algorithm);
    memcpy(choice->protocol, protocol, sizeof protocol);
    if (!choice->wanted || strcmp(algorithm, choice->wanted) == 0)
        return;
    choice->other_calls++;
    memcpy(choice->other, algorithm, sizeof algorithm);
}

static void read_line(struct nccl_choice *choice, const char *line)
{
    static const char symmetric[] = "AllReduce [Symmetric]: ", plain[] = "AllReduce: ";
    char algorithm[NCCL_NAME_BYTES], protocol[NCCL_NAME_BYTES];
    const char *info = strstr(line, "NCCL INFO ");
    if (!info)
        return;
    info += strlen("NCCL INFO ");
    if (strncmp(info, symmetric, strlen(symmetric)) == 0) {
        if (sscanf(info + strlen(symmetric), "%*u Bytes -> Kernel %15s", protocol) == 1)
            add_call(choice, "symmetric", protocol);
        return;
    }
    if (strncmp(info, plain, strlen(plain)) == 0)
        info += strlen(plain);
    if (sscanf(info, "%*u Bytes -> Algo %15s proto %15s", algorithm, protocol) == 2)
        add_call(choice, algorithm, protocol);
}

void nccl_choice_read(struct nccl_choice *choice, const char *text, size_t length)
{
    const char *end = text + length;
    while (text < end) {
        char line[LINE_BYTES];
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        size_t size = (size_t)((stop ? stop : end) - text);
        size_t kept = size < sizeof line - 1 ? size : sizeof line - 1;
        memcpy(line, text, kept);
        line[kept] = '\0';
        read_line(choice, line);
        text += size + 1;
    }
}

void nccl_choice_text(const struct nccl_choice *choice, char text[NCCL_CHOICE_BYTES])
{
    if (choice->calls == 0)
        text[0] = '\0';
    else
        snprintf(text, NCCL_CHOICE_BYTES, "%s/%s%s", choice->algorithm, choice->protocol,
                 choice->mixed ? "/mixed" : "");
}
