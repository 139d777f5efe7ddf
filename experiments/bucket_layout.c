#include "experiments/bucket_layout.h"

#include "common/base/check.h"

size_t bucket_layout(const struct net_layer *layers, size_t layer_count, size_t bucket_bytes,
                     struct bucket *buckets)
{
    size_t used = 0;
    struct bucket open = {0};
    for (size_t l = layer_count; l-- > 0;) {
        if (layers[l].count == 0)
            continue;
        CHECK(open.count == 0 || layers[l].first + layers[l].count == open.first);
        open.first = layers[l].first;
        open.count += layers[l].count;
        if (bucket_bytes > 0 && open.count * sizeof(float) >= bucket_bytes) {
            buckets[used++] = open;
            open = (struct bucket){0};
        }
    }
    if (open.count > 0 || used == 0)
        buckets[used++] = open;
    return used;
}
