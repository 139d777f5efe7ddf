/*
 * Runs of one point: rows of bench.csv that differ in their times only. Where processes meet on few
 * cores, which of them wait for which differs from start to start more than from operation to
 * operation, so that the interval of one run's median says too little (Hunold and Carpen-Amarie
 * 2016, "Reproducible MPI benchmarking is still not as easy as you think": the start of mpirun is a
 * factor of the experiment). A point is what its runs are together.
 */
#ifndef PSRING_EXPERIMENTS_FIT_RUNS_H
#define PSRING_EXPERIMENTS_FIT_RUNS_H

#include "experiments/fit/rows.h"

/*
 * Joins the rows of use PREDICT_FIT of which all is the same but what was measured into the first
 * of them, in their order: its time, its rest and its shares of CPUs are their medians; its
 * standard error is that of the median of so many, which scatter as their times do, or as each has
 * of its own if that is more; `runs` counts them, and `run_spread` is their standard deviation as a
 * share of the time. Other rows stay as they are. STATUS_NO_MEMORY is logged.
 */
enum status predict_rows_join(struct predict_rows *rows);

#endif
