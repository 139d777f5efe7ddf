/*
 * psring_homework: judges an all-reduce that a student wrote (homework.c), and times it.
 *
 *     psring_homework check SOLUTION.so            prints the verdict
 *     psring_homework check SOLUTION.so --log      prints what a wrong solution printed, too
 *     psring_homework bench SOLUTION.so OPTION...  psring bench, with --backend homework
 *
 * The exit code is 0 if the solution is right, 1 if it is wrong, 2 after wrong usage, 3 if the
 * judge cannot tell, because it ran out of time or started no process.
 *
 * For each number of workers the judge starts one process. Its workers are threads that meet by
 * rendezvous. witness.c watches their messages. Here, after each all-reduce, one worker compares
 * all results:
 *
 *   who    Worker r has 5^r everywhere. The digits of a result in base 5 tell how often each
 *          worker's value is in it.
 *   where  The values depend on the index.
 *   rough  The sums are inexact, so all workers must add in one order, the same in every run.
 *
 * The vector lies between pages that cannot be read or written. A limit on time ends an endless
 * loop. No process remains: the judge ends all that a trial started, also when it is interrupted
 * (confine.c).
 */
#include "experiments/lessons/judge.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/text.h"
#include "common/comm/backend.h"
#include "common/net/address.h"
#include "common/net/control.h"
#include "experiments/bench/bench.h"
#include "experiments/config/backends.h"
#include "experiments/config/config.h"

/* The plainest cases come first. */
static const int worker_numbers[] = {4, 2, 8, 3, 5, 6, 7};

enum {
    NUMBERS = sizeof worker_numbers / sizeof *worker_numbers,
    POWERS_OF_TWO = 3, /* the first three numbers */
    WORKERS_MOST = 8,
    LENGTHS = 8,
    SHOWN_LENGTH = 1, /* 1001 elements: its bytes are in the table */
    COUNT_MOST = 4099,
    EDGE_BYTES = 65536, /* witness.c has it as NEAR_BYTES */
    ROOM_BYTES = 65536,
    STACK_MB = 8,
    PROCESS_S = 20,    /* from its start to its end */
    CHECK_S = 38,      /* all trials together */
    TIMEOUT_MS = 60000 /* of the transport: the other limits come first */
};

/* -------- a trial: one number of workers ------------------------------------------------------ */

enum run { WHO, WHERE, ROUGH, ROUGH_AGAIN, RUNS };

struct contender {
    struct trial *trial;
    int index;
    pthread_t thread;
    char *room;              /* (ROOM_BYTES) for vectors */
    float *data;             /* the vector of this run */
    float first[COUNT_MOST]; /* the result of ROUGH */
};

struct trial {
    const struct backend *solution;
    int verdicts; /* the pipe to the judge */
    int workers, listening;
    char address[ADDRESS_URI_BYTES];
    size_t lengths[LENGTHS];
    pthread_barrier_t barrier;
    struct contender contenders[WORKERS_MOST];
};

static double value_of(enum run run, int worker, size_t i)
{
    if (run == WHO)
        return pow(5, worker);
    if (run == WHERE)
        return (double)(i + 1) * (worker + 1);
    return (double)(1.0f / (float)(1 + (i * 31 + (size_t)worker * 17) % 1009));
}

static double sum_of(const struct trial *trial, enum run run, size_t i)
{
    double sum = 0;
    for (int w = 0; w < trial->workers; w++)
        sum += value_of(run, w, i);
    return sum;
}

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-5 * fabs(b);
}

/* -------- what is wrong with a sum ------------------------------------------------------------ */

/* Counts how often each worker's value is in a sum. Returns false if no counts give this sum. */
static bool count_values(double sum, int workers, int often[WORKERS_MOST])
{
    double whole = round(sum);
    if (!(sum > 0.5 && whole < pow(5, workers) && fabs(sum - whole) <= 1e-3 + 3e-7 * sum))
        return false;
    for (long left = (long)whole, w = 0; w < workers; w++, left /= 5)
        often[w] = (int)(left % 5);
    return true;
}

