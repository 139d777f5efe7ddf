# shellcheck shell=bash disable=SC2154,SC2034
# Lesson 1: the same 128 images a step by one worker, by four virtual workers, and by four processes.
need_data
common=(--data "$data" --model lenet --seed 1 --threads 1 --reduce-order ring --metrics "$out/train.csv")
network=loopback
for steps in 1 60; do
    ranks 1 train --backend none --batch 128 --steps $steps "${common[@]}"
    ranks 1 train --backend none --virtual-workers 4 --batch 32 --steps $steps "${common[@]}"
done
ranks 4 train --backend ring --transport zmq --batch 32 --steps 60 "${common[@]}"

loss_of() { value "$out/train.csv" train_loss "$1"; }
rounded() { awk -v loss="$1" 'BEGIN { printf "%.4f", loss }'; }
hash_of() { value "$out/train.csv" weights_sha256 "$1"; }

echo "Exact"
printf '  %-28s %12s %12s\n' "" "a step takes" "60 steps"
printf '  %-28s %12s %12s\n' "one worker" "1 x 128" "$(value "$out/train.csv" images 3)" \
    "four workers in one process" "4 x 32" "$(value "$out/train.csv" images 4)" \
    "four processes, by the ring" "4 x 32" "$(value "$out/train.csv" images 5)"
echo "Measured"
printf '  %-28s %12s %12s   %s\n' "" "loss, step 1" "loss, 60" "weights after 60 steps"
printf '  %-28s %12s %12s   %.12s\n' "one worker" "$(rounded "$(loss_of 1)")" "$(rounded "$(loss_of 3)")" "$(hash_of 3)" \
    "four workers in one process" "$(rounded "$(loss_of 2)")" "$(rounded "$(loss_of 4)")" "$(hash_of 4)" \
    "four processes, by the ring" "" "$(rounded "$(loss_of 5)")" "$(hash_of 5)"
echo "So"
holds "$(rounded "$(loss_of 1)")" = "$(rounded "$(loss_of 2)")" "one step on 128 images has the same loss as the average of four on 32"
holds "$([[ $(hash_of 3) != "$(hash_of 4)" ]] && echo 1)" = 1 "but the sums were added in another order, and the last bits differ"
holds "$([[ $(hash_of 4) == "$(hash_of 5)" ]] && echo 1)" = 1 "four processes add in the order of the four in one, and end with the same bits"
