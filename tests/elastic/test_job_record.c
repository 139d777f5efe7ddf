/* The options of a job for its servers, and the record of a durable job in a file. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/checkpoint/checkpoint.h"
#include "experiments/config/config.h"
#include "experiments/elastic/coordinator.h"
#include "experiments/elastic/elastic.h"
#include "tests/elastic/members.h"
#include "tests/lib/capture.h"

static char folder[64];

static struct job_record example(void)
{
    struct job_record record = {.token = TOKEN,
                                .generation = 5,
                                .servers = 2,
                                .first_id = 4000000000,
                                .next_id = 4000000123,
                                .images = 123456789012,
                                .step = 98765432109,
                                .done = 7,
                                .ended = true,
                                .worker_count = COORDINATOR_MEMBERS};
    snprintf(record.job.options, sizeof record.job.options, "--batch=8\n--tf32\n--join=a=b,c\n");
    for (int i = 0; i < COORDINATOR_MEMBERS; i++)
        record.workers[i] = record.first_id + (uint32_t)i;
    return record;
}

Test(record, is_read_as_it_was_written)
{
    struct job_record written = example(), read;
    folder_new(folder);
    cr_assert_eq(job_load(folder, TOKEN, &read), STATUS_OK);
    cr_assert_eq(read.generation, 0); /* no file */
    cr_assert_eq(job_save(folder, &written), STATUS_OK);
    cr_assert_eq(job_load(folder, TOKEN, &read), STATUS_OK);
    cr_assert_eq(memcmp(&read, &written, sizeof read), 0);
    written = (struct job_record){.token = TOKEN, .generation = 1};
    written.job = (struct coordinator_job){.summoned = true, .index = 3, .options = "--batch=8\n"};
    snprintf(written.job.address, sizeof written.job.address, "tcp://[fe80::1]:29600");
    cr_assert_eq(job_save(folder, &written), STATUS_OK);
    cr_assert_eq(job_load(folder, TOKEN, &read), STATUS_OK);
    cr_assert_eq(memcmp(&read, &written, sizeof read), 0);
    folder_free(folder);
}

Test(record, that_does_not_fit_is_refused_with_one_message)
{
    struct job_record record = example(), read;
    char path[96];
    folder_new(folder);
    snprintf(path, sizeof path, "%s/job.checkpoint", folder);
    cr_assert_eq(job_save(folder, &record), STATUS_OK);
    assert_refused(job_load(folder, TOKEN + 1, &read), STATUS_USAGE, "has another token");
    cr_assert_eq(truncate(path, 1000), 0);
    assert_refused(job_load(folder, TOKEN, &read), STATUS_INPUT, "it is truncated");
    record.generation = 0;
    cr_assert_eq(job_save(folder, &record), STATUS_OK);
    assert_refused(job_load(folder, TOKEN, &read), STATUS_INPUT, "cannot be true");
    record = example();
    record.done = COORDINATOR_MEMBERS + 1;
    cr_assert_eq(job_save(folder, &record), STATUS_OK);
    assert_refused(job_load(folder, TOKEN, &read), STATUS_INPUT, "cannot be true");
    cr_assert_eq(checkpoint_save(path, &(struct checkpoint){.model = "lenet", .optimizer = "sgd"}),
                 STATUS_OK);
    assert_refused(job_load(folder, TOKEN, &read), STATUS_INPUT, "found a checkpoint of lenet");
    folder_free(folder);
}

/* All ranks of a generation choose the GPUs from the same values. */
Test(job, lets_workers_share_a_gpu_only_if_they_ask_for_it)
{
    static char name[] = "serve", listen[] = "--listen=tcp://127.0.0.1:9";
    static char *argv[] = {name, listen};
    struct config serve, config;
    bool helped;
    char alone[] = "--join=tcp://127.0.0.1:9\n--backend=ps\n--device=cuda\n";
    char shared[] = "--join=tcp://127.0.0.1:9\n--backend=ps\n--device=cuda\n--share-gpu\n";
    cr_assert_eq(config_parse(CONFIG_SERVE, 2, argv, &serve, &helped), STATUS_OK);
    cr_assert_eq(elastic_options_read(&config, &serve, alone), STATUS_OK);
    cr_assert(config.device == DEVICE_CUDA && !config.share_gpu);
    cr_assert_eq(elastic_options_read(&config, &serve, shared), STATUS_OK);
    cr_assert(config.device == DEVICE_CUDA && config.share_gpu);
}

