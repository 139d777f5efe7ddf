#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/status.h"
#include "experiments/report/report.h"

/* In page order: each file may use the ones before it. */
static const char *const styles[] = {"palette.css", "style.css", NULL};
static const char *const scripts[] = {"page.js",       "scales.js",  "charts.js",
                                      "cost.js",       "figures.js", "animation.js",
                                      "calculator.js", "start.js",   NULL};

static const char *asset(const char *name)
{
    const struct report_asset *found = report_assets;
    while (found->name && strcmp(found->name, name) != 0)
        found++;
    CHECK(found->name);
    return (const char *)found->text;
}

/* -------- inserts ----------------------------------------------------------------------------- */

FILE *page_begin(struct page *page, const char *name)
{
    CHECK(page->count < PAGE_INSERTS_MOST && !page->open);
    struct page_insert *insert = &page->inserts[page->count];
    page->open = open_memstream(&insert->html, &page->size);
    if (!page->open) {
        log_error("psring report: no memory for the page");
        return NULL;
    }
    insert->name = name;
    page->count++;
    return page->open;
}

enum status page_end(struct page *page)
{
    bool failed = ferror(page->open);
    failed = fclose(page->open) != 0 || failed;
    page->open = NULL;
    if (failed)
        log_error("psring report: no memory for the page");
    return failed ? STATUS_NO_MEMORY : STATUS_OK;
}

enum status page_put(struct page *page, const char *name, const char *text)
{
    FILE *out = page_begin(page, name);
    if (!out)
        return STATUS_NO_MEMORY;
    page_put_text(out, text);
    return page_end(page);
}

void page_free(struct page *page)
{
    if (page->open)
        fclose(page->open);
    for (size_t i = 0; i < page->count; i++)
        free(page->inserts[i].html);
    *page = (struct page){0};
}

void page_put_text(FILE *out, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        default:
            fputc(*text, out);
        }
    }
}

/* Writes JSON into a script element. '<' could begin or end an element, and U+2028 and U+2029 end a
 * line of a script. In JSON all of them occur only in strings, which allow numeric escapes. */
static void put_json(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '<') {
            fputs("\\u003c", out);
        } else if (strncmp(text, "\xe2\x80\xa8", 3) == 0 || strncmp(text, "\xe2\x80\xa9", 3) == 0) {
            fprintf(out, "\\u20%02x", (unsigned char)text[2] - 0x80);
            text += 2;
        } else {
            fputc(*text, out);
        }
    }
}

enum status page_put_json(struct page *page, const cJSON *data)
{
    char *text = cJSON_PrintUnformatted(data);
    FILE *out = text ? page_begin(page, "data") : NULL;
    if (out)
        put_json(out, text);
    free(text);
    return out ? page_end(page) : STATUS_NO_MEMORY;
}

static enum status put_assets(struct page *page, const char *name, const char *const *files)
{
    FILE *out = page_begin(page, name);
    if (!out)
        return STATUS_NO_MEMORY;
    for (; *files; files++)
        fputs(asset(*files), out);
    return page_end(page);
}

enum status page_put_assets(struct page *page)
{
    enum status status;
    TRY(put_assets(page, "style", styles));
    TRY(put_assets(page, "script", scripts));
out:
    return status;
}

/* -------- the template ------------------------------------------------------------------------ */

static const char *insert_of(const struct page *page, const char *name, size_t length)
{
    for (size_t i = 0; i < page->count; i++) {
        const char *own = page->inserts[i].name;
        if (strlen(own) == length && strncmp(own, name, length) == 0)
            return page->inserts[i].html;
    }
    return NULL;
}

/* Fills one line of the template; it begins at `line` and includes its end. */
static void fill_line(const struct page *page, const char *line, size_t length, FILE *out)
{
    const char *end = line + length;
    while (line < end) {
        const char *open = memmem(line, (size_t)(end - line), "{{", 2);
        const char *close = open ? memmem(open, (size_t)(end - open), "}}", 2) : NULL;
        if (!close)
            break;
        fwrite(line, 1, (size_t)(open - line), out);
        const char *html = insert_of(page, open + 2, (size_t)(close - open) - 2);
        if (html)
            fputs(html, out);
        line = close + 2;
    }
    fwrite(line, 1, (size_t)(end - line), out);
}

static void fill(const struct page *page, const char *text, FILE *out)
{
    static const char begin[] = "{{if ";
    bool shown = true;
    while (*text) {
        size_t length = strcspn(text, "\n") + 1;
        if (strncmp(text, begin, sizeof begin - 1) == 0) {
            const char *name = text + sizeof begin - 1;
            shown = insert_of(page, name, strcspn(name, "}")) != NULL;
        } else if (strncmp(text, "{{end}}", 7) == 0) {
            shown = true;
        } else if (shown) {
            fill_line(page, text, length, out);
        }
        text += length;
    }
}

static enum status write_frame(const struct page *page, const char *path)
{
    enum status status = STATUS_OK;
    char *part = NULL;
    FILE *out = NULL;
    if (asprintf(&part, "%s.part", path) < 0)
        return STATUS_NO_MEMORY;
    out = fopen(part, "w");
    if (out)
        fill(page, asset("frame.html"), out);
    bool failed = !out || ferror(out);
    if ((out && fclose(out) != 0) || failed || rename(part, path) != 0) {
        log_error("%s: cannot be written: %s", path, strerror(errno));
        status = STATUS_IO;
        if (out)
            unlink(part);
    }
    free(part);
    return status;
}

enum status page_write(struct page *page, const char *title, const char *template_name,
                       const char *path)
{
    enum status status;
    TRY(page_put(page, "title", title));
    FILE *out = page_begin(page, "main");
    TRY(out ? STATUS_OK : STATUS_NO_MEMORY);
    fill(page, asset(template_name), out);
    TRY(page_end(page));
    TRY(write_frame(page, path));
out:
    return status;
}
