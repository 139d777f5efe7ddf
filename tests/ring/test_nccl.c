/*
 * The NCCL backend without a GPU: its calls of NCCL and their order. Also its reaction to peers
 * that do not come, fail or stay silent. nccl_played.c plays NCCL, CUDA and the device.
 * experiments/gpu_check.sh tests real GPUs.
 */
#include "ring/baselines/baselines.h"

#include <criterion/criterion.h>
#include <nccl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/lib/capture.h"
#include "tests/ring/nccl_played.h"

static const size_t counts[] = {3, 5};
static float data[8];
static struct capture captured;
static struct comm_options options = {.timeout_ms = 60000, .device = &played_device};
static struct comm_layout layout = {.scale = 1, .counts = counts, .buckets = 2};
static struct backend_env site = {
    .topology = {.workers = 2}, .workers = 2, .options = &options, .layout = &layout};

static void *opened(void)
{
    void *self = NULL;
    cr_assert_eq(backend_nccl.open(&self, &site), STATUS_OK);
    cr_assert_eq(backend_nccl.plan(self), STATUS_OK);
    memset(play.order, 0, sizeof play.order);
    play.all_reduces = 0;
    return self;
}

static enum status start(void *self, size_t bucket, float *to)
{
    enum status status = backend_nccl.start(self, bucket, to);
    return status == STATUS_OK ? backend_nccl.flush(self) : status;
}

/* Steps like a trainer, until a call reports a failure. */
static enum status step_until_failure(void *self)
{
    enum status status = STATUS_OK;
    while (status == STATUS_OK) {
        status = start(self, 0, data);
        if (status == STATUS_OK)
            status = backend_nccl.wait(self, 0);
    }
    return status;
}

Test(nccl, a_step_is_put_in_order_by_events_and_ends_in_peace)
{
    play.polls_to_ready = 20;
    layout.scale = 0.5f;
    void *self = opened();
    cr_expect_eq(play.blocking, 0);
    cr_expect_eq(play.scale, 0.5f);
    cr_assert_eq(start(self, 0, data), STATUS_OK);
    cr_assert_eq(start(self, 1, data + 3), STATUS_OK);
    cr_assert_eq(backend_nccl.wait(self, 0), STATUS_OK);
    cr_assert_eq(backend_nccl.wait(self, 1), STATUS_OK);
    cr_expect_str_eq(play.order, "rW(a)RrW(a)Rww");
    cr_expect_eq(play.all_reduces, 2);
    cr_expect_eq(play.pre_multiplied, 2);
    cr_assert_eq(backend_nccl.finish(self), STATUS_OK);
    backend_nccl.close(self);
    cr_expect(play.finalizes == 1 && play.destroys == 1 && play.aborts == 0);
}

Test(nccl, buckets_that_are_ready_together_are_one_group)
{
    void *self = opened();
    cr_assert_eq(backend_nccl.start(self, 0, data), STATUS_OK);
    cr_assert_eq(backend_nccl.start(self, 1, data + 3), STATUS_OK);
    cr_expect_str_eq(play.order, "", "no call before the flush");
    cr_assert_eq(backend_nccl.flush(self), STATUS_OK);
    cr_assert_eq(backend_nccl.flush(self), STATUS_OK, "nothing is left to flush");
    cr_assert_eq(backend_nccl.wait(self, 1), STATUS_OK);
    cr_assert_eq(backend_nccl.wait(self, 0), STATUS_OK);
    cr_expect_str_eq(play.order, "rW(aa)RRww");
    backend_nccl.close(self);
}

static void want_registered(bool wanted)
{
    layout.memory = data;
    layout.memory_count = 8;
    options.library.registers = wanted;
}

Test(nccl, memory_is_registered_from_plan_to_finish_where_it_is_asked_for)
{
    for (int wanted = 0; wanted < 2; wanted++) {
        want_registered(wanted);
        void *self = opened();
        cr_expect_eq(play.registered, wanted);
        cr_assert_eq(start(self, 0, data), STATUS_OK);
        cr_assert_eq(backend_nccl.finish(self), STATUS_OK);
        cr_expect_eq(play.registered, 0);
        backend_nccl.close(self);
    }
}

/* NCCL needs registered memory on all ranks or on none. */
Test(nccl, memory_that_one_rank_cannot_register_is_a_failure_of_all)
{
    static const struct {
        int refuse, off, others;
        const char *said;
    } cases[] = {{ncclSystemError, 0, 0, "cannot be registered (unhandled system error"},
                 {0, 1, 0, "cannot be registered (registration is off in NCCL)"},
                 {0, 0, 1, "cannot be registered on another rank"}};
    want_registered(true);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        void *self;
        play.refuse_memory = cases[i].refuse;
        play.off = cases[i].off;
        play.others_refuse = cases[i].others;
        cr_assert_eq(backend_nccl.open(&self, &site), STATUS_OK);
        capture_start(&captured);
        cr_expect_eq(backend_nccl.plan(self), STATUS_UNSUPPORTED);
        capture_stop(&captured);
        cr_expect(strstr(captured.text, "--nccl-register on"), "%s", captured.text);
        cr_expect(strstr(captured.text, cases[i].said), "%s", captured.text);
        cr_expect_eq(play.registered, 0);
        backend_nccl.close(self);
    }
}

