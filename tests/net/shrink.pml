/*
 * Shrink, a model for Spin (tests/check/spin.sh): after a failed collective the survivors agree on
 * the members of a smaller world, without a coordinator.
 *
 * Each rank has an identity and keeps a listening socket for life. A survivor tries the members of
 * its world as candidates, in ascending order. A refused connection means that the candidate is
 * dead. The survivor sends a hello and waits for the answer. When its turn comes, it leads itself:
 * it collects hellos until all members have come or are known dead, or until a time-out. Then it
 * decides. The members send READY, and the leader sends GO when all have done so.
 *
 * A hello has the newest epoch that the rank knows, its world (epoch and members of the last GO),
 * and its promise: the members of the last decision for which it sent READY, or which it made. The
 * newest world among the hellos is the *base*. The new members are the comers that are in the base
 * and in the promise of each comer of the base. So a rank joins only subsets of its promise. The
 * decision is valid in one of these cases:
 *
 *     each rank of the base is a member or known dead
 *     the members are more than half of the base
 *     they are half of it, with its lowest identity, dead or alive
 *
 * With NEWCOMER the last identity is in no world at first. A leader that decides may add it, once.
 * Without GO it gives up, and counts as dead. A promise may then be larger than the base, and a rank
 * may have entered it. The members must be valid among its *voters*, too: its members, and the voters
 * of the leader that decided on it. (test_shrink.c has the case of six ranks that shows why its members
 * are not enough.) A rank that was stopped may find all ranks of its world dead, although they have
 * added the newcomer, and it lives. Therefore each world has a *founder*. Founders are the first
 * ranks, and all members once every former one is known dead.
 *
 * A leader that does not get READY from all takes its decision back: it has sent no GO, and will send
 * none. It restores its earlier promise, and so do the members that hear of it. Its epoch is not used
 * again.
 *
 * With ENDS a world may end with its results. Its ranks then refuse connections like dead ones. A rank
 * that was stopped, or slow, may find them so although they have continued without it. It counts no rank
 * as known dead (`away`), until all ranks of its world have been in it after that. It never counts those
 * that were silent to it (`doubted`).
 *
 * Source: Lotem, Keidar, Dolev 1997, "Dynamic voting for consistent primary components".
 *
 * Faults of the model: a rank dies, and its host then refuses connections; a host vanishes and
 * answers nothing (SILENT); a rank is stopped for a while; a time-out is too early (a cut).
 *
 * run: -DN=3 -DDEATHS=1 -DSTOPS=2
 * run: -DN=3 -DDEATHS=1 -DSTOPS=1 -DCUTS=1 -DALL_CANDIDATES
 * run: -DN=4 -DDEATHS=1 -DSTOPS=1
 * run: -DN=4 -DDEATHS=3 -DCRASHES_ONLY
 * run: -DN=4 -DNEWCOMER -DDEATHS=1 -DSTOPS=1 -DMORTAL=1 -DSTOPPABLE=4
 * run: -DN=4 -DNEWCOMER -DSTOPS=2 -DSTOPPABLE=1
 * run: -DN=4 -DNEWCOMER -DDEATHS=2 -DCRASHES_ONLY
 * run: -DN=3 -DENDS -DSTOPS=2
 * run: -DN=3 -DENDS -DDEATHS=1 -DSTOPS=1
 * ends: -DN=3 -DDEATHS=1 -DSTOPS=1 -DCUTS=1
 * fault split_brain: -DN=3 -DSTOPS=1 -DFAULT_NO_QUORUM
 * fault two_worlds: -DN=3 -DDEATHS=1 -DSTOPS=1 -DFAULT_SUBTRACT_DEAD
 * fault split_brain: -DN=3 -DSTOPS=2 -DFAULT_NO_PROMISE
 * fault came_back: -DN=3 -DSTOPS=2 -DALL_CANDIDATES -DFAULT_REJOIN
 * fault two_worlds: -DN=3 -DSTOPS=1 -DFAULT_NO_BARRIER
 * fault deadlock: -DN=4 -DDEATHS=2 -DCRASHES_ONLY -DFAULT_NEXT_CANDIDATE
 * fault split_brain: -DN=4 -DNEWCOMER -DDEATHS=1 -DSTOPS=1 -DFAULT_NO_FOUNDER
 * fault split_brain: -DN=4 -DNEWCOMER -DSTOPS=2 -DSTOPPABLE=1 -DFAULT_BASE_ONLY
 * fault split_brain: -DN=3 -DDEATHS=1 -DSTOPS=2 -DFAULT_TAKE_BACK
 * fault two_results: -DN=3 -DENDS -DSTOPS=1 -DFAULT_TRUST
 */

