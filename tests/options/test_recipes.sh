#!/usr/bin/env bash
# test_recipes.sh: each recipe of --recipe list trains a small model for a few steps. The parameter server, the ring and
# one process that plays all workers give the same bits. Only keras-horovod does not run in one process, because each
# worker uses all data. The script experiments/run_recipes.sh measures the accuracy on MNIST.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"

"$psring" train --recipe list >"$folder/log" || fail "--recipe list failed:"
mapfile -t recipes < <(grep -v '^ ' "$folder/log")
[[ ${recipes[*]} == 'keras-horovod large-batch lars-8192' ]] || fail "found the recipes ${recipes[*]}:"
names=$(IFS='|' && echo "${recipes[*]}")
[[ $("$psring" train --help) == *"--recipe $names|list"* ]] || fail "--help does not name $names"
grep -q -e '--optimizer lars .*--global-batch 8192' "$folder/log" || fail "no options of lars-8192 in:"

same() # WHAT: $weights must be $expected
{
    [[ $weights == "$expected" ]] || fail "$1: weights $weights, expected $expected"
}

for recipe in "${recipes[@]}"; do
    batch=(--batch 16)
    [[ $recipe != lars* ]] || batch=(--global-batch 64)
    options=(--recipe "$recipe" --model lenet "${batch[@]}" --steps 12 --reduce-order ring)
    rm -f "$folder/train.csv"
    train 4 "${options[@]}" --backend ring --metrics "$folder/train.csv"
    expected=$weights
    grep -q ",$recipe," "$folder/train.csv" || fail "the row does not name $recipe: $(cat "$folder/train.csv")"
    train 5 "${options[@]}" --backend ps
    same "$recipe, ps"
    [[ $recipe == keras-horovod ]] && continue
    grep -q '^the run ends in its warm-up, at a rate of' "$folder/log" ||
        fail "$recipe: no warning that the run ends in its warm-up:"
    train 0 "${options[@]}" --backend none --virtual-workers 4
    same "$recipe, one process"
done

# keras-horovod on two workers, as in Horovod's example: the rate of two workers, and half the epochs, rounded up. Each
# worker uses all 2,000 images in another order. With the same order two workers would equal one.
rm -f "$folder/train.csv"
train 2 --recipe keras-horovod --model lenet --batch 50 --epochs 3 --metrics "$folder/train.csv"
grep -q 'adadelta with lr 2,' "$folder/log" || fail "expected the rate of two workers in:"
grep -q '^epoch 2/2  step 80 ' "$folder/log" || fail "expected two epochs of 40 steps in:"
train 2 --model lenet --batch 50 --steps 20 --lr 0.02 --no-shard
two=$weights
train 0 --model lenet --batch 50 --steps 20 --lr 0.02 --no-shard --backend none
one=$weights
[[ $two != "$one" ]] || fail "two workers saw the same images in the same order:"
train 0 --model lenet --batch 50 --steps 20 --lr 0.02 --backend none
expected=$one
same "all the data, one worker"
