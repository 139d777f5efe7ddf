/* libpsring: the ranks that are left continue. Ranks are processes, because some are killed. */
#include "tests/lib/psring_ranks.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* Shared by the ranks and the test. */
static struct {
    _Atomic int arrived, step, end;
    _Atomic long long slowest_us; /* from an error to the next step */
    _Atomic int entered;          /* a rank of the world that formed last */
} * shared;

static void share(void)
{
    if (!shared)
        shared =
            mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert(shared != MAP_FAILED);
    memset(shared, 0, sizeof *shared);
}

static pid_t started[RANKS_MOST]; /* of the test that runs; 0: none */

static void wait_for(_Atomic int *number, int least)
{
    for (int ms = 0; *number < least; ms++) {
        usleep(1000);
        if (ms < LIMIT_S * 1000)
            continue;
        for (int rank = 0; rank < RANKS_MOST && started[rank] > 0; rank++)
            kill(started[rank], SIGKILL);
        abort();
    }
}

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

/* -------- the ranks that are left ------------------------------------------------------------- */

/* Sums 1 << identity over the world: its members. */
static int64_t members_of(struct psring *world, int identity)
{
    int64_t members = INT64_C(1) << identity;
    MUST(psring_allreduce(world, &members, 1, PSRING_INT64, PSRING_SUM) == PSRING_OK);
    return members;
}

/* The ranks of the bits in `dying` die. `late`: the first of them dies instead of shrinking. */
static unsigned dying;
static bool late;

static void do_deaths(const struct psring_options *options)
{
    struct psring *world = begin(options), *left, *none;
    double vector[3000] = {1};
    int rank = options->rank, alive = options->size - __builtin_popcount(dying), place = 0;
    bool dies = dying >> rank & 1, last = late && (dying & ((1u << rank) - 1)) == 0;
    MUST(psring_barrier(world) == PSRING_OK);
    shared->arrived++; /* ZeroMQ's thread may still have a message of the barrier */
    wait_for(&shared->arrived, options->size);
    MUST(said(psring_shrink(world, &left), PSRING_ERROR_STATE, "no operation"));
    if (dies && !last)
        raise(SIGKILL);
    MUST(psring_allreduce(world, vector, 3000, PSRING_FLOAT64, PSRING_SUM) != PSRING_OK);
    if (dies)
        raise(SIGKILL);
    MUST(psring_shrink(world, &left) == PSRING_OK);
    for (int r = 0; r < rank; r++)
        place += !(dying >> r & 1);
    MUST(psring_size(left) == alive && psring_rank(left) == place);
    MUST(said(psring_shrink(world, &none), PSRING_ERROR_STATE, "already") && !none);
    MUST(psring_finalize(&world) == PSRING_OK && !world);
    MUST(members_of(left, rank) == ((1 << options->size) - 1 - (int)dying));
    MUST(psring_finalize(&left) == PSRING_OK);
    struct psring_options alone = {0};
    MUST(psring_init(&left, &alone) == PSRING_OK && psring_finalize(&left) == PSRING_OK);
}

static void deaths(int size, unsigned who, bool one_late, const char *transport)
{
    const bool tells = strcmp(transport, "tcp") == 0; /* others do not see a death at once */
    const struct job job = {
        .options = {.size = size, .transport = transport, .timeout_s = tells ? 20 : 1},
        .run = do_deaths};
    share();
    dying = who;
    late = one_late;
    run_ranks(&job, who);
}

Test(shrink, without_any_rank)
{
    for (unsigned rank = 0; rank < 4; rank++)
        deaths(4, 1u << rank, false, "tcp");
}

Test(shrink, without_several)
{
    deaths(4, 0x3, false, "tcp");
    deaths(4, 0xc, false, "tcp");
    deaths(5, 0x15, false, "tcp");
    deaths(3, 0x3, false, "tcp");
    deaths(2, 0x1, false, "tcp");
    deaths(4, 0x5, false, "zmq");
}

/* The first of them has the error, and dies while the others shrink. */
Test(shrink, one_dies_meanwhile)
{
    deaths(4, 0x6, true, "tcp");
    deaths(4, 0x9, true, "tcp");
    deaths(3, 0x5, true, "tcp");
}

/* -------- a silent rank ----------------------------------------------------------------------- */

/* Makes operations until one fails. The first may succeed on a rank that was stopped: what it needs
 * has arrived. */