#ifndef DEATHS
#define DEATHS 0
#endif
#ifndef STOPS
#define STOPS 0
#endif
#ifndef CUTS
#define CUTS 0
#endif
#ifndef EPOCHS
#define EPOCHS 7 /* at most: a hello has three bits for each */
#endif
#define ALL ((1 << N) - 1)
#ifdef NEWCOMER
#define FOUNDERS (ALL >> 1)
#define LAST (N - 1)
#define NEW BIT(LAST)
#else
#define FOUNDERS ALL
#define NEW 0
#endif
#ifndef MORTAL /* ranks that may die, vanish, be stopped */
#define MORTAL ALL
#endif
#ifndef VANISHING
#ifdef CRASHES_ONLY
#define VANISHING 0
#else
#define VANISHING MORTAL
#endif
#endif
#ifndef STOPPABLE
#define STOPPABLE ALL
#endif
#define NONE N
#define me _pid /* ranks are the first processes */
#define BIT(i) (1 << (i))
#define HAS(set, i) (((set) >> (i)) & 1)
#define COUNT(set) (HAS(set, 0) + HAS(set, 1) + HAS(set, 2) + HAS(set, 3))
#define LOWEST(set) ((set) & (0 - (set)))

#if N > 3
#define ANY(of) (of(0) || of(1) || of(2) || of(3))
#else
#define ANY(of) (of(0) || of(1) || of(2))
#endif

/* Phases of a rank. Those from ENDED on are final. */
#define RUN 0    /* in its world */
#define SEEK 1   /* between two candidates */
#define ASK 2    /* has sent its hello; waits for the decision */
#define WAIT 3   /* has sent READY; waits for GO */
#define LEAD 4   /* collects hellos */
#define GATHER 5 /* has decided; waits for READY, then sends GO */
#define ENDED 6  /* with an error */
#define DEAD 7
#define SILENT 8

/* Answers on a rank's connection to its candidate. */
#define NOTHING 0
#define DECISION 1
#define GO 2
#define NO_QUORUM 3
#define EXCLUDED 4
#define AGAIN 5 /* the decision is taken back */

byte phase[N];
byte world[N] = FOUNDERS; /* members of its last world, and its epoch */
byte passed[N];
byte epoch[N];  /* the newest epoch that it knows */
byte promised[N] = FOUNDERS; /* members of the last decision that it sent READY for, or made */
byte earlier[N]; /* what it had promised before, while it waits for GO or READY */

#ifdef NEWCOMER
bool added; /* a leader has added the newcomer */
byte founders[N] = FOUNDERS; /* of its world */
byte missing[N];             /* former members of its world that are not known dead */
byte voters[N] = FOUNDERS;   /* of its promise */
byte promised_epoch[N];      /* that of its promise, which can be older than the newest epoch */
byte next_founders[N];       /* of its decision */
byte next_missing[N];
byte next_voters[N];
byte earlier_voters[N];      /* of what it had promised before */
byte earlier_epoch[N];
#endif

/* Each rank's connection to its candidate. */
byte to[N] = NONE; /* NONE: not connected */
byte answer[N];    /* sent, not read yet */
byte members[N];   /* the last decision that it received, or made */
byte decided[N];   /* its epoch */
bool closed[N];    /* the candidate has closed it */

/* Each rank as a candidate. */
int hello[N * N]; /* [candidate * N + rank]: unread hello, also if its sender has gone. 0: none */
byte came[N];     /* ranks with an unread hello */
byte ready[N];    /* ranks whose READY has arrived */

byte refusing;    /* ranks whose host refuses connections */
byte silent;      /* ranks whose host answers nothing */
byte stopped;

/* The properties: none of these is ever true. */
bool two_worlds;    /* two live ranks have passed one epoch with different members */
bool split_brain;   /* two live ranks are in worlds without a common member */
bool came_back;     /* a world has members or an epoch that do not follow from the last one */
bool gave_up;       /* a rank ends with an error although no rank was stopped or silent */
bool out_of_epochs; /* the model is too small: raise EPOCHS */

