/*
 * Rank 0's part of the rendezvous: it listens until every other rank has introduced itself, checks
 * that they go together, and tells all to begin, or why not.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/net/rendezvous/rendezvous_impl.h"
#include "common/net/address.h"
#include "common/net/stream.h"

enum {
    STAY_MS = 3000, /* after an error: for ranks that are just being started */
    TELL_MS = 1000, /* for one answer to leave; it is short, so the system takes it at once */
    REFUSED_MOST = 64,
};

struct gathering {
    const struct rendezvous *rendezvous;
    struct listener listener;
    int *sockets;                         /* by rank */
    char (*hosts)[RENDEZVOUS_NAME_BYTES]; /* by rank; "": not there yet */
    int there;                            /* rank 0 included */
    int refused[REFUSED_MOST];            /* told why, and not yet closed */
    int refused_count;
};

/* -------- what can be wrong ------------------------------------------------------------------- */

bool rendezvous_objection(const struct rendezvous *rendezvous, const struct hello *hello,
                          char (*hosts)[RENDEZVOUS_NAME_BYTES], char *text, size_t size)
{
    int size_here = rendezvous->world_size, rank = hello->rank;
    if (hello->protocol != HELLO_PROTOCOL)
        snprintf(
            text, size,
            "rendezvous: rank %d speaks version %u of the start-up protocol, rank 0 (psring %s "
            "on %s) version %d; start all ranks from one build of psring",
            rank, hello->protocol, PSRING_VERSION, rendezvous->name, HELLO_PROTOCOL);
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
    size_t used = 0;
    for (int rank = 0; rank < world_size; rank++)
        missing += !hosts[rank][0];
    used += (size_t)snprintf(text, size, missing == 1 ? "rank" : "ranks");
    for (int rank = 0; rank < world_size; rank++) {
        if (hosts[rank][0])
            continue;
        if (used + 40 > size) { /* room for the end of the sentence */
            snprintf(text + used, size - used, " and %d more", missing - named);
            return;
        }
        used += (size_t)snprintf(text + used, size - used, "%s %d",
                                 named == 0             ? ""
                                 : named == missing - 1 ? " and"
                                                        : ",",
                                 rank);
        named++;
    }
}

/* -------- telling the others ------------------------------------------------------------------ */

static struct answer answer_of(enum status status, const char *text)
{
    struct answer answer = {.magic = HELLO_MAGIC, .status = status};
    snprintf(answer.text, sizeof answer.text, "%s", text);
    return answer;
}

static void refuse(struct gathering *g, int socket, const struct answer *answer)
{
    /* One that cannot be told finds out by the closed connection. */
    stream_send(socket, answer, sizeof *answer, TELL_MS);
    if (g->refused_count == REFUSED_MOST)
        stream_close(&g->refused[--g->refused_count]);
    g->refused[g->refused_count++] = socket;
}

/* The start has failed: says so here and to everybody who is there or comes in the next seconds. */
static enum status end_start(struct gathering *g, enum status status, const char *text, bool stay)
{
    struct answer answer = answer_of(status, text);
    int64_t deadline_ns = clock_now_ns() + STAY_MS * NS_PER_MS;
    struct hello hello;
    int socket;
    log_error("%s", text);
    for (int rank = 1; rank < g->rendezvous->world_size; rank++) {
        if (g->sockets[rank] >= 0)
            refuse(g, g->sockets[rank], &answer);
        g->sockets[rank] = -1;
    }
    while (stay && g->there < g->rendezvous->world_size &&
           listener_wait(&g->listener, deadline_ns, NULL, 0, &hello, &socket, NULL) ==
               LISTENER_HELLO) {
        refuse(g, socket, &answer);
        int rank = hello.rank;
        if (rank > 0 && rank < g->rendezvous->world_size && !g->hosts[rank][0]) {
            snprintf(g->hosts[rank], sizeof g->hosts[rank], "told");
            g->there++;
        }
    }
    return status;
}

/* -------- waiting for the others -------------------------------------------------------------- */

static enum status time_is_up(struct gathering *g)
{
    const struct rendezvous *r = g->rendezvous;
    char missing[160], text[RENDEZVOUS_TEXT_BYTES], place[RENDEZVOUS_HOST_BYTES + 16];
    address_format(r->host, r->port, place, sizeof place);
    rendezvous_missing(g->hosts, r->world_size, missing, sizeof missing);
    snprintf(text, sizeof text,
             "rendezvous: rank 0 on %s gave up: %s of %d did not come to %.120s within %g s; "
             "start them with that --rendezvous, see that their hosts can reach it, or give a "
             "longer --startup-timeout",
             r->name, missing, r->world_size, place, (double)r->timeout_ms / 1000);
    return end_start(g, STATUS_TIMEOUT, text, false);
}

static enum status has_left(struct gathering *g, int rank)
{
    char text[RENDEZVOUS_TEXT_BYTES];
    snprintf(text, sizeof text,
             "rendezvous: rank %d on %s has ended before all %d ranks were there; see what it says "
             "itself, then start all again",
             rank, g->hosts[rank], g->rendezvous->world_size);
    stream_close(&g->sockets[rank]);
    return end_start(g, STATUS_TRANSPORT, text, true);
}

