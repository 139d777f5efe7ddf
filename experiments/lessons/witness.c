/*
 * Witnesses the messages of a solution of the homework, for judge.c. The solution is linked with
 * --wrap, so its calls of the transport arrive at the functions __wrap_* below. They record every
 * message. The workers are threads of one process. Most verdicts need no time-out:
 *
 *   hang      Some workers wait for messages that were not sent, and their senders also wait or
 *             have returned. This is checked whenever a worker begins to wait or returns.
 *   race      The memory of a message changes, or a receive goes into it, before the sender knows
 *             that the message is sent. The sender knows it from the transport. It also knows it
 *             from a message that the receiver sent after it had received this one (vector clocks).
 *   bounds    A send or a receive uses memory outside the vector.
 *   steps     The length of the longest chain of messages. In a chain, each worker sent its message
 *             after it had received the one before.
 */
#include "experiments/lessons/judge.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/text.h"
#include "common/comm/backend.h"

enum {
    WORKERS_MOST = 8,
    AWAITED_MOST = 16,
    TEXT_BYTES = 1000,
    MESSAGES_MOST = 50000, /* of a worker in one all-reduce */
};

enum doing { APART, COMPUTING, RECEIVING, SENDING, RETURNED };

struct awaited {
    int peer;
    uint64_t number; /* of the message, among those from the peer */
    struct chunk part;
};

struct sent {
    struct chunk part;
    uint32_t bucket;
    const char *from;
    char *copy; /* of the payload; NULL once the sender knows that it is sent */
    size_t bytes;
    uint64_t known;    /* when the sender knew that it is sent, by its clock; 0: not yet */
    uint64_t received; /* when it was received, by the receiver's clock; 0: not yet */
    uint64_t clock[WORKERS_MOST];
    int depth;      /* the length of the longest chain that ends with it */
    bool posted_to; /* a receive was posted into its memory before `known` */
};

/* The messages from one worker to another, in one all-reduce. */
struct route {
    struct sent *sent;
    size_t count, room, known, taken;
    uint64_t before; /* messages of earlier all-reduces */
};

struct receive {
    const struct transport_slot *slot;
    const char *into; /* NULL: borrowed */
    size_t bytes;
    uint64_t posted; /* time of the post, by the worker's clock */
    struct receive *next;
};

struct judged {
    int index;
    enum doing doing;
    size_t awaited_count; /* RECEIVING: from any of these */
    struct awaited awaited[AWAITED_MOST];
    const char *data; /* the vector */
    uint64_t clock[WORKERS_MOST];
    int depth;
    size_t elements, messages; /* sent in this all-reduce */
    char race[200];            /* the first one that this worker has caused; "" */
    struct transport *transport;
    struct receive *receives; /* posted and not waited for */
};

/* Global, because the wrapped functions have no argument for it. */
static struct court {
    int verdicts; /* the pipe that the judge reads */
    int workers;
    pthread_mutex_t lock; /* protects the fields below */
    bool begun;           /* the first all-reduce has begun */
    size_t count;         /* elements of the current vector */
    struct judged judged[WORKERS_MOST];
    struct route routes[WORKERS_MOST][WORKERS_MOST]; /* [from][to] */
} court;

static _Thread_local struct judged *own; /* NULL: not a worker */

/* -------- words ------------------------------------------------------------------------------- */

/* "elements 250 to 499" */
const char *part_list(struct chunk part, char text[128])
{
    if (part.count == 0)
        return "a message";
    if (part.count == 1)
        snprintf(text, 128, "element %zu", part.offset);
    else
        snprintf(text, 128, "elements %zu to %zu", part.offset, part.offset + part.count - 1);
    return text;
}

/* "worker 2", "workers 0, 1 and 3" */
const char *workers_list(unsigned mask, char text[128])
{
    struct line line = line_in(text, 128);
    int count = __builtin_popcount(mask);
    line_add(&line, count == 1 ? "worker" : "workers");
    for (int worker = 0, left = count; left > 0; worker++) {
        if (mask >> worker & 1) {
            line_add(&line, "%s%d", left == count ? " " : left == 1 ? " and " : ", ", worker);
            left--;
        }
    }
    return text;
}

