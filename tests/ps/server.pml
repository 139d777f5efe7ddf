/*
 * The parameter server, a model for Spin (tests/check/spin.sh): one server with CHUNKS chunks.
 * Workers push each chunk once per step and wait for the answers, with at most WINDOW unanswered.
 * The rules are those of ps/async.h and ps/server.c:
 *
 *     SSP      a push of step c is applied at once, and answered once all have pushed c - SLACK
 *     BACKUPS  bsp with backup workers: the pushes of c are applied, and answered, once
 *              WORKERS - BACKUPS have come; later ones are dropped, and their worker skips steps
 *     SUMS     bsp in rounds: all pushes are added up, then all are answered
 *
 * A worker sends BYE after its last step, with ssp also earlier (BYES). No worker waits for it
 * then. A worker that dies ends the plan for all, because the server's wait fails. In an elastic
 * job the workers meet again, and the dead one is restarted (RESTARTS, with SUMS). All continue
 * with the step and the weights of the worker that is ahead.
 *
 * run: -DWORKERS=3 -DSTEPS=3 -DCHUNKS=1 -DSSP -DSLACK=1 -DBYES=1 -DDEATHS=1
 * run: -DWORKERS=2 -DSTEPS=4 -DCHUNKS=2 -DWINDOW=2 -DSSP -DSLACK=2 -DBYES=1 -DDEATHS=1
 * run: -DWORKERS=2 -DSTEPS=3 -DCHUNKS=2 -DWINDOW=2 -DSSP -DSLACK=0 -DBYES=1 -DDEATHS=1
 * run: -DWORKERS=3 -DSTEPS=3 -DCHUNKS=1 -DBACKUPS=1 -DDEATHS=1
 * run: -DWORKERS=2 -DSTEPS=2 -DCHUNKS=2 -DWINDOW=2 -DBACKUPS=0 -DDEATHS=1
 * run: -DWORKERS=3 -DSTEPS=2 -DCHUNKS=2 -DWINDOW=2 -DSUMS -DDEATHS=1 -DRESTARTS=1
 * ends: -DWORKERS=2 -DSTEPS=2 -DCHUNKS=2 -DWINDOW=2 -DSUMS -DDEATHS=2 -DRESTARTS=2
 * ends: -DWORKERS=3 -DSTEPS=2 -DCHUNKS=1 -DSSP -DSLACK=1 -DBYES=1 -DDEATHS=1
 * fault too_stale: -DWORKERS=2 -DSTEPS=4 -DCHUNKS=1 -DSSP -DSLACK=1 -DFAULT_SLACK
 * fault deadlock: -DWORKERS=2 -DSTEPS=4 -DCHUNKS=1 -DSSP -DSLACK=1 -DBYES=1 -DFAULT_BYE
 * fault twice: -DWORKERS=2 -DSTEPS=2 -DCHUNKS=1 -DSSP -DSLACK=1 -DFAULT_REPEAT
 * fault mixed: -DWORKERS=3 -DSTEPS=3 -DCHUNKS=1 -DBACKUPS=1 -DFAULT_LATE
 * fault mixed: -DWORKERS=2 -DSTEPS=2 -DCHUNKS=2 -DWINDOW=2 -DSUMS -DFAULT_EARLY
 * fault twice: -DWORKERS=3 -DSTEPS=2 -DCHUNKS=1 -DSUMS -DDEATHS=1 -DRESTARTS=1 -DFAULT_SLOWEST
 * fault mixed: -DWORKERS=2 -DSTEPS=2 -DCHUNKS=1 -DSUMS -DDEATHS=1 -DRESTARTS=1 -DFAULT_OLD_PUSH
 */

#ifndef WINDOW
#define WINDOW 1
#endif
#ifndef DEATHS
#define DEATHS 0
#endif
#ifndef BYES
#define BYES 0
#endif
#ifndef RESTARTS
#define RESTARTS 0
#endif
#ifndef SLACK
#define SLACK 0
#endif
#ifndef BACKUPS
#define BACKUPS 0
#endif
#ifdef SSP
#define TO_ANSWER WORKERS
#else
#define TO_ANSWER (WORKERS - BACKUPS)
#endif
#define LEFT 255 /* the clock of a worker that has left */
#define BIT(i) (1 << (i))
#define HAS(set, i) (((set) >> (i)) & 1)
#define COUNT(set) (HAS(set, 0) + HAS(set, 1) + HAS(set, 2))

mtype = { PUSH, BYE };

chan push[WORKERS] = [WINDOW] of { mtype, byte, byte }; /* step, chunk */
chan pull[WORKERS] = [WINDOW] of { byte, byte };        /* chunk, steps that are over */

/* The server. */
chan waits[WORKERS] = [WINDOW] of { byte, byte }; /* step, chunk of each unanswered push */
byte clock[CHUNKS * WORKERS]; /* steps that the worker has pushed or skipped, for the chunk */
byte over[CHUNKS];            /* steps that are over */
byte added[CHUNKS];           /* workers whose push is in the present sum */
byte pushes[WORKERS];         /* SUMS: of this plan */
byte round[WINDOW];           /* SUMS: workers that have pushed in the round */
byte leavers;
bool failed; /* the plan has ended by an error */

