# shellcheck shell=bash disable=SC2154,SC2034
# distance.sh: clusters of vcluster.sh with a latency. The program psring_switch (switch.c) replaces the bridge between
# the hosts. Cables and their limits remain:
#
#   host0: eth0 -- port0 - [far0] - tap0 --+
#   host1: eth0 -- port1 - [far1] - tap1 --+-- psring_switch -- tapcore - [br0]
#
# A bridge in brackets joins two devices, all in the switch's namespace. A restart of psring_switch replaces only the
# taps, so that processes on the hosts survive a new latency.

# The program of this tree's build, or another one.
switch_program=${PSRING_SWITCH:-$(dirname "$0")/../build/psring_switch}

# read_distance MS PERCENT: sets latency and loss, in the form of labels, after read_shape. The units may follow: 25ms,
# 0.1%. Fails with the reason in distance_error. Without a latency (MS '') both are ''.
read_distance()
{
    distance_error=''
    latency=$(awk -v x="${1%ms}" 'BEGIN { if (x ~ /^[0-9]+(\.[0-9]+)?$/ && x >= 0.01 && x <= 1000) print x + 0 }')
    loss=$(awk -v x="${2%\%}" 'BEGIN { if (x ~ /^[0-9]+(\.[0-9]+)?$/ && x <= 10) print x + 0 }')
    [[ ! $1 || $latency ]] || distance_error="--latency '$1': expected the round trip in milliseconds, from 0.01 to 1000, such as 25ms"
    [[ ! $2 || $loss ]] || distance_error="--loss '$2': expected a percentage of packets, from 0 to 10, such as 0.1%"
    [[ ! $2 || $1 ]] || distance_error="--loss '$2' needs --latency MS, the round trip in milliseconds"
    [[ ! $1 ]] || ((rack_hosts == 0)) || distance_error="--latency '$1' with racks in --shape: expected one of the two, because all hosts are equally far"
    [[ $loss != 0 ]] || loss=''
    [[ ! $distance_error ]]
}

# vcluster.sh distance MS SHAPE: prints MS in the form of labels, for scripts.
print_distance()
{
    read_shape "${2:-flat}" || bad_usage "--shape $shape_error"
    read_distance "${1:-}" '' || bad_usage "$distance_error"
    echo "$latency"
}

# Prints ", round trips of 50 ms, 1% of the packets lost", or nothing.
distance_in_words()
{
    echo "${latency:+", round trips of $latency ms"}${loss:+", $loss% of the packets lost"}"
}

# Prints " --latency 50 --loss 1", or nothing.
distance_options()
{
    echo "${latency:+" --latency $latency"}${loss:+" --loss $loss"}"
}

require_switch()
{
    [[ -x $switch_program && ! -d $switch_program ]] ||
        die "--latency needs the program '$switch_program', which is missing; build it: cmake --build build --target psring_switch"
    [[ -c /dev/net/tun ]] || die "--latency needs TAP devices, and there is no /dev/net/tun; load the module: sudo modprobe tun"
}

switch_options()
{
    local host rates=''
    for ((host = 0; host < hosts; host++)); do
        rates+=,${host_bits[host]:-$rate_bits}
    done
    [[ ${host_bits[*]} ]] || rates=,$rate_bits
    echo "--hosts $hosts --latency $latency --loss ${loss:-0} --rates ${rates#,} --folder $STATE/$name"
}

# Prints the number of the switch's process, if it still runs.
switch_process()
{
    local process
    read -r process 2>/dev/null <"$STATE/$name/switch" || return 0
    [[ $(tr '\0' ' ' 2>/dev/null <"/proc/$process/cmdline") != *" --folder $STATE/$name " ]] || echo "$process"
}

# Whether the process has these settings and is in the switch's namespace of today.
switch_is_whole()
{
    local process
    process=$(switch_process)
    [[ $process && $(tr '\0' ' ' <"/proc/$process/cmdline") == *" $(switch_options) " &&
        /proc/$process/ns/net -ef /run/netns/$(namespace_of switch) ]]
}

# Ends the process, and with it the taps.
stop_switch()
{
    local process deadline=$((SECONDS + GRACE_S))
    process=$(switch_process)
    if [[ $process ]]; then
        kill -KILL "$process" 2>/dev/null || true
        # Its command line goes before its taps do.
        while kill -0 "$process" 2>/dev/null && [[ $(ps -o state= -p "$process") != Z ]]; do
            ((SECONDS <= deadline)) || die "psring_switch, process $process, does not end after KILL"
            sleep 0.02
        done
    fi
    rm -f "$STATE/$name"/switch{,.log}
}

# tap_is_joined TAP BRIDGE
tap_is_joined()
{
    ip -n "$(namespace_of switch)" -o link show "$1" 2>/dev/null | grep -qw "master $2"
}

join_tap()
{
    local switch
    switch=$(namespace_of switch)
    tap_is_joined "$1" "$2" || ip -n "$switch" link set "$1" txqueuelen 10000 master "$2" up
}

# Makes sure that the process runs with today's settings and that its taps are joined. Without a latency, makes sure
# that it is gone. Hosts may be missing at this time.
ensure_distance()
{
    local switch host
    switch=$(namespace_of switch)
    remove_other_ways
    [[ $latency ]] || { stop_switch && return; }
    if ! switch_is_whole; then
        stop_switch
        # shellcheck disable=SC2046  # a word each
        ip netns exec "$switch" "$switch_program" $(switch_options) 8<&- 9<&- >"$STATE/$name/switch" || die "the switch with a latency did not start"
    fi
    join_tap tapcore br0
    for ((host = 0; host < hosts; host++)); do
        # Only br0 may answer for the switch, as with racks.
        ip -n "$switch" link show "far$host" &>/dev/null ||
            ip -n "$switch" link add "far$host" type bridge stp_state 0 forward_delay 0 mcast_snooping 0
        ip -n "$switch" link set "far$host" arp off up
        join_tap "tap$host" "far$host"
    done
}

# Removes bridges of hosts that are gone, or of an earlier latency.
remove_other_ways()
{
    local way
    for way in $(bridges | sed -n 's/^far//p'); do
        [[ $latency ]] && ((way < hosts)) || ip -n "$(namespace_of switch)" link delete "far$way" 2>/dev/null || true
    done
}

# Prints the last report of psring_switch.
print_switch_log()
{
    [[ ! -s $STATE/$name/switch.log ]] || echo "  $(tail -n 1 "$STATE/$name/switch.log")"
}
