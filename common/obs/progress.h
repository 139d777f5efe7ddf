/*
 * One line on the terminal that says how far training is, redrawn at most ten times a second:
 *
 *     epoch 2/12  step  118/468  loss 0.1423  8,412 images/s  ETA 3:05
 *
 * Nothing is written if the stream is not a terminal, or on ranks other than 0. One thread.
 */
#ifndef PSRING_COMMON_OBS_PROGRESS_H
#define PSRING_COMMON_OBS_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct progress_options {
    FILE *stream; /* stderr; borrowed */
    size_t rank;
    uint64_t epochs;          /* of the whole run */
    uint64_t steps_per_epoch; /* > 0 */
    uint64_t images_per_step; /* over all ranks */
};

struct progress {
    struct progress_options options;
    bool enabled;         /* rank 0 on a terminal */
    bool drawn;           /* a line stands there that has no end yet */
    int64_t drawn_at_ns;  /* time of the last redraw */
    int64_t marked_at_ns; /* start of the interval that the next rate is taken over; 0 = none */
    uint64_t marked_step; /* steps done by then, over all epochs */
    double step_s;        /* seconds a step, smoothed; 0 = not known yet */
};

/* What one line shows. */
struct progress_view {
    uint64_t epoch, epochs;         /* epoch counts from 1 here, as people do */
    uint64_t step, steps_per_epoch; /* steps done in this epoch */
    double loss;                    /* NAN: there is none */
    double images_per_s;            /* <= 0: not known yet */
    double eta_s;                   /* < 0: not known yet */
};

void progress_init(struct progress *progress, const struct progress_options *options);

/*
 * To be called after every step; cheap when nothing is to be drawn. `epoch` and `step` count from
 * 0; `now_ns` is clock_now_ns().
 */
void progress_update(struct progress *progress, int64_t now_ns, uint64_t epoch, uint64_t step,
                     double loss);

/*
 * Removes the line, so that a message can be printed in its place. Time until the next update is
 * left out of the rate (an evaluation or a checkpoint is not a step).
 */
void progress_clear(struct progress *progress);

/* Writes the line's text (no control characters, cut to `size` - 1 bytes). Pure. */
void progress_format(const struct progress_view *view, char *line, size_t size);

#endif
