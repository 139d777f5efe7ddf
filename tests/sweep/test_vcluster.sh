#!/usr/bin/env bash
# test_vcluster.sh LINK_RATE_PROGRAM: experiments/vcluster.sh keeps its promises. Uses clusters of
# names of its own; skipped where namespaces are not allowed.
# shellcheck disable=SC2016  # what is in single quotes is expanded by the shell that is started there
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

# As many processes on the hosts as ranks: mpirun has started them.
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

# link_carries WHAT BITS COMMAND...: the command prints no more than, or more than, so many bits a second. More
# than the limit is never measured, but for a twentieth that the bucket had saved; how near it one comes depends on
# how busy the machine is.
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

# up is killed before all hosts are there, and then the owner ends.
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

# The owner of an earlier cluster of that name ends: this one stays.
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

expect "bad usage is told apart" fails_with 2 "$vcluster" up --name $a --hosts 0 --rate 100mbit
expect "a rate needs a unit" fails_with 2 "$vcluster" up --name $a --hosts 1 --rate 100
expect "nothing is left by bad usage" is_gone $a
expect "run without a cluster fails" fails_with 1 "$vcluster" run --name $a -n 1 -- true

expect "up" "$vcluster" up --name $a --hosts 3 --rate 50mbit
expect "status of a whole cluster" "$vcluster" status --name $a
expect "three hosts and a switch" prints 4 namespaces $a
expect "every rank has a host" prints "host0 host1 host2" \
    bash -c '"$0" run --name "$1" -n 3 -- hostname | sort | xargs' "$vcluster" $a
expect "programs learn of the network" prints "vcluster:50mbit 50000000" \
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
    expect "host$host sends to the switch as it is" knows_the_switch $host
done
# A mpirun that has crashed may leave a process that holds its output open.
mkdir "$folder/crashes"
printf '#!/bin/sh\nsleep 300 &\nexit 3\n' >"$folder/crashes/mpirun"
chmod +x "$folder/crashes/mpirun"
expect "a run ends with its mpirun" fails_with 3 timeout 60 env "PATH=$folder/crashes:$PATH" \
    "$vcluster" run --name $a -n 2 -- true
expect "a host of no cluster is refused" fails_with 1 "$vcluster" exec --name $a host3 -- true
expect "each direction is limited" link_carries at-most 50000000 \
    "$vcluster" run --name $a -n 2 -- "$link_rate" 1500000

expect "a second cluster" "$vcluster" up --name $b --hosts 2 --rate 50mbit
expect "the clusters differ in their subnets" bash -c \
    '[[ $("$0" exec --name "$1" host0 -- printenv PSRING_BIND_SUBNET) != \
        $("$0" exec --name "$2" host0 -- printenv PSRING_BIND_SUBNET) ]]' "$vcluster" $a $b
expect "down" "$vcluster" down --name $b
expect "down leaves nothing" is_gone $b
expect "down again is no error" "$vcluster" down --name $b
expect "the first cluster is untouched" "$vcluster" status --name $a

# mpirun would wait for its daemon on host1 without end.
ip -n psring-$a-switch link set port1 down
refuses_in_words()
{
    fails_with 1 "$vcluster" run --name $a -n 3 --launch-timeout 5 -- true 2>"$folder/words" &&
        tail -n 1 "$folder/words" | grep 'have not begun within 5 s: rank 1 on host1 cannot, its host does not answer'
}
expect "a launch that cannot begin ends" refuses_in_words
expect "and leaves no process" prints 0 processes $a
ip -n psring-$a-switch link set port1 up
expect "a link that is up again will do" within "$vcluster" status --name $a
expect "a program that is not there is told" bash -c \
    '"$0" run --name "$1" -n 2 -- /nowhere 2>&1 | grep "mpirun could not start /nowhere"' "$vcluster" $a

ip -n psring-$a-0 link delete eth0
ip netns delete psring-$a-1
expect "status sees damage" fails_with 1 "$vcluster" status --name $a
expect "up repairs it" "$vcluster" up --name $a --hosts 3 --rate 50mbit
expect "and all is whole" "$vcluster" status --name $a
ip netns delete psring-$a-switch
expect "up repairs the switch and takes a new rate" "$vcluster" up --name $a --hosts 3 --rate 5mbit
expect "the new rate is in force" link_carries at-most 5000000 \
    "$vcluster" run --name $a -n 2 -- "$link_rate" 600000
expect "up takes a higher rate" "$vcluster" up --name $a --hosts 3 --rate 500mbit
expect "which is in force, too" link_carries more-than 5250000 \
    "$vcluster" run --name $a -n 2 -- "$link_rate" 600000

