#!/usr/bin/env bash
# test_live.sh ATTACK [MINUTES]: the program attack.c attacks psring while it waits and while it trains: `psring serve`
# with its workers, ranks that meet at a rendezvous, and a running ring and server over tcp and zmq, without --secure and
# with it. Each training ends with 0 and with the weights of an undisturbed run, and no process grows by more than its
# limits allow.
#
# Each round has other attacks. Without MINUTES there is one round, with a quarter of the attacks. The environment has
# PSRING and MAKE_DATASET (tests/lib/lib.sh).
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
# shellcheck source-path=SCRIPTDIR source=../lib/ranks_lib.sh
. "$lib/ranks_lib.sh"
attack=$1 minutes=${2:-0}
export ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=8
WORKERS=2 ATTACKS=1500 IDLE=2000
((minutes > 0)) || ATTACKS=400
# A listener keeps 64 connections that have not said hello, and a server 1,024 seats of 5 kB. ZeroMQ keeps a few kB for
# each connection, and attack.c has 400 open ones besides IDLE. Sanitizers and allocators need some memory, too.
GROWN_KB_MOST=65536
common=(--model lenet --batch 8 --log-steps 1 --reduce-order ring --token secret)

# end_children: only those that run, because another process may have the number of one that has ended.
end_children()
{
    local pids
    mapfile -t pids < <(jobs -pr)
    ((${#pids[@]} == 0)) || kill -KILL "${pids[@]}"
}
at_end end_children

# start NAME COMMAND...: start psring, with the keys $secure if it is not empty; its process is the last of $pids, and its output is in $folder/NAME.
start()
{
    : >"$folder/$1"
    PSRING_SECURE=$secure "$psring" "${@:2}" >"$folder/$1" 2>&1 &
    pids+=($!)
}

# says WORDS: wait until a process prints the words. All processes still run.
says()
{
    within said_or_ended "$1"
    grep -qe "$1" "$folder"/out.* || fail "$what: no '$1': $(tail -n 4 "$folder"/out.*)"
}

said_or_ended()
{
    grep -qe "$1" "$folder"/out.* || (($(jobs -pr | wc -l) < ${#pids[@]} + ${#idle[@]}))
}

# attacked OPTION...: attack the processes. False: one ended before the last attack.
attacked()
{
    "$attack" --seed $((seed++)) --keys "$others/tls.pem" "$@" "${pids[@]}" >"$folder/attack" 2>&1 || return 1
    bounded "$folder/attack"
    total=$((total + ATTACKS))
    handshakes=$((handshakes + $(sed -n 's/.* \([0-9]*\) handshakes.*/\1/p' "$folder/attack")))
}

# bounded FILE: the memory in attack.c's output FILE.
bounded()
{
    local grown
    grown=$(sed -n 's/.*memory grew by \([0-9]*\) kB.*/\1/p' "$1")
    ((grown <= GROWN_KB_MOST)) || fail "$what: a process grew by $grown kB, expected at most $GROWN_KB_MOST"
}

# idle: from now on the processes have IDLE silent connections, until one of them ends.
idle()
{
    local out=$folder/idle.${#idle[@]}
    : >"$out"
    "$attack" --idle $IDLE 0 "${pids[@]}" >"$out" 2>&1 &
    idle+=($!)
    within grep -q idle "$out" || fail "$what: no connections: $(cat "$out")"
}

# all_end: every process ends with 0.
all_end()
{
    local pid code i
    for pid in "${pids[@]}"; do
        code=0
        wait "$pid" || code=$?
        ((code == 0)) || fail "$what: exit $code: $(tail -n 4 "$folder"/out.*)"
    done
    for i in "${!idle[@]}"; do
        wait "${idle[i]}" || true # 1: a process has ended
        bounded "$folder/idle.$i"
    done
}

# serve STEPS: a server is attacked before it has workers, with idle connections, and while they train. From the first
# step on, half of the attackers know the token. Sets $in_time.
serve()
{
    local address i
    address=tcp://127.0.0.1:$(free_port)
    start out.serve serve --listen "$address" --workers $WORKERS --token secret
    says listens
    attacked $ATTACKS || fail "$what: the server has ended: $(cat "$folder/out.serve")"
    idle
    for ((i = 0; i < WORKERS; i++)); do
        start out.$i train --data "$data" --backend ps --join "$address" "${common[@]}" --steps "$1" --compute real:40
    done
    says '^epoch'
    attacked --token secret $ATTACKS || in_time=0
}

# met STEPS OPTION...: rank 0 is attacked while it waits for the others, with idle connections, and all ranks are while
# they train. With --secure half of the attackers know the token: one hello that rank 0 reads would end the start.
met()
{
    local steps=$1 port rank world=$WORKERS place token=()
    shift
    [[ ! $secure ]] || token=(--token secret)
    [[ $1 != ps ]] || world=$((WORKERS + 1))
    port=$(free_port)
    for ((rank = 0; rank < world; rank++)); do
        place=(--rendezvous "tcp://127.0.0.1:$port" --rank "$rank" --world-size "$world")
        start out.$rank train --data "$data" --backend "$@" "${common[@]}" --steps "$steps" --compute real:40 "${place[@]}"
        ((rank == 0)) || continue
        within listens_at "$port" || fail "$what: rank 0 does not listen: $(cat "$folder/out.0")"
        attacked "${token[@]}" $ATTACKS || fail "$what: rank 0 has ended: $(cat "$folder/out.0")"
        idle
    done
    says '^epoch'
    attacked "${token[@]}" $ATTACKS || in_time=0
    idle
}

# listens_at PORT: without a connection, because rank 0 would report it.
# shellcheck disable=SC2317 # called by within
listens_at()
{
    grep -qi ":$(printf %04X "$1") [0-9a-f:]* 0A" /proc/net/tcp /proc/net/tcp6
}

# round WHAT COMMAND...: until a run takes longer than its attacks, each run has twice the steps of the last one.
declare -A expected # the weights, by number of steps
round()
{
    local steps=150 in_time tries pids idle
    what=$1
    for ((tries = 1; ; tries++, steps *= 2)); do
        if [[ ! ${expected[$steps]:-} ]]; then
            train 0 "${common[@]}" --steps $steps --backend none --virtual-workers $WORKERS
            expected[$steps]=$weights
        fi
        pids=() idle=() in_time=1
        rm -f "$folder"/out.*
        "$2" $steps "${@:3}"
        all_end
        [[ ! $secure ]] || ! grep -e 'was refused' -e 'was not let in' "$folder"/out.* >"$folder/log" ||
            fail "$what: a hello without the keys was read:"
        weights=$(cat "$folder"/out.* | sed -n 's/^weights sha256 //p')
        [[ $weights == "${expected[$steps]}" ]] || fail "$what: weights $weights, expected ${expected[$steps]}"
        ((!in_time)) || return 0
        ((tries < 5)) || fail "$what: $tries runs ended before the attacks"
    done
}

others=$folder/others
"$psring" keys "$folder/keys" >/dev/null
"$psring" keys "$others" >/dev/null
seed=1 total=0 handshakes=0 rounds=0
until ((rounds > 0 && SECONDS >= 60 * minutes)); do
    for secure in '' "$folder/keys"; do
        round "psring serve${secure:+ --secure}" serve
        round "ring over tcp${secure:+, --secure}" met ring --transport tcp --elastic
        round "ring over zmq${secure:+, --secure}" met ring --transport zmq
    done
    secure=''
    round "server over zmq" met ps --transport zmq
    rounds=$((rounds + 1))
done
((handshakes > 0)) || fail 'no attack got through a handshake of TLS with other keys'
echo "live: $total attacks in $rounds rounds, $handshakes handshakes with other keys, the same weights"