#ifdef ENDS
byte results; /* the ranks of the first world that has ended with its results */
byte away;    /* ranks that were stopped, and may have been left out since */
bool two_results; /* a property: a rank of another world ends with results, too */
byte doubted[N]; /* ranks that were silent to it since it entered its world */
#define KNOWN_DEAD (HAS(away, me) -> 0 : refusing & ~doubted[me])
#define DOUBT(set) doubted[me] = doubted[me] | (set)
#else
#define KNOWN_DEAD refusing
#define DOUBT(set) skip
#endif

byte deaths = DEATHS, stops = STOPS, cuts = CUTS;

#define HELLO(c, i) hello[(c) * N + (i)]
#define HELLO_WORLD(h) ((h) & ALL)
#define HELLO_PASSED(h) (((h) >> N) & 7)
#define HELLO_EPOCH(h) (((h) >> (N + 3)) & 7)
#define HELLO_PROMISED(h) (((h) >> (N + 6)) & 15)
#define HELLO_FOUNDERS(h) (((h) >> (N + 10)) & 15)
#define HELLO_MISSING(h) (((h) >> (N + 14)) & 15)
#define HELLO_VOTERS(h) (((h) >> (N + 18)) & 15)
#define HELLO_PROMISED_EPOCH(h) ((h) >> (N + 22))
#define CONNECTED(c, i) (to[i] == c && !closed[i] && HELLO(c, i) == 0)

/* Whether a wait for the ranks of the set may time out: a rank of it is stopped or silent, or the
 * time-out is too early, or no rank can do anything else. A leader's time-out comes before those of
 * the ranks that wait for a leader. */
#ifdef CRASHES_ONLY /* no wait needs its time-out, and no rank ends with an error */
#define LATE(set) false
#define LEADER_EXPIRES(set) false
#define EXPIRES(set) false
#define FAIL() gave_up = true
#else
#define LATE(set) (((set) & (stopped | silent)) != 0 || cuts > 0)
#define LEADER_EXPIRES(set) (LATE(set) || timeout)
#define EXPIRES(set) (LATE(set) || (timeout && !ANY(LEADS)))
#define FAIL() gave_up = false
#endif
#define SPEND_CUT(set) if :: ((set) & (stopped | silent)) == 0 && cuts > 0 -> cuts-- :: else fi

#ifdef FAULT_SUBTRACT_DEAD
#define SETTLED(s, m) (2 * COUNT((s) & (m)) > COUNT((s) & ~(refusing & ~(m))) || \
    (2 * COUNT((s) & (m)) == COUNT((s) & ~(refusing & ~(m))) && \
     (LOWEST((s) & ~(refusing & ~(m))) & (m)) != 0))
#else
#ifdef FAULT_NO_QUORUM
#define SETTLED(s, m) true
#else
#define SETTLED(s, m) (((s) & ~(m) & ~KNOWN_DEAD) == 0 || \
    2 * COUNT((s) & (m)) > COUNT(s) || \
    (2 * COUNT((s) & (m)) == COUNT(s) && (LOWEST(s) & (m)) != 0))
#endif
#endif

inline disconnect()
{
    to[me] = NONE;
    answer[me] = NOTHING;
    closed[me] = false;
    members[me] = 0;
    earlier[me] = 0;
#ifdef NEWCOMER
    next_founders[me] = 0;
    next_missing[me] = 0;
    next_voters[me] = 0;
    earlier_epoch[me] = 0;
    earlier_voters[me] = 0;
#endif
    decided[me] = 0
}

/* Nothing is averaged in a world with a dead rank, and without founders none can follow it. */
#ifdef NEWCOMER
#define ACTS(i) (i == me || phase[i] == RUN) && \
    ((world[i] & refusing) == 0 || (world[i] & founders[i] & ~refusing) != 0)
#else
#define ACTS(i) true
#endif

