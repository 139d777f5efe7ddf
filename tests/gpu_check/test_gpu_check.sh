#!/usr/bin/env bash
# test_gpu_check.sh COMPARE_WEIGHTS: the check for machines with a GPU, on one that
# is made to look as if it had none; and the tool that says how far two runs' weights are apart.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
compare_weights=$1
check=$root/experiments/gpu_check.sh

# refused EXIT-CODE WORDS COMMAND...: one line, and nothing left behind.
refused()
{
    local expected=$1 words=$2 rc=0
    shift 2
    "$@" >"$folder/log" 2>&1 || rc=$?
    ((rc == expected)) || fail "$*: exit code $rc, expected $expected:"
    (($(wc -l <"$folder/log") == 1)) || fail "$*: more than one line:"
    grep -q -e "$words" "$folder/log" || fail "$*: no '$words' in:"
}

mkdir "$folder/bin"
printf '#!/bin/sh\necho "No devices were found"\nexit 6\n' >"$folder/bin/nvidia-smi"
chmod +x "$folder/bin/nvidia-smi"
PATH=$folder/bin:$PATH
refused 77 'no GPU on this machine' "$check" --out "$folder/out" --build "$folder/build"
[[ ! -e $folder/out && ! -e $folder/build ]] || fail "without a GPU something was made:"
refused 2 "unknown argument '--fast'" "$check" --fast
refused 2 '--data needs a folder' "$check" --data
refused 2 "unknown option '--fast'" "$root/experiments/gpu_check/prefix.sh" --fast

# Two orders of adding up differ in the last bits only; another seed, in all.
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
[[ $(relative ring ring) == 0 ]] || fail "a run is $(relative ring ring) apart from itself"
awk -v d="$(relative ring mpi)" 'BEGIN { exit !(d < 1e-5) }' ||
    fail "mpi is $(relative ring mpi) apart from ring"
awk -v d="$(relative ring seed)" 'BEGIN { exit !(d > 0.1) }' ||
    fail "another seed is only $(relative ring seed) apart"
! "$compare_weights" "$folder/ring/mlp.step-00000020.checkpoint" "$folder/none" >"$folder/log" 2>&1 ||
    fail "a missing checkpoint was compared:"
