/*
 * All communicators of a process share one engine: the world, its connections, and the right to use
 * them. Operations run one at a time, in the order in which they come: a blocking one on its
 * caller's thread, as soon as all that were started before have ended; started ones on a thread of
 * the engine's, which the first of them starts.
 *
 * The first failure is the last operation. The engine reports it to the other ranks and cuts the
 * connections. Every later operation returns the same status and text.
 */
#ifndef PSRING_COMMON_LIBRARY_ENGINE_H
#define PSRING_COMMON_LIBRARY_ENGINE_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/base/thread.h"
#include "common/comm/backend.h"
#include "common/library/communicator.h"
#include "common/library/errors.h"
#include "common/library/start.h"

struct psring_handle {
    struct engine *engine;
    struct psring *comm; /* until done */
    struct operation operation;
    bool done, failed;
    struct psring_handle *next_queued;
    struct psring_handle *next, **previous; /* of all that have not been waited for */
};

struct engine {
    struct connection connection;
    bool threaded;                /* a thread of the engine's may use the transport */
    pid_t process;                /* whose it is */
    struct psring *communicators; /* all, the newest first; for who has the transport */
    struct psring *all;           /* that of the world; NULL until there is one */
    uint16_t splits;              /* of the world so far */
    enum status
        heard; /* of another rank's failure, while the world waited; for who has the transport */

    struct monitor
        monitor;       /* of all that follows; wakes: busy, the queue, a handle's done, ending */
    bool busy, ending; /* busy: a thread has the transport */
    struct thread thread;
    struct psring_handle *queue, **queue_end, *handles;
    enum status failed; /* of the first operation that did */
    char why[ERROR_BYTES];
    struct psring_statistics statistics;
};

/* Brings the ranks together, and makes their communicator. Errors: logged. */
enum status engine_new(struct engine **engine, const struct psring_options *options);

/* Ends what has been started; waits for all ranks unless an operation has failed. Frees everything
 * and sets *engine to NULL. Errors: logged. */
enum status engine_free(struct engine **engine);

/* In a child of fork(), whose parent has the engine: closes the inherited connections. */
void engine_close_in_child(const struct engine *engine);

/* Makes a communicator of the ranks of one color, as psring_split; and frees one. Both wait until
 * all that was started has ended. */
enum psring_status engine_split(struct engine *engine, int color, struct psring **group);
void engine_drop(struct engine *engine, struct psring **group);

/* Returns when the operation has ended. */
enum psring_status engine_run(struct engine *engine, struct psring *comm,
                              const struct operation *operation);

/* Starts it; the engine owns the handle. */
enum psring_status engine_start(struct engine *engine, struct psring *comm,
                                const struct operation *operation, struct psring_handle **handle);
bool engine_done(const struct psring_handle *handle);
/* Waits for its end and frees it. */
enum psring_status engine_wait(struct psring_handle *handle);

void engine_statistics(struct engine *engine, struct psring_statistics *statistics);

#endif
