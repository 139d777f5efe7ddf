/* The files from which the gnuplot scripts of plots/ draw. */
#ifndef PSRING_EXPERIMENTS_REPORT_FIGURES_H
#define PSRING_EXPERIMENTS_REPORT_FIGURES_H

#include "experiments/report/run.h"

/*
 * Writes into the folder `dir`:
 *
 *     points.txt      one all-reduce a line, in the order of COLUMNS in style.gp:
 *                     series own workers bytes time_ms theory_ms efficiency efficiency_a_machine
 *                     worker_sent worker_theory server_sent server_theory low_ms high_ms
 *     training.txt    one paced training a line: series own workers images_per_s
 *     processors.txt  one all-reduce a line: topology (1 one server on a machine of its own, 2
 * ring, 3 MPI_Allreduce) transport (1 zmq, 2 mpi, 3 tcp) workers bytes cpu_s_per_gb facts.gp the
 * trainings' constants; network.txt: the network's name modes.txt, consistency_facts.gp: where
 * there is a consistency.csv
 *
 * Series are those of results_series. A configuration has a line for each of its series, and `own`
 * is 1 in the first of them. NaN: not known. A run whose state is WRONG has no line, and neither
 * has a row without a time that may be shown. STATUS_IO is logged.
 */
enum status figures_write(const struct run *run, const char *dir);

#endif
