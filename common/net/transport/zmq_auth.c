/*
 * Decides which processes may connect. Any process can find the port of a listening socket, and can
 * fill memory. ZeroMQ counts a message only once it is complete, so no limit bounds a message that
 * never ends. This check keeps strangers out before they can send anything. Every connection must
 * give the run's password, which is its run id, in ZeroMQ's PLAIN handshake. With --secure it is
 * CURVE instead: all sockets have the job's key pair, and a connection must prove that it has it.
 *
 * ZeroMQ asks this thread about each connection by its protocol ZAP
 * (https://rfc.zeromq.org/spec/27), over inproc. It closes connections that are refused, that use
 * another handshake or none, or that do not finish it within HELLO_WAIT_MS. Until then a connection
 * holds at most one frame of ZMQ_MAXMSGSIZE bytes.
 *
 * PLAIN sends the password in the clear, like all messages. It keeps out processes that do not see
 * the traffic. Later messages cost nothing more. CURVE encrypts every message.
 *
 * The thread sleeps except for connections. It ends with the context.
 */
#include "common/net/secure.h"
#include "common/net/transport/zmq_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* PLAIN gives a user and a password, CURVE gives a public key. */
enum {
    ZAP_FRAMES = 8,
    ZAP_REQUEST_ID = 1,
    ZAP_MECHANISM = 5,
    ZAP_PASSWORD = 7,
    ZAP_PUBLIC_KEY = 6,
};

static const char user[] = "psring";

enum status transport_zmq_auth_open(struct zmq_auth *auth, void *context, uint64_t run_id)
{
    snprintf(auth->password, sizeof auth->password, "%016" PRIx64, run_id);
    auth->context = context;
    auth->zap = zmq_socket(context, ZMQ_REP);
    if (!auth->zap || zmq_bind(auth->zap, "inproc://zeromq.zap.01") != 0)
        return transport_zmq_status("opening the check of passwords");
    return STATUS_OK;
}

enum status transport_zmq_auth_listener(struct zmq_auth *auth, void *socket, enum node_role role)
{
    static const char *const addresses[] = {"inproc://refused-by-worker",
                                            "inproc://refused-by-server"};
    static const int yes = 1, no_linger = 0;
    const struct secure_curve *curve = secure_curve();
    auth->monitors[role] = zmq_socket(auth->context, ZMQ_PAIR);
    if (!auth->monitors[role] ||
        zmq_setsockopt(socket, curve ? ZMQ_CURVE_SERVER : ZMQ_PLAIN_SERVER, &yes, sizeof yes) !=
            0 ||
        (curve && zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, curve->secret_text,
                                 sizeof curve->secret_text) != 0) ||
        zmq_setsockopt(auth->monitors[role], ZMQ_LINGER, &no_linger, sizeof no_linger) != 0 ||
        zmq_socket_monitor(socket, addresses[role],
                           ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH) !=
            0 ||
        zmq_connect(auth->monitors[role], addresses[role]) != 0)
        return transport_zmq_status("setting up the check of passwords");
    return STATUS_OK;
}

enum status transport_zmq_auth_connector(const struct zmq_auth *auth, void *socket)
{
    const struct secure_curve *curve = secure_curve();
    if (curve) {
        size_t bytes = sizeof curve->public_text;
        if (zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, curve->public_text, bytes) == 0 &&
            zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, curve->public_text, bytes) == 0 &&
            zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, curve->secret_text, bytes) == 0)
            return STATUS_OK;
        return transport_zmq_status("setting the keys of --secure");
    }
    if (zmq_setsockopt(socket, ZMQ_PLAIN_USERNAME, user, sizeof user - 1) != 0 ||
        zmq_setsockopt(socket, ZMQ_PLAIN_PASSWORD, auth->password, sizeof auth->password - 1) != 0)
        return transport_zmq_status("setting the password");
    return STATUS_OK;
}

/* Takes the same time for every wrong password. */
static bool same_bytes(zmq_msg_t *frame, const void *expected, size_t size)
{
    if (zmq_msg_size(frame) != size)
        return false;
    unsigned char different = 0;
    const unsigned char *bytes = zmq_msg_data(frame), *wanted = expected;
    for (size_t i = 0; i < size; i++)
        different |= bytes[i] ^ wanted[i];
    return different == 0;
}

