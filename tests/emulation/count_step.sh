#!/usr/bin/env bash
# count_step.sh PSRING_COUNTED MAKE_DATASET [MODEL [BATCH]]: count the work of the CUDA device in a training step, with
# CUDA emulated on the host (count.c defines the counts). Prints a table by parts of the step. The counts depend only on
# shapes. From a build in build/:
#
#   tests/emulation/count_step.sh build/tests/emulation/psring_counted build/tests/make_dataset
set -euo pipefail

psring=$1 make_dataset=$2 model=${3:-keras-cnn} batch=${4:-128}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$make_dataset" "$folder" 1000 10 >/dev/null
if ! EMULATED_COUNTS=$folder/counts "$psring" train --backend none --device cuda --cuda-graph off \
    --model "$model" --batch "$batch" --steps 2 --data "$folder" >"$folder/log" 2>&1; then
    cat "$folder/log" >&2
    exit 1
fi
# The last step is counted: the first one may contain work that is done only once.
awk -F, '
    $1 != step {
        split("", launches); split("", read); split("", written); split("", flops); split("", seen)
        parts = sums = 0
        split("", copies); split("", bytes)
        step = $1
    }
    $3 == "copy" { copies[$4]++; bytes[$4] += $5; next }
    !($2 in seen) { part[++parts] = $2; seen[$2] }
    { launches[$2]++; read[$2] += $5; written[$2] += $6; flops[$2] += $7 }
    function row(name, l, r, w, f) { printf "| %s | %d | %.2f | %.2f | %.1f |\n", name, l, r / 1e6, w / 1e6, f / 1e6 }
    END {
        if (!step)
            exit 1
        print "| part | launches | MB read | MB written | MFLOP |"
        print "| --- | ---: | ---: | ---: | ---: |"
        for (i = 1; i <= parts; i++) {
            p = part[i]
            row(p, launches[p], read[p], written[p], flops[p])
            l += launches[p]; r += read[p]; w += written[p]; f += flops[p]
        }
        row("step", l, r, w, f)
        for (name in copies)
            print name "s: " copies[name] ", " bytes[name] " bytes" | "sort"
    }' "$folder/counts"
