#!/usr/bin/env bash
# test_nccl.sh: psring with --backend nccl on two and three ranks. The device is emulated, and a stand-in for NCCL sums
# between processes. Checks sums, groups, registered memory, and the proof of the algorithm.
set -euo pipefail
test_images=100
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
unset NCCL_ALGO NCCL_PROTO NCCL_DEBUG NCCL_DEBUG_SUBSYS NCCL_DEBUG_FILE

# column NAME: print its values in all rows of the table; a dot means an empty value.
column()
{
    awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i }
                          NR > 1 { print $at == "" ? "." : $at }' "$folder/bench.csv" | paste -sd' '
}

# bench RANKS OPTION...: run all-reduces of four sizes.
bench()
{
    rm -f "$folder/bench.csv"
    "$lib/mpirun.sh" "$1" "$psring" bench --backend nccl --device cuda --share-gpu -b 4 -e 1m -f 64 -n 3 -w 1 \
        --csv "$folder/bench.csv" --json "$folder/bench.json" "${@:2}" >"$folder/log" 2>&1
}

for ranks in 2 3; do
    bench $ranks || fail "bench: exit code $?:"
    ! grep DIFFER "$folder/log" || fail "NCCL's bytes are unknown, but were reported as wrong:"
    [[ $(column wrong) == '0 0 0 0' ]] || fail "wrong: $(column wrong)"
    for field in worker_sent_bytes worker_recv_bytes server_sent_bytes server_recv_bytes; do
        [[ $(column $field) == '. . . .' ]] || fail "$field must be unknown, found: $(column $field)"
    done
    (($(grep -c '"nccl_algorithm":[[:space:]]*"ring/simple"' "$folder/bench.json") == 4)) || fail "$(cat "$folder/bench.json")"
done
echo "bench: four sizes, exact, no bytes counted, ring/simple"

# --- the algorithm: NCCL's log must name the requested one, else the run is wrong --------------------

algorithms() # WHAT EXPECTED OPTION...
{
    local what=$1 expected=$2
    shift 2
    bench 2 "$@" || fail "$what: exit code $?:"
    [[ $(column nccl_algorithm) == "$expected" ]] || fail "$what: $(column nccl_algorithm), expected $expected"
    echo "$what: $expected"
}

# contradicted WHAT WORDS OPTION...: the run fails, rank 0 prints the words once, and the table has no row.
contradicted()
{
    local what=$1 words=$2 rc=0
    shift 2
    bench 2 "$@" || rc=$?
    ((rc != 0)) || fail "$what: exit code 0:"
    (($(grep -c "error: WRONG: $words" "$folder/log") == 1)) || fail "$what: expected '$words' once:"
    [[ ! -e $folder/bench.csv || ! $(column wrong) ]] || fail "$what: there are rows: $(cat "$folder/bench.csv")"
    echo "$what: $words"
}

algorithms "tree" 'tree/simple tree/simple tree/simple tree/simple' --nccl-algo tree
algorithms "NCCL's own choice" 'tree/ll tree/ll tree/ll ring/simple' --nccl-algo auto
NCCL_ALGO=Tree algorithms "the user's, where none is asked for" 'tree/ll tree/ll tree/ll tree/simple' --nccl-algo auto
EMULATED_NCCL_CHOICE=Tree contradicted "a tree instead of the ring" \
    '--nccl-algo ring was requested, but by NCCL.s own log 1 of 1 all-reduces used tree; NCCL_ALGO is Ring'
NCCL_ALGO=Tree contradicted "the environment's tree" '--nccl-algo ring .* used tree; NCCL_ALGO is Tree'
EMULATED_NCCL_CHOICE=NVLS contradicted "another one than the tree" '--nccl-algo tree .* used nvls' --nccl-algo tree
NCCL_DEBUG_SUBSYS=INIT bench 2 || fail "no log:"
[[ $(column nccl_algorithm) == '. . . .' ]] || fail "no log: $(column nccl_algorithm)"
grep -q 'its log does not name the algorithm' "$folder/log" || fail "no log: not reported:"
! "$psring" bench --backend ring --nccl-algo tree >"$folder/log" 2>&1 || fail "--backend ring accepted --nccl-algo:"
grep -q 'error: --nccl-algo tree: --backend ring does not use it' "$folder/log" || fail "--backend ring and --nccl-algo:"

# --- training: groups and registered memory ---------------------------------------------------------------

# Two summands: the order of addition does not matter.
options=(--device cuda --model lenet --batch 8 --steps 5 --bucket-mb 0.05)
export EMULATED_NCCL_REPORT=$folder/report
train 2 --backend nccl --share-gpu "${options[@]}"
found=$weights
train 0 --backend none --virtual-workers 2 "${options[@]}"
[[ $found == "$weights" ]] || fail "trained to '$found', expected '$weights'"
echo "train: ${found:0:12}, the weights of one process that plays two workers"

# reported WHAT GROUPS CALLS REGISTERED: each rank reports these counts. The first group connects the ranks.
reported()
{
    local rank
    for rank in 0 1; do
        [[ $(cat "$folder/report.$rank") == "groups $2 calls $3 registered $4 left 0" ]] ||
            fail "$1: rank $rank: $(cat "$folder/report.$rank"), expected $2 groups, $3 calls, $4 registered"
        rm "$folder/report.$rank"
    done
    echo "$1: $3 all-reduces in $2 groups, registered $4 times"
}
# Six buckets a step. Those of the dense layers are complete at the same time, and form one group.
reported "train" 11 31 0

train 2 --backend nccl --share-gpu --nccl-register on "${options[@]}"
[[ $found == "$weights" ]] || fail "registered memory: trained to '$weights', expected '$found'"
reported "registered" 11 31 1

# Rank 1 cannot register. NCCL needs registered memory on all ranks or none, so both ranks fail.
! train_fails=$(EMULATED_NCCL_FAULT=register:1:0 "$lib/mpirun.sh" 2 "$psring" train --data "$data" --backend nccl \
    --share-gpu --nccl-register on "${options[@]}" 2>&1) || fail "--nccl-register on continues without registered memory: $train_fails"
[[ $train_fails == *'error: --nccl-register on: '* ]] || fail "--nccl-register on: $train_fails"

# A last step of one image: the rank without an image must group its buckets like the other, or the stand-in refuses.
mkdir "$folder/odd"
"$make_dataset" "$folder/odd" 81 20
data=$folder/odd
rm -f "$folder"/report.*
options=(--device cuda --model lenet --batch 8 --epochs 1 --bucket-mb 0.05 --last-batch partial)
train 2 --backend nccl --share-gpu "${options[@]}"
found=$weights
reported "a last step that one rank has no image for" 13 37 0
train 0 --backend none --virtual-workers 2 "${options[@]}"
[[ $found == "$weights" ]] || fail "a joined last step: trained to '$found', expected '$weights'"
