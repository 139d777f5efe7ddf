#include "experiments/report/words.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "experiments/report/run_data.h"

/* -------- summary.txt ---------------------------------------------------------------------------
 */

/* Its parts: the lines of the text, which the parts point into. */
struct summary {
    char *head, *answer, *tables; /* NULL: absent */
};

/* Cuts at the line "The answer" and at the first table, "1. ...". */
static struct summary cut(char *text)
{
    struct summary summary = {NULL, NULL, text};
    char *answer = strstr(text, "\nThe answer\n");
    if (!answer)
        return summary;
    *answer = 0;
    answer += strlen("\nThe answer\n");
    summary.head = strchr(text, '\n');
    summary.answer = answer;
    summary.tables = strstr(answer, "\n1. ");
    if (summary.tables)
        *summary.tables++ = 0;
    return summary;
}

/* Lines that start with a dash are a list; all others run together to a paragraph. */
struct list {
    FILE *out;
    const char *in; /* "ul", "p" or "" */
};

static void enter(struct list *list, const char *element)
{
    if (strcmp(list->in, element) == 0)
        return;
    if (*list->in)
        fprintf(list->out, "</%s>\n", list->in);
    if (*element)
        fprintf(list->out, "<%s>", element);
    list->in = element;
}

static void put_line(struct list *list, const char *line)
{
    line += strspn(line, " ");
    bool item = strncmp(line, "- ", 2) == 0;
    enter(list, *line == 0 ? "" : item ? "ul" : "p");
    if (item)
        fputs("<li>", list->out);
    page_put_text(list->out, item ? line + 2 : line);
    fputs(item ? "</li>" : "\n", list->out);
}

static enum status put_lines(struct page *page, const char *name, const char *text)
{
    struct list list = {page_begin(page, name), ""};
    char *copy = strdup(text);
    if (!list.out || !copy) {
        free(copy);
        return STATUS_NO_MEMORY;
    }
    for (char *line = copy, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        put_line(&list, line);
    }
    enter(&list, "");
    free(copy);
    return page_end(page);
}

/* A line of the answer that holds `what`, without its dash, up to its end; NULL: there is none. */
static const char *find_line(const char *answer, const char *start, const char *what,
                             size_t *length)
{
    for (const char *line = answer; line; line = strchr(line, '\n')) {
        line += strspn(line, "\n -");
        *length = strcspn(line, "\n");
        const char *found = memmem(line, *length, what, strlen(what));
        if (found && strncmp(line, start, strlen(start)) == 0)
            return line;
    }
    return NULL;
}

static void put_sentence(FILE *out, const char *line, size_t length)
{
    char *copy = line ? strndup(line, length) : NULL;
    if (copy) {
        fputs("<p>", out);
        page_put_text(out, copy);
        fputs("</p>\n", out);
    }
    free(copy);
}

static enum status put_claim(struct page *page, const char *answer)
{
    size_t length;
    FILE *out = page_begin(page, "claim");
    if (!out)
        return STATUS_NO_MEMORY;
    const char *line = find_line(answer, "", "he ring ", &length);
    put_sentence(out, line, length);
    line = find_line(answer, "One parameter server on", "", &length);
    put_sentence(out, line, length);
    line = find_line(answer, "", ": faster than the ring", &length);
    put_sentence(out, line, length);
    return page_end(page);
}

enum status words_put_summary(struct page *page, const char *dir)
{
    enum status status = STATUS_OK;
    FILE *out;
    char *text = run_data_text(dir, "summary.txt", NULL);
    if (!text)
        return STATUS_OK;
    struct summary summary = cut(text);
    if (summary.head) {
        TRY((out = page_begin(page, "head")) ? STATUS_OK : STATUS_NO_MEMORY);
        page_put_text(out, summary.head + 1);
        TRY(page_end(page));
    }
    if (summary.answer) {
        TRY(put_claim(page, summary.answer));
        TRY(put_lines(page, "answer", summary.answer));
    }
    if (summary.tables) {
        TRY((out = page_begin(page, "tables")) ? STATUS_OK : STATUS_NO_MEMORY);
        page_put_text(out, summary.tables);
        TRY(page_end(page));
    }
out:
    free(text);
    return status;
}

