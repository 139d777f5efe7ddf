#include "experiments/rows/judge.h"

#include "experiments/measure/cpu.h"

enum state judge_row(const struct evidence *row)
{
    if (row->wrong > 0)
        return STATE_WRONG;
    if (!(row->time_us > 0))
        return STATE_INCOMPLETE;
    if (row->cpu_busy > CPU_SHARE_LIMITED)
        return cpu_share_is_others(row->cpu_busy, row->cpu_other) ? STATE_DISTURBED : STATE_LIMITED;
    return row->starts > 1 ? STATE_EXACT : STATE_SINGLE_START;
}

enum state judge_run(const struct run_evidence *run)
{
    if (run->worst_row == STATE_WRONG || run->trainings_differ)
        return STATE_WRONG;
    return run->failed > 0 ? STATE_INCOMPLETE : run->worst_row;
}

const char *judge_word(enum state state)
{
    static const char *const words[] = {"exact",       "single start", "disturbed",
                                        "CPU-limited", "incomplete",   "WRONG"};
    return words[state];
}

bool judge_has_time(enum state state)
{
    return state < STATE_INCOMPLETE;
}
