#include "common/obs/range.h"

#ifdef PSRING_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

_Atomic(const struct range_listener *) range_listener;

void range_begin(const char *name, const struct range_about *about)
{
#ifdef PSRING_NVTX
    nvtxRangePushA(name);
#endif
    range_detail_begin(name, about);
}

void range_end(void)
{
#ifdef PSRING_NVTX
    nvtxRangePop();
#endif
    range_detail_end();
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
