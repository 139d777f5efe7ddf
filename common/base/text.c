#include "common/base/text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/status.h"

struct line line_in(char *text, size_t size)
{
    CHECK(size > 0);
    text[0] = '\0';
    return (struct line){text, size, 0};
}

char *text_of_file(const char *path, size_t *length)
{
    char *text = NULL;
    size_t room = 0;
    FILE *file = fopen(path, "r");
    ssize_t read = file ? getdelim(&text, &room, '\0', file) : -1;
    bool whole = file && !ferror(file);
    if (file)
        fclose(file);
    if (read <= 0 || !whole) {
        free(text);
        return NULL;
    }
    if (length)
        *length = (size_t)read;
    return text;
}

bool text_difference(const char *theirs, const char *own, char *text, size_t size)
{
    while (*theirs || *own) {
        int a = (int)strcspn(theirs, "\n"), b = (int)strcspn(own, "\n");
        if (a != b || strncmp(theirs, own, (size_t)a) != 0) {
            snprintf(text, size, "%.*s, the job with %.*s", b > 0 ? b : 7, b > 0 ? own : "nothing",
                     a > 0 ? a : 7, a > 0 ? theirs : "nothing");
            return true;
        }
        theirs += a + (theirs[a] != '\0');
        own += b + (own[b] != '\0');
    }
    return false;
}

void line_add(struct line *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int wanted = vsnprintf(line->text + line->used, line->size - line->used, format, arguments);
    va_end(arguments);
    line->used += wanted > 0 ? (size_t)wanted : 0;
    if (line->used >= line->size)
        line->used = line->size - 1;
}

const char *text_grouped(double number, char *text, size_t size)
{
    char digits[320]; /* as many as any double has */
    struct line line = line_in(text, size);
    int length = snprintf(digits, sizeof digits, "%.0f", number);
    for (int i = 0; i < length; i++)
        line_add(&line, "%s%c", i > 0 && (length - i) % 3 == 0 ? "," : "", digits[i]);
    return text;
}

enum { LONGEST = 32, UNLIKE = LONGEST + 1 };

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Row i, column j: the distance of the first i letters of a and the first j of b. */
static int distance(const char *a, const char *b)
{
    size_t rows = strlen(a), columns = strlen(b);
    int table[LONGEST + 1][LONGEST + 1];
    if (rows > LONGEST || columns > LONGEST)
        return UNLIKE;
    for (size_t i = 0; i <= rows; i++) {
        for (size_t j = 0; j <= columns; j++) {
            if (i == 0 || j == 0) {
                table[i][j] = (int)(i + j);
                continue;
            }
            int changed = table[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            table[i][j] = least(changed, least(table[i - 1][j], table[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                table[i][j] = least(table[i][j], table[i - 2][j - 2] + 1);
        }
    }
    return table[rows][columns];
}

/* "lr" of "learning-rate". */
static bool are_first_letters(const char *word, const char *text)
{
    size_t found = 0;
    for (const char *part = text; part; part = strchr(part, '-')) {
        part += *part == '-';
        if (!*part || word[found++] != *part)
            return false;
    }
    return found > 1 && word[found] == '\0';
}

struct nearest nearest_to(const char *text)
{
    return (struct nearest){.text = text, .distance = UNLIKE};
}

void nearest_offer(struct nearest *nearest, const char *word)
{
    const char *text = nearest->text;
    size_t length = strlen(word), longer = strlen(text) > length ? strlen(text) : length;
    int apart = distance(text, word), most = (int)(longer + 2) / 3;
    if ((strncmp(text, word, length) == 0 && text[length] == '-') || are_first_letters(word, text))
        apart = 0;
    if (apart > most || apart >= (int)longer || apart >= nearest->distance)
        return;
    nearest->word = word;
    nearest->distance = apart;
}

const char *nearest_hint(const struct nearest *nearest, const char *prefix, char *text, size_t size)
{
    text[0] = '\0';
    if (nearest->word)
        snprintf(text, size, " (did you mean %s%s?)", prefix, nearest->word);
    return text;
}
