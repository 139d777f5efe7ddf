/* NCCL's choice, read from lines as NCCL writes them. Also the environment that requests them. */
#include "ring/baselines/nccl_impl.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct nccl_choice read_text(const char *text)
{
    struct nccl_choice choice = {.wanted = "ring"};
    nccl_choice_read(&choice, text, strlen(text));
    return choice;
}

static void expect(const char *log, const char *words, uint64_t calls, uint64_t ring_calls)
{
    char text[NCCL_CHOICE_BYTES];
    struct nccl_choice choice = read_text(log);
    nccl_choice_text(&choice, text);
    cr_assert_str_eq(text, words, "'%s' from:\n%s", text, log);
    cr_assert_eq(choice.calls, calls);
    cr_assert_eq(choice.calls - choice.other_calls, ring_calls);
}

Test(nccl_log, the_choice_of_every_call)
{
    expect("gpu1:417:417 [0] NCCL INFO AllReduce: 4096 Bytes -> Algo RING proto SIMPLE "
           "channel{Lo..Hi}={0..1}\n",
           "ring/simple", 1, 1);
    expect("gpu1:417:417 [0] NCCL INFO AllReduce: 4 Bytes -> Algo RING proto SIMPLE "
           "channel{Lo..Hi}={0..0}\n"
           "gpu1:417:432 [0] NCCL INFO AllReduce: 4799528 Bytes -> Algo RING proto SIMPLE "
           "channel{Lo..Hi}={0..15}\n",
           "ring/simple", 2, 2);
    expect("gpu1:417:417 [0] NCCL INFO AllReduce: 1024 Bytes -> Algo TREE proto LL "
           "channel{Lo..Hi}={0..0}",
           "tree/ll", 1, 0);
}

Test(nccl_log, numbers_of_older_versions)
{
    expect("gpu1:417:417 [0] NCCL INFO 805306368 Bytes -> Algo 1 proto 2 time 3970.683594\n",
           "ring/simple", 1, 1);
    expect("gpu1:417:417 [0] NCCL INFO 4096 Bytes -> Algo 0 proto 0 time 9.5\n", "tree/ll", 1, 0);
    expect("gpu1:417:417 [0] NCCL INFO 4096 Bytes -> Algo 17 proto 2 time 9.5\n", "17/simple", 1,
           0);
}

Test(nccl_log, kernels_of_symmetric_memory_go_by_no_algorithm)
{
    expect("a:1:1 [0] NCCL INFO AllReduce [Symmetric]: 4096 Bytes -> Kernel AllReduce_AGxLL_R "
           "nchannels 8 nthreads 512 nWorks 1\n",
           "symmetric/allreduce_agxll", 1, 0);
}

Test(nccl_log, what_was_not_asked_for_is_wrong)
{
    static const char text[] =
        "a:1:1 [0] NCCL INFO AllReduce: 8 Bytes -> Algo RING proto SIMPLE channel{}\n"
        "a:1:1 [0] NCCL INFO AllReduce: 8 Bytes -> Algo TREE proto SIMPLE channel{}\n";
    static const char *const wanted[] = {"ring", "tree", NULL};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        struct nccl_env_log log = {.choice = {.wanted = wanted[i]}};
        nccl_choice_read(&log.choice, text, sizeof text - 1);
        cr_expect_eq(log.choice.other_calls, wanted[i] ? 1 : 0);
        cr_expect_eq(nccl_env_log_check(&log), wanted[i] ? STATUS_WRONG : STATUS_OK);
    }
}

Test(nccl_log, calls_that_differ_are_said_to)
{
    expect("a:1:1 [0] NCCL INFO AllReduce: 8 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}\n"
           "a:1:1 [0] NCCL INFO AllReduce: 99999 Bytes -> Algo RING proto SIMPLE channel{}\n",
           "ring/simple/mixed", 2, 2);
    expect("a:1:1 [0] NCCL INFO AllReduce: 8 Bytes -> Algo TREE proto SIMPLE channel{}\n"
           "a:1:1 [0] NCCL INFO AllReduce: 99999 Bytes -> Algo RING proto SIMPLE channel{}\n",
           "ring/simple/mixed", 2, 1);
}

Test(nccl_log, other_lines_say_nothing)
{
    expect("", "", 0, 0);
    expect("a:1:1 [0] NCCL INFO Broadcast: 8 Bytes -> Algo RING proto LL channel{}\n"
           "a:1:1 [0] NCCL INFO AllGather: 8 Bytes -> Algo 1 proto 2 time 2\n"
           "a:1:1 [0] NCCL INFO NCCL_ALGO set by environment to Ring\n"
           "a:1:1 [0] NCCL INFO   Algorithm   |   Tree   |   Ring\n"
           "AllReduce: 8 Bytes -> Algo RING proto LL channel{}\n"
           "a:1:1 [0] NCCL INFO AllReduce: 8 Bytes -> Algo\n",
           "", 0, 0);
}

