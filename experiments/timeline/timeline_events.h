/* The events of one rank as lines of the file. */
#ifndef PSRING_EXPERIMENTS_TIMELINE_EVENTS_H
#define PSRING_EXPERIMENTS_TIMELINE_EVENTS_H

#include <stdio.h>

#include "common/base/status.h"
#include "common/net/world/clock_offset.h"
#include "common/net/world/topology.h"
#include "common/net/world/world.h"
#include "common/obs/trace.h"

struct timeline_rank {
    const struct world *world;
    const struct topology *topology;
    const struct trace *trace;
    bool in_step; /* timeline_options */
    struct clock_offset before, after;
    int64_t zero_ns; /* rank 0's time that is the file's 0 */
};

/* Each line ends with a comma and a newline. Errors: logged. */
enum status timeline_write_events(const struct timeline_rank *rank, FILE *out);

/* The begin of a line: an event of a row, at `ns` by this rank's clock. */
void timeline_put_head(const struct timeline_rank *rank, FILE *out, const char *phase, int row,
                       int64_t ns);

#endif
