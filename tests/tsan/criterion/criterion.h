/*
 * Replaces Criterion in ThreadSanitizer's builds, where Criterion cannot start: it needs memory at
 * addresses that the sanitizer reserves. It has the part of the interface that psring's tests use.
 * Each test runs in a separate process, one after the other. Not for any other build.
 */
#ifndef PSRING_TESTS_TSAN_CRITERION_CRITERION_H
#define PSRING_TESTS_TSAN_CRITERION_CRITERION_H
#pragma GCC system_header /* its macros take no argument for their "..." */

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct standin_test {
    const char *suite, *name;
    void (*run)(void);
    struct standin_options {
        int none; /* lets the list of options be empty */
        void (*init)(void), (*fini)(void);
        int signal, exit_code;
        double timeout; /* ignored: ctest's applies */
        bool disabled;
        const char *description; /* not shown */
    } options;
    struct standin_test *next;
};

/* The options of all tests of a suite, in addition to their own. Only .init is used. */
struct standin_suite {
    const char *name;
    struct standin_options options;
    struct standin_suite *next;
};

void standin_register(struct standin_test *test);
void standin_register_suite(struct standin_suite *suite);

/* Prints the place and the condition; ends the test's process if `fatal`. */
__attribute__((format(printf, 5, 6))) void standin_fail(bool fatal, const char *file, int line,
                                                        const char *condition, const char *format,
                                                        ...);
__attribute__((format(printf, 1, 2))) _Noreturn void standin_skip(const char *format, ...);

#define Test(suite_, name_, ...)                                                                   \
    static void suite_##_##name_##_run(void);                                                      \
    __attribute__((constructor)) static void suite_##_##name_##_register(void)                     \
    {                                                                                              \
        static struct standin_test test = {                                                        \
            #suite_, #name_, suite_##_##name_##_run, {.none = 0, __VA_ARGS__}, NULL};              \
        standin_register(&test);                                                                   \
    }                                                                                              \
    static void suite_##_##name_##_run(void)

#define TestSuite(name_, ...)                                                                      \
    __attribute__((constructor)) static void name_##_suite_register(void)                          \
    {                                                                                              \
        static struct standin_suite suite = {#name_, {.none = 0, __VA_ARGS__}, NULL};              \
        standin_register_suite(&suite);                                                            \
    }                                                                                              \
    struct standin_suite /* takes the semicolon */

#define STANDIN_CHECK(fatal, condition, ...)                                                       \
    ((condition) ? (void)0 : standin_fail(fatal, __FILE__, __LINE__, #condition, "" __VA_ARGS__))

#define cr_assert(c, ...) STANDIN_CHECK(true, c, __VA_ARGS__)
#define cr_assert_not(c, ...) STANDIN_CHECK(true, !(c), __VA_ARGS__)
#define cr_assert_eq(a, b, ...) STANDIN_CHECK(true, (a) == (b), __VA_ARGS__)
#define cr_assert_neq(a, b, ...) STANDIN_CHECK(true, (a) != (b), __VA_ARGS__)
#define cr_assert_lt(a, b, ...) STANDIN_CHECK(true, (a) < (b), __VA_ARGS__)
#define cr_assert_leq(a, b, ...) STANDIN_CHECK(true, (a) <= (b), __VA_ARGS__)
#define cr_assert_gt(a, b, ...) STANDIN_CHECK(true, (a) > (b), __VA_ARGS__)
#define cr_assert_geq(a, b, ...) STANDIN_CHECK(true, (a) >= (b), __VA_ARGS__)
#define cr_assert_null(p, ...) STANDIN_CHECK(true, (p) == NULL, __VA_ARGS__)
#define cr_assert_not_null(p, ...) STANDIN_CHECK(true, (p) != NULL, __VA_ARGS__)
#define cr_assert_str_eq(a, b, ...) STANDIN_CHECK(true, strcmp(a, b) == 0, __VA_ARGS__)
#define cr_assert_str_neq(a, b, ...) STANDIN_CHECK(true, strcmp(a, b) != 0, __VA_ARGS__)
#define cr_assert_arr_eq(a, b, n, ...) STANDIN_CHECK(true, memcmp(a, b, n) == 0, __VA_ARGS__)
#define cr_assert_arr_neq(a, b, n, ...) STANDIN_CHECK(true, memcmp(a, b, n) != 0, __VA_ARGS__)
#define cr_assert_float_eq(a, b, e, ...) STANDIN_CHECK(true, fabs((a) - (b)) <= (e), __VA_ARGS__)
#define cr_assert_fail(...) STANDIN_CHECK(true, false, __VA_ARGS__)
#define cr_fatal(...) STANDIN_CHECK(true, false, __VA_ARGS__)

#define cr_expect(c, ...) STANDIN_CHECK(false, c, __VA_ARGS__)
#define cr_expect_not(c, ...) STANDIN_CHECK(false, !(c), __VA_ARGS__)
#define cr_expect_eq(a, b, ...) STANDIN_CHECK(false, (a) == (b), __VA_ARGS__)
#define cr_expect_neq(a, b, ...) STANDIN_CHECK(false, (a) != (b), __VA_ARGS__)
#define cr_expect_lt(a, b, ...) STANDIN_CHECK(false, (a) < (b), __VA_ARGS__)
#define cr_expect_leq(a, b, ...) STANDIN_CHECK(false, (a) <= (b), __VA_ARGS__)
#define cr_expect_gt(a, b, ...) STANDIN_CHECK(false, (a) > (b), __VA_ARGS__)
#define cr_expect_geq(a, b, ...) STANDIN_CHECK(false, (a) >= (b), __VA_ARGS__)
#define cr_expect_null(p, ...) STANDIN_CHECK(false, (p) == NULL, __VA_ARGS__)
#define cr_expect_not_null(p, ...) STANDIN_CHECK(false, (p) != NULL, __VA_ARGS__)
#define cr_expect_str_eq(a, b, ...) STANDIN_CHECK(false, strcmp(a, b) == 0, __VA_ARGS__)
#define cr_expect_str_neq(a, b, ...) STANDIN_CHECK(false, strcmp(a, b) != 0, __VA_ARGS__)
#define cr_expect_arr_eq(a, b, n, ...) STANDIN_CHECK(false, memcmp(a, b, n) == 0, __VA_ARGS__)
#define cr_expect_float_eq(a, b, e, ...) STANDIN_CHECK(false, fabs((a) - (b)) <= (e), __VA_ARGS__)
#define cr_expect_fail(...) STANDIN_CHECK(false, false, __VA_ARGS__)

#define cr_skip_test(...) standin_skip("" __VA_ARGS__)
#define cr_skip(...) standin_skip("" __VA_ARGS__)

#endif
