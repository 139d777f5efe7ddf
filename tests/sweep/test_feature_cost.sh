#!/usr/bin/env bash
# test_feature_cost.sh: cost.sh reports known ratios. A fake psring "trains" with 1,000 images per second, and with a
# timeline or --elastic in the time per step that the test sets, as a percentage.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
script=$root/experiments/cost.sh

cat >"$folder/psring" <<'END'
#!/bin/sh
step=100
while [ $# -gt 0 ]; do
    case $1 in
    --metrics) rows=$2 ;;
    --rank) rank=$2 ;;
    --timeline | --elastic) feature=$1 ;;
    esac
    shift
done
[ "$rank" = 0 ] || exit 0
if [ "$feature" = "$EXPECTED" ]; then # the next step time; a short list repeats
    step=$(head -n 1 "$STEPS")
    { tail -n +2 "$STEPS" && echo "$step"; } >"$STEPS.next"
    mv "$STEPS.next" "$STEPS"
fi
# Two epochs. The step time is that of both together.
echo "backend,workers,batch,step,images_per_s,x" >"$rows"
awk -v step="$step" 'BEGIN { print "ring,2,32,10," 100000 / (0.5 * step) ",0\nring,2,32,30," 100000 / (1.25 * step) ",0" }' >>"$rows"
END
chmod +x "$folder/psring"
export STEPS=$folder/steps EXPECTED=--timeline

# says OPTIONS LINE STEP...: cost.sh prints LINE for these ms per step, used in turn.
says()
{
    local options=$1 line=$2
    shift 2
    printf '%s\n' "$@" >"$STEPS"
    # shellcheck disable=SC2086 # several options
    "$script" $options --data x --program "$folder/psring" >"$folder/log" 2>&1 || fail "$*:"
    grep -qF "$line" "$folder/log" || fail "$*: expected '$line' in:"
}
says "--pairs 20" "with timeline a step takes 1.0050 times as long (median of 20 pairs; 1.0050 to 1.0050)" 100.5
says "--pairs 20" "it costs at most 1%" 100.5
says "--pairs 20" "it costs more than 1%" 102
says "--pairs 20" "whether it costs more than 1%; about 80 pairs would" 99.5 101.5
says "--pairs 5" "too few pairs for a 95% interval" 100
EXPECTED=--elastic
says "--pairs 20 --of elastic --limit 0.5" "it costs at most 0.5%" 100.4
says "--pairs 20 --of elastic --limit 0.5" "it costs more than 0.5%" 100.6
for wrong in "--pairs 0" "--of taste" "--limit -1"; do
    refuse=0
    # shellcheck disable=SC2086 # an option and its value
    "$script" $wrong --data x --program "$folder/psring" >"$folder/log" 2>&1 || refuse=$?
    ((refuse == 2)) || fail "$wrong:"
done
# A rank that fails ends the measurement.
printf '#!/bin/sh\necho lost its link\nexit 3\n' >"$folder/psring"
refuse=0
"$script" --data x --program "$folder/psring" >"$folder/log" 2>&1 || refuse=$?
((refuse == 1)) || fail "a rank fails:"
grep -q "lost its link" "$folder/log" || fail "a rank fails:"
echo "test_feature_cost: all right"