/* ncclCommDeregister may communicate with a peer, which may be stopped. */
Test(nccl, memory_that_is_never_given_back_is_a_time_out, .timeout = 30)
{
    want_registered(true);
    options.timeout_ms = 200;
    play.waits = 1;
    void *self = opened();
    capture_start(&captured);
    cr_expect_eq(backend_nccl.finish(self), STATUS_TIMEOUT);
    backend_nccl.close(self);
    capture_stop(&captured);
    cr_expect(strstr(captured.text, "ncclCommDeregister: no GPU's answer within 0.2 s"), "%s",
              captured.text);
    cr_expect_eq(play.aborts, 1);
}

Test(nccl, a_sum_that_is_not_scaled_needs_no_operation_of_its_own)
{
    void *self = opened();
    cr_assert_eq(start(self, 0, data), STATUS_OK);
    cr_expect_eq(play.pre_multiplied, 0);
    backend_nccl.close(self); /* without finish: connections are cut */
    cr_expect(play.finalizes == 0 && play.aborts == 1);
}

Test(nccl, peers_that_never_come_are_a_time_out)
{
    void *self = NULL;
    play.polls_to_ready = NEVER;
    options.timeout_ms = 1;
    capture_start(&captured);
    cr_assert_eq(backend_nccl.open(&self, &site), STATUS_TIMEOUT);
    capture_stop(&captured);
    cr_expect(strstr(captured.text, "--timeout"), "%s", captured.text);
    cr_expect_null(self);
    cr_expect(play.aborts == 1 && play.destroys == 0);
}

Test(nccl, an_error_that_comes_later_aborts_and_is_told)
{
    void *self = opened();
    capture_start(&captured); /* first: the watch's thread may see the error earlier */
    play.error = ncclRemoteError;
    cr_assert_eq(step_until_failure(self), STATUS_TRANSPORT);
    cr_expect_eq(backend_nccl.finish(self), STATUS_TRANSPORT);
    backend_nccl.close(self);
    capture_stop(&captured);
    cr_expect(strstr(captured.text, "peer closed the connection"), "%s", captured.text);
    cr_expect(play.aborts == 1 && play.finalizes == 0 && play.destroys == 0);
}

Test(nccl, a_peer_that_stays_silent_is_a_time_out)
{
    options.timeout_ms = 400;
    void *self = opened();
    play.stuck = 1;
    capture_start(&captured);
    cr_assert_eq(start(self, 0, data), STATUS_OK);
    cr_assert_eq(backend_nccl.finish(self), STATUS_TIMEOUT); /* only the watch can end this wait */
    backend_nccl.close(self);
    capture_stop(&captured);
    cr_expect(strstr(captured.text, "--timeout"), "%s", captured.text);
    cr_expect(play.aborts == 1 && play.finalizes == 0);
}

Test(nccl, what_nccl_refuses_at_once_is_told_at_once)
{
    void *self = opened();
    play.refuse = ncclInvalidUsage;
    capture_start(&captured);
    cr_assert_eq(start(self, 0, data), STATUS_UNSUPPORTED);
    capture_stop(&captured);
    cr_expect(strstr(captured.text, "ncclAllReduce: NCCL: "), "%s", captured.text);
    cr_assert_eq(start(self, 1, data), STATUS_UNSUPPORTED, "the backend stays failed");
    backend_nccl.close(self);
    cr_expect_eq(play.aborts, 1);
}

/* Log lines count from the end of opening. Meanwhile the watch frees the memory of the log. */
Test(nccl, the_log_is_read_and_cut_while_it_runs)
{
    enum { STEPS = 2000, BYTES_MAX = 64 * 1024 };
    struct stat info;
    play.log = memfd_create("test-nccl-log", MFD_CLOEXEC);
    cr_assert_gt(play.log, 0);
    options.library.log = play.log;
    void *self = opened(); /* opening does one all-reduce */
    for (int i = 0; i < STEPS; i++)
        cr_assert_eq(start(self, 0, data), STATUS_OK);
    do { /* until the watch's thread has cut the log, or the test times out */
        clock_sleep_until_ns(clock_now_ns() + 5 * NS_PER_MS);
        cr_assert_eq(fstat(play.log, &info), 0);
    } while (info.st_blocks * 512 > BYTES_MAX);
    cr_expect_gt(info.st_size, BYTES_MAX, "the log has %lld bytes", (long long)info.st_size);
    cr_assert_eq(start(self, 1, data + 3), STATUS_OK);
    cr_assert_eq(backend_nccl.wait(self, 1), STATUS_OK);
    cr_assert_eq(backend_nccl.finish(self), STATUS_OK);
    char text[COMM_ALGORITHM_BYTES];
    backend_nccl.algorithm(self, text);
    cr_expect_str_eq(text, "ring/simple");
    backend_nccl.close(self);
    close(play.log);
}
