/*
 * Membership of an elastic job, a model for Spin (tests/check/spin.sh): the coordinator, a server
 * and the workers send the messages of experiments/elastic/member.h, with the effects of its table.
 *
 * Workers join at any time. The first generation needs two of them, so a third worker is a
 * newcomer. With TOGETHER, the first two have joined, and the third joins later. They train STEPS
 * steps of BUCKETS buckets. The server answers a bucket when all workers of the generation have
 * pushed it. A worker applies a step when it has all answers. With the last push each worker also
 * says whether the generation should end after the step: because it has read CHANGE, or wants to
 * leave.
 *
 * Faults of the model: a worker dies at any time (DEATHS, those in MORTAL); the coordinator loses a
 * live member, because it was silent (SILENCES); an exchange fails for one worker (ERRORS). The
 * server's death ends the job. Only with RESTARTS the job is durable: the server, with the
 * coordinator, dies at any time after the first generation has begun, and starts again with its
 * record. Messages on their way are lost. A worker that does not return may be waited for or not. If
 * no worker of two has weights, those in the server's file are of step 0. A worker of a durable job
 * may also lose its connection alone (LOSSES), with the messages on it. The coordinator reads the
 * worker's next message on the new connection, or sees before that that the old one is closed. A
 * restart and a loss together, with STEPS=1, need 1.3 GB: 10,465,910 states without an error.
 *
 * A worker's weights are described by the workers of each step in them. Images are counted in
 * steps, at the end by the coordinator.
 *
 * run: -DWORKERS=3 -DSTEPS=2 -DBUCKETS=1 -DTOGETHER
 * run: -DWORKERS=3 -DSTEPS=2 -DBUCKETS=1 -DDEATHS=1 -DTOGETHER -DMORTAL=1
 * run: -DWORKERS=2 -DSTEPS=2 -DBUCKETS=2 -DDEATHS=1 -DERRORS=1
 * run: -DWORKERS=2 -DSTEPS=2 -DBUCKETS=1 -DDEATHS=1 -DLEAVES=1
 * run: -DWORKERS=2 -DSTEPS=1 -DBUCKETS=1 -DABORTS=1 -DSILENCES=1
 * run: -DWORKERS=2 -DSTEPS=2 -DBUCKETS=1 -DRESTARTS=1
 * run: -DWORKERS=2 -DSTEPS=1 -DBUCKETS=1 -DRESTARTS=1 -DDEATHS=1 -DMORTAL=2
 * run: -DWORKERS=2 -DSTEPS=1 -DBUCKETS=1 -DRESTARTS=1 -DLEAVES=1
 * run: -DWORKERS=2 -DSTEPS=2 -DBUCKETS=1 -DRESTARTS=0 -DLOSSES=1
 * ends: -DWORKERS=2 -DSTEPS=2 -DBUCKETS=1 -DRESTARTS=1
 * ends: -DWORKERS=2 -DSTEPS=2 -DBUCKETS=1 -DRESTARTS=0 -DLOSSES=1
 * ends: -DWORKERS=2 -DSTEPS=2 -DBUCKETS=1 -DDEATHS=1 -DERRORS=1
 * ends: -DWORKERS=2 -DSTEPS=2 -DBUCKETS=1 -DLEAVES=1
 * fault torn: -DWORKERS=2 -DSTEPS=2 -DBUCKETS=2 -DDEATHS=1 -DFAULT_PARTIAL
 * fault miscounted: -DWORKERS=2 -DSTEPS=2 -DBUCKETS=1 -DERRORS=1 -DFAULT_COUNT
 * fault lost_step: -DWORKERS=2 -DSTEPS=2 -DBUCKETS=1 -DERRORS=1 -DFAULT_OLDEST_WEIGHTS
 * fault disagree: -DWORKERS=2 -DSTEPS=2 -DBUCKETS=1 -DERRORS=1 -DFAULT_OWN_START
 * fault undone: -DWORKERS=2 -DSTEPS=2 -DBUCKETS=1 -DERRORS=1 -DFAULT_AFTER_DONE
 * fault apart: -DWORKERS=2 -DSTEPS=3 -DBUCKETS=1 -DERRORS=1 -DFAULT_RUN_AHEAD
 * fault deadlock: -DWORKERS=2 -DSTEPS=2 -DBUCKETS=1 -DLEAVES=1 -DFAULT_NO_OVER
 * fault disagree: -DWORKERS=2 -DSTEPS=2 -DBUCKETS=1 -DRESTARTS=1 -DFAULT_SAME_NUMBER
 * fault miscounted: -DWORKERS=2 -DSTEPS=2 -DBUCKETS=1 -DRESTARTS=1 -DSILENCES=1 -DFAULT_ANYBODY_RETURNS
 * fault undone: -DWORKERS=2 -DSTEPS=2 -DBUCKETS=1 -DRESTARTS=1 -DFAULT_FORGETS_END
 * fault undone: -DWORKERS=2 -DSTEPS=2 -DBUCKETS=1 -DRESTARTS=1 -DFAULT_NO_ANSWER
 * fault uncounted: -DWORKERS=2 -DSTEPS=2 -DBUCKETS=1 -DRESTARTS=1 -DFAULT_ONLY_DONE
 * fault uncounted: -DWORKERS=2 -DSTEPS=2 -DBUCKETS=1 -DRESTARTS=1 -DFAULT_TWICE
 */

