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
    bool has_one_server; /* claims[0] is that of one server on a machine of its own */
    const char *note;    /* how to read it; NULL: none */
};

/*
 * Every claim compares two configurations that were measured with the same workers and size, from
 * two starts of each at least; otherwise it says that there is no verdict, and why. What was not
 * measured is in no claim. Nothing is claimed of a run whose state is WRONG.
 */
void answer_make(struct answer *answer, const struct run *run);

#endif
