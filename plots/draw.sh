#!/usr/bin/env bash
# draw.sh [--psring PROGRAM] DIR [FIGURE...]: draws figures of DIR/bench.csv, winner_map.csv, train.csv and
# consistency.csv into DIR, as .svg, .png and .pdf.
# Without names, it draws all figures that have data. draw.sh --list prints the names.
#
# psring report (default: build/psring of this tree) reads the rows and writes the data files. For a run with wrong sums
# it writes no data, so no figure is drawn.
# gnuplot runs in a separate folder with files of plain names. Its shell commands contain no name from the user.
set -euo pipefail
export LC_ALL=C.UTF-8 # decimal point in every language; gnuplot prints characters beyond ASCII

BENCH_FIGURES=(time_vs_size efficiency_vs_size time_vs_workers efficiency_vs_workers bytes_per_node)
PROCESSOR_FIGURES=(cpu_vs_size)
MAP_FIGURES=(winner_map)
TRAIN_FIGURES=(throughput)
CONSISTENCY_FIGURES=(consistency)

unset CDPATH # cd prints a folder that it finds there
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=../experiments/sweep/constants.sh
. "$here/../experiments/sweep/constants.sh"
psring=$here/../build/psring

case ${1:-} in
-h | --help | '')
    sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
    [[ ${1:-} ]] || exit 2
    exit 0
    ;;
--list)
    printf '%s\n' "${BENCH_FIGURES[@]}" "${PROCESSOR_FIGURES[@]}" "${MAP_FIGURES[@]}" "${TRAIN_FIGURES[@]}" \
        "${CONSISTENCY_FIGURES[@]}"
    exit 0
    ;;
esac
if [[ $1 == --psring ]]; then
    (($# > 2)) || { echo "draw.sh: expected --psring PROGRAM DIR" >&2 && exit 2; }
    psring=$2
    shift 2
fi
[[ -x $psring ]] || { echo "draw.sh: '$psring': not a program; build psring, or use --psring PROGRAM" >&2 && exit 2; }
psring=$(realpath "$psring")
[[ -d $1 ]] || { echo "draw.sh: '$1': not a folder" >&2 && exit 2; }
dir=$(cd "$1" && pwd)
shift

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here"/*.gp "$work"
cd "$work"
"$psring" report --figures "$work" "$dir"
# Predictions that were fitted to wrong sums are worthless.
[[ ! -s points.txt || ! -s $dir/winner_map.csv ]] || (($(wc -l <"$dir/winner_map.csv") < 2)) || cp "$dir/winner_map.csv" .
figures=("$@")
if (($# == 0)); then
    [[ ! -s points.txt ]] || figures+=("${BENCH_FIGURES[@]}")
    [[ ! -s processors.txt ]] || figures+=("${PROCESSOR_FIGURES[@]}")
    [[ ! -s winner_map.csv ]] || figures+=("${MAP_FIGURES[@]}")
    [[ ! -s training.txt ]] || figures+=("${TRAIN_FIGURES[@]}")
    [[ ! -s modes.txt ]] || figures+=("${CONSISTENCY_FIGURES[@]}")
fi

failed=0
for figure in "${figures[@]}"; do
    if ! gnuplot -e "MODEL_BYTES = $MODEL_BYTES" "$figure.gp" >messages.txt 2>&1; then
        failed=1
        echo "draw.sh: the figure $figure was not drawn:" >&2
    fi
    # A series may have no points in a panel.
    sed '/^ *$/d; /Skipping data file with no valid points/d' messages.txt >&2
    for form in svg png pdf; do
        [[ ! -s $figure.$form ]] || mv "$figure.$form" "$dir"
    done
done
exit $failed
