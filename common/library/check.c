#include "common/library/check.h"

#include <stdint.h>
#include <unistd.h>

#include "common/library/engine.h"

enum psring_status check_process(const char *call, const struct engine *engine)
{
    if (engine->process == getpid())
        return PSRING_OK;
    return errors_set(PSRING_ERROR_STATE,
                      "%s: process %d initialised psring, and this one was forked from it; "
                      "collective operations are the parent's",
                      call, (int)engine->process);
}

enum psring_status check_communicator(const char *call, const struct psring *comm)
{
    if (!comm)
        return errors_set(PSRING_ERROR_USAGE, "%s: no communicator (NULL)", call);
    return check_process(call, comm->engine);
}

enum psring_status check_world(const char *call, const struct psring *comm)
{
    enum psring_status status = check_communicator(call, comm);
    if (status == PSRING_OK && !comm->is_world)
        return errors_set(PSRING_ERROR_USAGE, "%s: needs the world, not a group of its ranks",
                          call);
    return status;
}

static const enum message_dtype dtypes[] = {
    [PSRING_FLOAT32] = MESSAGE_FLOAT32, [PSRING_FLOAT64] = MESSAGE_FLOAT64,
    [PSRING_FLOAT16] = MESSAGE_FP16,    [PSRING_BFLOAT16] = MESSAGE_BF16,
    [PSRING_INT32] = MESSAGE_INT32,     [PSRING_INT64] = MESSAGE_INT64,
};

static const enum reduce_op ops[] = {
    [PSRING_SUM] = REDUCE_SUM,
    [PSRING_AVERAGE] = REDUCE_AVERAGE,
    [PSRING_MIN] = REDUCE_MIN,
    [PSRING_MAX] = REDUCE_MAX,
};

enum psring_status check_operation(const char *call, const struct psring *comm,
                                   const struct arguments *arguments, struct operation *operation)
{
    enum psring_status status = check_communicator(call, comm);
    if (status != PSRING_OK)
        return status;
    unsigned type = (unsigned)arguments->type, op = (unsigned)arguments->op;
    size_t size = (size_t)comm->group->size, blocks = arguments->blocks ? size : 1;
    if (type >= sizeof dtypes / sizeof *dtypes)
        return errors_set(PSRING_ERROR_USAGE, "%s: %u is no type", call, type);
    if (op >= sizeof ops / sizeof *ops)
        return errors_set(PSRING_ERROR_USAGE, "%s: %u is no operation", call, op);
    if (arguments->root < 0 || arguments->root >= comm->group->size)
        return errors_set(PSRING_ERROR_USAGE, "%s: root %d, expected 0 to %d", call,
                          arguments->root, comm->group->size - 1);
    size_t element_bytes = message_element_bytes(dtypes[type]);
    if (arguments->count > SIZE_MAX / 2 / element_bytes / blocks)
        return errors_set(PSRING_ERROR_USAGE, "%s: %zu elements are more than memory can hold",
                          call, arguments->count);
    if (!arguments->data && arguments->count > 0)
        return errors_set(PSRING_ERROR_USAGE, "%s: no data (NULL) for %zu elements", call,
                          arguments->count);
    if ((uintptr_t)arguments->data % element_bytes != 0)
        return errors_set(PSRING_ERROR_USAGE,
                          "%s: data is not aligned to its elements of %zu bytes", call,
                          element_bytes);
    *operation = (struct operation){.data = arguments->data,
                                    .count = arguments->count * blocks,
                                    .dtype = dtypes[type],
                                    .op = ops[op],
                                    .root = arguments->root};
    return PSRING_OK;
}