/* Rank `me` is in the world of its decision from now on. */
inline pass()
{
    d_step {
        came_back = (members[me] & ~(world[me] | NEW)) != 0 || decided[me] <= passed[me];
        assert(!came_back);
        world[me] = members[me];
        passed[me] = decided[me];
#ifdef NEWCOMER
        founders[me] = next_founders[me];
        missing[me] = next_missing[me];
        voters[me] = members[me];
#endif
        i = 0;
        do
        :: i < N ->
            if
            :: i != me && phase[i] < ENDED && ACTS(i) && ACTS(me) ->
                two_worlds = passed[i] == passed[me] && world[i] != world[me];
                assert(!two_worlds);
                split_brain = (world[i] & world[me]) == 0;
                assert(!split_brain)
            :: else
            fi;
            i++
        :: else -> break
        od;
        i = 0;
        ready[me] = 0;
#ifdef ENDS
        doubted[me] = 0;
#endif
        disconnect();
        phase[me] = RUN
    }
}

inline promise()
{
    out_of_epochs = decided[me] < 1 || decided[me] > EPOCHS;
    assert(!out_of_epochs);
    earlier[me] = promised[me];
    promised[me] = members[me];
#ifdef NEWCOMER
    earlier_epoch[me] = promised_epoch[me];
    promised_epoch[me] = decided[me];
    earlier_voters[me] = voters[me];
    voters[me] = next_voters[me];
#endif
    epoch[me] = decided[me]
}

/* No rank can have passed a decision without its leader's GO. The epoch is not used again. */
inline restore_promise()
{
    promised[me] = earlier[me];
#ifdef NEWCOMER
    promised_epoch[me] = earlier_epoch[me];
    voters[me] = earlier_voters[me]
#endif
}

/* The leader has sent no GO and will send none. The members may not hear of it. */
inline take_back()
{
    d_step {
        restore_promise();
        i = 0;
        do
        :: i < N ->
            if
            :: i != me && HAS(members[me], i) && CONNECTED(me, i) -> answer[i] = AGAIN
            :: else
            fi;
            i++
        :: else -> break
        od;
        i = 0
    }
}

inline say_hello(candidate)
{
    HELLO(candidate, me) = (promised[me] << (N + 6)) | (epoch[me] << (N + 3)) |
#ifdef NEWCOMER
                           (promised_epoch[me] << (N + 22)) | (voters[me] << (N + 18)) |
                           (missing[me] << (N + 14)) | (founders[me] << (N + 10)) |
#endif
                           (passed[me] << N) | world[me]
}

/* The leader closes its connections, except those with an unread hello. */
inline close_all()
{
    i = 0;
    do
    :: i < N ->
        if
        :: i != me && CONNECTED(me, i) -> closed[i] = true
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0
}