/* Sends the verdict, "With W workers and N elements, ...", and ends the process. */
_Noreturn void conclude(const char *format, ...)
{
    static atomic_flag first = ATOMIC_FLAG_INIT;
    char text[TEXT_BYTES];
    va_list arguments;
    while (atomic_flag_test_and_set(&first))
        pause();
    struct line line = line_in(text, sizeof text - 1);
    line_add(&line, "wrong With %d workers", court.workers);
    if (court.begun)
        line_add(&line, " and %s element%s", COMMAS(court.count), court.count == 1 ? "" : "s");
    line_add(&line, ", ");
    size_t used = strlen(text);
    va_start(arguments, format);
    vsnprintf(text + used, sizeof text - 1 - used, format, arguments);
    va_end(arguments);
    /* NOLINTNEXTLINE(clang-analyzer-security.insecureAPI.strcpy): vsnprintf leaves a byte for it */
    strcat(text, "\n");
    ssize_t written = write(court.verdicts, text, strlen(text));
    _exit(written > 0 ? EXIT_FAILURE : WITNESS_MUTE);
}

/* The elements of the worker's vector at this memory; count 0: it is other memory. */
static struct chunk part_of_vector(const struct judged *judged, const char *memory, size_t bytes)
{
    const char *data = judged->data;
    struct chunk none = {0, 0};
    if (memory < data || memory >= data + court.count * sizeof(float))
        return none;
    return (struct chunk){(size_t)(memory - data) / sizeof(float),
                          size_divide_up(bytes, sizeof(float))};
}

static const char *memory_text(const char *memory, size_t bytes, char text[128])
{
    struct chunk part = part_of_vector(own, memory, bytes);
    return part.count > 0 ? part_list(part, text) : "memory outside the vector";
}

#define MEMORY(memory, bytes) memory_text((memory), (bytes), (char[128]){0})

/* -------- hangs ------------------------------------------------------------------------------- */

/* Messages from one worker to another so far. */
static uint64_t sent_so_far(int from, int to)
{
    return court.routes[from][to].before + court.routes[from][to].count;
}

static bool is_without_hope(const struct judged *worker, unsigned stuck)
{
    for (size_t i = 0; i < worker->awaited_count; i++) {
        const struct awaited *awaited = &worker->awaited[i];
        bool silent = court.judged[awaited->peer].doing == RETURNED;
        if (sent_so_far(awaited->peer, worker->index) > awaited->number ||
            !(silent || stuck >> awaited->peer & 1))
            return false;
    }
    return true;
}

/* Another worker, to which the peer sent the awaited elements; -1: none. */
static int misdirected(const struct awaited *awaited, int index)
{
    for (int to = 0; to < court.workers; to++) {
        const struct route *route = &court.routes[awaited->peer][to];
        for (size_t i = route->taken; to != index && i < route->count; i++) {
            if (route->sent[i].part.offset == awaited->part.offset &&
                route->sent[i].part.count == awaited->part.count)
                return to;
        }
    }
    return -1;
}

/* Called when a worker begins to wait or returns. Concludes if some workers wait for ever. */
static void look_for_hang(void)
{
    unsigned stuck = 0, next = 0;
    for (int w = 0; w < court.workers; w++)
        next |= (unsigned)(court.judged[w].doing == RECEIVING) << w;
    while (next != stuck) {
        stuck = next;
        for (int w = 0; w < court.workers; w++) {
            if (stuck >> w & 1 && !is_without_hope(&court.judged[w], stuck))
                next &= ~(1U << w);
        }
    }
    if (stuck == 0)
        return;
    int first = __builtin_ctz(stuck);
    for (int w = 0; w < court.workers; w++) { /* the cause, if a worker has returned */
        if (stuck >> w & 1 && court.judged[court.judged[w].awaited[0].peer].doing == RETURNED)
            first = w;
    }
    const struct awaited *awaited = &court.judged[first].awaited[0];
    int to = misdirected(awaited, first);
    if (to >= 0)
        conclude("worker %d waits for %s from worker %d, which sent them to worker %d", first,
                 PART(awaited->part), awaited->peer, to);
    if (court.judged[awaited->peer].doing == RETURNED)
        conclude("worker %d waits for %s from worker %d, which has returned", first,
                 PART(awaited->part), awaited->peer);
    conclude("%s wait for each other: worker %d, for example, for %s from worker %d",
             WORKERS(stuck), first, PART(awaited->part), awaited->peer);
}

/* -------- messages ---------------------------------------------------------------------------- */

static struct chunk part_of_message(const struct message *message)
{
    return (struct chunk){message->offset / sizeof(float), message->length / sizeof(float)};
}

