/* The rank that rank 0 blames, given the ranks' states. The connections: test_failures.sh. */
#include "common/net/watchdog_impl.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"

enum { RANKS = 4 };
static const int64_t now_ns = 100 * NS_PER_S, timeout_ns = 5 * NS_PER_S;

/* All ranks live, compute step 17, and wait for no other rank. */
static void at_work(struct watchdog_rank ranks[RANKS])
{
    memset(ranks, 0, RANKS * sizeof *ranks);
    for (int rank = 0; rank < RANKS; rank++) {
        snprintf(ranks[rank].host, sizeof ranks[rank].host, "host%d", rank);
        ranks[rank].heard_ns = now_ns - NS_PER_S;
        for (int thread = 0; thread < ACTIVITY_THREADS; thread++)
            ranks[rank].beat.threads[thread].view =
                (struct activity_view){.kind = ACTIVITY_COMPUTE,
                                       .step = 17,
                                       .offset = ACTIVITY_NO_OFFSET,
                                       .first = ACTIVITY_NOBODY};
    }
}

static void waits(struct watchdog_rank *rank, enum activity_thread thread, int first, int last,
                  bool overdue)
{
    rank->beat.threads[thread].view.kind =
        thread == ACTIVITY_WORKER ? ACTIVITY_AVERAGE : ACTIVITY_COMPUTE;
    rank->beat.threads[thread].view.bucket = 2;
    rank->beat.threads[thread].view.first = first;
    rank->beat.threads[thread].view.last = last;
    rank->beat.threads[thread].still_ms = overdue ? 5000 : 100;
    rank->beat.threads[thread].overdue = overdue;
}

