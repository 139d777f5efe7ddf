# shellcheck shell=bash disable=SC2154
# hosts.sh: creates, limits, checks and removes a host or the switch, for vcluster.sh.

# Makes sure that a working namespace exists. Replaces a name without a namespace.
ensure_namespace()
{
    local ns=$1
    if ! ip -n "$ns" link show lo &>/dev/null; then
        ip netns delete "$ns" 2>/dev/null || rm -f "/run/netns/$ns"
        ip netns add "$ns"
    fi
    ip netns exec "$ns" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 \
        net.ipv6.conf.default.disable_ipv6=1 2>/dev/null || true
    # A measurement must not depend on metrics of a path that the kernel saved earlier.
    ip netns exec "$ns" sysctl -qw net.ipv4.tcp_no_metrics_save=1 2>/dev/null || true
    # It must not depend on this machine's congestion control either. For example, bbr estimates rates and stays below
    # them. Reno is in every kernel, and namespaces may always choose it.
    ip netns exec "$ns" sysctl -qw net.ipv4.tcp_congestion_control=reno 2>/dev/null || true
    ip -n "$ns" link set lo up
}

ensure_switch()
{
    local switch
    switch=$(namespace_of switch)
    ensure_namespace "$switch"
    # A switch is not a firewall. By default the bridge passes every packet to iptables.
    ip netns exec "$switch" sysctl -qw net.bridge.bridge-nf-call-iptables=0 \
        net.bridge.bridge-nf-call-arptables=0 2>/dev/null || true
    # mpirun runs here. At the end of a run it sends a message to every host. By default it would wait a quarter of an
    # hour for a host that does not answer; now three seconds.
    ip netns exec "$switch" sysctl -qw net.ipv4.tcp_retries2=3 2>/dev/null || true
    if ! ip -n "$switch" link show br0 &>/dev/null; then
        # Give the bridge a fixed address. By default it takes the lowest of its ports, which changes with each host.
        # Hosts that know the old address would lose packets for ten seconds.
        local hardware
        printf -v hardware '02:00:0a:4d:%02x:fe' "${subnet##*.}"
        ip -n "$switch" link add br0 address "$hardware" type bridge stp_state 0 forward_delay 0 mcast_snooping 0
    fi
    # mpirun runs in the switch's namespace and reaches the hosts from this address.
    ip -n "$switch" address replace "$subnet.254/24" dev br0
    ip -n "$switch" link set br0 up
}

# host_answers HOST SECONDS: whether the host answers within this time. A refused connection counts as an answer: it
# shows that cable, addresses and bridge work.
host_answers()
{
    local error
    error=$(ip netns exec "$(namespace_of switch)" timeout "$2" \
        "$BASH" -c ": </dev/tcp/$(host_address "$1")/9" 2>&1) && return 0
    [[ $error == *refused* ]]
}

host_is_whole()
{
    local ns
    ns=$(namespace_of "$1")
    [[ ! $latency ]] || { switch_is_whole && tap_is_joined "tap$1" "far$1"; } || return
    ip -n "$ns" -o -4 address show dev eth0 2>/dev/null | grep -qF " $(host_address "$1")/24 " &&
        ip -n "$(namespace_of switch)" -o link show "port$1" 2>/dev/null | grep -qw "master $(bridge_of "$1")" &&
        host_answers "$1" 30 # a full queue at 1 Mbit/s takes 25 s
}

# limit NAMESPACE DEVICE RATE BITS: sets the token bucket; replaces an earlier one without losing connections.
limit()
{
    local bits=$4
    if ((bits == 0)); then
        tc -n "$1" qdisc delete dev "$2" root 2>/dev/null || true
        ip -n "$1" link set "$2" gso_max_size 65536 2>/dev/null || true
        return
    fi
    local burst_bytes=$((bits / 8 / 4000)) # at high rates, the bytes of a 250 us timer tick
    ((burst_bytes >= 32768)) || burst_bytes=32768
    tc -n "$1" qdisc replace dev "$2" root tbf rate "${bits}bit" burst "${burst_bytes}b" limit 3mb ||
        die "tc could not limit $2 in $1 to $3; this kernel may lack the token bucket filter (sch_tbf)"
    # TCP hands over trains of packets, as to a network card that cuts them. The kernel cuts a train that does not fit
    # in the bucket into packets, and a timer fires for each packet at both ends of the cable. With 8 hosts of 200
    # Mbit/s that cost 1.3 cores; trains of half a bucket cost 0.15. The bucket counts the headers of every packet in
    # both cases.
    local train_bytes=$((burst_bytes / 2 < 65536 ? burst_bytes / 2 : 65536))
    ip -n "$1" link set "$2" gso_max_size $train_bytes 2>/dev/null || true
}

ensure_host()
{
    local host=$1 ns switch
    ns=$(namespace_of "$host")
    switch=$(namespace_of switch)
    if ! host_is_whole "$host"; then
        remove_host "$host"
        ensure_namespace "$ns"
        # Use the same hardware address each time. Other hosts have it in their tables, and would send to an old address
        # for seconds after a repair.
        local hardware
        printf -v hardware '02:00:0a:4d:%02x:%02x' "${subnet##*.}" $((host + 1))
        ip -n "$switch" link add "port$host" type veth \
            peer name eth0 address "$hardware" netns "$ns"
        ip -n "$switch" link set "port$host" master "$(bridge_of "$host")" up
        ip -n "$ns" address add "$(host_address "$host")/24" dev eth0
        ip -n "$ns" link set eth0 up
        forget_ways
        local tries
        for ((tries = 0; tries < 5; tries++)); do
            host_answers "$host" 5 && break
        done
        ((tries < 5)) || die "host$host does not answer on $(host_address "$host") after its creation"
    fi
    local own=${host_rates[host]:-$rate} own_bits=${host_bits[host]:-$rate_bits}
    limit "$ns" eth0 "$own" "$own_bits"
    limit "$switch" "port$host" "$own" "$own_bits"
    # By default TCP starts slowly again after a rest of some 200 ms, for example in a barrier between distant hosts. A
    # message of 16 KB then takes two round trips. Among four hosts 50 ms apart, the tree took 310 ms for 64 KB, and 121
    # ms without (theory: 109).
    ip netns exec "$ns" sysctl -qw "net.ipv4.tcp_slow_start_after_idle=$([[ $latency ]] && echo 0 || echo 1)" 2>/dev/null || true
}

# end_processes NAMESPACE...: sends TERM to all processes, then KILL. Returns when they are gone.
end_processes()
{
    local ns pids deadline signal
    for signal in TERM KILL; do
        deadline=$((SECONDS + GRACE_S))
        while ((SECONDS <= deadline)); do
            pids=$(for ns in "$@"; do ip netns pids "$ns" 2>/dev/null || true; done)
            [[ $pids ]] || return 0
            # shellcheck disable=SC2086  # one word a process
            kill -$signal $pids 2>/dev/null || true
            sleep 0.1
        done
    done
    die "processes do not end after KILL: $(tr '\n' ' ' <<<"$pids")"
}

# Removes the links before the namespaces that hold them. After the removal of a namespace alone, the kernel removes its
# links some time later.
remove_host()
{
    local ns
    ns=$(namespace_of "$1")
    end_processes "$ns"
    ip -n "$(namespace_of switch)" link delete "port$1" 2>/dev/null || true
    ip -n "$ns" link delete eth0 2>/dev/null || true
    ip netns delete "$ns" 2>/dev/null || rm -f "/run/netns/$ns"
}