static bool is_once_at_most(const int often[], int workers)
{
    int w = 0;
    while (w < workers && often[w] <= 1)
        w++;
    return w == workers;
}

static unsigned mask_of(const int often[], int workers, int times)
{
    unsigned mask = 0;
    for (int w = 0; w < workers; w++)
        mask |= (unsigned)(often[w] == times) << w;
    return mask;
}

/* Adds what is wrong with elements of the run WHO, such as "lack the value of worker 2". `one`: it
 * is a single element. */
static void add_fault(struct line *line, const struct trial *trial, int worker, double result,
                      bool one)
{
    static const char *const times[] = {"", "", "twice", "three times", "four times"};
    const char *are = one ? "is" : "are", *have = one ? "has" : "have", *joint = "";
    int workers = trial->workers, often[WORKERS_MOST], undivided[WORKERS_MOST];
    double sum = sum_of(trial, WHO, 0);
    bool divided = count_values(result * workers, workers, often);
    bool whole = count_values(result, workers, undivided) && is_once_at_most(undivided, workers);
    if (result == value_of(WHO, worker, 0)) {
        line_add(line, "still %s the worker's own value alone", have);
        return;
    }
    if (is_near(result, sum) || is_near(result * workers * workers, sum)) {
        line_add(line, "%s %sdivided by %d%s", are, is_near(result, sum) ? "not " : "", workers,
                 is_near(result, sum) ? "" : " twice");
        return;
    }
    if (!divided && !whole) {
        line_add(line, "%s %g, which is not a sum of the workers' values", are, result);
        return;
    }
    if (whole && !(divided && is_once_at_most(often, workers)))
        memcpy(often, undivided, sizeof often);
    unsigned lacking = mask_of(often, workers, 0);
    if (lacking) {
        line_add(line, "lack%s the value%s of %s", one ? "s" : "",
                 __builtin_popcount(lacking) == 1 ? "" : "s", WORKERS(lacking));
        joint = " and ";
    }
    for (int n = 2; n <= 4; n++) {
        unsigned mask = mask_of(often, workers, n);
        if (mask)
            line_add(line, "%s%s the value%s of %s %s", joint, have,
                     __builtin_popcount(mask) == 1 ? "" : "s", WORKERS(mask), times[n]);
        joint = mask ? " and " : joint;
    }
}

struct tally {
    size_t right, unchanged, undivided, twice; /* elements of all workers */
    size_t covered;                            /* elements that are right at some worker */
    size_t alone;                              /* elements that have one worker's value alone */
    int worker;                                /* the first that is wrong, */
    struct chunk part;                         /* and its elements */
};

static bool is_one_value(const struct trial *trial, double result)
{
    for (int w = 0; w < trial->workers; w++) {
        double value = value_of(WHO, w, 0);
        if (is_near(result, value) || is_near(result * trial->workers, value))
            return true;
    }
    return false;
}

static struct tally tally_of(const struct trial *trial, size_t count)
{
    struct tally tally = {.worker = -1};
    int workers = trial->workers;
    double sum = sum_of(trial, WHO, 0);
    for (size_t i = 0; i < count; i++) {
        bool covered = false;
        for (int w = 0; w < workers; w++) {
            double result = (double)trial->contenders[w].data[i];
            bool right = is_near(result * workers, sum);
            tally.right += right;
            tally.unchanged += result == value_of(WHO, w, 0);
            tally.undivided += is_near(result, sum);
            tally.twice += is_near(result * workers * workers, sum);
            tally.alone += is_one_value(trial, result);
            covered = covered || right || is_near(result, sum);
        }
        tally.covered += covered;
    }
    for (int w = 0; w < workers && tally.worker < 0; w++) {
        const float *data = trial->contenders[w].data;
        size_t i = 0;
        while (i < count && is_near((double)data[i] * workers, sum))
            i++;
        if (i == count)
            continue;
        tally.worker = w;
        tally.part.offset = i;
        /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): compares bits */
        while (i < count && memcmp(&data[i], &data[tally.part.offset], sizeof *data) == 0)
            i++;
        tally.part.count = i - tally.part.offset;
    }
    return tally;
}