#ifndef DEATHS
#define DEATHS 0
#endif
#ifndef LEAVES
#define LEAVES 0
#endif
#ifndef ABORTS
#define ABORTS 0
#endif
#ifndef SILENCES
#define SILENCES 0
#endif
#ifndef ERRORS
#define ERRORS 0
#endif
#ifdef RESTARTS
#define DURABLE 1
#else
#define RESTARTS 0
#define DURABLE 0
#endif
#ifndef LOSSES
#define LOSSES 0
#endif
#define SERVER WORKERS
#ifndef MORTAL /* members that may die */
#define MORTAL (BIT(SERVER) - 1)
#endif
#define MEMBERS (WORKERS + 1)
#define GENERATIONS 6
#define FAILURES_MOST 3
#define FIRST 2 /* workers of the first generation */
#define BIT(i) (1 << (i))
#define HAS(set, i) (((set) >> (i)) & 1)

mtype = { JOIN, RETURN, READY, DONE, LEAVE, ABORT, GENERATION, CHANGE, OVER, END };

/* States of a seat: SEAT_NEW before JOIN, SEAT_GONE after the member was lost or has left. */
#define SEAT_NEW 0
#define SEAT_WAITING 1
#define SEAT_RUNNING 2
#define SEAT_DONE 3
#define SEAT_GONE 4

/* What the coordinator notices of a member. */
#define EVENT_MESSAGE 0
#define EVENT_CLOSED 1
#define EVENT_SILENT 2
#define EVENT_RESTART 3  /* of the server itself */
#define EVENT_PATIENCE 4 /* it waits no longer for workers to return */

/* type, generation, step, has weights, after an error */
chan up[MEMBERS] = [2] of { mtype, byte, byte, bool, bool };
/* type, generation, workers, step, rank 0 */
chan down[MEMBERS] = [5] of { mtype, byte, byte, byte, byte };

bool closed[MEMBERS]; /* its process has ended */

/* The coordinator. */
byte seat[MEMBERS];
byte seat_step[MEMBERS], seat_age[MEMBERS];
bool seat_trained[MEMBERS];
byte generation, next_age, begun_step, failures, accounted;
bool running, is_over, complete, has_weights, job_ended;
/* In the record, like generation and next_age: the generation's workers, and those that are done. */
byte expected, done;
bool awaits; /* waits for these to return */
byte images; /* of workers that are done; in the record, like the next one */
byte end_step;
bool end_recorded; /* the workers know that training has ended */

/* A member: what it knows of the job. */
byte known[MEMBERS]; /* its generation, and whether it takes part in it: */
bool begun[MEMBERS], over[MEMBERS], change[MEMBERS], ended[MEMBERS];
bool cut[MEMBERS]; /* its connection is lost; the server's: it has started again */
bool again[MEMBERS]; /* its next message comes on a new connection */
byte workers[MEMBERS], start[MEMBERS], first[MEMBERS]; /* as GENERATION says */
byte arrived[MEMBERS], left[MEMBERS]; /* the last generation whose world it has entered, left */

/* A worker. */
byte step[WORKERS];
bool trained[WORKERS], shared[WORKERS], wish[WORKERS];
byte pushed[WORKERS];  /* buckets of this generation */
byte counted[WORKERS]; /* its images in the weights */
typedef weights { byte done_by[STEPS] }; /* each step's workers */
weights own[WORKERS];

