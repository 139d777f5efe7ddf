#!/usr/bin/env bash
# test_distance.sh PSRING_SWITCH: virtual clusters with a latency and a loss (vcluster.sh up --latency). No round trip is
# shorter than the latency, sums are exact, and the process of the switch ends with the cluster. Skipped without
# namespaces or TAP devices.
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
PSRING_SWITCH=$(realpath "$1")
export PSRING_SWITCH
needs_namespaces
{ : <>/dev/net/tun; } 2>/dev/null || skip "needs TAP devices: /dev/net/tun"
cluster=distance-$$
state=/run/psring-vcluster/$cluster
at_end "$vcluster" down --name $cluster

up() # OPTION...
{
    "$vcluster" up --name $cluster --hosts 4 --rate 200mbit --owner $$ "$@"
}

refuses() # WORDS OPTION...
{
    local words=$1 status=0
    shift
    up "$@" 2>"$folder/words" || status=$?
    cat "$folder/words"
    ((status == 2)) && grep -qe "$words" "$folder/words" && [[ ! -e $state ]]
}

expect "a latency is in milliseconds" refuses "from 0.01 to 1000" --latency 10s
expect "a latency is above 0" refuses "from 0.01 to 1000" --latency 0
expect "a loss is a percentage" refuses "from 0 to 10" --latency 1 --loss 11
expect "a loss needs a latency" refuses "needs --latency" --loss 1
expect "no racks with a latency" refuses "expected one of the two" --latency 1 --shape racks:2x5mbit