/* Adds "each worker sent 3 chunks instead of 6" and returns true, if the workers sent less than
 * they must. */
static bool add_shortage(struct line *line, const struct trial *trial, size_t count)
{
    size_t workers = (size_t)trial->workers, must = 2 * (workers - 1) * count, all = 0;
    bool alike = count > 0 && count % workers == 0;
    for (int w = 0; w < trial->workers; w++) {
        size_t sent = witness_elements(w);
        all += sent;
        alike = alike && sent == witness_elements(0) && sent % (count / workers) == 0;
    }
    if (all >= must)
        return false;
    if (alike)
        line_add(line, "each worker sent %zu chunk%s instead of %zu",
                 witness_elements(0) / (count / workers),
                 witness_elements(0) == count / workers ? "" : "s", 2 * (workers - 1));
    else
        line_add(line, "the workers sent %s elements together instead of %s", COMMAS(all),
                 COMMAS(must));
    return true;
}

static void check_who(const struct trial *trial, size_t count)
{
    char text[600];
    struct line line = line_in(text, sizeof text);
    const struct tally tally = tally_of(trial, count);
    size_t all = count * (size_t)trial->workers, sent = 0;
    for (int w = 0; w < trial->workers; w++)
        sent += witness_elements(w);
    bool shortage = add_shortage(&line, trial, count);
    if (!shortage || tally.right == all)
        witness_check_races();
    if (tally.right == all)
        return;
    if (tally.unchanged == all && sent == 0)
        conclude("no worker sent anything, and all vectors are unchanged: they were never "
                 "averaged");
    if (tally.undivided == all)
        conclude("the sum is right, but it is not divided by %d", trial->workers);
    if (tally.twice == all)
        conclude("the sum is divided by %d twice", trial->workers);
    if (shortage) {
        bool half = sent == (size_t)(trial->workers - 1) * count;
        if (half && tally.covered == count)
            conclude("%s: the all-gather is missing", text);
        if (half && tally.covered == 0 && tally.alone == all)
            conclude("%s: the reduce-scatter is missing", text);
        line_add(&line, ": ");
    }
    line_add(&line, "%s of worker %d ", PART(tally.part), tally.worker);
    add_fault(&line, trial, tally.worker,
              (double)trial->contenders[tally.worker].data[tally.part.offset],
              tally.part.count == 1);
    conclude("%s", text);
}

/* -------- other comparisons ------------------------------------------------------------------- */

/* The average of element i is (i + 1) (W + 1) / 2 in WHERE, so a result tells its index. */
static void check_values(const struct trial *trial, enum run run, size_t count)
{
    for (int w = 0; w < trial->workers; w++) {
        for (size_t i = 0; i < count; i++) {
            double expected = sum_of(trial, run, i) / trial->workers;
            double result = (double)trial->contenders[w].data[i];
            double at = result * 2 / (trial->workers + 1) - 1;
            if (is_near(result, expected))
                continue;
            if (run == WHERE && is_near(at, round(at)) && at >= 0 && at < (double)count)
                conclude("element %zu of worker %d has the average of element %.0f", i, w,
                         round(at));
            conclude("element %zu of worker %d is %g instead of %g, although sums of equal "
                     "elements were right",
                     i, w, result, expected);
        }
    }
}

