#!/usr/bin/env bash
# test_nccl.sh PSRING_EMULATED MAKE_DATASET: psring with --backend nccl on two ranks, by the emulated
# device and a stand-in for NCCL that sums as NCCL would: what the program makes of it.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../train_lib.sh
. "$(dirname "$0")/../train_lib.sh"

# column NAME: of all rows of the table, with a dot for what is empty.
column()
{
    awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i }
                          NR > 1 { print $at == "" ? "." : $at }' "$folder/bench.csv" | paste -sd' '
}

"$here/mpirun.sh" 2 "$psring" bench --backend nccl --device cuda --share-gpu -b 4 -e 1m -f 64 -n 3 -w 1 \
    --csv "$folder/bench.csv" --json "$folder/bench.json" >"$folder/log" 2>&1 || fail "bench: exit code $?:"
! grep DIFFER "$folder/log" || fail "the bytes that NCCL moves are not known, and were said to be wrong:"
[[ $(column wrong) == '0 0 0 0' ]] || fail "wrong: $(column wrong)"
for name in worker_sent_bytes worker_recv_bytes server_sent_bytes server_recv_bytes; do
    [[ $(column $name) == '. . . .' ]] || fail "$name is not known, and is: $(column $name)"
done
(($(grep -c '"nccl_algorithm":[[:space:]]*"ring/simple"' "$folder/bench.json") == 4)) || fail "$(cat "$folder/bench.json")"
echo "bench: four sizes, exact, no bytes counted, ring/simple"

# Two summands: the order of adding does not matter.
options=(--device cuda --model lenet --batch 8 --steps 5 --bucket-mb 0.05)
train 2 --backend nccl --share-gpu "${options[@]}"
found=$weights
train 0 --backend none --virtual-workers 2 "${options[@]}"
[[ $found == "$weights" ]] || fail "trained to '$found', expected '$weights'"
echo "train: ${found:0:12}, as one process that plays two workers"
