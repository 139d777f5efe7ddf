/* How the ranks come together and are connected, as psring_options and the environment say. */
#ifndef PSRING_COMMON_LIBRARY_START_H
#define PSRING_COMMON_LIBRARY_START_H

#include "common/comm/backend.h"
#include "common/psring.h"

struct connection {
    struct world *world;
    enum transport_kind kind;
    struct transport *endpoint[2]; /* [NODE_WORKER]; NULL in a world of one */
    const struct backend *backend; /* NULL: chosen by length */
    bool
        shares_memory; /* ranks of a host do, for the hierarchical all-reduce: communicator_share */
};

/* Collective. Errors: logged; the caller closes what there is then, too. */
enum status start_connect(const struct psring_options *options, struct connection *connection);

#endif
