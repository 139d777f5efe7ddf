#!/usr/bin/env bash
# test_resume.sh: a training stops in the middle of an epoch and continues from its checkpoint. It
# must end with the weights of a training without a break. test_train.sh and test_stop.sh try ranks, signals and options.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
options=(--backend none --model mlp --batch 100 --lr-schedule constant --warmup-epochs 0) # 20 steps an epoch

train 0 "${options[@]}" --steps 48
undisturbed=$weights
train 0 "${options[@]}" --steps 28 --checkpoint "$folder/checkpoint"
[[ $weights != "$undisturbed" ]] || fail "28 and 48 steps gave the same weights"
train 0 "${options[@]}" --steps 48 --checkpoint "$folder/checkpoint" --resume=extend
grep -q '^continues after step 28$' "$folder/log" || fail "it does not continue after step 28:"
[[ $weights == "$undisturbed" ]] || fail "a break after step 28 gave $weights, without it $undisturbed:"
echo "$name: one break changes no bit"
