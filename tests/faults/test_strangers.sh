#!/usr/bin/env bash
# test_strangers.sh STRANGERS [--short]: while a training runs, strangers send 3,000
# frames of all kinds to every port that its ranks listen on; --short: 200. It ends with the weights that
# it has without.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
strangers=$1
frames=3000
steps=1200
compute=real
((!short)) || { frames=200 steps=200 compute=real:40; } # a step takes so many ms, and the processors are free for others

# ranks_of PID: the processes below PID that are psring.
ranks_of()
{
    local child children=()
    read -ra children 2>/dev/null <"/proc/$1/task/$1/children" || true
    for child in "${children[@]}"; do
        [[ $(readlink "/proc/$child/exe") != "$(readlink -f "$psring")" ]] || echo "$child"
        ranks_of "$child"
    done
}

# ports_of PID...: where these processes listen.
ports_of()
{
    local pid
    for pid; do
        find "/proc/$pid/fd" -lname 'socket:*' -printf '%l\n' 2>/dev/null | tr -dc '0-9\n' |
            awk 'NR == FNR { mine[$1]; next } $4 == "0A" && $10 in mine { print $2 }' - "/proc/$pid/net/tcp"
    done | while IFS=: read -r _ port; do echo $((16#$port)); done | sort -un
}

# shellcheck disable=SC2317 # called by within
trains_or_ended()
{
    grep -q '^epoch' "$folder/log" || ! kill -0 "$launcher"
}

# attacked STARTER RANKS OPTION...: train, with strangers at the ports; false if it ended before they
# had sent all.
attacked()
{
    local starter=$1 ranks=$2 launcher pids=() ports=()
    shift 2
    "$starter" "$ranks" "$psring" train --data "$data" "$@" >"$folder/log" 2>&1 &
    launcher=$!
    # Once steps are done, every endpoint is open.
    within trains_or_ended || fail "$*: neither trains nor ends:"
    mapfile -t pids < <(ranks_of $launcher)
    mapfile -t ports < <(ports_of "${pids[@]}")
    local in_time=1
    found="${#pids[@]} processes, ${#ports[@]} ports"
    if ((${#pids[@]} == ranks && ${#ports[@]} >= ranks)); then
        "$strangers" $frames 1 "${ports[@]}" >"$folder/strangers" 2>&1 || fail "$(cat "$folder/strangers")"
        ! kill -0 $launcher 2>/dev/null || in_time=0
    fi
    wait $launcher || fail "$* on $ranks ranks, with strangers:"
    weights=$(sed -n 's/^weights sha256 //p' "$folder/log")
    return $in_time
}

common=(--model lenet --batch 8 --log-steps 10 --reduce-order ring)
declare -A expected # weights after so many steps
for shape in "mpirun.sh 3 ring zmq" "mpirun.sh 4 ps zmq" "ranks.sh 3 ring zmq" "mpirun.sh 3 ring tcp"; do
    read -r starter ranks backend transport <<<"$shape"
    for ((tries = 1, count = steps; ; tries++, count *= 2)); do # longer if it was over before all strangers had sent
        if [[ ! ${expected[$count]:-} ]]; then
            train 0 "${common[@]}" --steps $count --backend none --virtual-workers 3
            expected[$count]=$weights
        fi
        in_time=1
        attacked "$lib/$starter" "$ranks" "${common[@]}" --steps $count --compute "$compute" --backend "$backend" \
            --transport "$transport" || in_time=0
        [[ $weights == "${expected[$count]}" ]] ||
            fail "$shape: weights $weights, expected ${expected[$count]}, as without strangers"
        ((!in_time)) || break
        ((tries < 5)) || fail "$shape: in $tries tries, over before the strangers had sent everything; last found: $found"
    done
done
echo "strangers: the same weights"
