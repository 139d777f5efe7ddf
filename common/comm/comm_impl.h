/* A communicator: comm.c opens and closes it, averaging.c plans and averages. */
#ifndef PSRING_COMMON_COMM_COMM_IMPL_H
#define PSRING_COMMON_COMM_COMM_IMPL_H

#include <stdatomic.h>

#include "common/base/thread.h"
#include "common/comm/backend.h"
#include "common/comm/plan.h"

struct comm {
    const struct backend *backend;
    struct comm_options options; /* final before the backend sees them */
    struct world *world;
    struct group *own_group;        /* all workers, where the caller named none */
    const struct group *everyone;   /* who plans together: NULL is the world */
    int *hosts;                     /* see comm_hosts */
    struct transport *endpoints[2]; /* by enum node_role; NULL where this process hosts none */
    struct backend_env worker_site, server_site;
    void *self, *server;         /* the backend's two sides, */
    bool self_open, server_open; /* where this process has them */
    struct plan plan;

    struct thread server_thread; /* colocated; runs for one plan */
    enum status server_status;   /* of that thread, once it has ended or failed */
    _Atomic bool server_failed;
};

/* A failure of the worker's that follows from its server's is reported as that one. */
enum status comm_blame(const struct comm *comm, enum status status);

/* Of both endpoints, not only of the present plan. */
void comm_count_since_open(const struct comm *comm, struct comm_counters *counters);
/* Workers: their servers stand still, and a colocated one's thread has ended, from here until
 * comm_go_on. No bucket is on its way. */
enum status comm_pause(struct comm *comm);
enum status comm_go_on(struct comm *comm);

#endif
