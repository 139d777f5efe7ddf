/* libpsring: every operation, and its bytes. */
#include "tests/lib/psring_ranks.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* -------- data -------------------------------------------------------------------------------- */

static const enum psring_type types[] = {PSRING_FLOAT32,  PSRING_FLOAT64, PSRING_FLOAT16,
                                         PSRING_BFLOAT16, PSRING_INT32,   PSRING_INT64};
enum { TYPES = sizeof types / sizeof *types };
static const size_t element_bytes[TYPES] = {4, 8, 2, 2, 4, 8};

/* Writes a whole number of at most 8 bits as an element: all types represent it exactly. */
static void put(void *data, enum psring_type type, size_t i, int value)
{
    uint16_t code = 0;
    int exponent;
    float number = (float)value, fraction = fabsf(frexpf(number, &exponent)) * 2 - 1;
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    if (type == PSRING_BFLOAT16)
        code = (uint16_t)(bits >> 16);
    else if (value != 0)
        code =
            (uint16_t)((value < 0 ? 0x8000 : 0) | (exponent + 14) << 10 | (int)(fraction * 1024));
    switch (type) {
    case PSRING_FLOAT32:
        ((float *)data)[i] = number;
        break;
    case PSRING_FLOAT64:
        ((double *)data)[i] = value;
        break;
    case PSRING_INT32:
        ((int32_t *)data)[i] = value;
        break;
    case PSRING_INT64:
        ((int64_t *)data)[i] = value;
        break;
    default:
        ((uint16_t *)data)[i] = code;
        break;
    }
}

/* Element i of rank r: a multiple of the size, so averages are whole numbers, too. */
static int value_of(int rank, int size, size_t i)
{
    return size * ((int)((i * 7 + (size_t)rank * 13) % 5) - 2);
}

static int reduced(enum psring_op op, int size, size_t i)
{
    int sum = 0, least = value_of(0, size, i), most = least;
    for (int rank = 0; rank < size; rank++) {
        int value = value_of(rank, size, i);
        sum += value;
        least = value < least ? value : least;
        most = value > most ? value : most;
    }
    return op == PSRING_SUM       ? sum
           : op == PSRING_AVERAGE ? sum / size
           : op == PSRING_MIN     ? least
                                  : most;
}

/* Whether the elements from `first` to `end` - 1 of `data` equal those of the function. */
static bool equal(const void *data, enum psring_type type, size_t first, size_t end,
                  int (*wanted)(const void *context, size_t i), const void *context)
{
    for (size_t i = first; i < end; i++) {
        uint64_t expected = 0;
        put(&expected, type, 0, wanted(context, i));
        if (memcmp((const char *)data + i * element_bytes[type], &expected, element_bytes[type]))
            return false;
    }
    return true;
}

struct wanted {
    enum psring_op op;
    int size, root;
};

static int wanted_reduced(const void *context, size_t i)
{
    const struct wanted *wanted = context;
    return reduced(wanted->op, wanted->size, i);
}

static int wanted_roots(const void *context, size_t i)
{
    const struct wanted *wanted = context;
    return value_of(wanted->root, wanted->size, i);
}

static void fill_part(void *data, enum psring_type type, size_t first, size_t end, int rank,
                      int size)
{
    for (size_t i = first; i < end; i++)
        put(data, type, i, value_of(rank, size, i));
}

static void fill(void *data, enum psring_type type, size_t count, int rank, int size)
{
    fill_part(data, type, 0, count, rank, size);
}

/* -------- collective operations --------------------------------------------------------------- */

enum { BLOCK = 9000, LENGTH = RANKS_MOST * BLOCK };
static union {
    double aligned;
    char bytes[LENGTH * 8];
} memory;

static void check_allreduce(struct psring *world, enum psring_type type, enum psring_op op)
{
    static const size_t counts[] = {1, 7, 1000, 70001};
    int rank = psring_rank(world), size = psring_size(world);
    const struct wanted wanted = {.op = op, .size = size};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        fill(memory.bytes, type, counts[c], rank, size);
        MUST(psring_allreduce(world, memory.bytes, counts[c], type, op) == PSRING_OK);
        MUST(equal(memory.bytes, type, 0, counts[c], wanted_reduced, &wanted));
    }
}

