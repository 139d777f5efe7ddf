/*
 * Internal to common/net: plain TCP connections on which nothing waits longer than it is
 * told to. Functions return 0 or an errno value and log nothing: the caller knows who is at the
 * other end. ETIMEDOUT: nothing moved for the time-out. ECONNRESET: the other end has closed.
 */
#ifndef PSRING_COMMON_NET_STREAM_H
#define PSRING_COMMON_NET_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/net/address.h"

/* Opens a socket that listens at `address`; port 0: one of the system's choice. */
int stream_listen(const union address *address, int *out);

/* Takes the next connection of a listening socket; EAGAIN: there is none now. */
int stream_accept(int listening, int *out);

/* Connects; ETIMEDOUT after `timeout_ms`. */
int stream_connect(const union address *address, int64_t timeout_ms, int *out);

/*
 * Sends (or receives) all of `bytes` bytes. The time-out (0: none) counts from the call, and anew
 * whenever a part has moved. Nothing is waited for where all can move at once.
 */
int stream_send(int socket, const void *data, size_t bytes, int64_t timeout_ms);
int stream_receive(int socket, void *data, size_t bytes, int64_t timeout_ms);

/* Closes *socket if it is open (>= 0) and sets it to -1. The other end gets the end of the stream
 * even if a child of fork() has the socket open. What has come and was not read is read first:
 * otherwise the system may take back what was sent last. */
void stream_close(int *socket);

/* Milliseconds for poll(2) until `deadline_ns` (clock_now_ns; 0: none). */
int stream_poll_ms(int64_t deadline_ns);

#endif
