#!/usr/bin/env bash
# test_nccl.sh PSRING_EMULATED MAKE_DATASET: psring with --backend nccl on two ranks, by the emulated
# device and a stand-in for NCCL that sums as NCCL would: what the program makes of it.
set -euo pipefail
psring=$1 make_dataset=$2
here=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/data"
"$make_dataset" "$scratch/data" 2000 300

fail()
{
    echo "test_nccl: $*" >&2
    cat "$scratch/out" >&2
    exit 1
}

two()
{
    "$here/mpirun.sh" 2 "$psring" "$@" --device cuda --share-gpu >"$scratch/out" 2>&1 || fail "$*: exit code $?:"
}

# column NAME: of all rows of the table, with a dot for what is empty.
column()
{
    awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i }
                          NR > 1 { print $at == "" ? "." : $at }' "$scratch/bench.csv" | paste -sd' '
}

two bench --backend nccl -b 4 -e 1m -f 64 -n 3 -w 1 --csv "$scratch/bench.csv" --json "$scratch/bench.json"
! grep DIFFER "$scratch/out" || fail "the bytes that NCCL moves are not known, and were said to be wrong:"
[[ $(column wrong) == '0 0 0 0' ]] || fail "wrong: $(column wrong)"
for name in worker_sent_bytes worker_recv_bytes server_sent_bytes server_recv_bytes; do
    [[ $(column $name) == '. . . .' ]] || fail "$name is not known, and is: $(column $name)"
done
(($(grep -c '"nccl_algorithm":[[:space:]]*"ring/simple"' "$scratch/bench.json") == 4)) || fail "$(cat "$scratch/bench.json")"
echo "bench: four sizes, exact, no bytes counted, ring/simple"

# Two summands: the order of adding does not matter.
weights()
{
    sed -n 's/^weights sha256 //p' "$scratch/out"
}
options=(--model lenet --batch 8 --steps 5 --bucket-mb 0.05 --data "$scratch/data")
two train --backend nccl "${options[@]}"
found=$(weights)
"$psring" train --backend none --virtual-workers 2 --device cuda "${options[@]}" >"$scratch/out" 2>&1 || fail "alone:"
[[ $found && $found == "$(weights)" ]] || fail "trained to '$found', expected '$(weights)'"
echo "train: ${found:0:12}, as one process that plays two workers"
