#!/usr/bin/env bash
# ranks.sh N PSRING COMMAND OPTION...: N ranks on this machine that meet by rendezvous. Like mpirun.sh, but without a
# launcher, so it starts at once. The process ids ascend with the ranks. The exit code is that of the first rank that
# failed. Then a stopped rank is killed, because it cannot end itself.
# It ends the run after PSRING_LIMIT_S seconds (default: 280).
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
exec {silent_pipe}<> <(:) # a read with a time-out sleeps without starting a process
for ((rank = 0; rank < world; rank++)); do
    env --default-signal=INT "$@" --rendezvous "tcp://127.0.0.1:$port" --rank "$rank" --world-size "$world" {silent_pipe}<&- &
    pids+=($!)
done
failed=0
running=("${pids[@]}")
while ((${#running[@]} > 0)); do
    left=()
    for pid in "${running[@]}"; do
        kill -0 "$pid" 2>/dev/null && left+=("$pid") && continue
        code=0
        wait "$pid" || code=$?
        ((failed)) || failed=$code
    done
    for pid in "${left[@]}"; do
        ((failed)) || break
        read -r _ _ state _ 2>/dev/null <"/proc/$pid/stat" || continue
        [[ $state != T ]] || kill -KILL "$pid"
    done
    running=("${left[@]}")
    ((${#left[@]} == 0)) || read -rt 0.03 -u "$silent_pipe" # wait -n may miss a rank that ended during another wait
done
trap - EXIT
exit "$failed"