/* Of the last two generations: rank 0's weights at the start, buckets that were answered, whether
 * the workers have agreed to end. */
weights base[2];
byte answered[2];
bool ends[2];

byte deaths = DEATHS, leaves = LEAVES, aborts = ABORTS, silences = SILENCES, errors = ERRORS;
byte restarts = RESTARTS, losses = LOSSES;
byte contained;  /* images in the weights of a worker that is done */
bool lost_one;   /* a worker that has trained may be lost, or has left */
bool gone_done; /* a worker has ended after its last step, and the coordinator knows it */

/* The properties: none of these is ever true. */
bool lost_step;  /* a generation begins behind the weights of one of its workers */
bool apart;      /* a generation begins with workers more than one step apart */
bool torn;       /* an applied step lacks a push of one of its workers */
bool miscounted; /* a worker that is done counts other images than its weights contain */
bool disagree;   /* members of a world have other workers, another start or other weights */
bool uncounted;  /* the coordinator counts other images, although no worker is lost */
bool undone;     /* a generation begins, or a seat changes, after its worker was done */
bool overflow;   /* a queue of the model is too short */

/* -------- the coordinator --------------------------------------------------------------------- */

inline say(i, type, a, b, c, d)
{
    if
    :: closed[i] || ((cut[i] || again[i]) && i != SERVER)
    :: else ->
        overflow = len(down[i]) == 5;
        assert(!overflow);
        down[i]!type(a, b, c, d)
    fi
}

inline say_running(type)
{
    j = 0;
    do
    :: j < MEMBERS ->
        if
        :: seat[j] == SEAT_RUNNING -> say(j, type, generation, 0, 0, 0)
        :: else
        fi;
        j++
    :: else -> break
    od;
    j = 0
}

inline end_all()
{
    job_ended = true;
    j = 0;
    do
    :: j < MEMBERS ->
        if
        :: seat[j] != SEAT_GONE && seat[j] != SEAT_NEW -> say(j, END, 0, 0, 0, 0)
        :: else
        fi;
        j++
    :: else -> break
    od;
    j = 0
}

inline generation_over()
{
    if
    :: running && !is_over -> is_over = true; say_running(OVER)
    :: else
    fi
}

inline forget(i)
{
    seat[i] = SEAT_GONE;
    seat_step[i] = 0;
    seat_age[i] = 0;
    seat_trained[i] = false
}

/* Once for each worker. */
inline count(i)
{
    if
    :: HAS(expected & ~done, i) ->
        done = done | BIT(i);
        images = images + counted[i] + (seat_step[i] < end_step)
#ifdef FAULT_TWICE
    :: HAS(done, i) -> images = images + counted[i]
#endif
    :: else
    fi
}

inline hear_done(i)
{
    comes_out(i);
    seat[i] = SEAT_DONE;
    seat_step[i] = at;
    if
    :: !job_ended ->
        end_step = at;
        contained = 0;
        j = 0;
        do
        :: j < STEPS -> contained = contained + HAS(own[i].done_by[j], 0) +
                        HAS(own[i].done_by[j], 1) + HAS(own[i].done_by[j], 2); j++
        :: else -> break
        od;
        j = 0;
#if DURABLE
        count(i)
#else
        done = done | BIT(i)
#endif
    :: else
    fi
}

inline end_well()
{
#if DURABLE
    all = done;
    i = 0;
    do
    :: i < WORKERS ->
        if
        :: seat[i] == SEAT_WAITING ->
            all = all | BIT(i);
#ifndef FAULT_ONLY_DONE
            count(i)
#endif
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0;
#if !defined(FAULT_NO_ANSWER) && !defined(FAULT_FORGETS_END)
    uncounted = images != contained && !lost_one && (expected & ~all) == 0;
    assert(!uncounted);
#endif
    all = 0;
    lost_one = lost_one || expected != done;
    done = expected;
    end_recorded = true;
#endif
    end_all()
}

inline lost(i)
{
    was = seat[i];
    forget(i);
    if
    :: cut[i] || again[i] -> seat[i] = SEAT_NEW
    :: else
    fi;
    if
    :: i == SERVER && !job_ended -> end_all()
    :: i != SERVER && was == SEAT_RUNNING && !job_ended -> generation_over()
    :: else
    fi;
    was = 0
}

inline comes_out(i)
{
    if
    :: i != SERVER -> accounted++; has_weights = has_weights || has
    :: else
    fi;
    if
    :: failed -> generation_over()
    :: else
    fi
}

