/*
 * The list of backends: what --backend may name. A backend is a line in backends.c, and nothing
 * else knows it by name: what it can do, and what it costs, is in its table
 * (common/comm/backend.h).
 */
#ifndef PSRING_EXPERIMENTS_CONFIG_BACKENDS_H
#define PSRING_EXPERIMENTS_CONFIG_BACKENDS_H

#include <stddef.h>

#include "common/comm/backend.h"

enum { BACKENDS_MOST = 32 };

size_t backend_count(void);
const struct backend *backend_get(size_t index);

/* By name; -1: there is none. */
int backend_find(const char *name);

/* Names by index, ended by NULL. Valid until the next backend_add. */
const char *const *backend_names(void);

/* The choices of --backend: the same, and "auto" behind them. */
const char *const *backend_choices(void);

/* What "auto" stands for until one is chosen: it can do what all can that are chosen from
 * (experiments/auto). Opens nothing. */
extern const struct backend backend_auto;

/* Adds one to the list, for this process: for programs with a backend of their own. Before
 * config_parse; borrowed. */
void backend_add(const struct backend *backend);

/* The available names of those that can do something, for messages and help: "ps, ring, rhd".
 * `ability`: offsetof(struct backend, ...) of a bool. Returns `text`. */
const char *backends_that(size_t ability, char *text, size_t size);

/* What decides the order of its sums, into `text`: "ring"; "hierarchical on hosts 0 0 2 2", by
 * worker, each host by its first rank. */
void backend_describe(const struct backend *backend, const struct world *world,
                      const struct topology *topology, char *text, size_t size);

/* Whether a backend can. */
bool backend_can(const struct backend *backend, size_t ability);

#endif
