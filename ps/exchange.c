#include "ps/exchange.h"

#include "common/base/size.h"

static int first_with_a_part(const struct exchanges *exchanges, int worker)
{
    int parts = 0, seen = 0;
    for (int server = 0; server < exchanges->servers; server++)
        parts += exchanges->with[server].chunks > 0;
    for (int server = 0; server < exchanges->servers; server++) {
        if (exchanges->with[server].chunks > 0 && seen++ == worker % parts)
            return server;
    }
    return 0;
}

struct exchanges exchanges_begin(struct exchange *with, const struct shard_plan *plan, size_t count,
                                 int worker)
{
    struct exchanges exchanges = {.with = with,
                                  .servers = plan->topology.servers,
                                  .most = shard_chunks_most(plan, count),
                                  .window = (size_t)plan->window};
    for (int server = 0; server < exchanges.servers; server++)
        with[server] = (struct exchange){.shard = shard_of(&plan->topology, count, server),
                                         .chunks = shard_chunks(plan, count, server)};
    exchanges.first = first_with_a_part(&exchanges, worker);
    return exchanges;
}

size_t exchanges_chunks(const struct exchanges *exchanges)
{
    size_t chunks = 0;
    for (int server = 0; server < exchanges->servers; server++)
        chunks += exchanges->with[server].chunks;
    return chunks;
}

size_t exchanges_end(const struct exchanges *exchanges)
{
    size_t first = exchanges->most;
    for (int server = 0; server < exchanges->servers; server++) {
        const struct exchange *exchange = &exchanges->with[server];
        if (exchange->answered < exchange->chunks)
            first = size_smaller(first,
                                 shard_due(exchange->answered, exchange->chunks, exchanges->most));
    }
    return first + exchanges->window;
}

bool exchanges_due(const struct exchanges *exchanges, int server, size_t end)
{
    const struct exchange *exchange = &exchanges->with[server];
    return exchange->pushed < exchange->chunks &&
           shard_due(exchange->pushed, exchange->chunks, exchanges->most) < end;
}
