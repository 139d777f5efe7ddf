#!/usr/bin/env bash
# ranks.sh N PSRING COMMAND OPTION...: N ranks on this machine that meet by rendezvous: as mpirun.sh does it, without a
# launcher, and so at once. Their processes have ascending numbers. The exit code is that of the first rank that failed.
# A stopped rank is killed then, because it cannot end.
# Ended after PSRING_LIMIT_S seconds, 280 if that is not set.
set -uo pipefail
if [[ ! ${PSRING_RANKS_LIMITED:-} ]]; then
    PSRING_RANKS_LIMITED=1 exec timeout --kill-after=5 "${PSRING_LIMIT_S:-280}" "$0" "$@"
fi
unset PSRING_RANKS_LIMITED
# shellcheck source-path=SCRIPTDIR source=ranks_lib.sh
. "$(dirname "$0")/ranks_lib.sh"
unset RANK WORLD_SIZE MASTER_ADDR MASTER_PORT
world=$1
shift
pids=()
trap 'kill "${pids[@]}" 2>/dev/null' EXIT
trap 'exit 143' TERM
trap 'exit 130' INT
port=$(free_port) || exit 1
for ((rank = 0; rank < world; rank++)); do
    env --default-signal=INT "$@" --rendezvous "tcp://127.0.0.1:$port" --rank "$rank" --world "$world" &
    pids+=($!)
done
failed=0
for ((running = world; running > 0; running--)); do
    code=0
    wait -n || code=$?
    ((failed)) || failed=$code
    ((failed)) || continue
    for pid in "${pids[@]}"; do
        [[ $(ps -o stat= -p "$pid") != T* ]] || kill -KILL "$pid"
    done
done
trap - EXIT
exit "$failed"
