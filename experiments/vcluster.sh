#!/usr/bin/env bash
# vcluster.sh: a cluster on one Linux machine, with a limit on every host's link.
#
#   vcluster.sh up --hosts N[xS] --rate RATE [--shape SHAPE] [--latency MS [--loss PERCENT]] [--owner PID]
#                                                          create, repair or change the cluster
#   vcluster.sh run -n N [--ranks-per-host K] [--map-by slot|node] [--in-switch K] [--launch-timeout S]
#                   [--mca KEY VALUE]... [-x VAR[=VALUE]]... -- COMMAND...      mpirun over the hosts
#   vcluster.sh exec HOST -- COMMAND...                    one command on one host (host0, ... or switch)
#   vcluster.sh status                                     show the clusters; exits with 1 if anything is wrong
#   vcluster.sh down [--all]                               remove the cluster, with every process in it
#
# Each command takes --name NAME (default: main). Clusters of different names are independent.
#   RATE           rate of each host each way, such as 200mbit, 1gbit or 2.5gbit; none sets no limit
#   SHAPE          flat (the default), or parts with + between, as in racks:4x100mbit+host2:50mbit. racks:KxRATE puts
#                  each K neighbouring hosts at a switch, with a link of RATE each way to the others. hostH:RATE sets
#                  the rate of a host
#   --latency MS   round trip between two hosts in milliseconds, such as 0.2ms or 50; half of it between a host and the
#                  switch. The program psring_switch (a target of CMake) then replaces the bridge, and needs /dev/net/tun.
#                  The default adds none
#   --loss PERCENT drops this share of the packets at random, such as 0.1%, from a fixed seed. The switch then forwards
#                  single packets, which costs several times the CPU time
#   --owner PID    removes the cluster when that process has ended, in any way. A later up does not change that
#   --hosts 4x2    makes four hosts with two slots each
#
# The command run puts rank r on host r. With more ranks than hosts it fills each host with K neighbouring ranks
# (default: its slots). They share its link. Between each other they use its loopback, which has no limit and no latency.
# With --map-by node neighbours are on different hosts: with 4x2, ranks 0 and 4 on host0. With --in-switch K the last K
# ranks are in the switch, where no link limits them (psring --placement switch). The command ends ranks that have not
# begun after S seconds (default: 60), because a host is cut off, for example.
#
# A host is a network namespace with one interface, eth0. The switch is one more namespace with a bridge, and a bridge
# for each rack. A token bucket at both ends of each cable limits both directions, as a switch port does. Nothing is
# added to the machine's own network: no link, no address, no firewall rule. An ordinary user's cluster is inside a
# user namespace. Some systems forbid that; root is then needed.
set -euo pipefail
export LC_ALL=C # decimal points and English messages in every locale

STATE=/run/psring-vcluster # one folder per cluster, with its config and its hosts file
MAX_HOSTS=200              # host h is SUBNET.(h + 1), the switch is SUBNET.254
GRACE_S=5                  # between TERM and KILL
NO_CLUSTER="no cluster is up; raise one with: vcluster.sh up --hosts N --rate RATE"

# shellcheck source-path=SCRIPTDIR source=sweep/script.sh
. "$(dirname "$0")/sweep/script.sh"

die()
{
    echo "vcluster.sh: $*" >&2
    exit 1
}

bad_usage()
{
    echo "vcluster.sh: $*; see vcluster.sh --help" >&2
    exit 2
}

heed_interrupts "$@"

require_namespaces()
{
    [[ $(uname -s) == Linux ]] || die "needs Linux's network namespaces; this is $(uname -s)"
    local tool
    for tool in ip tc bridge unshare nsenter setpriv setsid flock pgrep; do
        command -v $tool >/dev/null || die "$tool is missing; run experiments/setup.sh"
    done
    [[ -e /etc/hosts ]] || die "/etc/hosts is missing; each host mounts another file over it. Create an empty one"
    ((EUID == 0)) || as_ordinary_user
    ! namespaces_refused || die "$refusal; $remedy"
}

# --- a cluster's names and settings ---------------------------------------------------------------

namespace_of()
{
    echo "psring-$name-$1"
}

