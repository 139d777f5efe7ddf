#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/net/address.h"
#include "common/net/secure.h"
#include "experiments/elastic/coordinator.h"
#include "experiments/elastic/elastic.h"

/* This server leads its own job: reads the state of a job that continues, and summons the other
 * servers. */
static enum status lead(struct coordinator *coordinator, const struct coordinator_job *job,
                        const struct config *config, struct generation *generation)
{
    enum status status = STATUS_OK;
    char address[300];
    if (config->elastic.checkpoint)
        TRY(durable_load_state(config, generation));
    coordinator_set_servers(coordinator, (int)config->servers);
    for (int i = 1; config_server(config, i, address, sizeof address); i++)
        TRY(coordinator_summon(coordinator, address, i, job->options,
                               (int64_t)(config->startup_timeout * 1000)));
out:
    return status;
}

static void warn_of_network(const struct coordinator *coordinator)
{
    if (!address_is_loopback(&coordinator->listener.address) && !secure_is_on)
        log_warn("--listen %s: other hosts can connect, and a host that reads the traffic can "
                 "read the token and the weights, and join; listen only in a network that you "
                 "trust",
                 coordinator->options.address);
}

/* The first server's record is the coordinator's. Any other server of a durable job writes one in
 * its first generation, so that it finds the coordinator when it is started again. */
static enum status serve_all(const struct config *config, struct generation *generation,
                             struct job_record *record)
{
    enum status status = STATUS_OK, ended = STATUS_OK;
    for (;;) {
        struct member_place place = elastic_place(config, generation, ended);
        struct member_generation next;
        TRY(member_meet(generation->member, &place, NULL, &next));
        if (next.durable && record->job.summoned && record->generation == 0) {
            record->generation = next.number;
            TRY(job_save(config->elastic.checkpoint, record));
        }
        ended = elastic_generation(config, generation, &next);
        if (!elastic_goes_on(ended))
            return ended;
    }
out:
    return status == STATUS_STOPPED ? STATUS_OK : status;
}

static enum status open_coordinator(struct coordinator **coordinator, const struct config *serve,
                                    uint64_t token, const struct job_record *record)
{
    enum status status = STATUS_OK;
    const struct config_elastic *elastic = &serve->elastic;
    int64_t first =
        elastic->workers > elastic->min_workers ? elastic->workers : elastic->min_workers;
    const struct coordinator_options options = {
        .token = token,
        .address = elastic->listen,
        .workers_first = (int)first,
        .workers_min = (int)elastic->min_workers,
        .timeout_ms = (int64_t)(serve->timeout * 1000),
        .stall_warning_ms = (int64_t)(serve->stall_warning * 1000),
        .startup_timeout_ms = (int64_t)(serve->startup_timeout * 1000),
        .checkpoint = elastic->checkpoint,
        .checkpoint_steps = elastic->checkpoint ? (uint64_t)elastic->checkpoint_steps : 0};
    TRY(coordinator_open(coordinator, &options, record));
    warn_of_network(*coordinator);
    printf("listens at %s; start workers: psring train --backend ps --join %s ...\n",
           elastic->listen, elastic->listen);
    fflush(stdout);
out:
    return status;
}

enum status elastic_serve(struct config *serve)
{
    enum status status = STATUS_OK;
    struct coordinator *coordinator = NULL;
    struct job_record record = {0};
    struct coordinator_job *job = &record.job;
    struct config config;
    struct generation generation = {.watch = member_watch, .asked_until = member_until};
    const char *folder = serve->elastic.checkpoint;
    char options[COORDINATOR_JOB_BYTES];
    int lock = -1;
    uint64_t token;
    TRY(elastic_token(serve, &token));
    if (folder)
        TRY(durable_open(folder, token, &lock, &record));
    if (!job->summoned) {
        TRY(open_coordinator(&coordinator, serve, token, &record));
        TRY(coordinator_wait_job(coordinator, job));
    }
    memcpy(options, job->options, sizeof options);
    status = elastic_options_read(&config, serve, options);
    config.elastic.job = record.first_id;
    if (status == STATUS_OK && job->summoned) {
        /* This server joins another server's job, so it needs no coordinator. */
        log_info("server %d of the job at %s", job->index, job->address);
        coordinator_close(&coordinator);
    } else if (status == STATUS_OK) {
        status = lead(coordinator, job, &config, &generation);
    }
    /* The members of a job that has begun may have newer weights: they wait for the next start. */
    if (status != STATUS_OK && coordinator && record.generation == 0)
        coordinator_end(coordinator, status,
                        "the servers cannot serve this job; read their messages");
    TRY(status);
    TRY(member_open(
        &generation.member,
        &(struct member_options){.token = token,
                                 .address = job->address,
                                 .role = MEMBER_SERVER,
                                 .index = job->summoned ? job->index : 0,
                                 .durable = record.generation > 0,
                                 .timeout_ms = (int64_t)(serve->timeout * 1000),
                                 .startup_timeout_ms = (int64_t)(serve->startup_timeout * 1000)}));
    TRY(serve_all(&config, &generation, &record));
    if (folder) { /* the first server waits for the LEAVE of all others */
        durable_remove(folder);
        member_leave(generation.member, &(struct member_place){0});
    }
out:
    member_close(&generation.member);
    coordinator_close(&coordinator);
    generation_fini(&generation);
    if (lock >= 0)
        close(lock);
    return status;
}
