#!/usr/bin/env bash
# cost.sh [OPTION...] [-- OPTION-OF-TRAIN...]: measures how much a timeline, or --elastic without failures, slows a
# training.
#
# Trains alternately with and without it, on this machine, over loopback. On a machine that other processes use, only the
# ratio within one pair means something. Prints the mean time of a step of each run. At the end it prints the median of
# the pairs' ratios with its 95% interval, and whether the pairs can tell the limit from 0. Two equal trainings differ, so
# this needs many short pairs.
# Options of train, for example --backend rhd, replace: --backend ring --steps 40 --batch 32.
#
#   --of WHAT        timeline (default) or elastic
#   --limit PERCENT  (default 1)
#   --pairs N        pairs of trainings (default 60)
#   --workers N      ranks (default 2)
#   --data DIR       MNIST (default: PSRING_DATA)
#   --program FILE   (default build/psring)
set -euo pipefail
export LC_ALL=C

unset CDPATH # cd prints a folder that it finds there
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=sweep/script.sh
. "$here/sweep/script.sh"

heed_interrupts "$@"

of=timeline limit=1 pairs=60 workers=2 data=${PSRING_DATA:-} program=$(dirname "$here")/build/psring
options=(--backend ring --steps 40 --batch 32)
while (($#)); do
    [[ $1 != -- ]] || { shift && options=("$@") && break; }
    take_option "--of --limit --pairs --workers --data --program" "$@"
    shift 2
done
need_above_zero limit
[[ $pairs =~ ^[1-9][0-9]{0,2}$ && $workers =~ ^[1-9][0-9]{0,2}$ ]] ||
    die "--pairs '$pairs' --workers '$workers': expected numbers from 1 to 999" 2
[[ -x $program && ! -d $program ]] || die "--program '$program': not a program; build psring first" 2
[[ $data ]] || die "no data set: give --data DIR, or set PSRING_DATA" 2

# shellcheck disable=SC2317  # called by a trap
clean_up()
{
    trap '' INT TERM HUP
    ((${#ranks[@]} == 0)) || { kill -TERM "${ranks[@]}" 2>/dev/null && wait "${ranks[@]}" 2>/dev/null; } || true
    rm -rf "$folder"
}

folder=$(mktemp -d) ranks=()
end_with clean_up
case $of in
timeline) feature=(--timeline "$folder/timeline.json" --timeline-steps 1:1000000000000) ;; # all
elastic) feature=(--elastic) ;;
*) die "--of '$of': expected timeline or elastic" 2 ;;
esac

# train OPTION...: sets $step_ms to the mean time of a step of one worker's images, in ms.
train()
{
    local rank failed=0 port=$((20000 + RANDOM % 12000))
    rm -f "$folder/row.csv"
    for ((rank = 0; rank < workers; rank++)); do
        timeout -k 10 600 "$program" train --rendezvous "tcp://127.0.0.1:$port" --rank "$rank" --world-size "$workers" \
            --data "$data" "${options[@]}" --metrics "$folder/row.csv" "$@" >"$folder/log.$rank" 2>&1 </dev/null &
        ranks+=($!)
    done
    for rank in "${!ranks[@]}"; do
        wait "${ranks[rank]}" || failed=1
    done
    ranks=()
    ((failed == 0)) || die "a training failed: $(tail -q -n 1 "$folder"/log.*)"
    step_ms=$(awk -F , 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["images_per_s"] > 0 { # of the steps since the last row
            ms += 1000 * ($at["step"] - step) * $at["workers"] * $at["batch"] / $at["images_per_s"]
            step = $at["step"]
        }
        END { if (step > 0) print ms / step }' "$folder/row.csv")
    [[ $step_ms ]] || die "a training measured no images per second: $(tail -n 1 "$folder/row.csv")"
}

for ((pair = 1; pair <= pairs; pair++)); do
    if ((pair % 2)); then
        train
        without=$step_ms
        train "${feature[@]}"
        with=$step_ms
    else
        train "${feature[@]}"
        with=$step_ms
        train
        without=$step_ms
    fi
    awk -v without="$without" -v with="$with" -v pair="$pair" -v pairs="$pairs" -v of="$of" 'BEGIN {
        printf "pair %d of %d: step %.3f ms without, %.3f ms with %s, ratio %.4f\n", pair, pairs, without, with, of, with / without }' |
        tee -a "$folder/ratios"
done
awk '{ print $NF }' "$folder/ratios" | sort -n | awk -v of="$of" -v limit="$limit" '
    { ratio[NR] = $1 }
    END {
        term = sum = 0.5 ^ NR # of a binomial distribution: that at most `low` ratios are below the median
        for (low = 0; sum <= 0.025; sum += term) {
            low++
            term *= (NR - low + 1) / low
        }
        high = NR + 1 - low
        middle = NR % 2 ? ratio[(NR + 1) / 2] : (ratio[NR / 2] + ratio[NR / 2 + 1]) / 2
        least = ratio[(low > 0) ? low : 1]
        most = ratio[(low > 0) ? high : NR]
        printf "with %s a step takes %.4f times as long (median of %d pairs; %.4f to %.4f)\n", of, middle, NR, least, most
        if (low < 1)
            print "too few pairs for a 95% interval: the two numbers are the smallest and the largest ratio"
        else if (most <= 1 + limit / 100)
            printf "it costs at most %g%%\n", limit
        else if (least > 1 + limit / 100)
            printf "it costs more than %g%%\n", limit
        else
            printf "these pairs cannot tell whether it costs more than %g%%; about %.0f pairs would\n",
                limit, NR * ((most - least) / (limit / 100)) ^ 2 + 0.5
    }'
