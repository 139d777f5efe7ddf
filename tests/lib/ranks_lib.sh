# Sourced by tests that start ranks of psring by rendezvous: one shell process for each rank, no launcher. The caller
# sets $psring and has a private $folder.
# shellcheck shell=bash
# shellcheck disable=SC2154

# free_port: print a port of 127.0.0.1 at which no process listens, below the ephemeral range. No other running test has
# the same port: a link in a folder of the user's tests names the process that has it. In a user namespace EUID is 0, so
# the user comes from the map of ids.
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

# ranks W COMMAND OPTION...: run psring COMMAND on W ranks; the last rank starts first. They meet at $ranks_host, which is
# 127.0.0.1 by default. The output of rank R is in $folder/rank.R. Returns 0 if all ranks ended with 0.
ranks()
{
    local world=$1 port rank bad=0 pids=()
    shift
    port=$(free_port)
    rm -f "$folder"/rank.*
    for ((rank = world - 1; rank >= 0; rank--)); do
        timeout --kill-after=5 240 "$psring" "$@" --rendezvous "tcp://${ranks_host:-127.0.0.1}:$port" --rank "$rank" \
            --world-size "$world" >"$folder/rank.$rank" 2>&1 &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do
        wait "$pid" || bad=1
    done
    return "$bad"
}