expect "up takes the limit away" "$vcluster" up --name $a --hosts 3 --rate none
expect "programs learn of that" prints "vcluster:none 0" \
    "$vcluster" exec --name $a host0 -- sh -c 'echo $PSRING_NETWORK $PSRING_LINK_BITS'
expect "no token bucket is left" prints "" ip netns exec psring-$a-0 sh -c 'tc qdisc show dev eth0 | grep tbf; true'

for signal in INT TERM KILL; do
    expect "SIG$signal to run leaves no process" interrupt_run $signal
done
expect "the cluster is still whole" "$vcluster" status --name $a
expect "hosts with slots" "$vcluster" up --name $a --hosts 2x2 --rate 20mbit
expect "status tells the slots" bash -c '"$0" status --name "$1" | grep "^$1: 2 hosts of 2 slots on "' "$vcluster" $a
ranks_on_hosts() # OPTION...
{
    "$vcluster" run --name $a -n 4 "$@" -- sh -c 'echo $OMPI_COMM_WORLD_RANK$(hostname)' | sort | xargs
}
expect "a host's slots are filled first" prints "0host0 1host0 2host1 3host1" ranks_on_hosts
expect "or dealt out to" prints "0host0 1host1 2host0 3host1" ranks_on_hosts --map-by node
expect "slots are no more than there are" fails_with 1 "$vcluster" run --name $a -n 5 -- true
expect "no slots are no number of them" fails_with 2 "$vcluster" up --name $a --hosts 2x0 --rate 20mbit

# A fast pair and a slow one: each is limited by the narrowest place between its ends.
expect "racks, and a slower host" "$vcluster" up --name $a --hosts 4 --rate 500mbit --shape racks:2x5mbit+host3:1mbit
expect "status tells the shape" bash -c \
    '"$0" status --name "$1" | grep ", 500mbit each way, racks of 2 hosts joined by 5mbit, host3 1mbit$"' "$vcluster" $a
expect "programs learn of the shape" prints "vcluster:500mbit/racks:2x5mbit+host3:1mbit 500000000" \
    "$vcluster" exec --name $a host0 -- sh -c 'echo $PSRING_NETWORK $PSRING_LINK_BITS'
for host in 0 1 2 3; do
    expect "host$host in a rack sends to the switch as it is" knows_the_switch $host
done
between() # HOST HOST
{
    "$vcluster" run --name $a -n 4 --launch-timeout 120 -- "$link_rate" 300000 "$1" "$2" # over slow links, on a busy machine
}
expect "inside a rack its link is no limit" link_carries more-than 5250000 between 0 1
expect "between racks it is" link_carries at-most 5000000 between 1 2
expect "a slower host is limited itself" link_carries at-most 1000000 between 2 3
expect "up takes the racks away" "$vcluster" up --name $a --hosts 4 --rate 500mbit
expect "hosts are found where they are now" link_carries more-than 5250000 between 1 2
expect "no rack is left" prints "br0" bash -c \
    'ip -n "psring-$0-switch" -o link show type bridge | sed "s/^[0-9]*: \([a-z0-9]*\).*/\1/"' $a
expect "other racks" "$vcluster" up --name $a --hosts 4 --rate 500mbit --shape racks:1x5mbit
expect "hosts are found there, too" link_carries at-most 5000000 between 0 1
expect "a shape of hosts that are not there" fails_with 2 "$vcluster" up --name $a --hosts 4 --rate 500mbit --shape host4:1mbit
for shape in '' racks:4 racks:0x1mbit host1:5 host1:none racks:2x1mbit+racks:2x1mbit host1:1mbit+ flat+host1:1mbit; do
    expect "no shape: '$shape'" fails_with 2 "$vcluster" up --name $a --hosts 4 --rate 500mbit --shape "$shape"
done
expect "what all can count on at once" prints "25000000, racks of 4 hosts joined by 100mbit, host2 50mbit" \
    "$vcluster" shape 200mbit racks:4x100mbit+host2:50mbit
expect "fewer hosts" "$vcluster" up --name $a --hosts 1 --rate 20mbit
expect "one host and a switch" prints 2 namespaces $a

"$vcluster" exec --name $a host0 -- sleep 300 &
expect "a process on a host" within has_processes
expect "down with a process there" "$vcluster" down --name $a
expect "takes it along" fails_with 143 wait $!
expect "and leaves nothing" is_gone $a
expect "a killed owner takes its cluster along" goes_with_its_owner
expect "one that is not whole yet, too" goes_half_raised
expect "the owner of an earlier cluster does not" outlives_an_earlier_owner

all_passed
