#!/usr/bin/env bash
# test_equality.sh [--short]: with --reduce-order ring all backends give the same weights, to the bit, after 100 steps.
# These are the parameter server, the ring and the hierarchical all-reduce on all transports, and one process that plays
# all workers. test_hierarchical.sh has several hosts. Trains on the data in PSRING_DATA, or on made-up images.
#
# --short: three workers, 20 steps of made-up images, and fewer backends and transports.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
steps=20
((short)) || { steps=100 && data=${PSRING_DATA:-$data}; }
common=(--model lenet --batch 8 --steps "$steps" --reduce-order ring)

check() # WHAT: $weights must be $expected
{
    [[ $weights == "$expected" ]] || fail "$1: weights $weights, expected $expected as with one process"
}

sums=()
counts=(2 4 3)
for workers in "${counts[@]:short * 2}"; do
    train 0 "${common[@]}" --backend none --virtual-workers "$workers"
    expected=$weights
    sums+=("$expected")
    for transport in zmq mpi tcp; do
        train "$workers" "${common[@]}" --backend ring --transport $transport
        check "ring, $transport, $workers workers"
        ((!short)) || [[ $transport == tcp ]] || continue
        train "$workers" "${common[@]}" --backend hierarchical --transport $transport
        check "hierarchical, $transport, $workers workers"
        train $((workers + 1)) "${common[@]}" --backend ps --transport $transport
        check "ps, one dedicated server, $transport, $workers workers"
    done
    train "$workers" "${common[@]}" --backend ps --servers "$workers" --placement colocated
    check "ps, $workers colocated servers, $workers workers"
done
train 0 "${common[@]}" --backend none --virtual-workers 5
sums=("$weights" "${sums[@]}")
(($(printf '%s\n' "${sums[@]}" | sort -u | wc -l) == ${#sums[@]})) ||
    fail "the number of workers made no difference: ${sums[*]}"

# Optimizers that count their steps (adam) or need whole tensors (lars), with several buckets.
optimizers=(adam lars)
for optimizer in "${optimizers[@]:short}"; do
    train 0 "${common[@]}" --bucket-mb 0.05 --backend none --virtual-workers 3 --optimizer "$optimizer"
    expected=$weights
    train 3 "${common[@]}" --bucket-mb 0.05 --backend ring --optimizer "$optimizer"
    check "ring, several buckets, 3 workers, $optimizer"
    train 4 "${common[@]}" --bucket-mb 0.05 --backend ps --optimizer "$optimizer"
    check "ps, several buckets, 3 workers, $optimizer"
done

# With several buckets the chunks differ, and so does the order of addition.
train 0 "${common[@]}" --bucket-mb 0.05 --backend none --virtual-workers 3
expected=$weights
[[ $expected != "${sums[-1]}" ]] || fail "buckets of 0.05 MB changed no sum: is there more than one?"
train 3 "${common[@]}" --bucket-mb 0.05 --backend ring
check "ring, several buckets, 3 workers"
train 4 "${common[@]}" --bucket-mb 0.05 --backend ps
check "ps, several buckets, 3 workers"
