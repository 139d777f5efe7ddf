/* Memory that the workers of a host share. Threads play the workers; each maps the memory
 * separately, as processes do. The world's collective calls are played, too. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/net/transport/transport_impl.h"
#include "ring/shared_memory.h"
#include "tests/lib/capture.h"

enum { RANKS = 3, VECTOR_COUNT = 5000 };

/* One worker. */
struct rank {
    struct world world;
    struct group group;
    struct transport transport;
    struct shared *shared;
    enum status status;
    pthread_t thread;
};

static struct rank ranks[RANKS];
static const int everyone[RANKS] = {0, 1, 2};
static pthread_barrier_t all_here;
static char gathered[RANKS][256];
static bool lies;   /* the first rank names a different file than its own */
static int signals; /* interrupts still to come while memory is allocated */
static size_t vector_count[RANKS] = {VECTOR_COUNT, VECTOR_COUNT, VECTOR_COUNT};
static int64_t timeout_ms = 60000;
static char hosts[RANKS][WORLD_HOST_BYTES] = {"here", "here", "here"};
static pid_t ended_process; /* the process of rank 2, if not 0 */

enum status __wrap_world_barrier(struct world *world, const struct group *group);
enum status __wrap_world_barrier(struct world *world, const struct group *group)
{
    (void)world;
    (void)group;
    pthread_barrier_wait(&all_here);
    return STATUS_OK;
}

enum status __wrap_world_gather(struct world *world, const struct group *group, const void *mine,
                                size_t bytes, void *all);
enum status __wrap_world_gather(struct world *world, const struct group *group, const void *mine,
                                size_t bytes, void *all)
{
    cr_assert_leq(bytes, sizeof gathered[0]);
    memcpy(gathered[world->rank], mine, bytes);
    if (lies && world->rank == 0)
        ((int64_t *)(void *)gathered[0])[1] = STDIN_FILENO;
    if (ended_process && world->rank == 2 && bytes > sizeof(int64_t)) /* more than a status */
        ((int64_t *)(void *)gathered[2])[0] = ended_process;
    __wrap_world_barrier(world, group);
    for (int rank = 0; rank < world->size; rank++)
        memcpy((char *)all + (size_t)rank * bytes, gathered[rank], bytes);
    return __wrap_world_barrier(world, group);
}

int __real_posix_fallocate(int descriptor, off_t offset, off_t bytes);
int __wrap_posix_fallocate(int descriptor, off_t offset, off_t bytes);
int __wrap_posix_fallocate(int descriptor, off_t offset, off_t bytes)
{
    if (signals == 0)
        return __real_posix_fallocate(descriptor, offset, bytes);
    signals--;
    return EINTR;
}

static bool processes_hide; /* like another user's processes, they hide what they run */

ssize_t __real_readlink(const char *path, char *text, size_t size);
ssize_t __wrap_readlink(const char *path, char *text, size_t size);
ssize_t __wrap_readlink(const char *path, char *text, size_t size)
{
    if (!processes_hide)
        return __real_readlink(path, text, size);
    errno = EACCES;
    return -1;
}

static enum status open_rank(struct rank *rank)
{
    const struct shared_memory_options options = {
        .world = &rank->world,
        .workers = &rank->group,
        .group = &rank->group,
        .transport = &rank->transport,
        .vector_bytes = vector_count[rank->world.rank] * sizeof(float),
        .timeout_ms = timeout_ms,
    };
    return shared_open(&rank->shared, &options);
}

static void *run_on(void *argument)
{
    struct rank *rank = argument;
    rank->status = open_rank(rank);
    return NULL;
}

static void on_all(void *(*run)(void *rank))
{
    for (int r = 0; r < RANKS; r++)
        cr_assert_eq(pthread_create(&ranks[r].thread, NULL, run, &ranks[r]), 0);
    for (int r = 0; r < RANKS; r++)
        pthread_join(ranks[r].thread, NULL);
}

static void start(void)
{
    cr_assert_eq(pthread_barrier_init(&all_here, NULL, RANKS), 0);
    for (int r = 0; r < RANKS; r++)
        ranks[r] = (struct rank){.world = {.rank = r,
                                           .size = RANKS,
                                           .cores = 1,
                                           .sharing_cpus = 2,
                                           .host = "here",
                                           .hosts = hosts},
                                 .group = {.size = RANKS, .rank = r, .ranks = everyone}};
}

