#!/usr/bin/env bash
# test_data.sh [--short]: loaders and augmentation. The number of loader threads and of prefetched batches changes no
# bit of the weights. An augmented image depends only on the seed, the epoch and the image.
#
# --short: fewer combinations of options.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"

same() # WHAT: $weights must be $expected
{
    [[ $weights == "$expected" ]] || fail "$1: weights $weights, expected $expected"
}

common=(--model lenet --batch 16 --reduce-order ring --bucket-mb 0.05)
moved=(--augment "shift:2,rotate:12.5")
by=("--data-threads 1 --prefetch-batches 1" "--data-threads 1 --prefetch-batches 4" "--data-threads 3 --prefetch-batches 1" "--data-threads 3 --prefetch-batches 4" "--data-threads 3")

# All images of two epochs: one process that plays two workers, the ring, and a server.
train 0 "${common[@]}" --epochs 2 --last-batch partial --backend none --virtual-workers 2
unmoved=$weights
ways=("" "${moved[*]}")
for augment in "${ways[@]:short}"; do
    read -ra options <<<"$augment --epochs 2 --last-batch partial"
    train 0 "${common[@]}" "${options[@]}" --backend none --virtual-workers 2
    expected=$weights
    train 2 "${common[@]}" "${options[@]}" --backend ring
    same "ring, no loader${augment:+, $augment}"
    for loaders in "${by[@]:short * 3}"; do
        read -ra threads <<<"$loaders"
        train 2 "${common[@]}" "${options[@]}" "${threads[@]}" --backend ring --metrics "$folder/rows.csv"
        same "ring, $loaders${augment:+, $augment}"
    done
    train 0 "${common[@]}" "${options[@]}" --data-threads 2 --backend none --virtual-workers 2
    same "no other process, 2 loaders${augment:+, $augment}"
    train 3 "${common[@]}" "${options[@]}" --backend ps --data-threads 2
    same "a server, 2 loaders${augment:+, $augment}"
done
[[ $expected != "$unmoved" ]] || fail "${moved[*]} makes no difference"
tail -n 1 "$folder/rows.csv" | grep -q ',"\?shift:2,rotate:12.5"\?,3,6' || fail "rows: $(tail -n 1 "$folder/rows.csv")"

# Ranks may have different numbers of loaders.
"$lib/mpirun.sh" 1 "$psring" train --data "$data" "${common[@]}" "${options[@]}" --backend ring --data-threads 2 : -n 1 \
    "$psring" train --data "$data" "${common[@]}" "${options[@]}" --backend ring >"$folder/log" 2>&1 || fail "loaders on one rank:"
weights=$(sed -n 's/^weights sha256 //p' "$folder/log")
same "loaders on one rank"

# Stop during an epoch, while batches are being loaded, with a timeline. Resume with other loaders.
options=("${common[@]}" --epochs $((3 - short)) --backend ring "${moved[@]}" --checkpoint "$folder/checkpoint")
if ((!short)); then
    train 2 "${options[@]}"
    expected=$weights
    rm -rf "$folder/checkpoint"
fi
train 2 "${options[@]}" --checkpoint-steps 7 --keep-checkpoints 100
((short)) || same "saved every 7 steps"
expected=$weights
find "$folder/checkpoint" -type f ! -name '*-00000098.checkpoint' -delete # of 62 steps an epoch
cp -r "$folder/checkpoint" "$folder/middle"
resumed=("--data-threads 3" "--data-threads 1 --prefetch-batches 8")
for loaders in "${resumed[@]:short}"; do
    read -ra threads <<<"$loaders"
    train 2 "${options[@]}" "${threads[@]}" --resume=must
    same "resumed with $loaders"
    rm -rf "$folder/checkpoint"
    launch "$lib/ranks.sh" 2 "$psring" train --data "$data" "${options[@]}" "${threads[@]}" --checkpoint-steps 1 \
        --timeline "$folder/timeline.json"
    within has_checkpoint
    kill -TERM "$(pgrep -s "$session" -x psring | head -n 1)" 2>/dev/null || true
    within is_over || fail "stopped with $loaders: it still runs:"
    "$psring" trace "$folder/timeline.json" >/dev/null || fail "stopped with $loaders: no timeline:"
    train 2 "${options[@]}" --resume=must
    same "stopped with $loaders, resumed without"
    rm -rf "$folder/checkpoint"
    cp -r "$folder/middle" "$folder/checkpoint"
done
refused() # WHAT CODE WORDS COMMAND...: expects the exit code (CODE 0: any but 0) and the words once
{
    local what=$1 code=$2 words=$3 found=0
    shift 3
    "$@" >"$folder/log" 2>&1 || found=$?
    ((code > 0 ? found == code : found > 0)) || fail "$what: exit code $found, expected $code:"
    (($(grep -c -e "$words" "$folder/log") == 1)) || fail "$what: expected '$words' once in:"
}
refused "other images" 2 'augment is shift:2,rotate:12.5 there and shift:2 here' "$lib/ranks.sh" 2 "$psring" train \
    --data "$data" "${common[@]}" --epochs $((3 - short)) --backend ring --augment shift:2 --checkpoint "$folder/checkpoint" --resume

# With --compute paced the loaders load images, but the training does not use them.
"$lib/ranks.sh" 2 "$psring" train --compute paced:1 --batch 16 --data "$data" --data-threads 1 "${moved[@]}" --steps 70 \
    --metrics "$folder/paced.csv" >"$folder/log" 2>&1 || fail "paced, with data:"
grep -q "waiting for data" "$folder/log" || fail "paced, with data:"
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
         NR > 1 && ($at["data_ms_median"] == "" || $at["dataset"] == "none" || $at["step"] > 62 && $at["epoch"] != 2) { exit 1 }' \
    "$folder/paced.csv" || fail "paced, with data: $(cat "$folder/paced.csv")"
refused "paced, no data" 2 '--data-threads: --compute paced:1 loads images only from' env PSRING_DATA="$data" "$lib/mpirun.sh" 2 \
    "$psring" train --compute paced:1 --data-threads 1 --steps 2
refused "data for one rank" 0 '--data is given to rank 1 and not to rank 0' "$lib/mpirun.sh" 1 "$psring" train \
    --compute paced:1 --steps 2 : -n 1 "$psring" train --compute paced:1 --steps 2 --data "$data"
