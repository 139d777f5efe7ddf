/*
 * The winner map: the fastest way to average by number of workers, size, distance, racks and
 * machines, from the fitted models of each network. A cell names the simplest way within
 * PREDICT_REGRET_NEAR of the fastest: the first in the order of predict_ways.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/csv.h"
#include "common/base/stats.h"
#include "experiments/predict/predict.h"

enum { WORKERS_MOST = 1024, SMALLEST = 1 << 10, LARGEST = 1 << 28, SIZE_FACTOR = 4 };
enum { RACK_RANKS = 16, OVERSUBSCRIBED = 4, HOST_RANKS = 4 };
enum { SHARED_WORKERS_MOST = 128 }; /* formulas for shared hosts take up to W^3 steps */

static const double added_round_trip_s[] = {0, 1e-3, 10e-3, 50e-3};

/* How the workers' hosts are connected. */
enum wiring { WIRING_FLAT, WIRING_RACKS, WIRING_SHARED_HOSTS, WIRINGS };
static const char *const wiring_names[] = {"flat", "racks", "shared hosts"};

/* The machines for servers. Each set contains the ways of `alone`. */
enum machines { MACHINES_ALONE, MACHINES_SPARE, MACHINES_SWITCH, MACHINE_SETS };
static const char *const machine_names[] = {"workers alone", "as many spare machines",
                                            "a server in the switch"};

struct map_place {
    const char *network;
    struct predict_cluster cluster; /* `spare` and `in_switch` are those of all sets together */
    enum wiring wiring;
    const int *hosts; /* of workers and servers; NULL: one each */
    struct predict_way ways[PREDICT_WAYS_MOST];
    size_t way_count;
    double round_trip_s; /* added */
    uint64_t bytes;
};

struct map_cell {
    struct predict_way way;
    const struct predict_model *model; /* NULL: no way has a formula */
    double best_s; /* of `way`; the fastest is at most PREDICT_REGRET_NEAR faster */
    double ring_s;
};

static bool has_machines(enum machines machines, const struct predict_way *way)
{
    if (strcmp(way->backend, "ps") != 0 || way->placement == PLACEMENT_COLOCATED)
        return true;
    return machines == (way->placement == PLACEMENT_SWITCH ? MACHINES_SWITCH : MACHINES_SPARE);
}

static bool decides(const struct predict_model *model, const char *network)
{
    return strcmp(model->network, network) == 0 && predict_is_transport(model) &&
           model->fitted >= STATS_INTERVAL_LEAST;
}

/* The seconds of a way over the transport that suits it best, and the model of that transport. */
static double best_time(const struct predict_models *models, const struct map_place *place,
                        const struct predict_way *way, const struct predict_model **of)
{
    double best_s = (double)INFINITY;
    for (size_t m = 0; m < models->count; m++) {
        const struct predict_model *model = &models->models[m];
        struct predict_terms terms;
        if (!decides(model, place->network))
            continue;
        const struct predict_model there = predict_model_on(model, &place->cluster);
        if (!predict_way_terms(&there, way, place->cluster.workers, place->hosts,
                               place->bytes / sizeof(float), COMPRESS_NONE, &terms))
            continue;
        double seconds = predict_time(&there.fit, &terms).seconds;
        if (seconds < best_s) {
            best_s = seconds;
            *of = model;
        }
    }
    return best_s;
}

/* Fills a cell for each set of machines. */
static void fill_cells(const struct predict_models *models, const struct map_place *place,
                       struct map_cell cells[MACHINE_SETS])
{
    const struct predict_way *ways = place->ways;
    const struct predict_model *of[PREDICT_WAYS_MOST] = {NULL};
    double seconds[PREDICT_WAYS_MOST], ring_s = (double)INFINITY;
    for (size_t w = 0; w < place->way_count; w++) {
        seconds[w] = best_time(models, place, &ways[w], &of[w]);
        if (strcmp(ways[w].backend, "ring") == 0)
            ring_s = seconds[w];
    }
    for (enum machines set = 0; set < MACHINE_SETS; set++) {
        double fastest_s = (double)INFINITY;
        cells[set] = (struct map_cell){.ring_s = ring_s};
        for (size_t w = 0; w < place->way_count; w++)
            fastest_s = has_machines(set, &ways[w]) ? fmin(fastest_s, seconds[w]) : fastest_s;
        for (size_t w = 0; w < place->way_count && !cells[set].model; w++) {
            if (has_machines(set, &ways[w]) && seconds[w] <= (1 + PREDICT_REGRET_NEAR) * fastest_s)
                cells[set] = (struct map_cell){ways[w], of[w], seconds[w], ring_s};
        }
    }
}

