/* The rule by which a leader decides who may continue. The cases are those in which simpler rules
 * let two worlds run. tests/net/shrink.pml searches for further ones. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "common/net/shrink_impl.h"
#include "common/net/world_impl.h"

enum { COUNT = 4 };

static struct members set_of(unsigned bits)
{
    return (struct members){.words = {bits}};
}

/* The ranks of the first world are its founders. */
static struct view view_of(uint32_t epoch, unsigned bits)
{
    const struct members members = set_of(bits);
    return (struct view){
        .epoch = epoch, .members = members, .founders = set_of(0xf), .voters = members};
}

/* A leader that has been in the first world, of COUNT ranks. */
static struct attempt *leader(int identity)
{
    struct attempt *a = calloc(1, sizeof *a);
    struct reunion *reunion = calloc(1, sizeof *reunion);
    cr_assert(a && reunion);
    a->reunion = reunion;
    reunion->identity = identity;
    reunion->count = COUNT;
    reunion->base = reunion->promise = view_of(0, 0xf);
    return a;
}

static void comes(struct attempt *a, int identity, struct view base, struct view promise)
{
    a->comers[identity].fate = COME;
    a->comers[identity].claim =
        (struct claim){.base = base, .promise = promise, .epoch = promise.epoch};
}

static void end(struct attempt *a)
{
    free(a->reunion);
    free(a);
}

/* The members of the next world, as bits; 0: none may follow. */
static unsigned decided(const struct attempt *a)
{
    struct view next;
    struct members set = shrink_eligible(a);
    if (!members_have(&set, a->reunion->identity) || !shrink_decide(a, &set, &next))
        return 0;
    return (unsigned)next.members.words[0];
}

Test(shrink_vote, those_who_have_ended_do_not_count)
{
    struct attempt *a = leader(3);
    a->comers[0].fate = a->comers[1].fate = a->comers[2].fate = ENDED;
    cr_expect_eq(decided(a), 0x8);
    members_add(&a->reunion->silent, 1); /* it may have continued in between */
    cr_expect_eq(decided(a), 0);
    end(a);
}

Test(shrink_vote, half_needs_the_lowest)
{
    for (int lead = 0; lead < 2; lead++) {
        struct attempt *a = leader(lead);
        comes(a, 2, view_of(0, 0xf), view_of(0, 0xf));
        a->comers[3].fate = SILENT;
        a->comers[1 - lead].fate = SILENT;
        cr_expect_eq(decided(a), lead == 0 ? 0x5 : 0);
        end(a);
    }
}

/* 0 was cut off while {1, 2, 3} formed a world; 3 has ended. The world that 0 knows counts no more.
 */
Test(shrink_vote, who_has_missed_a_world_is_out)
{
    struct attempt *a = leader(0);
    comes(a, 1, view_of(1, 0xe), view_of(1, 0xe));
    comes(a, 2, view_of(1, 0xe), view_of(1, 0xe));
    a->comers[3].fate = ENDED;
    cr_expect_eq(decided(a), 0);
    end(a);
    a = leader(1);
    a->reunion->base = a->reunion->promise = view_of(1, 0xe);
    comes(a, 2, view_of(1, 0xe), view_of(1, 0xe));
    a->comers[3].fate = ENDED;
    cr_expect_eq(decided(a), 0x6);
    end(a);
}

/* 2 and 3 have promised {0, 2, 3}, and 0 is stopped: it may yet send GO. 1 cannot lead them,
 * because it is not in that world. 2 could only lead a half without the lowest, which is too few.
 */
Test(shrink_vote, a_promise_narrows_the_next_world)
{
    struct attempt *a = leader(1);
    comes(a, 2, view_of(0, 0xf), view_of(1, 0xd));
    comes(a, 3, view_of(0, 0xf), view_of(1, 0xd));
    a->comers[0].fate = SILENT;
    cr_expect_eq(decided(a), 0);
    end(a);
    a = leader(2);
    a->reunion->promise = view_of(1, 0xd);
    comes(a, 3, view_of(0, 0xf), view_of(1, 0xd));
    a->comers[0].fate = a->comers[1].fate = SILENT;
    cr_expect_eq(decided(a), 0);
    a->comers[0].fate = ENDED; /* it has sent no GO */
    a->comers[1].fate = ENDED;
    cr_expect_eq(decided(a), 0xc);
    end(a);
}

