/* The answer of a run: is the ring or a parameter server faster, in sentences with their verdicts.
 */
#ifndef PSRING_EXPERIMENTS_REPORT_ANSWER_H
#define PSRING_EXPERIMENTS_REPORT_ANSWER_H

#include "experiments/report/run.h"

enum { ANSWER_CLAIMS_MOST = 16, ANSWER_TEXT = 640 };

struct answer {
    char lead[ANSWER_TEXT]; /* what was measured, and the ring's time; "": nothing to say */
    struct claim {
        char text[ANSWER_TEXT];
        enum verdict verdict; /* against the ring, by time */
    } claims[ANSWER_CLAIMS_MOST];
    size_t count;
    bool has_one_server; /* claims[0] is about one dedicated server */
    const char *note;    /* how to read it; NULL: none */
};

/*
 * Every claim compares two configurations that were measured with the same workers and size, from
 * two starts of each at least. Otherwise it gives the reason why there is no verdict. No claim is
 * about sizes or configurations that were not measured. Nothing is claimed of a run whose state is
 * WRONG.
 */
void answer_make(struct answer *answer, const struct run *run);

#endif
