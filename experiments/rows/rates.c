#include "experiments/rows/rates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/stats.h"

#define SAME_LINK 1.02         /* a probe that is further off the others was disturbed */
#define POSSIBLE 1.05          /* a time that is below theory's by more cannot be */
#define SCATTER 1.15           /* iterations scatter where their interval's ends differ by more */
enum { LONG_BYTES = 1000000 }; /* shorter messages depend on what the links' buffers let through */

bool rates_has_shape(const char *network)
{
    return strncmp(network, "vcluster:", 9) == 0 && strchr(network, '/');
}

static bool is_counted(const struct result_row *row)
{
    return row->part <= PART_SLOTS;
}

/* Rows of one group have one rate: 0, or the number of machines where links differ. */
static int group_of(const struct results *results, const struct result_row *row)
{
    bool alike = strncmp(results->network, "hosts", 5) != 0 && !rates_has_shape(results->network);
    return alike ? 0 : results->points[row->point].machines;
}

/* NAN: no probe in the row's group. `rates`: room for all rows. */
static double rate_of(const struct results *results, const struct result_row *of, double *rates)
{
    size_t count = 0;
    for (size_t r = 0; r < results->row_count; r++) {
        const struct result_row *row = &results->rows[r];
        if (is_counted(row) && row->link > 0 && strcmp(row->link_source, "probe") == 0 &&
            group_of(results, row) == group_of(results, of))
            rates[count++] = row->link;
    }
    return count > 0 ? stats_median(rates, count) : (double)NAN;
}

/* Adds the row to the rates and sources of all links. */
static void note_link(struct results *results, const struct result_row *row)
{
    if (!isnan(row->nominal_link))
        results->nominal = row->nominal_link;
    if (!(row->link > 0))
        return;
    if (strcmp(row->link_source, "probe") == 0)
        results->probed++;
    else
        results->unprobed++;
    results->link_least = fmin(results->link_least, row->link);
    results->link_most = fmax(results->link_most, row->link);
}

static void note_steadiness(const struct results *results, struct result_row *row, double share)
{
    const bool probed = strcmp(row->link_source, "probe") == 0;
    if (probed && (share > SAME_LINK || share * SAME_LINK < 1)) {
        snprintf(row->unsteady, sizeof row->unsteady, "its probe found %.1f Mbit/s",
                 row->link * 8 / 1e6);
        return;
    }
    /* Times are judged at the size that the tables show. */
    if (row->bytes < LONG_BYTES || row->bytes != results_focus(results, row->workers))
        return;
    if (probed && !rates_has_shape(results->network) && row->median_us * POSSIBLE < row->theory_us)
        snprintf(row->unsteady, sizeof row->unsteady, "less time than its bytes take");
    else if (row->low_us > 0 && row->high_us > row->low_us * SCATTER)
        snprintf(row->unsteady, sizeof row->unsteady, "its iterations scatter");
}

enum status rates_settle(struct results *results)
{
    double *rates = malloc((results->row_count + 1) * sizeof *rates);
    const bool loopback = strncmp(results->network, "loopback", 8) == 0;
    if (!rates) {
        log_error("out of memory for the rates of %zu rows", results->row_count);
        return STATUS_NO_MEMORY;
    }
    results->link_least = results->link_most = results->nominal = (double)NAN;
    for (size_t r = 0; r < results->row_count; r++) {
        struct result_row *row = &results->rows[r];
        if (!is_counted(row))
            continue;
        note_link(results, row);
        double share = 1, rate = rate_of(results, row, rates);
        if (row->link > 0 && rate > 0) {
            share = row->link / rate;
            row->efficiency *= share;
            row->theory_us *= share;
            results->last_rate = rate;
            if (group_of(results, row) == 0)
                results->rate = rate;
        }
        if (!loopback)
            note_steadiness(results, row, share);
    }
    free(rates);
    return STATUS_OK;
}
