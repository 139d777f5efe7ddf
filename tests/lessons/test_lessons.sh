#!/usr/bin/env bash
# test_lessons.sh [--short]: every lesson runs and prints the exact part of its text. Its sentences hold, except those
# about times, which other tests can disturb. --short: lessons 1 and 4, and lesson 6 with made-up rows.
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
needs_namespaces

lesson=$root/experiments/lessons/lesson.sh
"$make_dataset" "$folder" 20000 1000 # an epoch is longer than any lesson

# exact FILE: the lines from "Exact" to "Measured".
exact()
{
    sed -n '/^Exact$/,/^Measured$/p' "$1"
}

# measured FILE: the other lines, without their numbers and checksums. Other tests can disturb sentences about times, so
# "NOT SO" is ignored here. If another sentence is wrong, lesson.sh exits with 1.
measured()
{
    # shellcheck disable=SC2016
    sed -n '/^Measured$/,/^```$/{/^```$/!p}' "$1" | sed 's/NOT SO:/holds:/' | tr -d '0-9.a-f '
}

chosen=(1 2 3 4 5 6)
((!short)) || chosen=(1 4)
for n in "${chosen[@]}"; do
    text=$(compgen -G "$root/experiments/lessons/${n}_*.md")
    status=0
    "$lesson" "$n" --psring "$psring" --data "$folder" >"$folder/printed" 2>"$folder/said" || status=$?
    [[ $status == 0 || $status == 3 ]] ||
        fail "lesson $n: $(cat "$folder/printed" "$folder/said")"
    diff <(exact "$text") <(exact "$folder/printed") || fail "lesson $n: the exact part differs from its text (<)"
    diff <(measured "$text") <(measured "$folder/printed") ||
        fail "lesson $n: the measured part differs from its text (<)"
done

for arguments in "" "7" "1 2" "1 --out" "1 --psring /nowhere" "--fast"; do
    status=0
    # shellcheck disable=SC2086  # an option and its value
    "$lesson" $arguments >/dev/null 2>"$folder/said" || status=$?
    [[ $status == 2 && $(wc -l <"$folder/said") == 1 ]] ||
        fail "bad usage '$arguments': exit code $status, expected 2 and one line: $(cat "$folder/said")"
done

# Rows without times, or without the column of times: another test cannot cause that, so the exit code is 1, not 3.
cat >"$folder/timeless" <<'END'
#!/bin/sh
while [ $# -gt 0 ]; do
    [ "$1" != --metrics ] || rows=$2
    shift
done
[ "$OMPI_COMM_WORLD_RANK" = 0 ] || exit 0
[ -e "$rows" ] || echo staleness_mean,staleness_max,test_accuracy,$COLUMN >"$rows"
echo 0.5,1,0.9, >>"$rows"
END
chmod +x "$folder/timeless"
for column in images_per_s another; do
    status=0
    COLUMN=$column "$lesson" 6 --psring "$folder/timeless" --data "$folder" >"$folder/printed" 2>"$folder/said" || status=$?
    [[ $status == 1 && $(grep -c 'NOT SO' "$folder/printed") == 3 ]] ||
        fail "no times: lesson 6 ended with $status, expected 1: $(cat "$folder/printed" "$folder/said")"
done

# An interrupted lesson leaves nothing.
"$lesson" 5 --psring "$psring" --out "$folder/out" >/dev/null 2>&1 &
pid=$!
within test -e "/run/psring-vcluster/scaling-$pid"
kill -INT $pid
wait $pid && fail "an interrupted lesson exits with 0"
! ip netns list | grep -q "psring-scaling-$pid-" || fail "an interrupted lesson leaves a cluster"
echo "test_lessons: lessons ${chosen[*]} hold"
