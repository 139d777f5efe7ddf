/*
 * The list of backends that --backend may name. Each backend is one line in backends.c; no other
 * code knows it by name. Its table says what it can do and what it costs (common/comm/backend.h).
 */
#ifndef PSRING_EXPERIMENTS_CONFIG_BACKENDS_H
#define PSRING_EXPERIMENTS_CONFIG_BACKENDS_H

#include <stddef.h>

#include "common/comm/backend.h"

enum { BACKENDS_MOST = 32 };

size_t backend_count(void);
const struct backend *backend_get(size_t index);

/* The index of the backend with this name, or -1. */
int backend_find(const char *name);

/* Names by index, ended by NULL. Valid until the next backend_add. */
const char *const *backend_names(void);

/* The choices of --backend: the same names, then "auto". */
const char *const *backend_choices(void);

/* Stands for "auto" until a backend is chosen (experiments/predict/auto.c). It has the abilities
 * that every candidate has. It opens nothing. */
extern const struct backend backend_auto;

/* Adds a backend to this process's list, for a program that brings its own backend. Borrows it.
 * Call before config_parse. */
void backend_add(const struct backend *backend);

/* Writes the names of the backends that have an ability, for messages and help: "ps, ring, rhd".
 * `ability`: offsetof(struct backend, ...) of a bool. Returns `text`. */
const char *backends_that(size_t ability, char *text, size_t size);

/* Writes what decides the order of the backend's sums: "ring", or "hierarchical on hosts 0 0 2 2".
 * The list has one host per worker. A host is named by its first rank. For rhd it has what decides
 * the cuts, if the order depends on them: "rhd, radix 3, segments of 4096 bytes". */
void backend_describe(const struct backend *backend, const struct world *world,
                      const struct topology *topology, const struct comm_options *options,
                      char *text, size_t size);

/* Whether a backend has the ability. */
bool backend_can(const struct backend *backend, size_t ability);

#endif