/* The leader reads all hellos and decides. A hello's sender may have gone since. */
inline decide()
{
    d_step {
        base = world[me];
        newest = passed[me];
        most = epoch[me];
#ifdef NEWCOMER
        next_founders[me] = founders[me];
        next_missing[me] = missing[me];
#endif
        say_hello(me);
        came[me] = came[me] | BIT(me);
        i = 0;
        do
        :: i < N ->
            if
            :: HAS(came[me], i) ->
                if
                :: HELLO_PASSED(HELLO(me, i)) > newest ->
                    base = HELLO_WORLD(HELLO(me, i));
#ifdef NEWCOMER
                    next_founders[me] = HELLO_FOUNDERS(HELLO(me, i));
                    next_missing[me] = HELLO_MISSING(HELLO(me, i));
#endif
                    newest = HELLO_PASSED(HELLO(me, i))
                :: else
                fi;
                if
                :: HELLO_EPOCH(HELLO(me, i)) > most -> most = HELLO_EPOCH(HELLO(me, i))
                :: else
                fi
            :: else
            fi;
            i++
        :: else -> break
        od;
        narrow = base;
#ifndef FAULT_NO_PROMISE
        i = 0;
        do
        :: i < N ->
            if
            :: HAS(came[me] & base, i) -> narrow = narrow & HELLO_PROMISED(HELLO(me, i))
            :: else
            fi;
            i++
        :: else -> break
        od;
#endif
#ifdef FAULT_REJOIN
        narrow = narrow | came[me];
#endif
        members[me] = came[me] & narrow;
#ifndef NEWCOMER
        valid = SETTLED(base, members[me]);
#else
        next_voters[me] = base;
#ifndef FAULT_BASE_ONLY
        i = 0;
        do
        :: i < N ->
            if
            :: HAS(came[me] & base, i) && HELLO_PROMISED_EPOCH(HELLO(me, i)) > newest ->
                next_voters[me] = next_voters[me] | HELLO_VOTERS(HELLO(me, i))
            :: else
            fi;
            i++
        :: else -> break
        od;
#endif
        valid = SETTLED(next_voters[me], members[me]);
#ifndef FAULT_NO_FOUNDER
        valid = valid && (members[me] & next_founders[me]) != 0;
#endif
        next_missing[me] = (next_missing[me] | (next_voters[me] & ~members[me])) & ~refusing;
        if
        :: valid && HAS(narrow, me) && invites && !added && !HAS(refusing | silent, LAST) ->
            added = true;
            to[LAST] = me;
            members[me] = members[me] | NEW
        :: else
        fi;
        invites = false;
        if
        :: next_missing[me] == 0 -> next_founders[me] = members[me]
        :: else
        fi;
        next_voters[me] = next_voters[me] | members[me];
        if
        :: !valid -> next_founders[me] = 0; next_missing[me] = 0; next_voters[me] = 0
        :: else
        fi;
#endif
        i = 0;
        do
        :: i < N ->
            HELLO(me, i) = 0;
            if
            :: i == me || !HAS(came[me], i) || !CONNECTED(me, i)
            :: else ->
                if
                :: !HAS(narrow, me) -> closed[i] = true
                :: HAS(narrow, me) && !HAS(narrow, i) -> answer[i] = EXCLUDED
                :: HAS(narrow, me) && HAS(narrow, i) && !valid -> answer[i] = NO_QUORUM
                :: else
                fi
            fi;
            i++
        :: else -> break
        od;
        came[me] = 0;
        if
        :: !HAS(narrow, me) || !valid -> members[me] = 0; valid = false
        :: else ->
            decided[me] = most + 1;
            promise();
            phase[me] = GATHER
        fi;
        i = 0;
        base = 0;
        narrow = 0;
        newest = 0;
        most = 0
    }
}

#define LEADS(i) (phase[i] == LEAD || phase[i] == GATHER)
#define OTHERS(set) ((set) & ~BIT(me))
#ifdef NEWCOMER
#define PROMISED_BY(i) (HAS(came[me], i) -> HELLO_VOTERS(HELLO(me, i)) : 0)
#define PROMISED ((voters[me] | PROMISED_BY(0) | PROMISED_BY(1) | PROMISED_BY(2)) & NEW)
#else
#define PROMISED 0
#endif
#define MISSING (OTHERS(world[me] | PROMISED) & ~came[me] & ~refusing)
/* A leader waits for no longer than the time-out, after which a rank knows that it was slow. */
#if defined(ENDS) && !defined(FAULT_TRUST)
#define SLOW(set, i) (HAS(set, i) && phase[i] == RUN -> BIT(i) : 0)
#define LEAVE_BEHIND(set) away = away | SLOW(set, 0) | SLOW(set, 1) | SLOW(set, 2)
#else
#define LEAVE_BEHIND(set) skip
#endif
#define UNREADY (OTHERS(members[me]) & ~ready[me])
/* A member that has left the leader. */
#define GONE(i) (HAS(OTHERS(members[me]), i) && (!CONNECTED(me, i) || HAS(refusing, i)))
/* A member that has left the world. One that has yet to read its GO, or to send it, is expected. */
#define LEFT(i) (HAS(OTHERS(world[me]), i) && !HAS(silent, i) && \
    !(phase[i] == RUN && passed[i] == passed[me]) && \
    !(phase[i] != RUN && phase[i] < ENDED && decided[i] == passed[me]))
/* A member that is not in the world now. */
#define ELSEWHERE(i) (HAS(OTHERS(world[me]), i) && !(phase[i] == RUN && passed[i] == passed[me]))
#ifdef ALL_CANDIDATES
#define IS_CANDIDATE(c) true
#else
#define IS_CANDIDATE(c) HAS(world[me], c)
#endif

/* Leaves the present candidate, if any. Continues with candidate `first` or a later one. */
inline seek(first)
{
    d_step {
        disconnect();
        c = first;
        do
        :: c != me && (HAS(refusing, c) || !IS_CANDIDATE(c)) -> c++
        :: else -> break
        od;
        if
        :: c == me -> phase[me] = LEAD
        :: else ->
            phase[me] = ASK;
            to[me] = c;
            say_hello(c);
            came[c] = came[c] | BIT(me)
        fi
    };
    if
    :: c == me -> goto lead
    :: else -> goto ask
    fi
}

