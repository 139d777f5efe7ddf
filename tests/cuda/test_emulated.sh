#!/usr/bin/env bash
# test_emulated.sh PSRING MAKE_DATASET PSRING-AWARE: psring with the emulated CUDA device, as users run it:
# steps recorded or not, one process or two workers with staged buckets, to the same bits.
set -euo pipefail
psring=$1 make_dataset=$2 aware=$3
here=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/data"
"$make_dataset" "$scratch/data" 2000 300

# weights OPTION...: the weights' hash of a short run.
weights()
{
    "$@" --device cuda --share-gpu --model lenet --batch 8 --steps 5 --reduce-order "${order:-ring}" --data "$scratch/data" |
        sed -n 's/^weights sha256 //p'
}

# same NAME A B
same()
{
    [[ $2 && $2 == "$3" ]] || { echo "$1: weights '$2', expected '$3'" >&2 && exit 1; }
    echo "$1: ${2:0:12}"
}

plain=$(weights "$psring" train --backend none --cuda-graph off)
same "recorded steps" "$(weights "$psring" train --backend none --cuda-graph on)" "$plain"

# A step that cannot be recorded is launched kernel by kernel, and said to be; with "on" it is an error.
export EMULATED_CAPTURE_FAILS=1
same "not recorded" "$(weights "$psring" train --backend none --cuda-graph auto 2>"$scratch/log")" "$plain"
grep -q 'a step cannot be recorded as a graph' "$scratch/log" || { cat "$scratch/log" >&2 && exit 1; }
[[ -z $(weights "$psring" train --backend none --cuda-graph on 2>"$scratch/log") ]] ||
    { echo "--cuda-graph on went on without a graph" >&2 && exit 1; }
grep -q 'cuda-graph on: a step cannot be recorded' "$scratch/log" || { cat "$scratch/log" >&2 && exit 1; }
unset EMULATED_CAPTURE_FAILS

two=$(weights "$psring" train --backend none --virtual-workers 2)
same "ring, staged" "$(weights "$here/mpirun.sh" 2 "$psring" train --backend ring)" "$two"
same "ps, staged" "$(weights "$here/mpirun.sh" 3 "$psring" train --backend ps --servers 1)" "$two"
[[ $plain != "$two" ]]

# MPI_Allreduce of host memory and, where the library says that it may be given a GPU's, of that. Two
# summands: the order of adding does not matter.
staged=$(order=any weights "$here/mpirun.sh" 2 "$psring" train --backend mpi 2>"$scratch/staged")
direct=$(order=any weights "$here/mpirun.sh" 2 "$aware" train --backend mpi 2>"$scratch/direct")
same "mpi, staged" "$staged" "$two"
same "mpi, in place" "$direct" "$two"
said='memory is averaged where it is'
! grep "$said" "$scratch/staged" || { echo "an MPI library that is not CUDA-aware is given a GPU's memory" >&2 && exit 1; }
grep -q "$said" "$scratch/direct" || { cat "$scratch/direct" >&2 && echo "not averaged in place" >&2 && exit 1; }
