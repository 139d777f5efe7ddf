/*
 * The facts of a run's bottleneck that only the run knows: cores, their busy share, and the times
 * of averaging by the model of cost. The timeline holds them, and `psring trace` judges by them.
 */
#ifndef PSRING_EXPERIMENTS_TRACE_FACTS_H
#define PSRING_EXPERIMENTS_TRACE_FACTS_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "experiments/trace/trace_file.h"

#define TRACE_FACTS_NAME "psring_run"

/* An event of the file, a line; without facts->ranks. */
void trace_facts_write(FILE *out, const struct bottleneck_facts *facts);

/* From that event's arguments into file->facts. What is absent is 0, as what is not known. */
void trace_facts_read(struct trace_file *file, const cJSON *arguments);

#endif
