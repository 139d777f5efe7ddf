/*
 * A send borrows its payload until the transport reports it as complete. A caller that writes there
 * earlier sends wrong data, but only when the machine is slow enough. Here it always fails. A
 * watched endpoint keeps a copy of every payload. It aborts the process if the payload changes
 * before its owner has seen that the send is complete. If the answer is received there
 * (transport_answers_in_place), the send need only be complete before the transport receives.
 */
#ifndef PSRING_TESTS_LIB_SEND_MEMORY_H
#define PSRING_TESTS_LIB_SEND_MEMORY_H

#include "common/comm/comm.h"

/* Watches both endpoints of a comm that is open and not planned yet, until they are closed. Does
 * nothing under ThreadSanitizer. */
void send_memory_watch(struct comm *comm);

#endif
