#include "common/net/membership/protocol.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/status.h"
#include "common/base/clock.h"
#include "common/net/address.h"
#include "common/net/stream.h"

_Static_assert(sizeof(struct membership_frame) == 80 + MEMBER_NOTE_BYTES,
               "it travels as it lies in memory");

int membership_send(int socket, struct membership_frame frame, const char *text)
{
    struct {
        struct membership_frame frame;
        char text[MEMBERSHIP_TEXT_BYTES];
    } message;
    size_t bytes = text ? strlen(text) : 0;
    if (bytes > MEMBERSHIP_TEXT_BYTES)
        return EMSGSIZE;
    if (socket < 0)
        return ECONNRESET;
    frame.magic = MEMBERSHIP_MAGIC;
    frame.text_bytes = (uint32_t)bytes;
    message.frame = frame;
    if (bytes > 0)
        memcpy(message.text, text, bytes);
    int error = stream_send(socket, &message, sizeof message.frame + bytes, MEMBERSHIP_SEND_MS);
    if (error != 0)
        shutdown(socket, SHUT_RDWR);
    return error;
}

/* Reads up to `end` bytes of frame and text; false: they have not all come. */
static enum membership_read read_to(struct membership_reader *reader, int socket, size_t end)
{
    size_t frame = sizeof reader->frame;
    while (reader->have < end) {
        char *at = reader->have < frame ? (char *)&reader->frame + reader->have
                                        : reader->text + (reader->have - frame);
        ssize_t got = recv(socket, at, end - reader->have, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
            return MEMBERSHIP_READ_NOTHING;
        if (got <= 0)
            return MEMBERSHIP_READ_CLOSED;
        reader->have += (size_t)got;
    }
    return MEMBERSHIP_READ_FRAME;
}

enum membership_read membership_read(struct membership_reader *reader, int socket)
{
    const struct membership_frame *frame = &reader->frame;
    size_t whole = sizeof *frame + frame->text_bytes;
    if (reader->have >= sizeof *frame && reader->have == whole)
        reader->have = 0; /* it was the caller's until now */
    enum membership_read got = read_to(reader, socket, sizeof *frame);
    if (got != MEMBERSHIP_READ_FRAME)
        return got;
    if (frame->magic != MEMBERSHIP_MAGIC || frame->text_bytes > MEMBERSHIP_TEXT_BYTES)
        return MEMBERSHIP_READ_CLOSED;
    got = read_to(reader, socket, sizeof *frame + frame->text_bytes);
    reader->text[frame->text_bytes] = '\0';
    return got;
}

/* -------- connecting -------------------------------------------------------------------------- */

enum status membership_connect(const char *text, uint64_t token, int64_t timeout_ms, int *socket)
{
    enum { PAUSE_MS = 100, TURN_MS = 3000 /* of several addresses, for one */ };
    char host[ADDRESS_HOST_BYTES];
    int port, turn = 0;
    int64_t deadline_ns = clock_now_ns() + timeout_ms * NS_PER_MS;
    *socket = -1;
    CHECK(address_parse(text, host, sizeof host, &port));
    for (;;) {
        union address address;
        const char *why = NULL;
        int addresses = 1;
        int64_t left_ms = (deadline_ns - clock_now_ns()) / NS_PER_MS;
        bool known = address_resolve(host, port, turn++, &address, &addresses, &why);
        if (addresses > 1 && left_ms > TURN_MS)
            left_ms = TURN_MS;
        int error = known ? listener_join(&address, MEMBERSHIP_MAGIC ^ token, 0,
                                          left_ms > 1 ? left_ms : 1, socket)
                          : 0;
        if (known && error == 0)
            return STATUS_OK;
        if (clock_now_ns() + PAUSE_MS * NS_PER_MS >= deadline_ns) {
            log_error("--join %s: found no server there within %g s: %s; start it on that host: "
                      "psring serve --listen %s",
                      text, (double)timeout_ms / 1000, known ? strerror(error) : why, text);
            return STATUS_TIMEOUT;
        }
        if (known && turn % addresses != 0)
            continue; /* at once, so that all members come by the first address that works */
        clock_sleep_until_ns(clock_now_ns() + PAUSE_MS * NS_PER_MS);
    }
}
