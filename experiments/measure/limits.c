#include "experiments/measure/limits.h"

#include <math.h>

#include "experiments/measure/limits_memory.h"
#include "experiments/measure/limits_trips.h"
#include "experiments/measure/probe.h"

enum status limits_measure(struct limits *limits, struct world *world, const char *subnet,
                           int64_t timeout_ms, bool streams)
{
    enum status status;
    if (world->rank == 0)
        TRY(limits_memory(0, &limits->add_bytes_per_s, &limits->reduce_bytes_per_s,
                          limits->type_bytes_per_s));
    TRY(world_broadcast(world, NULL, &limits->add_bytes_per_s, sizeof limits->add_bytes_per_s));
    TRY(world_broadcast(world, NULL, &limits->reduce_bytes_per_s,
                        sizeof limits->reduce_bytes_per_s));
    TRY(world_broadcast(world, NULL, limits->type_bytes_per_s, sizeof limits->type_bytes_per_s));
    if (world->size == 1)
        return STATUS_OK;
    TRY(limits_zmq_trip(world, subnet, timeout_ms, &limits->round_trip_us));
    TRY(limits_socket_trip(world, subnet, timeout_ms, &limits->socket_trip_us));
    if (streams)
        TRY(probe_link(world, subnet, timeout_ms, &limits->stream_bytes_per_s));
out:
    return status;
}

/* A bar is as long as 10 characters for the speed of c = a + b. */
static void print_types(FILE *out, const struct limits *limits)
{
    static const char *const names[MESSAGE_DTYPES] = {
        [MESSAGE_FLOAT32] = "float32", [MESSAGE_FLOAT64] = "float64", [MESSAGE_FP16] = "float16",
        [MESSAGE_BF16] = "bfloat16",   [MESSAGE_INT32] = "int32",     [MESSAGE_INT64] = "int64",
    };
    static const char bar[] = "##############################";
    fprintf(out, "# sums by type (libpsring), two elements read and one written\n");
    for (enum message_dtype dtype = MESSAGE_FLOAT32; dtype < MESSAGE_DTYPES; dtype++) {
        double share = limits->type_bytes_per_s[dtype] / limits->add_bytes_per_s;
        int length = (int)fmin(10 * share + 0.5, sizeof bar - 1);
        fprintf(out, "#   %-8s %7.2f GB/s %5.2f of c = a + b %.*s\n", names[dtype],
                limits->type_bytes_per_s[dtype] * 1e-9, share, length, bar);
    }
}

void limits_print(FILE *out, const struct limits *limits)
{
    if (limits->add_bytes_per_s > 0)
        fprintf(out,
                "# memory, one core, 12 bytes an element: c = a + b %.2f GB/s, the reduction's "
                "a += b %.2f (%.2f of it)\n",
                limits->add_bytes_per_s * 1e-9, limits->reduce_bytes_per_s * 1e-9,
                limits->reduce_bytes_per_s / limits->add_bytes_per_s);
    if (limits->add_bytes_per_s > 0 && limits->type_bytes_per_s[MESSAGE_FLOAT32] > 0)
        print_types(out, limits);
    if (limits->round_trip_us > 0)
        fprintf(out, "# 4 bytes through ZeroMQ, DEALER to ROUTER and back: %.1f us\n",
                limits->round_trip_us);
    if (limits->socket_trip_us > 0)
        fprintf(out, "# 4 bytes on a plain socket, there and back, without sleeping: %.1f us\n",
                limits->socket_trip_us);
    if (limits->stream_bytes_per_s > 0)
        fprintf(out, "# plain TCP: %.1f MB/s each way, both ways at once\n",
                limits->stream_bytes_per_s * 1e-6);
}
