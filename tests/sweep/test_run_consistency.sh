#!/usr/bin/env bash
# test_run_consistency.sh: what run_consistency.sh leaves and says, of runs and of made-up rows; that it
# cleans up however it ends, and tells failures.
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
grep -q '^--quick: few steps' "$folder/out/summary.txt" || fail "no word that this is no answer in:"
grep -q '^One slow: worker 1 computes 4 times as long:$' "$folder/out/summary.txt" || fail "no slow worker in:"

grep -q '^One run of each\.$' <(grep -o 'One run of each\.$' "$folder/out/summary.txt") || fail "no count of runs in:"

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
# The program in place of mpirun: it fails in the same way.
mkdir "$folder/bin"
printf '#!/bin/sh\nexec "%s"\n' "$folder/program" >"$folder/bin/mpirun"
chmod +x "$folder/bin/mpirun"
PATH=$folder/bin:$PATH compare
(($? == 1)) || fail "a program that fails: exit $?:"
grep -q 'failed: ring, straggler 1:4, seed 1: exit 1: .*broken on purpose' "$folder/log" || fail "no word of the failure in:"

status=0
"$script" --workers 1 --quick --psring "$psring" >"$folder/log" 2>&1 || status=$?
((status == 2)) || fail "--quick after an option overrides it: exit $status:"
for arguments in '--workers 1' '--seeds 1,1' '--seeds a' '--target high' '--limit 0' '--step-ms -1' '--out' '--fast' '--psring /nowhere'; do
    # shellcheck disable=SC2086  # an option and its value
    compare $arguments
    (($? == 2)) || fail "bad usage '$arguments': exit $?:"
done
"$script" --help | grep -q -- '--target PERCENT' || fail "--help says nothing"