host_address()
{
    echo "$subnet.$(($1 + 1))"
}

load_config()
{
    hosts=0 slots=1 rate='' rate_bits=0 shape=flat latency='' loss='' subnet='' id=''
    local key value
    [[ -r $STATE/$name/config ]] || return 1
    while IFS='=' read -r key value; do
        case $key in
        hosts) hosts=$value ;;
        slots) slots=$value ;;
        rate) rate=$value ;;
        rate_bits) rate_bits=$value ;;
        shape) shape=$value ;;
        latency) latency=$value ;;
        loss) loss=$value ;;
        subnet) subnet=$value ;;
        id) id=$value ;;
        esac
    done <"$STATE/$name/config"
    read_shape "$shape"
}

# Prints "4 hosts", or "4 hosts of 2 slots".
hosts_in_words()
{
    echo "$hosts hosts$( ((slots == 1)) || echo " of $slots slots")"
}

no_such_cluster()
{
    echo "there is no cluster '$name'; raise it with: vcluster.sh up --name $name --hosts N --rate RATE"
}

require_cluster()
{
    load_config || die "$(no_such_cluster)"
}

save_config()
{
    local directory=$STATE/$name host
    mkdir -p "$directory"
    {
        echo "127.0.0.1 localhost"
        echo "$subnet.254 switch"
        for ((host = 0; host < hosts; host++)); do
            echo "$(host_address $host) host$host"
        done
    } >"$directory/hosts"
    printf '%s\n' "hosts=$hosts" "slots=$slots" "rate=$rate" "rate_bits=$rate_bits" "shape=$shape" "latency=$latency" \
        "loss=$loss" "subnet=$subnet" "id=$id" >"$directory/config.new"
    mv "$directory/config.new" "$directory/config"
}

