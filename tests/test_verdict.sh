#!/usr/bin/env bash
# test_verdict.sh PSRING MAKE_DATASET: runs that something known limits, in the virtual cluster; psring train says what.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=train_lib.sh
. "$(dirname "$0")/train_lib.sh"
needs_namespaces

# stage WHAT LIMIT RANKS OPTION...: trains on the cluster, and is limited by that: a pattern of the words after it.
stage()
{
    local what=$1 limit=$2 ranks=$3 said
    shift 3
    rm -f "$folder/rows.csv"
    "$vcluster" run --name "$cluster" -n "$ranks" -- "$psring" train --model lenet --steps 8 --metrics "$folder/rows.csv" \
        "$@" >"$folder/log" 2>&1 || fail "$what: psring train failed:"
    said=$(sed -n 's/^limited by //p' "$folder/log")
    [[ $said =~ ^$limit ]] || fail "$what: limited by $said"
    echo "$what: limited by $said"
}

# in_row COLUMN VALUE: the last row says so, too.
in_row()
{
    awk -F , -v name="$1" -v value="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i }
        END { exit !at || $at != value }' "$folder/rows.csv" || { cat "$folder/rows.csv" && fail "$1 is not $2"; }
}

cluster_up 5 20mbit
stage "slow link" "the network: .* of a step waits .*; ring is at .* of the link, 20 Mbit/s; at 1 Gbit/s" 4 \
    --backend ring --compute paced:20
in_row limit network
stage "one server" "the server: " 5 --backend ps --compute paced:20
in_row limit server

cluster_up 4 10gbit
stage "tiny batch" "steps that are too small: .*a larger --batch" 4 --backend ring --compute paced:0.2 --bucket-mb 0.02
in_row limit overhead
"$make_dataset" "$folder" 16000 300 # as for a fast GPU: one thread makes its batches, with a core left for another, if there is one
stage "slow loader" "data: .*$( (($(nproc) < 2)) || echo "with --loaders [2-9]")" $(($(nproc) < 4 ? 1 : 2)) --backend ring \
    --compute paced:1 --batch 4000 --data "$folder" --loaders 1 --augment rotate:15,shift:2
in_row limit data
stage "slow rank" "rank 2: the others wait for it for .*% of a step" 4 --backend ring --compute paced:100 --straggler 2:4
in_row limit rank
in_row limit_rank 2
stage "nothing wrong" "computation: " 4 --backend ring --compute paced:500
in_row limit computation

# Four ranks a core, all of which compute.
train $((4 * $(nproc) < 32 ? 4 * $(nproc) : 32)) --backend ring --model lenet --batch 32 --steps 6 --threads $(($(nproc) / 8 + 1))
grep -q "^limited by the processors: " "$folder/log" || fail "four ranks a core:"
echo "four ranks a core: $(grep "^limited by" "$folder/log")"

# Of four links one is slower than the others: the timeline says which.
cluster_up 4 200mbit
"$vcluster" exec --name "$cluster" host2 -- tc qdisc replace dev eth0 root tbf rate 10mbit burst 32kb limit 3mb
stage "one slow link of four" "the network: .*: a link is slower than that" 4 --backend ring --compute paced:10 \
    --timeline "$folder/timeline.json"
"$psring" trace "$folder/timeline.json" >"$folder/log" 2>&1 || fail "psring trace:"
grep -q "^limited by the network" "$folder/log" || fail "one slow link of four, psring trace:"
sed -n '/^critical paths of all/,$p' "$folder/log" | sed -n 2p >"$folder/first"
grep -q "link from rank 2 to rank 3" "$folder/first" || fail "the slow link is not the first thing in the critical paths:"
echo "one slow link of four: $(cat "$folder/first")"
