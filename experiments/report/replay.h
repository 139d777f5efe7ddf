/* A timeline's messages of one step, few enough to be played on a page. */
#ifndef PSRING_EXPERIMENTS_REPORT_REPLAY_H
#define PSRING_EXPERIMENTS_REPORT_REPLAY_H

#include <cjson/cJSON.h>

#include "common/base/status.h"

/*
 * Adds to the array `replays` what the averaging of one of the file's steps looks like, of
 * those with the most messages the one of median length:
 *
 *     {"name": ..., "step": ..., "workers": [true, ...] by rank, "end_us": ...,
 *      "messages": [[from, to, begin_us, end_us, bytes, messages], ...]}
 *
 * The clock is 0 when its first message is handed over. A message is on its way from then, or from
 * when the one before it from the same rank to the same has arrived, if that was later, until it
 * has arrived: a link carries them in order. Neighbouring messages of a pair count as one where
 * there are more than REPLAY_MESSAGES_MOST. Nothing is added where no worker has a whole step.
 * STATUS_INPUT (logged): no timeline.
 */
enum { REPLAY_MESSAGES_MOST = 1200 };
enum status replay_add(cJSON *replays, const char *name, const char *path);

#endif
