#!/usr/bin/env bash
# summary.sh DIR [NAME=VALUE...]: what DIR/bench.csv and DIR/train.csv say, as sentences and tables for a
# newcomer. Theory is bytes alone, on the rate of the links that the probes of all runs found.
#
# NAME is cores, failures (measurements that failed), or on real machines machine_count and left_out: what would
# take more of them, as "CONFIGURATION WORKERS MACHINES;...". With only=unsteady, prints only what something
# disturbed, a line each.
set -euo pipefail
export LC_ALL=C # a point in numbers, and messages as they are looked for, whatever the user's language

if (($# == 0)) || [[ ! -d $1 ]]; then
    echo "summary.sh: '${1:-}' is not a folder; usage: summary.sh DIR [NAME=VALUE...]" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
dir=$(cd "$1" && pwd)
shift

# shellcheck source-path=SCRIPTDIR source=rows.sh
. "$here/rows.sh"

options=()
for setting; do
    options+=(-v "$setting")
done
for part in "$here"/summary/*.awk; do
    options+=(-f "$part")
done
read_rows "$dir" "${options[@]}"
