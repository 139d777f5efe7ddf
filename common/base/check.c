#include "common/base/check.h"

#include <stdio.h>
#include <stdlib.h>

void check_failed(const char *condition, const char *file, int line)
{
    fprintf(stderr, "psring: %s:%d: this should always hold and does not: %s (a bug in psring)\n",
            file, line, condition);
    abort();
}
