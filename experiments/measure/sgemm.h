/*
 * What this machine multiplies matrices at: the rate that computation is held against, because
 * nearly all of a CNN's work is matrix products.
 */
#ifndef PSRING_EXPERIMENTS_SGEMM_H
#define PSRING_EXPERIMENTS_SGEMM_H

#include "common/base/status.h"

enum { SGEMM_EDGE = 2048 };

struct sgemm;

/* `threads` >= 1 that may compute, the caller's included. Call after a CPU device was opened, which
 * sets CBLAS to one thread; the rows of the product are shared out here. 48 MB. Errors: logged. */
enum status sgemm_new(struct sgemm **sgemm, int threads);
void sgemm_free(struct sgemm **sgemm);

/* FLOP/s of one product of two matrices of SGEMM_EDGE rows and columns, float32, through CBLAS: on
 * the caller's thread alone, or with all of them. */
double sgemm_rate(struct sgemm *sgemm, int threads);

#endif
