#!/usr/bin/env bash
# cost.sh [OPTION...] [-- OPTION-OF-TRAIN...]: measures how much a timeline slows a training.
#
# Trains alternately with and without --timeline, on this machine, over loopback. On a machine that other processes use,
# only the ratio within one pair means something. Prints the median step of each run. At the end it prints the median of
# the pairs' ratios with its 95% interval, and whether the pairs can tell 1% from 0. Two equal trainings differ by a few
# per cent, so this needs many short pairs (60 take about ten minutes).
# Options of train, for example --backend ps, replace: --backend ring --steps 40 --batch 32.
#
#   --pairs N        pairs of trainings (default 60)
#   --workers N      ranks (default 2)
#   --data DIR       MNIST (default: PSRING_DATA)
#   --program FILE   (default build/psring)
set -euo pipefail
export LC_ALL=C

unset CDPATH # cd prints a folder that it finds there
here=$(dirname "$(cd "$(dirname "$0")" && pwd)")
# shellcheck source-path=SCRIPTDIR source=../sweep/script.sh
. "$here/sweep/script.sh"

pairs=60 workers=2 data=${PSRING_DATA:-} program=$(dirname "$here")/build/psring
options=(--backend ring --steps 40 --batch 32)
while (($#)); do
    case $1 in
    --pairs | --workers | --data | --program)
        (($# >= 2)) || die "$1 needs a value; see --help" 2
        declare "${1#--}=$2"
        shift
        ;;
    -h | --help) usage && exit ;;
    --) shift && options=("$@") && break ;;
    *) die "unknown option '$1'; see --help" 2 ;;
    esac
    shift
done
[[ $pairs =~ ^[1-9][0-9]{0,3}$ && $workers =~ ^[1-9][0-9]{0,2}$ ]] ||
    die "--pairs '$pairs' --workers '$workers': expected numbers from 1" 2
[[ -x $program && ! -d $program ]] || die "--program '$program': not a program; build psring first" 2
[[ $data ]] || die "no data set: give --data DIR, or set PSRING_DATA" 2

# shellcheck disable=SC2317  # called by a trap
clean_up()
{
    trap '' INT TERM HUP
    [[ ! $child ]] || { kill -TERM "$child" 2>/dev/null && wait "$child" 2>/dev/null; } || true
    rm -rf "$folder"
}

folder=$(mktemp -d) child=''
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP
root=()
((EUID != 0)) || root=(--allow-run-as-root)

# train OPTION...: sets $step_ms to the median step, in ms.
train()
{
    rm -f "$folder/row.csv"
    log_to=$folder/log wait_for_child timeout -k 10 600 mpirun "${root[@]}" --oversubscribe --bind-to none --mca btl self,tcp \
        --mca btl_tcp_if_include lo --mca oob_tcp_if_include lo -n "$workers" "$program" train --data "$data" \
        "${options[@]}" --metrics "$folder/row.csv" "$@" ||
        die "a training failed: $(tail -n 1 "$folder/log")"
    step_ms=$(awk -F , 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "step_ms_median") at = i } END { print $at }' "$folder/row.csv")
}

for ((pair = 1; pair <= pairs; pair++)); do
    if ((pair % 2)); then
        train && without=$step_ms
        train --timeline "$folder/timeline.json" && with=$step_ms
    else
        train --timeline "$folder/timeline.json" && with=$step_ms
        train && without=$step_ms
    fi
    awk -v without="$without" -v with="$with" -v pair="$pair" -v pairs="$pairs" 'BEGIN {
        printf "pair %d of %d: step %.3f ms without, %.3f ms with a timeline, ratio %.4f\n", pair, pairs, without, with, with / without }' |
        tee -a "$folder/ratios"
done
awk '{ print $NF }' "$folder/ratios" | sort -n | awk '
    { ratio[NR] = $1 }
    END {
        low = int(NR * 0.5 - 0.98 * sqrt(NR) + 1) # binomial, by the normal distribution
        high = NR + 1 - low
        middle = NR % 2 ? ratio[(NR + 1) / 2] : (ratio[NR / 2] + ratio[NR / 2 + 1]) / 2
        least = ratio[(low > 0) ? low : 1]
        most = ratio[(low > 0) ? high : NR]
        printf "with a timeline a step takes %.4f times as long (median of %d pairs; %.4f to %.4f)\n", middle, NR, least, most
        if (low < 1)
            print "too few pairs for a 95% interval: the two numbers are the smallest and the largest ratio"
        else if (most <= 1.01)
            print "it costs at most 1%"
        else if (least > 1.01)
            print "it costs more than 1%"
        else
            printf "these pairs cannot tell whether it costs more than 1%%; about %.0f pairs would\n",
                NR * ((most - least) / 0.01) ^ 2 + 0.5
    }'
