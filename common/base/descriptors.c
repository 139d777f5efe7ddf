#include "common/base/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>

enum { LOOKED_AT_MOST = 4096 }; /* a process with more open files has a far higher limit */

static int limit_of(rlim_t limit)
{
    return limit == RLIM_INFINITY || limit > INT_MAX ? INT_MAX : (int)limit;
}

static int count_open(int limit)
{
    int count = 0;
    for (int fd = 0; fd < limit && fd < LOOKED_AT_MOST; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

struct descriptors descriptors_for(int more)
{
    struct rlimit limits;
    if (getrlimit(RLIMIT_NOFILE, &limits) != 0)
        return (struct descriptors){.needs = more, .limit = INT_MAX};
    struct descriptors found = {.limit = limit_of(limits.rlim_cur)};
    int open = count_open(found.limit);
    found.needs = more < INT_MAX - open ? open + more : INT_MAX;
    if (found.needs <= found.limit)
        return found;
    rlim_t wanted = (rlim_t)found.needs;
    limits.rlim_cur = wanted < limits.rlim_max ? wanted : limits.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limits) == 0)
        found.limit = limit_of(limits.rlim_cur);
    return found;
}

enum status descriptors_check(const struct descriptors *descriptors, const char *who)
{
    if (descriptors->needs <= descriptors->limit)
        return STATUS_OK;
    return FAIL(STATUS_UNSUPPORTED,
                "%s needs about %d file descriptors, the limit is %d; raise it with ulimit -n %d "
                "before the start, or use fewer ranks",
                who, descriptors->needs, descriptors->limit, descriptors->needs);
}

const char *descriptors_advice(int error, const char *otherwise)
{
    return error == EMFILE   ? "raise this process's limit of file descriptors (ulimit -n)"
           : error == ENFILE ? "raise this host's limit of open files (sysctl fs.file-max)"
                             : otherwise;
}
