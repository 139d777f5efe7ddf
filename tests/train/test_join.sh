#!/usr/bin/env bash
# test_join.sh COMPARE_WEIGHTS: --last-batch partial. An epoch whose last step is shorter, 2 images for three
# workers or 80, gives the weights of one process that plays them, to the bit, over ring and parameter server; and, but
# for rounding, those of one worker with all images of a step in one batch: each image weighs alike.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
compare_weights=$1
check() # WHAT: $weights must be $expected
{
    [[ $weights == "$expected" ]] || fail "$1: weights $weights, expected $expected, as by one process"
}

common=(--model lenet --epochs 1 --reduce-order ring --bucket-mb 0.05)
for batch in 333 64; do
    last=(--batch "$batch" --last-batch partial)
    train 0 "${common[@]}" --batch "$batch" --backend none --virtual-workers 3
    dropped=$weights
    train 0 "${common[@]}" "${last[@]}" --backend none --virtual-workers 3 \
        --metrics "$folder/joined-$batch.csv"
    expected=$weights
    [[ $expected != "$dropped" ]] || fail "--last-batch partial made no difference"
    grep -q ',2000,' "$folder/joined-$batch.csv" || fail "not all images are counted: $(cat "$folder/joined-$batch.csv")"
    train 3 "${common[@]}" "${last[@]}" --backend ring
    check "ring, the last batch of $batch joined"
    train 4 "${common[@]}" "${last[@]}" --backend ps
    check "ps, the last batch of $batch joined"
    train 3 "${common[@]}" "${last[@]}" --backend ps --servers 3 --placement colocated
    check "ps, colocated, the last batch of $batch joined"
done

# Two steps, and one of 2 images for three workers: a third of the last gradient would be missing if all counted alike.
common+=(--backend none --lr 0.1 --lr-schedule constant --warmup-epochs 0)
train 0 "${common[@]}" --batch 999 --last-batch partial --checkpoint "$folder/alone"
train 0 "${common[@]}" --batch 333 --last-batch partial --virtual-workers 3 --checkpoint "$folder/played"
train 0 "${common[@]}" --batch 333 --virtual-workers 3 --checkpoint "$folder/dropped"
apart() # NAME: how far its weights are from those of one worker
{
    local said
    said=$("$compare_weights" "$folder/alone"/*.checkpoint "$folder/$1"/*.checkpoint)
    echo "${said#relative }"
}
echo "apart from one worker's: joined $(apart played), dropped $(apart dropped)"
awk -v played="$(apart played)" -v dropped="$(apart dropped)" 'BEGIN { exit !(played < 0.01 * dropped) }' ||
    fail "joined: $(apart played) apart from one worker's weights; without the last step $(apart dropped)"
