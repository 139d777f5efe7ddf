#!/usr/bin/env bash
# test_process.sh: unusual surroundings of a rank's process: closed standard streams, a host name of the maximum
# length, and tight limits.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
# shellcheck source-path=SCRIPTDIR source=../lib/ranks_lib.sh
. "$lib/ranks_lib.sh"
unset RANK WORLD_SIZE MASTER_ADDR MASTER_PORT OMPI_COMM_WORLD_RANK PMIX_RANK PMI_RANK
training=(train --data "$data" --model mlp --batch 8 --steps 3)

show()
{
    tail -n 3 "$folder"/rank.*
}

# --- closed descriptors -----------------------------------------------------------------------------

# streams COMMAND...: run the command with the streams closed that $closed names. The descriptor of a closed stream
# must not become a socket's: the log would go into that socket.
streams()
{
    eval '"$@"' "$closed"
}

for closed in '<&- >&- 2>&-' '>&-' '2>&-'; do
    port=$(free_port)
    meet=("${training[@]}" --verbose --rendezvous "tcp://127.0.0.1:$port" --world-size 2)
    timeout 60 "$psring" "${meet[@]}" --rank 0 >"$folder/rank.0" 2>&1 &
    streams timeout 60 "$psring" "${meet[@]}" --rank 1 || true
    wait $! || fail "rank 1 with $closed ended rank 0: $(show)"
done

# Results that cannot be written are an error even with a closed stream.
closed='>&-'
! streams "$psring" bench --backend none -e 4k 2>"$folder/log" || fail "bench succeeded although it could not write its results:"

# --- psring does not start MPI unless an option asks for it -----------------------------------------

# MPI_Init fails if the host's name has 57 letters or more, MPI_T_init_thread from 64.
if unshare --uts true 2>/dev/null; then
    long=$(printf 'a%.0s' {1..64})
    named() # COMMAND...: run it on a host with that name
    {
        # shellcheck disable=SC2016
        unshare --uts sh -c 'hostname "$0" && exec "$@"' "$long" "$@"
    }
    named "$psring" "${training[@]}" --backend none >"$folder/log" 2>&1 || fail "alone, 64 letters:"
    named "$psring" bench -e 4k -n 2 -w 1 >"$folder/log" 2>&1 || fail "bench alone, 64 letters:"
    port=$(free_port)
    meet=(bench -e 4k -n 2 -w 1 --rendezvous "tcp://127.0.0.1:$port" --world-size 2)
    named timeout 60 "$psring" "${meet[@]}" --rank 1 >"$folder/rank.1" 2>&1 &
    named timeout 60 "$psring" "${meet[@]}" --rank 0 >"$folder/rank.0" 2>&1 || fail "rank 0, 64 letters: $(show)"
    wait $! || fail "rank 1, 64 letters: $(show)"
fi
# MPI_Init creates a file of several megabytes.
(ulimit -f 100 && "$psring" "${training[@]}" --backend none) >"$folder/log" 2>&1 || fail "alone, small files:"

# --- too few descriptors ----------------------------------------------------------------------------

# three LIMIT TRANSPORT OPTION...: start three ranks with this limit of descriptors. Either all end well, or all fail
# and report how many they need. Sets $outcome.
three()
{
    local limit=$1 transport=$2 rank ended codes=() pids=()
    shift 2
    port=$(free_port)
    for rank in 2 1 0; do
        (ulimit -n "$limit" && exec timeout -k 2 60 "$psring" "$@" --transport "$transport" --timeout 10 \
            --startup-timeout 10 --rendezvous "tcp://127.0.0.1:$port" --rank $rank --world-size 3) \
            >"$folder/rank.$rank" 2>&1 &
        pids[rank]=$!
    done
    for rank in 0 1 2; do
        ended=0
        wait "${pids[rank]}" || ended=$?
        codes+=("$ended")
    done
    case ${codes[*]} in
    '0 0 0') outcome=works ;;
    '1 1 1') outcome=refused ;;
    *) fail "$limit descriptors, $transport: ended with ${codes[*]}: $(show)" ;;
    esac
    [[ $outcome == works ]] || grep -qE "needs about [0-9]+ file descriptors, the limit is $limit" "$folder"/rank.* ||
        fail "$limit descriptors, $transport: no rank reports how many it needs: $(show)"
}

# tests/long.sh tries all limits. Here each of the two checks meets one limit, and one limit suffices.
limits=(12 20 60)
[[ ${PSRING_TEST_LONG:-0} == 0 ]] || mapfile -t limits < <(seq 8 40)
for transport in tcp zmq; do
    for limit in "${limits[@]}"; do
        three "$limit" $transport bench -e 64k -n 2 -w 1
        [[ ${PSRING_TEST_LONG:-0} == 0 ]] || three "$limit" $transport "${training[@]}" --backend ps --servers 3 \
            --placement colocated
        case $transport-$limit in
        *-12 | zmq-20) [[ $outcome == refused ]] || fail "$limit descriptors, $transport: $outcome" ;;
        *-60) [[ $outcome == works ]] || fail "$limit descriptors, $transport: $outcome: $(show)" ;;
        esac
    done
done
# psring raises the soft limit as far as it needs.
(ulimit -Sn 12 && ranks 3 bench -e 64k -n 2 -w 1 --transport zmq) || fail "a low soft limit: $(show)"

echo "process: closed streams, long names and tight limits cause no failure"
