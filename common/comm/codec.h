/*
 * What a bucket looks like on the wire: its elements as they are, in the caller's memory, or floats
 * as numbers of 16 bits (common/comm/compress.h) in memory of the codec's. A schedule that
 * sends and receives through a codec is the same for both. One codec a bucket and node:
 *
 *     a partial sum sets out         payload = codec_encode(codec, data, span)
 *     one comes, to be added         codec_add(codec, data, span, payload)
 *     the last one comes             codec_complete(codec, data, span, payload, scale)
 *     the sum is sent, or sent on    payload = codec_wire(codec, data, span)
 *     a sum comes                    received into codec_wire() or elsewhere, then codec_take()
 *
 * Bits. Who completes a sum rounds it, once, and keeps the rounded value itself; all others get and
 * pass on these 16 bits. So all workers end with the same floats.
 *
 * Error feedback. A node rounds an element once an operation, either as a partial sum
 * (codec_encode) or as the completed one (codec_complete; a server: codec_encode). Which of the two
 * is fixed by the schedule, so one residual per element is enough, and it is given back at the
 * node's next operation on the bucket: see compress.h.
 *
 * `span` counts elements of the bucket; `data` is the bucket's first element: a
 * float, unless there is a reduction (common/comm/reduce.h). codec_wire's memory
 * belongs to the transport between send, or post, and completion. Uncompressed, encode, wire and
 * take of what landed in place cost nothing. Threads: those of the node that owns it.
 */
#ifndef PSRING_COMMON_COMM_CODEC_H
#define PSRING_COMMON_COMM_CODEC_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/base/util.h"
#include "common/comm/comm_options.h"
#include "common/comm/compress.h"
#include "common/comm/reduce.h"
#include "common/net/transport/message.h"

struct backend_env;

struct codec {
    enum compress compress;
    const struct reduction *reduction; /* NULL: floats, summed and scaled. Else nothing is
                                        * compressed */
    int workers;
    uint32_t bucket;
    size_t count;
    uint16_t *image; /* (count): what travels; NULL where that is the data itself */
    float *residual; /* (count); NULL without feedback */
};

/* For bucket number `bucket`, or a shard of it, of `count` elements: allocates what the site's
 * options ask for. Errors: logged. */
enum status codec_init(struct codec *codec, const struct backend_env *site, size_t bucket,
                       size_t count);
void codec_fini(struct codec *codec);

/* One for each bucket of the site's layout. `codecs_free` also after a failure, with what came out.
 */
enum status codecs_new(struct codec **codecs, const struct backend_env *site);
void codecs_free(struct codec *codecs, size_t buckets);
/* As backend.state has it: the residual of bucket `index`. */
float *codecs_state(const struct codec *codecs, size_t buckets, size_t index, size_t *count);

enum message_dtype codec_dtype(enum compress compress);

/* Bytes of an element on the wire, and in memory. */
size_t codec_element_bytes(const struct comm_options *options);
size_t codec_memory_bytes(const struct comm_options *options);

/* The header of a message with these elements, of all-reduce number `step`. */
struct message codec_message(const struct codec *codec, enum message_kind kind, uint64_t step,
                             struct chunk span);

/* The payload for data[span], rounded with feedback; uncompressed, the data itself. */
const void *codec_encode(struct codec *codec, const void *data, struct chunk span);

/* Where the span's bits for the wire are. */
void *codec_wire(const struct codec *codec, void *data, struct chunk span);

/* data[span] += payload, or whatever the reduction does with two. */
void codec_add(const struct codec *codec, void *data, struct chunk span, const void *payload);

/* data[span] = (data[span] + payload) * scale, rounded with feedback to what codec_wire sends. With
 * a reduction: its last step, and `scale` is without meaning. */
void codec_complete(struct codec *codec, void *data, struct chunk span, const void *payload,
                    float scale);

/* The sum of one worker alone, all of it: data *= scale. */
void codec_alone(const struct codec *codec, void *data, float scale);

/* data[span] = payload, which may be at codec_wire; then its bits are there, to be sent on. */
void codec_take(const struct codec *codec, void *data, struct chunk span, const void *payload);

#endif
