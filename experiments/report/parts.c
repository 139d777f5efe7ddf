#include "experiments/report/parts.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/status.h"
#include "experiments/report/answer.h"
#include "experiments/report/run_data.h"
#include "experiments/report/summary.h"

/* -------- the summary --------------------------------------------------------------------------
 */

static void put_paragraph(FILE *out, const char *text)
{
    fputs("<p>", out);
    page_put_text(out, text);
    fputs("</p>\n", out);
}

/* Inserts the text that `print` writes about the run. */
static enum status put_printed(struct page *page, const char *name, const struct run *run,
                               void (*print)(const struct run *run, FILE *out))
{
    char *text = NULL;
    size_t size;
    FILE *memory = open_memstream(&text, &size), *out = NULL;
    if (memory) {
        print(run, memory);
        fclose(memory);
    }
    if (text && *text && (out = page_begin(page, name)))
        page_put_text(out, text);
    const bool empty = text && !*text;
    free(text);
    return empty ? STATUS_OK : out ? page_end(page) : STATUS_NO_MEMORY;
}

/* The ring, one server, and the first configuration that was faster than the ring. */
static enum status put_claim(struct page *page, const struct answer *answer)
{
    FILE *out = page_begin(page, "claim");
    if (!out)
        return STATUS_NO_MEMORY;
    put_paragraph(out, answer->lead);
    if (answer->has_one_server)
        put_paragraph(out, answer->claims[0].text);
    for (size_t c = answer->has_one_server; c < answer->count; c++) {
        if (answer->claims[c].verdict == VERDICT_FASTER) {
            put_paragraph(out, answer->claims[c].text);
            break;
        }
    }
    return page_end(page);
}

static enum status put_answer(struct page *page, const struct answer *answer)
{
    FILE *out = page_begin(page, "answer");
    if (!out)
        return STATUS_NO_MEMORY;
    put_paragraph(out, answer->lead);
    fputs("<ul>\n", out);
    for (size_t c = 0; c < answer->count; c++) {
        fputs("<li>", out);
        page_put_text(out, answer->claims[c].text);
        fputs("</li>\n", out);
    }
    fputs("</ul>\n", out);
    if (answer->note)
        put_paragraph(out, answer->note);
    return page_end(page);
}

static void print_consistency(const struct run *run, FILE *out)
{
    consistency_print(&run->consistency, run->provenance, out);
}

enum status parts_put_summary(struct page *page, const struct run *run)
{
    enum status status = STATUS_OK;
    struct answer answer;
    if (run->has_results || run->has_trainings) {
        answer_make(&answer, run);
        TRY(put_printed(page, run->state == STATE_WRONG ? "wrong" : "head", run,
                        summary_print_head));
        if (*answer.lead) {
            TRY(put_claim(page, &answer));
            TRY(put_answer(page, &answer));
        }
        TRY(put_printed(page, "tables", run, summary_print_tables));
    } else {
        TRY(put_printed(page, "tables", run, print_consistency));
    }
out:
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

enum status parts_put_provenance(struct page *page, const struct run *run)
{
    enum status status = STATUS_OK;
    FILE *out;
    const cJSON *fact;
    char *text = run->provenance ? run_data_text(run->dir, "provenance.json", NULL) : NULL;
    if (!text)
        return STATUS_OK;
    TRY((out = page_begin(page, "facts")) ? STATUS_OK : STATUS_NO_MEMORY);
    cJSON_ArrayForEach(fact, run->provenance)
    {
        if (cJSON_IsNumber(fact) || (cJSON_IsString(fact) && *fact->valuestring))
            put_fact(out, fact);
    }
    TRY(page_end(page));
    TRY((out = page_begin(page, "provenance")) ? STATUS_OK : STATUS_NO_MEMORY);
    page_put_text(out, text);
    TRY(page_end(page));
out:
    free(text);
    return status;
}

/* -------- figures -------------------------------------------------------------------------------
 */

static const struct {
    const char *insert, *file, *alt; /* words in place of the picture */
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

enum status parts_put_figures(struct page *page, const char *dir)
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