# The clusters cannot see each other, so equal subnets would work; different ones keep logs readable.
choose_subnet()
{
    local taken index
    taken=$(sed -n 's/^subnet=//p' "$STATE"/*/config 2>/dev/null || true)
    for ((index = 0; index < 256; index++)); do
        grep -qx "10\.77\.$index" <<<"$taken" || break
    done
    ((index < 256)) || die "all 256 subnets are in use; vcluster.sh down --all removes every cluster"
    subnet=10.77.$index
}

# rate_to_bits RATE: prints bit/s, 0 for none, or nothing if RATE is invalid.
rate_to_bits()
{
    [[ $1 != none ]] || { echo 0 && return; }
    awk -v rate="$1" 'BEGIN {
        scale["kbit"] = 1e3; scale["mbit"] = 1e6; scale["gbit"] = 1e9
        if (match(rate, /^[0-9]+(\.[0-9]+)?/) == 0)
            exit
        unit = substr(rate, RLENGTH + 1)
        bits = substr(rate, 1, RLENGTH) * scale[unit]
        if (bits >= 8000 && bits <= 100e9)
            printf "%.0f", bits
    }'
}

# vcluster.sh rate RATE: prints bit/s, for scripts.
print_rate()
{
    rate_to_bits "${1:-}" | grep . || bad_usage "'${1:-}': expected a number with kbit, mbit or gbit, such as 200mbit, or none"
}

list_namespaces()
{
    ip netns list 2>/dev/null | awk '{ print $1 }' | grep -xE "psring-$1-([0-9]+|switch)" || true
}

list_clusters()
{
    {
        [[ ! -d $STATE ]] || ls "$STATE"
        list_namespaces '[a-z0-9-]+' | sed -E 's/^psring-(.*)-[^-]+$/\1/'
    } | sort -u
}

# --- creating ---------------------------------------------------------------------------------------

# watch_owner PID ID: takes the cluster down when that process has ended. The watcher has a new session and none of our
# open files. It must outlive every signal, and it must not hold the lock or the pipe of a caller. It takes down the
# cluster ID only, because another cluster may have the name by then.
watch_owner()
{
    # shellcheck disable=SC2016  # expanded by the shell that runs it
    setsid "$BASH" -c 'tail --pid="$1" -f /dev/null; exec "$2" "$3" down --name "$4" --id "$5"' \
        psring-vcluster-watch "$1" "$BASH" "$0" "$name" "$2" </dev/null &>/dev/null 8<&- 9<&- &
}

up()
{
    local new_hosts='' new_rate='' new_shape=flat new_latency='' new_loss='' owner=''
    while (($# > 0)); do
        case $1 in
        --hosts | --rate | --shape | --latency | --loss | --name | --owner)
            (($# >= 2)) || bad_usage "$1 needs a value"
            case $1 in
            --hosts) new_hosts=$2 ;;
            --rate) new_rate=$2 ;;
            --shape) new_shape=$2 ;;
            --latency) new_latency=$2 ;;
            --loss) new_loss=$2 ;;
            --name) set_name "$2" ;;
            --owner) owner=$2 ;;
            esac
            shift 2
            ;;
        *) bad_usage "up: unknown argument '$1'" ;;
        esac
    done
    local new_slots=1 given=$new_hosts
    [[ $new_hosts != *x* ]] || new_slots=${new_hosts#*x} new_hosts=${new_hosts%%x*}
    { [[ $new_hosts =~ ^[1-9][0-9]{0,2}$ && $new_slots =~ ^[1-9][0-9]{0,2}$ ]] && ((new_hosts <= MAX_HOSTS)); } ||
        bad_usage "up: --hosts '$given': expected a number from 1 to $MAX_HOSTS, or with slots, such as 4x2"
    local bits
    bits=$(rate_to_bits "$new_rate")
    [[ $bits ]] || bad_usage "up: --rate '$new_rate': expected a number with kbit, mbit or gbit, such as 200mbit, or none"
    read_shape "$new_shape" || bad_usage "up: --shape $shape_error"
    ((${#host_rates[@]} == 0)) || (($(printf '%d\n' "${!host_rates[@]}" | tail -n 1) < new_hosts)) ||
        bad_usage "up: --shape '$new_shape': the hosts are host0 to host$((new_hosts - 1))"
    read_distance "$new_latency" "$new_loss" || bad_usage "up: $distance_error"
    new_latency=$latency new_loss=$loss
    [[ -z $owner ]] || { [[ $owner =~ ^[1-9][0-9]*$ ]] && kill -0 "$owner" 2>/dev/null; } || bad_usage "up: --owner '$owner': there is no such process"
    [[ ! $latency ]] || require_switch
    require_namespaces

    lock
    load_config || choose_subnet
    hosts=$new_hosts slots=$new_slots rate=$new_rate rate_bits=$bits shape=$new_shape latency=$new_latency loss=$new_loss
    read_shape "$shape" # load_config had the earlier one
    id=${id:-$(cat /proc/sys/kernel/random/uuid)}
    save_config
    # Start the watcher now, because this script may be ended before the cluster is complete.
    [[ -z $owner ]] || watch_owner "$owner" "$id"
    ensure_switch
    remove_other_racks
    ensure_distance
    local host rack ns
    for ((rack = 0; rack < $(racks); rack++)); do
        ensure_rack $rack
    done
    for ((host = 0; host < hosts; host++)); do
        ensure_host $host
    done
    for ns in $(list_namespaces "$name"); do
        host=${ns##*-}
        [[ $host == switch ]] || ((host < hosts)) || remove_host "$host"
    done
    unlock
    echo "vcluster.sh: '$name' is up: $(hosts_in_words) on $subnet.0/24, $rate each way$(shape_in_words)$(distance_in_words)" >&2
}

# --- removing ---------------------------------------------------------------------------------------

remove_cluster()
{
    local namespaces ns switch
    switch=$(namespace_of switch)
    stop_switch
    namespaces=$(list_namespaces "$name")
    # shellcheck disable=SC2086  # one word a namespace
    end_processes $namespaces
    for ns in $namespaces; do
        [[ $ns == "$switch" ]] || remove_host "${ns##*-}"
    done
    rack_hosts=0 latency=''
    remove_other_racks 2>/dev/null || true
    remove_other_ways 2>/dev/null || true
    ip -n "$switch" link delete br0 2>/dev/null || true
    ip netns delete "$switch" 2>/dev/null || rm -f "/run/netns/$switch"
    rm -rf "${STATE:?}/$name"
    rmdir "$STATE" 2>/dev/null || true
}

# The watcher gives --id ID: remove the cluster only if it still has that ID.
down()
{
    local all='' only=''
    while (($# > 0)); do
        case $1 in
        --all) all=yes && shift ;;
        --name | --id)
            (($# >= 2)) || bad_usage "$1 needs a value"
            case $1 in
            --name) set_name "$2" ;;
            --id) only=$2 ;;
            esac
            shift 2
            ;;
        *) bad_usage "down: unknown argument '$1'" ;;
        esac
    done
    require_namespaces
    lock
    if [[ $all ]]; then
        for name in $(list_clusters); do
            remove_cluster
        done
    elif [[ ! $only ]] || { load_config && [[ $id == "$only" ]]; }; then
        remove_cluster
    fi
    unlock
}

# --- checking -----------------------------------------------------------------------------------------

status()
{
    if (($# > 0)); then
        [[ $1 == --name && $# == 2 ]] || bad_usage "status: unknown argument '$1'"
        set_name "$2"
        require_namespaces
        require_cluster
        show_cluster
        return
    fi
    require_namespaces
    local clusters amiss=0
    clusters=$(list_clusters)
    [[ $clusters ]] || die "$NO_CLUSTER"
    for name in $clusters; do
        show_cluster || amiss=1
    done
    return $amiss
}

show_cluster()
{
    local host state processes amiss=0
    if ! load_config; then
        echo "$name: its settings are lost; vcluster.sh down --name $name removes it"
        return 1
    fi
    echo "$name: $(hosts_in_words) on $subnet.0/24, $rate each way$(shape_in_words)$(distance_in_words)"
    for ((host = 0; host < hosts; host++)); do
        state=broken processes=0
        if host_is_whole $host; then
            state=up
            processes=$(ip netns pids "$(namespace_of $host)" | wc -l)
        else
            amiss=1
        fi
        printf '  host%-4d %-14s %-7s %3d processes\n' $host "$(host_address $host)" $state "$processes"
    done
    print_switch_log
    ((amiss == 0)) || echo "  repair it with: vcluster.sh up --name $name --hosts $hosts$( ((slots == 1)) || echo "x$slots") --rate $rate$([[ $shape == flat ]] || echo " --shape $shape")$(distance_options)"
    return $amiss
}

# --- the command line -------------------------------------------------------------------------------

set_name()
{
    [[ $1 =~ ^[a-z0-9]([a-z0-9-]{0,22}[a-z0-9])?$ ]] ||
        bad_usage "--name '$1': expected 1 to 24 lower-case letters, digits and dashes"
    name=$1
}

# Locks, so that two scripts do not choose the same subnet, or create and remove the same cluster at once.
lock()
{
    exec 9</run
    flock -w 120 9 || die "another vcluster.sh has been creating or removing a cluster for 120 s; see ps -e"
}

unlock()
{
    exec 9<&-
}

# shellcheck source-path=SCRIPTDIR source=cluster/shape.sh
. "$(dirname "$0")/cluster/shape.sh"
# shellcheck source-path=SCRIPTDIR source=cluster/distance.sh
. "$(dirname "$0")/cluster/distance.sh"
# shellcheck source-path=SCRIPTDIR source=cluster/hosts.sh
. "$(dirname "$0")/cluster/hosts.sh"
# shellcheck source-path=SCRIPTDIR source=cluster/run.sh
. "$(dirname "$0")/cluster/run.sh"
# shellcheck source-path=SCRIPTDIR source=cluster/namespaces.sh
. "$(dirname "$0")/cluster/namespaces.sh"
# shellcheck source-path=SCRIPTDIR source=cluster/user.sh
. "$(dirname "$0")/cluster/user.sh"

name=main
arguments=("$@")
command=${1:-}
shift || true
case $command in
up | down | run | status) $command "$@" ;;
rate) print_rate "$@" ;;
shape) print_shape "$@" ;;
distance) print_distance "$@" ;;
exec) exec_on_host "$@" ;;
-h | --help | help) usage ;;
'') bad_usage "expected up, run, exec, status or down" ;;
*) bad_usage "unknown command '$command'" ;;
esac
