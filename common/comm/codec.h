/*
 * The form of a bucket on the wire: its elements in the caller's memory, or floats as 16-bit
 * numbers (common/comm/compress.h) in the codec's memory. A schedule that sends and receives
 * through a codec is the same for both. Each bucket and node has one codec:
 *
 *     a partial sum sets out         payload = codec_encode(codec, data, span)
 *     one comes, to be added         codec_add(codec, data, span, payload)
 *     the last one comes             codec_complete(codec, data, span, payload, scale)
 *     the sum is sent, or sent on    payload = codec_wire(codec, data, span)
 *     a sum comes                    received into codec_wire() or elsewhere, then codec_take()
 *
 * Bits. The node that completes a sum rounds it once and keeps the rounded value. All other nodes
 * receive and forward these 16 bits. Therefore all workers end with the same floats.
 *
 * Error feedback. A node rounds an element once per operation, either as a partial sum
 * (codec_encode) or as the completed one (codec_complete; a server: codec_encode). The schedule
 * fixes which of the two, so one residual per element is enough. The node adds it in its next
 * operation on the bucket (compress.h).
 *
 * `span` counts elements of the bucket. `data` is the bucket's first element: a float, unless there
 * is a reduction (common/comm/reduce.h). codec_wire's memory belongs to the transport from send (or
 * post) to completion. Without compression encode, wire and an in-place take cost nothing. Threads:
 * those of the owning node.
 */
#ifndef PSRING_COMMON_COMM_CODEC_H
#define PSRING_COMMON_COMM_CODEC_H

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
    const struct reduction *reduction; /* NULL: floats, summed and scaled. With a reduction nothing
                                        * is compressed */
    int workers;
    uint32_t bucket;
    size_t count;
    uint16_t *image; /* (count): the bits on the wire; NULL if these are the data itself */
    float *residual; /* (count); NULL without feedback */
};

/* For bucket number `bucket`, or a shard of it, of `count` elements. Allocates what the site's
 * options need. Errors are logged. */
enum status codec_init(struct codec *codec, const struct backend_env *site, size_t bucket,
                       size_t count);
void codec_fini(struct codec *codec);

/* Makes one codec per bucket of the site's layout. Call codecs_free with the result even after a
 * failure. */
enum status codecs_new(struct codec **codecs, const struct backend_env *site);
void codecs_free(struct codec *codecs, size_t buckets);
/* Implements backend.state: the residual of bucket `index`. */
float *codecs_state(const struct codec *codecs, size_t buckets, size_t index, size_t *count);

enum message_dtype codec_dtype(enum compress compress);

/* Bytes of an element on the wire, and in memory. */
size_t codec_element_bytes(const struct comm_options *options);
size_t codec_memory_bytes(const struct comm_options *options);

/* The header of a message with these elements, of all-reduce number `step`. */
struct message codec_message(const struct codec *codec, enum message_kind kind, uint64_t step,
                             struct chunk span);

/* The payload for data[span], rounded with feedback. Without compression, the data itself. */
const void *codec_encode(struct codec *codec, const void *data, struct chunk span);

/* The address of the span's bits for the wire. */
void *codec_wire(const struct codec *codec, void *data, struct chunk span);

/* data[span] += payload, or the reduction's operation on the two. */
void codec_add(const struct codec *codec, void *data, struct chunk span, const void *payload);

/* data[span] = (data[span] + payload) * scale, rounded with feedback to the bits at codec_wire.
 * With a reduction: its last step, which ignores `scale`. */
void codec_complete(struct codec *codec, void *data, struct chunk span, const void *payload,
                    float scale);

/* Completes the sum of a single worker: data *= scale, for all elements. */
void codec_alone(const struct codec *codec, void *data, float scale);

/* data[span] = payload, which may be at codec_wire. Afterwards the bits are there, to be
 * forwarded. */
void codec_take(const struct codec *codec, void *data, struct chunk span, const void *payload);

#endif