static void check_phases(struct psring *world, enum psring_type type, enum psring_op op)
{
    static const size_t counts[] = {1, 13, BLOCK};
    int rank = psring_rank(world), size = psring_size(world);
    const struct wanted wanted = {.op = op, .size = size};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        size_t count = counts[c], first = (size_t)rank * count;
        fill(memory.bytes, type, (size_t)size * count, rank, size);
        MUST(psring_reduce_scatter(world, memory.bytes, count, type, op) == PSRING_OK);
        MUST(equal(memory.bytes, type, first, first + count, wanted_reduced, &wanted));
        MUST(psring_all_gather(world, memory.bytes, count, type) == PSRING_OK);
        MUST(equal(memory.bytes, type, 0, (size_t)size * count, wanted_reduced, &wanted));
    }
}

static void check_broadcast(struct psring *world, enum psring_type type)
{
    static const size_t counts[] = {1, 1000, 70001};
    int rank = psring_rank(world), size = psring_size(world);
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        for (int root = 0; root < size; root++) {
            const struct wanted wanted = {.size = size, .root = root};
            fill(memory.bytes, type, counts[c], rank, size);
            MUST(psring_broadcast(world, memory.bytes, counts[c], type, root) == PSRING_OK);
            MUST(equal(memory.bytes, type, 0, counts[c], wanted_roots, &wanted));
        }
    }
}

static void do_all_operations(const struct psring_options *options)
{
    struct psring *world = begin(options);
    for (int t = 0; t < TYPES; t++) {
        for (enum psring_op op = PSRING_SUM; op <= PSRING_MAX; op++) {
            check_allreduce(world, types[t], op);
            check_phases(world, types[t], op);
        }
        check_broadcast(world, types[t]);
        MUST(psring_barrier(world) == PSRING_OK);
    }
    MUST(psring_allreduce(world, NULL, 0, PSRING_INT32, PSRING_SUM) == PSRING_OK);
    MUST(psring_finalize(&world) == PSRING_OK && !world);
}

static void all_operations(const char *backend, const char *transport, int largest)
{
    for (int size = 1; size <= largest; size++) {
        const struct job job = {
            .options = {.size = size, .backend = backend, .transport = transport},
            .run = do_all_operations};
        run_ranks(&job, 0);
    }
}

Test(psring, every_operation_type_and_size_over_tcp)
{
    all_operations(NULL, NULL, 5);
}

Test(psring, over_rhd)
{
    all_operations("rhd", "tcp", 4);
}

Test(psring, over_tree)
{
    all_operations("tree", "tcp", 5);
}

Test(psring, over_ring_and_zmq)
{
    all_operations("ring", "zmq", 3);
}

/* Played hosts with several ranks. Chunks of all lengths, also 0, in the memory of a host and
 * between hosts. */
Test(psring, over_hierarchical)
{
    static const struct {
        int size, locals;
        bool dealt_out;
    } cases[] = {{1, 0, 0}, {3, 0, 0}, {3, 1, 0}, {4, 2, 0}, {4, 2, 1}, {6, 3, 0}, {6, 2, 1}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const struct job job = {.options = {.size = cases[c].size, .backend = "hierarchical"},
                                .locals = cases[c].locals,
                                .dealt_out = cases[c].dealt_out,
                                .run = do_all_operations};
        run_ranks(&job, 0);
    }
}

Test(psring, over_hierarchical_and_zmq)
{
    const struct job job = {.options = {.size = 4, .backend = "hierarchical", .transport = "zmq"},
                            .locals = 2,
                            .run = do_all_operations};
    run_ranks(&job, 0);
}

static bool has_ipv6(void)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    bool has = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
    close(fd);
    return has;
}