/* 2 and 3 were stopped while {0, 1} let in 4 and ended. They may continue, so 4 may not. */
Test(shrink_vote, newcomers_need_a_founder)
{
    struct attempt *a = leader(4);
    a->reunion->count = 5;
    a->reunion->base = a->reunion->promise = view_of(1, 0x13);
    a->reunion->base.missing = set_of(0xc);
    a->comers[0].fate = a->comers[1].fate = ENDED;
    cr_expect_eq(decided(a), 0);
    a->reunion->base.founders = set_of(0x13); /* as if 2 and 3 had ended */
    cr_expect_eq(decided(a), 0x10);
    end(a);
}

/* 0 has let in 3. 1 and 2 have promised that, and got no GO. {0, 3} may follow that world, as its
 * half with the lowest. {1, 2} may not, although they are most of the last world they know. */
Test(shrink_vote, a_promise_with_newcomers_counts)
{
    struct attempt *a = leader(1);
    a->reunion->base = view_of(0, 0x7);
    a->reunion->promise = view_of(1, 0xf);
    comes(a, 2, view_of(0, 0x7), view_of(1, 0xf));
    a->comers[0].fate = a->comers[3].fate = SILENT;
    cr_expect_eq(decided(a), 0);
    a->comers[3].fate = ENDED; /* a newcomer without GO */
    cr_expect_eq(decided(a), 0);
    a->reunion->promise = view_of(0, 0x7);
    a->comers[2].claim.promise = view_of(0, 0x7);
    cr_expect_eq(decided(a), 0x6);
    end(a);
}

/* Ranks 0 to 4 have promised 5, and 0 and 5 have entered that world. Rank 1 decides on {1, 2, 3,
 * 4}, without GO, and 4 does not hear of it. Ranks {0, 4, 5} may follow their world, because they
 * are half of it, with the lowest. Ranks {1, 2, 3} may not. They are most of the last world they
 * know, and most of their last promise, but only half of the earlier one. */
Test(shrink_vote, earlier_promises_with_newcomers_count)
{
    struct view first = view_of(0, 0x1f), entered = view_of(1, 0x3f), promise = view_of(2, 0x1e);
    promise.voters = set_of(0x3f);
    struct attempt *a = leader(0);
    a->reunion->count = 6;
    a->reunion->base = a->reunion->promise = entered;
    comes(a, 4, first, entered);
    comes(a, 5, entered, entered);
    cr_expect_eq(decided(a), 0x31);
    end(a);
    for (int known = 5; known < 7; known++) { /* also if 1 has not heard of 5 yet */
        a = leader(1);
        a->reunion->count = known;
        a->reunion->base = first;
        a->reunion->promise = promise;
        comes(a, 2, first, promise);
        comes(a, 3, first, promise);
        cr_expect_eq(decided(a), 0);
        comes(a, 4, first, entered);
        cr_expect_eq(decided(a), 0x1e);
        end(a);
    }
}

Test(shrink_vote, who_has_not_ended_is_missing)
{
    struct attempt *a = leader(0);
    struct members set = shrink_eligible(a);
    struct view next;
    a->reunion->base.missing = set_of(0x80);
    a->reunion->count = 8;
    a->comers[1].fate = SILENT;
    a->comers[2].fate = ENDED;
    comes(a, 3, view_of(0, 0xf), view_of(0, 0xf));
    cr_expect(shrink_decide(a, &set, &next));
    cr_expect_eq(next.members.words[0], 0x9);
    cr_expect_eq(next.missing.words[0], 0x82);
    end(a);
}

/* 0 and 4 have entered {0, 1, 2, 3, 4}; 1, 2 and 3 have only promised it. 0 has ended. 4 may
 * continue alone once 1, 2 and 3 have ended, so it is missing from {1, 2, 3}. Then 5, which they
 * let in, may not continue alone. */
Test(shrink_vote, a_promised_newcomer_is_missing)
{
    struct view promise = view_of(1, 0x1f);
    struct attempt *a = leader(1);
    struct members set;
    struct view next;
    a->reunion->count = 5;
    a->reunion->promise = promise;
    comes(a, 2, view_of(0, 0xf), promise);
    comes(a, 3, view_of(0, 0xf), promise);
    a->comers[0].fate = ENDED;
    a->comers[4].fate = SILENT;
    set = shrink_eligible(a);
    cr_expect(shrink_decide(a, &set, &next));
    cr_expect_eq(next.members.words[0], 0xe);
    cr_expect_eq(next.missing.words[0], 0x10);
    a->comers[4].fate = ENDED;
    cr_expect(shrink_decide(a, &set, &next));
    cr_expect(members_are_none(&next.missing));
    end(a);
}

/* 1 has promised {0, 1} without 3 and 4. They may have entered a world with 0, which 1 has only
 * promised before: they stay missing, although 1 was in no world in which they are. */
