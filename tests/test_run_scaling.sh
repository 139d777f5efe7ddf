#!/usr/bin/env bash
# test_run_scaling.sh: run_scaling.sh cleans up however it ends, and tells failures. What it measures
# here is a shell script that sleeps or fails. Skipped without root or namespaces.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
passed=0
failed=0
needs_namespaces

verdict()
{
    if [[ $1 == ok ]]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $2"
        sed 's/^/    /' "$folder/output"
    fi
}

sweep()
{
    "$root/experiments/run_scaling.sh" --quick --hosts 2 --sizes 65536 --no-train --out "$folder/out" \
        --psring "$folder/program" "$@" >"$folder/output" 2>&1
}

namespaces()
{
    ip netns list | awk -v prefix="psring-scaling-$1-" 'index($1, prefix) == 1' | wc -l
}

nothing_left()
{
    (($(namespaces "$1") == 0)) && ! pgrep -f "^sleep 4321.$$"
}

# The program notes that it runs, in the words of its command line, and then sleeps.
cat >"$folder/program" <<PROGRAM
#!/bin/sh
[ "\$1" = info ] || [ "\$2" = --help ] && exit 0
touch "$folder/runs"
exec sleep 4321.$$
PROGRAM
chmod +x "$folder/program"

for signal in INT TERM KILL; do
    rm -f "$folder/runs"
    sweep &
    wait_for=$!
    # The script is the child of the function's subshell.
    within test -e "$folder/runs"
    pid=$(pgrep -P $wait_for -f run_scaling.sh)
    before=$(namespaces "$pid")
    kill -$signal "$pid"
    wait $wait_for
    status=$?
    result=ok
    within nothing_left "$pid" || result="something is left"
    ((before == 5 && status > 128)) || result="$before namespaces, exit $status"
    [[ ! -e /run/psring-vcluster/scaling-$pid ]] || result="the state is left"
    verdict "$result" "SIG$signal leaves nothing: $result"
done

printf '#!/bin/sh\necho "psring: error: broken on purpose" >&2\nexit 1\n' >"$folder/program"
sweep --hosts 1
status=$?
result=ok
((status == 1)) || result="exit $status"
grep -q 'error: broken on purpose' "$folder/output" || result="no message of the program"
grep -q 'nothing was measured' "$folder/output" || result="no message of its own"
verdict "$result" "a program that fails: $result"

for arguments in "--rate 200" "--hosts 0" "--hosts 2,,4" "--sizes 1k" "--steps x" "--out" "--fast"; do
    # shellcheck disable=SC2086  # an option and its value
    sweep $arguments
    status=$?
    result=ok
    ((status == 2)) || result="exit $status"
    verdict "$result" "bad usage '$arguments': $result"
done

echo "test_run_scaling: $passed passed, $failed failed"
((failed == 0))
