#include "common/base/range.h"

#include "common/base/clock.h"

#ifdef PSRING_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

_Atomic(const struct range_listener *) range_listener;

static void range_begin_at(const char *name, const struct range_about *about, int64_t now_ns)
{
    const struct range_listener *listener = range_listens();
#ifdef PSRING_NVTX
    nvtxRangePushA(name);
#endif
    if (listener)
        listener->begin(name, about, now_ns);
}

static void range_end_at(int64_t now_ns)
{
    const struct range_listener *listener = range_listens();
#ifdef PSRING_NVTX
    nvtxRangePop();
#endif
    if (listener)
        listener->end(now_ns);
}

void range_begin(const char *name, const struct range_about *about)
{
    range_begin_at(name, about, 0);
}

void range_end(void)
{
    range_end_at(0);
}

void range_sum_begin(struct range_sum *sum, const char *name, const struct range_about *about,
                     bool cpu)
{
    sum->begin_cpu_ns = cpu ? clock_thread_ns() : -1;
    sum->begin_ns = clock_now_ns();
    range_begin_at(name, about, sum->begin_ns);
}

int64_t range_sum_end(struct range_sum *sum)
{
    if (sum->begin_cpu_ns >= 0)
        sum->cpu_ns += clock_thread_ns() - sum->begin_cpu_ns;
    int64_t now_ns = clock_now_ns();
    sum->ns += now_ns - sum->begin_ns;
    range_end_at(now_ns);
    return now_ns;
}

void range_open(struct range *range, const char *name, const struct range_about *about)
{
#ifdef PSRING_NVTX
    range->nvtx = nvtxRangeStartA(name);
#endif
    range_detail_open(range, name, about);
}

void range_close(struct range *range)
{
#ifdef PSRING_NVTX
    nvtxRangeEnd(range->nvtx);
#endif
    range_detail_close(range);
}
