#!/usr/bin/env bash
# test_addresses.sh: two hosts with the same name, as network namespaces. On both hosts the first interface leads
# nowhere: docker0 with 172.17.0.1. The ranks find the addresses that work, over IPv4 and over IPv6.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
needs_namespaces
unset RANK WORLD_SIZE MASTER_ADDR MASTER_PORT OMPI_COMM_WORLD_RANK PMIX_RANK PMI_RANK

hosts=net-$$
for host in a b; do
    at_end ip netns del "$hosts-$host"
    ip netns add "$hosts-$host"
    ip -n "$hosts-$host" link add docker0 type veth peer name docker1
    ip -n "$hosts-$host" addr add 172.17.0.1/16 dev docker0
    for interface in lo docker1 docker0; do
        ip -n "$hosts-$host" link set $interface up
    done
done
ip -n "$hosts-a" link add eth0 type veth peer name eth0 netns "$hosts-b"
number=1
for host in a b; do
    ip -n "$hosts-$host" addr add "10.77.0.$number/24" dev eth0
    ip -n "$hosts-$host" addr add "fd77::$number/64" dev eth0 nodad
    ip -n "$hosts-$host" link set eth0 up
    number=$((number + 1))
done

show()
{
    tail -n 3 "$folder"/rank.* "$folder"/serve 2>/dev/null
}

# on HOST COMMAND...
on()
{
    timeout -k 2 100 ip netns exec "$hosts-$1" "${@:2}"
}

# together WHAT: wait until all started processes have ended, and fail if one of them failed.
together()
{
    local pid
    for pid in "${pids[@]}"; do
        wait "$pid" || fail "$1: $(show)"
    done
}

# three ADDRESS OPTION...: start ranks 0 and 1 on the first host and rank 2 on the second.
three()
{
    local at=$1 rank host
    pids=()
    for rank in 2 1 0; do
        host=a
        ((rank < 2)) || host=b
        on $host "$psring" bench -e 64k -n 2 -w 1 --rendezvous "$at" --rank $rank --world-size 3 "${@:2}" \
            >"$folder/rank.$rank" 2>&1 &
        pids+=($!)
    done
    together "$*"
}

port=29500 # no other process listens in the new namespaces
three tcp://10.77.0.1:$((port++)) --transport tcp
three "tcp://[fd77::1]:$((port++))" --transport zmq
three tcp://10.77.0.1:$((port++)) --transport zmq --subnet eth0
three "tcp://[fd77::1]:$((port++))" --via-library
three tcp://10.77.0.1:$((port++)) --subnet fd77::/64 --backend ps --placement colocated

pids=()
for rank in 1 0; do
    host=a
    ((rank == 0)) || host=b
    on $host env MASTER_ADDR=fd77::1 MASTER_PORT=$port WORLD_SIZE=2 RANK=$rank "$psring" bench -e 64k -n 2 -w 1 \
        --probe on >"$folder/rank.$rank" 2>&1 &
    pids+=($!)
done
together "MASTER_ADDR=fd77::1"
! MASTER_ADDR=host:1 MASTER_PORT=1 WORLD_SIZE=2 RANK=0 "$psring" bench >"$folder/log" 2>&1 || fail "MASTER_ADDR with a port was accepted:"
grep -q "MASTER_ADDR: found 'host:1'" "$folder/log" || fail "the error does not name MASTER_ADDR:"

at="tcp://[fd77::1]:29600"
on a "$psring" serve --listen "$at" --workers 2 >"$folder/serve" 2>&1 &
serve=$!
pids=()
for host in a b; do
    on $host "$psring" train --backend ps --join "$at" --data "$data" --model mlp --batch 8 --steps 3 \
        >"$folder/rank.$host" 2>&1 &
    pids+=($!)
done
together "serve at $at"
wait "$serve" || fail "serve at $at: $(show)"
echo "addresses: two hosts with the same name reach each other over IPv4 and IPv6"
