#!/usr/bin/env bash
# test_emulated.sh PSRING-AWARE: psring with the emulated CUDA device, as users run it. Recorded and unrecorded steps
# give the same bits. Two workers with staged buckets give the bits of one process that plays both.
set -euo pipefail
test_images=100
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
aware=$1
options=(--device cuda --share-gpu --model lenet --batch 8 --steps 5)
ordered=("${options[@]}" --reduce-order ring)

# same NAME EXPECTED: compare the weights of the last run.
same()
{
    [[ $weights == "$2" ]] || fail "$1: weights '$weights', expected '$2':"
    echo "$1: ${weights:0:12}"
}

says() # WORDS: the last run printed them
{
    grep -q -e "$1" "$folder/log" || fail "no '$1' in:"
}

train 0 --backend none --cuda-graph off "${ordered[@]}"
plain=$weights
train 0 --backend none --cuda-graph on "${ordered[@]}"
same "recorded steps" "$plain"

# A variable that overrides the precision is named in the log.
for override in NVIDIA_TF32_OVERRIDE=1 CUBLAS_EMULATE_SINGLE_PRECISION=1; do
    export "${override?}"
    train 0 --backend none "${ordered[@]}"
    says "$override is set: cuBLAS may compute in another precision"
    unset "${override%=*}"
done

# A GPU's threads run in any order. In some kernels the last thread adds the values of all threads.
EMULATED_ORDER=backwards train 0 --backend none --cuda-graph off "${ordered[@]}"
same "threads backwards" "$plain"

# If a step cannot be recorded, its kernels are launched one by one, with a warning. With "on" this is an error.
export EMULATED_CAPTURE_FAILS=1
train 0 --backend none --cuda-graph auto "${ordered[@]}"
same "not recorded" "$plain"
says 'a step cannot be recorded as a graph'
! "$psring" train --data "$data" --backend none --cuda-graph on "${ordered[@]}" >"$folder/log" 2>&1 ||
    fail "--cuda-graph on continued without a graph:"
says 'cuda-graph on: a step cannot be recorded'
unset EMULATED_CAPTURE_FAILS

train 0 --backend none --virtual-workers 2 "${ordered[@]}"
two=$weights
[[ $plain != "$two" ]] || fail "two workers have the weights of one:"
train 2 --backend ring "${ordered[@]}"
same "ring, staged" "$two"
train 3 --backend ps --servers 1 "${ordered[@]}"
same "ps, staged" "$two"

# MPI_Allreduce uses host memory, or GPU memory if the library reports that it is CUDA-aware. Two summands: the order
# of addition does not matter.
in_place='memory is averaged in place'
train 2 --backend mpi "${options[@]}"
same "mpi, staged" "$two"
! grep -q "$in_place" "$folder/log" || fail "an MPI library that is not CUDA-aware gets GPU memory:"
psring=$aware train 2 --backend mpi "${options[@]}"
same "mpi, in place" "$two"
says "$in_place"