/* The line contains the words, but not those after a "!". */
static void expect(const struct watchdog_rank *ranks, enum watchdog_trouble trouble, int code,
                   const char *const *words)
{
    char text[700];
    cr_assert_eq(
        watchdog_find(&(struct watchdog_scene){ranks, RANKS, now_ns, timeout_ns, WATCHDOG_NONE}),
        trouble);
    int found = watchdog_blame(&(struct watchdog_scene){ranks, RANKS, now_ns, timeout_ns, trouble},
                               text, sizeof text);
    cr_assert_eq(found, code, "%d: %s", found, text);
    for (; *words; words++) {
        bool wanted = **words != '!';
        cr_assert((strstr(text, *words + !wanted) != NULL) == wanted, "'%s' in: %s", *words, text);
    }
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

Test(watchdog, all_at_work)
{
    struct watchdog_rank ranks[RANKS];
    at_work(ranks);
    waits(&ranks[1], ACTIVITY_WORKER, 0, 0, false);
    ranks[3].state = WATCHDOG_DONE;
    ranks[3].heard_ns = 0;
    cr_assert_eq(
        watchdog_find(&(struct watchdog_scene){ranks, RANKS, now_ns, timeout_ns, WATCHDOG_NONE}),
        WATCHDOG_NONE);
}

Test(watchdog, ended)
{
    struct watchdog_rank ranks[RANKS];
    at_work(ranks);
    waits(&ranks[3], ACTIVITY_WORKER, 2, 2, true);
    ranks[2].state = WATCHDOG_GONE;
    expect(ranks, WATCHDOG_ENDED, 1,
           WORDS("rank 2 on host2 has ended", "computing step 17", "!rank 3"));
}

Test(watchdog, silent)
{
    struct watchdog_rank ranks[RANKS];
    at_work(ranks);
    waits(&ranks[3], ACTIVITY_WORKER, 2, 2, true);
    ranks[3].beat.threads[ACTIVITY_WORKER].view.offset = 4096;
    waits(&ranks[0], ACTIVITY_WORKER, 3, 3, true);
    ranks[2].heard_ns = now_ns - 6 * NS_PER_S;
    expect(
        ranks, WATCHDOG_SILENT, 1,
        WORDS("rank 2 on host2 has not sent bucket 2 of step 17 (from byte 4096 on), nor given a "
              "sign of life for 6 s",
              "!rank 3", "!rank 0"));
    ranks[1].heard_ns = now_ns - 7 * NS_PER_S;
    expect(ranks, WATCHDOG_SILENT, 1, WORDS("rank 1 on host1 and rank 2 on host2 have not"));
}

/* Rank 0 waits for 3, 3 waits for 2, and 2 computes. */
Test(watchdog, follows_the_waits)
{
    struct watchdog_rank ranks[RANKS];
    at_work(ranks);
    waits(&ranks[0], ACTIVITY_WORKER, 3, 3, true);
    waits(&ranks[3], ACTIVITY_WORKER, 2, 2, false);
    ranks[2].beat.threads[ACTIVITY_MAIN].still_ms = 7000;
    expect(ranks, WATCHDOG_OVERDUE, 1,
           WORDS("rank 2 on host2 has not sent bucket 2 of step 17",
                 "rank 2 has been computing step 17 for 7 s", "--timeout", "!rank 1"));
}

/* Ranks 0 to 2 are workers of a server. Rank 1 has not pushed. */
Test(watchdog, a_server_names_its_workers)
{
    struct watchdog_rank ranks[RANKS];
    at_work(ranks);
    ranks[3].beat.threads[ACTIVITY_MAIN].view.kind = ACTIVITY_SERVE;
    waits(&ranks[3], ACTIVITY_SERVER, 0, 2, true);
    waits(&ranks[0], ACTIVITY_WORKER, 3, 3, true);
    waits(&ranks[2], ACTIVITY_WORKER, 3, 3, true);
    expect(ranks, WATCHDOG_OVERDUE, 1,
           WORDS("rank 1 on host1 has not sent what a server waits for", "!rank 0 on", "!rank 2"));
}

Test(watchdog, a_colocated_server_waits_for_its_own_worker)
{
    struct watchdog_rank ranks[RANKS];
    at_work(ranks);
    for (int rank = 0; rank < RANKS; rank++) {
        waits(&ranks[rank], ACTIVITY_SERVER, 0, 3, true);
        if (rank != 1)
            waits(&ranks[rank], ACTIVITY_WORKER, 0, 3, true);
    }
    expect(ranks, WATCHDOG_OVERDUE, 1, WORDS("rank 1 on host1 has not sent", "!rank 2 on"));
}

Test(watchdog, one_does_not_come_to_a_collective)
{
    struct watchdog_rank ranks[RANKS];
    at_work(ranks);
    for (int rank = 0; rank < RANKS; rank++) {
        if (rank != 3)
            waits(&ranks[rank], ACTIVITY_MAIN, 0, 3, rank == 1);
    }
    ranks[3].beat.threads[ACTIVITY_MAIN].view.kind = ACTIVITY_CHECKPOINT;
    expect(ranks, WATCHDOG_OVERDUE, 1,
           WORDS("rank 3 on host3 has not joined the others",
                 "rank 3 has been writing a checkpoint after step 17", "a larger --timeout"));
    ranks[1].beat.starting = true;
    ranks[0].beat.starting = true;
    expect(ranks, WATCHDOG_OVERDUE, 1, WORDS("a larger --startup-timeout", "!a larger --timeout"));
}

Test(watchdog, in_a_circle)
{
    struct watchdog_rank ranks[RANKS];
    at_work(ranks);
    for (int rank = 0; rank < RANKS; rank++)
        waits(&ranks[rank], ACTIVITY_WORKER, (rank + 1) % RANKS, (rank + 1) % RANKS, rank < 2);
    expect(ranks, WATCHDOG_OVERDUE, 1,
           WORDS("the ranks wait for each other",
                 "rank 0 on host0, averaging bucket 2 of step 17, for rank 1 for 5 s",
                 "rank 1 on host1", "--subnet", "!rank 2 on"));
}

Test(watchdog, errors)
{
    struct watchdog_rank ranks[RANKS];
    at_work(ranks);
    ranks[2].state = WATCHDOG_FAILED;
    ranks[2].exit_code = 2;
    ranks[2].told = true;
    expect(ranks, WATCHDOG_ERROR, 2, WORDS("rank 2 on host2 has ended with an error, see"));
    ranks[2].exit_code = 256; /* the system would make 0 of it */
    expect(ranks, WATCHDOG_ERROR, 1, WORDS("rank 2 on host2 has ended with an error, see"));
    ranks[2].exit_code = 2;
    /* Rank 0 has reported its own error: the watchdog must not print a line after it. */
    ranks[0] = ranks[2];
    char text[100];
    cr_assert_eq(
        watchdog_blame(&(struct watchdog_scene){ranks, RANKS, now_ns, timeout_ns, WATCHDOG_ERROR},
                       text, 100),
        2);
    cr_assert_str_eq(text, "");
    /* If a rank's process is gone, it may be the cause of the other ranks' errors. */
    ranks[3].state = WATCHDOG_GONE;
    expect(ranks, WATCHDOG_ENDED, 1, WORDS("rank 3 on host3 has ended", "!rank 2"));
}

/* Ranks 0 to 2 are workers at different steps: 2 computes ahead, and 1 is behind. */
Test(watchdog, of_several_the_last_one_keeps_the_others_waiting)
{
    struct watchdog_rank ranks[RANKS];
    at_work(ranks);
    ranks[3].beat.threads[ACTIVITY_MAIN].view.kind = ACTIVITY_SERVE;
    waits(&ranks[3], ACTIVITY_SERVER, 0, 2, true);
    waits(&ranks[0], ACTIVITY_WORKER, 3, 3, true);
    ranks[0].beat.threads[ACTIVITY_WORKER].view.step = 19;
    ranks[2].beat.threads[ACTIVITY_MAIN].view.step = 18;
    ranks[1].beat.threads[ACTIVITY_MAIN].view.step = 16;
    expect(ranks, WATCHDOG_OVERDUE, 1,
           WORDS("rank 1 on host1 has not sent what a server waits for (bucket 2 of step 19)",
                 "rank 1 has been computing step 16", "!rank 2"));
}

/* The line for a state that no psring sends. */
Test(watchdog, a_line_is_bounded)
{
    struct watchdog_rank ranks[RANKS];
    at_work(ranks);
    for (int rank = 0; rank < RANKS; rank++) {
        memset(ranks[rank].host, 'h', sizeof ranks[rank].host - 1);
        waits(&ranks[rank], ACTIVITY_WORKER, -5, 1000, true);
        ranks[rank].beat.threads[ACTIVITY_WORKER].view.kind = 77;
    }
    char text[100];
    watchdog_blame(&(struct watchdog_scene){ranks, RANKS, now_ns, timeout_ns, WATCHDOG_OVERDUE},
                   text, sizeof text);
    cr_assert(strlen(text) == sizeof text - 1);
}

/* -------- stalls ------------------------------------------------------------------------------ */

/* Sets a rank at step 17 for `seconds`, with a beat just received. */
static void still(struct watchdog_rank *rank, int seconds, int64_t at_ns)
{
    rank->heard_ns = at_ns;
    for (int thread = 0; thread < ACTIVITY_THREADS; thread++)
        rank->beat.threads[thread].still_ms = (uint32_t)(seconds * 1000);
}

/* The warning `seconds` after all ranks were at work, or "". */
static const char *look(struct stall_watch *watch, struct watchdog_rank ranks[RANKS], int seconds,
                        char text[700])
{
    int64_t at_ns = now_ns + seconds * NS_PER_S;
    for (int rank = 0; rank < RANKS; rank++)
        still(&ranks[rank], seconds, at_ns);
    return stall_watch_look(watch, ranks, at_ns, text, 700) ? text : "";
}

static struct stall_watch watch_for(int limit_s)
{
    struct stall_watch watch = {
        .limit_ns = limit_s * NS_PER_S, .tick_ns = NS_PER_S, .timeout_ns = 30 * NS_PER_S};
    cr_assert_eq(stall_watch_init(&watch, RANKS), STATUS_OK);
    return watch;
}

/* 0 waits for 3, 3 for 2, and 2 computes: one warning, and one line when rank 2 continues. */
Test(watchdog, a_stall_is_told_once)
{
    struct watchdog_rank ranks[RANKS];
    struct stall_watch watch = watch_for(10);
    char text[700];
    int told = 0;
    at_work(ranks);
    waits(&ranks[0], ACTIVITY_WORKER, 3, 3, false);
    waits(&ranks[3], ACTIVITY_WORKER, 2, 2, false);
    for (int s = 0; s < 25; s++) {
        if (!*look(&watch, ranks, s, text))
            continue;
        told++;
        cr_expect(s >= 10 && s <= 11, "after %d s", s);
        cr_expect(strstr(text, "rank 2 on host2 has not sent bucket 2 of step 17 for "), "%s",
                  text);
        cr_expect(strstr(text, "rank 2 has been computing step 17 for "), "%s", text);
        cr_expect(strstr(text, "--timeout ends the run after 30 s"), "%s", text);
    }
    cr_expect_eq(told, 1, "%d times", told);
    at_work(ranks);
    cr_expect_str_eq(look(&watch, ranks, 25, text), "rank 2 on host2 continued after 25 s");
    cr_expect_str_eq(look(&watch, ranks, 26, text), "");
    stall_watch_fini(&watch);
}

/* With --sync ssp or async a worker may be late. During the start all ranks may be. */
Test(watchdog, who_keeps_nobody_waiting_does_not_stall)
{
    struct watchdog_rank ranks[RANKS];
    struct stall_watch watch = watch_for(10);
    char text[700];
    at_work(ranks);
    for (int s = 0; s < 25; s++)
        cr_expect_str_eq(look(&watch, ranks, s, text), "", "%s", text);
    waits(&ranks[0], ACTIVITY_WORKER, 3, 3, false);
    ranks[0].beat.starting = true;
    for (int s = 25; s < 50; s++)
        cr_expect_str_eq(look(&watch, ranks, s, text), "", "%s", text);
    stall_watch_fini(&watch);
}

Test(watchdog, a_silent_rank_stalls)
{
    struct watchdog_rank ranks[RANKS];
    struct stall_watch watch = watch_for(10);
    char text[700];
    int told = 0;
    at_work(ranks);
    waits(&ranks[3], ACTIVITY_WORKER, 2, 2, false);
    waits(&ranks[2], ACTIVITY_WORKER, 1, 1, false); /* its last beat; the message came since */
    for (int s = 0; s < 25; s++) {
        int64_t at_ns = now_ns + s * NS_PER_S;
        for (int rank = 0; rank < RANKS; rank++) {
            if (rank != 2)
                still(&ranks[rank], s, at_ns);
        }
        if (!stall_watch_look(&watch, ranks, at_ns, text, sizeof text))
            continue;
        told++;
        cr_expect(strstr(text, "rank 2 on host2 has not sent bucket 2 of step 17, nor given a "),
                  "%s", text);
        cr_expect(strstr(text, "last seen computing step 17"), "%s", text);
    }
    cr_expect_eq(told, 1, "%d times", told);
    ranks[2].heard_ns = now_ns + 25 * NS_PER_S;
    cr_expect(stall_watch_look(&watch, ranks, now_ns + 25 * NS_PER_S, text, sizeof text) == false,
              "3 still waits: %s", text);
    at_work(ranks);
    cr_expect(strstr(look(&watch, ranks, 26, text), "rank 2 on host2 continued after "), "%s",
              text);
    stall_watch_fini(&watch);
}

/* Rank 2 stops at step 17 and reports nothing more. The others reach step 30 and wait there. */
Test(watchdog, a_silent_rank_has_come_further_than_it_told)
{
    struct watchdog_rank ranks[RANKS];
    struct stall_watch watch = watch_for(10);
    char text[700] = "";
    int s = 0;
    at_work(ranks);
    waits(&ranks[3], ACTIVITY_WORKER, 2, 2, false);
    ranks[3].beat.threads[ACTIVITY_WORKER].view.step = 30;
    for (; s < 25; s++) {
        int64_t at_ns = now_ns + s * NS_PER_S;
        for (int rank = 0; rank < RANKS; rank++) {
            if (rank != 2)
                still(&ranks[rank], s > 0 ? s - 1 : 0, at_ns);
        }
        if (stall_watch_look(&watch, ranks, at_ns, text, sizeof text))
            break;
    }
    cr_expect(s >= 10 && s <= 11, "after %d s", s);
    cr_expect(strstr(text, "rank 2 on host2 has not sent bucket 2 of step 30, nor given a "), "%s",
              text);
    cr_expect(
        strstr(text, "last seen computing step 17, but a rank reports this about once a second"),
        "%s", text);
    stall_watch_fini(&watch);
}

/* Beats come once a second. Between two beats each rank is silent, one after the other. */
Test(watchdog, a_limit_shorter_than_the_beats_warns_of_nobody_at_work)
{
    struct watchdog_rank ranks[RANKS];
    struct stall_watch watch = watch_for(1);
    char text[700] = "";
    at_work(ranks);
    waits(&ranks[0], ACTIVITY_WORKER, 3, 3, false);
    for (int look_no = 0; look_no < 100; look_no++) {
        int64_t at_ns = now_ns + look_no * NS_PER_S;
        for (int rank = 0; rank < RANKS; rank++) /* the last beat of each was up to 1.9 s ago */
            still(&ranks[rank], 1, at_ns - (rank + look_no) % RANKS * (19 * NS_PER_S / 10) / RANKS);
        cr_expect(!stall_watch_look(&watch, ranks, at_ns, text, sizeof text), "%s", text);
    }
    for (int s = 100; s < 104 && !*text; s++)
        strcpy(text, look(&watch, ranks, s, (char[700]){""}));
    cr_expect(strstr(text, "rank 3 on host3 has not sent"), "%s", text);
    stall_watch_fini(&watch);
}

/* Different ranks are late alternately, and none is late for long. */
Test(watchdog, who_takes_turns_does_not_stall)
{
    struct watchdog_rank ranks[RANKS];
    struct stall_watch watch = watch_for(4);
    char text[700] = "";
    for (int s = 0; s < 40; s++) {
        int64_t at_ns = now_ns + s * NS_PER_S;
        at_work(ranks);
        waits(&ranks[0], ACTIVITY_WORKER, 2 + s % 2, 2 + s % 2, false);
        for (int rank = 0; rank < RANKS; rank++)
            still(&ranks[rank], 5, at_ns);
        cr_expect(!stall_watch_look(&watch, ranks, at_ns, text, sizeof text), "%s", text);
    }
    stall_watch_fini(&watch);
}

Test(watchdog, no_stalls_wanted)
{
    struct watchdog_rank ranks[RANKS];
    struct stall_watch watch = watch_for(0);
    char text[700];
    at_work(ranks);
    waits(&ranks[0], ACTIVITY_WORKER, 3, 3, false);
    cr_expect_str_eq(look(&watch, ranks, 100, text), "");
    stall_watch_fini(&watch);
}
