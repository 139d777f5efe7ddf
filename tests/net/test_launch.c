/* How a process was started: by options, by torchrun's environment or by an MPI launcher. */
#include <criterion/criterion.h>

#include "experiments/config/launch.h"
#include "tests/lib/config_lib.h"

TestSuite(launch, .init = config_clean_environment);

static void set_torchrun(const char *rank, const char *size, const char *address, const char *port)
{
    setenv("RANK", rank, 1);
    setenv("WORLD_SIZE", size, 1);
    setenv("MASTER_ADDR", address, 1);
    setenv("MASTER_PORT", port, 1);
}

Test(launch, options)
{
    struct config config;
    accept(CONFIG_BENCH, &config, "--rendezvous tcp://node0:29500 --rank 2 --world-size 3");
    cr_assert_str_eq(config.rendezvous, "tcp://node0:29500");
    cr_assert(config.rank == 2 && config.world_size == 3);
    cr_assert(config.startup_timeout == 60);
    /* Rank 3 is out of range. The parser accepts it, and rank 0 reports it to all ranks. */
    accept(CONFIG_TRAIN, &config, "--rendezvous tcp://node0:29500 --rank 3 --world-size 3");
    accept(CONFIG_INFO, &config, "--rendezvous tcp://node0:29500 --rank 0 --world-size 1");
    accept(CONFIG_TRAIN, &config, "");
    cr_assert_null(config.rendezvous);
}

Test(launch, options_that_do_not_go_together)
{
    refuse(CONFIG_TRAIN, "--rank 1", "--rank: needs a place to meet");
    refuse(CONFIG_TRAIN, "--world-size 2", "--world-size: needs a place to meet");
    refuse(CONFIG_TRAIN, "--rendezvous tcp://h:1 --rank 0", "add --world-size W");
    refuse(CONFIG_TRAIN, "--rendezvous tcp://h:1 --world-size 2", "add --rank R (0 to W - 1)");
    refuse(CONFIG_TRAIN, "--rendezvous tcp://h:1", "add --rank R (0 to W - 1) and --world-size W");
    refuse(CONFIG_TRAIN, "--rendezvous h:1 --rank 0 --world-size 2", "expected tcp://HOST:PORT");
    refuse(CONFIG_TRAIN, "--rendezvous tcp://h:0 --rank 0 --world-size 2",
           "name one from 1 to 65535");
}

Test(launch, what_needs_mpi)
{
    refuse(CONFIG_BENCH, "--rendezvous tcp://h:1 --rank 0 --world-size 2 --backend mpi",
           "--backend mpi: needs MPI, which a rendezvous (tcp://h:1) does not start");
    refuse(CONFIG_TRAIN, "--rendezvous tcp://h:1 --rank 0 --world-size 2 --transport mpi",
           "--transport mpi: needs MPI");
    set_torchrun("0", "2", "h", "1");
    refuse(CONFIG_BENCH, "--backend mpi", "--backend mpi: needs MPI");
}

Test(launch, torchrun)
{
    struct config config;
    set_torchrun("1", "4", "node0", "29500");
    setenv("LOCAL_RANK", "1", 1);
    accept(CONFIG_BENCH, &config, "");
    cr_assert_str_eq(config.rendezvous, "tcp://node0:29500");
    cr_assert(config.rank == 1 && config.world_size == 4);
    cr_assert_eq(launch_rank(), 0); /* without a launcher each rank reports its own errors */
    /* torchrun itself listens at MASTER_PORT, so psring takes the next port. */
    setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
    accept(CONFIG_BENCH, &config, "");
    cr_assert_str_eq(config.rendezvous, "tcp://node0:29501");
    /* Explicit options take precedence over the environment. */
    accept(CONFIG_BENCH, &config, "--rendezvous tcp://other:7 --rank 0 --world-size 2");
    cr_assert_str_eq(config.rendezvous, "tcp://other:7");
    cr_assert(config.rank == 0 && config.world_size == 2);
}

Test(launch, mpi_goes_before_torchrun)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
    for (int i = 0; i < 3; i++) {
        struct config config;
        config_clean_environment();
        set_torchrun("1", "4", "node0", "29500");
        setenv(names[i], "2", 1);
        accept(CONFIG_TRAIN, &config, "");
        cr_assert_null(config.rendezvous);
        cr_assert_eq(launch_rank(), 2);
    }
    config_clean_environment();
    cr_assert_eq(launch_rank(), 0);
}

Test(launch, half_of_torchrun)
{
    struct config config;
    setenv("RANK", "0", 1);
    accept(CONFIG_TRAIN, &config, ""); /* RANK without WORLD_SIZE is not torchrun's */
    cr_assert_null(config.rendezvous);
    set_torchrun("0", "four", "h", "1");
    refuse(CONFIG_TRAIN, "", "WORLD_SIZE: found 'four', expected a whole number from 1");
    set_torchrun("0", "4", "h", "");
    refuse(CONFIG_TRAIN, "", "MASTER_PORT: found '', expected a whole number from 1");
    set_torchrun("0", "4", "", "29500");
    refuse(CONFIG_TRAIN, "", "MASTER_ADDR: not set");
}
