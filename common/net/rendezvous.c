/* How ranks meet. The first part is for all ranks but 0: they find rank 0 and wait for its answer.
 * The second part is rank 0's. */
#include "common/net/rendezvous.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/descriptors.h"
#include "common/base/text.h"
#include "common/net/address.h"

enum status rendezvous_parse(const char *text, struct rendezvous *rendezvous)
{
    if (!address_parse(text, rendezvous->host, sizeof rendezvous->host, &rendezvous->port))
        return FAIL(
            STATUS_USAGE,
            "--rendezvous: found '%s', expected tcp://HOST:PORT, where HOST is rank 0's name or "
            "address, e.g. tcp://10.0.0.1:29500 or tcp://[fd00::1]:29500",
            text);
    if (rendezvous->port == 0)
        return FAIL(
            STATUS_USAGE,
            "--rendezvous %s: port 0 lets the system choose a port that the other ranks cannot "
            "know; name one from 1 to 65535 that is free on HOST",
            text);
    return STATUS_OK;
}

/* A rank's attempts to find rank 0. */
struct visit {
    const struct rendezvous *rendezvous;
    int64_t answer_ms;
    int *socket;
    struct rendezvous_answer answer;
};

/* Connects, says hello and waits for the answer. Returns 0 (then the socket and the answer are set)
 * or an errno value. EPROTO: psring does not listen there. ENOMSG: no answer has arrived. */
static int ask(void *self, const union address *address, int64_t connect_ms)
{
    struct visit *visit = self;
    const struct rendezvous *r = visit->rendezvous;
    struct hello hello = hello_from(r->options->rank, r->options->size, r->options->token);
    struct control_input input = {.job = r->options->token};
    int error = stream_connect(address, connect_ms, visit->socket);
    bool connected = error == 0;
    visit->answer = (struct rendezvous_answer){.text = ""};
    if (error == 0)
        error = control_send(*visit->socket, &hello, sizeof hello, NULL, 0, visit->answer_ms);
    if (error == 0) /* the text's last byte stays 0 */
        error =
            control_receive(*visit->socket, &visit->answer, sizeof visit->answer - 1, &input,
                            visit->answer_ms, r->options->cancelled, r->options->cancel_context);
    if (error == 0 && visit->answer.head.type != CONTROL_ANSWER)
        error = EPROTO; /* psring serve, for example */
    if (error != 0)
        stream_close(visit->socket);
    return connected && error == ETIMEDOUT ? ENOMSG : error;
}

/* No rank 0 has answered: logs the result of the last attempt. */
static enum status nobody_there(const struct rendezvous *rendezvous, int error, const char *unknown)
{
    char met[160], place[RENDEZVOUS_HOST_BYTES + 16];
    address_format(rendezvous->host, rendezvous->port, place, sizeof place);
    if (unknown)
        snprintf(met, sizeof met, "the host's name is unknown here (%s)", unknown);
    else if (error == ECONNRESET)
        snprintf(met, sizeof met,
                 "the program there closes the connection, as with --secure on one side only");
    else if (error == EKEYREJECTED)
        snprintf(met, sizeof met, "a program there had other keys than --secure names here");
    else if (error == EPROTO)
        snprintf(met, sizeof met, "the program there is not psring");
    else if (error == EPROTONOSUPPORT)
        snprintf(met, sizeof met,
                 "the program there is another version of psring, but all ranks need one build");
    else if (error == ENOMSG)
        snprintf(met, sizeof met, "the program there does not answer");
    else if (error == EMFILE || error == ENFILE)
        snprintf(met, sizeof met, "%s: %s", strerror(error), descriptors_advice(error, ""));
    else
        snprintf(met, sizeof met, "nothing listens there that this host can reach (%s)",
                 strerror(error));
    return FAIL(STATUS_TIMEOUT,
                "rendezvous: rank %d found no rank 0 at %s within %g s: %s; start rank 0 on "
                "that host, with the same --rendezvous and at about the same time",
                rendezvous->options->rank, place,
                (double)rendezvous->options->startup_timeout_ms / 1000, met);
}

/* Ranks are started in any order, so this rank tries until rank 0 listens. */
static enum status join(const struct rendezvous *r, int *socket)
{
    enum { GRACE_MS = 5000 };
    const char *unknown;
    /* Rank 0's time-out began before this rank could connect, so its answer comes first. */
    struct visit visit = {
        .rendezvous = r,
        .answer_ms =
            r->options->startup_timeout_ms > 0 ? r->options->startup_timeout_ms + GRACE_MS : 0,
        .socket = socket,
    };
    int error =
        control_search(&(struct control_search){.host = r->host,
                                                .port = r->port,
                                                .timeout_ms = r->options->startup_timeout_ms,
                                                .cancelled = r->options->cancelled,
                                                .context = r->options->cancel_context,
                                                .attempt = ask,
                                                .self = &visit},
                       &unknown);
    if (error == ECANCELED)
        return STATUS_TRANSPORT;
    if (error != 0 || unknown)
        return nobody_there(r, error, unknown);
    if (visit.answer.head.value != STATUS_OK)
        log_error("%s", visit.answer.text);
    return (enum status)visit.answer.head.value;
}