# not_shorter HOST TO US: the shortest of five round trips takes US microseconds at least. A connection to a port where
# no program listens takes one.
not_shorter()
{
    local shortest
    # shellcheck disable=SC2016  # expanded by the shell on the host
    shortest=$("$vcluster" exec --name $cluster "$1" -- bash -c 'for i in 1 2 3 4 5; do
        start=${EPOCHREALTIME/./}
        { : <"/dev/tcp/$0/9"; } 2>/dev/null
        echo $((${EPOCHREALTIME/./} - start))
    done' "$2" | sort -n | head -n 1)
    echo "from $1 to $2: $shortest us"
    ((shortest >= $3))
}

# averages BACKEND-OPTION...: sums of four workers are exact. Prints link_rtt_us in file `round_trip`.
averages()
{
    rm -f "$folder/bench.csv"
    "$vcluster" run --name $cluster -n 4 -- "$psring" bench --sizes 65536 -n 2 --probe off --csv "$folder/bench.csv" "$@" || return 1
    awk -F , 'NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
        { print int($column["link_rtt_us"]) >"'"$folder"'/round_trip"; network = $column["network"]; wrong += $column["wrong"]; rows++ }
        END { print network; exit !(rows == 1 && wrong == 0) }' "$folder/bench.csv"
}

bench_is_not_shorter() # US
{
    echo "link_rtt_us: $(<"$folder/round_trip")"
    (($(<"$folder/round_trip") >= $1))
}

expect "up with a latency" up --latency 10ms
expect "status of a complete cluster" "$vcluster" status --name $cluster
prints_settings() # WORDS
{
    "$vcluster" status --name $cluster | grep -x "$cluster: 4 hosts on .*, 200mbit each way$1"
}
expect "status prints the latency" prints_settings ", round trips of 10 ms"
expect "hosts are 10 ms apart" not_shorter host0 host3 10000
expect "the switch is half as far" not_shorter host1 switch 5000
expect "hosts are half as far from the switch" not_shorter switch host2 5000
for backend in ring rhd tree "ps --servers 1 --placement colocated"; do
    # shellcheck disable=SC2086  # a word each
    expect "exact sums over 10 ms: $backend" averages --backend $backend
    expect "the round trip in bench.csv: $backend" bench_is_not_shorter 10000
done
named()
{
    averages --backend ring | grep -x "vcluster:$1"
}
expect "rows name the latency" named 200mbit+10ms
starts_slowly_after_idle() # 0|1
{
    [[ $(ip netns exec psring-$cluster-2 cat /proc/sys/net/ipv4/tcp_slow_start_after_idle) == "$1" ]]
}
expect "distant hosts keep TCP's window" starts_slowly_after_idle 0
# The ring of four sends six chunks of 16 KB, one after the other: 655 us each on its cable, and 5 ms on its way.
no_burst_passes_at_once()
{
    awk -F , 'NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
        { print "shortest: " $column["time_us_min"] " us"; exit $column["time_us_min"] < 6 * (5000 + 655) }' "$folder/bench.csv"
}
expect "a cable takes its time for bytes" no_burst_passes_at_once

# Processes on hosts survive a new latency.
"$vcluster" exec --name $cluster host0 -- sleep 300 &
sleeping=$!
has_process()
{
    [[ $(ip netns pids psring-$cluster-0) ]]
}
within has_process
expect "another latency and a loss" up --latency 4 --loss 2%
expect "status prints the loss" prints_settings ", round trips of 4 ms, 2% of the packets lost"
expect "a process on a host survives" has_process
kill $sleeping
expect "hosts are 4 ms apart" not_shorter host0 host3 4000
expect "exact sums in spite of losses" averages --backend ring --sizes 1048576
has_sent_again()
{
    local host again=0
    # shellcheck disable=SC2016  # the program is awk's
    for host in 0 1 2 3; do
        again=$((again + $(ip netns exec psring-$cluster-$host awk '$1 == "Tcp:" && NR > 1 { last = $13 } END { print last }' /proc/net/snmp)))
    done
    echo "$again segments sent again"
    ((again > 0))
}
expect "TCP has sent lost segments again" has_sent_again
expect "rows name the loss" named 200mbit+4ms+loss2

# The process of the switch.
process()
{
    cat "$state/switch"
}
is_over_process() # PID
{
    ! kill -0 "$1" 2>/dev/null || [[ $(ps -o state= -p "$1") == Z ]]
}
holds_no_foreign_file()
{
    ls -l "/proc/$(process)/fd"
    ! readlink "/proc/$(process)"/fd/* | grep -vxE "/dev/null|/dev/net/tun|anon_inode:.*|$state/switch.log"
}
expect "the process holds no lock and no pipe of its caller" holds_no_foreign_file
killed=$(process)
kill "$killed"
within is_over_process "$killed"
status_fails()
{
    ! "$vcluster" status --name $cluster >"$folder/words"
    grep -e "--rate 200mbit --latency 4 --loss 2$" "$folder/words"
}
expect "status detects a missing switch, and prints the repair" status_fails
expect "up repairs it" up --latency 4 --loss 2
expect "status after the repair" "$vcluster" status --name $cluster
ip netns delete psring-$cluster-switch
expect "up repairs the namespace" up --latency 4
expect "status after the second repair" "$vcluster" status --name $cluster
expect "hosts are 4 ms apart after the repair" not_shorter host0 host3 4000

links() # the names of taps and of bridges for them
{
    ip -n psring-$cluster-switch -o link show | grep -cE ': (tap|far)'
}
last=$(process)
expect "up removes the latency" up
expect "the process ends without a latency" is_over_process "$last"
expect "no tap is left" test "$(links)" = 0
expect "status without a latency" "$vcluster" status --name $cluster
expect "the network without a latency" named 200mbit
expect "near hosts have TCP's default" starts_slowly_after_idle 1
expect "up adds the latency again" up --latency 1
last=$(process)
expect "down" "$vcluster" down --name $cluster
is_gone()
{
    is_over_process "$last" && [[ ! -e $state ]] && ! ip netns list | grep "^psring-$cluster-"
}
expect "down leaves nothing" is_gone

# The process ends when the folder is gone.
expect "up again" up --latency 1
last=$(process)
mv "$state" "$state.moved" && rm -r "$state.moved"
expect "the process ends with the folder" within is_over_process "$last"

all_passed
