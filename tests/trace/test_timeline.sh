#!/usr/bin/env bash
# test_timeline.sh CHECK_TIMELINE [--short]: psring train --timeline writes valid files with every
# backend, transport and launcher. Each file has a row for each rank. psring trace agrees with
# train.csv. --short: over zmq and mpi, ring and one server alone.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
check_timeline=$1
steps=6
timeline=$folder/timeline.json

# check WHAT [LOOSE]: the new file is valid; $folder/counts has its events. LOOSE is the number of messages that may
# have one end only.
check()
{
    "$check_timeline" "$timeline" >"$folder/counts" || { tail -n 1 "$folder/counts" && fail "$1"; }
    there "all loose ${2:-0}"
}

# there LINE...: the file has these counts, "RANK CATEGORY COUNT"; COUNT + means any number.
there()
{
    local line
    for line; do
        line=${line/%+/[1-9][0-9]*}
        grep -qx "$line" "$folder/counts" || { cat "$folder/counts" && fail "no '$line' in the timeline"; }
    done
}

# record WHAT RANKS OPTION...
record()
{
    local what=$1 ranks=$2
    shift 2
    train "$ranks" --model lenet --batch 8 --steps $steps --bucket-mb 0.05 --timeline "$timeline" "$@"
    check "$what"
    there "0 step $steps" "0 compute +" "0 data +" "0 optimizer +" "0 exposed +"
    echo "$what: $(sed -n 's/^all flows //p' "$folder/counts") messages"
}