static void check_same(const struct trial *trial, enum run run, size_t count)
{
    const float *first = trial->contenders[0].data;
    for (int w = 0; w < trial->workers; w++) {
        const struct contender *one = &trial->contenders[w];
        for (size_t i = 0; i < count; i++) {
            /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): compares bits */
            if (memcmp(&one->data[i], &first[i], sizeof *first) != 0)
                conclude("element %zu is %.9g at worker 0 and %.9g at worker %d: all workers must "
                         "have the same bits",
                         i, (double)first[i], (double)one->data[i], w);
            /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): compares bits */
            if (run == ROUGH_AGAIN && memcmp(&one->data[i], &one->first[i], sizeof *first) != 0)
                conclude("element %zu of worker %d is %.9g in one run and %.9g in the next: the "
                         "order of addition changes",
                         i, w, (double)one->first[i], (double)one->data[i]);
        }
    }
}

/* All workers together must send exactly 2 (W-1) M bytes. The chunks of the busiest worker may be
 * up to two elements longer than count / W. */
static void check_bytes(const struct trial *trial, size_t count)
{
    size_t workers = (size_t)trial->workers, all = 0, size = sizeof(float);
    size_t must = 2 * (workers - 1) * count, most = 2 * (workers - 1) * (count / workers + 2);
    int busiest = 0;
    bool alike = true;
    for (int w = 0; w < trial->workers; w++) {
        all += witness_elements(w);
        alike = alike && witness_elements(w) == witness_elements(0);
        busiest = witness_elements(w) > witness_elements(busiest) ? w : busiest;
    }
    size_t sent = witness_elements(busiest) * size;
    if (all > must && alike && must % workers == 0)
        conclude("each worker sent %s bytes instead of %s%s", COMMAS(sent),
                 COMMAS(must / workers * size),
                 sent == (workers - 1) * count * size ? ": everything goes to everyone" : "");
    if (all != must)
        conclude("the workers sent %s bytes together instead of %s%s", COMMAS(all * size),
                 COMMAS(must * size),
                 all > must ? "" : ": some values took another way than transport_send");
    if (witness_elements(busiest) > most)
        conclude("worker %d sent %s bytes instead of %s: its link is the bottleneck", busiest,
                 COMMAS(sent), COMMAS(must * size / workers));
}

/* -------- the workers' threads ---------------------------------------------------------------- */

static void report_passed(const struct trial *trial)
{
    size_t least = witness_elements(0), most = least;
    for (int w = 0; w < trial->workers; w++) {
        least = size_smaller(least, witness_elements(w));
        most = size_larger(most, witness_elements(w));
    }
    (void)dprintf(trial->verdicts, "row %d %zu %zu %d\n", trial->workers, least * sizeof(float),
                  most * sizeof(float), witness_steps());
}

/* Compares all results of one run. Worker 0 does this while the other workers wait. */
static void judge_run(const struct trial *trial, int length, enum run run)
{
    size_t count = trial->lengths[length];
    if (run == WHO)
        check_who(trial, count);
    witness_check_races();
    if (run != WHO)
        check_values(trial, run, count);
    check_same(trial, run, count);
    witness_check_left();
    check_bytes(trial, count);
    if (run == ROUGH_AGAIN && length == SHOWN_LENGTH)
        report_passed(trial);
}

/* Makes one all-reduce. Its vector is at the beginning or at the end of its memory, next to pages
 * that cannot be read or written. */
static void run_once(struct contender *self, struct comm *comm, int length, enum run run)
{
    struct trial *trial = self->trial;
    size_t count = trial->lengths[length];
    bool at_start = run == WHERE || run == ROUGH_AGAIN;
    self->data = (void *)(self->room + (at_start ? 0 : ROOM_BYTES - count * sizeof(float)));
    for (size_t i = 0; i < count; i++)
        self->data[i] = (float)value_of(run, self->index, i);
    witness_begin(self->data, count);
    pthread_barrier_wait(&trial->barrier);
    enum status status = comm_start(comm, (size_t)length, self->data);
    if (status == STATUS_OK)
        status = comm_wait(comm, (size_t)length);
    if (status != STATUS_OK)
        conclude("allreduce of worker %d returned an error: %s", self->index, status_name(status));
    witness_return();
    pthread_barrier_wait(&trial->barrier);
    if (self->index == 0)
        judge_run(trial, length, run);
    pthread_barrier_wait(&trial->barrier);
    if (run == ROUGH)
        memcpy(self->first, self->data, count * sizeof *self->first);
}