static void list_fields(const struct map_place *place, enum machines machines,
                        const struct map_cell *cell, struct fields *fields)
{
    static char words[32]; /* until the next call */
    char outside[256];
    bool known = cell->model != NULL;
    fields_start(fields);
    fields_text(fields, "network", place->network);
    fields_double(fields, "link_bytes_per_s", place->cluster.bytes_per_s);
    fields_text(fields, "wiring", wiring_names[place->wiring]);
    fields_text(fields, "machines", machine_names[machines]);
    fields_double(fields, "added_rtt_ms", place->round_trip_s * 1e3);
    fields_uint(fields, "workers", (uint64_t)place->cluster.workers);
    fields_uint(fields, "bytes", place->bytes);
    *words = *outside = '\0';
    if (known) {
        predict_way_words(&cell->way, words, sizeof words);
        predict_outside(cell->model, &place->cluster, cell->way.servers, place->bytes, place->bytes,
                        outside, sizeof outside);
    }
    fields_text(fields, "way", words);
    fields_text(fields, "transport", known ? cell->model->transport : "");
    fields_double(fields, "predicted_us", cell->best_s * 1e6);
    fields_double(fields, "ring_us", cell->ring_s * 1e6);
    bool fitted = !*outside && place->wiring == WIRING_FLAT && place->round_trip_s == 0;
    fields_uint_if(fields, "fitted", known, fitted);
}

/* The writing of a map. */
struct map_writer {
    const struct predict_models *models;
    struct csv *csv;
    int *hosts;         /* (2 WORKERS_MOST) of workers and servers, if workers share hosts */
    size_t cells, ring; /* written; where the ring is within PREDICT_REGRET_NEAR */
};

static enum status write_place(struct map_writer *writer, const struct map_place *place)
{
    enum status status = STATUS_OK;
    struct map_cell cells[MACHINE_SETS];
    fill_cells(writer->models, place, cells);
    for (enum machines set = 0; set < MACHINE_SETS; set++) {
        struct fields fields;
        list_fields(place, set, &cells[set], &fields);
        TRY(fields_csv_write(&fields, writer->csv));
        writer->cells++;
        writer->ring += cells[set].model && strcmp(cells[set].way.backend, "ring") == 0;
    }
out:
    return status;
}

/* Writes the places of one number of workers. */
static enum status write_workers(struct map_writer *writer, struct map_place *place)
{
    enum status status = STATUS_OK;
    const struct predict_cluster *cluster = &place->cluster;
    for (int rank = 0; rank < 2 * cluster->workers; rank++)
        writer->hosts[rank] = rank < cluster->workers ? rank / HOST_RANKS : rank;
    predict_ways(cluster, place->ways, &place->way_count);
    for (size_t w = 0; w < place->way_count; w++)
        predict_way_set_racks(&place->ways[w], cluster->workers, place->hosts, cluster->rack_ranks,
                              cluster->oversubscribed);
    for (size_t d = 0; d < sizeof added_round_trip_s / sizeof *added_round_trip_s; d++) {
        place->round_trip_s = added_round_trip_s[d];
        place->cluster.added_latency_s = place->round_trip_s / 2;
        for (place->bytes = SMALLEST; place->bytes <= LARGEST; place->bytes *= SIZE_FACTOR)
            TRY(write_place(writer, place));
    }
out:
    return status;
}

