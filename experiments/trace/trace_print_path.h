/* The critical paths of steps, in words. */
#ifndef PSRING_EXPERIMENTS_TRACE_PRINT_PATH_H
#define PSRING_EXPERIMENTS_TRACE_PRINT_PATH_H

#include "experiments/trace/trace_parts.h"

/* To stdout: the path of step `wanted`, from 1 (0: of the one of median length), and what share of
 * all steps' paths, but that of the run's first, which warms up, went through what. Sorts `steps`
 * anew. STATUS_USAGE (logged): there is no such step. */
enum status trace_print_paths(const struct trace_file *file, struct trace_step *steps, size_t count,
                              long long wanted);

#endif
