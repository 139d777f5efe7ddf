/*
 * The list of backends: what --backend may name. A backend is a line in backends.c, and nothing
 * else knows it by name: what it can do, and what it costs, is in its table
 * (common/comm/backend.h).
 */
#ifndef PSRING_EXPERIMENTS_BACKENDS_H
#define PSRING_EXPERIMENTS_BACKENDS_H

#include <stddef.h>

#include "common/comm/backend.h"

enum { BACKENDS_MOST = 32 };

size_t backend_count(void);
const struct backend *backend_get(size_t index);

/* Names by index, ended by NULL: the choices of --backend. Valid until the next backend_add. */
const char *const *backend_names(void);

/* Adds one to the list, for this process: for programs with a backend of their own. Before
 * config_parse; borrowed. */
void backend_add(const struct backend *backend);

/* The available names of those that can do something, for messages and help: "ps, ring, rhd".
 * `ability`: offsetof(struct backend, ...) of a bool. Returns `text`. */
const char *backends_that(size_t ability, char *text, size_t size);

/* Whether a backend can. */
bool backend_can(const struct backend *backend, size_t ability);

#endif
