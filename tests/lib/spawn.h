/*
 * Ranks as threads of one process: a test of collectives needs no launcher. Each rank has its own
 * world, which has met by rendezvous at a port of 127.0.0.1 that the kernel chose, and opens its
 * own transports.
 *
 *     static void add_up(struct world *world, void *context) { ... rank_assert(sum == 6); ... }
 *     Test(sums, of_three) { spawn(3, add_up, NULL); }
 *
 * Criterion's assertions may only fail on the main thread. A rank checks with rank_assert(): a
 * condition that does not hold ends the rank's thread, and spawn() then fails the test from the
 * main thread. Under mpirun the main thread itself is the rank, and rank_assert() fails the test
 * directly.
 */
#ifndef PSRING_TESTS_LIB_SPAWN_H
#define PSRING_TESTS_LIB_SPAWN_H
#pragma GCC system_header /* its macros take no argument for their "..." */

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/net/world.h"

enum { SPAWN_RANKS_MOST = 16, SPAWN_TEXT_BYTES = 1200 };

typedef void spawn_function(struct world *world, void *context);

/* Runs `function` on `ranks` threads and waits until all have returned. Fails the test if a rank
 * fails or has not returned after 120 s. The message names the rank. */
void spawn(int ranks, spawn_function *function, void *context);

/*
 * spawn() with world sizes from `least` to `most`: 1, 2, 3, 4, 5 and 8, with a sanitizer 1 to 4.
 * With PSRING_TEST_LONG=1 in the environment it takes every size. The other sizes take no new path.
 * One rank has no peer, and two swap. Ranks 3 and 5 are odd; 4 and 8 halve and double in two and
 * three steps. From 4 on, hosts have several ranks. A sanitizer looks at memory and threads, not at
 * sizes.
 */
void spawn_sizes(int least, int most, spawn_function *function, void *context);

/* Whether PSRING_TEST_LONG=1 requests every size. */
bool spawn_is_long(void);

/* Like spawn(), but returns whether all ranks passed; otherwise writes the reason to `failure`. For
 * tests of the harness. Ranks that have not returned continue to run. */
bool spawn_try(int ranks, spawn_function *function, void *context, int64_t limit_ms,
               char failure[SPAWN_TEXT_BYTES]);

__attribute__((format(printf, 4, 5))) _Noreturn void
rank_fail(const char *file, int line, const char *condition, const char *format, ...);

#define rank_assert(condition, ...)                                                                \
    ((condition) ? (void)0 : rank_fail(__FILE__, __LINE__, #condition, " " __VA_ARGS__))
#define rank_assert_eq(a, b, ...) rank_assert((a) == (b), __VA_ARGS__)
#define rank_assert_ok(call) rank_check_ok((call), __FILE__, __LINE__, #call)
#define rank_assert_same(a, b, bytes, ...) rank_assert(memcmp((a), (b), (bytes)) == 0, __VA_ARGS__)
#define rank_assert_text(a, b) rank_assert(strcmp((a), (b)) == 0, "'%s'", (a))
#define rank_assert_near(a, b, error, ...) rank_assert(fabs((a) - (b)) <= (error), __VA_ARGS__)

static inline void rank_check_ok(enum status status, const char *file, int line, const char *call)
{
    if (status != STATUS_OK)
        rank_fail(file, line, call, "%s", status_name(status));
}

#endif
