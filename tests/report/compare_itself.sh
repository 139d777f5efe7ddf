#!/usr/bin/env bash
# compare_itself.sh [PAIRS]: is psring compare honest? Measures PAIRS (default 10) pairs of runs of one program, six
# all-reduces and two starts each, in alternation, on loopback. All pairs together may have one verdict "faster" or "slower"
# at most. Ends with 1 above that. Takes about 15 s a pair on two calm cores.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
pairs=${1:-10}

verdicts=0
for ((pair = 1; pair <= pairs; pair++)); do
    mkdir "$folder"/{one,two}-$pair
    for start in 1 2; do
        for shape in "2 ring" "2 rhd" "3 ps --servers 1 --placement dedicated"; do
            read -ra shape <<<"$shape"
            for run in one two; do
                timeout 120 "$lib/mpirun.sh" "${shape[0]}" "$psring" bench --backend "${shape[@]:1}" --sizes 65536,1048576 -n 10 -w 2 \
                    --csv "$folder/$run-$pair/bench.csv" >"$folder/log" 2>&1 ||
                    { echo "compare_itself.sh: pair $pair, start $start, ${shape[*]:1} failed:" && cat "$folder/log" && exit 1; }
            done
        done
    done
    "$psring" compare "$folder/one-$pair" "$folder/two-$pair" >"$folder/output"
    found=$(grep -cE ', (faster|slower)(;|$)' "$folder/output" || true)
    verdicts=$((verdicts + found))
    echo "pair $pair: $(grep 'in both: ' "$folder/output")"
    ((found == 0)) || grep -E ', (faster|slower)(;|$)' "$folder/output"
done
echo "$pairs pairs of runs of one program: $verdicts verdicts, at most 1 expected"
((verdicts <= 1))
