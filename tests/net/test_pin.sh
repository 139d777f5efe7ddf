#!/usr/bin/env bash
# test_pin.sh: --pin binds each rank, with all of its threads, to different cores. It does not change what a launcher
# has bound. Exits 77 (skipped) on a machine with one core.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
# shellcheck source-path=SCRIPTDIR source=../lib/ranks_lib.sh
. "$lib/ranks_lib.sh"
mapfile -t cores < <(taskset -pc $$ | sed 's/.*: //' | tr , '\n' | while IFS=- read -r a b; do seq "$a" "${b:-$a}"; done)
((${#cores[@]} >= 2)) || skip "needs two cores"
two=(taskset -c "${cores[0]},${cores[1]}") # only these two, however many the machine has

# Two ranks that may both run on two cores. --threads 2: OpenBLAS has started its own threads before main.
port=$(free_port)
pids=()
end_ranks()
{
    ((${#pids[@]} > 0)) || return 0
    kill -KILL "${pids[@]}" || true
    wait "${pids[@]}" || true
    pids=() # the system may give these ids to other processes from here on
}
at_end end_ranks
for rank in 1 0; do
    "${two[@]}" "$psring" train --data "$data" --model lenet --steps 1000000 --log-steps 1 --threads 2 --pin \
        --metrics "$folder/metrics" --rendezvous "tcp://127.0.0.1:$port" --rank $rank --world-size 2 >"$folder/rank.$rank" 2>&1 &
    pids[rank]=$!
done
within test -s "$folder/metrics" || fail "no step of two ranks: $(cat "$folder"/rank.*)"
for rank in 0 1; do
    found=$(sed -n 's/^Cpus_allowed_list:\t//p' /proc/"${pids[rank]}"/task/*/status | sort -u)
    [[ $found == "${cores[rank]}" ]] || fail "rank $rank: its threads may run on '$found', expected ${cores[rank]}"
done
end_ranks

# With -v each rank prints its cores. Without --pin these are the cores with which it was started.
ranks_on_two()
{
    psring_of_test=$psring
    psring=$folder/psring
    printf '#!/bin/sh\nexec taskset -c %s,%s "%s" "$@"\n' "${cores[0]}" "${cores[1]}" "$psring_of_test" >"$psring"
    chmod +x "$psring"
    local code=0
    ranks "$@" || code=$?
    psring=$psring_of_test
    return $code
}
ranks_on_two 2 bench -e 4k -n 5 --pin -v || fail "bench: $(cat "$folder"/rank.*)"
for rank in 0 1; do
    grep -q "rank $rank on .* may run on the cores ${cores[rank]}\$" "$folder/rank.$rank" ||
        fail "rank $rank did not print its core: $(cat "$folder/rank.$rank")"
done
ranks_on_two 2 bench -e 4k -n 5 -v || fail "bench without --pin: $(cat "$folder"/rank.*)"
grep -qE "rank 1 on .* may run on the cores ${cores[0]}[-,]${cores[1]}\$" "$folder/rank.1" ||
    fail "without --pin: $(cat "$folder/rank.1")"

# More ranks than cores: every rank refuses, and one error is printed.
! ranks_on_two 3 bench -e 4k --pin || fail "three ranks on two cores were not refused"
(($(cat "$folder"/rank.* | grep -c -- '--pin: 3 ranks on .* share 2 cores') == 1)) || fail "three ranks: $(cat "$folder"/rank.*)"

# --pin does not change what mpirun has bound.
if command -v mpirun >/dev/null && ((${#cores[@]} == $(nproc --all))); then
    "$lib/mpirun.sh" --bind-to core 2 "$psring" bench -e 4k -n 5 --pin -v \
        >"$folder/log" 2>&1 || fail "mpirun --bind-to core:"
    (($(grep -oE 'may run on the cores [0-9,-]+$' "$folder/log" | sort -u | wc -l) == 2)) || fail "mpirun --bind-to core:"
fi
echo "pin: each rank with all of its threads on different cores"
