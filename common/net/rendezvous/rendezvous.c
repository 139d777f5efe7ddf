/* The part of all ranks but 0: finding rank 0, and being told to begin. Rank 0's:
 * gather.c. */
#include "common/net/rendezvous/rendezvous.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/descriptors.h"
#include "common/net/rendezvous/rendezvous_impl.h"
#include "common/net/address.h"
#include "common/net/stream.h"

_Static_assert(sizeof(struct answer) == 512, "it travels as it lies in memory");

enum status rendezvous_parse(const char *text, struct rendezvous *rendezvous)
{
    if (!address_parse(text, rendezvous->host, sizeof rendezvous->host, &rendezvous->port)) {
        log_error(
            "--rendezvous: found '%s', expected tcp://HOST:PORT, where HOST is rank 0's name or "
            "address, e.g. tcp://10.0.0.1:29500 or tcp://[fd00::1]:29500",
            text);
        return STATUS_USAGE;
    }
    if (rendezvous->port == 0) {
        log_error("--rendezvous %s: the other ranks could not know which port the system would "
                  "choose for 0; name one from 1 to 65535 that is free on HOST",
                  text);
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

bool rendezvous_given_up(const struct rendezvous *rendezvous)
{
    return rendezvous->give_up && rendezvous->give_up(rendezvous->give_up_context);
}

struct hello rendezvous_hello(const struct rendezvous *rendezvous)
{
    struct hello hello = {
        .magic = HELLO_MAGIC,
        .protocol = HELLO_PROTOCOL,
        .rank = rendezvous->rank,
        .world_size = rendezvous->world_size,
        .run_id = rendezvous->token,
        .version = PSRING_VERSION,
    };
    snprintf(hello.host, sizeof hello.host, "%s", rendezvous->name);
    return hello;
}

/* 0: something has come. */
static int await_answer(const struct rendezvous *rendezvous, int socket, int64_t timeout_ms)
{
    struct pollfd coming = {.fd = socket, .events = POLLIN};
    int64_t begun_ns = clock_now_ns();
    while (rendezvous->give_up) {
        int ready = poll(&coming, 1, RENDEZVOUS_LOOK_MS);
        if (ready > 0 || (ready < 0 && errno != EINTR))
            break;
        if (rendezvous_given_up(rendezvous))
            return ECANCELED;
        if (timeout_ms > 0 && clock_now_ns() - begun_ns >= timeout_ms * NS_PER_MS)
            return ETIMEDOUT;
    }
    return 0;
}

int rendezvous_ask(const struct rendezvous *rendezvous, const union address *address,
                   int64_t connect_ms, int64_t answer_ms, int *socket, struct answer *answer)
{
    struct hello hello = rendezvous_hello(rendezvous);
    int error = stream_connect(address, connect_ms, socket);
    bool connected = error == 0;
    if (error == 0)
        error = stream_send(*socket, &hello, sizeof hello, answer_ms);
    if (error == 0)
        error = await_answer(rendezvous, *socket, answer_ms);
    if (error == 0)
        error = stream_receive(*socket, answer, sizeof answer->magic, answer_ms);
    if (error == 0 && answer->magic != HELLO_MAGIC)
        error = EPROTO;
    if (error == 0)
        error = stream_receive(*socket, (unsigned char *)answer + sizeof answer->magic,
                               sizeof *answer - sizeof answer->magic, answer_ms);
    if (error != 0)
        stream_close(socket);
    answer->text[sizeof answer->text - 1] = '\0';
    return connected && error == ETIMEDOUT ? ENOMSG : error;
}

/* Nobody has answered: says what the last attempt met. */
static enum status nobody_there(const struct rendezvous *rendezvous, int error, const char *unknown)
{
    char met[160], place[RENDEZVOUS_HOST_BYTES + 16];
    address_format(rendezvous->host, rendezvous->port, place, sizeof place);
    if (unknown)
        snprintf(met, sizeof met, "the host's name is unknown here (%s)", unknown);
    else if (error == ECONNRESET)
        snprintf(met, sizeof met, "what listens there closes the connection");
    else if (error == EPROTO)
        snprintf(met, sizeof met, "what listens there is not psring");
    else if (error == ENOMSG)
        snprintf(met, sizeof met, "what listens there does not answer");
    else if (error == EMFILE || error == ENFILE)
        snprintf(met, sizeof met, "%s: %s", strerror(error), descriptors_advice(error, ""));
    else
        snprintf(met, sizeof met, "nothing listens there that this host can reach (%s)",
                 strerror(error));
    log_error("rendezvous: rank %d found no rank 0 at %s within %g s: %s; start rank 0 on "
              "that host, with the same --rendezvous and at about the same time",
              rendezvous->rank, place, (double)rendezvous->timeout_ms / 1000, met);
    return STATUS_TIMEOUT;
}

/* Ranks are started in any order: tries until rank 0 listens. */
static enum status join(const struct rendezvous *rendezvous, int *socket)
{
    enum {
        FIRST_PAUSE_MS = 10,
        LAST_PAUSE_MS = RENDEZVOUS_LOOK_MS,
        GRACE_MS = 5000,
        TURN_MS = 3000 /* of several addresses, for one */
    };
    int turn = 0;
    int64_t deadline_ns = clock_now_ns() + rendezvous->timeout_ms * NS_PER_MS;
    int64_t pause_ms = FIRST_PAUSE_MS;
    /* Rank 0's time-out has begun before this rank could connect, so its answer comes first. */
    int64_t answer_ms = rendezvous->timeout_ms > 0 ? rendezvous->timeout_ms + GRACE_MS : 0;
    for (;;) {
        union address address;
        struct answer answer;
        const char *unknown = NULL;
        int error = 0, addresses = 1;
        int64_t left_ms = (deadline_ns - clock_now_ns()) / NS_PER_MS;
        int64_t connect_ms = rendezvous->timeout_ms == 0 ? 0 : left_ms > 1 ? left_ms : 1;
        bool known = address_resolve(rendezvous->host, rendezvous->port, turn++, &address,
                                     &addresses, &unknown);
        if (addresses > 1 && (connect_ms == 0 || connect_ms > TURN_MS))
            connect_ms = TURN_MS;
        if (known)
            error = rendezvous_ask(rendezvous, &address, connect_ms, answer_ms, socket, &answer);
        if (known && error == 0) {
            if (answer.status == STATUS_OK)
                return STATUS_OK;
            log_error("%s", answer.text);
            return (enum status)answer.status;
        }
        if (rendezvous_given_up(rendezvous))
            return STATUS_TRANSPORT;
        if (rendezvous->timeout_ms > 0 && clock_now_ns() + pause_ms * NS_PER_MS >= deadline_ns)
            return nobody_there(rendezvous, error, known ? NULL : unknown);
        if (known && turn % addresses != 0)
            continue; /* at once, so that all ranks come by the first address that works */
        clock_sleep_until_ns(clock_now_ns() + pause_ms * NS_PER_MS);
        pause_ms = pause_ms * 2 < LAST_PAUSE_MS ? pause_ms * 2 : LAST_PAUSE_MS;
    }
}

enum status rendezvous_meet(const struct rendezvous *rendezvous, int *sockets)
{
    for (int rank = 0; rank < rendezvous->world_size; rank++)
        sockets[rank] = -1;
    if (rendezvous->world_size == 1 && rendezvous->rank != 0) {
        log_error(
            "rendezvous: found rank %d, expected 0 with --world-size 1; correct --rank (RANK) or "
            "--world-size (WORLD_SIZE)",
            rendezvous->rank);
        return STATUS_USAGE;
    }
    return rendezvous->rank == 0 ? rendezvous_gather(rendezvous, sockets)
                                 : join(rendezvous, &sockets[0]);
}