inline hear(i)
{
    up[i]?type, group, at, has, failed;
    if
    :: again[i] && type == DONE -> forget(i); seat[i] = SEAT_NEW
    :: again[i] && type != DONE && seat[i] != SEAT_NEW -> lost(i)
    :: else
    fi;
    again[i] = false;
    in = seat[i] == SEAT_RUNNING && group == generation;
    undone = undone || (seat[i] == SEAT_DONE && type != LEAVE);
    assert(!undone);
    if
    :: type == JOIN && seat[i] == SEAT_NEW ->
        if
        :: job_ended -> say(i, END, 0, 0, 0, 0); seat[i] = SEAT_GONE
        :: else ->
            seat[i] = SEAT_WAITING;
            seat_age[i] = next_age;
            next_age++;
            if
            :: i != SERVER && running -> say_running(CHANGE)
            :: else
            fi
        fi
    :: type == READY && in ->
        comes_out(i);
        seat[i] = SEAT_WAITING;
        seat_step[i] = at;
        seat_trained[i] = has
    :: type == DONE && in -> hear_done(i)
    :: type == DONE && seat[i] == SEAT_NEW ->
        if
        :: !job_ended && HAS(expected, i) -> hear_done(i); awaits = true
        :: else -> say(i, END, 0, 0, 0, 0); seat[i] = SEAT_GONE
        fi
    :: type == LEAVE && seat[i] != SEAT_NEW ->
        was = seat[i];
        if
        :: in -> comes_out(i)
        :: else
        fi;
        lost_one = true;
        expected = expected & ~BIT(i);
        forget(i);
        if
        :: was == SEAT_RUNNING && !in ->
            accounted++;
#ifndef FAULT_NO_OVER
            generation_over()
#endif
        :: else
        fi;
        was = 0
    :: type == ABORT && in ->
        if
        :: !job_ended -> end_all()
        :: else
        fi
    :: type == RETURN && seat[i] == SEAT_NEW ->
        if
#ifdef FAULT_ANYBODY_RETURNS
        :: !job_ended ->
#else
        :: !job_ended && HAS(expected, i) ->
#endif
            awaits = true;
            seat[i] = SEAT_WAITING;
            seat_step[i] = at;
            seat_trained[i] = has
        :: else -> say(i, END, 0, 0, 0, 0); seat[i] = SEAT_GONE
        fi
    :: else -> lost(i)
    fi;
    type = 0;
    group = 0;
    at = 0;
    has = false;
    failed = false;
    in = false
}

#define COUNT_IN(state) ((seat[0] == state) + (seat[1] == state) + THIRD_IN(state))
#if WORKERS > 2
#define THIRD_IN(state) (seat[2] == state)
#else
#define THIRD_IN(state) 0
#endif
#define COMES_BEFORE(i, k) (seat_trained[i] != seat_trained[k] -> seat_trained[i] : \
    (seat_trained[i] && seat_step[i] != seat_step[k] -> NEWER(seat_step[i], seat_step[k]) : \
     seat_age[i] < seat_age[k]))
#ifdef FAULT_OLDEST_WEIGHTS
#define NEWER(a, b) ((a) < (b))
#else
#define NEWER(a, b) ((a) > (b))
#endif

inline base_is_clear()
{
    answered[generation & 1] = 0;
    ends[generation & 1] = false;
    i = 0;
    do
    :: i < STEPS -> base[generation & 1].done_by[i] = 0; i++
    :: else -> break
    od
}