static void open_all(void)
{
    start();
    on_all(run_on);
    for (int r = 0; r < RANKS; r++)
        cr_assert_eq(ranks[r].status, STATUS_OK);
}

static void close_all(void)
{
    for (int r = 0; r < RANKS; r++)
        shared_close(&ranks[r].shared);
}

/* Operations as in shared_memory.h: each rank fills its vector, all add, and each shows its sum. */
enum { OPERATIONS = 3000 };

static void *operate(void *argument)
{
    struct rank *self = argument;
    int mine = self->world.rank;
    float *own = shared_vector(self->shared, mine), *sums = shared_sums(self->shared);
    for (uint32_t n = 1; n <= OPERATIONS; n++) {
        float sum = own[0] = (float)(n + (uint32_t)mine);
        shared_notify(self->shared, SHARED_FILLED, n);
        for (int r = 0; r < RANKS; r++) {
            if (r == mine)
                continue;
            cr_assert_eq(shared_wait(self->shared, r, SHARED_FILLED, n), STATUS_OK);
            sum += *(const float *)shared_vector(self->shared, r);
        }
        cr_assert_eq(sum, (float)(3 * n + 3));
        sums[VECTOR_COUNT - RANKS + mine] = sum;
        shared_notify(self->shared, SHARED_DONE, n);
        for (int r = 0; r < RANKS; r++) {
            if (r == mine)
                continue;
            cr_assert_eq(shared_wait(self->shared, r, SHARED_DONE, n), STATUS_OK);
            cr_assert_eq(sums[VECTOR_COUNT - RANKS + r], sum);
        }
    }
    return NULL;
}

Test(shared, operations_asleep)
{
    open_all();
    on_all(operate);
    close_all();
}

Test(shared, operations_that_try_first)
{
    start();
    for (int r = 0; r < RANKS; r++)
        ranks[r].world.sharing_cpus = ranks[r].world.cores;
    on_all(run_on);
    on_all(operate);
    close_all();
}

