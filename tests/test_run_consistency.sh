#!/usr/bin/env bash
# test_run_consistency.sh PSRING MAKE_DATASET: what run_consistency.sh leaves and says, of runs and of made-up rows; that it
# cleans up however it ends, and tells failures.
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
psring=$(realpath "$1")
script=$root/experiments/run_consistency.sh
mkdir "$folder/data"
"$2" "$folder/data" 2000 300

compare()
{
    "$script" --quick --data "$folder/data" --out "$folder/out" --psring "$folder/program" "$@" >"$folder/log" 2>&1
}

# For real, in little: each kind with and without a straggler, and all that it promises.
ln -s "$psring" "$folder/program"
compare || fail "--quick ended with $?:"
for file in consistency.csv consistency.svg consistency.png consistency.pdf summary.txt report.html provenance.json log.txt; do
    [[ -s $folder/out/$file ]] || fail "--quick left no $file:"
done
[[ ! -e $folder/out/run.csv && ! -e $folder/out/run.txt ]] || fail "--quick left what is of one run:"
perl -MJSON::PP -0ne 'decode_json($_)' "$folder/out/provenance.json" || fail "provenance.json is no JSON:"
found=$(tail -n +2 "$folder/out/consistency.csv" | cut -d , -f 1,2 | paste -s -d ' ')
expected='bsp,none backup,none ssp:1,none ssp:3,none ssp:8,none async,none ring,none'
[[ $found == "$expected ${expected//none/1:4}" ]] || fail "the rows are of $found:"
grep -q '^--quick: some steps' "$folder/out/summary.txt" || fail "no word that this is no answer in:"
grep -q '^One slow: worker 1 computes 4 times as long:$' "$folder/out/summary.txt" || fail "no slow worker in:"

# rows FILE ROW...: mode straggler seed on_target seconds accuracy
rows()
{
    local file=$1 row mode straggler seed on seconds accuracy
    shift
    echo "mode,straggler,seed,workers,model,batch,compute,network,target_accuracy,on_target,seconds,step,images,test_accuracy,staleness_mean,staleness_max,steps_left_out,steps_dropped,images_per_s,compute_ms" >"$file"
    for row; do
        read -r mode straggler seed on seconds accuracy <<<"$row"
        echo "$mode,$straggler,$seed,4,lenet,32,real:40,loopback,0.985,$on,$seconds,100,12800,$accuracy,,,,,$((12800 / seconds)),41"
    done >>"$file"
}

# says PATTERN: the summary of these rows.
says()
{
    awk -F , -v seeds=3 -f "$root/experiments/sweep/consistency/modes.awk" \
        -f "$root/experiments/sweep/consistency/summary.awk" "$folder/consistency.csv" >"$folder/log" 2>&1
    grep -qE -- "$1" "$folder/log" || fail "expected '$1' in:"
}

rows "$folder/consistency.csv" 'bsp none 1 1 40 0.985' 'bsp none 2 1 44 0.985' 'bsp none 3 1 42 0.986' \
    'async none 1 1 20 0.985' 'async none 2 1 24 0.985' 'async none 3 0 90 0.984' \
    'ring none 1 1 21 0.985' 'ring none 2 1 22 0.985' 'ring none 3 1 23 0.985' \
    'ssp:1 none 1 0 90 0.97' 'ssp:1 none 2 0 90 0.981' 'ssp:1 none 3 1 30 0.985'
says '^bsp +304 +1\.00  42\.0 \(40\.0-44\.0\) +3/3 '
says '^async +533 +1\.75  24\.0 \(20\.0-never\) +2/3 '
says '^ssp:1 +142 +0\.47  never \(30\.0-never\) +1/3 '
says 'alike: ring was first to 98.5%, after 22\.0 s; async took 24\.0 s, 1\.09 times as long, bsp took 42\.0 s, 1\.91 times as long\.'
says 'That ring was before async is no more than the seeds differ\. async did not reach it with 1 of 3 seeds \(98\.50% at best\)\.'
says 'ssp:1 did not reach it with 2 of 3 seeds'
rows "$folder/consistency.csv" 'bsp none 1 1 5 0.985' 'ring none 1 1 4 0.985'
says 'ring was first to 98\.5%, after 4\.00 s; bsp took 5\.00 s, 1\.25 times as long'
! grep -q '^--quick' "$folder/log" || fail "a full comparison passes for a quick one:"
rows "$folder/consistency.csv" 'bsp 3:4 1 0 90 0.97' 'ring 3:4 1 0 90 0.96'
says '^One slow worker: none reached 98\.5%'
says '^bsp .* never .* 0/1 '
"$root/plots/draw.sh" "$folder" >"$folder/log" 2>&1 || fail "nobody reached it, and the figure cannot be drawn:"
[[ -s $folder/consistency.svg ]] || fail "no figure where nobody reached it:"

# However it ends, what it has started does, too.
rm "$folder/program"
cat >"$folder/program" <<PROGRAM
#!/bin/sh
[ "\$1" = info ] && exit 0
touch "$folder/runs"
while kill -0 \$PPID; do sleep 0.1; done # as psring, which ends with mpirun
PROGRAM
chmod +x "$folder/program"
nothing_left()
{
    ! pgrep -f "$folder/program"
}
for signal in INT TERM KILL; do
    rm -f "$folder/runs"
    compare &
    wait_for=$!
    within test -e "$folder/runs" || fail "nothing runs:"
    kill -$signal "$(pgrep -P $wait_for -f run_consistency.sh)"
    wait $wait_for
    status=$?
    ((status > 128)) || fail "SIG$signal: exit $status:"
    within nothing_left || fail "SIG$signal: something goes on:"
    [[ $signal == KILL ]] || grep -q 'interrupted: .* has the rows' "$folder/log" || fail "SIG$signal: it does not say so:"
done

# A run that does not end is ended, and one that fails is told.
compare --limit 4 &
wait_for=$!
within grep -q 'it was ended after 4 s, the limit of a run' "$folder/log" || fail "no word of the limit in:"
rm -f "$folder/runs"
within test -e "$folder/runs" || fail "nothing runs after it:"
kill -TERM "$(pgrep -P $wait_for -f run_consistency.sh)"
wait $wait_for
printf '#!/bin/sh\necho "psring: error: broken on purpose" >&2\nexit 1\n' >"$folder/program"
within nothing_left || fail "a run that was ended goes on:"
compare
(($? == 1)) || fail "a program that fails: exit $?:"
grep -q 'failed: ring, straggler 1:4, seed 1: exit 1: .*broken on purpose' "$folder/log" || fail "no word of the failure in:"

for arguments in '--workers 1' '--seeds 1,1' '--seeds a' '--target high' '--limit 0' '--step-ms -1' '--out' '--fast' '--psring /nowhere'; do
    # shellcheck disable=SC2086  # an option and its value
    compare $arguments
    (($? == 2)) || fail "bad usage '$arguments': exit $?:"
done
"$script" --help | grep -q -- '--target PERCENT' || fail "--help says nothing"