static void need(enum status status, const char *call, int worker)
{
    if (status != STATUS_OK)
        conclude("%s of worker %d failed: %s", call, worker, status_name(status));
}

/* Gives signal handlers another stack, because a crash may be an overflow of the thread's stack.
 * Returns its memory, for close_signal_stack. `before` is the stack that they had. */
static void *open_signal_stack(stack_t *before)
{
    enum { STACK_BYTES = 65536 };
    stack_t stack = {.ss_sp = malloc(STACK_BYTES), .ss_size = STACK_BYTES};
    CHECK(stack.ss_sp && sigaltstack(&stack, before) == 0);
    return stack.ss_sp;
}

/* AddressSanitizer unmaps a thread's signal stack at its end, so this must be its own again. */
static void close_signal_stack(void *memory, const stack_t *before)
{
    CHECK(sigaltstack(before, NULL) == 0);
    free(memory);
}

static void on_thread_end(void *argument)
{
    conclude("worker %d ended its thread", *(const int *)argument);
}

static void *run_contender(void *argument)
{
    struct contender *self = argument;
    struct trial *trial = self->trial;
    struct world *world = NULL;
    struct comm *comm = NULL;
    const struct world_options options = {.startup_timeout_ms = TIMEOUT_MS,
                                          .rendezvous = trial->address,
                                          .rank = self->index,
                                          .size = trial->workers,
                                          .listening = self->index == 0 ? trial->listening : 0};
    const struct comm_options comm_options = {
        .transport = TRANSPORT_TCP, .bucket_counts_max = COUNT_MOST, .timeout_ms = TIMEOUT_MS};
    const struct comm_layout layout = {
        .counts = trial->lengths, .buckets = LENGTHS, .scale = 1.0f / (float)trial->workers};
    stack_t stack_before;
    void *stack = open_signal_stack(&stack_before);
    pthread_cleanup_push(on_thread_end, &self->index);
    witness_worker(self->index);
    need(world_open(&world, NULL, NULL, &options), "the rendezvous", self->index);
    need(comm_open(&comm, world, trial->solution, &comm_options), "open", self->index);
    need(comm_plan(comm, &layout), "plan", self->index);
    for (int length = 0; length < LENGTHS; length++) {
        for (enum run run = WHO; run < RUNS; run++)
            run_once(self, comm, length, run);
    }
    need(comm_finish(comm), "finish", self->index);
    comm_close(&comm);
    world_close(&world);
    pthread_cleanup_pop(0);
    close_signal_stack(stack, &stack_before);
    return NULL;
}

/* -------- the process of a trial -------------------------------------------------------------- */

/* Reports a verdict in the form that the judge reads, and ends the process. */
#define REFUSE(verdicts, ...) ((void)dprintf((verdicts), "wrong " __VA_ARGS__), _exit(EXIT_FAILURE))

static const struct backend *load(const char *path, int verdicts)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *error = library ? "" : dlerror();
    const char *symbol = strstr(error, "undefined symbol: ");
    if (symbol)
        REFUSE(verdicts, "It calls %s, which neither it nor psring has\n",
               symbol + strlen("undefined symbol: "));
    if (!library)
        REFUSE(verdicts, "It cannot be loaded: %s\n", error);
    const struct backend *solution = dlsym(library, "backend_homework");
    if (!solution)
        REFUSE(verdicts, "It has no `const struct backend backend_homework`\n");
    if (!solution->open || !solution->allreduce || !solution->uses_transport)
        REFUSE(verdicts, "backend_homework lacks open, allreduce or uses_transport\n");
    /* cppcheck-suppress resourceLeak ; the solution stays loaded until the process ends */
    return solution;
}

