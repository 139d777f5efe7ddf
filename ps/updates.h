/*
 * A server that owns the parameters of its shards: it applies pushes and answers with fresh
 * parameters, each when the policy says so (ps/policy.h). The neighbour of server.c, which takes
 * the messages; owned by its thread.
 *
 * Memory: the arrays are the updater's. An answer is a copy, since its chunk may change again
 * before it has been sent: a window of them for each worker.
 *
 * Errors: STATUS_PROTOCOL for a message that does not belong here, and for parameters that are
 * about to be given away although they lack more than ssp's bound allows.
 */
#ifndef PSRING_PS_UPDATES_H
#define PSRING_PS_UPDATES_H

#include <stdbool.h>

#include "common/comm/backend.h"
#include "ps/store.h"

struct updates;

/* Borrows `store`, which is the plan's. */
enum status updates_new(struct updates **updates, const struct comm_site *site,
                        struct store *store);
void updates_free(struct updates **updates);

/* A message other than BYE; once this returns, its payload is not needed any more. */
enum status updates_take(struct updates *updates, int worker, const struct message *message,
                         const void *payload);

/* The worker has said goodbye: it holds nobody back. */
enum status updates_leave(struct updates *updates, int worker);

/* Somebody waits for an answer. */
bool updates_awaited(const struct updates *updates);

#endif
