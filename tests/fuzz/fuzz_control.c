/*
 * Input: a byte that selects a reader and its buffer, and a byte with the number of cuts (up to 7).
 * The length of the piece before each cut follows. Then come all bytes that a process sends to a
 * control connection. The pieces arrive one after the other. The last piece is the remainder. Then
 * the connection closes.
 *
 * The cuts make no difference: a reader finds what `first_of` finds in the whole input.
 * - Messages are complete and unchanged, in the order of the input.
 * - control_read keeps to `room`. A foreign magic, another version and a message of a wrong length,
 *   job or sequence number stay refused: no message follows.
 * - membership_read ends the text of a frame. It refuses what is shorter than a frame.
 * - A listener returns a hello whose strings are terminated and printable, and leaves the bytes
 *   after it to the caller. It drops everything else.
 */
#include "tests/fuzz/fuzz.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/net/control.h"
#include "experiments/elastic/member.h"

enum { CUTS_MOST = 7, STREAM_BYTES_MOST = 16384 /* the socket's buffer holds more */ };

struct stream {
    int ours, theirs; /* a pair of sockets; the reader has `ours` */
    const uint8_t *data;
    size_t size, sent;
    const uint8_t *lengths; /* of the pieces before each cut */
    size_t cuts;
};

/* The bounds of a reader's messages, and what the earlier ones have left for the next one. */
struct bounds {
    size_t least, room;
    uint64_t job, next;
};

/* The begin of the bytes as such a reader must see it. *bytes: the length of a CONTROL_MESSAGE. */
static enum control_read first_of(const uint8_t *data, size_t size, const struct bounds *bounds,
                                  size_t *bytes)
{
    struct control_head head = {0};
    memcpy(&head, data, size < sizeof head ? size : sizeof head);
    if (size >= CONTROL_SAME_BYTES && head.magic != CONTROL_MAGIC)
        return CONTROL_FOREIGN;
    if (size >= CONTROL_SAME_BYTES && head.protocol != CONTROL_PROTOCOL)
        return CONTROL_OTHER;
    if (size < sizeof head)
        return CONTROL_NOTHING;
    if (head.bytes > bounds->room - sizeof head || head.bytes + sizeof head < bounds->least)
        return CONTROL_FOREIGN;
    if (head.sequence < bounds->next || (bounds->job != 0 && head.job != bounds->job))
        return CONTROL_FOREIGN;
    *bytes = sizeof head + head.bytes;
    return size < *bytes ? CONTROL_NOTHING : CONTROL_MESSAGE;
}

/* A message that begins there has been read. */
static void go_on(struct bounds *bounds, const uint8_t *data)
{
    struct control_head head;
    memcpy(&head, data, sizeof head);
    bounds->job = head.job;
    bounds->next = head.sequence + 1;
}