for transport in tcp zmq mpi; do
    backends=(ring rhd tree hierarchical)
    ((!short)) || [[ $transport == tcp ]] || backends=(ring)
    for backend in "${backends[@]}"; do
        record "$backend over $transport" 3 --backend "$backend" --transport $transport
        there "2 bucket +" "1 allreduce +" "2 wait +"
        [[ $backend == hierarchical ]] || there "0 transfer +" "1 message +" "0 link +"
    done
    record "ps over $transport, a dedicated server" 3 --backend ps --transport $transport
    there "0 shard +" "1 message +" "2 server +" "2 message +"
    ((${#backends[@]} > 1)) || continue
    record "ps over $transport, colocated servers" 2 --backend ps --servers 2 --placement colocated \
        --transport $transport
    there "0 shard +" "0 server +" "1 server +"
done
train 3 --model lenet --batch 8 --steps $steps --bucket-mb 0.05 --timeline "$timeline" --backend ps --sync async
# A recording ends with the last step. Without a common step, a worker's last message may be on its way then.
check "ps --sync async" '[0-2]'
there "0 shard +" "2 server +" "2 message +"
"$psring" trace "$timeline" >"$folder/log" || fail "psring trace, async:"
! grep -qE '^(limited by|busiest rank)' "$folder/log" || fail "async: workers that do not wait for each other are judged as if they did:"
record "ring of two" 2 --backend ring --compress fp16
record "pair" 2 --backend ring
there "0 transfer +"
record "doubling" 2 --backend rhd --bucket-mb 0.0001
record "no other process" 0 --backend none
there "all flows 0"
record "loaders" 2 --backend ring --data-threads 3 --augment shift:1
for rank in 0 1; do # some threads may not have made a batch
    grep -q "\"pid\":$rank,\"tid\":[0-9]*,\"name\":\"thread_name\",\"args\":{\"name\":\"loader[0-2]\"}" "$timeline" ||
        fail "no row of a loader of rank $rank"
done

train 2 --backend ring --model lenet --batch 8 --steps 9 --timeline "$timeline" --timeline-steps 3:5
"$check_timeline" "$timeline" >"$folder/counts" || { cat "$folder/counts" && fail "steps 3 to 5"; }
there "0 step 3" "1 step 3"
grep -q '"args":{"step":2}' "$timeline" || fail "the third step is not in the timeline"

# as_train_csv WHAT [parts]: psring trace prints the same step time as the run's row, in the same unit. Both may differ
# by a half: one uses clocks, the other starts at a barrier, and other processes may take the cores in between. With
# "parts" one rank is always the busiest, and its parts are compared within 10%. Both name the same limit, and the
# messages are in order.
as_train_csv()
{
    local said
    said=$(grep "^limited by [^:]*:" -o "$folder/log") || fail "$1: no verdict in:"
    "$psring" trace "$timeline" >"$folder/log" 2>&1 || fail "$1: psring trace:"
    awk -v what="$1" -v parts=$(($# > 1)) '
        FILENAME ~ /csv$/ { for (i = 1; i <= split($0, cell, ","); i++) if (FNR == 1) column[cell[i]] = i; else row[i] = cell[i] }
        $1 == "busiest" { step = $7; exposed = $9; data = $10; rest = $13 }
        $1 == "messages" { order = $NF; messages = $2 + 0 }
        $1 == "critical" && $2 == "path" { path = 1 }
        function near(name, found, expected) {
            if (found - expected > allowed * step || expected - found > allowed * step) {
                printf "%s: %s %s ms in the timeline, %s in the row\n", what, name, found, expected
                bad = 1
            }
        }
        END {
            allowed = parts ? 0.1 : 0.5
            near("step", step, row[column["step_ms_median"]])
            if (parts) {
                near("compute", rest, row[column["compute_ms_median"]])
                near("data", data, row[column["data_ms_median"]])
                near("exposed", exposed, row[column["exposed_comm_ms_median"]])
            }
            if (order != 0 || messages == 0 || !path || step <= 0)
                bad = 1
            exit bad
        }' "$folder/rows.csv" "$folder/log" || fail "$1: psring trace differs from train.csv:"
    [[ $(head -n 1 "$folder/log") == "$said"* ]] || fail "$1: not $said as psring train says:"
    rm "$folder/rows.csv"
}
# pace WHAT OPTION...: two workers that only wait.
pace()
{
    "$lib/ranks.sh" 2 "$psring" train --backend ring --steps 20 --timeline "$timeline" "${@:2}" \
        >"$folder/log" 2>&1 || fail "$1: psring train failed:"
}
train 4 --backend ring --batch 8 --steps 20 --timeline "$timeline" --metrics "$folder/rows.csv"
as_train_csv "ring of four"
train 3 --backend ps --batch 8 --steps 20 --timeline "$timeline" --metrics "$folder/rows.csv"
as_train_csv "a server"
grep -q "server of rank 2" "$folder/log" || fail "no server in the path of a step:"
train 3 --backend rhd --bucket-mb 0 --batch 8 --steps 20 --timeline "$timeline" --metrics "$folder/rows.csv"
as_train_csv "one bucket, no overlap"
train 2 --backend ring --batch 32 --steps 20 --data-threads 1 --prefetch-batches 1 --augment rotate:30 --timeline "$timeline" \
    --metrics "$folder/rows.csv"
as_train_csv "loaders"
pace "a slow rank" --model lenet --compute paced:20 --straggler 1:3 --metrics "$folder/rows.csv"
as_train_csv "a slow rank" parts
grep -q "^limited by rank 1: " "$folder/log" || fail "a slow rank:"

# Both commands reject an impossible link rate.
pace "a rate that cannot be" --model keras-cnn --compute paced:0.1 --link-rate 1e6
grep -q "^limited by averaging: .*--link-rate is not this link's rate" "$folder/log" || fail "a rate that cannot be:"
"$psring" trace "$timeline" >"$folder/log" || fail "psring trace, a rate that cannot be:"
grep -q "^limited by averaging: .*--link-rate is not this link's rate" "$folder/log" || fail "psring trace, a rate that cannot be:"
"$psring" trace "$timeline" --step 7 >"$folder/log" || fail "--step 7:"
grep -q "critical path of step 7 " "$folder/log" || fail "--step 7:"
grep -q "^critical paths of all 20 steps except the first (warm-up)$" "$folder/log" || fail "the first step is among the shares:"

# Recording changes neither the weights nor the bytes.
train 2 --backend ring --model lenet --batch 8 --steps $steps
before=$weights
train 2 --backend ring --model lenet --batch 8 --steps $steps --timeline "$timeline"
[[ $weights == "$before" ]] || fail "recording changes the weights"

# By rendezvous, without MPI. Each rank has its own folder.
# shellcheck source-path=SCRIPTDIR source=../lib/ranks_lib.sh
. "$lib/ranks_lib.sh"
port=$(free_port)
mkdir "$folder/first" "$folder/second"
(cd "$folder/second" && exec "$psring" train --rendezvous "tcp://127.0.0.1:$port" --rank 1 --world-size 2 \
    --data "$data" --model lenet --batch 8 --steps $steps --timeline t.json) >"$folder/log1" 2>&1 &
(cd "$folder/first" && "$psring" train --rendezvous "tcp://127.0.0.1:$port" --rank 0 --world-size 2 \
    --data "$data" --model lenet --batch 8 --steps $steps --timeline t.json) >"$folder/log" 2>&1 ||
    fail "by rendezvous:"
wait $! || fail "rank 1 by rendezvous: $(cat "$folder/log1")"
timeline=$folder/first/t.json
check "by rendezvous"
there "0 step $steps" "1 step $steps"
[[ ! -e $folder/second/t.json ]] || fail "rank 1 wrote a file"

# Wrong options, and a file that cannot be written.
refuse()
{
    local rc=0
    "$psring" train --backend none --data "$data" --model lenet --steps 1 "${@:2}" >"$folder/log" 2>&1 || rc=$?
    ((rc == $1)) || fail "exit code $rc of: ${*:2}"
}
refuse 2 --timeline-steps 1:2
refuse 2 --timeline "$folder/x" --timeline-steps 0:2
refuse 2 --timeline "$folder/x" --timeline-steps 3:2
refuse 2 --timeline "$folder/x" --timeline-steps 3
refuse 2 --timeline "$folder/x" --timeline-steps 1:2x
refuse 2 --timeline "$folder/x" --timeline-steps 2:3
grep -q "timeline-steps 2:3: the run has 1 steps" "$folder/log" || fail "no reason in:"
refuse 2 --timeline ""
refuse 1 --timeline "$folder/none/x"
grep -q "none/x: cannot be written" "$folder/log" || fail "no reason in:"
refuse_trace()
{
    local rc=0
    "$psring" trace "${@:2}" >"$folder/log" 2>&1 || rc=$?
    ((rc == $1)) || fail "exit code $rc of: trace ${*:2}"
}
refuse_trace 2
refuse_trace 2 --step 0 "$timeline"
refuse_trace 2 --steps 3 "$timeline"
refuse_trace 2 "$timeline" --step 99
refuse_trace 1 "$folder/none"
refuse_trace 1 "$data/train-images-idx3-ubyte"
echo "psring train --timeline, psring trace: all right"