/* -------- provenance.json -----------------------------------------------------------------------
 */

static void put_fact(FILE *out, const cJSON *fact)
{
    char *value = cJSON_IsString(fact) ? strdup(fact->valuestring) : cJSON_Print(fact);
    fputs("<dt>", out);
    page_put_text(out, fact->string);
    fputs("</dt><dd>", out);
    page_put_text(out, value ? value : "");
    fputs("</dd>\n", out);
    free(value);
}

enum status words_put_provenance(struct page *page, const char *dir)
{
    enum status status = STATUS_OK;
    FILE *out;
    const cJSON *fact;
    char *text = run_data_text(dir, "provenance.json", NULL);
    cJSON *facts = text ? cJSON_Parse(text) : NULL;
    if (!text)
        return STATUS_OK;
    if (!cJSON_IsObject(facts)) {
        status = run_data_without(dir, "provenance.json", STATUS_INPUT);
        goto out;
    }
    TRY((out = page_begin(page, "facts")) ? STATUS_OK : STATUS_NO_MEMORY);
    cJSON_ArrayForEach(fact, facts)
    {
        if (cJSON_IsString(fact) || cJSON_IsNumber(fact))
            put_fact(out, fact);
    }
    TRY(page_end(page));
    TRY((out = page_begin(page, "provenance")) ? STATUS_OK : STATUS_NO_MEMORY);
    page_put_text(out, text);
    TRY(page_end(page));
out:
    cJSON_Delete(facts);
    free(text);
    return status;
}

/* -------- figures -------------------------------------------------------------------------------
 */

static const struct {
    const char *insert, *file, *alt; /* in place of the picture, for who does not see it */
} figures[] = {
    {"figure time_vs_workers", "time_vs_workers.svg",
     "Time of one all-reduce against the number of workers, by topology, with theory's lines. The "
     "numbers are in table 1 below."},
    {"figure time_vs_size", "time_vs_size.svg",
     "Time of one all-reduce against the size of the message. The numbers are in table 4 below."},
    {"figure efficiency_vs_workers", "efficiency_vs_workers.svg",
     "Efficiency against the number of workers, of the workers' links and of all machines'. The "
     "numbers are in table 2 below."},
    {"figure efficiency_vs_size", "efficiency_vs_size.svg",
     "Efficiency against the size of the message."},
    {"figure bytes_per_node", "bytes_per_node.svg",
     "Payload that one node sends in one all-reduce, counted, and theory's lines. The numbers are "
     "in table 3 below."},
    {"figure cpu_vs_size", "cpu_vs_size.svg",
     "Processor time of all ranks for a GB of messages, over each transport."},
    {"figure throughput", "throughput.svg",
     "Images a second of paced training against the number of workers. The numbers are in the "
     "table "
     "of training below."},
    {"figure consistency", "consistency.svg",
     "Images a second, and seconds to the target accuracy, of each kind of consistency, with and "
     "without a slow worker."},
};

static void put_base64(FILE *out, const unsigned char *bytes, size_t length)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < length; i += 3) {
        size_t left = length - i;
        uint32_t three = (uint32_t)bytes[i] << 16 | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
                         (left > 2 ? bytes[i + 2] : 0);
        fputc(digits[three >> 18], out);
        fputc(digits[three >> 12 & 63], out);
        fputc(left > 1 ? digits[three >> 6 & 63] : '=', out);
        fputc(left > 2 ? digits[three & 63] : '=', out);
    }
}

enum status words_put_figures(struct page *page, const char *dir)
{
    enum status status = STATUS_OK;
    for (size_t f = 0; status == STATUS_OK && f < sizeof figures / sizeof *figures; f++) {
        size_t length;
        char *text = run_data_text(dir, figures[f].file, &length);
        FILE *out = text ? page_begin(page, figures[f].insert) : NULL;
        if (out) {
            fputs("<img src=\"data:image/svg+xml;base64,", out);
            put_base64(out, (const unsigned char *)text, length);
            fputs("\" alt=\"", out);
            page_put_text(out, figures[f].alt);
            fputs("\">", out);
            status = page_end(page);
        } else if (text) {
            status = STATUS_NO_MEMORY;
        }
        free(text);
    }
    return status;
}
