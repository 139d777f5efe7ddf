#include <criterion/criterion.h>
#include <string.h>

#include "common/base/text.h"

Test(line, grows)
{
    char text[32] = "before";
    struct line line = line_in(text, sizeof text);
    cr_assert_str_eq(text, "");
    line_add(&line, "rank %d", 3);
    line_add(&line, " on %s", "a");
    cr_assert_str_eq(text, "rank 3 on a");
    cr_assert_eq(line.used, strlen(text));
}

/* Text that does not fit is cut, and the bytes after the buffer stay untouched. */
Test(line, is_bounded)
{
    char text[10 + 1];
    text[10] = 'x';
    struct line line = line_in(text, 10);
    line_add(&line, "%s", "12345678");
    line_add(&line, "%s", "9012345");
    cr_assert_str_eq(text, "123456789");
    line_add(&line, "more");
    cr_assert_str_eq(text, "123456789");
    cr_assert_eq(line.used, 9);
    cr_assert_eq(text[10], 'x');
}
