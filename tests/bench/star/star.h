/*
 * A backend from outside: a star. All send their vector to worker 0, which adds them up and sends
 * the sum back. It shows what a backend has to bring, and that nothing else has to know it: this
 * folder, and one backend_add.
 *
 * Cost: worker 0 sends and receives (W-1) M, the others M.
 */
#ifndef PSRING_TESTS_BENCH_STAR_STAR_H
#define PSRING_TESTS_BENCH_STAR_STAR_H

#include "common/comm/backend.h"

extern const struct backend backend_star;

#endif