static _Noreturn void run_trial(const char *path, int workers, int verdicts, int log)
{
    static struct trial trial;
    union address at = address_loopback();
    pthread_attr_t attributes;
    char *map;
    const size_t w = (size_t)workers;
    trial = (struct trial){.verdicts = verdicts,
                           .workers = workers,
                           .lengths = {840, 1001, 4099, w + 1, w, w - 1, 1, 0}};
    confine(log, PROCESS_S);
    witness_open(workers, verdicts);
    trial.solution = load(path, verdicts);
    (void)atexit(witness_exit);
    if (stream_listen(&at, &trial.listening) != 0 || address_of_socket(trial.listening, &at) != 0)
        REFUSE(verdicts, "The judge cannot listen at 127.0.0.1\n");
    address_uri(&at, trial.address);
    pthread_barrier_init(&trial.barrier, NULL, (unsigned)workers);
    for (int i = 0; i < workers; i++) {
        struct contender *one = &trial.contenders[i];
        map =
            /* cppcheck-suppress invalidFunctionArg ; anonymous memory has no file */
            mmap(NULL, 2 * EDGE_BYTES + ROOM_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(map != MAP_FAILED &&
              mprotect(map + EDGE_BYTES, ROOM_BYTES, PROT_READ | PROT_WRITE) == 0);
        one->trial = &trial;
        one->index = i;
        one->room = map + EDGE_BYTES;
    }
    CHECK(pthread_attr_init(&attributes) == 0 && /* the user's limit may be more than MEMORY_MB */
          pthread_attr_setstacksize(&attributes, (size_t)STACK_MB << 20) == 0);
    for (int i = 0; i < workers; i++)
        CHECK(pthread_create(&trial.contenders[i].thread, &attributes, run_contender,
                             &trial.contenders[i]) == 0);
    for (int i = 0; i < workers; i++)
        pthread_join(trial.contenders[i].thread, NULL);
    (void)dprintf(verdicts, "right\n");
    _exit(EXIT_SUCCESS);
}

/* -------- the judge --------------------------------------------------------------------------- */

static volatile sig_atomic_t interrupted; /* by this signal */

static void on_interrupt(int number)
{
    interrupted = number;
}

/* A sentence about a mistake may end like the line of a right trial. */
static bool is_right(const char *text)
{
    return !strstr(text, "wrong ") && strstr(text, "right\n");
}

/* Reads the report of the trial until its process ends, a verdict comes, the time is over, or a
 * signal interrupts the judge. */
static void hear(int verdicts, pid_t process, int64_t deadline_ns, char *text, size_t size)
{
    enum { LOOK_MS = 50 };
    size_t used = 0;
    text[0] = '\0';
    for (bool ended = false; !interrupted && used + 1 < size && clock_now_ns() < deadline_ns;) {
        struct pollfd ready = {.fd = verdicts, .events = POLLIN};
        siginfo_t how = {0};
        if (poll(&ready, 1, ended ? 0 : LOOK_MS) <= 0) {
            if (ended)
                return; /* one of its children may still hold the pipe open */
            (void)waitid(P_PID, (id_t)process, &how, WEXITED | WNOHANG | WNOWAIT);
            ended = how.si_pid == process;
            continue;
        }
        ssize_t got = read(verdicts, text + used, size - 1 - used);
        if (got <= 0)
            return;
        used += (size_t)got;
        text[used] = '\0';
        if (strstr(text, "wrong ") || is_right(text))
            return;
    }
}

/* How a trial ended, besides the status of waitpid. */
enum {
    NOT_ENDED = -1,
    NOT_STARTED = -2,
    OUT_OF_TIME = -3, /* of all trials, before the trial's own limit */
    NOT_KILLED = -4,  /* some of its processes still run */
    CLOSED = -5       /* it closed the pipe and did not end */
};

/* The report of one trial. Returns how it ended. `left` is the number of processes that it left. */
static int try_number(const char *path, int workers, int log, int64_t deadline_ns, char *text,
                      size_t size, int *left)
{
    int pipes[2], how = NOT_STARTED;
    int64_t own_limit_ns = clock_now_ns() + (PROCESS_S + 1) * NS_PER_S;
    text[0] = '\0';
    if (pipe(pipes) != 0)
        return how;
    pid_t judge = getpid(), process = fork();
    if (process == 0) {
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != judge)
            _exit(EXIT_FAILURE);
        close(pipes[0]);
        run_trial(path, workers, pipes[1], log);
    }
    close(pipes[1]);
    if (process > 0) {
        setpgid(process, process);
        hear(pipes[0], process, deadline_ns, text, size);
        bool ended = false, said = strstr(text, "wrong ") || is_right(text);
        bool over = clock_now_ns() >= deadline_ns;
        bool late = !said && over && deadline_ns < own_limit_ns;
        for (int i = 0; i < 100 && !ended && !said && !late && !interrupted; i++) {
            clock_sleep_until_ns(clock_now_ns() + 10 * NS_PER_MS); /* the pipe closes first */
            ended = waitpid(process, &how, WNOHANG) == process;
        }
        if (!ended) {
            kill(-process, SIGKILL);
            kill(process, SIGKILL); /* it may have left its group */
            waitpid(process, NULL, 0);
            how = late ? OUT_OF_TIME : over || said ? NOT_ENDED : CLOSED;
        }
        *left = end_processes(process);
        how = *left < 0 ? NOT_KILLED : how;
    }
    close(pipes[0]);
    return how;
}

