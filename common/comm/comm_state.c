#include "common/comm/comm.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/status.h"
#include "common/comm/comm_impl.h"

enum { PIECE_FLOATS = 1 << 16 };

/* Worker 0's request to all ranks. */
struct request {
    uint64_t writes; /* 0: it reads */
    uint64_t count;  /* of the floats to write */
};

/* The number of floats that each rank carries, and buffers for a piece. */
struct state_parts {
    size_t ranks;
    uint64_t *counts; /* (ranks) */
    uint64_t most, sum;
    float *mine; /* (PIECE_FLOATS) */
    float *all;  /* (ranks, PIECE_FLOATS) on worker 0, else NULL */
};

/* -------- this rank --------------------------------------------------------------------------- */

/* Array `index` of the worker's, then of the server's. NULL after the last. */
static float *array_at(const struct comm *comm, size_t index, size_t *count)
{
    size_t workers = 0;
    for (; comm->self_open && comm->backend->state(comm->self, workers, count); workers++) {
        if (workers == index)
            return comm->backend->state(comm->self, index, count);
    }
    return comm->server_open ? comm->backend->server_state(comm->server, index - workers, count)
                             : NULL;
}

static uint64_t own_count(const struct comm *comm)
{
    uint64_t sum = 0;
    size_t count;
    for (size_t index = 0; array_at(comm, index, &count); index++)
        sum += count;
    return sum;
}

/* Copies floats [offset, offset + PIECE_FLOATS) of this rank, as far as they exist, to `piece`, or
 * with `in` from it. */
static void copy_piece(const struct comm *comm, uint64_t offset, float *piece, bool in)
{
    uint64_t first = 0, end = offset + PIECE_FLOATS;
    size_t count;
    float *values;
    for (size_t index = 0; (values = array_at(comm, index, &count)) != NULL; index++) {
        uint64_t from = offset > first ? offset : first;
        uint64_t to = end < first + count ? end : first + count;
        if (from < to && in)
            memcpy(values + (from - first), piece + (from - offset), (to - from) * sizeof *values);
        else if (from < to)
            memcpy(piece + (from - offset), values + (from - first), (to - from) * sizeof *values);
        first += count;
    }
}

/* -------- all ranks --------------------------------------------------------------------------- */

static bool is_first(const struct comm *comm)
{
    return comm->worker_site.index == 0;
}

static void parts_fini(struct state_parts *parts)
{
    free(parts->counts);
    free(parts->mine);
    free(parts->all);
}

static enum status parts_init(struct state_parts *parts, const struct comm *comm)
{
    size_t ranks =
        (size_t)(comm->place.everyone ? comm->place.everyone->size : comm->place.world->size);
    uint64_t own = own_count(comm);
    *parts = (struct state_parts){
        .ranks = ranks,
        .counts = calloc(ranks, sizeof *parts->counts),
        .mine = calloc(PIECE_FLOATS, sizeof *parts->mine),
        .all = is_first(comm) ? calloc(ranks * PIECE_FLOATS, sizeof *parts->all) : NULL,
    };
    if (!parts->counts || !parts->mine || (is_first(comm) && !parts->all))
        return FAIL(STATUS_NO_MEMORY, "comm: no memory for the state of %zu ranks", ranks);
    enum status status =
        world_gather(comm->place.world, comm->place.everyone, &own, sizeof own, parts->counts);
    for (size_t rank = 0; status == STATUS_OK && rank < ranks; rank++) {
        parts->sum += parts->counts[rank];
        parts->most = parts->counts[rank] > parts->most ? parts->counts[rank] : parts->most;
    }
    return status;
}

/* Worker 0: the piece at `offset` of rank `rank`, as a range of the whole state. */
static struct chunk piece_of(const struct state_parts *parts, size_t rank, uint64_t offset)
{
    uint64_t first = 0, count = parts->counts[rank];
    for (size_t r = 0; r < rank; r++)
        first += parts->counts[r];
    uint64_t left = count > offset ? count - offset : 0;
    return (struct chunk){first + offset, left < PIECE_FLOATS ? left : PIECE_FLOATS};
}

