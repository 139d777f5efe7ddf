# shellcheck shell=bash
# rows.sh: the rows of a run, for awk: rows/ reads them and settles the links' rate. summary.sh and
# plots/draw.sh load it, so that tables and figures say the same.

ROWS_HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR source=constants.sh
. "$ROWS_HERE/constants.sh"

# read_rows DIR AWK-OPTION...: runs awk, with those options, on DIR/bench.csv and DIR/train.csv.
read_rows()
{
    local dir=$1 part file options=() files=()
    shift
    for file in "$dir"/{bench,train}.csv; do
        [[ ! -s $file ]] || files+=("$file")
    done
    ((${#files[@]})) || { echo "neither $dir/bench.csv nor $dir/train.csv has rows" >&2 && return 1; }
    for part in "$ROWS_HERE"/rows/*.awk; do
        options+=(-f "$part")
    done
    awk -v "model_bytes=$MODEL_BYTES" -v "CPU_LIMITED=$CPU_LIMITED" -v "CPU_OTHER=$CPU_OTHER" "${options[@]}" "$@" "${files[@]}"
}
