#!/usr/bin/env bash
# test_emulated.sh PSRING-AWARE: psring with the emulated CUDA device, as users run it:
# steps recorded or not, one process or two workers with staged buckets, to the same bits.
set -euo pipefail
test_images=100
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
aware=$1
options=(--device cuda --share-gpu --model lenet --batch 8 --steps 5)
ordered=("${options[@]}" --reduce-order ring)

# same NAME EXPECTED: the weights of the last run.
same()
{
    [[ $weights == "$2" ]] || fail "$1: weights '$weights', expected '$2':"
    echo "$1: ${weights:0:12}"
}

says() # WORDS: the last run.
{
    grep -q -e "$1" "$folder/log" || fail "no '$1' in:"
}

train 0 --backend none --cuda-graph off "${ordered[@]}"
plain=$weights
train 0 --backend none --cuda-graph on "${ordered[@]}"
same "recorded steps" "$plain"

# What overrides the precision is in the log.
for override in NVIDIA_TF32_OVERRIDE=1 CUBLAS_EMULATE_SINGLE_PRECISION=1; do
    export "${override?}"
    train 0 --backend none "${ordered[@]}"
    says "$override is set: cuBLAS and cuDNN may compute in another precision"
    unset "${override%=*}"
done

# A GPU's threads come in any order, and the last one of some adds what all of them have.
EMULATED_ORDER=backwards train 0 --backend none --cuda-graph off "${ordered[@]}"
same "threads backwards" "$plain"

# A step that cannot be recorded is launched kernel by kernel, and said to be; with "on" it is an error.
export EMULATED_CAPTURE_FAILS=1
train 0 --backend none --cuda-graph auto "${ordered[@]}"
same "not recorded" "$plain"
says 'a step cannot be recorded as a graph'
! "$psring" train --data "$data" --backend none --cuda-graph on "${ordered[@]}" >"$folder/log" 2>&1 ||
    fail "--cuda-graph on went on without a graph:"
says 'cuda-graph on: a step cannot be recorded'
unset EMULATED_CAPTURE_FAILS

train 0 --backend none --virtual-workers 2 "${ordered[@]}"
two=$weights
[[ $plain != "$two" ]] || fail "two workers train as one:"
train 2 --backend ring "${ordered[@]}"
same "ring, staged" "$two"
train 3 --backend ps --servers 1 "${ordered[@]}"
same "ps, staged" "$two"

# MPI_Allreduce of host memory and, where the library says that it may be given a GPU's, of that. Two
# summands: the order of adding does not matter.
in_place='memory is averaged in place'
train 2 --backend mpi "${options[@]}"
same "mpi, staged" "$two"
! grep -q "$in_place" "$folder/log" || fail "an MPI library that is not CUDA-aware is given a GPU's memory:"
psring=$aware train 2 --backend mpi "${options[@]}"
same "mpi, in place" "$two"
says "$in_place"
