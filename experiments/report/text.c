#include "experiments/report/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define TEXT(...)                                                                                  \
    do {                                                                                           \
        struct text text_;                                                                         \
        snprintf(text_.text, sizeof text_.text, __VA_ARGS__);                                      \
        return text_;                                                                              \
    } while (0)

struct text text_size(double bytes)
{
    if (bytes >= 1e6)
        TEXT("%.1f MB", bytes / 1e6);
    if (bytes >= 1e3)
        TEXT("%.1f kB", bytes / 1e3);
    TEXT("%.0f B", bytes);
}

struct text text_time(double us)
{
    if (isnan(us))
        TEXT("-");
    if (us < 1e3)
        TEXT("%.0f us", us);
    if (us >= 1e6)
        TEXT("%.2f s", us / 1e6);
    TEXT(us >= 1e5 ? "%.0f ms" : "%.1f ms", us / 1e3);
}

struct text text_count(double number)
{
    struct text grouped;
    char digits[48];
    size_t used = 0;
    if (isnan(number))
        TEXT("-");
    int length = snprintf(digits, sizeof digits, "%.0f", number);
    for (int i = 0; i < length && used + 2 < sizeof grouped.text; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            grouped.text[used++] = ',';
        grouped.text[used++] = digits[i];
    }
    grouped.text[used] = 0;
    return grouped;
}

struct text text_percent(double share)
{
    if (isnan(share))
        TEXT("-");
    TEXT("%.1f%%", 100 * share);
}

struct text text_ratio(double above, double below)
{
    if (!isfinite(above / below))
        TEXT("-");
    TEXT("%.2f", above / below);
}

struct text text_counted(double number, const char *word)
{
    TEXT("%.0f %s%s", number, word, number == 1 ? "" : "s");
}

struct text text_point(const struct point *point)
{
    if (!point || !judge_has_time(point->time.state))
        TEXT("-");
    TEXT("%.40s%s", text_time(point->time.median_us).text,
         point->time.state == STATE_LIMITED     ? "*"
         : point->time.state == STATE_DISTURBED ? "+"
                                                : "");
}

struct text text_interval(const struct measured *time)
{
    if (isnan(time->low_us))
        TEXT("-");
    TEXT("%.28s-%.28s", text_time(time->low_us).text, text_time(time->high_us).text);
}

struct text text_comparison(const struct comparison *found, int digits)
{
    enum { DIGITS_MOST = 8 };
    double nearest = found->low > 1 ? found->low - 1 : 1 - found->high;
    if (isnan(found->ratio))
        TEXT("-");
    if (isnan(found->low))
        TEXT("%.*f", digits, found->ratio);
    while (digits < DIGITS_MOST && nearest > 0 && nearest < 0.5 * pow(10, -digits))
        digits++;
    TEXT("%.*f (%.*f to %.*f)", digits, found->ratio, digits, found->low, digits, found->high);
}

struct text text_verdict(const struct point *above, const struct point *below, int digits)
{
    if (!above || !below)
        TEXT("-");
    struct comparison found = starts_compare(&above->time, &below->time);
    if (isnan(found.ratio))
        TEXT("-");
    if (found.verdict == VERDICT_SAME)
        TEXT("no difference");
    if (found.verdict == VERDICT_NONE)
        TEXT("(%.*f)", digits, found.ratio);
    return text_comparison(&found, digits);
}
