# Sourced by tests that start ranks of psring by rendezvous: one shell process each, no launcher. The
# caller sets $psring and has a $folder of its own.
# shellcheck shell=bash
# shellcheck disable=SC2154

# free_port: one of 127.0.0.1 that nothing listens at, below those that the system gives out by itself. No other test
# that is still running has got the same one: a link in a folder of the user's tests names the process that has it. In a
# user namespace EUID is 0, and the map of its ids names the user.
free_port()
{
    local port owner first claims
    read -r _ first _ </proc/self/uid_map
    claims=/tmp/psring-test-ports-$((first + EUID))
    mkdir -p "$claims"
    for _ in {1..50}; do
        port=$((20000 + RANDOM % 12000))
        owner=$(readlink "$claims/$port") && [[ ! -d /proc/$owner ]] && rm -f "$claims/$port"
        ln -s $$ "$claims/$port" 2>/dev/null || continue
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port" && return; }
    done
    return 1
}

# ranks W COMMAND OPTION...: psring COMMAND on W ranks, the last one started first. What rank R said is in
# $folder/rank.R; 0 if all ended with 0.
ranks()
{
    local world=$1 port rank bad=0 pids=()
    shift
    port=$(free_port)
    rm -f "$folder"/rank.*
    for ((rank = world - 1; rank >= 0; rank--)); do
        timeout --kill-after=5 240 "$psring" "$@" --rendezvous "tcp://127.0.0.1:$port" --rank "$rank" \
            --world-size "$world" >"$folder/rank.$rank" 2>&1 &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do
        wait "$pid" || bad=1
    done
    return "$bad"
}