static void do_mixed(const struct psring_options *options)
{
    struct psring_options own = *options;
    own.network = options->rank % 2 && has_ipv6() ? "::1/128" : "127.0.0.0/8";
    do_all_operations(&own);
}

/* Some ranks have IPv4 addresses and others IPv6 addresses, if the kernel has these. */
Test(psring, addresses_of_both_families)
{
    for (int zmq = 0; zmq < 2; zmq++) {
        const struct job job = {.options = {.size = 3, .transport = zmq ? "zmq" : "tcp"},
                                .run = do_mixed};
        run_ranks(&job, 0);
    }
}

/* A vector longer than the shared memory of a host, and than a broadcast may be ahead, of odd
 * length. */
static void do_long(const struct psring_options *options)
{
    enum { LONG = 1200001 };
    struct psring *world = begin(options);
    int64_t *data = malloc(LONG * sizeof *data);
    const struct wanted wanted = {.op = PSRING_AVERAGE, .size = options->size};
    MUST(data);
    for (int round = 0; round < 2; round++) {
        fill(data, PSRING_INT64, LONG, options->rank, options->size);
        MUST(psring_allreduce(world, data, LONG, PSRING_INT64, PSRING_AVERAGE) == PSRING_OK);
        MUST(equal(data, PSRING_INT64, 0, LONG, wanted_reduced, &wanted));
    }
    for (int root = 0; root < options->size; root++) {
        const struct wanted roots = {.size = options->size, .root = root};
        fill(data, PSRING_INT64, LONG, options->rank, options->size);
        MUST(psring_broadcast(world, data, LONG, PSRING_INT64, root) == PSRING_OK);
        MUST(equal(data, PSRING_INT64, 0, LONG, wanted_roots, &roots));
    }
    free(data);
    MUST(psring_finalize(&world) == PSRING_OK);
}

Test(psring, hierarchical_of_long_vectors)
{
    const struct job job = {
        .options = {.size = 4, .backend = "hierarchical"}, .locals = 2, .run = do_long};
    run_ranks(&job, 0);
}

/* Two ranks exchange halves (ring/ring.h). */
Test(psring, long_vectors_of_two_ranks)
{
    for (int zmq = 0; zmq < 2; zmq++) {
        const struct job job = {
            .options = {.size = 2, .backend = "ring", .transport = zmq ? "zmq" : "tcp"},
            .run = do_long};
        run_ranks(&job, 0);
    }
}

/* More different lengths than the library keeps plans for, repeatedly. */
static void do_many_lengths(const struct psring_options *options)
{
    struct psring *world = begin(options);
    for (int round = 0; round < 3; round++) {
        for (size_t count = 1; count < 60; count++) {
            const struct wanted wanted = {.op = PSRING_SUM, .size = options->size};
            fill(memory.bytes, PSRING_FLOAT32, count, options->rank, options->size);
            MUST(psring_allreduce(world, memory.bytes, count, PSRING_FLOAT32, PSRING_SUM) ==
                 PSRING_OK);
            MUST(equal(memory.bytes, PSRING_FLOAT32, 0, count, wanted_reduced, &wanted));
        }
    }
    MUST(psring_finalize(&world) == PSRING_OK);
}

Test(psring, many_lengths)
{
    const struct job job = {.options = {.size = 3}, .run = do_many_lengths};
    run_ranks(&job, 0);
}

/* The minimum of 0 and -0 may be either, but both ranks get the same one. */
static void do_zeros(const struct psring_options *options)
{
    struct psring *world = begin(options);
    float zero = options->rank == 0 ? 0.0f : -0.0f;
    int32_t bits[2];
    MUST(psring_allreduce(world, &zero, 1, PSRING_FLOAT32, PSRING_MIN) == PSRING_OK);
    memcpy(&bits[options->rank], &zero, sizeof zero);
    MUST(psring_all_gather(world, bits, 1, PSRING_INT32) == PSRING_OK && bits[0] == bits[1]);
    MUST(psring_finalize(&world) == PSRING_OK);
}

Test(psring, zeros_of_both_signs)
{
    const struct job job = {.options = {.size = 2}, .run = do_zeros};
    run_ranks(&job, 0);
}

