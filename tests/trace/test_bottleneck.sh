#!/usr/bin/env bash
# test_bottleneck.sh: stages the causes of slow training in the virtual cluster. psring train, its row in
# train.csv and psring trace name the same cause. Without evidence they name none and promise nothing.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
needs_namespaces

# stage WHAT CAUSE WORDS RANKS OPTION...: trains on the cluster. The row has the cause, and the text begins with WORDS, both
# patterns. Sets $said to the text. $launched stands before psring. Other processes may disturb a training: it has five
# tries.
launched=()
stage()
{
    local what=$1 cause=$2 words=$3 ranks=$4 traced try
    shift 4
    for try in 1 2 3 4 5; do
        rm -f "$folder/rows.csv"
        "$vcluster" run --name "$cluster" -n "$ranks" -- ${launched+"${launched[@]}"} "$psring" train \
            --metrics "$folder/rows.csv" --timeline "$folder/timeline.json" "$@" >"$folder/log" 2>&1 ||
            fail "$what: psring train failed:"
        said=$(sed -n 's/^limited by //p' "$folder/log")
        [[ ! $said =~ ^$words ]] || break
        echo "$what, try $try: limited by $said"
    done
    [[ $said =~ ^$words ]] || fail "$what: limited by $said"
    in_row bottleneck "$cause"
    "$psring" trace "$folder/timeline.json" >"$folder/trace" 2>&1 || fail "$what: psring trace failed"
    traced=$(sed -n 's/^limited by \([^:]*\):.*/\1/p' "$folder/trace")
    [[ $traced == "${said%%:*}" ]] || fail "$what: psring train is limited by ${said%%:*}, psring trace by $traced"
    echo "$what: limited by $said"
}

# names_nothing: the text and the row promise no saving.
names_nothing()
{
    [[ $said != *would* && $said != *--compress* ]] || fail "a saving without evidence: $said"
    in_row improved_step_ms ""
}

# in_row COLUMN PATTERN: in the last row the column matches, as a whole.
in_row()
{
    awk -F , -v name="$1" -v value="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i }
        END { exit !at || $at !~ "^" value "$" }' "$folder/rows.csv" || { cat "$folder/rows.csv" && fail "$1 is not '$2'"; }
}

paced="--model lenet --steps 6 --compute paced:20"
cluster_up 4 20mbit
# shellcheck disable=SC2086 # options
stage "a slow link" link "the link: .* of a step waits .*; ring is at .* of the link, 20 Mbit/s; at 1 Gbit/s .*--compress fp16" \
    4 --backend ring $paced
# shellcheck disable=SC2086
stage "one server for three workers" server "the server: .* with as many servers as workers a step would take" \
    4 --backend ps $paced
launched=(env -u PSRING_LINK_BITS)
# shellcheck disable=SC2086
stage "a link of unknown rate" averaging "averaging: .* not known: the links' rate is not known" 4 --backend ring $paced
names_nothing
launched=()
# shellcheck disable=SC2086
stage "a rate that cannot be" averaging "averaging: .* not known: .*--link-rate is not this link's rate" 4 --backend ring $paced \
    --link-rate 2mbit
names_nothing
"$vcluster" up --name "$cluster" --hosts 4 --rate 200mbit --shape host2:10mbit >"$folder/log" 2>&1 || fail "no slow link:"
# shellcheck disable=SC2086
stage "one slow link of four" averaging "averaging: .* not known: ring is at .* of the link, 200 Mbit/s" 4 --backend ring $paced
names_nothing
sed -n '/^critical paths of all/,$p' "$folder/trace" | sed -n 2p >"$folder/first"
grep -qE "link from rank (2 to rank 3|1 to rank 2)" "$folder/first" ||
    fail "the slow link is not the first thing in the critical paths: $(cat "$folder/first")"

# Four ranks a core average 4.8 MB without a limit on links. The processors are named if the cores were above 85% busy, and
# not with other processes. test_bottleneck.c has all cases in numbers.
cluster_up 4x"$(nproc)" none
if (($(nproc) <= 8)); then
    stage "busy cores" "(processors|averaging)" "(the processors|averaging): .*cores were .* busy meanwhile" $((4 * $(nproc))) \
        --backend ring --model keras-cnn --steps 120 --compute paced:1
    [[ $said == "the processors"* || $said == *"with other processes"* || $said =~ (8[0-5]|[1-7][0-9])"% busy" ]] ||
        fail "busy cores: limited by $said"
    names_nothing
fi
stage "a slow rank" rank "rank 2: the other ranks wait for it for .* of a step" 4 --backend ring --model lenet --steps 6 \
    --compute paced:20 --straggler 2:4
in_row bottleneck_rank 2
stage "computation" computation "computation: " 4 --backend ring --model lenet --steps 6 --compute paced:200
"$make_dataset" "$folder" 12000 300 # as for a fast GPU: one thread makes its batches
stage "a slow loader" loader "the loader: ranks wait for the next batch for .* of a step" 1 --backend ring --model lenet \
    --steps 6 --compute paced:1 --batch 2000 --data "$folder" --data-threads 1 --augment rotate:15,shift:2

# Four ranks a core, all of which compute.
train $((4 * $(nproc) < 32 ? 4 * $(nproc) : 32)) --backend ring --model lenet --batch 32 --steps 6 --threads $(($(nproc) / 8 + 1))
grep -q "^limited by the processors: ranks that could compute" "$folder/log" || fail "four ranks a core:"
echo "four ranks a core: $(grep "^limited by" "$folder/log")"
