#include "common/net/control.h"

#include <errno.h>
#include <limits.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/base/util.h"
#include "common/net/host.h"
#include "common/net/secure.h"

enum { LOOK_MS = 200 /* between two checks whether to continue waiting */, ACCEPT_AGAIN_MS = 10 };

_Static_assert(sizeof(struct hello) == 152, "it travels as it lies in memory");

/* -------- connections ------------------------------------------------------------------------- */

int64_t stream_deadline_ns(int64_t timeout_ms)
{
    return timeout_ms > 0 ? clock_now_ns() + timeout_ms * NS_PER_MS : 0;
}

/* The earlier of two times; 0: none. */
static int64_t earlier(int64_t a_ns, int64_t b_ns)
{
    return a_ns == 0 || (b_ns > 0 && b_ns < a_ns) ? b_ns : a_ns;
}

int stream_poll_ms(int64_t deadline_ns)
{
    if (deadline_ns == 0)
        return -1;
    int64_t left_ms = (deadline_ns - clock_now_ns() + NS_PER_MS - 1) / NS_PER_MS;
    return left_ms < 0 ? 0 : left_ms > INT_MAX ? INT_MAX : (int)left_ms;
}

int stream_wait(int socket, short events, int64_t deadline_ns, cancelled_call *cancelled,
                void *context)
{
    struct pollfd polled = {.fd = socket, .events = events};
    if ((events & POLLIN) && secure_has_input(socket))
        return 0;
    for (;;) {
        int64_t look_ns = cancelled ? clock_now_ns() + LOOK_MS * NS_PER_MS : 0;
        int ready = poll(&polled, 1, stream_poll_ms(earlier(deadline_ns, look_ns)));
        if (ready > 0)
            return 0;
        if (ready < 0 && errno != EINTR)
            return errno;
        if (cancelled && cancelled(context))
            return ECANCELED;
        if (deadline_ns > 0 && clock_now_ns() >= deadline_ns)
            return ETIMEDOUT;
    }
}

static int fail(int *out)
{
    int error = errno;
    stream_close(out);
    return error;
}

static int begin(int *out, bool accepted)
{
    errno = secure_begin(*out, accepted);
    return errno == 0 ? 0 : fail(out);
}

/* Sends small messages at once, because ranks wait for them. Without it an all-reduce of 1 MB took
 * 6.4 ms instead of 0.4 (transport/measured.csv). */
static void send_at_once(int socket)
{
    int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

double stream_round_trip_s(int socket)
{
    struct tcp_info info = {0};
    socklen_t bytes = sizeof info;
    if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0 ||
        info.tcpi_min_rtt == UINT32_MAX)
        return 0;
    return info.tcpi_min_rtt * 1e-6;
}

int stream_listen(const union address *address, int *out)
{
    int on = 1, off = 0;
    *out = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*out < 0)
        return errno;
    /* Connections of a run that has just ended do not block its port. */
    setsockopt(*out, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address->any.sa_family == AF_INET6) /* "all addresses" includes IPv4 */
        setsockopt(*out, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(*out, &address->any, address_bytes(address)) != 0 || listen(*out, SOMAXCONN) != 0)
        return fail(out);
    return 0;
}

int stream_accept(int listening, int *out)
{
    do
        /* cppcheck-suppress nullPointer ; accept4 takes NULL */
        *out = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    while (*out < 0 && (errno == EINTR || errno == ECONNABORTED));
    if (*out < 0)
        return errno == EWOULDBLOCK ? EAGAIN : errno;
    send_at_once(*out);
    return begin(out, true);
}

/* A socket that connects to a port of its own machine where no process listens may be given that
 * same port. It is then connected to itself. */
static bool is_own(int socket)
{
    union address here, there;
    return address_of_socket(socket, &here) == 0 && address_of_peer(socket, &there) == 0 &&
           address_port(&here) == address_port(&there) && address_same_host(&here, &there);
}

int stream_begin_connect(const union address *address, int *out)
{
    *out = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*out < 0)
        return errno;
    if (connect(*out, &address->any, address_bytes(address)) != 0 && errno != EINPROGRESS)
        return fail(out);
    return 0;
}