Test(nccl_log, long_lines_and_names_are_cut_not_overrun)
{
    char log[4096];
    memset(log, 'x', sizeof log);
    static const char start[] = "a:1:1 [0] NCCL INFO AllReduce: 8 Bytes -> Algo ";
    memcpy(log, start, sizeof start - 1);
    struct nccl_choice choice = {0};
    nccl_choice_read(&choice, log, sizeof log); /* no newline, no end of the word */
    cr_assert_eq(choice.calls, 0);
    memcpy(log + 1000, "\n", 1);
    static const char second[] = "a:1 [0] NCCL INFO AllReduce: 8 Bytes -> Algo RING proto SIMPLE ";
    memcpy(log + 1001, second, sizeof second - 1);
    nccl_choice_read(&choice, log, sizeof log);
    cr_assert_eq(choice.calls, 1);
}

/* -------- the environment --------------------------------------------------------------------- */

static const char *const variables[] = {
    "NCCL_ALGO",   "NCCL_PROTO", "NCCL_DEBUG",      "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE",
    "NCCL_HOSTID", "NCCL_NET",   "NCCL_IB_DISABLE", "NCCL_SOCKET_IFNAME"};

static void unset_all(void)
{
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
}

static void expect_variable(const char *name, const char *value)
{
    const char *found = getenv(name);
    if (!value)
        cr_assert_null(found, "%s=%s", name, found);
    else
        cr_assert_str_eq(found ? found : "(unset)", value, "%s=%s", name, found);
}

Test(nccl_env, forces_the_ring_and_has_a_log)
{
    struct world world = {.rank = 1, .size = 2, .local_size = 2, .run_id = 0xabc};
    int log;
    unset_all();
    nccl_env_set(&(struct nccl_env_options){.world = &world, .algorithm = "ring"}, &log);
    expect_variable("NCCL_ALGO", "Ring");
    expect_variable("NCCL_PROTO", "Simple");
    expect_variable("NCCL_HOSTID", NULL);
    expect_variable("NCCL_NET", NULL);
    expect_variable("NCCL_SOCKET_IFNAME", NULL);
    cr_assert_gt(log, 0, "this system has no log in memory");
    expect_variable("NCCL_DEBUG", "INFO");
    expect_variable("NCCL_DEBUG_SUBSYS", "TUNING");

    /* As NCCL does: opens the name and continues to write while others read. */
    FILE *writer = fopen(getenv("NCCL_DEBUG_FILE"), "w");
    cr_assert_not_null(writer);
    struct nccl_env_log first, second;
    nccl_env_log_begin(&first, log, "tree");
    nccl_env_log_follow(&first);
    cr_assert_eq(first.choice.calls, 0);
    fprintf(writer, "a:1:1 [0] NCCL INFO AllReduce: 8 Bytes -> Algo TREE proto LL channel{}\n");
    fflush(writer);
    nccl_env_log_follow(&first);
    cr_assert_eq(first.choice.calls, 1);
    cr_assert_eq(first.choice.other_calls, 0);
    nccl_env_log_begin(&second, log, "ring");
    fprintf(writer, "a:1:1 [0] NCCL INFO AllReduce: 8 Bytes -> Algo RING ");
    fflush(writer);
    nccl_env_log_follow(&second); /* a line counts only when it is whole */
    cr_assert_eq(second.choice.calls, 0);
    fprintf(writer, "proto LL channel{}\n");
    fflush(writer);
    nccl_env_log_follow(&second);
    cr_assert_eq(second.choice.calls, 1);
    cr_assert_eq(second.choice.other_calls, 0);
    fclose(writer);
}

/* A sandbox in which memory has no name that can be opened. */
static bool no_memfd;

int __real_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags)
{
    return no_memfd ? -1 : __real_memfd_create(name, flags);
}

Test(nccl_env, without_memory_for_it_the_log_is_a_file_that_leaves_no_name)
{
    static const char line[] = "a:1:1 [0] NCCL INFO AllReduce: 8 Bytes -> Algo RING proto LL c{}\n";
    struct world world = {.size = 2};
    struct nccl_env_log followed;
    int log;
    unset_all();
    no_memfd = true;
    nccl_env_set(&(struct nccl_env_options){.world = &world, .algorithm = "ring"}, &log);
    cr_assert_gt(log, 0);
    const char *path = getenv("NCCL_DEBUG_FILE");
    cr_assert_not_null(path);
    FILE *writer = fopen(path, "w");
    cr_assert_not_null(writer, "%s", path);
    nccl_env_log_begin(&followed, log, "ring");
    cr_assert_neq(access(path, F_OK), 0, "%s still exists", path);
    fputs(line, writer);
    fflush(writer);
    nccl_env_log_follow(&followed);
    cr_assert_eq(followed.choice.calls, 1);
    fclose(writer);
    unset_all(); /* as if no communicator could be opened */
    nccl_env_set(&(struct nccl_env_options){.world = &world, .algorithm = "ring"}, &log);
    cr_assert_eq(access(getenv("NCCL_DEBUG_FILE"), F_OK), 0);
    nccl_env_log_forget();
    cr_assert_neq(access(getenv("NCCL_DEBUG_FILE"), F_OK), 0);
}

