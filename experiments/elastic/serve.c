#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/net/address.h"
#include "common/net/control.h"
#include "common/net/secure.h"
#include "experiments/elastic/coordinator.h"
#include "experiments/elastic/elastic.h"

/* -------- other servers ----------------------------------------------------------------------- */

/* Whether the job needs server `index`. In a durable job it may join without. One that has files
 * does, also after the end. */
static bool lacks(const struct coordinator *c, int index)
{
    return !c->closing && !c->ended && !coordinator_server(c, index);
}

/* `context` is a struct other_server. */
static bool needs_no_summons(void *context)
{
    const struct other_server *other = context;
    struct coordinator *c = other->coordinator;
    monitor_enter(&c->monitor);
    bool needless = !lacks(c, other->index);
    monitor_leave(&c->monitor);
    return needless;
}

/* Waits for another server's END, its answer to SUMMON. *why: its text, or what is wrong. */
static enum status hear_answer(int socket, struct membership_reader *reader,
                               struct other_server *other, const char **why)
{
    int64_t deadline_ns = stream_deadline_ns(other->coordinator->options.startup_timeout_ms);
    enum control_read got;
    *why = "the server does not answer";
    while ((got = membership_read(reader, socket)) != CONTROL_CLOSED) {
        if (got == CONTROL_MESSAGE && reader->frame.head.type == MEMBERSHIP_END) {
            *why = reader->text;
            return (enum status)reader->frame.head.value;
        }
        if (got == CONTROL_NOTHING &&
            stream_wait(socket, POLLIN, deadline_ns, needs_no_summons, other) != 0)
            return STATUS_TIMEOUT;
    }
    *why = secure_error(socket) == EKEYREJECTED
               ? "the server has other keys; give all servers and workers the same --secure folder"
               : "the server has ended, or only one of the two uses --secure";
    return STATUS_TRANSPORT;
}

/* `timeout_ms` limits the time to reach the server (0: no limit). STATUS_STOPPED: it needs no
 * summons. */
static enum status summon(struct other_server *other, const char *job, int64_t timeout_ms,
                          struct membership_reader *reader, const char **why)
{
    struct coordinator *c = other->coordinator;
    struct membership_frame frame = {.head = {.type = MEMBERSHIP_SUMMON, .job = c->own_job},
                                     .role = MEMBER_SERVER,
                                     .index = other->index,
                                     .port = (uint32_t)address_port(&c->listener.address),
                                     .id = c->first_id};
    int socket;
    *why = "no server listens there";
    enum status status = membership_connect(other->address, c->options.token, timeout_ms,
                                            needs_no_summons, other, &socket);
    if (status == STATUS_OK) {
        monitor_enter(&c->monitor);
        frame.head.group = job_is_durable(c) ? c->generation : 0;
        monitor_leave(&c->monitor);
        membership_send(socket, frame, job);
        status = hear_answer(socket, reader, other, why);
    }
    stream_close(&socket);
    return status != STATUS_OK && needs_no_summons(other) ? STATUS_STOPPED : status;
}

enum status coordinator_summon(struct coordinator *c, const char *address, int index,
                               const char *job)
{
    char text[MEMBERSHIP_TEXT_BYTES];
    const char *why;
    struct membership_reader reader = {0};
    struct other_server other = {.coordinator = c, .index = index};
    snprintf(other.address, sizeof other.address, "%s", address);
    enum status status = summon(&other, job, c->options.startup_timeout_ms, &reader, &why);
    if (status == STATUS_OK || status == STATUS_STOPPED)
        return STATUS_OK;
    snprintf(text, sizeof text, "server %d, %s, does not take part: %.500s", index, address, why);
    log_error("%s", text);
    coordinator_end(c, status, text);
    return status;
}

/* Waits until the job lacks this server. False: the coordinator closes. */
static bool await_lacking(const struct other_server *other)
{
    struct coordinator *c = other->coordinator;
    monitor_enter(&c->monitor);
    while (!c->closing && !lacks(c, other->index))
        monitor_wait(&c->monitor);
    bool lacking = !c->closing;
    monitor_leave(&c->monitor);
    return lacking;
}