static enum psring_status until_it_fails(struct psring *world)
{
    int one = 1;
    enum psring_status status;
    do
        status = psring_allreduce(world, &one, 1, PSRING_INT32, PSRING_SUM);
    while (status == PSRING_OK);
    return status;
}

/* Rank 1 stops. When it continues, the others have a world without it. */
static void do_silence(const struct psring_options *options)
{
    struct psring *world = begin(options), *left;
    MUST(psring_barrier(world) == PSRING_OK);
    if (options->rank == 1)
        raise(SIGSTOP);
    enum psring_status status = until_it_fails(world);
    if (options->rank == 1) {
        status = psring_shrink(world, &left);
        MUST(said(status, status, status == PSRING_ERROR_TIMEOUT ? "too few" : "without rank 1"));
        MUST(psring_finalize(&world) == PSRING_OK);
        shared->end = 1;
        return;
    }
    MUST(status == PSRING_ERROR_TIMEOUT);
    MUST(psring_shrink(world, &left) == PSRING_OK && psring_size(left) == options->size - 1);
    MUST(members_of(left, options->rank) == (1 << options->size) - 1 - 2);
    shared->arrived++;
    /* The silent rank learns it when the others fail once more. */
    wait_for(&shared->arrived, options->size - 1);
    if (options->rank == options->size - 1)
        raise(SIGKILL);
    MUST(until_it_fails(left) != PSRING_OK);
    MUST(psring_finalize(&world) == PSRING_OK);
    wait_for(&shared->step, 1); /* rank 1 asks this rank from now on */
    MUST(psring_shrink(left, &world) == PSRING_OK && psring_size(world) == options->size - 2);
    wait_for(&shared->end, 1);
    MUST(psring_finalize(&left) == PSRING_OK && psring_finalize(&world) == PSRING_OK);
}

Test(shrink, a_silent_rank_does_not_come_back)
{
    share();
    const struct job job = {.options = {.size = 4, .timeout_s = 1}, .run = do_silence};
    pid_t *processes = started;
    start_ranks(&job, processes);
    wait_for(&shared->arrived, 3);
    kill(processes[1], SIGCONT);
    usleep(300000);
    shared->step = 1;
    wait_for_ranks(&job, processes, 1 << 3);
}

/* Rank 2 stops. The others end without it, before it continues. */
static void do_return(const struct psring_options *options)
{
    struct psring *world = begin(options), *left;
    MUST(psring_barrier(world) == PSRING_OK);
    if (options->rank == 2)
        raise(SIGSTOP);
    MUST(until_it_fails(world) != PSRING_OK);
    enum psring_status status = psring_shrink(world, &left);
    if (options->rank == 2) {
        MUST(said(status, PSRING_ERROR_TIMEOUT, "may have continued without it"));
    } else {
        MUST(status == PSRING_OK && psring_size(left) == 2);
        MUST(psring_finalize(&left) == PSRING_OK);
    }
    MUST(psring_finalize(&world) == PSRING_OK);
}

/* Waits until the process has ended, and leaves it for wait_for_ranks. */
static void await_end(pid_t process)
{
    siginfo_t info;
    cr_assert_eq(waitid(P_PID, (id_t)process, &info, WEXITED | WNOWAIT), 0);
}

Test(shrink, no_second_world_after_the_end_of_the_first)
{
    share();
    const struct job job = {.options = {.size = 3, .timeout_s = 1}, .run = do_return};
    pid_t *processes = started;
    start_ranks(&job, processes);
    for (int rank = 0; rank < 2; rank++)
        await_end(processes[rank]);
    kill(processes[2], SIGCONT);
    wait_for_ranks(&job, processes, 0);
}

/* Rank 2 stops for less than the time-out. Meanwhile the others die. */
static void do_pause(const struct psring_options *options)
{
    struct psring *world = begin(options), *left;
    MUST(psring_barrier(world) == PSRING_OK);
    if (options->rank < 2) {
        shared->arrived++;
        MUST(until_it_fails(world) != PSRING_OK);
        return;
    }
    wait_for(&shared->arrived, 2);
    raise(SIGSTOP);
    MUST(until_it_fails(world) != PSRING_OK);
    MUST(psring_shrink(world, &left) == PSRING_OK && psring_size(left) == 1);
    MUST(psring_finalize(&left) == PSRING_OK && psring_finalize(&world) == PSRING_OK);
}

