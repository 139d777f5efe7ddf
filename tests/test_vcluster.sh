#!/usr/bin/env bash
# test_vcluster.sh LINK_RATE_PROGRAM: experiments/vcluster.sh keeps its promises. Uses clusters of
# names of its own; exits 77 (skipped) where namespaces are not to be had.
# shellcheck disable=SC2016  # what is in single quotes is expanded by the shell that is started there
set -uo pipefail

vcluster=$(cd "$(dirname "$0")/.." && pwd)/experiments/vcluster.sh
link_rate=$1
a=test-$$-a
b=test-$$-b
passed=0
failed=0

if ((EUID != 0)) || ! unshare --net true 2>/dev/null || ! command -v ip mpirun >/dev/null; then
    echo "test_vcluster: skipped: needs root, network namespaces, ip and mpirun"
    exit 77
fi
trap '"$vcluster" down --name $a; "$vcluster" down --name $b' EXIT

# expect WHAT COMMAND...: the command succeeds.
expect()
{
    local what=$1
    shift
    if "$@" >/tmp/test_vcluster.$$ 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $what: $*"
        sed 's/^/    /' /tmp/test_vcluster.$$
    fi
    rm -f /tmp/test_vcluster.$$
}

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

# within SECONDS COMMAND...: it succeeds before that time is over.
within()
{
    local deadline=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        ((SECONDS <= deadline)) || { echo "not within the time" && return 1; }
        sleep 0.1
    done
}

has_processes()
{
    (($(processes $a) > 0))
}

has_no_processes()
{
    (($(processes $a) == 0))
}

is_gone()
{
    (($(namespaces "$1") == 0)) && [[ ! -e /run/psring-vcluster/$1 ]]
}

# The link carries no more than its limit (a twentieth for what the bucket had saved), and something
# of that order: how near it comes depends on how busy the machine is.
link_is_limited()
{
    local limit=$1 measured
    shift
    measured=$("$@") || return 1
    echo "measured $measured of $limit bit/s"
    ((measured * 20 < limit * 21 && measured * 4 > limit))
}

interrupt_run()
{
    local signal=$1 pid
    "$vcluster" run --name $a -n 3 -- sleep 300 &
    pid=$!
    within 10 has_processes || return 1
    sleep 0.5 # mpirun has started; some of the ranks have
    kill -"$signal" $pid
    within 10 has_no_processes || return 1
    ! wait $pid
}

goes_with_its_owner()
{
    "$BASH" -c '"$1" up --name "$2" --hosts 1 --rate 100mbit --owner $$ && kill -KILL $$' \
        owner "$vcluster" $b
    within 10 is_gone $b
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
expect "a host of no cluster is refused" fails_with 1 "$vcluster" exec --name $a host3 -- true
expect "each direction is limited" link_is_limited 50000000 \
    "$vcluster" run --name $a -n 2 -- "$link_rate" 1500000

expect "a second cluster" "$vcluster" up --name $b --hosts 2 --rate 50mbit
expect "the clusters differ in their subnets" bash -c \
    '[[ $("$0" exec --name "$1" host0 -- printenv PSRING_BIND_SUBNET) != \
        $("$0" exec --name "$2" host0 -- printenv PSRING_BIND_SUBNET) ]]' "$vcluster" $a $b
expect "down" "$vcluster" down --name $b
expect "down leaves nothing" is_gone $b
expect "down again is no error" "$vcluster" down --name $b
expect "the first cluster is untouched" "$vcluster" status --name $a

ip -n psring-$a-0 link delete eth0
ip netns delete psring-$a-1
expect "status sees damage" fails_with 1 "$vcluster" status --name $a
expect "up repairs it" "$vcluster" up --name $a --hosts 3 --rate 50mbit
expect "and all is whole" "$vcluster" status --name $a
ip netns delete psring-$a-switch
expect "up repairs the switch and takes a new rate" "$vcluster" up --name $a --hosts 3 --rate 20mbit
expect "the new rate is in force" link_is_limited 20000000 \
    "$vcluster" run --name $a -n 2 -- "$link_rate" 600000

for signal in INT TERM KILL; do
    expect "SIG$signal to run leaves no process" interrupt_run $signal
done
expect "the cluster is still whole" "$vcluster" status --name $a
expect "fewer hosts" "$vcluster" up --name $a --hosts 1 --rate 20mbit
expect "one host and a switch" prints 2 namespaces $a

"$vcluster" exec --name $a host0 -- sleep 300 &
expect "a process on a host" within 5 has_processes
expect "down with a process there" "$vcluster" down --name $a
expect "takes it along" fails_with 143 wait $!
expect "and leaves nothing" is_gone $a
expect "a killed owner takes its cluster along" goes_with_its_owner

echo "test_vcluster: $passed passed, $failed failed"
((failed == 0))
