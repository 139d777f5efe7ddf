/* In place of the other files of this folder in builds without MPI. */
#include "common/net/transport/transport_impl.h"

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
