/*
 * bench's measurement under mpirun, with backends that misbehave on purpose. bench counts each
 * wrong element and reports the slowest worker's time. All ranks agree on the number of iterations.
 * The processor times of all ranks are added.
 */
#include "experiments/bench/measure.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/util.h"
#include "experiments/bench/probe.h"
#include "ps/ps.h"

enum { ITERS = 3, WARMUP = 2, OPERATIONS = ITERS + WARMUP, LATE_MS = 30 };

static struct world *world;

/* -------- backends that add correctly, but ... ------------------------------------------------ */

static enum status plain_open(void **self, const struct backend_env *site)
{
    *self = without_const(site); /* only the site, which is only read */
    return STATUS_OK;
}

static void plain_close(void *self)
{
    (void)self;
}

static enum status add_up(const struct backend_env *site, float *data)
{
    return world_allreduce_float(site->world, site->group, data, site->layout->counts[0]);
}

static bool is_last(const struct backend_env *site)
{
    return site->index == site->workers - 1;
}

/* ... in each operation the last element of the last worker is wrong. */
static enum status off_by_one(void *self, size_t bucket, void *data)
{
    const struct backend_env *site = self;
    enum status status = add_up(site, data);
    if (is_last(site))
        ((float *)data)[site->layout->counts[bucket] - 1] += 1;
    return status;
}

/* ... the last worker is late. */
static enum status one_late(void *self, size_t bucket, void *data)
{
    const struct backend_env *site = self;
    (void)bucket;
    enum status status = add_up(site, data);
    if (is_last(site))
        clock_sleep_until_ns(clock_now_ns() + LATE_MS * NS_PER_MS);
    return status;
}

/* ... record the thread that adds. */
static pthread_t adding_thread;

static enum status note_thread(void *self, size_t bucket, void *data)
{
    (void)bucket;
    adding_thread = pthread_self();
    return add_up(self, data);
}

/* ... use processor time. Worker i uses (1 + i) BURN_MS in each operation. A server uses BURN_MS
 * for each operation, all at the start. */
enum { BURN_MS = 2 };

static double cpu_s(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / (double)NS_PER_S;
}

static void burn(double times)
{
    double end = cpu_s(CLOCK_THREAD_CPUTIME_ID) + times * BURN_MS / 1000;
    while (cpu_s(CLOCK_THREAD_CPUTIME_ID) < end) {
    }
}

static enum status burn_in_worker(void *self, size_t bucket, void *data)
{
    const struct backend_env *site = self;
    (void)bucket;
    burn(1 + site->index);
    return add_up(site, data);
}

static enum status burn_in_server(void *self, bool *paused)
{
    (void)self;
    *paused = false;
    burn(OPERATIONS);
    return STATUS_OK;
}

static enum status nothing(void *self, size_t bucket, void *data)
{
    (void)self;
    (void)bucket;
    (void)data;
    return STATUS_OK;
}

static const struct backend backend_burn = {.name = "burn",
                                            .open = plain_open,
                                            .allreduce = burn_in_worker,
                                            .close = plain_close,
                                            .uses_servers = true,
                                            .server_open = plain_open,
                                            .serve = burn_in_server,
                                            .server_close = plain_close};
static const struct backend backend_nothing = {
    .name = "nothing", .open = plain_open, .allreduce = nothing, .close = plain_close};
static const struct backend backend_note_thread = {
    .name = "note thread", .open = plain_open, .allreduce = note_thread, .close = plain_close};
static const struct backend backend_off_by_one = {
    .name = "off by one", .open = plain_open, .allreduce = off_by_one, .close = plain_close};
static const struct backend backend_one_late = {
    .name = "one late", .open = plain_open, .allreduce = one_late, .close = plain_close};

/* -------- tests ------------------------------------------------------------------------------- */

enum { COUNT = 1000 };

static struct bench_connection connection_for(const struct backend *backend,
                                              struct comm_options options, size_t count)
{
    struct bench_connection connection;
    options.timeout_ms = 20000;
    cr_assert_eq(bench_connect(&connection, world, backend, &options, count), STATUS_OK);
    return connection;
}

static struct bench_connection connection_of(const struct backend *backend,
                                             struct comm_options options)
{
    return connection_for(backend, options, COUNT);
}

static struct bench_plan plan_of(size_t count)
{
    return (struct bench_plan){.count = count, .iters = ITERS, .warmup = WARMUP};
}

static void check_wrong_elements(void)
{
    struct bench_measurement measured;
    struct bench_connection connection =
        connection_of(&backend_off_by_one, (struct comm_options){0});
    struct bench_plan plan = plan_of(COUNT);
    cr_assert_eq(bench_measure(&measured, &connection, &plan), STATUS_OK);
    cr_assert_eq(measured.wrong, OPERATIONS); /* on every rank, not only on the last worker */
    bench_measurement_free(&measured);
    bench_disconnect(&connection);
}

