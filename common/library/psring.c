/* The library's interface: arguments are checked here, and nothing below is asked for what it could
 * not do. */
#include "common/psring.h"

#include <stdatomic.h>
#include <unistd.h>

#include "common/library/check.h"
#include "common/library/engine.h"
#include "common/library/forks.h"

#define TEXT_OF(number) #number
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

int psring_version(void)
{
    return PSRING_VERSION_NUMBER;
}

const char *psring_version_text(void)
{
    return VERSION_TEXT(PSRING_VERSION_MAJOR, PSRING_VERSION_MINOR, PSRING_VERSION_PATCH);
}

/* -------- beginning and end ------------------------------------------------------------------- */

static _Atomic int owner; /* the process that has a world; 0: none has */

static enum psring_status become_owner(void)
{
    int process = (int)getpid(), found = 0;
    if (atomic_compare_exchange_strong(&owner, &found, process))
        return PSRING_OK;
    if (found == process)
        return errors_set(PSRING_ERROR_STATE, "psring_init: this process has a world already; "
                                              "psring_finalize ends it");
    return errors_set(PSRING_ERROR_STATE,
                      "psring_init: process %d had a world when it forked this one; fork before "
                      "psring_init, or call exec in the child",
                      found);
}

enum psring_status psring_init(struct psring **world, const struct psring_options *options)
{
    static const struct psring_options defaults;
    enum status status;
    struct engine *engine = NULL;
    if (!world)
        return errors_set(PSRING_ERROR_USAGE, "psring_init: no place for the world");
    *world = NULL;
    enum psring_status owned = become_owner();
    if (owned != PSRING_OK)
        return owned;
    if (!options)
        options = &defaults;
    errors_collect(options->log, options->log_context);
    TRY(engine_new(&engine, options));
    forks_watch(engine);
    *world = engine->communicators;
    return PSRING_OK;
out:
    owned = errors_return(status);
    atomic_store(&owner, 0);
    return owned;
}

enum psring_status psring_finalize(struct psring **world)
{
    enum psring_status status = check_world(__func__, world ? *world : NULL);
    if (status != PSRING_OK)
        return status;
    struct engine *engine = (*world)->engine;
    *world = NULL;
    forks_watch(NULL);
    status = errors_return(engine_free(&engine));
    atomic_store(&owner, 0);
    return status;
}

/* -------- who takes part ---------------------------------------------------------------------- */

int psring_rank(const struct psring *comm)
{
    return comm->group->rank;
}

int psring_size(const struct psring *comm)
{
    return comm->group->size;
}

int psring_local_rank(const struct psring *comm)
{
    return comm->engine->connection.world->local_rank;
}

int psring_local_size(const struct psring *comm)
{
    return comm->engine->connection.world->local_size;
}

enum psring_status psring_split(struct psring *world, int color, struct psring **group)
{
    enum psring_status status = check_world(__func__, world);
    if (!group)
        return errors_set(PSRING_ERROR_USAGE, "psring_split: no place for the group");
    *group = NULL;
    if (status != PSRING_OK)
        return status;
    return engine_split(world->engine, color, group);
}

enum psring_status psring_free(struct psring **group)
{
    if (!group || !*group)
        return PSRING_OK;
    enum psring_status status = check_communicator(__func__, *group);
    if (status != PSRING_OK)
        return status;
    if ((*group)->is_world)
        return errors_set(PSRING_ERROR_USAGE,
                          "psring_free: this is the world, which psring_finalize ends");
    engine_drop((*group)->engine, group);
    return PSRING_OK;
}

enum psring_status psring_get_statistics(const struct psring *comm,
                                         struct psring_statistics *statistics)
{
    enum psring_status status = check_communicator(__func__, comm);
    if (status == PSRING_OK && !statistics)
        return errors_set(PSRING_ERROR_USAGE, "psring_get_statistics: no place for them");
    if (status == PSRING_OK)
        engine_statistics(comm->engine, statistics);
    return status;
}
