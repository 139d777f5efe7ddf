/* In place of world_mpi.c and mpi.c in builds without MPI. */
#include "common/net/transport_impl.h"
#include "common/net/world_impl.h"

const char *const transport_mpi_unavailable =
    "this build has no MPI; configure again without -DPSRING_MPI=OFF, or use --transport zmq";

enum status transport_mpi_open(struct transport *endpoint[2], struct world *world,
                               const struct transport_options *options)
{
    (void)endpoint;
    (void)world;
    (void)options;
    log_error("--transport mpi: %s", transport_mpi_unavailable);
    return STATUS_UNSUPPORTED;
}

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
