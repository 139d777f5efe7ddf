/*
 * Protects the connections between the processes of a job (--secure DIR): TLS 1.3 for control
 * connections and the transport tcp, CURVE for ZeroMQ. DIR has one key pair of each kind, and every
 * member of the job has a copy. A connection works only if both ends prove that they have it, so
 * the members do not distinguish one member from another by keys.
 *
 * The keys belong to the process. After secure_open every connection of control.h is a session of
 * TLS, found by its descriptor. A descriptor without a session (a socketpair) works as before.
 *
 * - A listener's end of the handshake is part of its reads.
 *   secure_receive returns EAGAIN until the handshake is done. A stranger is therefore a connection
 *   without a hello.
 * - The connecting end must not wait for the listener, which may be busy.
 *   A thread does its part of the handshake. Sends are queued meanwhile, up to SECURE_QUEUE_BYTES.
 *
 * Threads: one thread at a time may use a connection, as with control.h.
 */
#ifndef PSRING_COMMON_NET_SECURE_H
#define PSRING_COMMON_NET_SECURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "common/base/status.h"

enum { SECURE_QUEUE_BYTES = 16 << 10, SECURE_CURVE_TEXT_BYTES = 41, SECURE_CURVE_BYTES = 32 };

/* Writes new keys to `folder`, which it makes if necessary. Never overwrites keys. Errors:
 * logged. */
enum status secure_write_keys(const char *folder);

/* Reads the keys of `folder`, and protects all connections that this process opens from now on.
 * Refuses keys that other users can read. Errors: logged. */
enum status secure_open(const char *folder);

/* No protected connection may be in use. Drops what secure_end has left to be sent. Does nothing if
 * secure_open has not succeeded. */
void secure_close(void);

/* For ZeroMQ: a text of each key, and the public key's bytes. NULL: without secure_open. */
struct secure_curve {
    char public_text[SECURE_CURVE_TEXT_BYTES], secret_text[SECURE_CURVE_TEXT_BYTES];
    unsigned char public_key[SECURE_CURVE_BYTES];
};
const struct secure_curve *secure_curve(void);

/* -------- connections: for control.c and tcp.c -------------------------------------------------
 */

/* Makes a session of a new TCP connection. 0 or an errno value. Does nothing without
 * secure_open. */
int secure_begin(int socket, bool accepted);

/* Ends the session, if there is one. True: the connection still has to send what is queued. The
 * thread closes it then, after a few seconds, or in secure_close. */
bool secure_end(int socket);

/* shutdown(2) of the output. The queue is sent first. */
void secure_end_output(int socket);

/* Waits until the handshake of a connecting end is over. 0, or an errno value. */
int secure_settle(int socket, int64_t deadline_ns);

/* Whether decrypted bytes, or an error behind them, wait that poll(2) does not report. Any
 * thread. */
bool secure_has_input(int socket);

/* Whether the other end of an accepted connection has sent anything. */
bool secure_has_heard(int socket);

/* Whether a part of a message is encrypted and not sent: the same bytes must be sent next. */
bool secure_holds_output(int socket);

/* Why the session cannot be used. EKEYREJECTED: the other end has other keys. EPROTO: it does not
 * use TLS 1.3 as this process does. EBADMSG: bytes were changed on their way. 0: another reason, or
 * none. */
int secure_error(int socket);

extern bool secure_is_on; /* set by secure_open */

ssize_t secure_send_session(int socket, struct iovec *pieces, int count);
ssize_t secure_receive_session(int socket, struct iovec *pieces, int count);

/* sendmsg(2) and recvmsg(2) that neither wait nor raise SIGPIPE, without TLS. */
static inline ssize_t clear_send(int socket, struct iovec *pieces, int count)
{
    const struct msghdr message = {.msg_iov = pieces, .msg_iovlen = (size_t)count};
    return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static inline ssize_t clear_receive(int socket, struct iovec *pieces, int count)
{
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = (size_t)count};
    return recvmsg(socket, &message, MSG_DONTWAIT);
}

/* The same, with TLS after secure_open. After EAGAIN the next call must send the same bytes, or
 * more. secure_receive fills all pieces if enough bytes have arrived. */
static inline ssize_t secure_send(int socket, struct iovec *pieces, int count)
{
    return secure_is_on ? secure_send_session(socket, pieces, count)
                        : clear_send(socket, pieces, count);
}

static inline ssize_t secure_receive(int socket, struct iovec *pieces, int count)
{
    return secure_is_on ? secure_receive_session(socket, pieces, count)
                        : clear_receive(socket, pieces, count);
}

#endif
