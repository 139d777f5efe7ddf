#!/usr/bin/env bash
# test_vcluster.sh LINK_RATE_PROGRAM: all commands of experiments/vcluster.sh. Its clusters have unique names. Skipped
# without namespaces.
# shellcheck disable=SC2016  # the started shell expands the text in single quotes
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
link_rate=$1
a=test-$$-a
b=test-$$-b
needs_namespaces
at_end "$vcluster" down --name $a
at_end "$vcluster" down --name $b

fails_with()
{
    local wanted=$1 status=0
    shift
    "$@" || status=$?
    ((status == wanted)) || { echo "exit $status, expected $wanted" && return 1; }
}

prints()
{
    local wanted=$1 output
    shift
    output=$("$@") || return 1
    [[ $output == "$wanted" ]] || { echo "printed '$output', expected '$wanted'" && return 1; }
}

namespaces()
{
    ip netns list | awk -v prefix="psring-$1-" 'index($1, prefix) == 1' | wc -l
}

processes()
{
    local ns
    for ns in $(ip netns list | awk -v prefix="psring-$1-" 'index($1, prefix) == 1 { print $1 }'); do
        ip netns pids "$ns"
    done | wc -l
}

has_processes()
{
    (($(processes $a) > 0))
}

# As many sleeping processes on the hosts as ranks: mpirun has started all.
has_ranks()
{
    local ns
    for ns in psring-$a-{0..2}; do
        ip netns pids "$ns" | xargs -r ps -o args= -p
    done | grep -c '^sleep 300' | grep -qx 3
}

has_no_processes()
{
    (($(processes $a) == 0))
}

is_gone()
{
    (($(namespaces "$1") == 0)) && [[ ! -e /run/psring-vcluster/$1 ]]
}

# link_carries WHAT BITS COMMAND...: the command prints at most (WHAT: at-most) or more than (more-than) BITS a
# second. The token bucket may have saved a twentieth. A busy machine can stay below the limit, but no measurement
# exceeds it.
link_carries()
{
    local what=$1 limit=$2 measured
    shift 2
    measured=$("$@") || return 1
    echo "measured $measured bit/s"
    case $what in
    at-most) ((measured * 20 < limit * 21)) ;;
    more-than) ((measured > limit)) ;;
    esac
}

interrupt_run()
{
    local signal=$1 pid
    "$vcluster" run --name $a -n 3 -- sleep 300 &
    pid=$!
    within has_ranks || return 1
    kill -"$signal" $pid
    within has_no_processes || return 1
    ! wait $pid
}

goes_with_its_owner()
{
    "$BASH" -c '"$1" up --name "$2" --hosts 1 --rate 100mbit --owner $$ && kill -KILL $$' \
        owner "$vcluster" $b
    within is_gone $b
}

has_switch()
{
    [[ -e /run/netns/psring-$b-switch ]]
}

# `up` is killed before all hosts exist, and then the owner ends.
goes_half_raised()
{
    sleep 300 &
    local owner=$! up
    "$vcluster" up --name $b --hosts 20 --rate 100mbit --owner $owner &
    up=$!
    within has_switch
    kill -KILL $up
    kill $owner
    within is_gone $b
}

# A cluster stays when the owner of an earlier cluster of that name ends.
watches_nothing()
{
    ! pgrep -f "psring-vcluster-watch .* $b( |\$)|vcluster.sh down --name $b" >/dev/null
}

outlives_an_earlier_owner()
{
    sleep 300 &
    local owner=$!
    "$vcluster" up --name $b --hosts 1 --rate 100mbit --owner $owner
    "$vcluster" down --name $b
    "$vcluster" up --name $b --hosts 1 --rate 100mbit
    kill $owner
    within watches_nothing && "$vcluster" status --name $b
}

expect "bad usage has its own exit code" fails_with 2 "$vcluster" up --name $a --hosts 0 --rate 100mbit
expect "an owner is a process" fails_with 2 "$vcluster" up --name $a --hosts 1 --rate 100mbit --owner 0
expect "a rate needs a unit" fails_with 2 "$vcluster" up --name $a --hosts 1 --rate 100
expect "bad usage leaves nothing" is_gone $a
expect "run without a cluster fails" fails_with 1 "$vcluster" run --name $a -n 1 -- true

expect "up" "$vcluster" up --name $a --hosts 3 --rate 50mbit
expect "status of a complete cluster" "$vcluster" status --name $a
expect "three hosts and a switch" prints 4 namespaces $a
expect "every rank has a host" prints "host0 host1 host2" \
    bash -c '"$0" run --name "$1" -n 3 -- hostname | sort | xargs' "$vcluster" $a
expect "programs get the network in the environment" prints "vcluster:50mbit 50000000" \
    "$vcluster" run --name $a -n 1 -- sh -c 'echo $PSRING_NETWORK $PSRING_LINK_BITS'
