/*
 * --timeline FILE: what all ranks recorded (common/obs/trace.h), in one file on rank 0, for
 * https://ui.perfetto.dev and `psring trace`. The format is Chrome's ("Trace Event Format",
 * Duvall and Chatterjee, as Perfetto reads it), one event a line:
 *
 *     process   a rank
 *     thread    a thread of it; a row each bucket; rows for the chunks on their way to a server
 *     flow      a message, from its send to its receive
 *     counter   bytes a second handed over and come in; messages that wait
 *
 * Times are rank 0's: the clocks' offsets are measured at the start and at the end, in between they
 * are interpolated (common/net/world/clock_offset.h); they and their errors stand in the file.
 */
#ifndef PSRING_EXPERIMENTS_TIMELINE_H
#define PSRING_EXPERIMENTS_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/net/world/topology.h"
#include "common/net/world/world.h"

struct timeline;
struct bottleneck_facts;

struct timeline_options {
    const char *file;                /* on rank 0; borrowed */
    uint64_t first_step, end_step;   /* of this run, from 0: from the one to before the other */
    const struct topology *topology; /* borrowed */
    bool in_step;                    /* all workers are in one step, or wait for it */
};

/* Collective over the world, between steps. Empties the file, measures clocks, begins to record.
 * Errors: logged. */
enum status timeline_open(struct timeline **timeline, struct world *world,
                          const struct timeline_options *options);

/* Collective over the world, once no other thread tells of ranges. Rank 0 writes the file, and
 * says of what there was no room for. `facts` are those of the run's bottleneck, on rank 0, or
 * NULL. Errors: logged. */
enum status timeline_write(struct timeline *timeline, const struct bottleneck_facts *facts);

/* Ends the recording. Sets *timeline to NULL. */
void timeline_close(struct timeline **timeline);

#endif
