#include "common/base/status.h"

#include <errno.h>

const char *status_name(enum status status)
{
    switch (status) {
    case STATUS_OK:
        return "ok";
    case STATUS_USAGE:
        return "bad usage";
    case STATUS_INPUT:
        return "bad input";
    case STATUS_IO:
        return "input/output error";
    case STATUS_NO_MEMORY:
        return "out of memory";
    case STATUS_TIMEOUT:
        return "timeout";
    case STATUS_PROTOCOL:
        return "protocol error";
    case STATUS_TRANSPORT:
        return "transport error";
    case STATUS_UNSUPPORTED:
        return "not supported";
    case STATUS_DIVERGED:
        return "diverged";
    case STATUS_DEVICE:
        return "device error";
    case STATUS_STOPPED:
        return "stopped";
    case STATUS_MISSED:
        return "missed";
    case STATUS_WRONG:
        return "wrong result";
    }
    return "unknown status";
}

enum status status_from_errno(int error)
{
    switch (error) {
    case 0:
        return STATUS_OK;
    case ENOMEM:
        return STATUS_NO_MEMORY;
    case ETIMEDOUT:
        return STATUS_TIMEOUT;
    default:
        return STATUS_IO;
    }
}
