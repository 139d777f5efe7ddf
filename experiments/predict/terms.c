#include "experiments/predict/terms.h"

#include <math.h>

const char *const predict_term_names[PREDICT_TERMS] = {
    [TERM_LATENCY] = "latency_s",         [TERM_LINK] = "link_s_per_byte",
    [TERM_FILL_BURST] = "fill_burst_s",   [TERM_BURST] = "burst_s",
    [TERM_REDUCE] = "reduce_s_per_byte",  [TERM_MESSAGE] = "message_s",
    [TERM_CPU_MESSAGE] = "cpu_message_s", [TERM_CPU_BYTE] = "cpu_s_per_byte",
};

static const double order = 4; /* exponent of the mean that approximates the maximum */

const char *const predict_term_meanings[PREDICT_TERMS] = {
    [TERM_LATENCY] =
        "a: seconds per message of a chain, times the sequential steps of the algorithm",
    [TERM_LINK] = "1/B: seconds per byte of payload on the busiest link, each way",
    [TERM_BURST] =
        "seconds that a link saves per operation, because a burst passes before its rate "
        "limit applies; at most the link term",
    [TERM_FILL_BURST] =
        "the same, for bytes that reach servers before they answer or leave them after",
    [TERM_REDUCE] = "g: seconds to add a byte of a contribution",
    [TERM_MESSAGE] = "seconds of a processor per message of the busiest process",
    [TERM_CPU_MESSAGE] = "seconds of all cores per message: of all processes if they share one "
                         "machine, otherwise of the busiest; in parallel with the network, so the "
                         "longer of both counts",
    [TERM_CPU_BYTE] = "seconds of all cores per byte sent, likewise",
};

/* Bytes sent by all processes, or by the busiest one. */
static double cpu_bytes(const struct predict_shape *shape, const struct cost_shape *cost)
{
    const struct cost_formula *formula = shape->backend->cost;
    double all = 0;
    if (!shape->one_machine)
        return (double)cost_rank_traffic(formula, cost, 1).sent_bytes;
    for (int node = 0; node < shape->topology.workers + shape->topology.servers; node++)
        all += (double)cost_node_traffic(formula, cost, node).sent_bytes;
    return all;
}

/* As comm_options has it: without a nominal rate, a single machine is one host. */
static double rate_of(const struct predict_shape *shape)
{
    bool one_host = shape->nominal_bytes_per_s == 0 && shape->one_machine;
    return one_host ? (double)INFINITY : shape->nominal_bytes_per_s;
}

/* Uplinks of racks slow all links down alike. */
static double delay_of(const struct predict_shape *shape)
{
    return fmax(shape->uplink_delay, 1);
}

/* The cost of the distance at the shape's constants. */
static double distance_of(const struct predict_shape *shape, const struct cost_shape *cost)
{
    double s_per_byte = shape->link_s_per_byte * delay_of(shape);
    double bytes_per_s = s_per_byte > 0 ? 1 / s_per_byte : (double)INFINITY;
    struct cost_link near = {.latency_s = shape->latency_s, .bytes_per_s = bytes_per_s}, far = near;
    far.latency_s += shape->distance_s;
    return cost_time_s(shape->backend->cost, cost, &far) -
           cost_time_s(shape->backend->cost, cost, &near);
}

double predict_uplink_delay(const struct predict_shape *shape, int rack_ranks,
                            double oversubscribed)
{
    const struct comm_options options = {.compress = shape->compress,
                                         .radix = shape->radix,
                                         .rack_ranks = rack_ranks,
                                         .oversubscribed = oversubscribed};
    const struct cost_shape cost =
        cost_shape_of(shape->backend->cost, &shape->topology, shape->hosts, shape->count, &options);
    return cost_uplink_delay(shape->backend->cost, &cost);
}

bool predict_terms_of(const struct predict_shape *shape, struct predict_terms *terms)
{
    const struct cost_link units[] = {
        [TERM_LATENCY] = {.latency_s = 1, .bytes_per_s = INFINITY},
        [TERM_LINK] = {.bytes_per_s = 1 / delay_of(shape)},
        [TERM_REDUCE] = {.bytes_per_s = INFINITY, .reduce_s_per_byte = 1},
    };
    static const enum predict_term linear[] = {TERM_LATENCY, TERM_LINK, TERM_REDUCE};
    const struct cost_formula *formula = shape->backend->cost;
    const struct comm_options options = {.servers = shape->topology.servers,
                                         .placement = shape->topology.placement,
                                         .compress = shape->compress,
                                         .radix = shape->radix,
                                         .link_bytes_per_s = rate_of(shape),
                                         .round_trip_s = 2 * shape->distance_s};
    struct cost_shape cost =
        cost_shape_of(formula, &shape->topology, shape->hosts, shape->count, &options);
    struct cost_messages messages = {0};
    *terms = (struct predict_terms){.distance_s = distance_of(shape, &cost)};
    cost.window = 0; /* for a latency of 1 s, every window would be too short */
    for (size_t i = 0; i < sizeof linear / sizeof *linear; i++)
        terms->of[linear[i]] = cost_time_s(formula, &cost, &units[linear[i]]);
    if (isnan(terms->of[TERM_LINK]))
        return false;
    if (shape->backend->uses_servers) {
        struct cost_shape endless = cost;
        endless.pipeline = (size_t)1 << 40; /* no fill phase */
        double both_ways = cost_time_s(formula, &endless, &units[TERM_LINK]);
        terms->fill_bytes = fmax(terms->of[TERM_LINK] - both_ways, 0);
    }
    if (formula->messages)
        messages = formula->messages(&shape->topology, shape->hosts, shape->count, &options);
    terms->of[TERM_BURST] = terms->of[TERM_LINK] > 0 ? -1 : 0;
    terms->of[TERM_FILL_BURST] = terms->fill_bytes > 0 ? -1 : 0;
    terms->of[TERM_MESSAGE] = messages.busiest;
    terms->of[TERM_CPU_MESSAGE] = shape->one_machine ? messages.all : messages.busiest;
    terms->of[TERM_CPU_BYTE] = cpu_bytes(shape, &cost);
    terms->rest_s = shape->rest_s;
    return true;
}

