#include "experiments/step/staleness.h"

#include <stdio.h>

void staleness_sum(const struct comm_progress *workers, size_t count, struct comm_progress *sum)
{
    *sum = (struct comm_progress){0};
    for (size_t w = 0; workers && w < count; w++) {
        sum->done += workers[w].done;
        sum->left_out += workers[w].left_out;
        sum->dropped += workers[w].dropped;
        for (size_t s = 0; s <= COMM_STALENESS_MOST; s++)
            sum->staleness[s] += workers[w].staleness[s];
    }
}

struct staleness staleness_of(const struct comm_progress *progress)
{
    struct staleness staleness = {0};
    for (size_t s = 0; s <= COMM_STALENESS_MOST; s++) {
        if (progress->staleness[s] == 0)
            continue;
        staleness.most = s;
        staleness.mean += (double)(s * progress->staleness[s]) / (double)progress->done;
    }
    return staleness;
}

static void print_worker(const struct comm_progress *worker, size_t number)
{
    printf("worker %zu: %llu steps, mean %.2f:", number, (unsigned long long)worker->done,
           staleness_of(worker).mean);
    for (size_t s = 0; s <= COMM_STALENESS_MOST; s++) {
        if (worker->staleness[s] > 0)
            printf(" %zu%s %.1f%%", s, s == COMM_STALENESS_MOST ? "+" : "",
                   100 * (double)worker->staleness[s] / (double)worker->done);
    }
    if (worker->left_out > 0)
        printf("; left out %llu", (unsigned long long)worker->left_out);
    if (worker->dropped > 0)
        printf("; dropped %.1f", worker->dropped);
    printf("\n");
}

void staleness_print(const struct comm_progress *workers, size_t count, bool skips)
{
    struct comm_progress sum;
    printf("staleness: steps of the slowest other worker that parameters lacked, in %% of steps\n");
    for (size_t w = 0; w < count; w++)
        print_worker(&workers[w], w);
    staleness_sum(workers, count, &sum);
    if (sum.left_out > 0)
        printf("left out: steps that a late worker skipped, to catch up%s\n",
               skips ? "; with --late-steps keep it does them all" : "");
    if (sum.dropped > 0)
        printf("dropped: steps whose gradients came when the step was over; of one that was so in "
               "part, that part\n");
}