/* Writes the places of one network and wiring. */
static enum status write_wiring(struct map_writer *writer, const char *network, enum wiring wiring,
                                const struct predict_cluster *wanted)
{
    enum status status = STATUS_OK;
    struct map_place place = {.network = network, .cluster = *wanted, .wiring = wiring};
    struct predict_cluster *cluster = &place.cluster;
    int least = 2, most = WORKERS_MOST;
    cluster->in_switch = 1;
    if (cluster->rack_ranks == 0) {
        cluster->rack_ranks = RACK_RANKS;
        cluster->oversubscribed = OVERSUBSCRIBED;
    }
    if (wiring == WIRING_RACKS)
        least = 2 * cluster->rack_ranks;
    else
        cluster->rack_ranks = PREDICT_WORKERS_MOST; /* one rack */
    if (wiring == WIRING_SHARED_HOSTS) {
        cluster->shares_hosts = true;
        place.hosts = writer->hosts;
        least = 2 * HOST_RANKS;
        most = SHARED_WORKERS_MOST;
    }
    for (int workers = least; workers <= most; workers *= 2) {
        cluster->workers = cluster->spare = workers;
        TRY(write_workers(writer, &place));
    }
out:
    return status;
}

/* Prints the models of the network on which cells rest, with their rows. */
static void print_basis(const struct predict_models *models, const char *network)
{
    size_t count = 0;
    for (size_t m = 0; m < models->count; m++) {
        const struct predict_model *model = &models->models[m];
        if (decides(model, network))
            printf("%s%s %zu", count++ == 0 ? "  rows fitted: " : ", ", model->transport,
                   model->fitted);
    }
    printf("%s", count > 0 ? "\n" : "");
}

/* Writes the cells of the model's network. A network of which no model is known well has none. */
static enum status write_network(struct map_writer *writer, const struct predict_model *model,
                                 const struct predict_cluster *wanted)
{
    enum status status = STATUS_OK;
    struct predict_cluster cluster = *wanted;
    if (cluster.bytes_per_s == 0)
        cluster.bytes_per_s = model->nominal_bytes_per_s;
    bool known = false;
    for (size_t m = 0; m < writer->models->count; m++)
        known = known || decides(&writer->models->models[m], model->network);
    writer->cells = writer->ring = 0;
    for (enum wiring wiring = 0; known && wiring < WIRINGS && cluster.bytes_per_s > 0; wiring++)
        TRY(write_wiring(writer, model->network, wiring, &cluster));
    if (!known)
        printf("\nNo winner map of %s: no transport has %d fitted rows\n", model->network,
               STATS_INTERVAL_LEAST);
    if (writer->cells > 0)
        printf("\nWinner map of %s, links of %.4g Gbit/s and a machine for each process: the ring "
               "is the fastest way, or at most %.0f%% slower, in %zu of %zu cells\n",
               model->network, cluster.bytes_per_s * 8e-9, 100 * PREDICT_REGRET_NEAR, writer->ring,
               writer->cells);
    if (writer->cells > 0)
        print_basis(writer->models, model->network);
out:
    return status;
}

enum status predict_write_map(const char *path, const struct predict_models *models,
                              const struct predict_cluster *cluster)
{
    enum status status, closed;
    struct fields fields;
    struct map_writer writer = {.models = models, .hosts = malloc(sizeof(int) * 2 * WORKERS_MOST)};
    if (!writer.hosts)
        TRY(FAIL(STATUS_NO_MEMORY, "predict: no memory for a map"));
    if (unlink(path) != 0 && errno != ENOENT)
        TRY(FAIL(STATUS_IO, "%s: the old map cannot be replaced: %s", path, strerror(errno)));
    list_fields(&(struct map_place){.network = ""}, MACHINES_ALONE, &(struct map_cell){0}, &fields);
    TRY(fields_csv_open(&fields, &writer.csv, path));
    for (size_t m = 0; m < models->count; m++) {
        if (predict_is_first(models, m))
            TRY(write_network(&writer, &models->models[m], cluster));
    }
out:
    free(writer.hosts);
    closed = writer.csv ? csv_close(&writer.csv) : STATUS_OK;
    return status != STATUS_OK ? status : closed;
}
