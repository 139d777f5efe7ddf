/* For tests of the cost models: shapes, and the expected results of a formula. */
#ifndef PSRING_TESTS_LIB_COST_LIB_H
#define PSRING_TESTS_LIB_COST_LIB_H

#include <criterion/criterion.h>
#include <math.h>

#include "common/comm/cost.h"
#include "ps/ps.h"
#include "ring/ring.h"

enum { WORKERS_MAX = 8 };

/* A shape and the formula for it. */
struct subject {
    const struct cost_formula *formula;
    struct cost_shape shape;
};

static inline struct subject subject_of(const struct cost_formula *formula,
                                        struct topology topology, size_t count)
{
    return (struct subject){
        formula,
        {.topology = topology, .count = count, .element_bytes = sizeof(float), .pipeline = 1}};
}

static inline struct subject ring(int workers, size_t count)
{
    return subject_of(&ring_cost, (struct topology){workers, 0, PLACEMENT_DEDICATED}, count);
}

static inline struct subject rhd(int workers, size_t count)
{
    return subject_of(&halving_cost, (struct topology){workers, 0, PLACEMENT_DEDICATED}, count);
}

static inline struct subject tree(int workers, size_t count)
{
    return subject_of(&tree_cost, (struct topology){workers, 0, PLACEMENT_DEDICATED}, count);
}

/* Workers on the hosts given by `hosts`. */
static inline struct subject hierarchical(int workers, const int *hosts, enum reduce_order order,
                                          size_t count)
{
    struct subject subject = ring(workers, count);
    subject.formula = &hierarchical_cost;
    subject.shape.hosts = hosts;
    subject.shape.order = order;
    return subject;
}

static const int two_by_two[] = {0, 0, 2, 2}, two_by_two_and_one[] = {0, 0, 2, 2, 4},
                 apart[] = {0, 1, 0, 1}, one_host[] = {0, 0, 0, 0},
                 three_by_two[] = {0, 0, 2, 2, 4, 4}, uneven[] = {0, 0, 0, 3};

/* Cut into slices, so even a short vector is halved. */
static inline struct subject halved(int workers, size_t count)
{
    struct subject subject = rhd(workers, count);
    subject.shape.pipeline = 2;
    return subject;
}

static inline struct subject ps(int workers, int servers, enum placement placement, size_t count)
{
    return subject_of(&ps_cost, (struct topology){workers, servers, placement}, count);
}

static inline struct cost_traffic node_traffic(const struct subject *subject, int node)
{
    return cost_node_traffic(subject->formula, &subject->shape, node);
}

static inline struct cost_traffic rank_traffic(const struct subject *subject)
{
    return cost_rank_traffic(subject->formula, &subject->shape, 1);
}

static inline double time_s(const struct subject *subject, const struct cost_link *link)
{
    return cost_time_s(subject->formula, &subject->shape, link);
}

static inline void expect_traffic(struct subject shape, int node, uint64_t sent_elements,
                                  uint64_t received_elements)
{
    struct cost_traffic found = node_traffic(&shape, node);
    cr_expect_eq(found.sent_bytes, 4 * sent_elements, "node %d sends %ju bytes, expected %ju", node,
                 (uintmax_t)found.sent_bytes, (uintmax_t)(4 * sent_elements));
    cr_expect_eq(found.received_bytes, 4 * received_elements,
                 "node %d receives %ju bytes, expected %ju", node, (uintmax_t)found.received_bytes,
                 (uintmax_t)(4 * received_elements));
}

static inline void expect_most(struct subject shape, enum node_role role, uint64_t sent_elements,
                               uint64_t received_elements)
{
    struct cost_traffic found = cost_role_traffic(shape.formula, &shape.shape, 1, role);
    cr_expect_eq(found.sent_bytes, 4 * sent_elements);
    cr_expect_eq(found.received_bytes, 4 * received_elements);
}

static inline void expect_close(double found, double expected)
{
    cr_expect(fabs(found - expected) <= 1e-12 * fabs(expected), "found %.15g, expected %.15g",
              found, expected);
}

static inline void expect_time_on(struct subject subject, const int *hosts, double expected_s)
{
    const struct cost_link link = {1e-3, 1e6, 0};
    subject.shape.hosts = hosts;
    expect_close(time_s(&subject, &link), expected_s);
}

#endif