/* As documented in the header, an average adds first. */
static void do_sums_that_do_not_fit(const struct psring_options *options)
{
    struct psring *world = begin(options);
    uint16_t large = 0x78E2; /* 40,000 */
    int32_t whole = 1 << 30;
    MUST(psring_allreduce(world, &large, 1, PSRING_FLOAT16, PSRING_AVERAGE) == PSRING_OK);
    MUST(psring_allreduce(world, &whole, 1, PSRING_INT32, PSRING_AVERAGE) == PSRING_OK);
    MUST(large == 0x7C00 && whole == 0);
    MUST(psring_finalize(&world) == PSRING_OK);
}

Test(psring, averages_of_sums_that_do_not_fit)
{
    const struct job job = {.options = {.size = 4}, .run = do_sums_that_do_not_fit};
    run_ranks(&job, 0);
}

/* -------- handles ----------------------------------------------------------------------------- */

static void do_handles(const struct psring_options *options)
{
    enum { HANDLES = 20, EACH = 3000 };
    struct psring *world = begin(options);
    struct psring_handle *handles[HANDLES];
    const struct wanted wanted = {.op = PSRING_MAX, .size = options->size};
    float *data = (float *)memory.bytes, late = (float)options->rank;
    for (int h = 0; h < HANDLES; h++)
        fill(data + h * EACH, PSRING_FLOAT32, EACH, options->rank, options->size);
    for (int h = 0; h < HANDLES; h++)
        MUST(psring_allreduce_start(world, data + h * EACH, EACH, PSRING_FLOAT32, PSRING_MAX,
                                    &handles[h]) == PSRING_OK);
    /* A blocking operation comes after all operations that were started before it. */
    MUST(psring_allreduce(world, &late, 1, PSRING_FLOAT32, PSRING_MAX) == PSRING_OK);
    MUST(late == (float)(options->size - 1));
    for (int h = HANDLES - 1; h >= 0; h--) { /* in any order */
        int done = 0;
        MUST(psring_test(handles[h], &done) == PSRING_OK && done == 1);
        MUST(psring_wait(&handles[h]) == PSRING_OK && !handles[h]);
        MUST(equal(data + h * EACH, PSRING_FLOAT32, 0, EACH, wanted_reduced, &wanted));
    }
    /* Two operations for which no call waits. */
    MUST(psring_broadcast_start(world, data, EACH, PSRING_FLOAT32, 0, &handles[0]) == PSRING_OK);
    MUST(psring_all_gather_start(world, data, EACH, PSRING_FLOAT32, &handles[1]) == PSRING_OK);
    MUST(psring_finalize(&world) == PSRING_OK);
}

Test(psring, handles)
{
    for (int size = 1; size <= 3; size++) {
        const struct job job = {.options = {.size = size}, .run = do_handles};
        run_ranks(&job, 0);
    }
}

static char noted[1000];

static void note(void *context, const char *line)
{
    (void)context;
    snprintf(noted, sizeof noted, "%s", line);
}

/* No thread can start on rank 0. Its operations run in the call that starts them. */
static void do_without_a_thread(const struct psring_options *given)
{
    struct psring_options options = *given;
    struct psring_handle *handle;
    int done = 0, sum = 1;
    pthread_attr_t attributes;
    options.log = note;
    struct psring *world = begin(&options);
    pthread_attr_init(&attributes);
    MUST(pthread_attr_setstacksize(&attributes, (size_t)1 << 50) == 0); /* more than can be */
    MUST(options.rank != 0 || pthread_setattr_default_np(&attributes) == 0);
    pthread_attr_destroy(&attributes);
    MUST(psring_allreduce_start(world, &sum, 1, PSRING_INT32, PSRING_SUM, &handle) == PSRING_OK);
    MUST(options.rank != 0 || (psring_test(handle, &done) == PSRING_OK && done));
    MUST(psring_wait(&handle) == PSRING_OK && sum == options.size);
    MUST((options.rank == 0) == (strstr(noted, "runs in the call that starts it") != NULL));
    MUST(psring_finalize(&world) == PSRING_OK);
}