static enum status admit(struct gathering *g, const struct hello *hello, int socket)
{
    char text[RENDEZVOUS_TEXT_BYTES];
    if (hello->run_id != g->rendezvous->token) { /* the start goes on without it */
        snprintf(text, sizeof text,
                 "rendezvous: rank %d on %s belongs to another job than rank 0 on %s; end what an "
                 "earlier run has left, or give all ranks one --token (PSRING_TOKEN)",
                 hello->rank, hello->host, g->rendezvous->name);
        struct answer answer = answer_of(STATUS_USAGE, text);
        refuse(g, socket, &answer);
        return STATUS_OK;
    }
    if (rendezvous_objection(g->rendezvous, hello, g->hosts, text, sizeof text)) {
        struct answer answer = answer_of(STATUS_USAGE, text);
        refuse(g, socket, &answer);
        return end_start(g, STATUS_USAGE, text, true);
    }
    g->sockets[hello->rank] = socket;
    snprintf(g->hosts[hello->rank], sizeof g->hosts[hello->rank], "%s",
             hello->host[0] ? hello->host : "unknown");
    g->there++;
    return STATUS_OK;
}

static enum status begin(struct gathering *g)
{
    struct answer answer = answer_of(STATUS_OK, "");
    for (int rank = 1; rank < g->rendezvous->world_size; rank++) {
        if (stream_send(g->sockets[rank], &answer, sizeof answer, TELL_MS) != 0)
            return has_left(g, rank);
    }
    return STATUS_OK;
}

static enum status wait_for_all(struct gathering *g)
{
    enum status status = STATUS_OK;
    const struct rendezvous *r = g->rendezvous;
    int64_t deadline_ns = r->timeout_ms > 0 ? clock_now_ns() + r->timeout_ms * NS_PER_MS : 0;
    while (g->there < r->world_size) {
        struct hello hello;
        int socket;
        size_t rank;
        if (rendezvous_given_up(r))
            return STATUS_TRANSPORT;
        int64_t look_ns = clock_now_ns() + RENDEZVOUS_LOOK_MS * NS_PER_MS;
        bool looks = r->give_up && (deadline_ns == 0 || look_ns < deadline_ns);
        switch (listener_wait(&g->listener, looks ? look_ns : deadline_ns, g->sockets,
                              (size_t)r->world_size, &hello, &socket, &rank)) {
        case LISTENER_HELLO:
            TRY(admit(g, &hello, socket));
            break;
        case LISTENER_WATCHED: /* none of them has anything to say yet */
            return has_left(g, (int)rank);
        case LISTENER_TIMEOUT:
            if (!looks)
                return time_is_up(g);
            break;
        }
    }
    return begin(g);
out:
    return status;
}

/* -------- the port ---------------------------------------------------------------------------- */

/* The port is taken: asks who has it. 0: another process that says it is rank 0, with what it says
 * to this one; ECONNREFUSED: nobody listens there. */
static int ask_holder(const struct rendezvous *r, struct answer *answer)
{
    union address address;
    const char *why;
    int socket = -1, addresses;
    if (!address_resolve(r->host, r->port, 0, &address, &addresses, &why))
        return EADDRNOTAVAIL;
    int error = rendezvous_ask(r, &address, TELL_MS, HELLO_WAIT_MS, &socket, answer);
    stream_close(&socket);
    return error == 0 && answer->status == STATUS_OK ? EPROTO : error;
}

static enum status open_port(struct gathering *g)
{
    enum { TRIES = 10, PAUSE_MS = 100 };
    const struct rendezvous *r = g->rendezvous;
    union address address;
    struct answer answer;
    const char *why = NULL;
    int error = EADDRINUSE, holder = ECONNREFUSED;
    if (r->listening > 0)
        return status_from_errno(listener_adopt(&g->listener, r->listening, (size_t)r->world_size));
    if (!address_to_listen_at(r->host, r->port, &address, &why)) {
        log_error(
            "rendezvous: '%s', the host of rank 0, is unknown here (%s); correct --rendezvous "
            "(MASTER_ADDR), which takes a name or an address",
            r->host, why);
        return STATUS_USAGE;
    }
    /* A rank that has just tried to connect may have been given this very port to do it from; a run
     * that ends closes what has come to it. */
    for (int i = 0;
         i < TRIES && error == EADDRINUSE && (holder == ECONNREFUSED || holder == ECONNRESET);
         i++) {
        if (i > 0)
            clock_sleep_until_ns(clock_now_ns() + PAUSE_MS * NS_PER_MS);
        error = listener_open(&g->listener, &address, (size_t)r->world_size);
        if (error == EADDRINUSE)
            holder = ask_holder(r, &answer);
    }
    if (error == EADDRINUSE && holder == 0) {
        log_error("%s", answer.text);
        return (enum status)answer.status;
    }
    if (error == 0)
        return STATUS_OK;
    char place[RENDEZVOUS_HOST_BYTES + 16];
    address_format(r->host, r->port, place, sizeof place);
    log_error("rendezvous: rank 0 cannot listen at %s: %s; %s", place, strerror(error),
              error == EADDRNOTAVAIL ? "HOST is the host that rank 0 runs on"
              : error == EADDRINUSE  ? "another program has that port; choose another one"
                                     : "choose another port");
    return status_from_errno(error);
}

enum status rendezvous_gather(const struct rendezvous *rendezvous, int *sockets)
{
    enum status status;
    struct gathering *g = calloc(1, sizeof *g);
    if (g) {
        g->listener.socket = -1;
        g->hosts = calloc((size_t)rendezvous->world_size, sizeof *g->hosts);
    }
    if (!g || !g->hosts) {
        log_error("rendezvous: no memory for %d ranks", rendezvous->world_size);
        free(g);
        return STATUS_NO_MEMORY;
    }
    g->rendezvous = rendezvous;
    g->sockets = sockets;
    g->there = 1;
    snprintf(g->hosts[0], sizeof g->hosts[0], "%s", rendezvous->name);
    if (rendezvous->world_size > 1)
        TRY(open_port(g));
    TRY(wait_for_all(g));
out:
    for (int i = 0; i < g->refused_count; i++)
        stream_close(&g->refused[i]);
    listener_close(&g->listener);
    free(g->hosts);
    free(g);
    return status;
}
