#!/usr/bin/env bash
# test_newcomers.sh: workers join a running job without servers (psring train --elastic --join). The weights equal those of
# a job with servers to which the same workers came after the same steps. Those that may not join get the reason, and
# the job continues.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
# shellcheck source-path=SCRIPTDIR source=../lib/ranks_lib.sh
. "$lib/ranks_lib.sh"
unset RANK WORLD_SIZE MASTER_ADDR MASTER_PORT
common=(--model mlp --batch 8 --data "$data" --timeout 20 --token t)

# begins RANKS OPTION...: starts the ranks of a job, whose rank 0 listens at $address.
begins()
{
    local rank ranks=$1
    shift
    address=tcp://127.0.0.1:$(free_port)
    rm -f "$folder"/worker.* "$folder/metrics"
    workers=()
    for ((rank = 0; rank < ranks; rank++)); do
        worker --elastic --rendezvous "$address" --rank $rank --world-size "$ranks" "$@"
    done
}

# worker OPTION...: starts the next worker. Its process is ${workers[NUMBER]}, its output is in $folder/worker.NUMBER.
limits=() # of the next one alone, as of ulimit
worker()
{
    local number=${#workers[@]}
    : >"$folder/worker.$number"
    (
        trap '' XFSZ
        ((${#limits[@]} == 0)) || ulimit "${limits[@]}"
        exec timeout --kill-after=5 200 "$psring" train "${common[@]}" --metrics "$folder/metrics.$number" "$@"
    ) >"$folder/worker.$number" 2>&1 &
    workers+=($!)
    limits=()
}

rows()
{
    tail -n 8 "$folder"/worker.*
}

# says NUMBER TEXT: waits until that worker has printed the text.
says()
{
    within grep -q -- "$2" "$folder/worker.$1" || fail "worker $1 does not say '$2': $(rows)"
}

# ends CODE NUMBER...: waits for these workers and checks their exit codes.
ends()
{
    local number code
    for number in "${@:2}"; do
        code=0
        wait "${workers[number]}" 2>/dev/null || code=$?
        ((code == $1)) || fail "worker $number: exit $code, expected $1: $(rows)"
    done
}

# signal NAME NUMBER...: sends the signal to these workers at one moment.
signal()
{
    local number pids=()
    for number in "${@:2}"; do
        pids+=("$(pgrep -P "${workers[number]}")")
    done
    kill "-$1" "${pids[@]}"
}

weights_of()
{
    cat "$folder"/worker.* | sed -n 's/^weights sha256 //p' | tail -n 1
}

# door_of NUMBER: where newcomers can join, as that worker has printed.
door_of()
{
    sed -nE 's/.*--join (tcp:[^ ]+) .*/\1/p' "$folder/worker.$1" | tail -n 1
}

# invited NUMBER: starts the next worker with the command that that worker has printed, and no option besides.
invited()
{
    local line common=()
    line=$(sed -n 's/.*workers can join: psring train //p' "$folder/worker.$1" | tail -n 1)
    line=${line/ --data DIR/ --data $data}
    line=${line/ --token TOKEN/ --token t}
    # shellcheck disable=SC2086  # several options
    worker $line
}

# The images in the weights, as the workers count their own.
account()
{
    cat "$folder"/worker.* | sed -nE 's/.*contain ([0-9]+) images of this worker.*/\1/p' | awk '{ sum += $1 } END { print sum }'
}

# Two come, and one of them leaves: the bits of a job with servers. They knock before all ranks are there.
address=tcp://127.0.0.1:$(free_port) workers=()
options=(--elastic --backend ring --steps 120 --compute real:20)
worker "${options[@]}" --rendezvous "$address" --rank 0 --world-size 2
worker "${options[@]}" --join "$address" --leave-after 90
worker "${options[@]}" --join "$address" --join-after 60
worker "${options[@]}" --rendezvous "$address" --rank 1 --world-size 2
ends 0 0 1 2 3
joined=() left=$(sed -nE 's/.*worker . on .* has left: . workers continue after step ([0-9]+)$/\1/p' "$folder/worker.0")
while read -r step; do
    joined+=("$step")
done < <(sed -nE 's/.* has joined: . workers continue after step ([0-9]+)$/\1/p' "$folder/worker.0")
((${#joined[@]} == 2 && left == 90 && joined[1] >= 60)) || fail "two join and one leaves after step 90: $(rows)"
! grep 'failed to average' "$folder"/worker.* || fail "a change as agreed looks like a failure: $(rows)"
found=$(weights_of)
images=$(account)
((images == (120 + 120 + left - joined[0] + 120 - joined[1]) * 8)) ||
    fail "the workers count $images images, joined after steps ${joined[*]}: $(rows)"

address=tcp://127.0.0.1:$(free_port)
timeout --kill-after=5 200 "$psring" serve --listen "$address" --workers 2 --token t >"$folder/serve" 2>&1 &
server=$!
within grep -q listens "$folder/serve" || fail "no server: $(cat "$folder/serve")"
rm -f "$folder"/worker.*
workers=() options=(--backend ps --reduce-order ring --steps 120 --join "$address")
for extra in "--join-after ${joined[0]} --leave-after $left" "--join-after ${joined[1]}" '' ''; do
    # shellcheck disable=SC2086  # several options
    worker "${options[@]}" $extra
    says $((${#workers[@]} - 1)) 'waits'
done
ends 0 0 1 2 3
wait "$server" || fail "the server: $(cat "$folder/serve")"
[[ $found == "$(weights_of)" ]] || fail "weights $found, with servers $(weights_of)"

# Those that may not join get the reason. The job goes on, also if a newcomer dies before or after it has joined.
begins 3 --backend rhd --steps 1000000 --log-steps 20
says 0 '^epoch'
exec 3<>"/dev/tcp/127.0.0.1/${address##*:}"
echo 'GET / HTTP/1.0' >&3
exec 3>&-
worker --elastic --backend rhd --steps 1000000 --log-steps 20 --join "$address" --batch 16
worker --elastic --backend rhd --steps 1000000 --log-steps 20 --join "$address" --token other
worker --elastic --backend rhd --steps 1000000 --log-steps 20 --rendezvous "$address" --rank 1 --world-size 3
ends 2 3 4 5
grep -q 'started with --batch=16, the job with --batch=8' "$folder/worker.3" || fail "another --batch: $(rows)"
grep -q 'belongs to another job' "$folder/worker.4" || fail "another --token: $(rows)"
grep -q 'another job has begun there' "$folder/worker.5" || fail "a second start: $(rows)"
options=(--elastic --backend rhd --steps 1000000 --log-steps 20)
worker "${options[@]}" --join "$address" --join-after 999999
says 6 'waits until'
signal KILL 6
invited 0
says 0 'worker 3 on .* has joined: 4 workers'
signal KILL 7
for number in 0 1 2; do
    says $number 'worker 3 on .* is lost or has left: 3 workers continue'
    grep 'error:' "$folder/worker.$number" && fail "worker $number names another than the lost worker 3: $(rows)"
done
ends 137 6 7
says 0 'continues after step [0-9]* with 3 workers: batch 3 x 8, lr '
(($(grep -c 'parameters, batch' "$folder/worker.0") == 1)) || fail "the training seems to begin again: $(rows)"
mkdir "$folder/other"
"$make_dataset" "$folder/other" 1000 300
worker "${options[@]}" --join "$address" --data "$folder/other"
ends 1 8
grep -q 'has other files' "$folder/worker.8" || fail "other data: $(rows)"

# Without rank 0, newcomers join at the address that its successor prints.
signal KILL 0
says 1 'workers can join'
address=$(door_of 1)
invited 1
says 1 'worker 2 on .* has joined: 3 workers'
worker "${options[@]}" --join "$address"
says 1 'worker 3 on .* has joined: 4 workers'

# A newcomer becomes worker 0, and lets others in.
signal TERM 1 2
says 9 'workers can join'
address=$(door_of 9)
worker "${options[@]}" --join "$address"
says 9 'worker . on .* has joined'
signal KILL 9 10 11
ends 0 1 2
ends 137 0 9 10 11

# Two come in one meeting.
begins 2 --backend ring --steps 150 --compute real:20
for number in 2 3; do
    worker --elastic --backend ring --steps 150 --compute real:20 --join "$address" --join-after 100
    says $number 'waits until'
done
ends 0 0 1 2 3
grep -q 'worker 3 on .* has joined: 4 workers' "$folder/worker.0" || fail "two come in one meeting: $(rows)"

# A newcomer that is stopped when its step comes costs the others no step.
begins 2 --backend ring --steps 150 --compute real:20
worker --elastic --backend ring --steps 150 --compute real:20 --join "$address" --join-after 100
says 2 'waits until'
signal STOP 2
ends 0 0 1
signal KILL 2
ends 137 2
(($(account) == 2 * 150 * 8)) || fail "a stopped newcomer: $(account) images, expected 2400: $(rows)"

# An epoch has a step of two workers, but none of three.
begins 2 --backend ring --batch 1000 --steps 1000000 --log-steps 1
says 0 '^epoch'
worker --elastic --backend ring --batch 1000 --steps 1000000 --log-steps 1 --join "$address"
ends 2 2
grep -q 'has 2 workers, and an epoch has no step for more' "$folder/worker.2" || fail "too many workers: $(rows)"
signal KILL 0 1
ends 137 0 1

# All leave after one step: the weights are lost, which is an error.
begins 3 --backend ring --steps 1000 --leave-after 5
ends 1 0 1 2
for number in 0 1 2; do
    grep -q 'all workers have left: the job has ended, and its weights are lost' "$folder/worker.$number" ||
        fail "worker $number does not say that the weights are lost: $(rows)"
done

# Rank 0 alone cannot write its metrics, and then a newcomer lacks file descriptors: the others continue.
limits=(-f 3)
begins 3 --backend ring --steps 1000000 --log-steps 1
ends 1 0
grep -q 'metrics.0: cannot be written' "$folder/worker.0" || fail "a full disk: $(rows)"
says 1 'worker 0 on .* is lost or has left: 2 workers continue'
says 1 'workers can join'
address=$(door_of 1)
limits=(-n 14)
invited 1
ends 1 3
grep -q 'needs about .* file descriptors' "$folder/worker.3" || fail "few descriptors: $(rows)"
says 1 'worker 2 on .* is lost or has left: 2 workers continue'
signal KILL 1 2
ends 137 1 2

# rounds NUMBER WORDS COUNT: whether that worker has printed the words so often, or that it gives up.
rounds()
{
    grep -q 'generations in a row failed' "$folder/worker.$1" || (($(grep -c "$2" "$folder/worker.$1") >= $3))
}

# Worker 2 is too slow for each step, and comes to each meeting: all give up. On a busy machine it may come too late.
for trial in 1 2 3; do
    begins 3 --backend ring --steps 1000000 --log-steps 1 --compute real:500 --timeout 1
    says 0 '^epoch'
    for round in 1 2 3 4 5 6; do
        signal STOP 2
        within rounds 0 'failed to average' "$round" || fail "a slow worker: $(rows)"
        signal CONT 2
        ! grep -q 'generations in a row failed' "$folder/worker.0" || break
        within rounds 0 'continues after step' "$round" || fail "a slow worker: $(rows)"
        ! grep -q 'worker 2 on .* is lost' "$folder/worker.0" || break
    done
    ! grep -q 'generations in a row failed' "$folder/worker.0" || break
    ((trial < 3)) || fail "the generations fail for ever: $(rows)"
    signal KILL 0 1 2 || true
    wait "${workers[@]}" 2>/dev/null || true
done
ends 1 0 1 2

worker --elastic --backend ring --join "$address" --startup-timeout 1
OMPI_COMM_WORLD_RANK=1 worker --elastic --rendezvous "$address" --rank 1 --world-size 2 --startup-timeout 1
ends 1 3 4
grep -q 'no worker of a job can be reached there' "$folder/worker.3" || fail "nobody there: $(rows)"
grep -q 'error: rendezvous' "$folder/worker.4" || fail "nobody there, and a launcher: $(rows)"
echo "newcomers: they join with the bits of a job with servers"