/*
 * Rank 0's part of the rendezvous. It listens until every other rank has sent its hello, and checks
 * that they match. Then it answers all: begin, or the reason against it.
 */

enum {
    STAY_MS = 3000, /* after an error: for ranks that are just starting */
    TELL_MS = 1000, /* for sending one answer; it is short, so the system takes it at once */
};

struct gathering {
    const struct rendezvous *rendezvous;
    struct listener listener;
    int *sockets;                        /* by rank */
    int there;                           /* connected ranks, including rank 0 */
    char hosts[][RENDEZVOUS_NAME_BYTES]; /* by rank; "": not connected yet */
};

/* -------- errors ------------------------------------------------------------------------------ */

/*
 * Writes the reason why a rank that says hello cannot take part. False: there is none. `hosts`: by
 * rank, the hosts of the connected ranks, "" for the missing ones.
 */
static bool objection(const struct rendezvous *rendezvous, const struct hello *hello,
                      char (*hosts)[RENDEZVOUS_NAME_BYTES], char *text, size_t size)
{
    int size_here = rendezvous->options->size, rank = hello->head.value;
    if (hello->head.protocol != CONTROL_PROTOCOL)
        snprintf(
            text, size,
            "rendezvous: rank %d speaks version %u of the start-up protocol, rank 0 (psring %s "
            "on %s) version %d; start all ranks from one build of psring",
            rank, hello->head.protocol, PSRING_VERSION, rendezvous->name, CONTROL_PROTOCOL);
    else if (hello->head.job != rendezvous->options->token)
        snprintf(text, size,
                 "rendezvous: rank %d on %s belongs to another job than rank 0 on %s; end the "
                 "processes of an earlier run, or give all ranks one --token (PSRING_TOKEN)",
                 rank, hello->host, rendezvous->name);
    else if (strcmp(hello->version, PSRING_VERSION) != 0)
        snprintf(text, size,
                 "rendezvous: rank %d on %s is psring %s, rank 0 on %s is psring %s; start all "
                 "ranks from one build of psring",
                 rank, hello->host, hello->version, rendezvous->name, PSRING_VERSION);
    else if (hello->world_size != size_here)
        snprintf(text, size,
                 "rendezvous: rank %d on %s was started for %d ranks, rank 0 on %s for %d; give "
                 "all the same --world-size (WORLD_SIZE)",
                 rank, hello->host, hello->world_size, rendezvous->name, size_here);
    else if (rank < 0 || rank >= size_here)
        snprintf(
            text, size,
            "rendezvous: found rank %d on %s, expected 0 to %d with --world-size %d; correct its "
            "--rank (RANK), or start all with a larger --world-size",
            rank, hello->host, size_here - 1, size_here);
    else if (hosts[rank][0])
        snprintf(text, size,
                 "rendezvous: two processes say that they are rank %d, on %s and on %s; give each "
                 "process its own --rank (RANK), 0 to %d",
                 rank, hosts[rank], hello->host, size_here - 1);
    else
        return false;
    return true;
}

void rendezvous_missing(char (*hosts)[RENDEZVOUS_NAME_BYTES], int world_size, char *text,
                        size_t size)
{
    int missing = 0, named = 0;
    struct line line = line_in(text, size);
    for (int rank = 0; rank < world_size; rank++)
        missing += !hosts[rank][0];
    line_add(&line, missing == 1 ? "rank" : "ranks");
    for (int rank = 0; rank < world_size; rank++) {
        if (hosts[rank][0])
            continue;
        if (line.used + 40 > size) { /* space for the end of the sentence */
            line_add(&line, " and %d more", missing - named);
            return;
        }
        const char *before = named == 0 ? "" : named == missing - 1 ? " and" : ",";
        line_add(&line, "%s %d", before, rank);
        named++;
    }
}

/* -------- answers ----------------------------------------------------------------------------- */

int rendezvous_tell(int socket, uint64_t job, enum status status, const char *text)
{
    struct control_head head = {.type = CONTROL_ANSWER, .value = status, .job = job};
    return control_send(socket, &head, sizeof head, text, strlen(text), TELL_MS);
}

/* A rank that cannot get the answer sees the connection close. */
static void refuse(int socket, uint64_t job, enum status status, const char *text)
{
    rendezvous_tell(socket, job, status, text);
    stream_close(&socket);
}