/* A worker. */
byte step[WORKERS];
byte weights[WORKERS]; /* SUMS: the steps that its weights contain */
bool dead[WORKERS], out[WORKERS];

/* What was really applied: the steps of each worker's pushes, for each chunk. */
byte applied[CHUNKS * WORKERS];

byte deaths = DEATHS, byes = BYES, restarts = RESTARTS;

/* The properties: none of these is ever true. */
bool twice;     /* a push is applied twice, or weights get the sum of a step twice */
bool too_stale; /* an answer lacks a push that the mode promises */
bool mixed;     /* a sum has a push of another step, or not all that it needs */
bool refused;   /* the server refuses a push */

#define CLOCK(c, w) clock[(c) * WORKERS + (w)]
#define APPLIED(c, w) applied[(c) * WORKERS + (w)]
#define REACHED(c, goal) ((CLOCK(c, 0) >= (goal)) + (CLOCK(c, 1) >= (goal)) + THIRD(c, goal))
#if WORKERS > 2
#define THIRD(c, goal) (CLOCK(c, 2) >= (goal))
#define EACH(what) what(0) what(1) what(2)
#define ALL_OF(what) (what(0) && what(1) && what(2))
#else
#define THIRD(c, goal) 0
#define EACH(what) what(0) what(1)
#define ALL_OF(what) (what(0) && what(1))
#endif
#ifdef FAULT_SLACK
#define SLACK_USED (SLACK + 1)
#else
#define SLACK_USED SLACK
#endif
#define MAY_ANSWER(c, s) ((s) + 1 <= SLACK_USED || REACHED(c, (s) + 1 - SLACK_USED) >= TO_ANSWER)

/* -------- servers that own the parameters ----------------------------------------------------- */

#define LACKS_ONE(c, w, steps) ((APPLIED(c, w) & (BIT(steps) - 1)) != BIT(steps) - 1)

/* Whether the answer has all pushes that the mode promises, as counted by `applied`. */
inline check_answer(w, s, c)
{
    k = 0;
    n = 0;
    do
    :: k < WORKERS ->
#ifdef SSP
        too_stale = too_stale ||
                    (CLOCK(c, k) != LEFT && s + 1 > SLACK && LACKS_ONE(c, k, s + 1 - SLACK));
#else
        n = n + HAS(APPLIED(c, k), s);
#endif
        k++
    :: else -> break
    od;
#ifndef SSP
    too_stale = n < TO_ANSWER - leavers;
#endif
    assert(!too_stale);
    k = 0;
    n = 0
}

inline answer_all()
{
    i = 0;
    do
    :: i < WORKERS ->
        do
        :: nempty(waits[i]) ->
            waits[i]?<s, c>;
            if
            :: MAY_ANSWER(c, s) ->
                waits[i]?s, c;
                check_answer(i, s, c);
                if
                :: !dead[i] -> pull[i]!c, over[c]
                :: else
                fi
            :: else -> break
            fi
        :: empty(waits[i]) -> break
        od;
        i++
    :: else -> break
    od;
    i = 0;
    s = 0;
    c = 0
}

inline apply_push(w, s, c)
{
    twice = HAS(APPLIED(c, w), s);
    assert(!twice);
    APPLIED(c, w) = APPLIED(c, w) | BIT(s)
}

inline take_push(w)
{
    refused = s < CLOCK(c, w);
#ifndef SSP
    refused = refused || s > over[c];
#endif
    assert(!refused);
    CLOCK(c, w) = s + 1;
#ifdef SSP
    apply_push(w, s, c);
#ifdef FAULT_REPEAT
    apply_push(w, s, c);
#endif
#else
    if
#ifdef FAULT_LATE
    :: true ->
#else
    :: s >= over[c] ->
#endif
        mixed = s != over[c];
        assert(!mixed);
        added[c] = added[c] | BIT(w);
        apply_push(w, s, c);
        if
        :: REACHED(c, s + 1) >= TO_ANSWER -> over[c] = s + 1; added[c] = 0
        :: else
        fi
    :: else
    fi;
#endif
    waits[w]!s, c;
    answer_all()
}

inline take_bye(w)
{
    leavers++;
#ifndef FAULT_BYE
    c = 0;
    do
    :: c < CHUNKS -> CLOCK(c, w) = LEFT; c++
    :: else -> break
    od;
#endif
    answer_all()
}

/* -------- a server that sums ------------------------------------------------------------------ */

#ifdef FAULT_EARLY
#define ENOUGH (WORKERS - 1)
#else
#define ENOUGH WORKERS
#endif