static void show_log(int log)
{
    char text[1001];
    const off_t most = sizeof text - 1;
    off_t end = lseek(log, 0, SEEK_END), from = end > most ? end - most : 0;
    ssize_t length = pread(log, text, sizeof text - 1, from);
    if (length > 0)
        printf("The solution printed%s:\n%.*s\n", from > 0 ? ", in the end" : "", (int)length,
               text);
}

/* The verdict on a trial that was not right. Returns the judge's exit code. */
static int print_wrong(const char *text, int how, int left, int number)
{
    const char *wrong = strstr(text, "wrong ");
    int workers = worker_numbers[number];
    if (how == NOT_STARTED || how == OUT_OF_TIME) {
        if (how == NOT_STARTED)
            printf("The judge cannot start a process. Check again later.\n");
        else
            printf("The judge ran out of time: all trials together did not end within %d s. Check "
                   "again on a quiet machine.\n",
                   CHECK_S);
        return 3;
    }
    if (how == NOT_KILLED)
        printf("Wrong: With %d workers, the solution starts processes faster than the judge ends "
               "them, and some remain.\n",
               workers);
    else if (wrong)
        printf("Wrong: %.*s.\n", (int)strcspn(wrong + 6, "\n"), wrong + 6);
    else if (how == NOT_ENDED)
        printf("Wrong: With %d workers, the all-reduce did not end within the limit of time.\n",
               workers);
    else if (how == CLOSED || (WIFEXITED(how) && WEXITSTATUS(how) == WITNESS_MUTE))
        printf("Wrong: With %d workers, the solution closed descriptors that it did not open.\n",
               workers);
    else if (WIFSIGNALED(how))
        printf("Wrong: With %d workers, the solution crashed: %s.\n", workers,
               strsignal(WTERMSIG(how)));
    else
        printf("Wrong: With %d workers, the solution ended the process with exit code %d.\n",
               workers, WEXITSTATUS(how));
    if (left > 0)
        printf("The solution started processes and left %d. The judge has ended %s.\n", left,
               left == 1 ? "it" : "them");
    if (number == POWERS_OF_TWO)
        printf("With 2, 4 and 8 workers it is right: does it need a power of two?\n");
    return 1;
}