Test(nccl_env, its_own_choice_is_left_to_nccl)
{
    struct world world = {.size = 2};
    int log;
    unset_all();
    nccl_env_set(&(struct nccl_env_options){.world = &world}, &log);
    expect_variable("NCCL_ALGO", NULL);
    expect_variable("NCCL_PROTO", NULL);
    unset_all();
    nccl_env_set(&(struct nccl_env_options){.world = &world, .algorithm = "tree"}, &log);
    expect_variable("NCCL_ALGO", "Tree");
}

/* A log of 100 MB, as from about 200,000 steps: every line counts, and little memory is in use. */
Test(nccl_env, a_log_that_is_followed_stays_small)
{
    enum { BURSTS = 100, LINES = 8000, BYTES_MAX = 64 * 1024 };
    struct world world = {.size = 2};
    struct nccl_env_log followed;
    struct stat info;
    int log;
    unset_all();
    nccl_env_set(&(struct nccl_env_options){.world = &world, .algorithm = "ring"}, &log);
    FILE *writer = fopen(getenv("NCCL_DEBUG_FILE"), "w");
    cr_assert_not_null(writer);
    nccl_env_log_begin(&followed, log, "ring");
    for (int burst = 0; burst < BURSTS; burst++) {
        for (int line = 0; line < LINES; line++)
            fprintf(writer,
                    "gpu1-of-a-cluster:%d:417 [0] NCCL INFO AllReduce: 4799528 Bytes -> Algo RING "
                    "proto SIMPLE channel{Lo..Hi}={0..15}\n",
                    line);
        fflush(writer);
        nccl_env_log_follow(&followed);
        cr_assert_eq(fstat(log, &info), 0);
        cr_assert_leq(info.st_blocks * 512, BYTES_MAX, "%lld bytes are in use after burst %d",
                      (long long)info.st_blocks * 512, burst);
    }
    cr_assert_eq(followed.choice.calls, BURSTS * LINES);
    cr_assert_eq(followed.choice.other_calls, 0);
    cr_assert_not(followed.choice.mixed);
    fclose(writer);
}

Test(nccl_env, what_the_user_has_set_stays)
{
    struct world world = {.rank = 0, .size = 2, .local_size = 2};
    int log;
    unset_all();
    setenv("NCCL_ALGO", "Tree", 1);
    setenv("NCCL_DEBUG", "WARN", 1);
    setenv("NCCL_SOCKET_IFNAME", "eth7", 1);
    nccl_env_set(
        &(struct nccl_env_options){.world = &world, .share_gpu = true, .algorithm = "ring"}, &log);
    expect_variable("NCCL_ALGO", "Tree");
    expect_variable("NCCL_DEBUG", "WARN");
    expect_variable("NCCL_SOCKET_IFNAME", "eth7");
    expect_variable("NCCL_PROTO", "Simple");
}

Test(nccl_env, processes_on_one_gpu_look_like_hosts)
{
    char first[64];
    struct world world = {.rank = 0, .size = 3, .local_size = 3, .run_id = 0xabc};
    struct nccl_env_options options = {.world = &world, .share_gpu = true};
    int log;
    unset_all();
    nccl_env_set(&options, &log);
    expect_variable("NCCL_NET", "Socket");
    expect_variable("NCCL_IB_DISABLE", "1");
    expect_variable("NCCL_SOCKET_IFNAME", "lo");
    snprintf(first, sizeof first, "%s", getenv("NCCL_HOSTID"));
    unset_all();
    world.rank = 1;
    world.local_size = 2; /* one more host, which "lo" does not reach */
    nccl_env_set(&options, &log);
    cr_assert_str_neq(getenv("NCCL_HOSTID"), first);
    expect_variable("NCCL_SOCKET_IFNAME", NULL);
}

Test(nccl_env, no_log_no_choice)
{
    struct nccl_env_log log = {.choice = {.calls = 7}};
    nccl_env_log_begin(&log, 0, "ring");
    nccl_env_log_follow(&log);
    cr_assert_eq(log.choice.calls, 0);
}