Test(shrink, a_short_stop_is_no_silence)
{
    share();
    const struct job job = {.options = {.size = 3, .timeout_s = 20}, .run = do_pause};
    pid_t *processes = started;
    siginfo_t info;
    start_ranks(&job, processes);
    cr_assert_eq(waitid(P_PID, (id_t)processes[2], &info, WSTOPPED), 0);
    for (int rank = 0; rank < 2; rank++) {
        kill(processes[rank], SIGKILL);
        await_end(processes[rank]);
    }
    kill(processes[2], SIGCONT);
    wait_for_ranks(&job, processes, 0x3);
}

/* Two ranks without the other two: half of them, but only one half has rank 0. */
static void do_halves(const struct psring_options *options)
{
    struct psring *world = begin(options), *left;
    MUST(psring_barrier(world) == PSRING_OK);
    if (options->rank >= 2)
        raise(SIGSTOP);
    MUST(until_it_fails(world) != PSRING_OK);
    enum psring_status status = psring_shrink(world, &left);
    if (options->rank < 2) {
        MUST(status == PSRING_OK && psring_size(left) == 2);
        MUST(members_of(left, options->rank) == 3);
        shared->arrived++;
        wait_for(&shared->end, 2);
        MUST(psring_finalize(&left) == PSRING_OK);
    } else {
        MUST(said(status, PSRING_ERROR_TIMEOUT, "found too few ranks"));
        shared->end++;
    }
    MUST(psring_finalize(&world) == PSRING_OK);
}

Test(shrink, only_one_half_continues)
{
    share();
    const struct job job = {.options = {.size = 4, .timeout_s = 1}, .run = do_halves};
    pid_t *processes = started;
    start_ranks(&job, processes);
    wait_for(&shared->arrived, 2);
    kill(processes[2], SIGCONT);
    kill(processes[3], SIGCONT);
    wait_for_ranks(&job, processes, 0);
}

/* -------- a training among deaths --------------------------------------------------------------
 */

enum { WEIGHTS = 20000, STEPS_MOST = 100000 };

static int64_t last_step = STEPS_MOST;
static bool on_host; /* the training ends some steps after a loss */

/* A rank knows the sums over all steps, and who took part in each step. */
struct training {
    int64_t step, weights[WEIGHTS];
    uint8_t members[STEPS_MOST];
};

static int64_t gradient_of(int identity, int64_t step, int64_t i)
{
    return (step + 1) * (identity + 1) * 1000003 + i;
}

/* The ranks may be one step apart. All continue with what a rank that is ahead knows. */
static enum psring_status agree(struct psring *world, struct training *training)
{
    struct {
        int64_t step, rank;
    } all[RANKS_MOST] = {{0}};
    int rank = psring_rank(world), ahead = 0;
    all[rank].step = training->step;
    enum psring_status status = psring_all_gather(world, all, 2, PSRING_INT64);
    for (int r = 0; r < psring_size(world); r++)
        ahead = all[r].step > all[ahead].step ? r : ahead;
    for (int r = 0; status == PSRING_OK && r < psring_size(world); r++)
        MUST(all[ahead].step - all[r].step <= 1);
    if (status != PSRING_OK)
        return status;
    return psring_broadcast(world, training, sizeof *training / sizeof(int32_t), PSRING_INT32,
                            ahead);
}

/* One step. *ends: a rank wants to end. */
static enum psring_status step(struct psring *world, struct training *training, int identity,
                               bool *ends)
{
    static int64_t sum[WEIGHTS + 2];
    for (int64_t i = 0; i < WEIGHTS; i++)
        sum[i] = gradient_of(identity, training->step, i);
    sum[WEIGHTS] = 1 << identity;
    sum[WEIGHTS + 1] = shared->end;
    enum psring_status status = psring_allreduce(world, sum, WEIGHTS + 2, PSRING_INT64, PSRING_SUM);
    if (status != PSRING_OK)
        return status;
    for (int64_t i = 0; i < WEIGHTS; i++)
        training->weights[i] += sum[i];
    training->members[training->step++] = (uint8_t)sum[WEIGHTS];
    *ends = sum[WEIGHTS + 1] > 0 || training->step == last_step;
    shared->step++;
    return PSRING_OK;
}