int stream_finish_connect(int64_t deadline_ns, int *socket)
{
    int error = 0;
    socklen_t error_bytes = sizeof error;
    errno = stream_wait(*socket, POLLOUT, deadline_ns, NULL, NULL);
    if (errno == ETIMEDOUT)
        return ETIMEDOUT;
    if (errno != 0 || getsockopt(*socket, SOL_SOCKET, SO_ERROR, &error, &error_bytes) != 0)
        return fail(socket);
    errno = error ? error : is_own(*socket) ? ECONNREFUSED : 0;
    if (errno != 0)
        return fail(socket);
    send_at_once(*socket);
    return begin(socket, false);
}

int stream_connect(const union address *address, int64_t timeout_ms, int *out)
{
    int error = stream_begin_connect(address, out);
    if (error == 0)
        error = stream_finish_connect(stream_deadline_ns(timeout_ms), out);
    if (error != 0)
        stream_close(out);
    return error;
}

void stream_close(int *socket)
{
    char unread[4096];
    int open = *socket;
    *socket = -1;
    if (open < 0 || secure_end(open))
        return;
    for (int i = 0; i < 64 && recv(open, unread, sizeof unread, MSG_DONTWAIT) > 0; i++)
        ;
    shutdown(open, SHUT_RDWR); /* a child of fork() may have it open, too */
    close(open);
}

