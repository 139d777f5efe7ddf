/* The number of file descriptors that a process has, needs and may have. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/descriptors.h"
#include "tests/lib/capture.h"

static void set_limits(int soft, int hard)
{
    const struct rlimit limits = {.rlim_cur = (rlim_t)soft, .rlim_max = (rlim_t)hard};
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limits), 0);
}

static int soft_limit(void)
{
    struct rlimit limits;
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limits), 0);
    return (int)limits.rlim_cur;
}

Test(descriptors, open_ones_count_wherever_they_lie)
{
    set_limits(100, 100);
    int before = descriptors_for(0).needs, high = fcntl(STDERR_FILENO, F_DUPFD, 90);
    cr_assert_geq(high, 90);
    cr_assert_eq(descriptors_for(0).needs, before + 1);
    cr_assert_eq(descriptors_for(7).needs, before + 8);
    close(high);
    cr_assert_eq(descriptors_for(0).needs, before);
}

Test(descriptors, the_soft_limit_is_raised_as_far_as_needed)
{
    set_limits(40, 200);
    int open = descriptors_for(0).needs;
    struct descriptors found = descriptors_for(40 - open); /* all remaining descriptors */
    cr_assert_eq(descriptors_check(&found, ""), STATUS_OK);
    cr_assert(found.limit == 40 && soft_limit() == 40);
    found = descriptors_for(60 - open);
    cr_assert_eq(descriptors_check(&found, ""), STATUS_OK);
    cr_assert(found.limit == 60 && soft_limit() == 60);
    found = descriptors_for(201 - open);
    cr_assert(found.limit == 200 && found.needs == 201);
    cr_assert_eq(soft_limit(), 200);
    assert_refused(descriptors_check(&found, "rank 2 on a"), STATUS_UNSUPPORTED,
                   "rank 2 on a needs about 201 file descriptors, the limit is 200; raise it");
}

Test(descriptors, advice_fits_the_error)
{
    cr_assert(strstr(descriptors_advice(EMFILE, "x"), "ulimit -n"));
    cr_assert(strstr(descriptors_advice(ENFILE, "x"), "fs.file-max"));
    cr_assert_str_eq(descriptors_advice(ECONNREFUSED, "x"), "x");
}
