/* What a rank's messages come to: bytes a second, as a counter. */
#ifndef PSRING_EXPERIMENTS_TIMELINE_LINK_H
#define PSRING_EXPERIMENTS_TIMELINE_LINK_H

#include "experiments/timeline/timeline_events.h"

/* Lines of the file, as timeline_write_events. */
enum status timeline_write_link(const struct timeline_rank *rank, FILE *out);

#endif