void stream_keep_alive(int socket)
{
    static const int yes = 1, idle_s = 10, interval_s = 5, probes = 4;
    setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

/* Skips bytes that have moved, and pieces without any. */
static void skip(struct iovec **pieces, int *count, size_t bytes)
{
    for (; *count > 0 && bytes >= (*pieces)->iov_len; (*count)--)
        bytes -= (*pieces)++->iov_len;
    if (bytes == 0)
        return;
    CHECK(*count > 0);
    (*pieces)->iov_base = (unsigned char *)(*pieces)->iov_base + bytes;
    (*pieces)->iov_len -= bytes;
}

/* Moves all bytes of the pieces, which it changes. The time-out works as in control_send. */
static int move_all(int socket, struct iovec *pieces, int count, bool sending, int64_t timeout_ms)
{
    int64_t deadline_ns = stream_deadline_ns(timeout_ms);
    bool begun = false;
    skip(&pieces, &count, 0);
    while (count > 0) {
        ssize_t moved =
            sending ? secure_send(socket, pieces, count) : secure_receive(socket, pieces, count);
        if (moved > 0) {
            begun = true;
            skip(&pieces, &count, (size_t)moved);
            deadline_ns = stream_deadline_ns(timeout_ms);
            continue;
        }
        if (moved == 0)
            return ECONNRESET;
        if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
            return errno == EPIPE ? ECONNRESET : errno;
        if (timeout_ms < 0)
            return begun || secure_holds_output(socket) ? ETIMEDOUT : EAGAIN;
        int error = secure_settle(socket, deadline_ns); /* its queue is full */
        if (error == 0)
            error = stream_wait(socket, sending ? POLLOUT : POLLIN, deadline_ns, NULL, NULL);
        if (error != 0)
            return error;
    }
    return 0;
}

int stream_send(int socket, const void *data, size_t bytes, int64_t timeout_ms)
{
    struct iovec piece = {without_const(data), bytes}; /* a send only reads */
    return move_all(socket, &piece, 1, true, timeout_ms);
}

int stream_receive(int socket, void *data, size_t bytes, int64_t timeout_ms)
{
    struct iovec piece = {data, bytes};
    return move_all(socket, &piece, 1, false, timeout_ms);
}

/* -------- messages ---------------------------------------------------------------------------- */

enum control_read control_read(int socket, void *message, size_t least, size_t room,
                               struct control_input *input)
{
    const struct control_head *head = message;
    size_t *have = &input->have;
    for (;;) {
        size_t whole = *have < CONTROL_SAME_BYTES ? CONTROL_SAME_BYTES : sizeof *head;
        if (*have >= CONTROL_SAME_BYTES && head->magic != CONTROL_MAGIC)
            return CONTROL_FOREIGN;
        if (*have >= CONTROL_SAME_BYTES && head->protocol != CONTROL_PROTOCOL)
            return CONTROL_OTHER;
        if (*have >= sizeof *head) {
            whole += head->bytes;
            if (head->bytes > room - sizeof *head || whole < least ||
                head->sequence < input->next || (input->job && head->job != input->job))
                return CONTROL_FOREIGN;
        }
        if (*have == whole) {
            *input = (struct control_input){head->job, head->sequence + 1, 0};
            return CONTROL_MESSAGE;
        }
        struct iovec rest = {(unsigned char *)message + *have, whole - *have};
        ssize_t got = secure_receive(socket, &rest, 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return CONTROL_NOTHING;
        if (got <= 0)
            return CONTROL_CLOSED;
        *have += (size_t)got;
    }
}

int control_receive(int socket, void *message, size_t room, struct control_input *input,
                    int64_t timeout_ms, cancelled_call *cancelled, void *context)
{
    int64_t deadline_ns = stream_deadline_ns(timeout_ms);
    int error = 0;
    while (error == 0) {
        switch (control_read(socket, message, sizeof(struct control_head), room, input)) {
        case CONTROL_MESSAGE:
            return 0;
        case CONTROL_OTHER:
            return EPROTONOSUPPORT;
        case CONTROL_FOREIGN:
            return EPROTO;
        case CONTROL_CLOSED:
            return secure_error(socket) ? secure_error(socket) : ECONNRESET;
        case CONTROL_NOTHING:
            error = stream_wait(socket, POLLIN, deadline_ns, cancelled, context);
        }
    }
    return error;
}

int control_send(int socket, void *message, size_t size, const void *data, size_t more,
                 int64_t timeout_ms)
{
    static _Atomic uint64_t sent; /* one count for all connections, which are only descriptors */
    struct control_head *head = message;
    struct iovec parts[2] = {{message, size}, {without_const(data), more}}; /* a send only reads */
    head->magic = CONTROL_MAGIC;
    head->protocol = CONTROL_PROTOCOL;
    head->bytes = size - sizeof *head + more;
    head->sequence = head->sequence ? head->sequence : ++sent;
    return move_all(socket, parts, 2, true, timeout_ms);
}

/* -------- a port ------------------------------------------------------------------------------ */

int listener_adopt(struct listener *listener, int socket, size_t watched_max)
{
    *listener = (struct listener){.socket = socket, .watched_max = watched_max};
    listener->polls = calloc(1 + HELLO_PENDING + watched_max, sizeof *listener->polls);
    int error = listener->polls ? 0 : ENOMEM;
    if (error == 0)
        error = address_of_socket(socket, &listener->address);
    if (error != 0)
        listener_close(listener);
    return error;
}

int listener_open(struct listener *listener, const union address *address, size_t watched_max)
{
    int socket;
    *listener = (struct listener){.socket = -1};
    int error = stream_listen(address, &socket);
    return error ? error : listener_adopt(listener, socket, watched_max);
}

void listener_close(struct listener *listener)
{
    for (int i = 0; i < listener->pending_count; i++)
        stream_close(&listener->pending[i].socket);
    listener->pending_count = 0;
    stream_close(&listener->socket);
    free(listener->polls);
    listener->polls = NULL;
}

/* -------- connections without a hello --------------------------------------------------------- */

static void forget(struct listener *listener, int index)
{
    listener->pending_count--;
    memmove(&listener->pending[index], &listener->pending[index + 1],
            (size_t)(listener->pending_count - index) * sizeof listener->pending[0]);
}

static void drop(struct listener *listener, int index, const char *why)
{
    if (!listener->warned)
        log_warn("start-up: dropped a connection that %s; further ones are dropped silently", why);
    listener->warned = true;
    stream_close(&listener->pending[index].socket);
    forget(listener, index);
}

/* The connection still waits, so poll(2) would report it again at once. */
static void put_off(struct listener *listener, int error)
{
    if (!listener->warned_of_accept)
        log_warn("start-up: cannot accept a connection: %s; trying again", strerror(error));
    listener->warned_of_accept = true;
    listener->put_off_ns = clock_now_ns() + ACCEPT_AGAIN_MS * NS_PER_MS;
}

/* When it may be dropped for the next one. */
static int64_t old_ns(const struct pending *pending)
{
    int64_t rest_ms =
        pending->shakes ? HELLO_SHAKE_MS - HELLO_SHAKE_YOUNG_MS : HELLO_WAIT_MS - HELLO_YOUNG_MS;
    return pending->until_ns - rest_ms * NS_PER_MS;
}

static int find_oldest(const struct listener *listener)
{
    int oldest = 0;
    for (int i = 1; i < listener->pending_count; i++)
        oldest = old_ns(&listener->pending[i]) < old_ns(&listener->pending[oldest]) ? i : oldest;
    return oldest;
}

/* When the next connection may be accepted: at once, or after the oldest one has had its time. */
static int64_t accepts_at_ns(const struct listener *listener)
{
    if (listener->pending_count < HELLO_PENDING)
        return listener->put_off_ns;
    int64_t at_ns = old_ns(&listener->pending[find_oldest(listener)]);
    return at_ns > listener->put_off_ns ? at_ns : listener->put_off_ns;
}

/* How long ago a connection without any bytes was made; 0: it has bytes. It may have waited long to
 * be accepted. Thousands of silent ones before it then cost no time. */
static int64_t silent_ns(int socket)
{
    char byte;
    struct tcp_info info = {0};
    socklen_t bytes = sizeof info;
    if (secure_has_heard(socket) || recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 ||
        getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0)
        return 0;
    return info.tcpi_last_data_recv * NS_PER_MS;
}

/* A busy rank may take long to continue the handshake. The limit is extended once, so a stranger
 * gains nothing by further bytes. */
static void extend_for_handshake(struct pending *pending)
{
    if (pending->shakes || !secure_has_heard(pending->socket))
        return;
    pending->shakes = true;
    pending->until_ns += (HELLO_SHAKE_MS - HELLO_WAIT_MS) * NS_PER_MS;
}

/* Without a free descriptor, a connection that may be dropped makes space for the next one. */
static void make_space(struct listener *listener, int error)
{
    int oldest = find_oldest(listener);
    if ((error == EMFILE || error == ENFILE) && listener->pending_count > 0 &&
        clock_now_ns() >= old_ns(&listener->pending[oldest]))
        drop(listener, oldest, "sent no hello while file descriptors were used up");
}

static void accept_all(struct listener *listener)
{
    for (int i = 0; i < HELLO_PENDING && clock_now_ns() >= accepts_at_ns(listener); i++) {
        int socket, error = stream_accept(listener->socket, &socket);
        if (error != 0 && error != EAGAIN)
            put_off(listener, error);
        if (error != 0) {
            make_space(listener, error);
            return;
        }
        if (listener->pending_count == HELLO_PENDING)
            drop(listener, find_oldest(listener), "sent no hello while many others arrived");
        struct pending *pending = &listener->pending[listener->pending_count++];
        *pending = (struct pending){.socket = socket,
                                    .until_ns = clock_now_ns() + HELLO_WAIT_MS * NS_PER_MS -
                                                silent_ns(socket)};
        extend_for_handshake(pending);
    }
}

static void make_printable(char *text, size_t size)
{
    text[size - 1] = '\0';
    for (; *text; text++) {
        if (*text <= ' ' || *text > '~')
            *text = '?';
    }
}

/* The reason why the connection cannot send a hello. */
static const char *why_foreign(const struct pending *pending, enum control_read got)
{
    const unsigned char tls[] = {22, 3}; /* a handshake's first bytes */
    int error = secure_error(pending->socket);
    if (error == EKEYREJECTED)
        return "has other keys than this process (--secure)";
    if (error == EPROTO)
        return "does not use TLS 1.3 as this process does (--secure)";
    if (got == CONTROL_FOREIGN && memcmp(&pending->hello, tls, sizeof tls) == 0)
        return "uses TLS (--secure), unlike this process";
    return got == CONTROL_CLOSED ? "closed before it introduced itself"
                                 : "does not belong to psring";
}

/* Checks the connections that poll(2) has reported. True: one has sent its hello. */
static bool find_hello(struct listener *listener, struct hello *hello, int *socket)
{
    /* The oldest first. Dropping one moves those after it. */
    int polled = listener->pending_count;
    for (int p = 0, i = 0; p < polled; p++) {
        struct pending *pending = &listener->pending[i];
        enum control_read got = CONTROL_NOTHING;
        /* The handshakes of those before it may have taken long, so poll(2)'s findings are old. */
        if (listener->polls[1 + p].revents != 0 || clock_now_ns() >= pending->until_ns)
            got = control_read(pending->socket, &pending->hello, sizeof *hello, sizeof *hello,
                               &pending->input);
        extend_for_handshake(pending);
        if (got == CONTROL_OTHER ||
            (got == CONTROL_MESSAGE && pending->hello.head.type == CONTROL_HELLO)) {
            *hello = pending->hello;
            *socket = pending->socket;
            make_printable(hello->version, sizeof hello->version);
            make_printable(hello->host, sizeof hello->host);
            forget(listener, i);
            return true;
        }
        if (got != CONTROL_NOTHING)
            drop(listener, i, why_foreign(pending, got));
        else if (clock_now_ns() >= pending->until_ns)
            drop(listener, i, "did not introduce itself in time");
        else
            i++;
    }
    return false;
}

/* -------- waiting ----------------------------------------------------------------------------- */

/* The caller tries again until its deadline. */
static void cannot_poll(struct listener *listener, int error)
{
    if (!listener->warned_of_poll)
        log_warn("start-up: cannot wait for a connection: %s; trying again", strerror(error));
    listener->warned_of_poll = true;
    clock_sleep_until_ns(clock_now_ns() + ACCEPT_AGAIN_MS * NS_PER_MS);
}

/* Finds a connection that has input. It begins at listener->next, so that each gets its turn.
 * `polls` has those that exist. */
static bool find_watched(struct listener *listener, const int *watched, size_t count,
                         const struct pollfd *polls, size_t *which)
{
    size_t next = count ? listener->next % count : 0, found = count;
    for (size_t i = 0; i < count; i++) {
        bool ready = watched[i] >= 0 && (polls++)->revents != 0;
        if ((ready || secure_has_input(watched[i])) &&
            (found == count || (found < next && i >= next)))
            found = i;
    }
    if (found == count)
        return false;
    *which = found;
    listener->next = found + 1;
    return true;
}

enum listener_event listener_wait(struct listener *listener, int64_t deadline_ns,
                                  const int *watched, size_t count, struct hello *hello,
                                  int *socket, size_t *which)
{
    CHECK(count <= listener->watched_max);
    int64_t look_ns = listener->cancelled ? clock_now_ns() + LOOK_MS * NS_PER_MS : 0;
    for (;;) {
        size_t first_watched = 1 + (size_t)listener->pending_count;
        struct pollfd *polls = listener->polls;
        int64_t accepts_ns = accepts_at_ns(listener);
        bool accepts = clock_now_ns() >= accepts_ns;
        int64_t wake_ns = earlier(deadline_ns, earlier(look_ns, accepts ? 0 : accepts_ns));
        polls[0] = (struct pollfd){.fd = accepts ? listener->socket : -1, .events = POLLIN};
        for (int i = 0; i < listener->pending_count; i++) {
            polls[1 + i] = (struct pollfd){.fd = listener->pending[i].socket, .events = POLLIN};
            wake_ns = earlier(wake_ns, listener->pending[i].until_ns);
        }
        bool has_input = false;
        size_t polled = first_watched;
        for (size_t i = 0; i < count; i++) {
            if (watched[i] >= 0) /* poll(2) counts empty entries against the limit of open files */
                polls[polled++] = (struct pollfd){.fd = watched[i], .events = POLLIN};
            has_input = has_input || secure_has_input(watched[i]);
        }
        int ready = poll(polls, (nfds_t)polled, has_input ? 0 : stream_poll_ms(wake_ns));
        if (ready < 0 && errno != EINTR)
            cannot_poll(listener, errno);
        for (size_t i = 0; ready < 0 && i < polled; i++)
            polls[i].revents = 0;
        if (find_hello(listener, hello, socket))
            return LISTENER_HELLO;
        if (polls[0].revents != 0) /* also while watched connections are never silent */
            accept_all(listener);
        if (find_watched(listener, watched, count, &polls[first_watched], which))
            return LISTENER_WATCHED;
        int64_t now_ns = clock_now_ns();
        if (listener->cancelled && now_ns >= look_ns) {
            if (listener->cancelled(listener->context))
                return LISTENER_CANCELLED;
            look_ns = now_ns + LOOK_MS * NS_PER_MS;
        }
        if (deadline_ns > 0 && now_ns >= deadline_ns)
            return LISTENER_TIMEOUT;
    }
}

/* -------- the ranks of a run ------------------------------------------------------------------ */

static int first_awaited(const int *sockets, int world_size)
{
    for (int rank = 0; rank < world_size; rank++) {
        if (sockets[rank] == LISTENER_AWAITED)
            return rank;
    }
    return -1;
}

int listener_let_in(struct listener *listener, uint64_t job, int64_t timeout_ms, int *sockets,
                    int world_size)
{
    int64_t deadline_ns = stream_deadline_ns(timeout_ms);
    struct hello hello;
    int missing, socket;
    while ((missing = first_awaited(sockets, world_size)) >= 0 &&
           listener_wait(listener, deadline_ns, NULL, 0, &hello, &socket, NULL) == LISTENER_HELLO) {
        if (hello_is_of(&hello, job, world_size) && sockets[hello.head.value] == LISTENER_AWAITED)
            sockets[hello.head.value] = socket;
        else
            stream_close(&socket);
    }
    return missing;
}

struct hello hello_from(int rank, int world_size, uint64_t job)
{
    struct hello hello = {
        .head = {.magic = CONTROL_MAGIC,
                 .protocol = CONTROL_PROTOCOL,
                 .value = rank,
                 .type = CONTROL_HELLO,
                 .bytes = sizeof hello - sizeof hello.head,
                 .job = job},
        .world_size = world_size,
        .version = PSRING_VERSION,
    };
    host_name(hello.host, sizeof hello.host);
    return hello;
}

bool hello_is_of(const struct hello *hello, uint64_t job, int world_size)
{
    return hello->head.protocol == CONTROL_PROTOCOL && hello->head.job == job &&
           hello->head.value >= 0 && hello->head.value < world_size;
}

int listener_join(const union address *address, uint64_t job, int rank, int64_t timeout_ms,
                  int *socket)
{
    struct hello hello = hello_from(rank, 0, job);
    int error = stream_connect(address, timeout_ms, socket);
    if (error == 0)
        error = control_send(*socket, &hello, sizeof hello, NULL, 0, timeout_ms);
    if (error != 0)
        stream_close(socket);
    return error;
}

int control_search(const struct control_search *search, const char **unknown)
{
    /* TURN_MS: the limit for one of several addresses, and until `cancelled` is asked again */
    enum { FIRST_PAUSE_MS = 10, TURN_MS = 3000 };
    int64_t deadline_ns = stream_deadline_ns(search->timeout_ms), pause_ms = FIRST_PAUSE_MS;
    bool other_keys = false; /* the program there may have ended since */
    for (int turn = 0;;) {
        union address address;
        int error = 0, addresses = 1;
        int64_t left_ms = (deadline_ns - clock_now_ns()) / NS_PER_MS;
        int64_t connect_ms = deadline_ns == 0 ? 0 : left_ms > 1 ? left_ms : 1;
        bool known =
            address_resolve(search->host, search->port, turn++, &address, &addresses, unknown);
        if ((addresses > 1 || search->cancelled) && (connect_ms == 0 || connect_ms > TURN_MS))
            connect_ms = TURN_MS;
        if (known) {
            *unknown = NULL;
            error = search->attempt(search->self, &address, connect_ms);
            if (error == 0)
                return 0;
            other_keys = other_keys || error == EKEYREJECTED;
        }
        if (error == ECANCELED || (search->cancelled && search->cancelled(search->context)))
            return ECANCELED;
        if (deadline_ns > 0 && clock_now_ns() + pause_ms * NS_PER_MS >= deadline_ns)
            return other_keys ? EKEYREJECTED : error;
        if (known && turn % addresses != 0)
            continue; /* at once, so that all ranks use the first address that works */
        clock_sleep_until_ns(clock_now_ns() + pause_ms * NS_PER_MS);
        pause_ms = pause_ms * 2 < LOOK_MS ? pause_ms * 2 : LOOK_MS;
    }
}