Test(shrink_vote, the_missing_of_a_promise_stay_missing)
{
    struct attempt *a = leader(1);
    struct members set;
    struct view next;
    a->reunion->count = 5;
    a->reunion->promise = view_of(3, 0x3);
    a->reunion->promise.missing = set_of(0x18);
    a->comers[0].fate = a->comers[2].fate = a->comers[3].fate = ENDED;
    set = shrink_eligible(a);
    cr_expect(shrink_decide(a, &set, &next));
    cr_expect_eq(next.members.words[0], 0x2);
    cr_expect_eq(next.missing.words[0], 0x10);
    end(a);
}

Test(shrink_vote, epochs_rise)
{
    struct attempt *a = leader(0);
    struct members set;
    struct view next;
    comes(a, 1, view_of(0, 0xf), view_of(7, 0xf));
    comes(a, 2, view_of(0, 0xf), view_of(0, 0xf));
    set = shrink_eligible(a);
    cr_expect(shrink_decide(a, &set, &next));
    cr_expect_eq(next.epoch, 8);
    end(a);
}

/* The first identity of a claim's newcomers comes from the network, and is used as an index. */
Test(shrink_input, a_claim_with_an_impossible_identity_teaches_nothing)
{
    static const int32_t wrong[] = {-1, INT32_MIN, SHRINK_RANKS_MOST, INT32_MAX, INT32_MAX - 1};
    struct claim claim = {.promise.voters = {.words = {1}}};
    address_set_port(&claim.promised[0], 1);
    struct reunion *reunion = reunion_new();
    cr_assert(reunion);
    reunion->count = COUNT;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        claim.first = wrong[i];
        shrink_learn(reunion, &claim);
        cr_assert_eq(reunion->count, COUNT);
    }
    reunion_close(&reunion);
}

/* A rank that was cut off has promised another newcomer of an identity that is taken by now.
 * Another rank knows an identity, but not its address. */
Test(shrink_input, a_claim_teaches_new_addresses_only)
{
    struct claim claim = {.first = COUNT - 1, .promise.voters = {.words = {0x38}}};
    struct reunion *reunion = reunion_new();
    cr_assert(reunion);
    reunion->count = COUNT;
    for (int i = 0; i < 3; i++)
        claim.promised[i] = reunion->at[i] = address_loopback();
    address_set_port(&reunion->at[COUNT - 1], 7);
    address_set_port(&claim.promised[0], 8);
    address_set_port(&claim.promised[1], 9);
    shrink_learn(reunion, &claim);
    cr_expect_eq(address_port(&reunion->at[COUNT - 1]), 7);
    cr_expect_eq(address_port(&reunion->at[COUNT]), 9);
    cr_expect_eq(reunion->count, COUNT + 1);
    reunion_close(&reunion);
}

/* -------- a rank that was silent ----------------------------------------------------------------
 */

/* Makes the rank one that took no part for these seconds. */
static void rest(struct reunion *m, int64_t seconds)
{
    m->acted_ns -= seconds * NS_PER_S;
}

/* Only operations that begin after the gap show that all ranks were there after it. */
Test(shrink_gap, two_more_operations_of_all_ranks_end_it)
{
    struct reunion *m = reunion_new();
    const struct world world = {.reunion = m};
    cr_assert(m);
    cr_expect(!shrink_was_away(m, 60000));
    rest(m, 59);
    world_acts(&world);
    rest(m, 59);
    world_acts(&world);
    cr_expect(!shrink_was_away(m, 60000));
    cr_expect(shrink_was_away(m, 58000));
    rest(m, 100);
    world_has_met(&world);
    rest(m, 50);
    world_acts(&world);
    for (int i = 0; i < 2; i++) {
        cr_expect(shrink_was_away(m, 60000));
        world_has_met(&world);
    }
    cr_expect(!shrink_was_away(m, 60000));
    cr_expect(shrink_was_away(m, 49000));
    reunion_close(&m);
}

/* A step that the training reports twice is one operation. */
Test(shrink_gap, the_same_step_does_not_end_it)
{
    const struct world_options options = {.job = ""};
    struct reunion *m = reunion_new();
    struct world world = {.reunion = m};
    union address here = address_loopback();
    cr_assert(m);
    m->door = door_open(&here, false, &options);
    cr_assert(m->door);
    rest(m, 100);
    for (int i = 0; i < 5; i++)
        world_newcomers(&world, 1, 0);
    cr_expect(shrink_was_away(m, 60000));
    world_newcomers(&world, 2, 0);
    world_newcomers(&world, 3, 0);
    cr_expect(!shrink_was_away(m, 60000));
    reunion_close(&m);
}

