/* What callers hand over, looked at before anything is done. Each returns PSRING_OK, or a status
 * with the text of psring_error set. `call` is the function's name, for that text. */
#ifndef PSRING_COMMON_LIBRARY_CHECK_H
#define PSRING_COMMON_LIBRARY_CHECK_H

#include "common/library/communicator.h"
#include "common/psring.h"

/* This is the process that it belongs to. */
enum psring_status check_process(const char *call, const struct engine *engine);
/* There is one, of this process. */
enum psring_status check_communicator(const char *call, const struct psring *comm);
enum psring_status check_world(const char *call, const struct psring *comm);

/* What operations have in common, as the caller gave it. */
struct arguments {
    void *data;
    size_t count; /* blocks: of one of them */
    bool blocks;  /* data is (size, count) */
    enum psring_type type;
    enum psring_op op; /* PSRING_SUM where there is none */
    int root;          /* 0 where there is none */
};

/* Fills `operation` (but for its kind). */
enum psring_status check_operation(const char *call, const struct psring *comm,
                                   const struct arguments *arguments, struct operation *operation);

#endif