static void print_table(char rows[NUMBERS][64])
{
    printf("Right: every element, for 2 to 8 workers and %d lengths each.\n\n"
           "            a worker sends, bytes of 4,004       steps one after the other\n"
           "  workers      least       most      bound       this    ring   least\n",
           LENGTHS);
    for (int workers = 2; workers <= WORKERS_MOST; workers++) {
        for (int i = 0; i < NUMBERS; i++) {
            size_t least, most;
            int steps;
            if (worker_numbers[i] == workers &&
                sscanf(rows[i], "row %*d %zu %zu %d", &least, &most, &steps) == 3)
                printf("  %7d %10s %10s %10.1f %10d %7d %7d%s\n", workers, COMMAS(least),
                       COMMAS(most), 2.0 * (workers - 1) / workers * 4004, steps, 2 * (workers - 1),
                       workers == 2 ? 1 : 2,
                       steps > 2 * (workers - 1) ? "  more steps than the ring" : "");
        }
    }
}

static int check(const char *path, bool shows_log)
{
    static char rows[NUMBERS][64];
    int64_t deadline_ns = clock_now_ns() + CHECK_S * NS_PER_S;
    int log = memfd_create("log", MFD_CLOEXEC);
    if (log < 0)
        return print_wrong("", NOT_STARTED, 0, 0);
    const struct sigaction action = {.sa_handler = on_interrupt};
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGHUP, &action, NULL);
    (void)sigaction(SIGQUIT, &action, NULL);
    for (int i = 0; i < NUMBERS; i++) {
        char text[2048];
        int left = 0;
        (void)ftruncate(log, 0);
        (void)lseek(log, 0, SEEK_SET);
        int how = try_number(path, worker_numbers[i], log, deadline_ns, text, sizeof text, &left);
        if (interrupted)
            return 128 + interrupted;
        if (how == NOT_KILLED || !is_right(text)) {
            int code = print_wrong(text, how, left, i);
            if (shows_log)
                show_log(log);
            return code;
        }
        snprintf(rows[i], sizeof rows[i], "%.*s", (int)strcspn(text, "\n"), text);
    }
    print_table(rows);
    return 0;
}

/* -------- bench ------------------------------------------------------------------------------- */

static double bound_time_s(const struct cost_shape *shape, const struct cost_link *link)
{
    return cost_bound_s(shape->topology.workers, shape->count, link->bytes_per_s);
}

/* Theory is the bound, if the solution brings no formula. `check` compares the bytes. */
static int bench(const char *path, int argc, char **argv)
{
    static struct backend solution;
    static const struct cost_formula bound = {.time_s = bound_time_s};
    struct config config = {0};
    struct world *world = NULL;
    bool helped = false;
    enum status status = STATUS_OK;
    solution = *load(path, STDERR_FILENO);
    solution.name = "homework";
    solution.counts_bytes = solution.counts_bytes && solution.cost;
    if (!solution.cost)
        solution.cost = &bound;
    backend_add(&solution);
    TRY(config_parse(CONFIG_BENCH, argc, argv, &config, &helped));
    if (helped)
        return 0;
    TRY(world_open(&world, &argc, &argv, NULL));
    TRY(config_resolve(&config, world));
    TRY(bench_run(&config, world));
out:
    if (status != STATUS_OK && world && world->size > 1)
        world_abort(world, 1);
    world_close(&world);
    config_free(&config);
    return status == STATUS_OK ? 0 : status == STATUS_USAGE ? 2 : 1;
}

int main(int argc, char **argv)
{
    bool shows_log = argc == 4 && strcmp(argv[3], "--log") == 0;
    if (argc >= 3 && strcmp(argv[1], "check") == 0 && (argc == 3 || shows_log))
        return check(argv[2], shows_log);
    if (argc >= 3 && strcmp(argv[1], "bench") == 0)
        return bench(argv[2], argc - 2, argv + 2);
    fprintf(stderr, "usage: %s check SOLUTION.so [--log] | bench SOLUTION.so OPTION...\n", argv[0]);
    return 2;
}