/* -------- a decision without GO ----------------------------------------------------------------
 */

/* A rank of the first world. */
static struct reunion *rank_of(int identity, int count)
{
    struct reunion *m = reunion_new();
    cr_assert(m);
    m->job = 77;
    m->identity = identity;
    m->count = count;
    m->base = m->promise = view_of(0, (1u << count) - 1);
    return m;
}

/* Rank 1 gets a decision of this epoch on {0, 1, 3}, where 3 is new, and then this answer. */
static enum outcome gets(struct reunion *m, uint32_t epoch, enum shrink_type answer)
{
    struct decision decision = {.word = {.head.type = SHRINK_DECISION,
                                         .view = view_of(epoch, 0xb),
                                         .identity = 1,
                                         .count = 4,
                                         .guests = 3}};
    struct control_input input = {.job = m->job};
    int pair[2];
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    cr_assert_eq(shrink_say(m, pair[0], answer), 0);
    struct attempt *a = shrink_attempt_new(m, false, 1000);
    cr_assert(a);
    enum outcome outcome = shrink_obey(a, pair[1], &input, &decision);
    free(a);
    stream_close(&pair[0]);
    stream_close(&pair[1]);
    return outcome;
}

Test(shrink_take_back, a_comer_is_free_after_again_only)
{
    struct reunion *m = rank_of(1, 3);
    cr_expect_eq(gets(m, 2, SHRINK_AGAIN), AGAIN);
    cr_expect_eq(m->promise.epoch, 0);
    cr_expect_eq(m->promise.members.words[0], 0x7);
    cr_expect_eq(m->count, 4); /* no identity is given twice */
    cr_expect_eq(gets(m, 2, SHRINK_GO), AGAIN, "no epoch is used twice");
    cr_expect_eq(gets(m, 3, SHRINK_HOLD), AGAIN);
    cr_expect_eq(m->promise.epoch, 3);
    cr_expect_eq(gets(m, 4, SHRINK_AGAIN), AGAIN);
    cr_expect_eq(m->promise.epoch, 3);
    cr_expect_eq(gets(m, 5, SHRINK_GO), AGREED);
    cr_expect_eq(m->base.epoch, 5);
    reunion_close(&m);
}

struct member {
    struct world failed, *next;
    enum status status;
};

static void *shrink_in_thread(void *context)
{
    struct member *member = context;
    member->status = world_shrink(&member->next, &member->failed, STATUS_TRANSPORT, 20000);
    return NULL;
}

/* A newcomer knocks at the door. Returns its connection. */
static int knock(const struct world *world, uint64_t token, const union address *at)
{
    struct {
        struct control_head head;
        uint64_t after;
        struct invitation invitation;
    } message = {.head = {.type = SHRINK_KNOCK, .job = token},
                 .invitation = {.ticket = 5, .at = *at}};
    union address door;
    int socket;
    cr_assert(world_door(world, &door));
    cr_assert_eq(listener_join(&door, token, HELLO_NEWCOMER, 20000, &socket), 0);
    cr_assert_eq(control_send(socket, &message, sizeof message, NULL, 0, 20000), 0);
    return socket;
}

/* Two ranks shrink. A newcomer was stopped after its knock: its socket listens, and it answers
 * nothing. Returns how often the ranks have connected to it. */
static int meet_silent_newcomer(void)
{
    const struct world_options options = {.job = "", .token = 7};
    struct member members[2] = {{.next = NULL}};
    struct reunion *reunions[2];
    pthread_t threads[2];
    union address here = address_loopback(), at = here;
    int newcomer, socket, connections = 0;
    cr_assert_eq(stream_listen(&at, &newcomer), 0);
    cr_assert_eq(address_of_socket(newcomer, &at), 0);
    for (int i = 0; i < 2; i++) {
        reunions[i] = members[i].failed.reunion = rank_of(i, 2);
        cr_assert_eq(listener_open(&reunions[i]->listener, &here, SHRINK_RANKS_MOST), 0);
    }
    for (int i = 0; i < 4; i++)
        reunions[i / 2]->at[i % 2] = reunions[i % 2]->listener.address;
    reunions[0]->door = door_open(&here, false, &options);
    int knocker = knock(&members[0].failed, options.token, &at);
    while (world_newcomers(&members[0].failed, 1, 0) == UINT64_MAX)
        clock_sleep_until_ns(clock_now_ns() + NS_PER_MS);
    stream_close(&knocker);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, shrink_in_thread, &members[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    while (stream_accept(newcomer, &socket) == 0) {
        connections++;
        stream_close(&socket);
    }
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(members[i].status, STATUS_OK);
        cr_expect_eq(members[i].next->size, 2);
        cr_expect_eq(reunions[i]->base.members.words[0], 0x3);
        cr_expect_eq(reunions[i]->count, 3); /* it has had an identity */
        world_close(&members[i].next);
    }
    stream_close(&newcomer);
    return connections;
}

