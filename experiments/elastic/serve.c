#include <stdio.h>
#include <string.h>

#include "common/net/address.h"
#include "experiments/elastic/coordinator.h"
#include "experiments/elastic/elastic.h"

/* This server leads its own job: summons the other servers. */
static enum status lead(struct coordinator *coordinator, const struct coordinator_job *job,
                        const struct config *config)
{
    enum status status = STATUS_OK;
    char address[300];
    coordinator_set_servers(coordinator, (int)config->servers);
    for (int i = 1; config_server(config, i, address, sizeof address); i++)
        TRY(coordinator_summon(coordinator, address, i, job->options,
                               (int64_t)(config->startup_timeout * 1000)));
out:
    return status;
}

static void warn_of_network(const struct coordinator *coordinator)
{
    if (!address_is_loopback(&coordinator->listener.address))
        log_warn("--listen %s: other hosts can connect, and a host that reads the traffic can "
                 "read the token and the weights, and join; listen only in a network that you "
                 "trust",
                 coordinator->options.address);
}

static enum status serve_all(const struct config *config, struct generation *generation)
{
    enum status status = STATUS_OK;
    struct member_place place = {.step = MEMBER_NO_STEP};
    for (;;) {
        struct member_generation next;
        TRY(member_meet(generation->member, &place, NULL, &next));
        place.ended = elastic_generation(config, generation, &next);
        if (!elastic_goes_on(place.ended))
            return place.ended;
    }
out:
    return status == STATUS_STOPPED ? STATUS_OK : status;
}

enum status elastic_serve(struct config *serve)
{
    enum status status = STATUS_OK;
    struct coordinator *coordinator = NULL;
    struct coordinator_job job;
    struct config config;
    struct generation generation = {.watch = member_watch, .asked_until = member_until};
    int64_t timeout_ms = (int64_t)(serve->timeout * 1000);
    int64_t stall_ms = (int64_t)(serve->stall_warning * 1000);
    int64_t startup_ms = (int64_t)(serve->startup_timeout * 1000);
    int first =
        (int)(serve->elastic.workers > serve->elastic.min_workers ? serve->elastic.workers
                                                                  : serve->elastic.min_workers);
    char options[COORDINATOR_JOB_BYTES];
    uint64_t token;
    TRY(elastic_token(serve, &token));
    TRY(coordinator_open(
        &coordinator, &(struct coordinator_options){.token = token,
                                                    .address = serve->elastic.listen,
                                                    .workers_first = first,
                                                    .workers_min = (int)serve->elastic.min_workers,
                                                    .timeout_ms = timeout_ms,
                                                    .stall_warning_ms = stall_ms,
                                                    .startup_timeout_ms = startup_ms}));
    warn_of_network(coordinator);
    printf("listens at %s; start workers: psring train --backend ps --join %s ...\n",
           serve->elastic.listen, serve->elastic.listen);
    fflush(stdout);
    TRY(coordinator_wait_job(coordinator, &job));
    memcpy(options, job.options, sizeof options);
    status = elastic_options_read(&config, serve, options);
    if (status == STATUS_OK && job.summoned) {
        /* This server joins another server's job, so it needs no coordinator. */
        log_info("server %d of the job at %s", job.index, job.address);
        coordinator_close(&coordinator);
    } else if (status == STATUS_OK) {
        status = lead(coordinator, &job, &config);
    }
    if (status != STATUS_OK && coordinator)
        coordinator_end(coordinator, status,
                        "the servers cannot serve this job; read their messages");
    TRY(status);
    TRY(member_open(&generation.member,
                    &(struct member_options){.token = token,
                                             .address = job.address,
                                             .role = MEMBER_SERVER,
                                             .index = job.summoned ? job.index : 0,
                                             .timeout_ms = timeout_ms,
                                             .startup_timeout_ms = startup_ms}));
    status = serve_all(&config, &generation);
out:
    member_close(&generation.member);
    coordinator_close(&coordinator);
    generation_fini(&generation);
    return status;
}
