/*
 * A backend from outside: a star. Each worker sends its vector to worker 0, which adds the vectors
 * and sends the sum back. It shows all that a new backend needs: this folder and one backend_add.
 *
 * Cost: worker 0 sends and receives (W-1) M, each other worker M.
 */
#ifndef PSRING_TESTS_BENCH_STAR_STAR_H
#define PSRING_TESTS_BENCH_STAR_STAR_H

#include "common/comm/backend.h"

extern const struct backend backend_star;

#endif
