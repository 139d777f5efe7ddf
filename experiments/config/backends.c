#include "experiments/config/backends.h"

#include "common/base/check.h"
#include "common/comm/none.h"
#include "ps/ps.h"
#include "ring/halving/halving.h"
#include "ring/vendor/library.h"
#include "ring/vendor/nccl.h"
#include "ring/ring.h"

const char *const backend_names[BACKEND_COUNT + 1] = {
    [BACKEND_NONE] = "none", [BACKEND_PS] = "ps",     [BACKEND_RING] = "ring",
    [BACKEND_MPI] = "mpi",   [BACKEND_NCCL] = "nccl", [BACKEND_RHD] = "rhd",
};

const struct backend *backend_get(enum backend_kind kind)
{
    static const struct backend *const table[BACKEND_COUNT] = {
        [BACKEND_NONE] = &backend_none, [BACKEND_PS] = &backend_ps,
        [BACKEND_RING] = &backend_ring, [BACKEND_MPI] = &backend_mpi,
        [BACKEND_NCCL] = &backend_nccl, [BACKEND_RHD] = &backend_rhd,
    };
    CHECK((int)kind >= 0 && kind < BACKEND_COUNT);
    return table[kind];
}
