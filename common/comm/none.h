/* The backend of a single process: nothing to average with. A bucket is only scaled. */
#ifndef PSRING_COMMON_COMM_NONE_H
#define PSRING_COMMON_COMM_NONE_H

#include "common/comm/comm.h"

extern const struct backend backend_none;

#endif
