#include "experiments/report/figures.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/status.h"

static FILE *open_in(const char *dir, const char *name)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s", dir, name) < 0)
        return NULL;
    FILE *file = fopen(path, "w");
    if (!file)
        log_error("%s: cannot be written: %s", path, strerror(errno));
    free(path);
    return file;
}

static void put(FILE *out, double value)
{
    if (isfinite(value))
        fprintf(out, " %.10g", value);
    else
        fprintf(out, " NaN");
}

static void put_point(FILE *out, const struct point *point)
{
    const struct measured *time = &point->time;
    const double efficiency_a_machine = point->efficiency * point->workers / point->machines;
    for (int s = 0; s < SERIES_MOST && point->series[s] > 0; s++) {
        fprintf(out, "%d %d %d %" PRIu64, point->series[s], s == 0, point->workers, point->bytes);
        const double values[] = {
            time->median_us / 1e3, point->theory_us / 1e3, point->efficiency,  efficiency_a_machine,
            point->worker_sent,    point->worker_theory,   point->server_sent, point->server_theory,
            time->low_us / 1e3,    time->high_us / 1e3};
        for (size_t v = 0; v < sizeof values / sizeof *values; v++)
            put(out, values[v]);
        fprintf(out, "\n");
    }
}

static void put_seconds(FILE *out, int topology, int transport, const struct point *point)
{
    if (point && judge_has_time(point->time.state) && isfinite(point->cpu_s_per_gb))
        fprintf(out, "%d %d %d %" PRIu64 " %.10g\n", topology, transport, point->workers,
                point->bytes, point->cpu_s_per_gb);
}

static void put_processors(FILE *out, const struct results *results)
{
    static const char *const transports[] = {"zmq", "mpi", "tcp"};
    const int workers = results_compared_workers(results);
    for (size_t s = 0; s < results->size_count; s++) {
        const uint64_t bytes = results->sizes[s];
        for (int t = 0; t < 3; t++) {
            put_seconds(out, 1, t + 1,
                        results_over(results, COLUMN_PS1, transports[t], workers, bytes));
            put_seconds(out, 2, t + 1,
                        results_over(results, COLUMN_RING, transports[t], workers, bytes));
        }
        put_seconds(out, 3, 2, results_column(results, COLUMN_MPI, workers, bytes));
    }
}

/* Returns the last of them, for its constants; NULL: there is none. */
static const struct training *put_trainings(FILE *out, const struct trainings *trainings)
{
    const struct training *last = NULL;
    for (size_t t = 0; t < trainings->count; t++) {
        const struct training *training = &trainings->list[t];
        if (training->kind != TRAINING_PACED || !(training->images_per_s > 0))
            continue;
        last = training;
        for (int s = 0; s < SERIES_MOST && training->series[s] > 0; s++)
            fprintf(out, "%d %d %d %.10g\n", training->series[s], s == 0, training->workers,
                    training->images_per_s);
    }
    return last;
}

static bool end(FILE *file)
{
    const bool failed = ferror(file) != 0;
    return fclose(file) == 0 && !failed;
}

enum status figures_write(const struct run *run, const char *dir)
{
    enum { POINTS, TRAINING, PROCESSORS, FACTS, NETWORK, FILES };
    static const char *const names[FILES] = {"points.txt", "training.txt", "processors.txt",
                                             "facts.gp", "network.txt"};
    FILE *files[FILES] = {NULL};
    const struct training *last = NULL;
    bool good = true;
    for (int f = 0; f < FILES; f++) {
        files[f] = open_in(dir, names[f]);
        good = good && files[f];
    }
    if (good && run->state != STATE_WRONG) {
        for (size_t p = 0; p < run->results.point_count; p++) {
            if (results_is_drawn(&run->results, &run->results.points[p]))
                put_point(files[POINTS], &run->results.points[p]);
        }
        put_processors(files[PROCESSORS], &run->results);
        last = put_trainings(files[TRAINING], &run->trainings);
    }
    if (good) {
        fprintf(files[FACTS], "PACED_MS = %g; BATCH = %g\n", last ? last->paced_ms : 0,
                last && isfinite(last->batch) ? last->batch : 0);
        fprintf(files[NETWORK], "%s\n", run_network(run));
    }
    for (int f = 0; f < FILES; f++)
        good = (!files[f] || end(files[f])) && good;
    if (good && run->has_consistency && run->state != STATE_WRONG)
        return consistency_write_figure(&run->consistency, dir);
    return good ? STATUS_OK : STATUS_IO;
}