/* The record of the message that a slot was posted for; NULL: it is not sent yet. */
static struct sent *sent_for(const struct transport_slot *slot)
{
    struct route *route = &court.routes[slot->peer][own->index];
    uint64_t at = slot->number - route->before;
    return slot->number >= route->before && at < route->count ? &route->sent[at] : NULL;
}

static bool overlap(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    return a && b && a_bytes > 0 && b_bytes > 0 && a < b + b_bytes && b < a + a_bytes;
}

/* Keeps the first race of a worker. The judge reports it after all workers have returned, unless it
 * finds a simpler mistake. */
__attribute__((format(printf, 1, 2))) static void note_race(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (own->race[0] == '\0')
        vsnprintf(own->race, sizeof own->race, format, arguments);
    va_end(arguments);
}

/* Called when the sender knows that the message is sent. Its memory must be unchanged so far. */
static void know(struct sent *sent, int to)
{
    size_t first = 0, last = sent->bytes;
    sent->known = own->clock[own->index];
    if (!sent->posted_to && sent->bytes > 0 && memcmp(sent->copy, sent->from, sent->bytes) != 0) {
        while (sent->copy[first] == sent->from[first])
            first++;
        while (sent->copy[last - 1] == sent->from[last - 1])
            last--;
        first -= first % sizeof(float);
        note_race("worker %d changed %s while it still sent them to worker %d: a race", own->index,
                  MEMORY(sent->from + first, last - first), to);
    }
    free(sent->copy);
    sent->copy = NULL;
}

/* Called when the transport has reported the messages up to number `last` to `to` as sent. The
 * number may be one of an earlier all-reduce. */
static void know_sent(int to, uint64_t last)
{
    struct route *route = &court.routes[own->index][to];
    while (route->known < route->count && route->before + route->known <= last)
        know(&route->sent[route->known++], to);
}

/* Finds sent messages by the clocks: their receiver had them before it sent a message that has
 * arrived here. */
static void know_received(void)
{
    for (int to = 0; to < court.workers; to++) {
        struct route *route = &court.routes[own->index][to];
        while (route->known < route->count && route->sent[route->known].received > 0 &&
               route->sent[route->known].received <= own->clock[to])
            know(&route->sent[route->known++], to);
    }
}

/* A call of the solution begins. */
static void enter(enum doing doing)
{
    pthread_mutex_lock(&court.lock);
    own->clock[own->index]++;
    own->doing = doing;
}

static void leave(void)
{
    own->doing = COMPUTING;
    pthread_mutex_unlock(&court.lock);
}

static void check_peer(int peer, const char *does)
{
    if (peer < 0 || peer >= court.workers)
        conclude("worker %d %s worker %d, and there are workers 0 to %d only", own->index, does,
                 peer, court.workers - 1);
    if (peer == own->index)
        conclude("worker %d %s itself", own->index, does);
}

/* Size of the pages at both ends of the vector's memory that cannot be read or written. */
enum { NEAR_BYTES = 65536 };

static void check_bounds(const char *memory, size_t bytes, const char *does)
{
    size_t all = court.count * sizeof(float);
    struct chunk part = {(size_t)(memory - own->data) / sizeof(float), bytes / sizeof(float)};
    if (bytes == 0 || memory + bytes + NEAR_BYTES < own->data ||
        memory > own->data + all + NEAR_BYTES)
        return; /* it is not the vector */
    if (memory < own->data)
        conclude("worker %d %s memory from before its vector", own->index, does);
    if (memory + bytes > own->data + all)
        conclude("worker %d %s %s, and the last element is number %zd", own->index, does,
                 PART(part), (ssize_t)court.count - 1);
}

/* Concludes after a failed call. If a wrong message came, names it and the expected one. */
static _Noreturn void conclude_failure(const char *call, enum status status)
{
    for (const struct receive *receive = own->receives; receive; receive = receive->next) {
        const struct message *expected = &receive->slot->expected;
        const struct sent *sent = sent_for(receive->slot);
        struct chunk part = part_of_message(expected);
        if (sent && expected->kind != 0 &&
            (part.offset != sent->part.offset || part.count != sent->part.count))
            conclude("worker %d expected %s from worker %d, and %s came", own->index, PART(part),
                     receive->slot->peer, PART(sent->part));
        if (sent && expected->kind != 0 && expected->bucket != sent->bucket)
            conclude("worker %d expected %s of vector %u from worker %d, and those of vector %u "
                     "came",
                     own->index, PART(part), (unsigned)expected->bucket, receive->slot->peer,
                     (unsigned)sent->bucket);
    }
    conclude("%s of worker %d failed: %s", call, own->index, status_name(status));
}

