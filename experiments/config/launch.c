#include "experiments/config/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/net/rendezvous/rendezvous.h"
#include "common/net/transport/transport.h"
#include "experiments/config/backends.h"

const char *launch_variable(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

/* Set by what starts MPI's ranks. */
static const char *mpi_launcher_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
    const char *rank = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !rank; i++)
        rank = launch_variable(names[i]);
    return rank;
}

int launch_rank(void)
{
    const char *rank = mpi_launcher_rank();
    return rank ? (int)strtol(rank, NULL, 10) : 0;
}

static bool has_mpi(void)
{
    return transport_kind_unavailable(TRANSPORT_MPI) == NULL;
}

/* -------- torchrun's environment -------------------------------------------------------------- */

/* A variable that holds a whole number from `least` to `most`. */
static enum status read_number(const char *name, long least, long most, long *number)
{
    const char *text = launch_variable(name);
    char *end = NULL;
    if (text)
        *number = strtol(text, &end, 10);
    if (text && end != text && !*end && *number >= least && *number <= most)
        return STATUS_OK;
    log_error(
        "%s: found '%s', expected a whole number from %ld to %ld; RANK, WORLD_SIZE, MASTER_ADDR "
        "and MASTER_PORT together say which rank this is and where rank 0 listens: set all "
        "of them, or unset RANK and WORLD_SIZE",
        name, text ? text : "", least, most);
    return STATUS_USAGE;
}

static enum status from_torchrun(struct config *config)
{
    enum status status = STATUS_OK;
    long rank = 0, size = 0, port = 0;
    const char *address = launch_variable("MASTER_ADDR");
    const char *agent = launch_variable("TORCHELASTIC_USE_AGENT_STORE");
    if (!launch_variable("RANK") || !launch_variable("WORLD_SIZE") ||
        (mpi_launcher_rank() && has_mpi()))
        return STATUS_OK;
    TRY(read_number("RANK", 0, CONFIG_RANKS_MOST, &rank));
    TRY(read_number("WORLD_SIZE", 1, CONFIG_RANKS_MOST, &size));
    TRY(read_number("MASTER_PORT", 1, 65534, &port));
    if (!address) {
        log_error(
            "MASTER_ADDR: not set, expected the name or address of rank 0's host, as RANK and "
            "WORLD_SIZE are set; set it, or unset those two");
        return STATUS_USAGE;
    }
    if (agent && strcmp(agent, "True") == 0)
        port++; /* torchrun itself listens at MASTER_PORT then */
    snprintf(config->rendezvous_text, sizeof config->rendezvous_text, "tcp://%s:%ld", address,
             port);
    config->rendezvous = config->rendezvous_text;
    config->rank = rank;
    config->world = size;
out:
    return status;
}

/* -------- what goes together ------------------------------------------------------------------ */

static enum status check_options(struct config *config)
{
    bool rank = config->rank != CONFIG_RANK_NOT_GIVEN;
    bool world = config->world != CONFIG_RANK_NOT_GIVEN;
    if (!config->rendezvous && (rank || world)) {
        log_error(
            "--%s: says nothing without a place to meet; add --rendezvous tcp://HOST:PORT, where "
            "rank 0 listens, or leave it to mpirun to number the ranks",
            rank ? "rank" : "world");
        return STATUS_USAGE;
    }
    if (config->rendezvous && (!rank || !world)) {
        log_error("--rendezvous %s: how many ranks come there, and which is this? add %s%s%s",
                  config->rendezvous, rank ? "" : "--rank R (0 to W - 1)",
                  rank || world ? "" : " and ", world ? "" : "--world W");
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

static enum status check_mpi(const struct config *config)
{
    const char *word = config->transport == CONFIG_TRANSPORT_MPI ? "--transport mpi"
                       : config_backend(config)->needs_mpi       ? "--backend mpi"
                                                                 : NULL;
    if (config->rendezvous && word) {
        log_error("%s: needs MPI, which a rendezvous (%s) does not start; use --backend ring or ps "
                  "over --transport zmq, or start the ranks with mpirun",
                  word, config->rendezvous);
        return STATUS_USAGE;
    }
    if (!config->rendezvous && mpi_launcher_rank() && !has_mpi()) {
        log_error("an MPI launcher has started this process, and this build of psring has no MPI; "
                  "start each rank with --rendezvous tcp://HOST:PORT --rank R --world W, or build "
                  "without -DPSRING_MPI=OFF");
        return STATUS_UNSUPPORTED;
    }
    if (config->transport == CONFIG_TRANSPORT_MPI && !has_mpi()) {
        log_error("--transport mpi: %s", transport_kind_unavailable(TRANSPORT_MPI));
        return STATUS_UNSUPPORTED;
    }
    return STATUS_OK;
}

enum status launch_check(struct config *config)
{
    enum status status;
    struct rendezvous parsed;
    TRY(check_options(config));
    if (!config->rendezvous)
        TRY(from_torchrun(config));
    if (config->rendezvous)
        TRY(rendezvous_parse(config->rendezvous, &parsed));
    TRY(check_mpi(config));
out:
    return status;
}
