/* What limited a run, by its timeline. */
#ifndef PSRING_EXPERIMENTS_TRACE_VERDICT_H
#define PSRING_EXPERIMENTS_TRACE_VERDICT_H

#include "experiments/trace/trace_parts.h"

/* To stdout: as psring train says it at its end, of the steps that were recorded. STATUS_NO_MEMORY
 * (logged). */
enum status trace_print_bottleneck(const struct trace_file *file, const struct trace_step *steps,
                                   size_t count);

#endif