/* The transport's function has returned, which ran without the lock. */
static void resume(const char *call, enum status status)
{
    pthread_mutex_lock(&court.lock);
    if (status != STATUS_OK)
        conclude_failure(call, status);
}

/* The receive that was posted into the slot; NULL: none. */
static struct receive **find_receive(const struct transport_slot *slot)
{
    struct receive **link = &own->receives;
    while (*link && (*link)->slot != slot)
        link = &(*link)->next;
    return link;
}

static void forget(const struct transport_slot *slot)
{
    struct receive **link = find_receive(slot), *receive = *link;
    if (receive)
        *link = receive->next;
    free(receive);
}

/* Called when a message has arrived in a slot. */
static void take(const struct transport_slot *slot)
{
    const struct receive *receive = *find_receive(slot);
    struct sent *sent = sent_for(slot);
    if (!receive || !sent)
        return;
    for (int to = 0; receive->into && to < court.workers; to++) {
        const struct route *route = &court.routes[own->index][to];
        for (size_t i = 0; i < route->count; i++) {
            const struct sent *mine = &route->sent[i];
            bool before_post = mine->known > 0 && mine->known <= receive->posted;
            bool before_send = mine->received > 0 && mine->received <= sent->clock[to];
            if (!before_post && !before_send &&
                overlap(receive->into, sent->bytes, mine->from, mine->bytes))
                note_race(
                    "worker %d received into %s while it still sent them to worker %d: a race",
                    own->index, MEMORY(mine->from, mine->bytes), to);
        }
    }
    forget(slot);
    sent->received = own->clock[own->index];
    court.routes[slot->peer][own->index].taken++;
    for (int w = 0; w < court.workers; w++) {
        if (own->clock[w] < sent->clock[w])
            own->clock[w] = sent->clock[w];
    }
    own->depth = own->depth > sent->depth ? own->depth : sent->depth;
    know_received();
}

/* -------- what the solution calls instead of the transport's functions ------------------------ */

/* The linker's --wrap makes these names and calls the functions, so no header declares them.
 * NOLINTBEGIN(bugprone-reserved-identifier) */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

enum status __wrap_transport_slot_init(struct transport_slot *slot, struct transport *transport,
                                       int peer, size_t capacity)
{
    if (own) {
        pthread_mutex_lock(&court.lock);
        if (own->doing != APART || peer != own->index) /* `open` may make a slot for itself */
            check_peer(peer, "receives from");
        pthread_mutex_unlock(&court.lock);
    }
    return transport_slot_init(slot, transport, peer, capacity);
}

void __wrap_transport_slot_fini(struct transport_slot *slot, struct transport *transport)
{
    if (own) {
        pthread_mutex_lock(&court.lock);
        forget(slot);
        pthread_mutex_unlock(&court.lock);
    }
    transport_slot_fini(slot, transport);
}

enum status __wrap_transport_send(struct transport *transport, int peer,
                                  const struct message *message, const void *payload,
                                  uint64_t *ticket)
{
    if (!own)
        return transport_send(transport, peer, message, payload, ticket);
    enter(SENDING);
    check_peer(peer, "sends to");
    check_bounds(payload, message->length, "sends");
    if (message->length > court.count * sizeof(float))
        conclude("worker %d sends a message of %zu elements", own->index,
                 (size_t)message->length / sizeof(float));
    if (++own->messages > MESSAGES_MOST)
        conclude("worker %d sends messages without end: %d so far", own->index, MESSAGES_MOST);
    own->elements += message->length / sizeof(float);
    own->transport = transport;
    struct route *route = &court.routes[own->index][peer];
    void *grown =
        memory_grow(route->sent, &route->room, route->count, sizeof *route->sent, "messages");
    char *copy = malloc(message->length + 1);
    if (!grown || !copy)
        conclude("worker %d sends more messages than memory holds", own->index);
    route->sent = grown;
    struct sent *sent = &route->sent[route->count];
    *sent = (struct sent){.part = part_of_message(message),
                          .bucket = message->bucket,
                          .from = payload,
                          .copy = copy,
                          .bytes = message->length,
                          .depth = own->depth + 1};
    memcpy(copy, payload, sent->bytes);
    memcpy(sent->clock, own->clock, sizeof sent->clock);
    for (const struct receive *receive = own->receives; receive; receive = receive->next)
        sent->posted_to |= overlap(receive->into, receive->bytes, sent->from, sent->bytes);
    route->count++;
    pthread_mutex_unlock(&court.lock);
    enum status status = transport_send(transport, peer, message, payload, ticket);
    resume("transport_send", status);
    leave();
    return status;
}