static int open_files(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    cr_assert_not_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

/* The mapping has no name: no file is left anywhere. */
Test(shared, nothing_is_left)
{
    char line[512];
    bool mapped = false;
    int before = open_files();
    open_all();
    cr_expect_eq(open_files(), before);
    FILE *maps = fopen("/proc/self/maps", "r");
    cr_assert_not_null(maps);
    while (fgets(line, sizeof line, maps))
        mapped = mapped || strstr(line, "/memfd:psring (deleted)");
    fclose(maps);
    cr_expect(mapped);
    close_all();
}

Test(shared, a_silent_neighbour_is_named)
{
    struct capture capture;
    timeout_ms = 100;
    open_all();
    capture_start(&capture);
    cr_expect_eq(shared_wait(ranks[0].shared, 2, SHARED_FILLED, 1), STATUS_TIMEOUT);
    cr_expect_eq(capture_stop(&capture), 1);
    cr_expect_not_null(strstr(capture.text, "waiting for rank 2 on the same host, here, to begin"),
                       "%s", capture.text);
    close_all();
}

/* A wait ends before its time-out if the neighbour's process is gone or its operation failed. */
Test(shared, a_lost_neighbour_is_named)
{
    struct capture capture;
    int how;
    ended_process = fork();
    if (ended_process == 0)
        _exit(0);
    open_all();
    shared_fail(ranks[1].shared);
    capture_start(&capture);
    cr_expect_eq(shared_wait(ranks[0].shared, 1, SHARED_DONE, 1), STATUS_TRANSPORT);
    cr_expect_eq(shared_wait(ranks[0].shared, 2, SHARED_FILLED, 1), STATUS_TRANSPORT);
    cr_expect_eq(capture_stop(&capture), 2);
    cr_expect_not_null(strstr(capture.text, "rank 1 on the same host, here, has failed"), "%s",
                       capture.text);
    cr_expect_not_null(strstr(capture.text, "rank 2 on the same host, here, has ended"), "%s",
                       capture.text);
    cr_expect_eq(waitpid(ended_process, &how, 0), ended_process);
    close_all();
}

/* The process does not show what it runs. This is not a sign that it has ended. */
Test(shared, a_process_of_another_user_has_not_ended)
{
    struct capture capture;
    processes_hide = true;
    timeout_ms = 100;
    open_all();
    capture_start(&capture);
    cr_expect_eq(shared_wait(ranks[0].shared, 1, SHARED_DONE, 1), STATUS_TIMEOUT);
    cr_expect_eq(capture_stop(&capture), 1);
    cr_expect_not_null(strstr(capture.text, "nothing for 0.1 s"), "%s", capture.text);
    close_all();
}

/* A wait under a watchdog has no time-out. The activity names the rank that it waits for. */
static struct activity activity;

static void *wait_for_rank_1(void *argument)
{
    struct rank *rank = argument;
    rank->status = shared_wait(rank->shared, 1, SHARED_DONE, 1);
    return NULL;
}

static struct activity_view start_to_wait(void)
{
    struct activity_view view = {0};
    open_all();
    activity_init(&activity);
    ranks[0].world.activity = &activity;
    cr_assert_eq(pthread_create(&ranks[0].thread, NULL, wait_for_rank_1, &ranks[0]), 0);
    for (int tries = 0; tries < 10000 && (tries == 0 || view.first != 1); tries++) {
        clock_sleep_until_ns(clock_now_ns() + NS_PER_MS);
        activity_view(&activity, ACTIVITY_WORKER, &view);
    }
    return view;
}

Test(shared, a_wait_is_known_and_can_be_interrupted)
{
    struct activity_view view = start_to_wait();
    cr_expect_eq(view.first, 1);
    cr_expect_eq(view.last, 1);
    transport_interrupt(&ranks[0].transport);
    pthread_join(ranks[0].thread, NULL);
    cr_expect_eq(ranks[0].status, STATUS_TRANSPORT);
    activity_view(&activity, ACTIVITY_WORKER, &view);
    cr_expect_eq(view.first, ACTIVITY_NOBODY);
    close_all();
}

/* A neighbour that makes progress, even slowly, counts as progress of the wait. */
Test(shared, a_neighbour_that_comes_on)
{
    const struct activity_view before = start_to_wait();
    struct activity_view view = before;
    for (int tries = 0; tries < 10000 && view.moves == before.moves; tries++) {
        shared_moved(ranks[1].shared);
        clock_sleep_until_ns(clock_now_ns() + NS_PER_MS);
        activity_view(&activity, ACTIVITY_WORKER, &view);
    }
    cr_expect_neq(view.moves, before.moves);
    cr_expect_eq(view.first, 1);
    shared_notify(ranks[1].shared, SHARED_DONE, 1);
    pthread_join(ranks[0].thread, NULL);
    cr_expect_eq(ranks[0].status, STATUS_OK);
    close_all();
}

/* All ranks except the first fail to get the memory, so no rank has it. */
static void expect_refused(const char *words)
{
    struct capture capture;
    start();
    capture_start(&capture);
    for (int r = 0; r < RANKS; r++)
        cr_assert_eq(pthread_create(&ranks[r].thread, NULL, run_on, &ranks[r]), 0);
    for (int r = 0; r < RANKS; r++) {
        pthread_join(ranks[r].thread, NULL);
        cr_expect_neq(ranks[r].status, STATUS_OK);
        cr_expect_null(ranks[r].shared);
    }
    cr_expect_eq(capture_stop(&capture), RANKS);
    cr_expect_not_null(strstr(capture.text, "rank 1 on here has no memory to share there"), "%s",
                       capture.text);
    cr_expect_not_null(strstr(capture.text, words), "%s", capture.text);
}

Test(shared, another_file_is_not_taken_for_it)
{
    lies = true;
    expect_refused("it is another file");
}

Test(shared, memory_of_another_length_is_not_taken_for_it)
{
    vector_count[0] = VECTOR_COUNT / 2;
    expect_refused("the longest bucket must have the same length on all ranks");
}

Test(shared, a_signal_while_memory_is_allocated, .timeout = 60)
{
    signals = 2;
    open_all();
    close_all();
}

Test(shared, alone_shares_nothing)
{
    struct rank *rank = &ranks[0];
    start();
    cr_assert_eq(pthread_barrier_init(&all_here, NULL, 1), 0);
    rank->world.size = rank->group.size = 1;
    cr_assert_eq(open_rank(rank), STATUS_OK);
    cr_expect_null(rank->shared);
}
