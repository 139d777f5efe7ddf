#!/usr/bin/env bash
# test_hierarchical.sh [--short]: the hierarchical all-reduce on hosts of a virtual cluster with several
# ranks each. With --reduce-order ring its weights equal those of one process that plays all workers, to the bit. It refuses
# what it cannot do, in a line. A killed or stopped rank ends the run and is named.
#
# --short: one size of buckets, one transport, 6 steps, one killed rank. Other tests have the rest: test_equality.sh one
# host, test_allreduce.c zmq, mpi_bits.c MPI's transport, fault_trials.sh a host that is cut off. Skipped without namespaces.
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

# --- the same weights, to the bit ---------------------------------------------------------------------

steps=$((short ? 6 : 20))
training=(--model lenet --batch 8 --steps "$steps" --reduce-order ring)
sizes=(4 0.05)
transports=(zmq mpi tcp)
for buckets in "${sizes[@]:short}"; do # several, and so an all-reduce beside the computation
    train 0 "${training[@]}" --bucket-mb "$buckets" --backend none --virtual-workers 6
    expected=$weights
    for transport in "${transports[@]:short * 2}"; do
        weights_on "six workers over $transport" 6 -- "${training[@]}" --bucket-mb "$buckets" --transport "$transport"
        [[ $weights == "$expected" ]] || fail "over $transport: weights $weights, expected $expected, as by one process"
    done
done
counts=(2 3)
((!short)) || counts=()
for ranks in "${counts[@]}"; do # one host; one rank a host
    train 0 "${training[@]}" --backend none --virtual-workers "$ranks"
    expected=$weights
    weights_on "$ranks workers" "$ranks" --ranks-per-host $((ranks == 2 ? 2 : 1)) -- "${training[@]}"
    [[ $weights == "$expected" ]] || fail "$ranks workers: weights $weights, expected $expected, as by one process"
done
# In another order of addition the ranks of a host need not be neighbours. All ends alike, run after run.
weights_on "dealt out" 6 --map-by node -- --model lenet --batch 8 --steps $steps
expected=$weights
weights_on "dealt out, again" 6 --map-by node -- --model lenet --batch 8 --steps $steps
[[ $weights == "$expected" ]] || fail "dealt out: weights $expected and then $weights"

# What error feedback carries is that of ranks on these hosts: continued there, nothing differs; elsewhere it is dropped,
# which is said.
feedback=(--model lenet --batch 8 --compress fp16 --error-feedback on)
weights_on "error feedback, saved" 6 -- "${feedback[@]}" --steps 20 --checkpoint "$folder/carried" --checkpoint-steps 10
expected=$weights
rm "$folder"/carried/*00000020.checkpoint
cp -r "$folder/carried" "$folder/moved"
weights_on "error feedback, continued" 6 -- "${feedback[@]}" --steps 20 --checkpoint "$folder/carried" --resume=must
[[ $weights == "$expected" ]] || fail "error feedback, continued: weights $weights, expected $expected"
! grep -q "residuals" "$folder/log" || fail "error feedback, continued: differs from itself:"
weights_on "error feedback, moved" 6 --map-by node -- "${feedback[@]}" --steps 20 --checkpoint "$folder/moved" --resume=must
grep -q "residuals.*hierarchical on hosts 0 0 2 2 4 4.*hierarchical on hosts 0 1 2 0 1 2" "$folder/log" ||
    fail "error feedback, moved: is not said:"

# --- what it refuses ----------------------------------------------------------------------------------

refused() # WHAT WORDS RANKS [RUN-OPTION...] -- TRAIN-OPTION...
{
    on_hosts "${@:3}"
    launch "${command[@]}"
    expect_end "$1" 2 "$2"
    (($(grep -c 'error:' "$folder/log") == 1)) || fail "$1: more than one line:"
}

refused "unequal hosts" 'host0 has 2 of the workers and host2 1, expected as many on each host' 5 -- "${training[@]}"
refused "the ring's order, dealt out" 'the 2 workers of a host must be neighbours' 6 --map-by node -- "${training[@]}"

# --- a rank that is lost ------------------------------------------------------------------------------

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
    lost KILL 1 # beside rank 0
    lost STOP 5
fi
echo "test_hierarchical: weights alike, refusals in a line, lost ranks named"
