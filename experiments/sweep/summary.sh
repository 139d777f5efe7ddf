#!/usr/bin/env bash
# summary.sh DIR [NAME=VALUE...]: what DIR/bench.csv and DIR/train.csv say, as sentences and tables for a
# newcomer.
#
# NAME is cores, failures (measurements that failed), or on real machines machine_count and left_out, what would take more of them, as
# "CONFIGURATION WORKERS MACHINES;...". With only=unsteady, prints only what something disturbed, a line each. Theory is the column theory_time_us: bytes alone, on the link's rate that was measured in the
# same run where link_source says probe, else the nominal.
set -euo pipefail
export LC_ALL=C # a point in numbers, and messages as they are looked for, whatever the user's language

if (($# == 0)) || [[ ! -d $1 ]]; then
    echo "summary.sh: '${1:-}' is not a folder; usage: summary.sh DIR [NAME=VALUE...]" >&2
    exit 2
fi
dir=$1
shift

# shellcheck source-path=SCRIPTDIR source=constants.sh
. "$(dirname "$0")/constants.sh"

parts=() settings=(-v "out=$dir" -v "model_bytes=$MODEL_BYTES" -v "CPU_LIMITED=$CPU_LIMITED") files=()
for part in "$(dirname "$0")"/summary/*.awk; do
    parts+=(-f "$part")
done
for setting; do
    settings+=(-v "$setting")
done
for file in bench.csv train.csv; do
    [[ ! -s $dir/$file ]] || files+=("$dir/$file")
done
if ((${#files[@]} == 0)); then
    echo "summary.sh: neither $dir/bench.csv nor $dir/train.csv has rows" >&2
    exit 1
fi
awk "${settings[@]}" "${parts[@]}" "${files[@]}"