static void *summon_lacking(void *argument)
{
    enum { PATIENCE_MS = 1000, LOOK_MS = 20 }; /* time to join without a summons, or after one */
    struct other_server *other = argument;
    bool warned = false;
    while (await_lacking(other)) {
        const char *why;
        struct membership_reader reader = {0};
        int64_t until_ns = clock_now_ns() + PATIENCE_MS * NS_PER_MS;
        while (clock_now_ns() < until_ns && !needs_no_summons(other))
            clock_sleep_until_ns(clock_now_ns() + LOOK_MS * NS_PER_MS);
        if (needs_no_summons(other))
            continue;
        enum status status = summon(other, other->coordinator->job.options, 0, &reader, &why);
        if (status == STATUS_OK)
            log_info("summoned server %d, %s, which did not know its job", other->index,
                     other->address);
        if (status == STATUS_USAGE && !warned)
            log_warn("server %d, %s, does not take part: %s", other->index, other->address, why);
        warned = warned || status == STATUS_USAGE;
    }
    return NULL;
}

enum status coordinator_summon_lacking(struct coordinator *c, const struct config *config)
{
    enum status status = STATUS_OK;
    struct other_server other = {.coordinator = c};
    int count = 0;
    while (config_server(config, count + 1, other.address, sizeof other.address))
        count++;
    c->others = calloc((size_t)count + 1, sizeof *c->others);
    if (!c->others)
        return FAIL(STATUS_NO_MEMORY, "no memory for %d servers", count);
    for (; c->other_count < count; c->other_count++) {
        c->others[c->other_count] = other;
        struct other_server *next = &c->others[c->other_count];
        next->index = c->other_count + 1;
        config_server(config, next->index, next->address, sizeof next->address);
        TRY(thread_start(&next->thread, "psring-summons", summon_lacking, next));
    }
out:
    return status;
}

/* -------- serving ----------------------------------------------------------------------------- */

/* This server leads its own job. It reads the state of a job that continues, and summons the other
 * servers. Those of a job that continues have the time that its workers wait. */
static enum status lead(struct coordinator *coordinator, const struct job_record *record,
                        const struct config *config, struct generation *generation)
{
    enum status status = STATUS_OK;
    char address[300];
    if (config->elastic.checkpoint && record->done == 0)
        TRY(durable_load_state(config, generation));
    coordinator_set_servers(coordinator, (int)config->servers);
    for (int i = 1; record->generation == 0 && config_server(config, i, address, sizeof address);
         i++)
        TRY(coordinator_summon(coordinator, address, i, record->job.options));
    TRY(coordinator_summon_lacking(coordinator, config));
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

/* The first server's record is the coordinator's. Any other server of a durable job writes one once
 * the job has begun, so that it finds the coordinator when it is started again. */
static enum status record_begun(const struct config *config, uint32_t generation,
                                struct job_record *record)
{
    if (!record->job.summoned || record->generation > 0 || generation == 0)
        return STATUS_OK;
    record->generation = generation;
    return job_save(config->elastic.checkpoint, record);
}

static enum status serve_all(const struct config *config, struct generation *generation,
                             struct job_record *record)
{
    enum status status = STATUS_OK, ended = STATUS_OK;
    for (;;) {
        struct member_place place = elastic_place(config, generation, ended);
        struct member_generation next;
        TRY(member_meet(generation->member, &place, NULL, &next));
        if (next.durable)
            TRY(record_begun(config, next.number, record));
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
        coordinator_wait_job(coordinator, job);
    }
    memcpy(options, job->options, sizeof options);
    status = elastic_options_read(&config, serve, options);
    config.elastic.job = record.first_id;
    if (status == STATUS_OK && job->summoned) {
        /* This server joins another server's job, so it needs no coordinator. */
        log_info("server %d of the job at %s", job->index, job->address);
        if (record.generation == 0)
            record.first_id = job->first_id; /* for its record */
        coordinator_close(&coordinator);
        if (folder)
            status = record_begun(&config, job->generation, &record);
    } else if (status == STATUS_OK) {
        status = lead(coordinator, &record, &config, &generation);
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
                                 .first_id = record.first_id,
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