static void open_stream(struct stream *stream, const uint8_t *data, size_t size)
{
    int pair[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    size_t cuts = size > 0 ? data[0] % (CUTS_MOST + 1) : 0;
    if (size > 0 && cuts > size - 1)
        cuts = size - 1;
    size_t used = size > 0 ? 1 + cuts : 0;
    *stream = (struct stream){.ours = pair[0],
                              .theirs = pair[1],
                              .data = data + used,
                              .size = size - used,
                              .lengths = data + (size > 0),
                              .cuts = cuts};
}

/* Sends the next piece. After the last one, closes the connection. False: it was closed. */
static bool send_piece(struct stream *stream)
{
    size_t left = stream->size - stream->sent, length = left;
    if (stream->theirs < 0)
        return false;
    if (stream->cuts > 0 && *stream->lengths < left)
        length = *stream->lengths;
    stream->lengths += stream->cuts > 0;
    stream->cuts -= stream->cuts > 0;
    if (left == 0) {
        stream_close(&stream->theirs);
        return true;
    }
    CHECK(send(stream->theirs, stream->data + stream->sent, length, MSG_DONTWAIT) ==
          (ssize_t)length);
    stream->sent += length;
    return true;
}

static void close_stream(struct stream *stream)
{
    stream_close(&stream->ours);
    stream_close(&stream->theirs);
}

/* -------- control_read ------------------------------------------------------------------------ */

/* The sanitizer sees a write beyond `room`: the buffer has exactly this size. */
static void read_messages(struct stream *stream, size_t room)
{
    struct bounds bounds = {.least = sizeof(struct control_head), .room = room};
    struct control_input input = {0};
    void *message = malloc(room);
    size_t at = 0, bytes = 0;
    enum control_read got = CONTROL_NOTHING;
    CHECK(message);
    while (got == CONTROL_NOTHING && send_piece(stream)) {
        while ((got = control_read(stream->ours, message, bounds.least, room, &input)) ==
               CONTROL_MESSAGE) {
            CHECK(first_of(stream->data + at, stream->sent - at, &bounds, &bytes) == got);
            CHECK(bytes <= room && memcmp(message, stream->data + at, bytes) == 0);
            go_on(&bounds, stream->data + at);
            at += bytes;
        }
        enum control_read wanted = first_of(stream->data + at, stream->sent - at, &bounds, &bytes);
        CHECK(input.have <= room);
        if (stream->theirs < 0 && wanted == CONTROL_NOTHING)
            wanted = CONTROL_CLOSED;
        CHECK(got == wanted);
    }
    CHECK(got != CONTROL_NOTHING);
    CHECK(control_read(stream->ours, message, bounds.least, room, &input) == got);
    free(message);
}

/* -------- membership_read --------------------------------------------------------------------- */

static void read_frames(struct stream *stream)
{
    struct membership_reader *reader = calloc(1, sizeof *reader);
    const size_t least = sizeof reader->frame;
    struct bounds bounds = {.least = least, .room = least + MEMBERSHIP_TEXT_BYTES};
    size_t at = 0, bytes = 0;
    enum control_read got = CONTROL_NOTHING;
    CHECK(reader);
    while (got == CONTROL_NOTHING && send_piece(stream)) {
        while ((got = membership_read(reader, stream->ours)) == CONTROL_MESSAGE) {
            CHECK(first_of(stream->data + at, stream->sent - at, &bounds, &bytes) == got);
            CHECK(bytes >= least && reader->text[bytes - least] == '\0');
            CHECK(memcmp(&reader->frame, stream->data + at, least) == 0);
            CHECK(memcmp(reader->text, stream->data + at + least, bytes - least) == 0);
            go_on(&bounds, stream->data + at);
            at += bytes;
        }
        enum control_read wanted = first_of(stream->data + at, stream->sent - at, &bounds, &bytes);
        CHECK(wanted != CONTROL_MESSAGE);
        CHECK((got == CONTROL_CLOSED) == (wanted != CONTROL_NOTHING || stream->theirs < 0));
    }
    CHECK(got == CONTROL_CLOSED);
    free(reader);
}

/* -------- a listener -------------------------------------------------------------------------- */

/* `text` is what a message may show of the bytes that were sent. */
static void check_text(const char *text, const uint8_t *sent, size_t size)
{
    size_t length = strnlen(text, size);
    CHECK(length < size);
    for (size_t i = 0; i < length; i++) {
        CHECK(text[i] > ' ' && text[i] <= '~');
        CHECK((uint8_t)text[i] == sent[i] || text[i] == '?');
    }
    CHECK(length == size - 1 || sent[length] == 0);
}

static void check_hello(const struct hello *hello, struct stream *stream, bool other)
{
    enum { VERSION = offsetof(struct hello, version), HOST = offsetof(struct hello, host) };
    uint8_t after[STREAM_BYTES_MOST];
    size_t used = other ? CONTROL_SAME_BYTES : sizeof *hello;
    CHECK(memcmp(hello, stream->data, other ? CONTROL_SAME_BYTES : VERSION) == 0);
    if (other) {
        CHECK(hello->head.type == 0 && hello->world_size == 0 && hello->head.job == 0);
        CHECK(!hello->version[0] && !hello->host[0]);
    } else {
        check_text(hello->version, stream->data + VERSION, sizeof hello->version);
        check_text(hello->host, stream->data + HOST, sizeof hello->host);
    }
    ssize_t left = recv(stream->ours, after, sizeof after, MSG_DONTWAIT);
    CHECK((left > 0 ? (size_t)left : 0) == stream->sent - used);
    CHECK(left <= 0 || memcmp(after, stream->data + used, (size_t)left) == 0);
}

/* The connection is one that the listener has accepted already. No call waits, because the deadline
 * is over. */
static void wait_for_hello(struct stream *stream)
{
    const struct bounds bounds = {.least = sizeof(struct hello), .room = sizeof(struct hello)};
    const int64_t passed_ns = 1, distant_ns = clock_now_ns() + 3600 * NS_PER_S;
    union address any = address_loopback();
    struct listener listener;
    struct hello hello;
    enum listener_event event = LISTENER_TIMEOUT;
    enum control_read wanted = CONTROL_NOTHING;
    size_t bytes = 0;
    int socket = -1;
    CHECK(listener_open(&listener, &any, 0) == 0);
    listener.pending[listener.pending_count++] =
        (struct pending){.socket = stream->ours, .until_ns = distant_ns};
    while (event == LISTENER_TIMEOUT && listener.pending_count > 0 && send_piece(stream)) {
        event = listener_wait(&listener, passed_ns, NULL, 0, &hello, &socket, NULL);
        wanted = first_of(stream->data, stream->sent, &bounds, &bytes);
        bool whole = event == LISTENER_HELLO && wanted == CONTROL_MESSAGE;
        CHECK(!whole || hello.head.type == CONTROL_HELLO);
        CHECK(event == LISTENER_TIMEOUT || whole || wanted == CONTROL_OTHER);
        CHECK((listener.pending_count == 1) == (wanted == CONTROL_NOTHING && stream->theirs >= 0));
    }
    CHECK(listener.pending_count == 0);
    if (event == LISTENER_HELLO) {
        CHECK(socket == stream->ours);
        check_hello(&hello, stream, wanted == CONTROL_OTHER);
    } else {
        uint32_t type = 0;
        if (wanted == CONTROL_MESSAGE)
            memcpy(&type, stream->data + offsetof(struct control_head, type), sizeof type);
        CHECK(wanted != CONTROL_OTHER && type != CONTROL_HELLO);
        stream->ours = -1; /* the listener has closed it */
    }
    listener_close(&listener);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t rooms[] = {sizeof(struct control_head), 49, 64, 152, 528, 4096};
    struct stream stream;
    if (size == 0 || size > STREAM_BYTES_MOST)
        return 0;
    fuzz_quiet();
    open_stream(&stream, data + 1, size - 1);
    if (data[0] % 3 == 0)
        read_messages(&stream, rooms[data[0] / 3 % (sizeof rooms / sizeof *rooms)]);
    else if (data[0] % 3 == 1)
        read_frames(&stream);
    else
        wait_for_hello(&stream);
    close_stream(&stream);
    return 0;
}
