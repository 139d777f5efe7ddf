/* The parts of the homework's judge: judge.c runs the trials, witness.c watches a trial from
 * inside, and confine.c limits and ends its processes. */
#ifndef PSRING_EXPERIMENTS_LESSONS_JUDGE_H
#define PSRING_EXPERIMENTS_LESSONS_JUDGE_H

#include <stddef.h>
#include <sys/types.h>

#include "common/base/text.h"
#include "common/base/util.h"

/* -------- witness.c --------------------------------------------------------------------------- */

/* The exit code of a trial that could not send its verdict. */
enum { WITNESS_MUTE = 113 };

void witness_open(int workers, int verdicts);
_Noreturn void conclude(const char *format, ...) __attribute__((format(printf, 1, 2)));
void witness_worker(int index);
void witness_begin(float *data, size_t count);
void witness_return(void);
void witness_check_races(void);
void witness_check_left(void);
void witness_exit(void);
size_t witness_elements(int worker);
int witness_steps(void);
void witness_crash(int number, const char *address);
const char *workers_list(unsigned mask, char text[128]);
const char *part_list(struct chunk part, char text[128]);

static inline const char *with_commas(size_t number, char text[32])
{
    return text_grouped((double)number, text, 32);
}

#define COMMAS(number) with_commas((number), (char[32]){0})
#define PART(part) part_list((part), (char[128]){0})
#define WORKERS(mask) workers_list((mask), (char[128]){0})

/* -------- confine.c --------------------------------------------------------------------------- */

void confine(int log, unsigned process_s);
int end_processes(pid_t group);

#endif
