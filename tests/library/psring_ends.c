/* libpsring: errors. Nothing is left, and nothing is printed. */
#include "tests/lib/psring_ranks.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static union {
    double aligned;
    char bytes[60000 * 8];
} memory;

/* -------- errors ------------------------------------------------------------------------------ */

static void clean_environment(void)
{
    static const char *const names[] = {"RANK",        "WORLD_SIZE",           "MASTER_ADDR",
                                        "MASTER_PORT", "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                        "PMI_RANK"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
}

Test(psring, options_that_cannot_be, .init = clean_environment)
{
    struct psring *world = (struct psring *)memory.bytes;
    static const struct {
        struct psring_options options;
        enum psring_status status;
        const char *words;
    } cases[] = {
        {{.backend = "star"}, PSRING_ERROR_USAGE, "backend 'star'"},
        {{.transport = "pigeon"}, PSRING_ERROR_USAGE, "transport 'pigeon'"},
        {{.rank = 1}, PSRING_ERROR_USAGE, "without a rendezvous"},
        {{.rendezvous = "tcp://h:1"}, PSRING_ERROR_USAGE, "0 ranks"},
        {{.rendezvous = "h", .size = 2}, PSRING_ERROR_USAGE, "options.rendezvous: found 'h'"},
        {{.timeout_s = -1}, PSRING_ERROR_USAGE, "timeout_s: -1 seconds"},
        {{.timeout_s = (double)NAN}, PSRING_ERROR_USAGE, "timeout_s: nan seconds"},
        {{.rendezvous = "tcp://127.0.0.1:1", .rank = 2, .size = 2},
         PSRING_ERROR_USAGE,
         "rank 2, expected 0 to 1"},
        {{.rendezvous = "tcp://127.0.0.1:1", .rank = -1, .size = 2},
         PSRING_ERROR_USAGE,
         "rank -1, expected 0 to 1"},
        {{.rendezvous = "tcp://127.0.0.1:9", .rank = 1, .size = 2, .startup_timeout_s = 0.2},
         PSRING_ERROR_TIMEOUT,
         "with the same options.rendezvous"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cr_expect(said(psring_init(&world, &cases[i].options), cases[i].status, cases[i].words));
        cr_expect_null(world);
    }
    cr_expect_eq(psring_init(NULL, NULL), PSRING_ERROR_USAGE);
    setenv("RANK", "0", 1);
    setenv("WORLD_SIZE", "2", 1);
    cr_expect(said(psring_init(&world, NULL), PSRING_ERROR_USAGE, "MASTER_PORT"));
    clean_environment();
    cr_expect_eq(psring_init(&world, NULL), PSRING_OK, "after failures: alone");
    cr_expect_eq(psring_finalize(&world), PSRING_OK);
}

Test(psring, arguments_that_cannot_be, .init = clean_environment)
{
    struct psring *world;
    struct psring_handle *handle = (struct psring_handle *)memory.bytes;
    void *data = memory.bytes;
    cr_assert_eq(psring_init(&world, NULL), PSRING_OK);
    cr_expect(said(psring_allreduce(NULL, data, 1, PSRING_INT32, PSRING_SUM), PSRING_ERROR_USAGE,
                   "psring_allreduce: no communicator"));
    cr_expect(said(psring_allreduce(world, NULL, 1, PSRING_INT32, PSRING_SUM), PSRING_ERROR_USAGE,
                   "no data"));
    cr_expect(said(psring_allreduce(world, data, 1, (enum psring_type)6, PSRING_SUM),
                   PSRING_ERROR_USAGE, "6 is no type"));
    cr_expect(said(psring_allreduce(world, data, 1, PSRING_INT32, (enum psring_op)4),
                   PSRING_ERROR_USAGE, "4 is no operation"));
    cr_expect(said(psring_allreduce(world, memory.bytes + 1, 1, PSRING_INT32, PSRING_SUM),
                   PSRING_ERROR_USAGE, "not aligned"));
    cr_expect(said(psring_all_gather(world, data, SIZE_MAX / 2, PSRING_INT32), PSRING_ERROR_USAGE,
                   "more than memory"));
    cr_expect(said(psring_broadcast(world, data, 1, PSRING_INT32, 1), PSRING_ERROR_USAGE,
                   "root 1, expected 0 to 0"));
    cr_expect(said(psring_broadcast_start(world, data, 1, PSRING_INT32, -1, &handle),
                   PSRING_ERROR_USAGE, "psring_broadcast_start: root -1"));
    cr_expect_null(handle);
    cr_expect(said(psring_wait(&handle), PSRING_ERROR_USAGE, "no handle"));
    cr_expect_eq(psring_finalize(&world), PSRING_OK);
    cr_expect(said(psring_finalize(&world), PSRING_ERROR_USAGE, "no communicator"));
    cr_expect_eq(psring_version(), PSRING_VERSION_NUMBER);
    cr_expect_str_eq(psring_version_text(), "0.1.0");
}

Test(psring, twice_initialised, .init = clean_environment)
{
    struct psring *world, *second;
    cr_assert_eq(psring_init(&world, NULL), PSRING_OK);
    cr_expect(said(psring_init(&second, NULL), PSRING_ERROR_STATE, "has a world already"));
    cr_expect_null(second);
    cr_expect_eq(psring_barrier(world), PSRING_OK, "the first world still works");
    cr_expect_eq(psring_finalize(&world), PSRING_OK);
}

/* A child of a rank. Its parent is in the middle of an operation and may hold locks. */
static void do_fork(const struct psring_options *options)
{
    struct psring *world = begin(options), *second, *mine = world;
    struct psring_handle *handle;
    int how, one = 1, done;
    MUST(psring_allreduce_start(world, memory.bytes, 60000, PSRING_FLOAT64, PSRING_SUM, &handle) ==
         PSRING_OK);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        MUST(said(psring_allreduce(world, &one, 1, PSRING_INT32, PSRING_SUM), PSRING_ERROR_STATE,
                  "forked"));
        MUST(said(psring_wait(&handle), PSRING_ERROR_STATE, "forked"));
        MUST(said(psring_test(handle, &done), PSRING_ERROR_STATE, "forked"));
        MUST(said(psring_finalize(&mine), PSRING_ERROR_STATE, "forked"));
        MUST(said(psring_init(&second, options), PSRING_ERROR_STATE, "fork before psring_init"));
        _exit(0);
    }
    MUST(waitpid(child, &how, 0) == child && WIFEXITED(how) && WEXITSTATUS(how) == 0);
    MUST(psring_wait(&handle) == PSRING_OK);
    MUST(psring_barrier(world) == PSRING_OK);
    MUST(psring_finalize(&world) == PSRING_OK);
}

Test(psring, a_child_gets_an_error)
{
    const struct job job = {.options = {.size = 2}, .run = do_fork};
    run_ranks(&job, 0);
}

/* Rank 1 dies. All others get an error from handles and blocking calls, and can start again. Rank 3
 * gets it, too, although its neighbours live: no rank ends before rank 3 has its error. */
static _Atomic int *far_one_knows; /* shared by all ranks; NULL: no rank 3 */

static void do_death(const struct psring_options *options)
{
    struct psring *world = begin(options);
    struct psring_handle *handle;
    double value = 1;
    MUST(psring_barrier(world) == PSRING_OK);
    if (options->rank == 1)
        raise(SIGKILL);
    MUST(psring_allreduce_start(world, memory.bytes, 60000, PSRING_FLOAT64, PSRING_SUM, &handle) ==
         PSRING_OK);
    MUST(said(psring_allreduce(world, &value, 1, PSRING_FLOAT64, PSRING_SUM),
              PSRING_ERROR_TRANSPORT, "has closed its connection"));
    MUST(said(psring_wait(&handle), PSRING_ERROR_TRANSPORT, "has closed its connection"));
    MUST(said(psring_barrier(world), PSRING_ERROR_TRANSPORT, "has closed its connection"));
    if (options->rank == 3)
        *far_one_knows = 1;
    while (far_one_knows && !*far_one_knows) /* the alarm ends the wait */
        usleep(1000);
    MUST(psring_finalize(&world) == PSRING_OK);
    struct psring_options alone = {0};
    MUST(psring_init(&world, &alone) == PSRING_OK && psring_size(world) == 1);
    MUST(psring_finalize(&world) == PSRING_OK);
}

Test(psring, a_rank_that_dies_is_an_error_of_the_others, .init = clean_environment)
{
    const struct job job = {.options = {.size = 4, .backend = "ring"}, .run = do_death};
    void *shared =
        mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert(shared != MAP_FAILED);
    far_one_knows = shared;
    run_ranks(&job, 1 << 1);
}

/* The same on hosts, where ranks also wait for each other in shared memory. */
static void do_death_among_hosts(const struct psring_options *options)
{
    struct psring *world = begin(options);
    MUST(psring_barrier(world) == PSRING_OK);
    if (options->rank == 1)
        raise(SIGKILL);
    MUST(psring_allreduce(world, memory.bytes, 60000, PSRING_FLOAT64, PSRING_SUM) ==
         PSRING_ERROR_TRANSPORT);
    MUST(strstr(psring_error(), "rank "));
    MUST(psring_finalize(&world) == PSRING_OK);
}

Test(psring, a_rank_that_dies_among_hosts, .init = clean_environment)
{
    for (int locals = 2; locals <= 4; locals += 2) {
        const struct job job = {.options = {.size = 4, .backend = "hierarchical"},
                                .locals = locals,
                                .run = do_death_among_hosts};
        run_ranks(&job, 1 << 1);
    }
}

/* An error of rank 3 alone, which lives on. Rank 2, which then waits for rank 3 in shared memory,
 * gets an error, too. */
static _Atomic int *with_an_error; /* number of ranks that have their error; shared */

static void do_fail_beside_another(const struct psring_options *options)
{
    struct psring *world = begin(options);
    bool differs = options->rank == 3;
    MUST(psring_barrier(world) == PSRING_OK);
    enum psring_status status =
        psring_broadcast(world, memory.bytes, 1, differs ? PSRING_INT32 : PSRING_FLOAT32, 0);
    if (differs)
        MUST(status == PSRING_ERROR_PROTOCOL);
    else
        MUST(said(psring_allreduce(world, memory.bytes, 60000, PSRING_FLOAT64, PSRING_SUM),
                  PSRING_ERROR_PROTOCOL, "rank 3 has failed"));
    ++*with_an_error;
    while (*with_an_error < options->size) /* the alarm ends the wait */
        usleep(1000);
    MUST(psring_finalize(&world) == PSRING_OK);
}

Test(psring, a_rank_that_fails_beside_another, .init = clean_environment)
{
    const struct job job = {.options = {.size = 4, .backend = "hierarchical", .timeout_s = 10},
                            .locals = 2,
                            .run = do_fail_beside_another};
    void *shared =
        mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert(shared != MAP_FAILED);
    with_an_error = shared;
    run_ranks(&job, 0);
}

/* Hosts with unequal numbers of ranks. */
static void do_uneven(const struct psring_options *options)
{
    struct psring *world;
    MUST(said(psring_init(&world, options), PSRING_ERROR_USAGE,
              "host0 has 2 of the ranks and host1 1, expected as many on each host"));
}

Test(psring, hosts_that_are_uneven)
{
    const struct job job = {
        .options = {.size = 3, .backend = "hierarchical"}, .locals = 2, .run = do_uneven};
    run_ranks(&job, 0);
}

static void end_quietly(int number)
{
    (void)number;
    _exit(0);
}

/* Rank 1 dies while the others end: they get an error, but the world is freed. */
static void do_death_at_the_end(const struct psring_options *options)
{
    struct psring *world = begin(options);
    MUST(psring_barrier(world) == PSRING_OK);
    if (options->rank == 1)
        raise(SIGKILL);
    MUST(psring_finalize(&world) == PSRING_ERROR_TRANSPORT && !world);
    MUST(strstr(psring_error(), "rank "));
    struct psring_options alone = {0};
    MUST(psring_init(&world, &alone) == PSRING_OK && psring_finalize(&world) == PSRING_OK);
}

Test(psring, a_rank_that_dies_at_the_end, .init = clean_environment)
{
    const struct job job = {.options = {.size = 3}, .run = do_death_at_the_end};
    run_ranks(&job, 1 << 1);
}

/* The ranks leave the last barrier one after the other, because rank 0 answers slowly. A connection
 * that another rank has closed is then no error for a rank that still waits. */
static bool answers_slowly;

ssize_t send(int fd, const void *data, size_t bytes, int flags)
{
    if (answers_slowly)
        usleep(500000); /* longer than the polling interval of connections */
    return sendto(fd, data, bytes, flags, NULL, 0);
}

static void do_leave_one_by_one(const struct psring_options *options)
{
    struct psring *world = begin(options);
    answers_slowly = options->rank == 0;
    MUST(psring_finalize(&world) == PSRING_OK);
}

Test(psring, ranks_leave_one_by_one)
{
    const struct job job = {.options = {.size = 3}, .run = do_leave_one_by_one};
    run_ranks(&job, 0);
}

/* Rank 1 stays away until rank 0 has given up. */
static void do_silence(const struct psring_options *options)
{
    struct psring *world = begin(options);
    if (options->rank == 1) {
        signal(SIGALRM, end_quietly);
        alarm(5);
        while (true)
            pause();
    }
    MUST(said(psring_barrier(world), PSRING_ERROR_TIMEOUT, "worker 1 (rank 1)"));
    MUST(psring_finalize(&world) == PSRING_OK);
}

Test(psring, a_silent_rank_is_an_error_after_the_timeout)
{
    const struct job job = {.options = {.size = 2, .timeout_s = 0.5}, .run = do_silence};
    run_ranks(&job, 0);
}

/* -------- failures reach all waiting ranks ---------------------------------------------------- */

static _Atomic int *share_counter(void)
{
    void *shared =
        mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert(shared != MAP_FAILED);
    return shared;
}

static void wait_for_errors(int ranks)
{
    while (*with_an_error < ranks) /* the alarm ends the wait */
        usleep(1000);
}

/* Rank 1 is killed. Its child still holds the inherited descriptors. */
static void do_leave_a_child(const struct psring_options *options)
{
    struct psring *world = begin(options);
    MUST(psring_barrier(world) == PSRING_OK);
    if (options->rank == 1) {
        if (fork() == 0) {
            alarm(LIMIT_S); /* fork cancels alarms, and no process waits for this child */
            wait_for_errors(1);
            _exit(0);
        }
        raise(SIGKILL);
    }
    MUST(said(psring_barrier(world), PSRING_ERROR_TRANSPORT, "(rank 1) has closed"));
    ++*with_an_error;
    MUST(psring_finalize(&world) == PSRING_OK);
}

Test(psring, a_rank_that_leaves_a_child)
{
    const struct job job = {.options = {.size = 2, .timeout_s = 10}, .run = do_leave_a_child};
    with_an_error = share_counter();
    run_ranks(&job, 1 << 1);
}

/* Rank 2 dies, and rank 3 comes late: rank 0 waits for rank 3, and rank 1 for rank 0. */
static void do_wait_for_others(const struct psring_options *options)
{
    struct psring *world = begin(options);
    MUST(psring_barrier(world) == PSRING_OK);
    if (options->rank == 2)
        raise(SIGKILL);
    if (options->rank == 3)
        wait_for_errors(2);
    MUST(said(psring_allreduce(world, memory.bytes, 1000, PSRING_FLOAT64, PSRING_SUM),
              PSRING_ERROR_TRANSPORT, ""));
    ++*with_an_error;
    wait_for_errors(3); /* so no rank sees any other end than that of rank 2 */
    MUST(psring_finalize(&world) == PSRING_OK);
}

Test(psring, a_rank_that_dies_and_is_not_awaited)
{
    const struct job job = {.options = {.size = 4, .backend = "ring", .timeout_s = 10},
                            .run = do_wait_for_others};
    with_an_error = share_counter();
    run_ranks(&job, 1 << 2);
}

/* Rank 1 waits in vain for rank 2 in their group, while rank 0 waits for both in a split. */
static void do_fail_apart(const struct psring_options *given)
{
    struct psring_options options = *given;
    struct psring *group, *other;
    if (options.rank == 1)
        options.timeout_s = 1;
    struct psring *world = begin(&options);
    MUST(psring_split(world, options.rank > 0, &group) == PSRING_OK);
    if (options.rank == 2)
        wait_for_errors(2);
    if (options.rank == 1)
        MUST(said(psring_barrier(group), PSRING_ERROR_TIMEOUT, "worker 2 (rank 2)"));
    else if (options.rank == 2) /* rank 1's message for the group may come first */
        MUST(psring_split(world, 0, &other) != PSRING_OK);
    else
        MUST(said(psring_split(world, 0, &other), PSRING_ERROR_TIMEOUT,
                  "rank 1 has failed: no progress for 1 s"));
    ++*with_an_error;
    wait_for_errors(3);
    MUST(psring_finalize(&world) == PSRING_OK);
}

Test(psring, a_failure_in_a_group_reaches_the_world)
{
    static const char *const transports[] = {"tcp", "zmq"};
    for (int t = 0; t < 2; t++) {
        const struct job job = {.options = {.size = 3, .transport = transports[t], .timeout_s = 10},
                                .run = do_fail_apart};
        with_an_error = share_counter();
        run_ranks(&job, 0);
    }
}

/* Ranks whose calls differ in the type: an error on both ranks, no hang. */
static void do_differ(const struct psring_options *options)
{
    struct psring *world = begin(options);
    enum psring_type type = options->rank == 0 ? PSRING_FLOAT32 : PSRING_INT32;
    enum psring_status status = psring_allreduce(world, memory.bytes, 1000, type, PSRING_SUM);
    MUST(status == PSRING_ERROR_PROTOCOL || status == PSRING_ERROR_TRANSPORT);
    MUST(psring_finalize(&world) == PSRING_OK);
}

Test(psring, ranks_that_differ_in_the_type)
{
    const struct job job = {.options = {.size = 2}, .run = do_differ};
    run_ranks(&job, 0);
}

/* Rank 3 omits a call in a group. Rank 0's message for it arrives, but no call of rank 3 takes it:
 * the end must find it. */
static void do_call_alone(const struct psring_options *options)
{
    struct psring *world = begin(options), *group;
    bool member = options->rank == 0 || options->rank == 3;
    MUST(psring_split(world, member, &group) == PSRING_OK);
    if (options->rank == 0)
        MUST(psring_broadcast(group, memory.bytes, 1000, PSRING_FLOAT32, 0) == PSRING_OK);
    enum psring_status status = psring_finalize(&world);
    if (options->rank == 3)
        MUST(said(status, PSRING_ERROR_PROTOCOL, "psring_broadcast"));
}

Test(psring, a_call_in_a_group_that_one_rank_left_out)
{
    const struct job job = {.options = {.size = 4, .transport = "tcp"}, .run = do_call_alone};
    run_ranks(&job, 0);
}

/* Ranks differ in the same way on both hosts, so the messages between hosts do not show it. */
static bool lengths_differ;

static void do_differ_on_each_host(const struct psring_options *options)
{
    struct psring *world = begin(options);
    bool other = options->rank % 2;
    size_t count = other && lengths_differ ? 999 : 1000;
    enum psring_type type = other && !lengths_differ ? PSRING_INT32 : PSRING_FLOAT32;
    enum psring_status status = psring_allreduce(world, memory.bytes, count, type, PSRING_SUM);
    MUST(status == PSRING_ERROR_PROTOCOL || status == PSRING_ERROR_TRANSPORT);
    MUST(psring_finalize(&world) == PSRING_OK);
}

Test(psring, ranks_that_differ_on_each_host)
{
    const struct job job = {.options = {.size = 4, .backend = "hierarchical"},
                            .locals = 2,
                            .run = do_differ_on_each_host};
    for (int lengths = 0; lengths < 2; lengths++) {
        lengths_differ = lengths;
        run_ranks(&job, 0);
    }
}

/* -------- nothing is printed ------------------------------------------------------------------ */

static char logged[4096];

static void note(void *context, const char *line)
{
    MUST(context == logged);
    strncat(logged, line, sizeof logged - strlen(logged) - 1);
}

static void do_quietly(const struct psring_options *options)
{
    FILE *file = tmpfile();
    struct psring_options with_log = *options;
    int out = dup(STDERR_FILENO);
    MUST(file && dup2(fileno(file), STDERR_FILENO) >= 0);
    MUST(dup2(fileno(file), STDOUT_FILENO) >= 0);
    with_log.log = note;
    with_log.log_context = logged;
    do_death(&with_log);
    fflush(stdout);
    dup2(out, STDERR_FILENO);
    MUST(lseek(fileno(file), 0, SEEK_END) == 0);
}

Test(psring, nothing_is_printed, .init = clean_environment)
{
    const struct job job = {.options = {.size = 3}, .run = do_quietly};
    run_ranks(&job, 1 << 1);
}
