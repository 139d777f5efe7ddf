#!/usr/bin/env bash
# test_join.sh COMPARE_WEIGHTS: --last-batch partial. The last step of an epoch has 2 or 80 images for three workers.
# Ring and parameter server give the weights of one process that plays the workers, to the bit. They also give, except
# for rounding, the weights of one worker with all images of a step in one batch: each image has the same weight.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
compare_weights=$1
check() # WHAT: $weights must be $expected
{
    [[ $weights == "$expected" ]] || fail "$1: weights $weights, expected $expected as with one process"
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

# Two steps, and one of 2 images for three workers. If all workers counted alike, a third of the last gradient would be
# missing.
common+=(--backend none --lr 0.1 --lr-schedule constant --warmup-epochs 0)
train 0 "${common[@]}" --batch 999 --last-batch partial --checkpoint "$folder/alone"
train 0 "${common[@]}" --batch 333 --last-batch partial --virtual-workers 3 --checkpoint "$folder/played"
train 0 "${common[@]}" --batch 333 --virtual-workers 3 --checkpoint "$folder/dropped"
apart() # NAME: the relative distance of its weights from those of one worker
{
    local said
    said=$("$compare_weights" "$folder/alone"/*.checkpoint "$folder/$1"/*.checkpoint)
    echo "${said#relative }"
}
echo "relative distance from one worker's weights: joined $(apart played), dropped $(apart dropped)"
awk -v played="$(apart played)" -v dropped="$(apart dropped)" 'BEGIN { exit !(played < 0.01 * dropped) }' ||
    fail "joined: distance $(apart played) from one worker's weights, expected below 1% of $(apart dropped)"