double predict_fill_s(const struct predict_terms *terms, const struct predict_terms *constants)
{
    return fmax(terms->fill_bytes * constants->of[TERM_LINK] - constants->of[TERM_FILL_BURST], 0);
}

struct predict_terms predict_seconds(const struct predict_terms *terms,
                                     const struct predict_terms *constants)
{
    struct predict_terms seconds = {
        .rest_s = terms->rest_s, .fill_bytes = terms->fill_bytes, .distance_s = terms->distance_s};
    double fill_s = terms->fill_bytes * constants->of[TERM_LINK];
    for (int t = 0; t < PREDICT_TERMS; t++)
        seconds.of[t] = terms->of[t] * constants->of[t];
    seconds.of[TERM_LATENCY] += terms->distance_s;
    seconds.of[TERM_BURST] = fmax(seconds.of[TERM_BURST], fill_s - seconds.of[TERM_LINK]);
    seconds.of[TERM_FILL_BURST] = fmax(seconds.of[TERM_FILL_BURST], -fill_s);
    if (terms->rest_s > 0) {
        /* Servers answer in the other direction, which is idle during the fill phase, too. From one
         * operation to the next no link carries more than its rate. */
        double rested_s = terms->rest_s + predict_fill_s(terms, constants);
        seconds.of[TERM_BURST] = fmax(seconds.of[TERM_BURST], -rested_s);
    }
    return seconds;
}

/* Scales by the longer part, so that no power overflows. */
static double mean_of(double network, double processors)
{
    double longer = fmax(network, processors), shorter = fmin(network, processors);
    if (longer <= 0)
        return 0;
    return longer * pow(1 + pow(fmax(shorter, 0) / longer, order), 1 / order);
}

struct predict_parts predict_parts_of(const struct predict_terms *seconds)
{
    struct predict_parts parts = {0};
    for (int t = 0; t < TERM_PROCESSORS; t++)
        parts.network += seconds->of[t];
    for (int t = TERM_PROCESSORS; t < PREDICT_TERMS; t++)
        parts.processors += seconds->of[t];
    parts.together = mean_of(parts.network, parts.processors);
    return parts;
}

double predict_other_part(double together, double one)
{
    return one < together ? together * pow(1 - pow(one / together, order), 1 / order) : 0;
}

struct predict_weights predict_weights_of(struct predict_parts parts)
{
    if (parts.together <= 0)
        return (struct predict_weights){1, 1};
    return (struct predict_weights){pow(fmax(parts.network, 0) / parts.together, order - 1),
                                    pow(parts.processors / parts.together, order - 1)};
}

struct predict_terms predict_linear_at(const struct predict_terms *terms,
                                       const struct predict_terms *constants,
                                       struct predict_weights weights)
{
    struct predict_terms linear = *terms;
    double *of = linear.of;
    double burst_s = constants->of[TERM_BURST], link_s = constants->of[TERM_LINK];
    double both_ways = terms->of[TERM_LINK] - terms->fill_bytes;
    double fill_s = predict_fill_s(terms, constants);
    bool cut = terms->rest_s > 0 && terms->rest_s + fill_s <= fmin(burst_s, both_ways * link_s);
    if (link_s > 0 && (fill_s == 0 || cut)) {
        of[TERM_LINK] -= terms->fill_bytes;
        of[TERM_FILL_BURST] = 0;
    }
    if (cut) {
        of[TERM_BURST] *= terms->rest_s / burst_s;
    } else if (link_s > 0 && burst_s >= both_ways * link_s) {
        of[TERM_LINK] -= both_ways;
        of[TERM_BURST] = 0;
    }
    for (int t = 0; t < PREDICT_TERMS; t++)
        of[t] *= t < TERM_PROCESSORS ? weights.network : weights.processors;
    linear.distance_s *= weights.network;
    return linear;
}