/* For a rank with version 1 of the protocol. */
static void answer_old(int socket, enum status status, const char *text)
{
    struct {
        uint64_t magic;
        int32_t status;
        uint32_t unused;
        char text[RENDEZVOUS_TEXT_BYTES];
    } old = {.magic = CONTROL_MAGIC, .status = status};
    snprintf(old.text, sizeof old.text, "%s", text);
    stream_send(socket, &old, sizeof old, TELL_MS);
}

/* The start has failed: logs it, and sends it to every rank that has connected. With `stay` also to
 * every rank that connects within STAY_MS. */
static enum status end_start(struct gathering *g, enum status status, const char *text, bool stay)
{
    int64_t deadline_ns = stream_deadline_ns(STAY_MS);
    struct hello hello;
    int socket;
    log_error("%s", text);
    for (int rank = 1; rank < g->rendezvous->options->size; rank++) {
        if (g->sockets[rank] >= 0)
            refuse(g->sockets[rank], g->rendezvous->options->token, status, text);
        g->sockets[rank] = -1;
    }
    while (stay && g->there < g->rendezvous->options->size &&
           listener_wait(&g->listener, deadline_ns, NULL, 0, &hello, &socket, NULL) ==
               LISTENER_HELLO) {
        refuse(socket, hello.head.job, status, text);
        int rank = hello.head.value;
        if (rank > 0 && rank < g->rendezvous->options->size && !g->hosts[rank][0]) {
            snprintf(g->hosts[rank], sizeof g->hosts[rank], "told");
            g->there++;
        }
    }
    return status;
}

/* -------- waiting for the other ranks --------------------------------------------------------- */

static enum status time_is_up(struct gathering *g)
{
    const struct rendezvous *r = g->rendezvous;
    char missing[160], text[RENDEZVOUS_TEXT_BYTES], place[RENDEZVOUS_HOST_BYTES + 16];
    address_format(r->host, r->port, place, sizeof place);
    rendezvous_missing(g->hosts, r->options->size, missing, sizeof missing);
    snprintf(text, sizeof text,
             "rendezvous: rank 0 on %s gave up: %s of %d did not connect to %.120s within %g s; "
             "start them with that --rendezvous, check that their hosts can reach it, or set a "
             "larger --startup-timeout",
             r->name, missing, r->options->size, place,
             (double)r->options->startup_timeout_ms / 1000);
    return end_start(g, STATUS_TIMEOUT, text, false);
}

static enum status has_left(struct gathering *g, int rank)
{
    char text[RENDEZVOUS_TEXT_BYTES];
    snprintf(text, sizeof text,
             "rendezvous: rank %d on %s has ended before all %d ranks were there; see its own "
             "message, then start all again",
             rank, g->hosts[rank], g->rendezvous->options->size);
    stream_close(&g->sockets[rank]);
    return end_start(g, STATUS_TRANSPORT, text, true);
}

static enum status admit(struct gathering *g, const struct hello *hello, int socket)
{
    char text[RENDEZVOUS_TEXT_BYTES];
    if (hello->head.value == HELLO_NEWCOMER) { /* too early: it comes again */
        stream_close(&socket);
        return STATUS_OK;
    }
    if (objection(g->rendezvous, hello, g->hosts, text, sizeof text)) {
        if (hello->head.protocol < CONTROL_PROTOCOL)
            answer_old(socket, STATUS_USAGE, text);
        refuse(socket, hello->head.job, STATUS_USAGE, text);
        /* One of another job. With another version its job is 0, here unknown. The others start. */
        if (hello->head.job != g->rendezvous->options->token)
            return STATUS_OK;
        return end_start(g, STATUS_USAGE, text, true);
    }
    int rank = hello->head.value;
    g->sockets[rank] = socket;
    snprintf(g->hosts[rank], sizeof g->hosts[rank], "%s", hello->host[0] ? hello->host : "unknown");
    g->there++;
    return STATUS_OK;
}

static enum status begin(struct gathering *g)
{
    for (int rank = 1; rank < g->rendezvous->options->size; rank++) {
        if (rendezvous_tell(g->sockets[rank], g->rendezvous->options->token, STATUS_OK, "") != 0)
            return has_left(g, rank);
    }
    return STATUS_OK;
}

