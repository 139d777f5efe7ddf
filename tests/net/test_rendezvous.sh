#!/usr/bin/env bash
# test_rendezvous.sh: without a launcher psring train ends with the same weights as under mpirun, with the ring and
# with the parameter server. Ranks meet by options or by torchrun's environment. Errors at the start are reported.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
# shellcheck source-path=SCRIPTDIR source=../lib/ranks_lib.sh
. "$lib/ranks_lib.sh"
unset RANK WORLD_SIZE MASTER_ADDR MASTER_PORT
common=(--model lenet --batch 8 --steps 20)
launcher=mpirun # of train

# same WHAT RANKS OPTION...: compare the weights of a run under mpirun and by rendezvous.
same()
{
    local what=$1 count=$2 found
    shift 2
    train "$count" "${common[@]}" "$@"
    ranks "$count" train --data "$data" "${common[@]}" "$@" || fail "$what by rendezvous: $(cat "$folder"/rank.*)"
    found=$(sed -n 's/^weights sha256 //p' "$folder/rank.0")
    [[ $found == "$weights" ]] || fail "$what: weights $found by rendezvous, $weights under mpirun"
    for ((rank = 1; rank < count; rank++)); do
        [[ ! -s $folder/rank.$rank ]] || fail "$what: rank $rank printed: $(cat "$folder/rank.$rank")"
    done
}

same "ring" 3 --backend ring
same "one dedicated server" 3 --backend ps
same "two colocated servers" 3 --backend ps --servers 2 --placement colocated

# Started like torchrun starts its processes.
port=$(free_port)
pids=()
for rank in 1 0; do
    RANK=$rank WORLD_SIZE=2 LOCAL_RANK=$rank LOCAL_WORLD_SIZE=2 GROUP_RANK=0 OMP_NUM_THREADS=1 MASTER_ADDR=localhost MASTER_PORT=$port \
        timeout 120 "$psring" bench -e 4k -n 5 -w 1 >"$folder/rank.$rank" 2>&1 &
    pids+=($!)
done
for pid in "${pids[@]}"; do
    wait "$pid" || fail "torchrun's environment: $(cat "$folder"/rank.*)"
done
grep -q ', 2 workers,' "$folder/rank.0" || fail "torchrun's environment: $(cat "$folder/rank.0")"
code=0
RANK=2 WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=$port timeout 200 "$psring" bench >"$folder/rank.2" 2>&1 || code=$?
if ((code != 2)) || ! grep -q "RANK: found '2', expected a whole number from 0 to 1" "$folder/rank.2"; then
    fail "torchrun's environment, rank 2 of 2: exit $code: $(cat "$folder/rank.2")"
fi

# Environment variables that another program has left: no other rank comes, and psring names the variables.
code=0
RANK=0 WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=$port timeout 100 "$psring" bench --startup-timeout 1 \
    >"$folder/rank.0" 2>&1 || code=$?
if ((code != 1)) || ! grep -q 'RANK=0 and WORLD_SIZE=2 in the environment' "$folder/rank.0"; then
    fail "a leaked RANK: exit $code: $(cat "$folder/rank.0")"
fi

# An error of rank 0 alone (it cannot write its table) ends all ranks, also with libpsring, which waits for all ranks.
for library in '' --via-library; do
    port=$(free_port)
    run=(timeout 100 "$psring" bench --backend ring -e 4k -n 5 ${library:+"$library"} --timeout 1000
        --rendezvous "tcp://127.0.0.1:$port" --world-size 2)
    "${run[@]}" --rank 1 >"$folder/rank.1" 2>&1 &
    code=0
    "${run[@]}" --rank 0 >/dev/full 2>"$folder/rank.0" || code=$?
    wait $! && fail "a full disk of rank 0: rank 1 ended with 0"
    ((code == 1)) || fail "a full disk of rank 0: exit $code: $(cat "$folder"/rank.*)"
done

# Every started rank reports the error in one line.
all_say()
{
    local words=$1 rank
    for rank in 0 1; do
        if (($(wc -l <"$folder/rank.$rank") != 1)) || ! grep -qF -- "$words" "$folder/rank.$rank"; then
            fail "rank $rank: expected one line with '$words', found: $(cat "$folder/rank.$rank")"
        fi
    done
}

