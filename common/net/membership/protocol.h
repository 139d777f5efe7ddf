/*
 * Internal to the membership: what members and coordinator say to each other, as it travels. Every
 * connection begins with a hello (listener.h); then come frames, each with a text after it.
 */
#ifndef PSRING_COMMON_NET_MEMBERSHIP_PROTOCOL_H
#define PSRING_COMMON_NET_MEMBERSHIP_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>

#include "common/net/membership/member.h"
#include "common/net/listener.h"

/* "PSRember". In a hello, run_id is this number XOR the job's token. */
#define MEMBERSHIP_MAGIC UINT64_C(0x7265626d65525350)

enum {
    MEMBERSHIP_TEXT_BYTES = 4096,
    MEMBERSHIP_SEND_MS = 1000, /* for a frame to leave; the system takes it at once, as a rule */
    MEMBERSHIP_BEAT_MS = 200,  /* each end says that often that it lives */
    MEMBERSHIP_GRACE_MS = 5000,
    MEMBERSHIP_JOIN_MS = 5000, /* from hello to JOIN or SUMMON; then the seat is free again */
};

enum membership_type {
    /* From a member; SUMMON is answered by END. */
    MEMBERSHIP_JOIN = 1, /* wants to take part; text: the job's options */
    MEMBERSHIP_SUMMON,   /* from the first server: you are server `index` of my job */
    MEMBERSHIP_READY,    /* its generation is over for it; waits for the next */
    MEMBERSHIP_LEAVE,    /* its generation is over for it; takes part no more */
    MEMBERSHIP_DONE,     /* training has ended */
    MEMBERSHIP_ABORT,    /* the job cannot go on: text says why */
    /* From the coordinator. */
    MEMBERSHIP_GENERATION, /* begins: `index` is the rank */
    MEMBERSHIP_CHANGE,     /* somebody waits for the end of this generation, at `step` */
    MEMBERSHIP_OVER,       /* this generation cannot go on: text says why */
    MEMBERSHIP_NOTE,       /* text: what it waits for */
    MEMBERSHIP_END,        /* of the job, or of this member's part in it: `status`, text says why */
    /* From both. */
    MEMBERSHIP_BEAT,
};

/*
 * What becomes of a member when it says something, by the state that the coordinator knows it in
 * (enum seat_state). RUNNING (earlier): what it says is of an earlier generation; it was sent
 * before this one was heard of.
 *
 *     says    NEW (2)        WAITING  RUNNING                        (earlier)     DONE
 *     JOIN    WAITING (1)    lost     lost                           lost          lost
 *     SUMMON  answered, gone lost     lost                           lost          lost
 *     READY   lost           lost     WAITING; after an error: OVER  lost          lost
 *     DONE    lost           lost     DONE                           lost          lost
 *     LEAVE   lost           gone     gone; after an error: OVER     gone; OVER    gone
 *     ABORT   lost           lost     END to all                     lost          lost
 *     BEAT    nothing, as long as it comes: a member that is silent, or closes, is lost
 *
 * (1) or refused by END, and gone.
 * (2) A connection gets a seat only if its hello has the job's token and a seat is free. It loses
 * the seat after MEMBERSHIP_JOIN_MS without JOIN or SUMMON. END says why in all these cases.
 * OVER goes to all who are RUNNING; who does not come out then,
 * while others do, is lost. Lost: gone; if it was RUNNING, OVER; if it was a server, END to all.
 *
 * When no member is RUNNING any more, the coordinator sends:
 *   END         if a worker is DONE or no member has the weights
 *   GENERATION  else, to the members that take part, and CHANGE for each newcomer that still waits
 *   NOTE        else: which members are missing
 * A member obeys GENERATION, NOTE and END at any time, CHANGE and OVER in their generation alone.
 */
struct membership_frame {
    uint64_t magic;
    uint32_t type;
    uint32_t text_bytes;
    uint32_t generation;       /* that it speaks of; 0: none yet */
    int32_t status;            /* END, READY: how it ended */
    int32_t role, index;       /* enum member_role, a server's number; a rank */
    int32_t workers, servers;  /* GENERATION; READY: see member_place.workers_most */
    uint32_t port, unused;     /* where rank 0 listens, at `address` */
    unsigned char address[16]; /* as address_pack writes it */
    uint64_t step;   /* done (MEMBER_NO_STEP: never trained); JOIN, CHANGE: of the change */
    uint64_t images; /* of this member that are in the weights */
    unsigned char note[MEMBER_NOTE_BYTES];
};

/* What is read of a connection. */
struct membership_reader {
    size_t have; /* bytes of `frame`, then of `text` */
    struct membership_frame frame;
    char text[MEMBERSHIP_TEXT_BYTES + 1];
};

enum membership_read {
    MEMBERSHIP_READ_FRAME,   /* reader->frame and reader->text, until the next call */
    MEMBERSHIP_READ_NOTHING, /* more is to come */
    MEMBERSHIP_READ_CLOSED,  /* or what came is no frame */
};

/* Fills in magic and text; one thread at a time. 0 or an errno value: then the connection closes
 * for both ends, once they have read what came before, because part of a frame may be on its way.
 */
int membership_send(int socket, struct membership_frame frame, const char *text);

/* Does not wait. */
enum membership_read membership_read(struct membership_reader *reader, int socket);

/* Connects to "tcp://HOST:PORT", trying again for `timeout_ms`, and says hello with the job's
 * token. STATUS_TIMEOUT is logged. */
enum status membership_connect(const char *address, uint64_t token, int64_t timeout_ms,
                               int *socket);

#endif