/* Begins the next generation with all waiting workers; the first one with the two oldest. */
inline begin()
{
    best = MEMBERS;
    all = 0;
    i = 0;
    do
    :: i < WORKERS ->
        if
        :: seat[i] == SEAT_WAITING ->
            all = all | BIT(i);
            if
            :: best == MEMBERS -> best = i
            :: best < MEMBERS && COMES_BEFORE(i, best) -> best = i
            :: else
            fi
        :: else
        fi;
        i++
    :: else -> break
    od;
    if /* without the youngest */
    :: generation == 0 && COUNT_IN(SEAT_WAITING) > FIRST ->
        last = best;
        i = 0;
        do
        :: i < WORKERS ->
            if
            :: seat[i] == SEAT_WAITING && seat_age[i] > seat_age[last] -> last = i
            :: else
            fi;
            i++
        :: else -> break
        od;
        all = all & ~BIT(last);
        last = 0
    :: else
    fi;
    generation++;
    overflow = generation >= GENERATIONS;
    assert(!overflow);
    undone = done > 0 || gone_done;
    assert(!undone);
    awaits = false;
    lost_one = lost_one || (expected & ~all);
    expected = (DURABLE -> all : 0);
    running = true;
    is_over = false;
    accounted = 0;
    at = (seat_trained[best] -> seat_step[best] : 0);
    if
    :: seat_trained[best] && seat_step[best] > begun_step -> failures = 0
    :: else
    fi;
    begun_step = at;
    has_weights = has_weights || seat_trained[best];
    base_is_clear();
    i = 0;
    do
    :: i < MEMBERS ->
        if
        :: i == SERVER || HAS(all, i) ->
            apart = seat_trained[i] && seat_step[i] + 1 < at;
            assert(!apart);
            seat[i] = SEAT_RUNNING;
#ifdef FAULT_OWN_START
            last = (seat_trained[i] -> seat_step[i] : at);
            say(i, GENERATION, generation, all, last, best);
            last = 0
#else
            say(i, GENERATION, generation, all, at, best)
#endif
        :: i != SERVER && !HAS(all, i) && seat[i] == SEAT_WAITING -> say_running(CHANGE)
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0;
    at = 0;
    all = 0;
    best = 0
}

#define MISSING(i) \
    (HAS(expected, i) && !end_recorded && seat[i] != SEAT_WAITING && seat[i] != SEAT_DONE)
#if WORKERS > 2
#define AWAITS (awaits && (MISSING(0) || MISSING(1) || MISSING(2)))
#else
#define AWAITS (awaits && (MISSING(0) || MISSING(1)))
#endif
#define WEIGHTS_ARE_LOST (!DURABLE && complete && !some && (has_weights || !any))

inline lose_connection(m)
{
    cut[m] = !closed[m];
    do
    :: nempty(down[m]) -> down[m]?_, _, _, _, _
    :: empty(down[m]) -> break
    od;
    do
    :: nempty(up[m]) -> up[m]?_, _, _, _, _
    :: empty(up[m]) -> break
    od
}

/* The record stays, and all messages on their way are lost. */
inline restart()
{
    restarts--;
#ifdef FAULT_SAME_NUMBER
    generation--;
#endif
#ifdef FAULT_FORGETS_END
    done = 0;
#endif
    running = false;
    is_over = false;
    accounted = 0;
    begun_step = 0;
    failures = 0;
    job_ended = false;
    awaits = true;
    i = 0;
    do
    :: i < MEMBERS ->
        seat[i] = (i == SERVER -> SEAT_WAITING : SEAT_NEW);
        seat_step[i] = 0;
        seat_trained[i] = false;
        again[i] = false;
        lose_connection(i);
        i++
    :: else -> break
    od;
    i = 0
}

/* After every event. */
inline settle()
{
    if
    :: job_ended || COUNT_IN(SEAT_RUNNING) > 0
    :: else ->
        if
        :: DURABLE && running && COUNT_IN(SEAT_WAITING) + COUNT_IN(SEAT_DONE) == 0 -> awaits = true
        :: else
        fi;
        running = running && done == 0;
        if
#ifndef FAULT_AFTER_DONE
        :: done > 0 && !AWAITS -> end_well()
        :: done > 0 && AWAITS
        :: done == 0 && seat[SERVER] == SEAT_RUNNING
#else
        :: seat[SERVER] == SEAT_RUNNING
#endif
        :: else ->
            if
            :: running ->
                failures = failures + is_over;
                has_weights = has_weights || accounted == 0
            :: else
            fi;
            running = false;
            is_over = false;
            accounted = 0;
            any = false;
            some = false;
            i = 0;
            do
            :: i < WORKERS ->
                any = any || seat[i] == SEAT_WAITING || seat[i] == SEAT_DONE;
                some = some || seat_trained[i];
                i++
            :: else -> break
            od;
            i = 0;
            if
            :: WEIGHTS_ARE_LOST -> end_all()
            :: !WEIGHTS_ARE_LOST && failures >= FAILURES_MOST -> end_all()
            :: !WEIGHTS_ARE_LOST && failures < FAILURES_MOST && AWAITS
            :: else ->
                if
                :: COUNT_IN(SEAT_WAITING) >= (generation == 0 -> FIRST : 1) ->
                    complete = true;
                    if
                    :: seat[SERVER] == SEAT_WAITING -> begin()
                    :: else
                    fi
                :: else
                fi
            fi;
            any = false;
            some = false
        fi
    fi
}

