/*
 * Adds a backend from outside (tests/bench/star) to the list of backends. bench times it, compares
 * its bytes with its formula, and refuses options that it does not support. Variants of it show
 * that bench detects a wrong formula and wrong elements, and leaves bytes empty that a backend does
 * not count. Run under mpirun.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <unistd.h>

#include "experiments/bench/bench.h"
#include "experiments/config/backends.h"
#include "tests/lib/config_lib.h"
#include "tests/bench/star/star.h"

static struct world *world;
static pthread_t main_thread;

/* -------- variants ---------------------------------------------------------------------------- */

static struct cost_traffic one_byte_more(const struct cost_shape *shape, int rank)
{
    struct cost_traffic traffic = cost_node_traffic(backend_star.cost, shape, rank);
    traffic.sent_bytes++;
    return traffic;
}

/* Correct on the main thread, wrong on the thread that averages while the caller computes. */
static enum status wrong_beside(void *self, size_t bucket, void *data)
{
    enum status status = backend_star.allreduce(self, bucket, data);
    if (!pthread_equal(pthread_self(), main_thread))
        *(float *)data += 1;
    return status;
}

static struct backend variant(const char *name)
{
    struct backend backend = backend_star;
    backend.name = name;
    return backend;
}

/* -------- bench ------------------------------------------------------------------------------- */

static char csv_path[] = "/tmp/psring_star_XXXXXX";

/* The cell of `column` in the last row, as text. Only on rank 0. */
static const char *cell(const char *column)
{
    static char head[4096], row[4096], line[4096];
    FILE *file = fopen(csv_path, "r");
    cr_assert(file);
    cr_assert(fgets(head, sizeof head, file));
    while (fgets(line, sizeof line, file))
        memcpy(row, line, sizeof row);
    fclose(file);
    char *names = head, *values = row;
    for (;;) {
        char *name = strsep(&names, ",\n"), *value = strsep(&values, ",\n");
        cr_assert(name && value, "no column %s", column);
        if (strcmp(name, column) == 0)
            return value;
    }
}

static enum status bench(const char *options)
{
    struct config config;
    char line[256];
    snprintf(line, sizeof line, "--backend %s -n 3 -w 1 --probe off --csv %s", options, csv_path);
    if (world->rank == 0)
        unlink(csv_path);
    accept(CONFIG_BENCH, &config, line);
    cr_assert_eq(config_resolve(&config, world), STATUS_OK);
    return bench_run(&config, world);
}

static void check_timed(void)
{
    cr_assert_eq(bench("star -b 4 -e 256k -f 16"), STATUS_OK);
    cr_assert_eq(bench("star --transport mpi -b 1000 -e 1000 --overlap"), STATUS_OK);
    if (world->rank != 0)
        return;
    char sent[16];
    snprintf(sent, sizeof sent, "%d", 1000 * (world->size - 1));
    cr_expect_str_eq(cell("backend"), "star");
    cr_expect_str_eq(cell("worker_sent_bytes"), sent);
    cr_expect_str_eq(cell("theory_worker_sent_bytes"), sent);
    cr_expect_str_eq(cell("rank_sent_bytes"), sent);
    cr_expect_str_eq(cell("wrong"), "0");
}

/* The backend counts no bytes, so its wrong formula does not matter. */
static void check_not_counted(void)
{
    cr_assert_eq(bench("star-uncounted -b 1000 -e 1000"), STATUS_OK);
    if (world->rank != 0)
        return;
    cr_expect_str_eq(cell("worker_sent_bytes"), "");
    cr_expect_str_eq(cell("theory_worker_sent_bytes"), "");
    cr_expect_str_eq(cell("theory_rank_sent_bytes"), "");
}

static void check_found_out(void)
{
    cr_assert_eq(bench("star-wrong-formula -b 1000 -e 1000"), STATUS_PROTOCOL);
    cr_assert_eq(bench("star-wrong-beside -b 1000 -e 1000"), STATUS_OK);
    cr_assert_eq(bench("star-wrong-beside -b 1000 -e 1000 --overlap"), STATUS_PROTOCOL);
    if (world->rank == 0)
        cr_expect(strtol(cell("wrong"), NULL, 10) >= 3, "%s", cell("wrong"));
}

/* -------- what it cannot do ------------------------------------------------------------------- */

static void check_refused(void)
{
    static const struct {
        const char *line, *words;
    } cases[] = {
        {"--backend star --segment-bytes 4k",
         "--segment-bytes 4096: --backend star does not use it"},
        {"--backend star --compress fp16", "--compress fp16: --backend star does not use it"},
        {"--backend star --push-window 3", "--push-window 3: --backend star does not use it"},
        {"--backend star --servers 1", "--backend star does not use it"},
        {"--backend star --reduce-order ring", "--backend star does not use it"},
        {"--backend star --mpi-algorithm ring", "--mpi-algorithm ring: --backend star does not"},
        {"--backend stars", "none | ps | ring | mpi | nccl | rhd | hierarchical | tree | star"},
    };
    for (size_t i = 0; world->rank == 0 && i < sizeof cases / sizeof *cases; i++)
        refuse(CONFIG_BENCH, cases[i].line, cases[i].words);
}

Test(mpi_star, a_backend_from_outside)
{
    static struct backend uncounted, wrong_formula, wrong_thread;
    static struct cost_formula formula;
    unsetenv("PSRING_NETWORK");
    unsetenv("PSRING_LINK_BITS");
    unsetenv("PSRING_BIND_SUBNET");
    formula = *backend_star.cost;
    formula.traffic = one_byte_more;
    uncounted = variant("star-uncounted");
    uncounted.counts_bytes = false;
    uncounted.cost = &formula;
    wrong_formula = variant("star-wrong-formula");
    wrong_formula.cost = &formula;
    wrong_thread = variant("star-wrong-beside");
    wrong_thread.allreduce = wrong_beside;
    backend_add(&backend_star);
    backend_add(&uncounted);
    backend_add(&wrong_formula);
    backend_add(&wrong_thread);
    main_thread = pthread_self();
    cr_assert_eq(world_open(&world, NULL, NULL, NULL), STATUS_OK);
    if (world->rank == 0)
        close(mkstemp(csv_path));
    cr_assert_eq(world_broadcast(world, NULL, csv_path, sizeof csv_path), STATUS_OK);
    check_timed();
    check_not_counted();
    check_found_out();
    check_refused();
    if (world->rank == 0)
        unlink(csv_path);
    world_close(&world);
}
