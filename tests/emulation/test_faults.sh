#!/usr/bin/env bash
# test_faults.sh [--short]: CUDA fails at each call in turn (faults.h). Every time psring prints one error with CUDA's
# name of it, ends with a failure, and has freed all its allocations. Then CUDA delays its work: the results stay the
# same. --short: CUDA fails at one of several calls.
set -euo pipefail
test_images=100
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
options=(--backend none --device cuda --model lenet --batch 8 --steps 4 --data "$data")
export EMULATED_LEFT=$folder/left EMULATED_REACHED=$folder/reached

# freed WHAT: the last run has freed all its allocations.
freed()
{
    [[ ! -s $EMULATED_LEFT ]] || fail "$1: left behind: $(sort "$EMULATED_LEFT" | uniq -c | paste -sd, )"
    rm -f "$EMULATED_LEFT"
}

# fails_at KIND:N ERROR OPTION...: run with this fault. Returns 1 if the run has fewer than N such calls.
fails_at()
{
    local at=$1 error=$2 rc=0 errors
    shift 2
    rm -f "$EMULATED_REACHED"
    EMULATED_FAIL=$at timeout 60 "$psring" train "${options[@]}" "$@" >"$folder/log" 2>&1 || rc=$?
    freed "$at"
    if ((rc == 0)); then
        # A step that cannot be recorded as a graph is launched kernel by kernel.
        grep -q 'cannot be recorded as a graph' "$folder/log" && return 0
        [[ ! -e $EMULATED_REACHED ]] || fail "$at: a call failed, but the run ended with 0:"
        return 1
    fi
    ((rc == 1)) || fail "$at: exit code $rc, expected 1:"
    errors=$(grep -c '^psring: error: ' "$folder/log") || true
    ((errors == 1)) || fail "$at: $errors messages, expected one:"
    grep -q "^psring: error: .*$error" "$folder/log" || fail "$at: no $error:"
    ! grep -q '^weights sha256' "$folder/log" || fail "$at: a result despite the failure:"
}

# walk WHAT KIND STEP LEAST ERROR OPTION...: call 1, 1 + STEP, ... fails, until a run has no such call.
walk()
{
    local what=$1 kind=$2 step=$3 least=$4 error=$5 at
    shift 5
    for ((at = 1; at < 5000; at += step)); do
        fails_at "$kind:$at" "$error" "$@" || break
    done
    ((at > least)) || fail "$what: only $at calls, expected more than $least"
    echo "$what: of $((at - 1)) calls every $step-th failed and was reported"
}

"$psring" train "${options[@]}" >"$folder/log" 2>&1 || fail "without a failure:"
freed "without a failure"
# shellcheck disable=SC2154 # lib.sh sets short
walk "allocations" alloc $((short ? 3 : 1)) 20 cudaErrorMemoryAllocation
# shellcheck disable=SC2154
walk "calls" call $((short ? 29 : 1)) 40 cudaErrorLaunchFailure --cuda-graph off
# shellcheck disable=SC2154
walk "calls of recorded steps" call $((short ? 23 : 1)) 40 cudaErrorLaunchFailure --cuda-graph on

# Delayed work gives the same weights, so psring does not read a result too early, or overwrite a source too early. With
# several ranks each has a separate GPU, all on one machine.
export EMULATED_GPUS=0000:3b:00.0,0000:5e:00.0
late() # WHAT RANKS OPTION...
{
    local what=$1 ranks=$2 expected
    shift 2
    train "$ranks" --device cuda --model lenet --batch 8 --steps 12 --bucket-mb 0.05 "$@"
    expected=$weights
    freed "$what"
    EMULATED_LATE=5 train "$ranks" --device cuda --model lenet --batch 8 --steps 12 --bucket-mb 0.05 "$@"
    [[ $weights == "$expected" ]] || fail "$what: weights $weights with delayed work, $expected without:"
    freed "$what, delayed"
    echo "delayed: $what: ${weights:0:12}"
}
late "recorded steps" 0 --backend none --cuda-graph on
late "kernel by kernel" 0 --backend none --cuda-graph off --optimizer adam
late "loaders" 0 --backend none --data-threads 2 --augment shift:1
late "ring" 2 --backend ring
late "ring, fp16" 2 --backend ring --compress fp16
late "a server" 3 --backend ps --reduce-order ring
late "servers inside" 2 --backend ps --servers 2 --placement colocated --reduce-order ring
