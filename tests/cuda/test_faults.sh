#!/usr/bin/env bash
# test_faults.sh PSRING_EMULATED MAKE_DATASET: CUDA fails at each call in turn (faults.h). Every time psring says so once,
# with CUDA's name of the error, ends with a failure, and has freed what it had allocated.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../train_lib.sh
. "$(dirname "$0")/../train_lib.sh"
options=(--backend none --device cuda --model lenet --batch 8 --steps 4 --data "$data")
export EMULATED_LEFT=$folder/left EMULATED_REACHED=$folder/reached

# freed WHAT: nothing is left of what the last run allocated.
freed()
{
    [[ ! -s $EMULATED_LEFT ]] || fail "$1: left behind: $(sort "$EMULATED_LEFT" | uniq -c | paste -sd, )"
    rm -f "$EMULATED_LEFT"
}

# fails_at KIND:N ERROR OPTION...: 1: nothing fails there any more.
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
        [[ ! -e $EMULATED_REACHED ]] || fail "$at: has failed, and all ends well:"
        return 1
    fi
    ((rc == 1)) || fail "$at: exit code $rc, expected 1:"
    errors=$(grep -c '^psring: error: ' "$folder/log") || true
    ((errors == 1)) || fail "$at: $errors messages, expected one:"
    grep -q "^psring: error: .*$error" "$folder/log" || fail "$at: no $error:"
    ! grep -q '^weights sha256' "$folder/log" || fail "$at: a result all the same:"
}

# walk WHAT KIND STEP LEAST ERROR OPTION...: the call 1, 1 + STEP, ... fails, until none does.
walk()
{
    local what=$1 kind=$2 step=$3 least=$4 error=$5 at
    shift 5
    for ((at = 1; at < 5000; at += step)); do
        fails_at "$kind:$at" "$error" "$@" || break
    done
    ((at > least)) || fail "$what: only $at calls, expected more than $least"
    echo "$what: each of $((at - 1)) calls has failed (every $step), and been told"
}

"$psring" train "${options[@]}" >"$folder/log" 2>&1 || fail "without a failure:"
freed "without a failure"
weights=$(sed -n 's/^weights sha256 //p' "$folder/log")
walk "allocations" alloc 1 20 cudaErrorMemoryAllocation
walk "calls" call 7 40 cudaErrorLaunchFailure --cuda-graph off
walk "calls of recorded steps" call 23 40 cudaErrorLaunchFailure --cuda-graph on

# Events that are found late change nothing.
EMULATED_LATE=5 "$psring" train "${options[@]}" >"$folder/log" 2>&1 || fail "late events:"
grep -qx "weights sha256 $weights" "$folder/log" || fail "late events: other weights than $weights:"
freed "late events"
echo "late events: ${weights:0:12}"