/* Whether a request comes from a process of this run, or with --secure from one with the keys. */
static bool is_known(const struct zmq_auth *auth, zmq_msg_t *frames, int count)
{
    const struct secure_curve *curve = secure_curve();
    if (curve)
        return count == ZAP_PUBLIC_KEY + 1 && same_bytes(&frames[ZAP_MECHANISM], "CURVE", 5) &&
               same_bytes(&frames[ZAP_PUBLIC_KEY], curve->public_key, sizeof curve->public_key);
    return count == ZAP_PASSWORD + 1 && same_bytes(&frames[ZAP_MECHANISM], "PLAIN", 5) &&
           same_bytes(&frames[ZAP_PASSWORD], auth->password, sizeof auth->password - 1);
}

/* Sends the frames of an answer: version, the request's id, code, reason, user, metadata. */
static bool answer(void *socket, zmq_msg_t *request_id, bool known)
{
    enum { ANSWER_FRAMES = 6 };
    const char *id = zmq_msg_data(request_id);
    const char *const frames[ANSWER_FRAMES] = {
        "1.0", id, known ? "200" : "400", known ? "" : "not of this run", "", ""};
    bool good = true;
    for (int i = 0; good && i < ANSWER_FRAMES; i++)
        good = zmq_send(socket, frames[i], i == 1 ? zmq_msg_size(request_id) : strlen(frames[i]),
                        i < ANSWER_FRAMES - 1 ? ZMQ_SNDMORE : 0) >= 0;
    return good;
}

/* Answers one request, from ZeroMQ itself; false once the context ends. */
static bool answer_one(struct zmq_auth *auth)
{
    zmq_msg_t frames[ZAP_FRAMES];
    int count = 0;
    bool more = true, good = true;
    for (int i = 0; i < ZAP_FRAMES; i++)
        zmq_msg_init(&frames[i]);
    for (; good && more && count < ZAP_FRAMES; count++) {
        good = zmq_msg_recv(&frames[count], auth->zap, 0) >= 0;
        more = good && zmq_msg_more(&frames[count]);
    }
    if (good) {
        bool known = !more && is_known(auth, frames, count);
        good = answer(auth->zap, &frames[ZAP_REQUEST_ID], known);
    }
    for (int i = 0; i < ZAP_FRAMES; i++)
        zmq_msg_close(&frames[i]);
    return good;
}

/* Counts a failed handshake on one of this rank's sockets. ZeroMQ reports it in two frames: the
 * event, and its address. */
static bool note_stranger(struct zmq_auth *auth, void *monitor)
{
    zmq_msg_t frame;
    zmq_msg_init(&frame);
    bool good = true, more = true;
    while (good && more) {
        good = zmq_msg_recv(&frame, monitor, 0) >= 0;
        more = good && zmq_msg_more(&frame);
    }
    zmq_msg_close(&frame);
    auth->refused += good;
    return good;
}

static void *answer_all(void *argument)
{
    struct zmq_auth *auth = argument;
    zmq_pollitem_t items[] = {{.socket = auth->zap, .events = ZMQ_POLLIN},
                              {.events = ZMQ_POLLIN, .fd = -1},
                              {.events = ZMQ_POLLIN, .fd = -1}};
    int count = 1;
    for (int role = 0; role < 2; role++) {
        if (auth->monitors[role])
            items[count++].socket = auth->monitors[role];
    }
    bool good = true;
    while (good && zmq_poll(items, count, -1) >= 0) {
        if (items[0].revents)
            good = answer_one(auth);
        for (int i = 1; good && i < count; i++) {
            if (items[i].revents)
                good = note_stranger(auth, items[i].socket);
        }
    }
    return NULL;
}

enum status transport_zmq_auth_start(struct zmq_auth *auth)
{
    return thread_start(&auth->thread, "psring-auth", answer_all, auth);
}

void transport_zmq_auth_close(struct zmq_auth *auth)
{
    zmq_ctx_shutdown(auth->context);
    thread_join(&auth->thread);
    for (int role = 0; role < 2; role++) {
        if (auth->monitors[role])
            zmq_close(auth->monitors[role]);
    }
    if (auth->zap)
        zmq_close(auth->zap);
    if (auth->refused > 0)
        log_debug("ZeroMQ: %" PRIu64 " connections of strangers were refused", auth->refused);
}
