#!/usr/bin/env bash
# test_without_satellites.sh [BUILD [CMAKE-OPTION...]]: psring without its satellites refuses their commands and options
# by name, and still measures and trains. PSRING is a program linked from the objects of psring without satellites. With
# BUILD (a folder) CMake builds psring there instead, from a copy of the tree without the satellites' folders.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source-path=SCRIPTDIR source=../lib/ranks_lib.sh
. "$lib/ranks_lib.sh"

fail()
{
    echo "without_satellites: $*"
    tail -n 20 "$folder"/log "$folder"/rank.* 2>/dev/null || true
    exit 1
}

# refuses SATELLITE WORDS ARGUMENT...: psring ends with 2 and prints one line. It begins with WORDS and names the
# remedy.
refuses()
{
    local option=PSRING_$1 words=$2 code=0
    shift 2
    "$psring" "$@" >"$folder/log" 2>&1 || code=$?
    ((code == 2)) || fail "psring $*: exit code $code, expected 2"
    (($(wc -l <"$folder/log") == 1)) || fail "psring $*: expected one line"
    grep -qF -- "psring: error: $words: this build" "$folder/log" || fail "psring $*: no '$words'"
    grep -qF -- "because $option is OFF; configure" "$folder/log" || fail "psring $*: no reason"
    grep -qF -- "with -D$option=ON" "$folder/log" || fail "psring $*: no remedy"
}

if (($# > 0)); then
    mkdir "$folder/tree"
    git -C "$root" ls-files -z --cached --others --exclude-standard |
        (cd "$root" && xargs -0 tar -cf - --ignore-failed-read) | tar -C "$folder/tree" -xf -
    rm -r "$folder"/tree/experiments/{elastic,predict,report,trace}
    cmake -S "$folder/tree" -B "$1" -DPSRING_ELASTIC=OFF -DPSRING_PREDICT=OFF -DPSRING_REPORT=OFF -DPSRING_TRACE=OFF \
        -DPSRING_CUDA=OFF -DPSRING_TESTS=OFF "${@:2}" >"$folder/log" 2>&1 || fail "cmake failed"
    cmake --build "$1" >"$folder/log" 2>&1 || fail "the build failed"
    psring=$1/psring
fi

"$psring" --help >"$folder/log" || fail "--help failed"
(($(grep -cE '^  (train|bench|info) ' "$folder/log") == 3)) || fail "--help does not list train, bench and info"
! grep -E '^  (serve|predict|trace|report|compare) |psring serve' "$folder/log" ||
    fail "--help lists a command of a satellite"
refuses ELASTIC serve serve --listen tcp://127.0.0.1:1
refuses PREDICT predict predict
refuses TRACE trace trace x.json
refuses REPORT report report --help
refuses REPORT compare help compare

refuses ELASTIC --join train --join tcp://127.0.0.1:1
refuses ELASTIC --join-after train --join-after 3
refuses ELASTIC --leave-after train --leave-after=3
refuses TRACE --timeline train --timeline x.json
refuses TRACE --timeline-steps train --timeline-steps 1:2
refuses PREDICT '--backend auto' train --backend auto
refuses PREDICT --cost-model bench --cost-model m.json --backend auto
for print in "train --help" "bench --help" --manual --completion; do
    # shellcheck disable=SC2086  # a command and its option
    "$psring" $print >"$folder/log" || fail "$print failed"
    ! grep -E -- '(-|\\-){2}(timeline|join|leave|cost)|ring ?\| ?auto|hierarchical ?\|? tree ?\|? auto' "$folder/log" ||
        fail "$print offers an option of a satellite"
done
"$psring" bench --backend no 2>"$folder/log" && fail "psring accepted --backend no"
! grep -q '| auto' "$folder/log" || fail "the error offers auto, a word of a satellite"

"$psring" info >"$folder/log" || fail "info failed"
ranks 2 bench -e 64k -n 5 -w 1 || fail "bench on two ranks failed"
grep -q 'every element equals the exact sum; bytes are as in theory' "$folder/rank.0" ||
    fail "bench does not report exact sums and the bytes of theory"
mkdir "$folder/data"
"$make_dataset" "$folder/data" 600 100
ranks 2 train --data "$folder/data" --model lenet --batch 8 --steps 10 || fail "train on two ranks failed"
grep -qE '^weights sha256 [0-9a-f]{64}$' "$folder/rank.0" || fail "train printed no weights"
echo "without_satellites: psring refuses satellites, measures and trains"
