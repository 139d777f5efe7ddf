#!/usr/bin/env bash
# test_consistency.sh [--short]: psring train with servers that own the parameters (ssp, async, backup workers).
# --short takes fewer steps, and only some of the runs that differ just in their options.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
common=(--model lenet --batch 10 --backend ps)

# column NAME: print that column of the last row of train.csv.
column()
{
    awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i } END { print $at }' "$folder/train.csv"
}

# A single worker is never late. Its weights equal those of one process, bit by bit. This shows that the servers'
# optimizer and learning rates are the worker's.
optimizers=(sgd adadelta)
for optimizer in "${optimizers[@]:short}"; do
    train 0 --model lenet --batch 10 --backend none --steps 120 --optimizer "$optimizer"
    expected=$weights
    for sync in ssp:2 async; do
        train 3 "${common[@]}" --servers 2 --steps 120 --optimizer "$optimizer" --sync $sync --bucket-mb 0.05
        [[ $weights == "$expected" ]] || fail "$sync, $optimizer: weights $weights, expected those of one process, $expected"
    done
done

# Resumed from a checkpoint, with the optimizer state of the servers.
steps=$((short ? 400 : 1200)) # enough to stop the run in the middle
train 0 --model lenet --batch 10 --backend none --steps $steps --optimizer adadelta
expected=$weights
ways=('--sync async' '--sync ssp:1')
for sync in "${ways[@]:short}"; do
    read -ra sync <<<"$sync"
    rm -rf "$folder/checkpoint"
    train 2 "${common[@]}" "${sync[@]}" --steps $steps --optimizer adadelta
    [[ $weights == "$expected" ]] || fail "${sync[*]}: weights $weights, expected $expected"
    launch "$lib/ranks.sh" 2 "$psring" train --data "$data" "${common[@]}" "${sync[@]}" --steps $steps --log-steps 1 \
        --optimizer adadelta --checkpoint "$folder/checkpoint" --compute real:4
    wait_for "training" 'step 30 '
    kill -TERM "$(pgrep -s "$session" -x "$(basename "$psring")" | head -n 1)"
    within has_ended || fail "SIGTERM: the run continues:"
    wait "$session" && code=0 || code=$?
    session=0
    ((code == 75)) || fail "SIGTERM: ended with $code, expected 75:"
    code=0 # bsp must refuse: the servers' optimizer state sums different gradients than the workers'
    timeout 200 "$lib/mpirun.sh" 2 "$psring" train --data "$data" "${common[@]}" --steps $steps --optimizer adadelta \
        --checkpoint "$folder/checkpoint" --resume >"$folder/log" 2>&1 || code=$?
    if ((code != 2)) || ! grep -q -- '--sync' "$folder/log"; then
        fail "${sync[*]}, continued by bsp: exit $code, expected 2 and --sync:"
    fi
    train 2 "${common[@]}" "${sync[@]}" --steps $steps --optimizer adadelta --checkpoint "$folder/checkpoint" --resume=must
    grep -q '^continues after step' "$folder/log" || fail "${sync[*]}: started from step 0:"
    [[ $weights == "$expected" ]] || fail "${sync[*]}, continued: weights $weights, expected $expected"
done

# A resumed run counts the images of the earlier run as that run did: without the steps that late workers skipped.
images=(--epochs 2 --sync async --straggler 1:6 --lr 0.02 --checkpoint "$folder/images" --metrics "$folder/train.csv")
train 3 "${common[@]}" "${images[@]}"
before=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } NR == 2 { print $at["images"] }' "$folder/train.csv")
((before < 2000 && $(column steps_skipped) > 0)) || fail "no step was skipped; $before of 2000 images were used:"
rm "$(printf '%s\n' "$folder"/images/*.checkpoint | tail -n 1)" # of the second epoch
train 3 "${common[@]}" "${images[@]}" --resume=must
steps=$(sed -nE 's/^worker [0-9]+: ([0-9]+) steps, mean.*/\1/p' "$folder/log" | paste -s -d +)
(($(column images) == before + 10 * (steps))) || fail "continued: $(column images) images, expected $before + 10 x ($steps):"
rm "$folder/train.csv"

# Several workers, one of them slow: all end with the same weights (psring train checks that). They have learnt, and
# staleness stays within the bound. On all transports and placements, in several buckets, compressed.
ways=('4 async 0 zmq --log-steps 7' '4 ssp:1 0 zmq' '4 ssp:3 0 mpi --compress fp16' '4 async 0 tcp'
    '4 bsp 1 zmq --bucket-mb 0.05' '3 async 0 tcp --late-steps keep' '4 ssp:2 0 zmq --late-steps keep'
    '3 ssp:2 0 tcp --placement colocated --servers 3 --bucket-mb 0.05' '4 async 0 zmq --placement mixed --servers 1'
    '3 bsp 1 mpi --placement colocated --servers 2 --compress bf16')
for trial in "${ways[@]:short * 7}"; do
    read -r ranks sync backups transport options <<<"$trial"
    read -ra options <<<"$options"
    rm -f "$folder/train.csv"
    train "$ranks" "${common[@]}" --epochs 4 --lr 0.02 --sync "$sync" --backup-workers "$backups" --transport "$transport" \
        --straggler 1:4 --metrics "$folder/train.csv" "${options[@]}"
    accuracy=$(column test_accuracy) most=$(column staleness_max) dropped=$(column steps_dropped)
    awk -v a="$accuracy" 'BEGIN { exit !(a > 0.5) }' || fail "$trial: accuracy $accuracy, expected more than 0.5:"
    if [[ $sync == ssp:* ]]; then
        ((most <= ${sync#ssp:})) || fail "$trial: parameters lacked $most steps:"
    fi
    if ((backups > 0)); then
        awk -v d="$dropped" 'BEGIN { exit !(d > 0) }' || fail "$trial: no push of the slow worker was dropped:"
    fi
    grep -q '^worker 1: [0-9]* steps, mean' "$folder/log" || fail "$trial: no staleness in:"
    grep -q '^no bottleneck is named' "$folder/log" || fail "$trial: no line about the bottleneck:"
    if [[ ${options[0]-} == --late-steps ]]; then
        ! grep -q 'left out' "$folder/log" || fail "$trial: a late worker skipped steps:"
        grep -q ', late steps kept, ' "$folder/log" || fail "$trial: the first line does not report it:"
    fi
    (($(column images) <= 4 * 2000)) || fail "$trial: $(column images) images in 4 epochs of 2000"
done

# Paced: the same without training.
train_paced=("$lib/ranks.sh" 3 "$psring" train --backend ps --compute paced:1 --steps 20 --sync async)
"${train_paced[@]}" >"$folder/log" 2>&1 || fail "${train_paced[*]} failed:"
grep -q '^staleness' "$folder/log" || fail "no staleness in:"
