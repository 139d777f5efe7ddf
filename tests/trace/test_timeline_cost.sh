#!/usr/bin/env bash
# test_timeline_cost.sh: cost.sh reports known ratios. A fake mpirun "trains" in 100 ms a step, and with a timeline in
# the time that the test sets.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
script=$root/experiments/trace/cost.sh

mkdir "$folder/bin"
cat >"$folder/bin/mpirun" <<'END'
#!/bin/sh
step=100
while [ $# -gt 0 ]; do
    case $1 in
    --metrics) rows=$2 ;;
    --timeline) # the next step time; a short list repeats
        step=$(head -n 1 "$STEPS")
        { tail -n +2 "$STEPS" && echo "$step"; } >"$STEPS.next"
        mv "$STEPS.next" "$STEPS"
        ;;
    esac
    shift
done
printf 'backend,step_ms_median,x\nring,%s,0\n' "$step" >"$rows"
END
chmod +x "$folder/bin/mpirun"
export STEPS=$folder/steps

# says PAIRS LINE STEP...: cost.sh prints LINE for these ms per step, used in turn.
says()
{
    local pairs=$1 line=$2
    shift 2
    printf '%s\n' "$@" >"$STEPS"
    PATH=$folder/bin:$PATH "$script" --pairs "$pairs" --data x --program "$folder/bin/mpirun" >"$folder/log" 2>&1 ||
        fail "$*:"
    grep -qF "$line" "$folder/log" || fail "$*: expected '$line' in:"
}
says 20 "takes 1.0050 times as long (median of 20 pairs; 1.0050 to 1.0050)" 100.5
says 20 "it costs at most 1%" 100.5
says 20 "it costs more than 1%" 102
says 20 "whether it costs more than 1%; about 80 pairs would" 99.5 101.5
says 3 "too few pairs for a 95% interval" 100
refuse=0
"$script" --pairs 0 --data x >"$folder/log" 2>&1 || refuse=$?
((refuse == 2)) || fail "--pairs 0:"
echo "test_timeline_cost: all right"