static enum status wait_for_all(struct gathering *g)
{
    enum status status = STATUS_OK;
    const struct rendezvous *r = g->rendezvous;
    int64_t deadline_ns = stream_deadline_ns(r->options->startup_timeout_ms);
    while (g->there < r->options->size) {
        struct hello hello;
        int socket;
        size_t rank;
        switch (listener_wait(&g->listener, deadline_ns, g->sockets, (size_t)r->options->size,
                              &hello, &socket, &rank)) {
        case LISTENER_HELLO:
            TRY(admit(g, &hello, socket));
            break;
        case LISTENER_WATCHED: /* no rank sends anything at this point, so it has closed */
            return has_left(g, (int)rank);
        case LISTENER_TIMEOUT:
            return time_is_up(g);
        case LISTENER_CANCELLED:
            return STATUS_TRANSPORT;
        }
    }
    return begin(g);
out:
    return status;
}

/* -------- the port ---------------------------------------------------------------------------- */

/* The port is taken: asks the program that has it. 0: another process claims to be rank 0; *found
 * is its answer. ECONNREFUSED: no program listens there. */
static int ask_holder(const struct rendezvous *r, struct rendezvous_answer *found)
{
    union address address;
    const char *why;
    int socket = -1, addresses;
    struct visit visit = {.rendezvous = r, .answer_ms = HELLO_WAIT_MS, .socket = &socket};
    if (!address_resolve(r->host, r->port, 0, &address, &addresses, &why))
        return EADDRNOTAVAIL;
    int error = ask(&visit, &address, TELL_MS);
    *found = visit.answer;
    stream_close(&socket);
    return error == 0 && found->head.value == STATUS_OK ? EPROTO : error;
}

static enum status open_port(struct gathering *g)
{
    enum { TRIES = 10, PAUSE_MS = 100 };
    const struct rendezvous *r = g->rendezvous;
    union address address;
    struct rendezvous_answer found;
    const char *why = NULL;
    int error = EADDRINUSE, holder = ECONNREFUSED;
    if (r->options->listening > 0)
        return status_from_errno(
            listener_adopt(&g->listener, r->options->listening, (size_t)r->options->size));
    if (!address_to_listen_at(r->host, r->port, &address, &why))
        return FAIL(
            STATUS_USAGE,
            "rendezvous: '%s', the host of rank 0, is unknown here (%s); correct --rendezvous "
            "(MASTER_ADDR), which takes a name or an address",
            r->host, why);
    /* Two reasons to try again: a rank that has just tried to connect may have been given this port
     * as its own, and a run that ends closes its incoming connections. */
    for (int i = 0;
         i < TRIES && error == EADDRINUSE && (holder == ECONNREFUSED || holder == ECONNRESET);
         i++) {
        if (i > 0)
            clock_sleep_until_ns(clock_now_ns() + PAUSE_MS * NS_PER_MS);
        error = listener_open(&g->listener, &address, (size_t)r->options->size);
        if (error == EADDRINUSE)
            holder = ask_holder(r, &found);
    }
    if (error == EADDRINUSE && holder == 0) {
        log_error("%s", found.text);
        return (enum status)found.head.value;
    }
    if (error == 0)
        return STATUS_OK;
    char place[RENDEZVOUS_HOST_BYTES + 16];
    address_format(r->host, r->port, place, sizeof place);
    return FAIL(status_from_errno(error), "rendezvous: rank 0 cannot listen at %s: %s; %s", place,
                strerror(error),
                error == EADDRNOTAVAIL ? "HOST must be the host of rank 0"
                : error == EADDRINUSE  ? "another program has that port; choose another port"
                                       : "choose another port");
}

static enum status gather(const struct rendezvous *rendezvous, int *sockets)
{
    enum status status;
    size_t size = (size_t)rendezvous->options->size;
    struct gathering *g = calloc(1, sizeof *g + size * sizeof *g->hosts);
    if (!g)
        return FAIL(STATUS_NO_MEMORY, "rendezvous: no memory for %zu ranks", size);
    g->listener.socket = -1;
    g->rendezvous = rendezvous;
    g->sockets = sockets;
    g->there = 1;
    snprintf(g->hosts[0], sizeof g->hosts[0], "%s", rendezvous->name);
    if (size > 1)
        TRY(open_port(g));
    g->listener.cancelled = rendezvous->options->cancelled;
    g->listener.context = rendezvous->options->cancel_context;
    TRY(wait_for_all(g));
out:
    listener_close(&g->listener);
    free(g);
    return status;
}

enum status rendezvous_meet(const struct rendezvous *rendezvous, int *sockets)
{
    for (int rank = 0; rank < rendezvous->options->size; rank++)
        sockets[rank] = -1;
    if (rendezvous->options->size == 1 && rendezvous->options->rank != 0)
        return FAIL(
            STATUS_USAGE,
            "rendezvous: found rank %d, expected 0 with --world-size 1; correct --rank (RANK) or "
            "--world-size (WORLD_SIZE)",
            rendezvous->options->rank);
    return rendezvous->options->rank == 0 ? gather(rendezvous, sockets)
                                          : join(rendezvous, &sockets[0]);
}
