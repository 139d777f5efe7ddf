#include "common/base/line.h"

#include <stdarg.h>
#include <stdio.h>

#include "common/base/check.h"

struct line line_in(char *text, size_t size)
{
    CHECK(size > 0);
    text[0] = '\0';
    return (struct line){text, size, 0};
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
