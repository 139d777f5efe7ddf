#!/usr/bin/env bash
# timeline_cost.sh [OPTION...] [-- OPTION-OF-TRAIN...]: how much slower is a training that records its timeline?
#
# Trains with and without --timeline by turns, as only a ratio within one pair means something on a machine that
# others use, on this machine, over loopback. Prints the median step of each run, and at the end the median of the
# pairs' ratios with what lies around it: of 20 pairs, the 6th and the 15th ratio are a 95% interval of the median.
# Options of train, for example --backend ps, replace: --backend ring --steps 100 --batch 32.
#
#   --pairs N        turns (default 20)
#   --workers N      ranks (default 2)
#   --data DIR       MNIST (else PSRING_DATA)
#   --program FILE   (default build/psring)
set -euo pipefail
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
die()
{
    echo "timeline_cost.sh: $1" >&2
    exit "${2:-1}"
}

pairs=20 workers=2 data=${PSRING_DATA:-} program=$here/../build/psring
options=(--backend ring --steps 100 --batch 32)
while (($#)); do
    case $1 in
    --pairs | --workers | --data | --program)
        (($# >= 2)) || die "$1 needs a value; see --help" 2
        declare "${1#--}=$2"
        shift
        ;;
    -h | --help) sed -n '2,14s/^# \{0,1\}//p' "$0" && exit ;;
    --) shift && options=("$@") && break ;;
    *) die "unknown option '$1'; see --help" 2 ;;
    esac
    shift
done
[[ $pairs =~ ^[1-9][0-9]{0,3}$ && $workers =~ ^[1-9][0-9]{0,2}$ ]] ||
    die "--pairs '$pairs' --workers '$workers': expected numbers from 1" 2
[[ -x $program && ! -d $program ]] || die "--program '$program' is no program; build psring first" 2
[[ $data ]] || die "no data set: give --data DIR, or set PSRING_DATA" 2

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
root=()
((EUID != 0)) || root=(--allow-run-as-root)

# step_ms OPTION...: trains, and prints the median step, in ms.
step_ms()
{
    rm -f "$folder/row.csv"
    timeout -k 10 600 mpirun "${root[@]}" --oversubscribe --bind-to none --mca btl self,tcp \
        --mca btl_tcp_if_include lo --mca oob_tcp_if_include lo -n "$workers" "$program" train --data "$data" \
        "${options[@]}" --metrics "$folder/row.csv" "$@" >"$folder/log" 2>&1 </dev/null ||
        die "a training failed: $(tail -n 1 "$folder/log")"
    awk -F , 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "step_ms_median") at = i } END { print $at }' "$folder/row.csv"
}

for ((pair = 1; pair <= pairs; pair++)); do
    if ((pair % 2)); then
        without=$(step_ms)
        with=$(step_ms --timeline "$folder/timeline.json")
    else
        with=$(step_ms --timeline "$folder/timeline.json")
        without=$(step_ms)
    fi
    awk -v without="$without" -v with="$with" -v pair="$pair" -v pairs="$pairs" 'BEGIN {
        printf "pair %d of %d: step %.3f ms without, %.3f ms with a timeline, ratio %.4f\n", pair, pairs, without, with, with / without }' |
        tee -a "$folder/ratios"
done
awk '{ print $NF }' "$folder/ratios" | sort -n | awk '
    { ratio[NR] = $1 }
    END {
        low = int(NR * 0.5 - 0.98 * sqrt(NR)) + 1 # binomial, by the normal distribution
        high = NR + 1 - low
        middle = NR % 2 ? ratio[(NR + 1) / 2] : (ratio[NR / 2] + ratio[NR / 2 + 1]) / 2
        printf "with a timeline a step takes %.4f times as long (median of %d pairs; %.4f to %.4f)\n", middle, NR,
            ratio[(low > 0) ? low : 1], ratio[(low > 0) ? high : NR]
    }'