#define HEARS(i) :: seat[i] != SEAT_GONE && nempty(up[i]) -> who = i
#define CLOSES(i) \
    :: seat[i] != SEAT_NEW && seat[i] != SEAT_GONE && empty(up[i]) && \
        (closed[i] || (cut[i] && i != SERVER)) -> \
        who = i; event = EVENT_CLOSED
#define IS_SILENT(i) \
    :: silences > 0 && !job_ended && !closed[i] && \
        (seat[i] == SEAT_WAITING || seat[i] == SEAT_RUNNING) -> \
        who = i; event = EVENT_SILENT

/* -------- members ----------------------------------------------------------------------------- */

#define me _pid

inline tell(message, error)
{
    d_step {
        if
        :: len(up[me]) < 2 && !cut[me] ->
            up[me]!message(known[me] - begun[me], (me == SERVER -> 0 : step[me]),
                           (me == SERVER -> false : trained[me]), error)
        :: else
        fi;
        begun[me] = false
    }
}

inline read()
{
    d_step {
        down[me]?type, a, b, c, d;
        if
        :: type == GENERATION ->
            known[me] = a;
            workers[me] = b;
            start[me] = c;
            first[me] = d;
            begun[me] = true;
            over[me] = false;
            change[me] = false
        :: type == CHANGE && a == known[me] -> change[me] = true
        :: type == OVER && a == known[me] -> over[me] = true
        :: type == END -> ended[me] = true
        :: else
        fi;
        type = 0;
        a = 0;
        b = 0;
        c = 0;
        d = 0
    }
}

#define NOW (known[me] & 1)
/* A lost worker that does not know it yet. */
#define OLD (known[me] + 1 < generation || (cut[me] && known[me] < generation))
#define INPUT (nempty(down[me]) && !ended[me])
#define CUT_OFF (seat[me] == SEAT_GONE && empty(down[me]))
#define MUST_END (over[me] || ended[me] || CUT_OFF || cut[me])
#define OUTSIDE(i) (HAS(workers[me], i) && arrived[i] < known[me])
#define LEAVER(i) (HAS(workers[me], i) && (left[i] >= known[me] || closed[i]))
#define UNPUSHED(i) (HAS(workers[me], i) && arrived[i] == known[me] && pushed[i] <= answered[NOW])
#define STAYER(i) (HAS(workers[me], i) && left[i] < known[me])
#define WISHES(i) (HAS(workers[me], i) && wish[i])
#define DIFFERS(i) (HAS(workers[me], i) && known[i] == known[me] && \
    (workers[i] != workers[me] || start[i] != start[me] || first[i] != first[me]))
#if WORKERS > 2
#define ANY(what) (what(0) || what(1) || what(2))
#define EACH(what) what(0) what(1) what(2) what(SERVER)
#else
#define ANY(what) (what(0) || what(1))
#define EACH(what) what(0) what(1) what(SERVER)
#endif
/* Pushes of this generation, with those of the present step. */
#define GOAL (BUCKETS * (step[me] - start[me] + 1))
#if defined(FAULT_RUN_AHEAD)
#define ENOUGH true
#define TORN(i) false
#elif defined(FAULT_PARTIAL)
#define ENOUGH (answered[NOW] >= GOAL - 1)
#else
#define ENOUGH (answered[NOW] >= GOAL)
#endif
#ifndef TORN
#define TORN(i) (HAS(workers[me], i) && arrived[i] == known[me] && pushed[i] < GOAL)
#endif

/* Takes rank 0's weights. */
inline share()
{
    d_step {
        disagree = ANY(DIFFERS);
        assert(!disagree);
        lost_step = trained[me] && step[me] > start[me];
        assert(!lost_step);
        if /* the others did one more step, with this worker's push */
#ifndef FAULT_COUNT
        :: trained[me] && start[me] == step[me] + 1 -> counted[me]++
#endif
        :: else
        fi;
        i = 0;
        do
        :: i < STEPS -> own[me].done_by[i] = base[NOW].done_by[i]; i++
        :: else -> break
        od;
        i = 0;
        step[me] = start[me];
        trained[me] = true;
        shared[me] = true
    }
}