inline take_summand(w)
{
    n = pushes[w] % WINDOW;
    refused = round[n] != 0 && (s != clock[n] || c != added[n]);
    assert(!refused);
    clock[n] = s; /* of the round's first push: step, chunk */
    added[n] = c;
    mixed = HAS(round[n], w) || s != step[w];
    assert(!mixed);
    round[n] = round[n] | BIT(w);
    pushes[w]++;
    if
    :: COUNT(round[n]) >= ENOUGH ->
        mixed = COUNT(round[n]) != WORKERS;
        assert(!mixed);
        round[n] = 0;
        clock[n] = 0;
        added[n] = 0;
        i = 0;
        do
        :: i < WORKERS ->
            if
            :: !dead[i] -> pull[i]!c, s + 1
            :: else
            fi;
            i++
        :: else -> break
        od;
        i = 0
    :: else
    fi;
    n = 0;
    s = 0;
    c = 0
}

/* -------- processes --------------------------------------------------------------------------- */

#ifdef SUMS
#define TAKE(w) take_summand(w)
#define MAY_LEAVE false
#else
#define TAKE(w) take_push(w)
#define MAY_LEAVE (byes > 0)
#endif
#define TAKES(w) \
    :: d_step { !failed && nempty(push[w]) -> \
        push[w]?kind, s, c; \
        if \
        :: kind == PUSH -> TAKE(w) \
        :: else -> take_bye(w) \
        fi; \
        kind = 0; s = 0; c = 0 }
#define FAILS(w) :: d_step { !failed && dead[w] -> failed = true }

#define RUNS (!failed && !dead[_pid])

active [WORKERS] proctype worker()
{
    byte sent, answered, least, c, o;
begin:
    least = LEFT;
train:
    if
    :: d_step {
        RUNS && step[_pid] < STEPS && sent < CHUNKS && sent - answered < WINDOW ->
        push[_pid]!PUSH, step[_pid], sent;
        sent++
    }
    :: d_step {
        !dead[_pid] && nempty(pull[_pid]) ->
        pull[_pid]?c, o;
        answered++;
        least = (o < least -> o : least);
        if
        :: answered == CHUNKS ->
#ifdef SUMS
            twice = HAS(weights[_pid], step[_pid]);
            assert(!twice);
            weights[_pid] = weights[_pid] | BIT(step[_pid]);
#endif
            step[_pid]++;
#if BACKUPS > 0
            step[_pid] = (least > step[_pid] -> least : step[_pid]);
#endif
            sent = 0;
            answered = 0;
            least = LEFT
        :: else
        fi;
        c = 0;
        o = 0
    }
    :: atomic { RUNS && step[_pid] == STEPS && sent == 0 -> goto bye }
    :: atomic { RUNS && MAY_LEAVE && step[_pid] > 0 && sent == 0 -> byes--; goto bye }
    :: atomic { !RUNS -> goto meet }
    fi;
    goto train;
bye:
    atomic { push[_pid]!BYE, 0, 0 };
meet: /* all workers are out, also the dead one; or the job ends */
    atomic {
        sent = 0;
        answered = 0;
        c = 0;
        out[_pid] = true
    };
end_of_plan:
    atomic { !out[_pid] -> goto begin }
}

active proctype server()
{
    mtype kind;
    byte s, c, i, k, n;
end_server:
    do
    EACH(TAKES)
    EACH(FAILS)
    od
}

#define IS_OUT(w) out[w]
#define DIES(w) \
    :: d_step { deaths > 0 && !dead[w] && !out[w] && !failed -> deaths--; dead[w] = true }
#ifdef FAULT_SLOWEST
#define NEXT(a, b) ((a) < (b) || (b) == LEFT)
#else
#define NEXT(a, b) ((a) > (b) || (b) == LEFT)
#endif

/* Deaths, and the meeting of all workers for the next plan. */
active proctype job()
{
    byte w, best, goes_on, sum;
    mtype kind;
    byte s, c;
end_job:
    do
    EACH(DIES)
    :: d_step {
        restarts > 0 && failed && ALL_OF(IS_OUT) ->
        restarts--;
        goes_on = LEFT;
        w = 0;
        do
        :: w < WORKERS ->
            if
            :: !dead[w] ->
                if
                :: NEXT(step[w], goes_on) -> goes_on = step[w]
                :: else
                fi;
                sum = sum | weights[w]
            :: else
            fi;
            w++
        :: else -> break
        od;
        goes_on = (goes_on == LEFT -> 0 : goes_on); /* all have died: from the beginning */
        w = 0;
        do
        :: w < WORKERS ->
            step[w] = goes_on;
            weights[w] = sum;
            dead[w] = false;
            out[w] = false;
            pushes[w] = 0;
#ifndef FAULT_OLD_PUSH
            do
            :: nempty(push[w]) -> push[w]?kind, s, c
            :: empty(push[w]) -> break
            od;
#endif
            do
            :: nempty(pull[w]) -> pull[w]?s, c
            :: empty(pull[w]) -> break
            od;
            w++
        :: else -> break
        od;
        w = 0;
        do
        :: w < WINDOW -> round[w] = 0; clock[w] = 0; w++
        :: else -> break
        od;
        w = 0;
        do
        :: w < CHUNKS -> added[w] = 0; w++
        :: else -> break
        od;
        w = 0;
        kind = 0;
        s = 0;
        c = 0;
        sum = 0;
        goes_on = 0;
        leavers = 0;
        failed = false
    }
    od
}