Test(psring, handles_without_a_thread)
{
    const struct job job = {.options = {.size = 3}, .run = do_without_a_thread};
    run_ranks(&job, 0);
}

/* -------- a rank that is ahead ---------------------------------------------------------------- */

static atomic_int *ended; /* rank 0's broadcasts so far; shared by the ranks */

/* Rank 0 broadcasts to rank 1, which waits for rank 2 in another group. Rank 0 must wait after as
 * many as one credit is for: else what it sends would fill rank 1's memory. */
static void do_run_ahead(const struct psring_options *options)
{
    enum { TIMES = 200, CREDIT = 16 };
    int rank = options->rank;
    struct psring *world = begin(options), *first, *last;
    struct psring_statistics before, after;
    MUST(psring_split(world, rank < 2 ? 0 : -1, &first) == PSRING_OK);
    MUST(psring_split(world, rank > 0 ? 0 : -1, &last) == PSRING_OK);
    while (rank == 2 && atomic_load(ended) < CREDIT - 1)
        usleep(1000);
    if (rank == 2)
        usleep(100000); /* in which rank 0 must not continue */
    MUST(rank != 2 || atomic_load(ended) == CREDIT - 1);
    MUST(rank == 0 || psring_barrier(last) == PSRING_OK);
    MUST(psring_get_statistics(world, &before) == PSRING_OK);
    for (int i = 0; rank < 2 && i < TIMES; i++) {
        int value = rank == 0 ? i : -1;
        MUST(psring_broadcast(first, &value, 1, PSRING_INT32, 0) == PSRING_OK && value == i);
        atomic_fetch_add(ended, rank == 0);
    }
    MUST(psring_get_statistics(world, &after) == PSRING_OK);
    uint64_t sent = after.sent_messages - before.sent_messages,
             received = after.received_messages - before.received_messages;
    MUST(rank == 2 || (rank == 0 ? sent : received) == TIMES);
    MUST(rank == 2 || (rank == 0 ? received : sent) == TIMES / CREDIT);
    MUST(psring_finalize(&world) == PSRING_OK);
}

