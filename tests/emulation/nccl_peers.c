#include "tests/emulation/nccl_peers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { TICK_MS = 5, PLACE_BYTES = 160 };

/* -------- meeting ----------------------------------------------------------------------------- */

/* An abstract socket name of Linux: it disappears with the process. */
static socklen_t address_of(struct sockaddr_un *address, const char *name, int rank)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int length = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "%s-%d", name, rank);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static void rest(void)
{
    nanosleep(&(struct timespec){.tv_nsec = TICK_MS * 1000000}, NULL);
}

static enum peers_result connect_to_next(struct peers *peers, const char *name)
{
    struct sockaddr_un address;
    socklen_t bytes = address_of(&address, name, (peers->rank + 1) % peers->size);
    while (!peers->stop) {
        peers->next = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(peers->next, (struct sockaddr *)&address, bytes) == 0) {
            fcntl(peers->next, F_SETFL, O_NONBLOCK);
            return PEERS_OK;
        }
        close(peers->next);
        peers->next = -1;
        rest();
    }
    return PEERS_STOPPED;
}

static enum peers_result accept_previous(struct peers *peers)
{
    while (!peers->stop) {
        peers->previous = accept4(peers->listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (peers->previous >= 0)
            return PEERS_OK;
        rest();
    }
    return PEERS_STOPPED;
}

/* -------- exchange ---------------------------------------------------------------------------- */

/* Sends to the next rank and receives from the previous one at the same time. If every rank sent
 * first, all might wait for ever. */
static enum peers_result exchange(struct peers *peers, const void *to, size_t to_bytes, void *from,
                                  size_t from_bytes)
{
    const char *out = to;
    char *in = from;
    while (to_bytes > 0 || from_bytes > 0) {
        struct pollfd ways[2] = {
            {.fd = to_bytes > 0 ? peers->next : -1, .events = POLLOUT},
            {.fd = from_bytes > 0 ? peers->previous : -1, .events = POLLIN},
        };
        if (peers->stop)
            return PEERS_STOPPED;
        if (poll(ways, 2, TICK_MS) <= 0)
            continue;
        if (ways[0].revents) {
            ssize_t sent = send(peers->next, out, to_bytes, MSG_NOSIGNAL);
            if (sent < 0 && errno != EAGAIN && errno != EINTR)
                return PEERS_GONE;
            out += sent > 0 ? sent : 0;
            to_bytes -= sent > 0 ? (size_t)sent : 0;
        }
        if (ways[1].revents) {
            ssize_t got = recv(peers->previous, in, from_bytes, 0);
            if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
                return PEERS_GONE;
            in += got > 0 ? got : 0;
            from_bytes -= got > 0 ? (size_t)got : 0;
        }
    }
    return PEERS_OK;
}

/* The place of every rank passes by once. */
static enum peers_result compare_places(struct peers *peers, const char *place)
{
    char mine[PLACE_BYTES] = "", passing[PLACE_BYTES], came[PLACE_BYTES];
    bool twice = false;
    snprintf(mine, sizeof mine, "%s", place);
    memcpy(passing, mine, sizeof mine);
    for (int step = 1; step < peers->size; step++) {
        enum peers_result result = exchange(peers, passing, sizeof passing, came, sizeof came);
        if (result != PEERS_OK)
            return result;
        twice = twice || memcmp(came, mine, sizeof mine) == 0;
        memcpy(passing, came, sizeof came);
    }
    return twice ? PEERS_CONFLICT : PEERS_OK;
}

enum peers_result peers_join(struct peers *peers, const char *name, const char *place)
{
    struct sockaddr_un address;
    socklen_t bytes = address_of(&address, name, peers->rank);
    peers->listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (bind(peers->listening, (struct sockaddr *)&address, bytes) != 0 ||
        listen(peers->listening, 1) != 0)
        return PEERS_CONFLICT;
    enum peers_result result = connect_to_next(peers, name);
    if (result == PEERS_OK)
        result = accept_previous(peers);
    return result == PEERS_OK ? compare_places(peers, place) : result;
}

void peers_leave(struct peers *peers)
{
    int *sockets[] = {&peers->listening, &peers->next, &peers->previous};
    for (size_t i = 0; i < sizeof sockets / sizeof *sockets; i++) {
        if (*sockets[i] >= 0)
            close(*sockets[i]);
        *sockets[i] = -1;
    }
}

/* -------- the sum ----------------------------------------------------------------------------- */

static size_t first_of(size_t count, int chunk, int size)
{
    return (size_t)((uint64_t)count * (uint64_t)chunk / (uint64_t)size);
}

static size_t length_of(size_t count, int chunk, int size)
{
    return first_of(count, chunk + 1, size) - first_of(count, chunk, size);
}

/* Step s of 2(W-1) sends chunk (rank - s). In the first half the received chunk is added to this
 * rank's. In the second half it replaces this rank's. */
static enum peers_result ring_step(struct peers *peers, float *data, size_t count, int s,
                                   float *room)
{
    int size = peers->size, out = (peers->rank - s + 2 * size) % size, in = (out + size - 1) % size;
    float *here = data + first_of(count, in, size);
    size_t length = length_of(count, in, size);
    enum peers_result result =
        exchange(peers, data + first_of(count, out, size),
                 length_of(count, out, size) * sizeof *data, room, length * sizeof *data);
    for (size_t i = 0; result == PEERS_OK && i < length; i++)
        here[i] = s < size - 1 ? here[i] + room[i] : room[i];
    return result;
}

enum peers_result peers_sum(struct peers *peers, float *data, size_t count, int mark)
{
    uint64_t mine[2] = {count, (uint64_t)mark}, theirs[2];
    float *room = malloc((count / (size_t)peers->size + 1) * sizeof *room);
    enum peers_result result = room ? PEERS_OK : PEERS_CONFLICT;
    if (result == PEERS_OK && peers->size > 1)
        result = exchange(peers, mine, sizeof mine, theirs, sizeof theirs);
    if (result == PEERS_OK && peers->size > 1 && memcmp(mine, theirs, sizeof mine) != 0)
        result = PEERS_CONFLICT;
    for (int s = 0; result == PEERS_OK && s < 2 * (peers->size - 1); s++) {
        if (peers->midway && s == peers->size - 1)
            peers->midway(peers->context);
        result = ring_step(peers, data, count, s, room);
    }
    free(room);
    return result;
}