/* From the world, or from a decision without GO, back to the search. */
inline retreat()
{
    d_step {
        close_all();
        ready[me] = 0
    };
    seek(0)
}

/* What a rank that has ended knew does not matter any more. */
inline forget(r)
{
    world[r] = 0;
    passed[r] = 0;
    epoch[r] = 0;
    promised[r] = 0;
    ready[r] = 0;
    came[r] = 0;
    members[r] = 0;
    earlier[r] = 0;
#ifdef ENDS
    doubted[r] = 0;
#endif
#ifdef NEWCOMER
    founders[r] = 0;
    missing[r] = 0;
    voters[r] = 0;
    promised_epoch[r] = 0;
    next_founders[r] = 0;
    next_missing[r] = 0;
    next_voters[r] = 0;
    earlier_epoch[r] = 0;
    earlier_voters[r] = 0;
#endif
    decided[r] = 0;
    k = 0;
    do
    :: k < N -> HELLO(r, k) = 0; k++
    :: else -> break
    od;
    k = 0
}

inline give_up()
{
    d_step {
        disconnect();
        forget(me);
        phase[me] = ENDED;
        refusing = refusing | BIT(me);
        FAIL();
        assert(!gave_up)
    };
    goto end_of_part
}

#ifdef ENDS
inline finish()
{
    d_step {
        two_results = results != 0 && !HAS(results, me);
        assert(!two_results);
        results = results | world[me];
        disconnect();
        forget(me);
        phase[me] = ENDED;
        refusing = refusing | BIT(me)
    };
    goto end_of_part
}
#endif

#ifdef NEWCOMER
#define CHOOSE() if :: !added -> invites = true :: true fi
/* A newcomer without GO. */
inline abandon()
{
    d_step {
        disconnect();
        forget(me);
        phase[me] = ENDED;
        refusing = refusing | BIT(me)
    };
    goto end_of_part
}
#else
#define CHOOSE() skip
#endif