expect "hosts have names" "$vcluster" exec --name $a host0 -- getent hosts host2
expect "an exit status passes through" fails_with 7 "$vcluster" run --name $a -n 2 -- sh -c 'exit 7'
knows_the_switch() # HOST
{
    local switch known
    switch=$(ip -n psring-$a-switch -o link show br0 | sed 's/.*ether \([^ ]*\).*/\1/')
    known=$(ip -n "psring-$a-$1" neigh show | grep '\.254 ')
    [[ $known == *"lladdr $switch "* ]] || { echo "the switch is $switch, host$1 has: $known" && return 1; }
}
for host in 0 1 2; do
    expect "host$host knows the address of the new switch" knows_the_switch $host
done
# A crashed mpirun may leave a process that keeps its output open.
mkdir "$folder/crashes"
printf '#!/bin/sh\nsleep 300 &\nexit 3\n' >"$folder/crashes/mpirun"
chmod +x "$folder/crashes/mpirun"
expect "a run ends with its mpirun" fails_with 3 timeout 60 env "PATH=$folder/crashes:$PATH" \
    "$vcluster" run --name $a -n 2 -- true
expect "exec refuses an unknown host" fails_with 1 "$vcluster" exec --name $a host3 -- true
expect "each direction is limited" link_carries at-most 50000000 \
    "$vcluster" run --name $a -n 2 -- "$link_rate" 1500000

expect "a second cluster" "$vcluster" up --name $b --hosts 2 --rate 50mbit
expect "the clusters differ in their subnets" bash -c \
    '[[ $("$0" exec --name "$1" host0 -- printenv PSRING_BIND_SUBNET) != \
        $("$0" exec --name "$2" host0 -- printenv PSRING_BIND_SUBNET) ]]' "$vcluster" $a $b
expect "down" "$vcluster" down --name $b
expect "down leaves nothing" is_gone $b
expect "a second down is no error" "$vcluster" down --name $b
expect "the first cluster still exists" "$vcluster" status --name $a

# Without the time-out mpirun would wait for ever for its daemon on host1.
ip -n psring-$a-switch link set port1 down
refuses_in_words()
{
    fails_with 1 "$vcluster" run --name $a -n 3 --launch-timeout 5 -- true 2>"$folder/words" &&
        tail -n 1 "$folder/words" | grep 'have not begun within 5 s: rank 1 on host1 cannot, its host does not answer'
}
expect "a launch with an unreachable host ends" refuses_in_words
expect "the launch leaves no process" prints 0 processes $a
ip -n psring-$a-switch link set port1 up
expect "a restored link is enough for status" within "$vcluster" status --name $a
expect "run names a missing program" bash -c \
    '"$0" run --name "$1" -n 2 -- /nowhere 2>&1 | grep "mpirun could not start /nowhere"' "$vcluster" $a
names_the_killed()
{
    fails_with 137 "$vcluster" run --name $a -n 2 -- \
        sh -c '[ $OMPI_COMM_WORLD_RANK = 0 ] && kill -KILL $$; sleep 60' 2>"$folder/words" &&
        tail -n 1 "$folder/words" | grep 'rank 0 on host0 was ended by signal 9'
}
expect "run names a rank that is killed" names_the_killed

ip -n psring-$a-0 link delete eth0
ip netns delete psring-$a-1
expect "status detects damage" fails_with 1 "$vcluster" status --name $a
expect "up repairs the hosts" "$vcluster" up --name $a --hosts 3 --rate 50mbit
expect "the cluster is complete again" "$vcluster" status --name $a
ip netns delete psring-$a-switch
expect "up repairs the switch and takes a new rate" "$vcluster" up --name $a --hosts 3 --rate 5mbit
expect "the new rate is in force" link_carries at-most 5000000 \
    "$vcluster" run --name $a -n 2 -- "$link_rate" 600000
expect "up takes a higher rate" "$vcluster" up --name $a --hosts 3 --rate 500mbit
expect "the higher rate is in force" link_carries more-than 5250000 \
    "$vcluster" run --name $a -n 2 -- "$link_rate" 3000000

expect "up removes the limit" "$vcluster" up --name $a --hosts 3 --rate none
expect "programs get the network without a limit" prints "vcluster:none 0" \
    "$vcluster" exec --name $a host0 -- sh -c 'echo $PSRING_NETWORK $PSRING_LINK_BITS'
expect "no token bucket is left" prints "" ip netns exec psring-$a-0 sh -c 'tc qdisc show dev eth0 | grep tbf; true'

for signal in INT TERM KILL; do
    expect "SIG$signal to run leaves no process" interrupt_run $signal
