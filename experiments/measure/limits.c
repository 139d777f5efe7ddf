#include "experiments/measure/limits.h"

#include "experiments/measure/limits_memory.h"
#include "experiments/measure/limits_trips.h"
#include "experiments/measure/probe.h"

enum status limits_measure(struct limits *limits, struct world *world, const char *subnet,
                           int64_t timeout_ms, bool streams)
{
    enum status status;
    double memory[2] = {0};
    if (world->rank == 0)
        TRY(limits_memory(0, &memory[0], &memory[1]));
    TRY(world_broadcast(world, NULL, memory, sizeof memory));
    limits->add_bytes_per_s = memory[0];
    limits->reduce_bytes_per_s = memory[1];
    if (world->size == 1)
        return STATUS_OK;
    TRY(limits_zmq_trip(world, subnet, timeout_ms, &limits->round_trip_us));
    TRY(limits_socket_trip(world, subnet, timeout_ms, &limits->socket_trip_us));
    if (streams)
        TRY(probe_link(world, subnet, timeout_ms, &limits->stream_bytes_per_s));
out:
    return status;
}

void limits_print(FILE *out, const struct limits *limits)
{
    if (limits->add_bytes_per_s > 0)
        fprintf(out,
                "# memory, one core, 12 bytes an element: c = a + b %.2f GB/s, the reduction's "
                "a += b %.2f (%.2f of it)\n",
                limits->add_bytes_per_s * 1e-9, limits->reduce_bytes_per_s * 1e-9,
                limits->reduce_bytes_per_s / limits->add_bytes_per_s);
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
