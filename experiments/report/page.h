/*
 * A page that is one file: a template of plots/report with its places filled in, in the frame that
 * all pages have (frame.html).
 *
 *     {{NAME}}       a line of its own, or in one: what stands for NAME
 *     {{if NAME}}    to {{end}}, on lines of their own: left out unless something stands for NAME
 *
 * The templates, styles and scripts are part of the program.
 */
#ifndef PSRING_EXPERIMENTS_REPORT_PAGE_H
#define PSRING_EXPERIMENTS_REPORT_PAGE_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdio.h>

#include "common/base/status.h"

enum { PAGE_INSERTS_MOST = 48 };

/* What stands for the names; zeroed at first. `html` is the page's own. */
struct page {
    struct page_insert {
        const char *name; /* borrowed */
        char *html;
    } inserts[PAGE_INSERTS_MOST];
    size_t count;
    FILE *open; /* the last insert, until page_end */
    size_t size;
};

/* The stream that the HTML of `name` goes to, until page_end; NULL: no memory (logged). */
FILE *page_begin(struct page *page, const char *name);
enum status page_end(struct page *page);
void page_free(struct page *page);

/* Text as HTML, and as an attribute's value in double quotes. */
void page_put_text(FILE *out, const char *text);

/* The data of the scripts, as JSON in which no character can end the element around it. */
enum status page_put_json(struct page *page, const cJSON *data);

/* The style sheets and scripts. */
enum status page_put_assets(struct page *page);

/* Writes `path` from the template, whole or not at all; the page then has its title and main part,
 * too. Once. STATUS_IO is logged. */
enum status page_write(struct page *page, const char *title, const char *template_name,
                       const char *path);

#endif
