/* In place of mpi.c in builds without MPI. */
#include "common/net/world/world_impl.h"

bool world_mpi_version(char *text, size_t size)
{
    (void)text;
    (void)size;
    return false;
}

/* A process that is told of no others is alone. */
enum status world_mpi_open(struct world *world, int *argc, char ***argv,
                           const struct world_options *options)
{
    (void)argc;
    (void)argv;
    return world_rendezvous_open(
        world,
        &(struct world_options){.startup_timeout_ms = options->startup_timeout_ms, .size = 1});
}