/* Moves the state of all ranks to worker 0's `state` (NULL on other ranks), or with `in` from it.
 */
static enum status move_all(struct comm *comm, const struct state_parts *parts, float *state,
                            bool in)
{
    enum status status = STATUS_OK;
    struct world *world = comm->place.world;
    const struct group *everyone = comm->place.everyone;
    const size_t bytes = PIECE_FLOATS * sizeof *state;
    for (uint64_t offset = 0; offset < parts->most; offset += PIECE_FLOATS) {
        if (!in) {
            copy_piece(comm, offset, parts->mine, false);
            TRY(world_collect(world, everyone, parts->mine, bytes, parts->all));
        }
        for (size_t rank = 0; state && rank < parts->ranks; rank++) {
            struct chunk piece = piece_of(parts, rank, offset);
            float *there = state + piece.offset, *here = parts->all + rank * PIECE_FLOATS;
            if (piece.count > 0)
                memcpy(in ? here : there, in ? there : here, piece.count * sizeof *state);
        }
        if (in) {
            TRY(world_scatter(world, everyone, parts->all, bytes, parts->mine));
            copy_piece(comm, offset, parts->mine, true);
        }
    }
out:
    return status;
}

/* -------- the calls --------------------------------------------------------------------------- */

static bool carries(const struct comm *comm)
{
    CHECK(comm->plan.running && !comm_is_server(comm));
    return comm->backend->state && comm->place.options.error_feedback;
}

/* Worker 0 broadcasts its request; then all ranks learn how much each rank carries. */
static enum status agree(struct comm *comm, struct request *request, struct state_parts *parts)
{
    enum status status = STATUS_OK;
    TRY(world_broadcast(comm->place.world, comm->place.everyone, request, sizeof *request));
    TRY(parts_init(parts, comm));
out:
    return status;
}

enum status comm_state_read(struct comm *comm, float **state, size_t *count)
{
    enum status status = STATUS_OK;
    struct request request = {.writes = false};
    struct state_parts parts = {0};
    float *own = NULL;
    *state = NULL;
    *count = 0;
    if (!carries(comm))
        return STATUS_OK;
    TRY(comm_pause(comm));
    TRY(agree(comm, &request, &parts));
    if (is_first(comm)) {
        own = malloc((parts.sum + 1) * sizeof *own);
        if (!own)
            TRY(FAIL(STATUS_NO_MEMORY, "comm: no memory for %llu floats of state",
                     (unsigned long long)parts.sum));
    }
    TRY(move_all(comm, &parts, own, false));
    TRY(comm_go_on(comm));
    *state = own;
    *count = own ? parts.sum : 0;
    own = NULL;
out:
    free(own);
    parts_fini(&parts);
    return status;
}

enum status comm_state_write(struct comm *comm, const float *state, size_t count, bool *fits)
{
    enum status status = STATUS_OK;
    struct request request = {.writes = true, .count = count};
    struct state_parts parts = {0};
    *fits = false;
    if (!carries(comm))
        return STATUS_OK;
    TRY(comm_pause(comm));
    TRY(agree(comm, &request, &parts));
    *fits = request.count == parts.sum;
    if (*fits)
        TRY(move_all(comm, &parts, is_first(comm) ? without_const(state) : NULL, true));
    TRY(comm_go_on(comm));
out:
    parts_fini(&parts);
    return status;
}

enum status comm_state_join(struct comm *comm)
{
    enum status status = STATUS_OK;
    struct request request;
    struct state_parts parts = {0};
    TRY(agree(comm, &request, &parts));
    if (!request.writes || request.count == parts.sum)
        status = move_all(comm, &parts, NULL, request.writes);
out:
    parts_fini(&parts);
    return status;
}
