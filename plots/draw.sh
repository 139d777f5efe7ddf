#!/usr/bin/env bash
# draw.sh DIR [FIGURE...]: draws figures from DIR/bench.csv, train.csv and consistency.csv into DIR, each as .svg, .png
# and .pdf.
# Without names, all that there are rows for. draw.sh --list prints the names.
#
# gnuplot runs in a folder of its own, among files of plain names: no name that a user has chosen is part of a
# command of the shells that it starts.
set -euo pipefail
export LC_ALL=C.UTF-8 # a point in numbers, whatever the user's language; gnuplot has signs beyond ASCII

BENCH_FIGURES=(time_vs_size efficiency_vs_size time_vs_workers efficiency_vs_workers bytes_per_node)
PROCESSOR_FIGURES=(cpu_vs_size)
TRAIN_FIGURES=(throughput)
CONSISTENCY_FIGURES=(consistency)

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=../experiments/sweep/rows.sh
. "$here/../experiments/sweep/rows.sh"

case ${1:-} in
-h | --help | '')
    sed -n '2,4s/^# \{0,1\}//p' "$0"
    [[ ${1:-} ]] || exit 2
    exit 0
    ;;
--list)
    printf '%s\n' "${BENCH_FIGURES[@]}" "${PROCESSOR_FIGURES[@]}" "${TRAIN_FIGURES[@]}" "${CONSISTENCY_FIGURES[@]}"
    exit 0
    ;;
esac
[[ -d $1 ]] || { echo "draw.sh: '$1' is not a folder" >&2 && exit 2; }
dir=$(cd "$1" && pwd)
shift

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here"/*.gp "$work"
cd "$work"
if [[ -s $dir/consistency.csv ]]; then
    consistency=$here/../experiments/sweep/consistency
    awk -F , -f "$consistency/modes.awk" -f "$consistency/points.awk" "$dir/consistency.csv"
fi
if [[ -s $dir/bench.csv || -s $dir/train.csv || ! -s $dir/consistency.csv ]]; then
    read_rows "$dir" -f "$here/points.awk"
    sort -o points.txt points.txt # awk's order is any
else
    echo loopback >network.txt
fi
figures=("$@")
if (($# == 0)); then
    [[ ! -s points.txt ]] || figures+=("${BENCH_FIGURES[@]}")
    [[ ! -s processors.txt ]] || figures+=("${PROCESSOR_FIGURES[@]}")
    [[ ! -s training.txt ]] || figures+=("${TRAIN_FIGURES[@]}")
    [[ ! -s modes.txt ]] || figures+=("${CONSISTENCY_FIGURES[@]}")
fi

failed=0
for figure in "${figures[@]}"; do
    if ! gnuplot -e "MODEL_BYTES = $MODEL_BYTES" "$figure.gp" >messages.txt 2>&1; then
        failed=1
        echo "draw.sh: the figure $figure was not drawn:" >&2
    fi
    # A series without points in a panel is no mistake.
    sed '/^ *$/d; /Skipping data file with no valid points/d' messages.txt >&2
    for form in svg png pdf; do
        [[ ! -s $figure.$form ]] || mv "$figure.$form" "$dir"
    done
done
exit $failed
