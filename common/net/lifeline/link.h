/*
 * The connections of the lifeline, a star with rank 0 in the middle. Frames of one size go both
 * ways, as they lie in memory: all ranks run one program.
 */
#ifndef PSRING_COMMON_NET_LIFELINE_LINK_H
#define PSRING_COMMON_NET_LIFELINE_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/net/lifeline/verdict.h"

enum lifeline_frame_type {
    LIFELINE_BEAT = 1, /* to rank 0, and from it: this rank lives, and does this */
    LIFELINE_BYE,      /* to rank 0: this rank's state is no longer ALIVE, it closes */
    LIFELINE_END,      /* from rank 0: end with exit_code */
};

struct lifeline_frame {
    uint32_t magic, type;
    int32_t exit_code;
    uint32_t state; /* BYE: an enum lifeline_rank_state */
    uint32_t told;
    struct lifeline_beat beat;
};

struct lifeline_link {
    int fd; /* -1: none */
    size_t have;
    struct lifeline_frame frame; /* its first `have` bytes have come */
};

/* Never waits; what does not fit in the socket's buffer, or has nobody to read it, is lost. */
void lifeline_send(struct lifeline_link *link, const struct lifeline_frame *frame);
/* Sends the last frame: its reader wakes at once. */
void lifeline_send_last(struct lifeline_link *link, const struct lifeline_frame *frame);

enum lifeline_read { LIFELINE_READ_NOTHING, LIFELINE_READ_FRAME, LIFELINE_READ_CLOSED };

/* The next whole frame into link->frame; anything else closes the link. */
enum lifeline_read lifeline_read(struct lifeline_link *link);

void lifeline_link_close(struct lifeline_link *link);

#endif