static void check_slowest(void)
{
    struct bench_measurement measured;
    struct bench_connection connection = connection_of(&backend_one_late, (struct comm_options){0});
    struct bench_plan plan = plan_of(10);
    cr_assert_eq(bench_measure(&measured, &connection, &plan), STATUS_OK);
    cr_assert_eq(measured.wrong, 0);
    for (int i = 0; i < ITERS; i++)
        cr_assert_geq(measured.times_us[i], LATE_MS * 1000);
    bench_measurement_free(&measured);
    bench_disconnect(&connection);
}

/* One worker is late: its times decide the number of iterations of all. */
static void check_automatic(void)
{
    struct bench_measurement measured;
    struct bench_connection connection = connection_of(&backend_one_late, (struct comm_options){0});
    struct bench_plan plan = plan_of(10);
    plan.iters = 0;
    cr_assert_eq(bench_measure(&measured, &connection, &plan), STATUS_OK);
    cr_assert_leq(measured.iters, 20);
    cr_assert_geq(measured.iters, BENCH_ITERS_LEAST);
    for (int64_t i = 0; i < measured.iters; i++)
        cr_assert_geq(measured.times_us[i], LATE_MS * 1000);
    cr_assert_leq(measured.cpu_busy, 1);
    cr_assert_leq(measured.cpu_other, 1);
    int64_t iters = measured.iters;
    bench_measurement_free(&measured);
    bench_disconnect(&connection);

    double most = (double)iters, least = -(double)iters;
    cr_assert_eq(world_max(world, NULL, &most, 1), STATUS_OK);
    cr_assert_eq(world_max(world, NULL, &least, 1), STATUS_OK);
    cr_assert_eq(most, -least);
}

/* All workers agree on the count, although servers do not know it. */
static void check_automatic_servers(void)
{
    for (enum placement p = PLACEMENT_DEDICATED; p <= PLACEMENT_COLOCATED; p++) {
        struct bench_measurement measured;
        struct bench_plan plan = plan_of(COUNT);
        plan.iters = 0;
        if (p == PLACEMENT_DEDICATED && world->size == 1)
            continue;
        struct bench_connection connection =
            connection_of(&backend_ps, (struct comm_options){.servers = 1, .placement = p});
        cr_assert_eq(bench_measure(&measured, &connection, &plan), STATUS_OK);
        cr_assert_geq(measured.iters, BENCH_ITERS_LEAST);
        cr_assert_eq(measured.wrong, 0);
        cr_assert_gt(measured.cpu_s, 0);
        bench_measurement_free(&measured);
        bench_disconnect(&connection);
    }
}

/* Returns the processor time that bench_measure reports for operations. *all: the processor time of
 * all processes during bench_measure. In seconds. */
static double measure_cpu(const struct backend *backend, struct comm_options options, size_t count,
                          double *all)
{
    struct bench_measurement measured;
    struct bench_connection connection = connection_for(backend, options, count);
    struct bench_plan plan = plan_of(count);
    *all = -cpu_s(CLOCK_PROCESS_CPUTIME_ID);
    cr_assert_eq(bench_measure(&measured, &connection, &plan), STATUS_OK);
    *all += cpu_s(CLOCK_PROCESS_CPUTIME_ID);
    cr_assert_eq(world_sum(world, NULL, all, 1), STATUS_OK);
    double found = measured.cpu_s;
    bench_measurement_free(&measured);
    bench_disconnect(&connection);
    return found;
}

/* cpu_s contains the processor time of each worker and server. It does not contain the warm-up, nor
 * filling and checking the vectors. */
static void check_cpu_seconds(void)
{
    double all, once = (double)BURN_MS / 1000;
    for (int servers = 0; servers <= 1 && servers < world->size; servers++) {
        const struct comm_options options = {.servers = servers, .placement = PLACEMENT_DEDICATED};
        int workers = world->size - servers;
        double burned = once * workers * (workers + 1) / 2; /* an operation */
        double found = measure_cpu(&backend_burn, options, COUNT, &all);
        cr_assert_geq(found, ITERS * (burned + once * servers));
        cr_assert_leq(found, all - WARMUP * (burned + once * servers) / 2);
    }
    double found = measure_cpu(&backend_nothing, (struct comm_options){0}, 1 << 20, &all);
    cr_assert_geq(found, 0);
    cr_assert_leq(found, all / 2);
}

/* With overlap another thread adds while the caller computes. The measured time is the exposed
 * part, never below 0. */
