#include "ring/ring_plan.h"

#include <stdlib.h>

#include "common/base/size.h"
#include "ring/pair.h"

/* A short vector has one segment a chunk: then receives of several steps are posted. More segments
 * than SLOTS_MOST only the user can ask for, with tiny ones. */
enum { SLOTS_LEAST = PAIR_WHOLE, SLOTS_MOST = 64 };

static enum status open_slots(struct ring_plan *plan, const struct comm_site *site, int previous,
                              size_t segment_count)
{
    enum status status = STATUS_OK;
    size_t bytes = segment_count * codec_element_bytes(site->options);
    for (size_t i = 0; i < plan->slot_count; i++)
        TRY(transport_slot_init(&plan->slots[i], plan->transport, previous, bytes));
out:
    return status;
}

enum status ring_plan_init(struct ring_plan *plan, const struct comm_site *site, int previous,
                           const struct schedule_part *part)
{
    enum status status = STATUS_OK;
    const struct comm_options *options = site->options;
    const struct comm_layout *layout = site->layout;
    size_t items = 0, segments = SLOTS_LEAST, segment_count = 0;
    *plan = (struct ring_plan){.transport = site->transport, .buckets = layout->buckets};
    plan->schedules = calloc(layout->buckets + 1, sizeof *plan->schedules);
    for (size_t b = 0; plan->schedules && b < layout->buckets; b++) {
        struct schedule *schedule = &plan->schedules[b];
        schedule_init(schedule, site->workers, site->index, layout->counts[b],
                      compress_float_bytes(options->compress, options->segment_bytes), part);
        segment_count = size_larger(segment_count, schedule_message_count_max(schedule));
        segments = size_larger(segments, schedule->segments);
        items = size_larger(items, size_larger(schedule_items(schedule), schedule->pieces + 1));
    }
    plan->slot_count = segments < SLOTS_MOST ? segments : SLOTS_MOST;
    plan->slots = calloc(plan->slot_count, sizeof *plan->slots);
    plan->tickets = calloc(items + 1, sizeof *plan->tickets);
    if (!plan->schedules || !plan->slots || !plan->tickets) {
        log_error("ring: no memory for %zu buckets", layout->buckets);
        return STATUS_NO_MEMORY;
    }
    TRY(codecs_new(&plan->codecs, site));
    for (size_t b = 0; b < layout->buckets; b++)
        plan->codecs[b].workers *= part ? part->parts : 1; /* each stands for as many */
    if (site->workers > 1)
        TRY(open_slots(plan, site, previous, segment_count));
out:
    return status;
}

void ring_plan_fini(struct ring_plan *plan)
{
    for (size_t i = 0; plan->slots && i < plan->slot_count; i++)
        transport_slot_fini(&plan->slots[i], plan->transport);
    codecs_free(plan->codecs, plan->buckets);
    free(plan->slots);
    free(plan->schedules);
    free(plan->tickets);
    *plan = (struct ring_plan){0};
}