active [N] proctype rank() provided (!HAS(stopped, _pid))
{
    byte c, i, k, base, narrow, newest, most;
    bool valid, invites;
    {
        c = 0;
#ifdef NEWCOMER
        if
        :: me != LAST -> goto end_run
        :: me == LAST
        fi;
end_outside:
        if
        :: atomic {
            answer[me] == DECISION ->
            answer[me] = NOTHING;
            c = to[me];
            promise();
            phase[me] = WAIT;
            if
            :: !closed[me] && !HAS(refusing, c) -> ready[c] = ready[c] | BIT(me)
            :: else
            fi
        }
        :: atomic { to[me] != NONE && (closed[me] || HAS(refusing, to[me])) -> abandon() }
        fi;
        if
        :: atomic { answer[me] == GO -> pass(); goto end_run }
        :: atomic { closed[me] || HAS(refusing, c) -> abandon() }
        :: atomic { EXPIRES(BIT(c)) -> SPEND_CUT(BIT(c)); abandon() }
        fi;
#endif
end_run:
        if /* a collective fails, or a newcomer has knocked */
#ifdef ENDS
        :: atomic { !ANY(ELSEWHERE) || HAS(results, me) -> finish() }
        :: atomic {
            HAS(away, me) && !ANY(ELSEWHERE) && (world[me] & stopped) == 0 ->
            away = away & ~BIT(me);
            goto end_run
        }
#endif
        :: atomic { ANY(LEFT) -> retreat() }
#ifdef NEWCOMER
        :: atomic { passed[me] == 0 && OTHERS(world[me]) != 0 -> retreat() }
#endif
        :: atomic {
            OTHERS(world[me]) != 0 && LATE(OTHERS(world[me])) ->
            SPEND_CUT(OTHERS(world[me]));
            retreat()
        }
        fi;
ask:
        if
        :: atomic {
            answer[me] == DECISION ->
            answer[me] = NOTHING;
            promise();
#ifdef FAULT_NO_BARRIER
            pass();
            goto end_run;
#endif
            phase[me] = WAIT;
            if
            :: !closed[me] && !HAS(refusing, c) -> ready[c] = ready[c] | BIT(me)
            :: else
            fi
        }
        :: atomic { answer[me] == NO_QUORUM || answer[me] == EXCLUDED -> give_up() }
#ifdef FAULT_NEXT_CANDIDATE
        :: atomic { closed[me] || HAS(refusing, c) -> seek(c + 1) }
#else
        :: atomic { closed[me] || HAS(refusing, c) -> seek(0) }
#endif
        :: atomic { EXPIRES(BIT(c)) -> SPEND_CUT(BIT(c)); DOUBT(BIT(c)); seek(c + 1) }
        fi;
        if /* waits for GO */
        :: atomic { answer[me] == GO -> pass(); goto end_run }
        :: atomic { answer[me] == AGAIN -> restore_promise(); seek(0) }
        :: atomic { closed[me] || HAS(refusing, c) -> seek(0) }
        :: atomic { EXPIRES(BIT(c)) -> SPEND_CUT(BIT(c)); seek(0) }
        fi;
lead:
        if
        :: atomic { MISSING == 0 -> CHOOSE(); decide(); if :: valid :: else -> give_up() fi }
        :: atomic {
            MISSING != 0 && LEADER_EXPIRES(MISSING) ->
            SPEND_CUT(MISSING);
            DOUBT(MISSING);
            LEAVE_BEHIND(MISSING);
            CHOOSE();
            decide();
            if
            :: valid
            :: else -> give_up()
            fi
        }
        fi;
        do
        :: atomic {
            i < N ->
            if
            :: HAS(OTHERS(members[me]), i) && CONNECTED(me, i) ->
                answer[i] = DECISION;
                members[i] = members[me];
#ifdef NEWCOMER
                next_founders[i] = next_founders[me];
                next_missing[i] = next_missing[me];
                next_voters[i] = next_voters[me];
#endif
                decided[i] = decided[me]
            :: else
            fi;
            i++
        }
        :: atomic { i == N -> i = 0; break }
        od;
        if
#ifdef FAULT_NO_BARRIER
        :: true
#else
        :: UNREADY == 0
        :: atomic { ANY(GONE) -> take_back(); retreat() }
        :: atomic {
            UNREADY != 0 && LEADER_EXPIRES(UNREADY) ->
            SPEND_CUT(UNREADY);
            take_back();
            retreat()
        }
#endif
        fi;
        do
        :: atomic {
            i < N ->
            if
            :: HAS(OTHERS(members[me]), i) && CONNECTED(me, i) && phase[i] == WAIT ->
                answer[i] = GO
            :: else
            fi;
            i++
        }
#ifdef FAULT_TAKE_BACK
        :: atomic { i > 1 && decided[me] == 1 -> take_back(); retreat() } /* after a GO */
#endif
        :: atomic { i == N -> break }
        od;
        atomic { pass(); goto end_run };
end_of_part:
        skip
    } unless { phase[me] >= DEAD }
}

#if defined(ENDS) && !defined(FAULT_TRUST)
#define GO_AWAY(r) away = away | BIT(r)
#else
#define GO_AWAY(r) skip
#endif

#define FAULTS_OF(r) \
    :: d_step { deaths > 0 && phase[r] < ENDED && HAS(MORTAL, r) -> \
        deaths--; phase[r] = DEAD; refusing = refusing | BIT(r); stopped = stopped & ~BIT(r); \
        to[r] = NONE; answer[r] = NOTHING; closed[r] = false; forget(r) } \
    :: d_step { deaths > 0 && phase[r] < ENDED && HAS(VANISHING, r) -> \
        deaths--; phase[r] = SILENT; silent = silent | BIT(r); stopped = stopped & ~BIT(r); \
        answer[r] = NOTHING; closed[r] = false; forget(r) } \
    :: d_step { stops > 0 && phase[r] < ENDED && HAS(STOPPABLE & ~stopped, r) -> \
        stops--; stopped = stopped | BIT(r); GO_AWAY(r) } \
    :: d_step { HAS(stopped, r) -> stopped = stopped & ~BIT(r) }

active proctype faults()
{
    byte k;
    do
    FAULTS_OF(0)
    FAULTS_OF(1)
    FAULTS_OF(2)
#if N > 3
    FAULTS_OF(3)
#endif
    :: d_step { stopped == 0 -> deaths = 0; stops = 0; cuts = 0 } break
    od
}
