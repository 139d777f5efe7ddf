#!/usr/bin/env bash
# test_ranges.sh PSRING_EMULATED LIBRARY: checks the ranges that psring reports to a profiler, with a stand-in for the
# profiler (nvtx.c): their names, their counts, and their nesting.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
emulated=$1
export NVTX_INJECTION64_PATH=$2 NVTX_LOG=$folder/ranges

# trace WHAT PROCESSES STEPS COMMAND...: run the command and check the log of each of its processes.
trace()
{
    local what=$1 processes=$2 steps=$3 log logs
    shift 3
    "$@" --model lenet --batch 8 --steps "$steps" --data "$data" >"$folder/log" 2>&1 || fail "$what: psring failed:"
    logs=("$folder"/ranges.*)
    ((${#logs[@]} == processes)) || fail "$what: ${#logs[@]} processes reported ranges, expected $processes"
    for log in "${logs[@]}"; do
        awk -v steps="$steps" '
            function fail(text) { print FILENAME ":" FNR ": " text; bad = 1; exit 1 }
            { name = substr($0, length($1 $2 $3) + 4) }
            $2 == "push" {
                depth[$1]++
                stack[$1, depth[$1]] = name
                count[name]++
                if (name == "step")
                    step_thread = $1
                if (name ~ /^backward / && stack[$1, 1] != "step")
                    fail(name " outside of a step")
                if (name ~ /allreduce$/) {
                    bucket = name
                    sub(/ allreduce$/, "", bucket)
                    if (!(bucket in is_open))
                        fail(name " while " bucket " is not open")
                    other_thread = other_thread || $1 != step_thread
                }
            }
            $2 == "pop" && --depth[$1] < 0 { fail("a pop without a push") }
            $2 == "open" {
                if (name in is_open)
                    fail(name " is opened twice")
                is_open[name] = $3
                of[$3] = name
                opened[name]++
            }
            $2 == "close" {
                if (!($3 in of))
                    fail("closed, but not open: " $3)
                delete is_open[of[$3]]
                delete of[$3]
            }
            END {
                if (bad)
                    exit 1
                for (thread in depth)
                    if (depth[thread] != 0)
                        fail("a range without an end")
                for (id in of)
                    fail(of[id] " is not closed")
                if (count["step"] != steps)
                    fail(count["step"] " steps, expected " steps)
                for (name in count)
                    if (name ~ /^backward / && count[name] != steps)
                        fail(count[name] " times " name)
                for (name in opened)
                    if (opened[name] != steps || count[name " allreduce"] != steps)
                        fail(name ": opened " opened[name] " times, averaged " count[name " allreduce"])
                for (name in count)
                    print count[name], name
                for (name in opened)
                    print opened[name], name
                if (other_thread)
                    print 1, "thread of its own"
            }' "$log" >"$folder/counts" || { cat "$folder/counts" && fail "$what"; }
        rm "$log"
    done
    echo "$what: $(wc -l <"$folder/counts") kinds of ranges"
}

# there NAME...: check that the last log contains these ranges.
there()
{
    local range
    for range; do
        grep -qx "[0-9]* $range" "$folder/counts" || { cat "$folder/counts" && fail "no range '$range'"; }
    done
}

layers=('forward conv1' 'backward conv1' 'forward conv2' 'backward conv2' 'forward dense3' 'backward dense3')
trace "ring, two workers" 2 6 "$lib/mpirun.sh" 2 "$psring" train --backend ring --bucket-mb 0.05
there step "${layers[@]}" 'bucket 0' 'bucket 0 allreduce' 'bucket 3' 'bucket 3 allreduce' 'thread of its own'
trace "ring, staged from a device" 2 6 "$lib/mpirun.sh" 2 "$emulated" train --backend ring --bucket-mb 0.05 \
    --device cuda --share-gpu
there step "${layers[@]}" 'bucket 3' 'bucket 3 allreduce' 'thread of its own'
trace "one process" 1 6 "$emulated" train --backend none --device cuda --cuda-graph off
there step "${layers[@]}"