/* The door and the leader connect to it. No rank waits for it after that, or more would follow. On
 * a busy machine a rank may hear too late that the decision is taken back. */
Test(shrink_take_back, no_rank_waits_for_a_silent_newcomer, .timeout = 120)
{
    int connections = 0;
    for (int trial = 0; trial < 3 && connections != 2; trial++)
        connections = meet_silent_newcomer();
    cr_expect_eq(connections, 2);
}

/* Rank 0 has ended, and rank 1 leads. Its wait for the silent newcomer does not count as
 * an absence. */
Test(shrink_take_back, a_leader_that_waited_may_continue_alone, .timeout = 120)
{
    const struct world_options options = {.job = "", .token = 7};
    struct member member = {.next = NULL};
    struct reunion *m = member.failed.reunion = rank_of(1, 2);
    union address here = address_loopback(), at = here, gone = here;
    int newcomer, rank0;
    cr_assert_eq(stream_listen(&at, &newcomer), 0);
    cr_assert_eq(address_of_socket(newcomer, &at), 0);
    cr_assert_eq(stream_listen(&gone, &rank0), 0);
    cr_assert_eq(address_of_socket(rank0, &m->at[0]), 0);
    stream_close(&rank0);
    cr_assert_eq(listener_open(&m->listener, &here, SHRINK_RANKS_MOST), 0);
    m->at[1] = m->listener.address;
    m->door = door_open(&here, false, &options);
    int knocker = knock(&member.failed, options.token, &at);
    while (world_newcomers(&member.failed, 1, 0) == UINT64_MAX)
        clock_sleep_until_ns(clock_now_ns() + NS_PER_MS);
    stream_close(&knocker);
    shrink_in_thread(&member);
    cr_assert_eq(member.status, STATUS_OK);
    cr_expect_eq(m->base.members.words[0], 0x2);
    cr_expect_eq(m->count, 3);
    world_close(&member.next);
    stream_close(&newcomer);
}

/* -------- a door ------------------------------------------------------------------------------ */

static int answers(const int *sockets, int count)
{
    int found = 0;
    for (int i = 0; i < count; i++) {
        char byte;
        found += recv(sockets[i], &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0;
    }
    return found;
}

/* The newcomers' port takes no more connections for a while, as if their first packets were lost.
 * No look waits until they can be reached. They are admitted then. */
Test(shrink_door, no_look_waits_for_a_newcomer, .timeout = 120)
{
    enum { NEWCOMERS = 4, FILLERS = 3, LOOKS = 20 };
    const struct world_options options = {.job = "", .token = 7};
    struct reunion *m = rank_of(0, 1);
    struct world world = {.size = 1, .reunion = m};
    union address here = address_loopback(), at = here;
    int deaf, socket, knockers[NEWCOMERS], fillers[FILLERS];
    cr_assert_eq(stream_listen(&at, &deaf), 0);
    cr_assert_eq(address_of_socket(deaf, &at), 0);
    cr_assert_eq(listen(deaf, 0), 0);
    for (int i = 0; i < FILLERS; i++)
        (void)stream_connect(&at, 100, &fillers[i]);
    m->door = door_open(&here, false, &options);
    cr_assert(m->door);
    for (int i = 0; i < NEWCOMERS; i++)
        knockers[i] = knock(&world, options.token, &at);
    for (int i = 0; i < LOOKS; i++)
        cr_assert_eq(world_newcomers(&world, 1, 0), UINT64_MAX);
    cr_assert_eq(answers(knockers, NEWCOMERS), 0);
    while (answers(knockers, NEWCOMERS) < NEWCOMERS) {
        while (stream_accept(deaf, &socket) == 0)
            stream_close(&socket);
        world_newcomers(&world, 1, 0);
        clock_sleep_until_ns(clock_now_ns() + NS_PER_MS);
    }
    for (int i = 0; i < NEWCOMERS; i++) {
        struct control_head head;
        cr_assert_eq(stream_receive(knockers[i], &head, sizeof head, 20000), 0);
        cr_expect_eq(head.value, STATUS_OK);
        stream_close(&knockers[i]);
    }
    for (int i = 0; i < FILLERS; i++)
        stream_close(&fillers[i]);
    stream_close(&deaf);
    reunion_close(&m);
}