bool __wrap_transport_sent(struct transport *transport, int peer, uint64_t ticket)
{
    bool sent = transport_sent(transport, peer, ticket);
    if (own && sent) {
        enter(COMPUTING);
        know_sent(peer, ticket);
        leave();
    }
    return sent;
}

enum status __wrap_transport_wait_sent(struct transport *transport, int peer, uint64_t ticket)
{
    if (!own)
        return transport_wait_sent(transport, peer, ticket);
    enter(SENDING);
    check_peer(peer, "waits for messages to");
    pthread_mutex_unlock(&court.lock);
    enum status status = transport_wait_sent(transport, peer, ticket);
    resume("transport_wait_sent", status);
    know_sent(peer, ticket);
    leave();
    return status;
}

enum status __wrap_transport_flush(struct transport *transport)
{
    if (!own)
        return transport_flush(transport);
    enter(SENDING);
    pthread_mutex_unlock(&court.lock);
    enum status status = transport_flush(transport);
    resume("transport_flush", status);
    for (int to = 0; to < court.workers; to++)
        know_sent(to, UINT64_MAX);
    leave();
    return status;
}

enum status __wrap_transport_post(struct transport *transport, struct transport_slot *slot,
                                  void *into)
{
    if (!own)
        return transport_post(transport, slot, into);
    enter(COMPUTING);
    check_peer(slot->peer, "receives from");
    size_t bytes = slot->expected.kind != 0 ? slot->expected.length : slot->capacity;
    if (into && slot->expected.kind != 0)
        check_bounds(into, bytes, "receives");
    struct receive *receive = malloc(sizeof *receive);
    CHECK(receive);
    *receive = (struct receive){.slot = slot,
                                .into = into,
                                .bytes = bytes,
                                .posted = own->clock[own->index],
                                .next = own->receives};
    own->receives = receive;
    for (int to = 0; to < court.workers; to++) {
        struct route *route = &court.routes[own->index][to];
        for (size_t i = route->known; i < route->count; i++)
            route->sent[i].posted_to |=
                overlap(into, bytes, route->sent[i].from, route->sent[i].bytes);
    }
    pthread_mutex_unlock(&court.lock);
    enum status status = transport_post(transport, slot, into);
    resume("transport_post", status);
    leave();
    return status;
}

/* Called when the worker begins to wait for one of these slots. */
static void begin_waiting(struct transport_slot *const *slots, size_t count)
{
    bool all = true;
    enter(RECEIVING);
    own->awaited_count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct transport_slot *slot = slots[i];
        if (!slot)
            continue;
        if (!slot->posted)
            conclude("worker %d waits for a message from worker %d without transport_post",
                     own->index, slot->peer);
        all = all && !slot->done && own->awaited_count < AWAITED_MOST;
        if (all)
            own->awaited[own->awaited_count++] =
                (struct awaited){slot->peer, slot->number, part_of_message(&slot->expected)};
    }
    if (all && own->awaited_count > 0)
        look_for_hang();
    else
        own->doing = SENDING; /* a message has arrived, or there are too many slots to watch */
    pthread_mutex_unlock(&court.lock);
}

enum status __wrap_transport_wait(struct transport *transport, struct transport_slot *slot)
{
    if (!own)
        return transport_wait(transport, slot);
    begin_waiting(&slot, 1);
    enum status status = transport_wait(transport, slot);
    resume("transport_wait", status);
    take(slot);
    leave();
    return status;
}

enum status __wrap_transport_wait_any(struct transport *transport,
                                      struct transport_slot *const *slots, size_t count,
                                      bool patient, size_t *which)
{
    if (!own)
        return transport_wait_any(transport, slots, count, patient, which);
    begin_waiting(slots, count);
    enum status status = transport_wait_any(transport, slots, count, patient, which);
    resume("transport_wait_any", status);
    take(slots[*which]);
    leave();
    return status;
}

