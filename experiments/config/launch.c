#include "experiments/config/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sha256.h"
#include "common/comm/comm_options.h"
#include "common/net/rendezvous.h"
#include "common/net/host.h"
#include "experiments/config/backends.h"

int launch_rank(void)
{
    int rank = launcher_mpi_rank();
    return rank < 0 ? 0 : rank;
}

static bool has_mpi(void)
{
    return transport_kind_unavailable(TRANSPORT_MPI) == NULL;
}

static enum status from_torchrun(struct config *config)
{
    enum status status = STATUS_OK;
    struct launcher_place place;
    if (launcher_mpi_rank() >= 0 && has_mpi())
        return STATUS_OK;
    TRY(launcher_torchrun(&place));
    if (!place.given)
        return STATUS_OK;
    snprintf(config->rendezvous_text, sizeof config->rendezvous_text, "%s", place.rendezvous);
    config->rendezvous = config->rendezvous_text;
    config->rank = place.rank;
    config->world_size = place.size;
out:
    return status;
}

enum status launch_token(const char *text, uint64_t *token)
{
    enum { DIGITS = 16 };
    enum status status;
    char hex[SHA256_HEX_SIZE];
    TRY(sha256_hex(text, strlen(text), hex));
    hex[DIGITS] = '\0';
    *token = strtoull(hex, NULL, DIGITS);
out:
    return status;
}

static bool is_from_torchrun(const struct config *config)
{
    return config->rendezvous == config->rendezvous_text;
}

enum status launch_job(const struct config *config, uint64_t *token)
{
    const char *text = config->token;
    if (!text && is_from_torchrun(config))
        text = launcher_variable("TORCHELASTIC_RUN_ID");
    *token = 0;
    return text ? launch_token(text, token) : STATUS_OK;
}

void launch_warn_of_environment(const struct config *config)
{
    if (is_from_torchrun(config))
        log_warn("RANK=%s and WORLD_SIZE=%s in the environment made this process one of several; "
                 "unset both to run it alone",
                 launcher_variable("RANK"), launcher_variable("WORLD_SIZE"));
}

/* -------- what goes together ------------------------------------------------------------------ */

static enum status check_options(struct config *config)
{
    bool rank = config->rank != CONFIG_RANK_NOT_GIVEN;
    bool world = config->world_size != CONFIG_RANK_NOT_GIVEN;
    if (!config->rendezvous && (rank || world))
        return FAIL(STATUS_USAGE,
                    "--%s: needs a place to meet; add --rendezvous tcp://HOST:PORT, where rank 0 "
                    "listens, or leave it to mpirun to number the ranks",
                    rank ? "rank" : "world-size");
    if (config->rendezvous && (!rank || !world))
        return FAIL(
            STATUS_USAGE,
            "--rendezvous %s: needs the number of ranks and the rank of this process; add %s%s%s",
            config->rendezvous, rank ? "" : "--rank R (0 to W - 1)", rank || world ? "" : " and ",
            world ? "" : "--world-size W");
    return STATUS_OK;
}

/* The option that asks for MPI, or NULL. */
static const char *option_for_mpi(const struct config *config)
{
    return config->transport == CONFIG_TRANSPORT_MPI ? "--transport mpi"
           : config_backend(config)->needs_mpi       ? "--backend mpi"
                                                     : NULL;
}

bool launch_alone(const struct config *config)
{
    return !config->rendezvous && launcher_mpi_rank() < 0 && !option_for_mpi(config);
}

static enum status check_mpi(const struct config *config)
{
    const char *word = option_for_mpi(config);
    if (config->rendezvous && word)
        return FAIL(
            STATUS_USAGE,
            "%s: needs MPI, which a rendezvous (%s) does not start; use --backend ring or ps "
            "over --transport zmq, or start the ranks with mpirun",
            word, config->rendezvous);
    if (!config->rendezvous && launcher_mpi_rank() >= 0 && !has_mpi())
        return FAIL(
            STATUS_UNSUPPORTED,
            "mpirun or srun: an MPI launcher has started this process, and this build of psring "
            "has no MPI; "
            "start each rank with --rendezvous tcp://HOST:PORT --rank R --world-size W, or build "
            "without -DPSRING_MPI=OFF");
    if (config->secure && !config->rendezvous && launcher_mpi_rank() >= 0)
        return FAIL(
            STATUS_USAGE,
            "--secure %s: MPI has started this process, and sends in the clear; start each rank "
            "with --rendezvous tcp://HOST:PORT --rank R --world-size W, or leave --secure (or "
            "PSRING_SECURE) out",
            config->secure);
    if (config->transport == CONFIG_TRANSPORT_MPI && !has_mpi())
        return FAIL(STATUS_UNSUPPORTED, "--transport mpi: %s",
                    transport_kind_unavailable(TRANSPORT_MPI));
    return STATUS_OK;
}

enum status launch_check(struct config *config)
{
    enum status status;
    struct rendezvous parsed;
    TRY(check_options(config));
    if (!config->rendezvous && !config->elastic.join && config->command != CONFIG_SERVE &&
        config->command != CONFIG_PREDICT)
        TRY(from_torchrun(config));
    if (config->rendezvous)
        TRY(rendezvous_parse(config->rendezvous, &parsed));
    TRY(check_mpi(config));
out:
    return status;
}