/* Leaves the world, and keeps the weights. */
inline keep()
{
    if
    :: shared[me] -> counted[me] = counted[me] + step[me] - start[me]
    :: else
    fi;
    shared[me] = false;
    wish[me] = false;
    left[me] = known[me]
}

/* The process ends. Messages to it are lost. */
inline close(r)
{
    closed[r] = true;
    do
    :: nempty(down[r]) -> down[r]?_, _, _, _, _
    :: empty(down[r]) -> break
    od;
    step[r] = 0;
    trained[r] = false;
    shared[r] = false;
    wish[r] = false;
    counted[r] = 0;
    workers[r] = 0;
    start[r] = 0;
    first[r] = 0;
    begun[r] = false;
    over[r] = false;
    change[r] = false;
    ended[r] = false;
    cut[r] = false;
    again[r] = false;
    known[r] = 0;
    k = 0;
    do
    :: k < STEPS -> own[r].done_by[k] = 0; k++
    :: else -> break
    od;
    k = 0
}

active [WORKERS] proctype worker()
{
    mtype type;
    byte a, b, c, d, i, k;
    bool leaving;
    {
#ifdef TOGETHER /* the first two have joined */
        if
        :: atomic { me >= FIRST && generation > 0 -> tell(JOIN, false) }
        :: me < FIRST
        fi;
#else
        tell(JOIN, false);
#endif
meet:
        if
        :: atomic { begun[me] -> begun[me] = false }
        :: atomic { !begun[me] && (ended[me] || CUT_OFF) -> goto out }
#if DURABLE
        :: atomic { !begun[me] && !ended[me] && cut[me] ->
            cut[me] = false;
            if
            :: known[me] > 0 -> again[me] = true; tell(RETURN, false); goto meet
            :: else -> goto out /* it does not know that the job is durable */
            fi
        }
#endif
        :: atomic { INPUT -> read(); goto meet }
        :: atomic { leaves > 0 && !ended[me] -> leaves--; tell(LEAVE, false); goto out }
        :: atomic { timeout && generation == 0 -> goto out } /* too few workers have come */
        fi;
        d_step {
            arrived[me] = known[me];
            pushed[me] = 0;
            if
            :: first[me] == me && !OLD ->
                disagree = trained[me] && step[me] != start[me];
                assert(!disagree);
                i = 0;
                do
                :: i < STEPS -> base[NOW].done_by[i] = own[me].done_by[i]; i++
                :: else -> break
                od;
                i = 0
            :: else
            fi
        };
set_up:
        if
        :: atomic { !ANY(OUTSIDE) && arrived[SERVER] >= known[me] && !OLD -> share() }
        :: atomic { INPUT -> read(); goto set_up }
        :: atomic { MUST_END -> goto failed }
        :: atomic { errors > 0 -> errors--; goto failed }
        fi;
#if DURABLE
        if
        :: step[me] == STEPS -> goto finish
        :: else
        fi;
#endif
train:
        if
        :: d_step {
            pushed[me] < GOAL ->
            pushed[me]++;
            wish[me] = wish[me] || (pushed[me] == GOAL && (change[me] || leaving))
        }
        :: d_step {
            pushed[me] == GOAL && ENOUGH && !OLD ->
            torn = ANY(TORN);
            assert(!torn);
            own[me].done_by[step[me]] = workers[me];
            step[me]++;
            wish[me] = false
        }
            if
            :: step[me] == STEPS -> goto finish
            :: atomic {
                step[me] < STEPS && ends[NOW] ->
                keep();
                if
                :: leaving -> tell(LEAVE, false); goto out
                :: else -> tell(READY, false); goto meet
                fi
            }
            :: else
            fi
        :: atomic { INPUT -> read() }
        :: atomic { leaves > 0 && !leaving -> leaves--; leaving = true }
        :: atomic { MUST_END || ANY(LEAVER) -> goto failed }
        :: atomic { errors > 0 -> errors--; goto failed }
        :: atomic { aborts > 0 -> aborts--; keep(); tell(ABORT, true); goto out }
        fi;
        goto train;
finish:
        atomic {
            keep();
            i = 0;
            a = 0;
            do
            :: i < STEPS -> a = a + HAS(own[me].done_by[i], me); i++
            :: else -> break
            od;
            i = 0;
#ifndef FAULT_RUN_AHEAD /* finds this one first */
            miscounted = a != counted[me];
            assert(!miscounted);
#endif
            a = 0;
            tell(DONE, false)
        };
#if DURABLE
#ifdef FAULT_NO_ANSWER
        gone_done = true;
        goto out;
#endif
answer: /* waits for the answer */
        if
        :: atomic { ended[me] -> gone_done = gone_done || seat[me] == SEAT_DONE; goto out }
        :: atomic { !ended[me] && cut[me] -> cut[me] = false; again[me] = true; tell(DONE, false); goto answer }
        :: atomic { CUT_OFF && !cut[me] -> goto out }
        :: atomic { INPUT -> read(); goto answer }
        fi;
#else
        goto out;
#endif
failed:
        atomic {
            keep();
            if
            :: leaving && !ended[me] -> tell(LEAVE, true); goto out
            :: else -> tell(READY, true); goto meet
            fi
        };
out:
        atomic { close(me) }
    } unless { closed[me] }
}

