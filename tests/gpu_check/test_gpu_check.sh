#!/usr/bin/env bash
# test_gpu_check.sh COMPARE_WEIGHTS: gpu_check.sh on a machine that appears to have no GPU, and compare_weights, which
# prints the relative distance of two runs' weights.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
compare_weights=$1
check=$root/experiments/gpu_check.sh

# refused EXIT-CODE WORDS COMMAND...: the command ends with this exit code and prints one line with these words.
refused()
{
    local expected=$1 words=$2 rc=0
    shift 2
    "$@" >"$folder/log" 2>&1 || rc=$?
    ((rc == expected)) || fail "$*: exit code $rc, expected $expected:"
    (($(wc -l <"$folder/log") == 1)) || fail "$*: expected one line:"
    grep -q -e "$words" "$folder/log" || fail "$*: no '$words' in:"
}

mkdir "$folder/bin"
printf '#!/bin/sh\necho "No devices were found"\nexit 6\n' >"$folder/bin/nvidia-smi"
chmod +x "$folder/bin/nvidia-smi"
PATH=$folder/bin:$PATH
refused 77 'no GPU on this machine' "$check" --out "$folder/out" --build "$folder/build"
[[ ! -e $folder/out && ! -e $folder/build ]] || fail "without a GPU it created a folder:"
refused 2 "unknown argument '--fast'" "$check" --fast
refused 2 '--data needs a folder' "$check" --data
refused 2 "unknown option '--fast'" "$root/experiments/gpu_check/prefix.sh" --fast

# Another order of addition changes only the last bits. Another seed changes all.
relative() # NAME-A NAME-B
{
    "$compare_weights" "$folder/$1/mlp.step-00000020.checkpoint" "$folder/$2/mlp.step-00000020.checkpoint" | sed 's/^relative //'
}
run() # NAME OPTION...
{
    local name=$1
    shift
    train 3 --model mlp --batch 20 --steps 20 --checkpoint "$folder/$name" "$@"
}
run ring --backend ring
run mpi --backend mpi
run seed --backend ring --seed 2
[[ $(relative ring ring) == 0 ]] || fail "a run compared with itself: found $(relative ring ring), expected 0"
awk -v d="$(relative ring mpi)" 'BEGIN { exit !(d < 1e-5) }' ||
    fail "mpi and ring: found $(relative ring mpi), expected less than 1e-5"
awk -v d="$(relative ring seed)" 'BEGIN { exit !(d > 0.1) }' ||
    fail "another seed: found $(relative ring seed), expected more than 0.1"
! "$compare_weights" "$folder/ring/mlp.step-00000020.checkpoint" "$folder/none" >"$folder/log" 2>&1 ||
    fail "compare_weights accepted a missing checkpoint:"