done
expect "the cluster is still complete" "$vcluster" status --name $a
expect "hosts with slots" "$vcluster" up --name $a --hosts 2x2 --rate 20mbit
expect "status prints the slots" bash -c '"$0" status --name "$1" | grep "^$1: 2 hosts of 2 slots on "' "$vcluster" $a
ranks_on_hosts() # OPTION...
{
    "$vcluster" run --name $a -n 4 "$@" -- sh -c 'echo $OMPI_COMM_WORLD_RANK$(hostname)' | sort | xargs
}
expect "a host's slots are filled first" prints "0host0 1host0 2host1 3host1" ranks_on_hosts
expect "or ranks go to the hosts alternately" prints "0host0 1host1 2host0 3host1" ranks_on_hosts --map-by node
expect "the last ranks are in the switch" prints "0host0 1host0 2host1 3switch" ranks_on_hosts --in-switch 1
expect "the switch takes no rank of a worker" fails_with 2 "$vcluster" run --name $a -n 2 --in-switch 2 -- true
# No host has an address in this network. All ranks end with this message: none waits for the others.
outside()
{
    local said status=0
    said=$("$vcluster" run --name $a -n 4 -- "$psring" bench --backend mpi -e 1k -n 1 --probe off --subnet 203.0.113.0/24 2>&1) || status=$?
    ((status == 1)) && grep -q 'no IPv4 address in 203.0.113.0/24' <<<"$said" && ! grep -q 'still meeting' <<<"$said"
}
expect "a network of no host ends all ranks at once" outside
expect "run refuses more ranks than slots" fails_with 1 "$vcluster" run --name $a -n 5 -- true
expect "up refuses 0 slots" fails_with 2 "$vcluster" up --name $a --hosts 2x0 --rate 20mbit

# Racks and a slow host: the slowest link between two hosts limits their rate.
expect "racks, and a slower host" "$vcluster" up --name $a --hosts 4 --rate 500mbit --shape racks:2x5mbit+host3:1mbit
expect "status prints the shape" bash -c \
    '"$0" status --name "$1" | grep ", 500mbit each way, racks of 2 hosts joined by 5mbit, host3 1mbit$"' "$vcluster" $a
expect "programs get the shape in the environment" prints "vcluster:500mbit/racks:2x5mbit+host3:1mbit 500000000" \
    "$vcluster" exec --name $a host0 -- sh -c 'echo $PSRING_NETWORK $PSRING_LINK_BITS'
for host in 0 1 2 3; do
    expect "host$host in a rack knows the address of the new switch" knows_the_switch $host
done
between() # BYTES HOST HOST
{
    "$vcluster" run --name $a -n 4 --launch-timeout 120 -- "$link_rate" "$@" # over slow links, on a busy machine
}
expect "the rack's link does not limit hosts in the rack" link_carries more-than 5250000 between 3000000 0 1
expect "the rack's link limits hosts in different racks" link_carries at-most 5000000 between 300000 1 2
expect "a slower host has its own limit" link_carries at-most 1000000 between 300000 2 3
expect "up removes the racks" "$vcluster" up --name $a --hosts 4 --rate 500mbit
expect "hosts reach each other without racks" link_carries more-than 5250000 between 3000000 1 2
expect "no rack is left" prints "br0" bash -c \
    'ip -n "psring-$0-switch" -o link show type bridge | sed "s/^[0-9]*: \([a-z0-9]*\).*/\1/"' $a
expect "other racks" "$vcluster" up --name $a --hosts 4 --rate 500mbit --shape racks:1x5mbit
expect "programs get the racks in the environment" prints 1:100 \
    "$vcluster" exec --name $a host0 -- printenv PSRING_RACKS
expect "hosts reach each other through other racks" link_carries at-most 5000000 between 300000 0 1
expect "up refuses a shape with an unknown host" fails_with 2 "$vcluster" up --name $a --hosts 4 --rate 500mbit --shape host4:1mbit
for shape in '' racks:4 racks:0x1mbit host1:5 host1:none racks:2x1mbit+racks:2x1mbit host1:1mbit+ flat+host1:1mbit; do
    expect "up refuses the shape '$shape'" fails_with 2 "$vcluster" up --name $a --hosts 4 --rate 500mbit --shape "$shape"
done
expect "the rate that all hosts have at once" prints "25000000, racks of 4 hosts joined by 100mbit, host2 50mbit" \
    "$vcluster" shape 200mbit racks:4x100mbit+host2:50mbit
expect "fewer hosts" "$vcluster" up --name $a --hosts 1 --rate 20mbit
expect "one host and a switch" prints 2 namespaces $a

"$vcluster" exec --name $a host0 -- sleep 300 &
expect "a process on a host" within has_processes
expect "down with a process on a host" "$vcluster" down --name $a
expect "down ends the process" fails_with 143 wait $!
expect "down with a process leaves nothing" is_gone $a
expect "a cluster goes when its owner is killed" goes_with_its_owner
expect "an incomplete cluster goes with its owner" goes_half_raised
expect "a cluster stays when an earlier owner ends" outlives_an_earlier_owner

all_passed