#pragma GCC diagnostic pop
/* NOLINTEND(bugprone-reserved-identifier) */

/* -------- an all-reduce ----------------------------------------------------------------------- */

/* Call before the workers' threads start. */
void witness_open(int workers, int verdicts)
{
    court.workers = workers;
    court.verdicts = verdicts;
    pthread_mutex_init(&court.lock, NULL);
    for (int w = 0; w < workers; w++)
        court.judged[w].index = w;
}

/* Makes the calling thread this worker. */
void witness_worker(int index)
{
    own = &court.judged[index];
}

/* Sets the vector of the calling worker's next all-reduce. All workers call this, and then wait for
 * each other before they start. */
void witness_begin(float *data, size_t count)
{
    pthread_mutex_lock(&court.lock);
    court.begun = true;
    court.count = count;
    own->data = (const char *)data;
    own->depth = 0;
    own->elements = own->messages = 0;
    own->doing = COMPUTING;
    for (int to = 0; to < court.workers; to++) {
        struct route *route = &court.routes[own->index][to];
        route->before += route->count;
        route->count = route->known = route->taken = 0;
    }
    pthread_mutex_unlock(&court.lock);
}

/* Call when the all-reduce of the calling worker has returned. */
void witness_return(void)
{
    pthread_mutex_lock(&court.lock);
    own->clock[own->index]++;
    for (int to = 0; to < court.workers; to++) {
        const struct route *route = &court.routes[own->index][to];
        if (route->known < route->count)
            note_race("worker %d returned while it still sent %s to worker %d: transport_flush is "
                      "missing",
                      own->index, PART(route->sent[route->known].part), to);
    }
    if (own->transport) { /* receivers wait for messages that are still queued */
        pthread_mutex_unlock(&court.lock);
        (void)transport_flush(own->transport);
        pthread_mutex_lock(&court.lock);
    }
    own->doing = RETURNED;
    look_for_hang();
    pthread_mutex_unlock(&court.lock);
}

/* Call when all workers have returned. */
void witness_check_races(void)
{
    for (int w = 0; w < court.workers; w++) {
        if (court.judged[w].race[0])
            conclude("%s", court.judged[w].race);
    }
}

void witness_check_left(void)
{
    for (int from = 0; from < court.workers; from++) {
        for (int to = 0; to < court.workers; to++) {
            const struct route *route = &court.routes[from][to];
            if (route->taken < route->count)
                conclude("worker %d never received %s that worker %d sent to it", to,
                         PART(route->sent[route->taken].part), from);
        }
    }
}

size_t witness_elements(int worker)
{
    return court.judged[worker].elements;
}

int witness_steps(void)
{
    int steps = 0;
    for (int w = 0; w < court.workers; w++)
        steps = court.judged[w].depth > steps ? court.judged[w].depth : steps;
    return steps;
}

/* Call in a handler of atexit(). */
void witness_exit(void)
{
    if (own)
        conclude("worker %d called exit", own->index);
    conclude("the solution called exit");
}

/* Call in a signal handler of the thread that caused the signal, with the address of memory.
 * SIGXCPU and SIGALRM: the process has run for too long. */
void witness_crash(int number, const char *address)
{
    if (number == SIGXCPU || number == SIGALRM) {
        unsigned computing = 0;
        for (int w = 0; w < court.workers; w++)
            computing |= (unsigned)(court.judged[w].doing == COMPUTING) << w;
        if (computing == 0)
            conclude("the all-reduce did not end within the limit of time");
        conclude("%s %s without end and %s for no message", WORKERS(computing),
                 __builtin_popcount(computing) == 1 ? "computes" : "compute",
                 __builtin_popcount(computing) == 1 ? "waits" : "wait");
    }
    if (!own)
        conclude("the solution crashed: %s", strsignal(number));
    ptrdiff_t at = address - own->data;
    if (number == SIGSEGV && own->data && at >= -NEAR_BYTES &&
        at < (ptrdiff_t)(court.count * sizeof(float)) + NEAR_BYTES)
        conclude("worker %d read or wrote element %td of a vector that begins with element 0 and "
                 "ends with element %zd",
                 own->index, (at - (at < 0 ? 3 : 0)) / (ptrdiff_t)sizeof(float),
                 (ssize_t)court.count - 1);
    conclude("worker %d crashed: %s", own->index, strsignal(number));
}
