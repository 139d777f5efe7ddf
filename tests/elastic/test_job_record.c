/* The options of a job for its servers, and the record of a durable job in a file. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/checkpoint/checkpoint.h"
#include "experiments/config/config.h"
#include "experiments/elastic/coordinator.h"
#include "experiments/elastic/elastic.h"
#include "tests/lib/capture.h"

enum { TOKEN = 77 };

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
