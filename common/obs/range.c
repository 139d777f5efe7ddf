#include "common/obs/range.h"

#ifdef PSRING_NVTX
#include <nvtx3/nvToolsExt.h>

void range_begin(const char *name)
{
    nvtxRangePushA(name);
}

void range_end(void)
{
    nvtxRangePop();
}

uint64_t range_open(const char *name)
{
    return nvtxRangeStartA(name);
}

void range_close(uint64_t range)
{
    nvtxRangeEnd(range);
}

#else

void range_begin(const char *name)
{
    (void)name;
}

void range_end(void)
{
}

uint64_t range_open(const char *name)
{
    (void)name;
    return 0;
}

void range_close(uint64_t range)
{
    (void)range;
}

#endif