Test(psring, a_broadcast_waits_for_a_rank_in_another_call)
{
    static const char *const transports[] = {"tcp", "zmq"};
    ended = mmap(NULL, sizeof *ended, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert(ended != MAP_FAILED);
    for (int t = 0; t < 2; t++) {
        const struct job job = {.options = {.size = 3, .transport = transports[t]},
                                .run = do_run_ahead};
        atomic_store(ended, 0);
        run_ranks(&job, 0);
    }
    munmap(ended, sizeof *ended);
}

/* -------- groups ------------------------------------------------------------------------------ */

static void do_groups(const struct psring_options *options)
{
    int rank = options->rank, size = options->size, mine = rank;
    struct psring *world = begin(options), *group, *none;
    MUST(psring_split(world, rank % 2, &group) == PSRING_OK && group);
    MUST(psring_rank(group) == rank / 2 && psring_size(group) == (size + 1 - rank % 2) / 2);
    MUST(psring_split(world, rank == 0 ? -1 : 5, &none) == PSRING_OK &&
         (none == NULL) == (rank == 0));
    for (int round = 0; round < 3; round++) {
        int sum = rank, expected = 0;
        for (int r = rank % 2; r < size; r += 2)
            expected += r;
        MUST(psring_allreduce(group, &sum, 1, PSRING_INT32, PSRING_SUM) == PSRING_OK);
        MUST(sum == expected);
        MUST(psring_broadcast(group, &mine, 1, PSRING_INT32, 0) == PSRING_OK && mine == rank % 2);
        sum = rank;
        MUST(psring_allreduce(world, &sum, 1, PSRING_INT32, PSRING_SUM) == PSRING_OK);
        MUST(sum == size * (size - 1) / 2);
    }
    MUST(psring_split(group, 0, &group) == PSRING_ERROR_USAGE);
    MUST(psring_free(&none) == PSRING_OK && !none);
    MUST(psring_free(&world) == PSRING_ERROR_USAGE && world);
    MUST(psring_barrier(world) == PSRING_OK);
    MUST(psring_finalize(&world) == PSRING_OK); /* also frees the first group */
}

Test(psring, groups)
{
    const struct job job = {.options = {.size = 5}, .run = do_groups};
    run_ranks(&job, 0);
}

/* Hosts have equal numbers of one group's ranks, but not of the other's. */
Test(psring, groups_on_hosts)
{
    static const bool dealt_out[] = {false, true};
    for (int i = 0; i < 2; i++) {
        const struct job job = {.options = {.size = 6, .backend = "hierarchical"},
                                .locals = 3,
                                .dealt_out = dealt_out[i],
                                .run = do_groups};
        run_ranks(&job, 0);
    }
}

/* -------- buckets ----------------------------------------------------------------------------- */

static void do_buckets(const struct psring_options *options)
{
    static const size_t counts[] = {5, 30000, 0, 700, 1, 40000};
    enum { TENSORS = sizeof counts / sizeof *counts, TOTAL = 70706 };
    /* A different order on each rank. */
    static const size_t orders[3][TENSORS] = {
        {5, 4, 3, 2, 1, 0}, {0, 1, 2, 3, 4, 5}, {3, 5, 0, 1, 4, 2}};
    struct psring *world = begin(options);
    struct psring_buckets *buckets;
    const struct wanted wanted = {.op = PSRING_AVERAGE, .size = options->size};
    MUST(psring_buckets_new(&buckets, world, memory.bytes, counts, TENSORS, 50000, PSRING_INT32,
                            PSRING_AVERAGE) == PSRING_OK);
    MUST(psring_buckets_count(buckets) > 4);
    for (int step = 0; step < 3; step++) {
        for (size_t t = 0; t < TENSORS; t++) {
            size_t tensor = orders[options->rank][t], first = 0;
            for (size_t before = 0; before < tensor; before++)
                first += counts[before];
            fill_part(memory.bytes, PSRING_INT32, first, first + counts[tensor], options->rank,
                      options->size);
            MUST(psring_buckets_ready(buckets, tensor) == PSRING_OK);
        }
        MUST(psring_buckets_ready(buckets, 0) == PSRING_ERROR_USAGE);
        MUST(psring_buckets_wait(buckets) == PSRING_OK);
        MUST(equal(memory.bytes, PSRING_INT32, 0, TOTAL, wanted_reduced, &wanted));
    }
    MUST(psring_buckets_wait(buckets) == PSRING_ERROR_USAGE);
    MUST(strstr(psring_error(), "tensor 0 is not ready"));
    psring_buckets_free(&buckets);
    MUST(psring_finalize(&world) == PSRING_OK);
}

Test(psring, buckets)
{
    const struct job job = {.options = {.size = 3}, .run = do_buckets};
    run_ranks(&job, 0);
}

/* The limits of buckets are bytes of every type: the first one has 1 MB. */
static void do_lengths_of_buckets(const struct psring_options *options)
{
    enum { MEGABYTE = 1 << 20, TENSORS = 4 };
    struct psring *world = begin(options);
    for (int t = 0; t < TYPES; t++) {
        struct psring_buckets *buckets;
        size_t each = MEGABYTE / element_bytes[t];
        const size_t counts[TENSORS] = {each, each, each, each};
        void *data = calloc(TENSORS, MEGABYTE);
        MUST(data && psring_buckets_new(&buckets, world, data, counts, TENSORS, 2 * MEGABYTE,
                                        types[t], PSRING_SUM) == PSRING_OK);
        MUST(psring_buckets_count(buckets) == 3); /* of 1, 2 and 1 MB */
        psring_buckets_free(&buckets);
        free(data);
    }
    MUST(psring_finalize(&world) == PSRING_OK);
}

Test(psring, lengths_of_buckets)
{
    const struct job job = {.options = {.size = 1}, .run = do_lengths_of_buckets};
    run_ranks(&job, 0);
}

/* Several threads complete tensors at the same time. */
enum { THREADS = 4, SMALL_TENSORS = 64, SMALL_COUNT = 256, SMALL_STEPS = 50 };

static struct completers {
    struct psring_buckets *buckets;
    pthread_barrier_t filled, completed, next;
} completers;

static void *complete_tensors(void *argument)
{
    size_t mine = (size_t)argument;
    for (int step = 0; step < SMALL_STEPS; step++) {
        pthread_barrier_wait(&completers.filled);
        for (size_t t = mine; t < SMALL_TENSORS; t += THREADS)
            MUST(psring_buckets_ready(completers.buckets, t) == PSRING_OK);
        pthread_barrier_wait(&completers.completed);
        pthread_barrier_wait(&completers.next);
    }
    return NULL;
}

static void do_buckets_of_threads(const struct psring_options *options)
{
    enum { TOTAL = SMALL_TENSORS * SMALL_COUNT };
    struct psring *world = begin(options);
    const struct wanted wanted = {.op = PSRING_SUM, .size = options->size};
    size_t counts[SMALL_TENSORS];
    pthread_t threads[THREADS];
    for (size_t t = 0; t < SMALL_TENSORS; t++)
        counts[t] = SMALL_COUNT;
    MUST(psring_buckets_new(&completers.buckets, world, memory.bytes, counts, SMALL_TENSORS, 1024,
                            PSRING_FLOAT32, PSRING_SUM) == PSRING_OK);
    pthread_barrier_init(&completers.filled, NULL, THREADS + 1);
    pthread_barrier_init(&completers.completed, NULL, THREADS + 1);
    pthread_barrier_init(&completers.next, NULL, THREADS + 1);
    for (size_t i = 0; i < THREADS; i++)
        MUST(pthread_create(&threads[i], NULL, complete_tensors, (void *)i) == 0);
    for (int step = 0; step < SMALL_STEPS; step++) {
        fill(memory.bytes, PSRING_FLOAT32, TOTAL, options->rank, options->size);
        pthread_barrier_wait(&completers.filled);
        pthread_barrier_wait(&completers.completed);
        MUST(psring_buckets_wait(completers.buckets) == PSRING_OK);
        MUST(equal(memory.bytes, PSRING_FLOAT32, 0, TOTAL, wanted_reduced, &wanted));
        pthread_barrier_wait(&completers.next);
    }
    for (size_t i = 0; i < THREADS; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
    psring_buckets_free(&completers.buckets);
    MUST(psring_finalize(&world) == PSRING_OK);
}

Test(psring, buckets_of_several_threads)
{
    const struct job job = {.options = {.size = 2}, .run = do_buckets_of_threads};
    run_ranks(&job, 0);
}

/* -------- statistics -------------------------------------------------------------------------- */

static size_t statistics_bytes; /* sent by each of four ranks for 4,000 float64 */

static void do_statistics(const struct psring_options *options)
{
    struct psring *world = begin(options);
    struct psring_statistics before, after;
    MUST(psring_get_statistics(world, &before) == PSRING_OK && before.sent_bytes == 0);
    MUST(psring_allreduce(world, memory.bytes, 4000, PSRING_FLOAT64, PSRING_SUM) == PSRING_OK);
    MUST(psring_get_statistics(world, &after) == PSRING_OK);
    MUST(after.operations == 1 && after.seconds > 0);
    MUST((after.sent_messages > 0) == (statistics_bytes > 0));
    MUST(after.sent_bytes == statistics_bytes && after.received_bytes == after.sent_bytes);
    MUST(psring_finalize(&world) == PSRING_OK);
}

static void check_statistics(const char *backend, int locals, size_t bytes)
{
    const struct job job = {
        .options = {.size = 4, .backend = backend}, .locals = locals, .run = do_statistics};
    statistics_bytes = bytes;
    run_ranks(&job, 0);
}

Test(psring, statistics_are_the_formulas)
{
    enum { VECTOR = 4000 * 8, ALL = 2 * 3 * VECTOR / 4 };
    check_statistics("ring", 0, ALL);
    check_statistics("rhd", 0, ALL);
    check_statistics("hierarchical", 1, ALL);
    check_statistics("hierarchical", 2, VECTOR / 2); /* 2(H-1)/H M/L */
    check_statistics("hierarchical", 4, 0);
}

/* The bytes show which all-reduce was used. */
static void do_automatic(const struct psring_options *options)
{
    struct psring *world = begin(options);
    struct psring_statistics before, after;
    MUST(psring_get_statistics(world, &before) == PSRING_OK);
    MUST(psring_allreduce(world, memory.bytes, 4 * 5000, PSRING_FLOAT64, PSRING_SUM) == PSRING_OK);
    MUST(psring_get_statistics(world, &after) == PSRING_OK);
    MUST(after.sent_bytes - before.sent_bytes == statistics_bytes);
    MUST(psring_finalize(&world) == PSRING_OK);
}

Test(psring, hosts_with_several_ranks_are_hierarchical)
{
    enum { VECTOR = 4 * 5000 * 8 };
    static const struct {
        int size, locals;
        size_t bytes;
    } cases[] = {{4, 2, VECTOR / 2},          /* two hosts of two */
                 {4, 1, 2 * 3 * VECTOR / 4},  /* one rank a host: the ring */
                 {4, 0, 2 * 3 * VECTOR / 4},  /* one host: the ring */
                 {4, 3, 2 * 3 * VECTOR / 4}}; /* three and one: the ring */
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const struct job job = {
            .options = {.size = cases[c].size}, .locals = cases[c].locals, .run = do_automatic};
        statistics_bytes = cases[c].bytes;
        run_ranks(&job, 0);
    }
}

/* -------- memory that cannot be shared -------------------------------------------------------- */

static bool lacks_memory, dies; /* in this process */

/* The library calls this function, too. */
int memfd_create(const char *name, unsigned flags)
{
    if (dies)
        raise(SIGKILL);
    if (!lacks_memory)
        return (int)syscall(SYS_memfd_create, name, flags);
    errno = ENOMEM;
    return -1;
}

/* Rank 2, the second host's first rank, lacks memory. All use the ring, and the log reports it. */
static void do_without_memory(const struct psring_options *given)
{
    struct psring_options options = *given;
    options.log = note;
    lacks_memory = options.rank == 2;
    do_automatic(&options);
    MUST(strstr(noted, "all-reduces go over the ring instead"));
    MUST(strstr(noted, options.rank / 2 == 1 ? "host1" : "rank 2 on host1"));
}

/* If the backend was requested by name, all ranks get an error. */
static void do_refuse_without_memory(const struct psring_options *options)
{
    struct psring *world;
    lacks_memory = options->rank == 2;
    MUST(psring_init(&world, options) == PSRING_ERROR_NO_MEMORY && !world);
    MUST(strstr(psring_error(), "host1"));
}

Test(psring, hosts_that_cannot_share_memory)
{
    const struct job chosen = {.options = {.size = 4}, .locals = 2, .run = do_without_memory};
    const struct job asked = {.options = {.size = 4, .backend = "hierarchical"},
                              .locals = 2,
                              .run = do_refuse_without_memory};
    statistics_bytes = 2 * 3 * (4 * 5000 * 8) / 4;
    run_ranks(&chosen, 0);
    run_ranks(&asked, 0);
}

/* Rank 2 is gone: this must not select the ring, but is an error. */
static void do_die_instead(const struct psring_options *options)
{
    struct psring *world;
    dies = options->rank == 2;
    MUST(psring_init(&world, options) == PSRING_ERROR_TRANSPORT && !world);
    MUST(strstr(psring_error(), "rank 2"));
}

Test(psring, a_rank_that_dies_while_memory_is_shared)
{
    const struct job job = {.options = {.size = 4}, .locals = 2, .run = do_die_instead};
    run_ranks(&job, 1 << 2);
}