static void check(const struct training *training, int size)
{
    static int64_t expected[WEIGHTS];
    for (int64_t s = 0; s < training->step; s++) {
        for (int identity = 0; identity < size; identity++) {
            for (int64_t i = 0; training->members[s] >> identity & 1 && i < WEIGHTS; i += 997)
                expected[i] += gradient_of(identity, s, i);
        }
    }
    for (int64_t i = 0; i < WEIGHTS; i += 997)
        MUST(training->weights[i] == expected[i]);
}

static void do_training(const struct psring_options *options)
{
    static struct training training;
    struct psring *world = begin(options);
    enum psring_status status = PSRING_OK;
    int64_t failed_us = 0;
    for (bool ends = false; !ends;) {
        if (status == PSRING_OK)
            status = step(world, &training, options->rank, &ends);
        if (status == PSRING_OK) {
            if (on_host && training.step == 10)
                printf("step 10\n");
            long long took = failed_us ? now_us() - failed_us : 0;
            shared->slowest_us = took > shared->slowest_us ? took : shared->slowest_us;
            failed_us = 0;
            continue;
        }
        struct psring *left;
        failed_us = failed_us ? failed_us : now_us();
        ends = false;
        status = psring_shrink(world, &left);
        if (status == PSRING_ERROR_TRANSPORT && strstr(psring_error(), "without rank")) {
            shared->arrived++;
            _exit(0); /* it was silent, and has returned */
        }
        MUST(status == PSRING_OK);
        MUST(psring_finalize(&world) == PSRING_OK);
        world = left;
        status = agree(world, &training);
        if (status != PSRING_OK)
            continue;
        printf("%d workers continue after step %d\n", psring_size(world), (int)training.step);
        if (on_host)
            last_step = training.step + 200;
    }
    check(&training, options->size);
    (void)psring_finalize(&world);
    shared->arrived++;
}

/* Ends one or two of four ranks at random moments of a training. A stopped one never returns. */
static void trial(unsigned seed)
{
    static const char *const backends[] = {"ring", "rhd"};
    const struct job job = {.options = {.size = 4, .backend = backends[seed % 2], .timeout_s = 1},
                            .run = do_training};
    pid_t *processes = started;
    unsigned gone = 0;
    share();
    srand(seed);
    start_ranks(&job, processes);
    wait_for(&shared->step, 4);
    for (int faults = 1 + rand() % 2; faults > 0; faults--) {
        int rank = rand() % 4, before = 0;
        bool stops = rand() % 4 == 0 && gone == 0;
        usleep((useconds_t)rand() % 20000);
        if (gone >> rank & 1)
            continue;
        kill(processes[rank], stops ? SIGSTOP : SIGKILL);
        gone |= 1u << rank;
        before = shared->step;
        if (stops || rand() % 2) /* otherwise the next one goes while the others shrink */
            wait_for(&shared->step, before + 12);
    }
    wait_for(&shared->step, shared->step + 12);
    shared->end = 1;
    int left = 4 - __builtin_popcount(gone);
    wait_for(&shared->arrived, left);
    for (int rank = 0; rank < 4; rank++) {
        if (gone >> rank & 1)
            kill(processes[rank], SIGKILL);
    }
    wait_for_ranks(&job, processes, gone);
    if (getenv("PSRING_TEST_TRIALS"))
        printf("seed %u: %s, %x gone, %d steps, next step after at most %lld ms\n", seed,
               job.options.backend, gone, shared->step, (long long)shared->slowest_us / 1000);
}

/* One rank of such a training, for a script that has put the ranks on hosts. PSRING_TEST_RANK is
 * such as "2 tcp://10.77.0.1:29500 ring". Does nothing without. */
Test(shrink, a_rank_on_a_host, .timeout = 3600)
{
    char rendezvous[64], backend[8];
    struct psring_options options = {
        .rendezvous = rendezvous, .size = 4, .backend = backend, .timeout_s = 2};
    const char *rank = getenv("PSRING_TEST_RANK");
    if (!rank)
        return;
    cr_assert(sscanf(rank, "%d %63s %7s", &options.rank, rendezvous, backend) == 3);
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    share();
    on_host = true;
    do_training(&options);
}

/* Sums are exact: the weights are those of the ranks that took part in each step. With
 * PSRING_TEST_TRIALS=N it makes N trials, and prints a line for each. */
Test(shrink, a_training_survives, .timeout = 3600)
{
    const char *trials = getenv("PSRING_TEST_TRIALS");
    for (unsigned seed = 0; seed < (trials ? strtoul(trials, NULL, 10) : 8); seed++)
        trial(seed);
}
