#!/usr/bin/env bash
# test_strangers.sh STRANGERS [--short]: while a training runs, strangers send 3,000 frames of all kinds to every port
# on which its ranks listen (--short: 200). The training ends with the same weights as without strangers.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
strangers=$1
frames=3000
steps=1200
compute=real
((!short)) || { frames=200 steps=200 compute=real:40; } # a step takes 40 ms, and leaves the processors to other tests

# ranks_of PID: print the psring processes below PID.
ranks_of()
{
    local child children=()
    read -ra children 2>/dev/null <"/proc/$1/task/$1/children" || true
    for child in "${children[@]}"; do
        [[ $(readlink "/proc/$child/exe") != "$(readlink -f "$psring")" ]] || echo "$child"
        ranks_of "$child"
    done
}

# ports_of PID...: print the ports on which these processes listen.
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

# attacked STARTER RANKS OPTION...: train with strangers at the ports. Returns false if the training ended before the
# strangers had sent all frames.
attacked()
{
    local starter=$1 ranks=$2 launcher pids=() ports=()
    shift 2
    "$starter" "$ranks" "$psring" train --data "$data" "$@" >"$folder/log" 2>&1 &
    launcher=$!
    # After the first steps every endpoint is open.
    within trains_or_ended || fail "$*: no step, and no end:"
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
declare -A expected # the weights, by number of steps
for shape in "mpirun.sh 3 ring zmq" "mpirun.sh 4 ps zmq" "ranks.sh 3 ring zmq" "mpirun.sh 3 ring tcp"; do
    read -r starter ranks backend transport <<<"$shape"
    for ((tries = 1, count = steps; ; tries++, count *= 2)); do # longer if it ended before all frames were sent
        if [[ ! ${expected[$count]:-} ]]; then
            train 0 "${common[@]}" --steps $count --backend none --virtual-workers 3
            expected[$count]=$weights
        fi
        in_time=1
        attacked "$lib/$starter" "$ranks" "${common[@]}" --steps $count --compute "$compute" --backend "$backend" \
            --transport "$transport" || in_time=0
        [[ $weights == "${expected[$count]}" ]] ||
            fail "$shape: weights $weights, expected ${expected[$count]} without strangers"
        ((!in_time)) || break
        ((tries < 5)) || fail "$shape: $tries runs ended before the strangers had sent all frames; last: $found"
    done
done
echo "strangers: the same weights"
