#!/usr/bin/env bash
# test_hierarchical.sh [--short]: the hierarchical all-reduce on hosts of a virtual cluster with several ranks each.
# With --reduce-order ring its weights equal those of one process that plays all workers, bit by bit. It refuses
# impossible arrangements in one line. A killed or stopped rank ends the run and is named.
#
# --short: one bucket size, one transport, 6 steps, one killed rank. Other tests cover the rest: test_equality.sh one
# host, test_allreduce.c zmq, mpi_bits.c MPI's transport, fault_trials.sh an isolated host. Skipped without namespaces.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
needs_namespaces
psring=$(realpath "$psring")
cluster_up 3x2 none

on_hosts() # RANKS [RUN-OPTION...] -- TRAIN-OPTION...
{
    local ranks=$1 options=()
    shift
    while [[ $1 != -- ]]; do
        options+=("$1")
        shift
    done
    command=("$vcluster" run --name "$cluster" -n "$ranks" "${options[@]}" -- "$psring" train --data "$data"
        --backend hierarchical "${@:2}")
}

weights_on() # WHAT RANKS [RUN-OPTION...] -- TRAIN-OPTION...
{
    on_hosts "${@:2}"
    "${command[@]}" >"$folder/log" 2>&1 || fail "$1 failed:"
    weights=$(sed -n 's/^weights sha256 //p' "$folder/log")
    [[ $weights =~ ^[0-9a-f]{64}$ ]] || fail "$1: no sum of the weights in:"
}

# --- the same weights, bit by bit ---------------------------------------------------------------------

steps=$((short ? 6 : 20))
training=(--model lenet --batch 8 --steps "$steps" --reduce-order ring)
sizes=(4 0.05)
transports=(zmq mpi tcp)
for buckets in "${sizes[@]:short}"; do # small ones: several all-reduces during the computation
    train 0 "${training[@]}" --bucket-mb "$buckets" --backend none --virtual-workers 6
    expected=$weights
    for transport in "${transports[@]:short * 2}"; do
        weights_on "six workers over $transport" 6 -- "${training[@]}" --bucket-mb "$buckets" --transport "$transport"
        [[ $weights == "$expected" ]] || fail "over $transport: weights $weights, expected those of one process, $expected"
    done
done
counts=(2 3)
((!short)) || counts=()
for ranks in "${counts[@]}"; do # one host; then one rank on each host
    train 0 "${training[@]}" --backend none --virtual-workers "$ranks"
    expected=$weights
    weights_on "$ranks workers" "$ranks" --ranks-per-host $((ranks == 2 ? 2 : 1)) -- "${training[@]}"
    [[ $weights == "$expected" ]] || fail "$ranks workers: weights $weights, expected those of one process, $expected"
done
# With a different order of addition the ranks of a host need not be neighbours. Repeated runs have the same result.
weights_on "dealt out" 6 --map-by node -- --model lenet --batch 8 --steps $steps
expected=$weights
weights_on "dealt out, again" 6 --map-by node -- --model lenet --batch 8 --steps $steps
[[ $weights == "$expected" ]] || fail "dealt out: weights $expected and then $weights"

# The residuals of error feedback belong to the ranks of these hosts. Resumed on the same hosts the run has the same
# weights. On other hosts the residuals are dropped, with a warning.
feedback=(--model lenet --batch 8 --compress fp16 --error-feedback on)
weights_on "error feedback, saved" 6 -- "${feedback[@]}" --steps 20 --checkpoint "$folder/carried" --checkpoint-steps 10
expected=$weights
rm "$folder"/carried/*00000020.checkpoint
cp -r "$folder/carried" "$folder/moved"
weights_on "error feedback, continued" 6 -- "${feedback[@]}" --steps 20 --checkpoint "$folder/carried" --resume=must
[[ $weights == "$expected" ]] || fail "error feedback, continued: weights $weights, expected $expected"
! grep -q "residuals" "$folder/log" || fail "error feedback, continued: the residuals were reported as different:"
weights_on "error feedback, moved" 6 --map-by node -- "${feedback[@]}" --steps 20 --checkpoint "$folder/moved" --resume=must
grep -q "residuals.*hierarchical on hosts 0 0 2 2 4 4.*hierarchical on hosts 0 1 2 0 1 2" "$folder/log" ||
    fail "error feedback, moved: no warning:"

# --- refused arrangements -----------------------------------------------------------------------------

refused() # WHAT WORDS RANKS [RUN-OPTION...] -- TRAIN-OPTION...
{
    on_hosts "${@:3}"
    launch "${command[@]}"
    expect_end "$1" 2 "$2"
    (($(grep -c 'error:' "$folder/log") == 1)) || fail "$1: expected one error line:"
}

refused "unequal hosts" 'host0 has 2 of the workers and host2 1, expected as many on each host' 5 -- "${training[@]}"
refused "the ring's order, dealt out" 'the 2 workers of a host must be neighbours' 6 --map-by node -- "${training[@]}"

# --- a lost rank --------------------------------------------------------------------------------------

process_of() # RANK HOST
{
    local pid
    for pid in $(ip netns pids "psring-$cluster-$2"); do
        [[ $(cat "/proc/$pid/comm" 2>/dev/null) == psring ]] &&
            grep -qzx "OMPI_COMM_WORLD_RANK=$1" "/proc/$pid/environ" && echo "$pid" && return
    done
    fail "no process of rank $1 on host$2:"
}

lost() # SIGNAL RANK
{
    local host=$(($2 / 2))
    on_hosts 6 -- --model mlp --batch 25 --steps 1000000 --timeout 20 --log-steps 1
    launch "${command[@]}"
    wait_for "a training" '^epoch'
    kill "-$1" "$(process_of "$2" $host)"
    expect_end "rank $2, SIG$1" failure "rank $2 on host$host"
    last_line "$folder/log" | grep -q "rank $2 on host$host" || fail "rank $2, SIG$1: not named in the last line:"
    [[ -z $(for host in 0 1 2; do ip netns pids "psring-$cluster-$host"; done) ]] || fail "rank $2, SIG$1: processes are left"
}

lost KILL 4
if ((!short)); then
    lost KILL 1 # on the host of rank 0
    lost STOP 5
fi
echo "test_hierarchical: equal weights, refusals in one line, lost ranks named"