/* -------- a full disk ------------------------------------------------------------------------- */

/* As on a full disk, no record can be written: a folder has the name of its temporary file. */
static void fill_disk(bool full)
{
    char path[96];
    snprintf(path, sizeof path, "%s/job.checkpoint.tmp", folder);
    cr_assert_eq(full ? mkdir(path, 0700) : rmdir(path), 0);
}

static void open_durable(void)
{
    struct coordinator_options options = options_for(1);
    folder_new(folder);
    options.checkpoint = folder;
    open_job(&options, &(struct job_record){.token = TOKEN, .first_id = 1000});
    coordinator_set_servers(coordinator, 1);
}

/* Waits until the record could not be written `count` times while `members` waited. */
static void wait_for_tries(int count, int members)
{
    int64_t last_ns = 0;
    for (int tries = 0; tries < count; usleep(1000)) {
        int waiting = 0;
        monitor_enter(&coordinator->monitor);
        for (int i = 0; i < coordinator->count; i++)
            waiting += coordinator->seats[i]->state == SEAT_WAITING;
        tries += waiting == members && coordinator->record_again_ns > last_ns;
        last_ns = coordinator->record_again_ns;
        bool ended = coordinator->ended;
        monitor_leave(&coordinator->monitor);
        cr_assert(!ended, "the job has ended");
    }
}

static void assert_record(uint32_t generation, int count)
{
    struct job_record record;
    cr_assert_eq(job_load(folder, TOKEN, &record), STATUS_OK);
    cr_assert_eq(record.generation, generation, "found %u", record.generation);
    cr_assert_eq(record.worker_count, count, "found %d", record.worker_count);
}

static void assert_count(const char *text, const char *words, int expected)
{
    int found = 0;
    for (const char *at = text; (at = strstr(at, words)); at++)
        found++;
    cr_assert_eq(found, expected, "'%s': %d times, expected %d in: %s", words, found, expected,
                 text);
}

/* A restarted server would refuse the members of a generation that its record does not have. */
Test(record, that_has_no_room_delays_the_next_generation)
{
    struct capture capture;
    open_durable();
    joins(&server, MEMBER_SERVER);
    joins(&workers[0], MEMBER_WORKER);
    end_meeting(&workers[0], STATUS_OK);
    end_meeting(&server, STATUS_OK);
    capture_start(&capture);
    fill_disk(true);
    comes_back(&workers[0], 4, STATUS_OK);
    comes_back(&server, MEMBER_NO_STEP, STATUS_OK);
    wait_for_tries(1, 2);
    joins(&workers[1], MEMBER_WORKER);
    wait_for_tries(3, 3);
    assert_record(1, 1);
    fill_disk(false);
    end_meeting(&server, STATUS_OK);
    for (int i = 0; i < 2; i++) {
        end_meeting(&workers[i], STATUS_OK);
        cr_assert_eq(workers[i].found.number, 2);
        assert_rank(&workers[i], i, 2, 4);
    }
    assert_record(2, 2);
    capture_stop(&capture);
    assert_count(capture.text, "error: ", 1);
    assert_count(capture.text, "warning: ", 1);
    assert_count(capture.text, "waits: the server cannot write", 2); /* each worker reads it once */
    end();
    folder_free(folder);
}

/* A job without a record could not survive its server. */
Test(record, that_has_no_room_at_the_beginning_ends_the_job)
{
    open_durable();
    fill_disk(true);
    joins(&server, MEMBER_SERVER);
    joins(&workers[0], MEMBER_WORKER);
    end_meeting(&workers[0], STATUS_IO);
    end_meeting(&server, STATUS_IO);
    end();
    folder_free(folder);
}