static void check_overlap(void)
{
    struct bench_connection connection =
        connection_of(&backend_note_thread, (struct comm_options){0});
    for (int overlap = 0; overlap <= 1; overlap++) {
        struct bench_measurement measured;
        struct bench_plan plan = plan_of(COUNT);
        plan.overlap = overlap;
        plan.compute_us = 1000;
        cr_assert_eq(bench_measure(&measured, &connection, &plan), STATUS_OK);
        cr_assert_eq(measured.wrong, 0);
        cr_assert_eq(measured.iters, ITERS);
        for (int i = 0; i < ITERS; i++)
            cr_assert_geq(measured.times_us[i], 0);
        bool other = !pthread_equal(adding_thread, pthread_self());
        cr_assert_eq(other, overlap && world->concurrent);
        bench_measurement_free(&measured);
    }
    bench_disconnect(&connection);
}

/* Strangers connect to each listening port before the ranks do. All but one send nothing. */
enum { STRANGERS = 5 };
static int strangers[STRANGERS];
static int strangers_called = STRANGERS; /* connected so far; STRANGERS: call no more */

/* The linker replaces listen by this function (CMakeLists.txt). */
int __real_listen(int fd, int backlog);
int __wrap_listen(int fd, int backlog);
int __wrap_listen(int fd, int backlog)
{
    int result = __real_listen(fd, backlog);
    struct sockaddr_in at;
    socklen_t length = sizeof at;
    if (strangers_called == STRANGERS)
        return result;
    cr_assert_eq(getsockname(fd, (struct sockaddr *)&at, &length), 0);
    while (strangers_called < STRANGERS) {
        int stranger = socket(AF_INET, SOCK_STREAM, 0);
        cr_assert_eq(connect(stranger, (struct sockaddr *)&at, length), 0);
        strangers[strangers_called++] = stranger;
    }
    cr_assert_eq(send(strangers[1], "whatever", 8, MSG_NOSIGNAL), 8);
    return result;
}

/* With more ranks than cores, all workers agree on an instant and none starts before it. */
static void check_start(void)
{
    struct bench_start start;
    struct group *everyone;
    cr_assert_eq(world_group_new(&everyone, world, 0), STATUS_OK);
    int cores = world->cores;
    world->cores = world->sharing_cpus; /* one core for each rank: only a barrier */
    cr_assert_eq(bench_start_init(&start, world, everyone), STATUS_OK);
    cr_assert_not(start.common_clock);
    world->cores = world->sharing_cpus - 1; /* too few, on one machine */
    cr_assert_eq(bench_start_init(&start, world, everyone), STATUS_OK);
    cr_assert(start.common_clock);
    for (int round = 0; round < 50; round++) {
        int64_t instant_ns;
        cr_assert_eq(bench_start_agree(&start, &instant_ns), STATUS_OK);
        int64_t from_ns = bench_start_wait(&start, instant_ns);
        cr_assert_geq(from_ns, instant_ns);
        double most = (double)instant_ns, least = -(double)instant_ns;
        cr_assert_eq(world_max(world, NULL, &most, 1), STATUS_OK);
        cr_assert_eq(world_max(world, NULL, &least, 1), STATUS_OK);
        cr_assert_eq(most, -least);
    }
    world->machine++; /* several machines: only a barrier */
    cr_assert_eq(bench_start_init(&start, world, everyone), STATUS_OK);
    cr_assert_not(start.common_clock);
    int64_t instant_ns, before_ns = clock_now_ns();
    cr_assert_eq(bench_start_agree(&start, &instant_ns), STATUS_OK);
    cr_assert_geq(bench_start_wait(&start, instant_ns), before_ns);
    world->machine--;
    world->cores = cores;
    world_group_free(&everyone, world);
}

/* On loopback the correct rate is unknown, but all ranks must get the same one. Silent strangers
 * must not delay the probe until its time-out. */
static void check_probe(void)
{
    double rate = -1, most, least;
    strangers_called = 0;
    cr_assert_eq(probe_link(world, NULL, 20000, &rate), STATUS_OK);
    cr_assert_eq(strangers_called, world->size > 1 ? STRANGERS : 0);
    for (int i = 0; i < strangers_called; i++)
        close(strangers[i]);
    cr_assert(world->size > 1 ? rate >= 0 : rate == 0, "%g", rate);
    most = rate, least = -rate;
    cr_assert_eq(world_max(world, NULL, &most, 1), STATUS_OK);
    cr_assert_eq(world_max(world, NULL, &least, 1), STATUS_OK);
    cr_assert_eq(most, -least);
}

Test(mpi_bench, measure)
{
    cr_assert_eq(world_open(&world, NULL, NULL, NULL), STATUS_OK);
    check_wrong_elements();
    check_slowest();
    check_automatic();
    check_automatic_servers();
    check_cpu_seconds();
    check_overlap();
    check_start();
    check_probe();
    world_close(&world);
}
