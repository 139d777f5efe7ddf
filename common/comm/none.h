/* The backend of a single process: nothing to average with. */
#ifndef PSRING_COMMON_COMM_NONE_H
#define PSRING_COMMON_COMM_NONE_H

#include "common/comm/backend.h"

extern const struct backend backend_none;

#endif