! ranks 2 bench --backend mpi || fail "--backend mpi was not refused"
all_say "--backend mpi: needs MPI, which a rendezvous"
port=$(free_port)
"$psring" bench --rendezvous "tcp://127.0.0.1:$port" --rank 1 --world-size 3 >"$folder/rank.1" 2>&1 &
other=$!
code=0
"$psring" bench --rendezvous "tcp://127.0.0.1:$port" --rank 0 --world-size 2 >"$folder/rank.0" 2>&1 || code=$?
((code == 2)) || fail "another --world-size: exit $code, expected 2"
code=0
wait "$other" || code=$?
((code == 2)) || fail "another --world-size: exit $code of the other rank, expected 2"
all_say "was started for 3 ranks, rank 0 on"

# Each rank has its own command line. The options of bench must agree, too.
port=$(free_port)
"$psring" bench --rendezvous "tcp://127.0.0.1:$port" --rank 1 --world-size 2 -w 3 >"$folder/rank.1" 2>&1 &
other=$!
! "$psring" bench --rendezvous "tcp://127.0.0.1:$port" --rank 0 --world-size 2 -w 2 >"$folder/rank.0" 2>&1 ||
    fail "another --warmup was not refused"
code=0
wait "$other" || code=$?
((code == 2)) || fail "another --warmup: exit $code, expected 2"
grep -qF -- '--warmup is 3 on rank 1 and 2 on rank 0' "$folder/rank.1" ||
    fail "another --warmup: $(cat "$folder"/rank.*)"

# Rank 0 knows which ranks are missing. Each waiting rank prints their names once.
port=$(free_port)
pids=()
for rank in 1 0; do
    "$psring" bench --rendezvous "tcp://127.0.0.1:$port" --rank $rank --world-size 4 --startup-timeout 8 \
        >"$folder/rank.$rank" 2>&1 &
    pids+=($!)
done
for pid in "${pids[@]}"; do
    ! wait "$pid" || fail "two of four ranks ended well"
done
all_say "rank 0 on $(hostname) gave up: ranks 2 and 3 of 4 did not connect"

# After the start, a rank that ends is named and ends all ranks.
port=$(free_port)
pids=()
for rank in 2 1 0; do
    timeout --kill-after=5 120 "$psring" train --data "$data" "${common[@]}" --steps 1000000 --log-steps 1 \
        --metrics "$folder/metrics" --rendezvous "tcp://127.0.0.1:$port" --rank $rank --world-size 3 \
        >"$folder/rank.$rank" 2>&1 &
    pids[rank]=$!
done
within test -s "$folder/metrics" || fail "no step of three ranks: $(cat "$folder"/rank.*)"
kill -KILL "$(pgrep -P "${pids[1]}")" # the psring below timeout
for rank in 0 2; do
    ! wait "${pids[rank]}" || fail "rank $rank ended well without rank 1"
done
tail -n 1 "$folder/rank.0" | grep -q 'rank 1 on .* has ended' ||
    fail "rank 0's last line does not name rank 1: $(cat "$folder/rank.0")"

# A run ends even if no process reads its messages: stderr is a full pipe. The rank that is left is rank 0, then rank 1.
mkfifo "$folder/unread"
exec 9<>"$folder/unread"
dd if=/dev/zero of="$folder/unread" bs=4096 oflag=nonblock 2>/dev/null || true
for left in 0 1; do
    port=$(free_port)
    for rank in 1 0; do
        timeout --kill-after=5 120 "$psring" train --data "$data" "${common[@]}" --steps 1000000 --log-steps 1 \
            --metrics "$folder/unread.$left" --rendezvous "tcp://127.0.0.1:$port" --rank $rank --world-size 2 \
            >"$folder/rank.$rank" 2>&9 &
        pids[rank]=$!
    done
    within test -s "$folder/unread.$left" || fail "no step of two ranks"
    kill -KILL "$(pgrep -P "${pids[!left]}")"
    status=0
    wait "${pids[left]}" || status=$?
    ((status != 0 && status != 124 && status != 137)) || fail "rank $left with a full stderr: exit $status"
done
exec 9>&-
echo "rendezvous: the same weights as under mpirun"
