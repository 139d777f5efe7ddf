# shellcheck shell=bash disable=SC2154,SC2034
# shape.sh: clusters of vcluster.sh with racks, or with links of different rates.
#
# A SHAPE is flat, or one or more of these with + between:
#   racks:KxRATE   each K neighbouring hosts share a switch, which a link of RATE each way connects to the core
#   hostH:RATE     this host's link has another rate
# Limits add up along a path: a message between racks passes both hosts' links and both racks'.

# read_shape SHAPE: sets rack_hosts (0: no racks), rack_rate, rack_bits, and host_rates and host_bits by host. Fails
# with the reason in shape_error if SHAPE is invalid. The shape flat sets none of them.
read_shape()
{
    local part parts bits number='[1-9][0-9]{0,2}'
    rack_hosts=0 rack_rate='' rack_bits=0 shape_error=''
    host_rates=() host_bits=()
    [[ $1 != flat ]] || return 0
    IFS=+ read -ra parts <<<"$1"
    for part in "${parts[@]}"; do
        bits=$(rate_to_bits "${part##*[:x]}")
        if [[ ! $bits || $bits == 0 ]]; then
            shape_error="'$part': expected a rate at its end, such as 100mbit"
        elif [[ $part =~ ^racks:($number)x[^:x]+$ ]] && ((rack_hosts == 0)); then
            rack_hosts=${BASH_REMATCH[1]} rack_rate=${part##*x} rack_bits=$bits
        elif [[ $part =~ ^host(0|$number):[^:x]+$ && ! ${host_bits[BASH_REMATCH[1]]:-} ]]; then
            host_rates[BASH_REMATCH[1]]=${part##*:} host_bits[BASH_REMATCH[1]]=$bits
        else
            shape_error="'$part': expected flat, or each at most once racks:KxRATE and hostH:RATE, such as racks:4x100mbit+host2:50mbit"
        fi
        [[ ! $shape_error ]] || return 1
    done
    [[ $1 && $1 != *+ && ${#1} -le 40 ]] || { shape_error="'$1': expected at most 40 letters, such as racks:4x100mbit" && return 1; }
}

# Prints ", racks of 4 hosts joined by 100mbit, host2 50mbit", or nothing.
shape_in_words()
{
    local host
    ((rack_hosts == 0)) || echo -n ", racks of $rack_hosts hosts joined by $rack_rate"
    for host in "${!host_rates[@]}"; do
        echo -n ", host$host ${host_rates[host]}"
    done
    echo
}

# vcluster.sh shape RATE SHAPE: prints "BITS WORDS" for scripts. BITS is the rate of a message if all hosts use the
# narrowest link at once.
print_shape()
{
    local bits least
    least=$(rate_to_bits "${1:-}")
    [[ $least ]] || bad_usage "'${1:-}': expected a number with kbit, mbit or gbit, such as 200mbit, or none"
    read_shape "${2:-}" || bad_usage "shape $shape_error"
    for bits in "${host_bits[@]}" $((rack_hosts ? rack_bits / rack_hosts : 0)); do
        ((bits == 0 || (least && bits >= least))) || least=$bits
    done
    echo "$least$(shape_in_words)"
}

# "vcluster:200mbit", with "+50ms" and "+loss1" for a latency and a loss, and "/SHAPE" if it is not flat: the network's
# name in results.
network_label()
{
    echo "vcluster:$rate${latency:+"+${latency}ms"}${loss:+"+loss$loss"}$([[ $shape == flat ]] || echo "/$shape")"
}

# Prints the bridge of a host's cable, in the switch's namespace.
bridge_of()
{
    if ((rack_hosts)); then
        echo "rack$(($1 / rack_hosts))"
    else
        [[ $latency ]] && echo "far$1" || echo br0
    fi
}

racks()
{
    echo $((rack_hosts ? (hosts + rack_hosts - 1) / rack_hosts : 0))
}

rack_is_whole()
{
    local switch
    switch=$(namespace_of switch)
    ip -n "$switch" -o link show "up$1" 2>/dev/null | grep -qw "master rack$1" &&
        ip -n "$switch" -o link show "core$1" 2>/dev/null | grep -qw 'master br0'
}

# Makes sure that a rack's bridge and its cable to the core exist. Limits the cable at both ends, as a host's.
ensure_rack()
{
    local switch
    switch=$(namespace_of switch)
    if ! rack_is_whole "$1"; then
        remove_rack "$1"
        ip -n "$switch" link add "rack$1" type bridge stp_state 0 forward_delay 0 mcast_snooping 0
        # Only br0 may answer for the switch. Hosts that used a rack's hardware address lost the switch when it changed.
        ip -n "$switch" link set "rack$1" arp off up
        ip -n "$switch" link add "up$1" type veth peer name "core$1"
        ip -n "$switch" link set "up$1" master "rack$1" up
        ip -n "$switch" link set "core$1" master br0 up
    fi
    limit "$switch" "up$1" "$rack_rate" "$rack_bits"
    limit "$switch" "core$1" "$rack_rate" "$rack_bits"
}

remove_rack()
{
    local switch
    switch=$(namespace_of switch)
    ip -n "$switch" link delete "up$1" 2>/dev/null || true
    ip -n "$switch" link delete "rack$1" 2>/dev/null || true
}

# Prints br0, rack0, ...
bridges()
{
    ip -n "$(namespace_of switch)" -o link show type bridge | sed -n 's/^[0-9]*: \([a-z0-9]*\)[:@].*/\1/p'
}

# Clears the bridges' tables: they would send packets of a moved host to its old bridge for minutes.
forget_ways()
{
    local bridge
    for bridge in $(bridges); do
        ip -n "$(namespace_of switch)" link set "$bridge" type bridge fdb_flush
    done
}

# Removes racks of an earlier shape, or of more hosts.
remove_other_racks()
{
    local rack
    for rack in $(bridges | sed -n 's/^rack//p'); do
        ((rack < $(racks))) || remove_rack "$rack"
    done
}
