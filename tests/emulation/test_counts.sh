#!/usr/bin/env bash
# test_counts.sh: the counted work of the CUDA device in a step equals common/device/measured.csv. No part has more
# launches than before, and the step moves no more bytes.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
table=$root/common/device/measured.csv

"$root/tests/emulation/count_step.sh" "$psring" "$make_dataset" >"$folder/counted" 2>"$folder/log" || fail "count_step.sh failed:"
# Part; then launches, MB read, MB written, MFLOP: before and now.
awk -F, 'NF == 9 && $2 ~ /^[0-9]+$/' "$table" >"$folder/rows"
awk -F' *[|] *' 'NF == 7 && $3 ~ /^[0-9]+$/ { print $2, $3, $4, $5, $6 }' "$folder/counted" >"$folder/now"
awk -F, '{ print $1, $6, $7, $8, $9 }' "$folder/rows" >"$folder/said"
[[ -s $folder/rows ]] || fail "no row in $table"
diff "$folder/said" "$folder/now" >"$folder/log" || fail "$table (<) differs from the counts (>):"
grep 'loads: ' "$folder/counted" | while read -r line; do
    grep -qF -- "$line" "$table" || fail "$table does not contain '$line'"
done
# A count that can be checked by hand: SGD with momentum reads three arrays of 1,199,882 floats and writes two.
grep -qx 'optimizer 1 14.40 9.60 0.0' "$folder/now" || fail "the counter miscounts SGD:" "$(grep optimizer "$folder/now")"
awk -F, '
    $6 > $2 || $9 > $5 { print "more than before: " $0; bad = 1 }
    $1 == "step" { steps++ }
    $1 == "step" && ($7 > $3 || $8 > $4) { print "more bytes than before: " $0; bad = 1 }
    END { exit bad || steps != 1 }' "$folder/rows" >"$folder/log" || fail "in $table:"
echo "test_counts: $(wc -l <"$folder/rows") rows"
