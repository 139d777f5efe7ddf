#include <criterion/criterion.h>

#include "common/base/text.h"

/* The hint for a text, from these words. */
static const char *hint_for(const char *text)
{
    static const char *const words[] = {"batch", "global-batch", "backend",
                                        "ring",  "lr",           "lr-scale"};
    static char hint[64];
    struct nearest nearest = nearest_to(text);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        nearest_offer(&nearest, words[i]);
    return nearest_hint(&nearest, "--", hint, sizeof hint);
}

Test(nearest, a_few_letters_apart)
{
    cr_assert_str_eq(hint_for("bakend"), " (did you mean --backend?)");
    cr_assert_str_eq(hint_for("backedn"), " (did you mean --backend?)");
    cr_assert_str_eq(hint_for("batsch"), " (did you mean --batch?)");
    cr_assert_str_eq(hint_for("global_batch"), " (did you mean --global-batch?)");
    cr_assert_str_eq(hint_for("rang"), " (did you mean --ring?)");
}

Test(nearest, other_names_for_it)
{
    cr_assert_str_eq(hint_for("learning-rate"), " (did you mean --lr?)");
    cr_assert_str_eq(hint_for("batch-size"), " (did you mean --batch?)");
}

Test(nearest, nothing_is_alike)
{
    cr_assert_str_eq(hint_for("optimizer"), "");
    cr_assert_str_eq(hint_for("x"), "");
    cr_assert_str_eq(hint_for(""), "");
    cr_assert_str_eq(hint_for("-"), "");
    cr_assert_str_eq(hint_for("a-word-that-is-much-longer-than-any-option-there-is"), "");
}