inline starts_again()
{
    cut[me] = false;
    begun[me] = false;
    over[me] = false;
    ended[me] = false;
    left[me] = known[me]
}

active proctype server()
{
    mtype type;
    byte a, b, c, d;
#if RESTARTS
end_without_workers:
#endif
meet:
    if
#if RESTARTS
    :: atomic { cut[me] -> starts_again(); goto meet }
#endif
    :: atomic { begun[me] && !cut[me] -> begun[me] = false; arrived[me] = known[me] }
    :: atomic { !begun[me] && !cut[me] && (ended[me] || CUT_OFF) -> goto out }
    :: atomic { INPUT && !cut[me] -> read(); goto meet }
    :: atomic { timeout && generation == 0 -> goto out }
    fi;
serve:
    if
#if RESTARTS
    :: atomic { cut[me] -> starts_again(); goto meet }
#endif
    :: d_step {
        !cut[me] && !ANY(OUTSIDE) && !ANY(UNPUSHED) ->
        answered[NOW]++;
        ends[NOW] = ends[NOW] || (answered[NOW] % BUCKETS == 0 && ANY(WISHES))
    }
    :: atomic { INPUT && !cut[me] -> read() }
    :: atomic {
        !cut[me] && (MUST_END || (!ANY(OUTSIDE) && ANY(LEAVER))) ->
        left[me] = known[me];
        tell(READY, ANY(STAYER));
        goto meet
    }
    fi;
    goto serve;
out:
    closed[me] = true
}

active proctype coordinator()
{
    mtype type;
    byte who, event, group, at, was, i, j, best, last, all;
    bool has, failed, in, any, some;
    d_step {
        seat[SERVER] = SEAT_WAITING;
        next_age = 1;
#ifdef TOGETHER
        seat[0] = SEAT_WAITING;
        seat[1] = SEAT_WAITING;
        seat_age[0] = 1;
        seat_age[1] = 2;
        next_age = 3;
        settle()
#endif
    };
end_wait:
    do
    :: atomic {
        if
        EACH(HEARS)
        EACH(CLOSES)
        EACH(IS_SILENT)
#if RESTARTS
        :: restarts > 0 && generation > 0 && (!job_ended || done > 0) -> event = EVENT_RESTART
#endif
#if DURABLE
        :: awaits && !job_ended && AWAITS -> event = EVENT_PATIENCE
#endif
        fi;
        d_step {
            if
            :: event == EVENT_MESSAGE -> hear(who)
            :: event == EVENT_CLOSED -> lost(who)
            :: event == EVENT_SILENT -> silences--; lost_one = true; say(who, END, 0, 0, 0, 0); lost(who)
            :: event == EVENT_RESTART -> restart()
            :: event == EVENT_PATIENCE -> awaits = false; lost_one = true
            fi;
            settle();
            who = 0;
            event = EVENT_MESSAGE
        }
    }
    od
}

#define DIES(i) \
    :: d_step { deaths > 0 && HAS(MORTAL, i) && !closed[i] -> deaths--; lost_one = true; close(i) }
#define CUTS(i) \
    :: d_step { losses > 0 && i < WORKERS && !closed[i] && known[i] > 0 && !cut[i] && !ended[i] -> \
        losses--; lose_connection(i); k = 0 }

active proctype faults()
{
    byte k;
    do
    EACH(DIES)
#if DURABLE
    EACH(CUTS)
#endif
    :: atomic {
        true ->
        deaths = 0;
        leaves = 0;
        aborts = 0;
        silences = 0;
        errors = 0;
        restarts = 0;
        losses = 0;
        break
    }
    od
}
