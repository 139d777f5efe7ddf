#!/usr/bin/env bash
# test_run_consistency.sh: the files and messages of run_consistency.sh, for real runs and a stand-in program. The
# script cleans up after every kind of end, and reports failures.
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
script=$root/experiments/run_consistency.sh
mkdir "$folder/data"
"$make_dataset" "$folder/data" 2000 300

compare()
{
    "$script" --quick --data "$folder/data" --out "$folder/out" --psring "$folder/program" "$@" >"$folder/log" 2>&1
}

# Short real runs: each kind of consistency with and without a straggler, and all files.
ln -s "$psring" "$folder/program"
compare || fail "--quick: exit code $?, expected 0:"
for file in consistency.csv consistency.svg consistency.png consistency.pdf summary.txt report.html provenance.json log.txt; do
    [[ -s $folder/out/$file ]] || fail "--quick wrote no $file:"
done
[[ ! -e $folder/out/run.csv && ! -e $folder/out/run.txt ]] || fail "--quick left files of a single run:"
perl -MJSON::PP -0ne 'decode_json($_)' "$folder/out/provenance.json" || fail "provenance.json is no JSON:"
found=$(tail -n +2 "$folder/out/consistency.csv" | cut -d , -f 1,2 | paste -s -d ' ')
expected='bsp,none backup,none ssp:1,none ssp:3,none ssp:8,none async,none ring,none'
[[ $found == "$expected ${expected//none/1:4}" ]] || fail "the rows have $found:"
grep -q '^--quick: few steps' "$folder/out/summary.txt" || fail "no note that few steps are no answer in:"
grep -q '^One slow: worker 1 computes 4 times as long:$' "$folder/out/summary.txt" || fail "no slow worker in:"

grep -q '^One run of each\.$' <(grep -o 'One run of each\.$' "$folder/out/summary.txt") || fail "no count of runs in:"

# After every kind of end, no started process is left.
rm "$folder/program"
cat >"$folder/program" <<PROGRAM
#!/bin/sh
[ "\$1" = info ] && exit 0
for word; do
    [ "\$option" != --metrics ] || printf 'seconds,images\n1,1\n' >"\$word"
    option=\$word
done
touch "$folder/runs"
while kill -0 \$PPID; do sleep 0.1; done # ends with mpirun, as psring does
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
    within test -e "$folder/runs" || fail "no run has started:"
    kill -$signal "$(pgrep -P $wait_for -f run_consistency.sh)"
    wait $wait_for
    status=$?
    ((status > 128)) || fail "SIG$signal: exit $status:"
    within nothing_left || fail "SIG$signal: a program still runs:"
    [[ $signal == KILL ]] || grep -q 'interrupted: .* has the rows' "$folder/log" ||
        fail "SIG$signal: no message about the interrupt:"
done

# The script ends a run at the limit, which counts as one that missed the target, and reports a run that fails.
compare --limit 4 &
wait_for=$!
within grep -q 'it was ended after 4 s, the limit of a run, and counts' "$folder/log" || fail "no message about the limit in:"
rm -f "$folder/runs"
within test -e "$folder/runs" || fail "no run after the one at the limit:"
grep -q '^bsp,' "$folder/out/consistency.csv" || fail "no row of the run at the limit:"
kill -TERM "$(pgrep -P $wait_for -f run_consistency.sh)"
wait $wait_for
printf '#!/bin/sh\necho "psring: error: broken on purpose" >&2\nexit 1\n' >"$folder/program"
within nothing_left || fail "a run that was ended still runs:"
# The failing program replaces mpirun.
mkdir "$folder/bin"
printf '#!/bin/sh\nexec "%s"\n' "$folder/program" >"$folder/bin/mpirun"
chmod +x "$folder/bin/mpirun"
PATH=$folder/bin:$PATH compare
(($? == 1)) || fail "a program that fails: exit code $?, expected 1:"
grep -q 'failed: ring, straggler 1:4, seed 1: exit 1: .*broken on purpose' "$folder/log" ||
    fail "no message about the failure in:"

status=0
"$script" --workers 1 --quick --psring "$psring" >"$folder/log" 2>&1 || status=$?
((status == 2)) || fail "--quick after an option overrides it: exit $status:"
for arguments in '--workers 1' '--seeds 1,1' '--seeds a' '--target high' '--limit 0' '--step-ms -1' '--out' '--fast' '--psring /nowhere'; do
    # shellcheck disable=SC2086  # an option and its value
    compare $arguments
    (($? == 2)) || fail "bad usage '$arguments': exit code $?, expected 2:"
done
"$script" --help | grep -q -- '--target PERCENT' || fail "--help has no --target PERCENT"
