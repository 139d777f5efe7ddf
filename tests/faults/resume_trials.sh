#!/usr/bin/env bash
# resume_trials.sh [--short | KILLS [SEED]]: a training is killed KILLS times (10) and resumed each time with --resume.
# At the end it has the weights of the undisturbed training, bit by bit.
#
# The moments are random, from the launch on. A kill is SIGTERM to a worker, or SIGKILL to a rank (server or worker).
# The trainings use the ring, a dedicated server and colocated servers, uncompressed and in fp16 with error feedback.
#
# --short: only in fp16, 120 small steps without mpirun, killed twice. Prints a table, as in resume_trials.csv.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
kills=${1:-10}
STEPS=400 starter=mpirun.sh work=(--batch 50)
compressed='--compress fp16 --error-feedback on'
compressions=('' "$compressed")
if [[ $kills == --short ]]; then
    kills=2 STEPS=120 starter=ranks.sh work=(--batch 10 --compute real:5)
    compressions=("$compressed")
fi
seed=${2:-$RANDOM}
RANDOM=$seed
ROUNDS_MOST=$((3 * kills + 10))
EXIT_STOPPED=75

random_below() # N
{
    echo $((RANDOM * 32768 + RANDOM)) | awk -v n="$1" '{ print int($1 / 1073741824 * n) }'
}

# Sends a signal to the launched run. Sets $signal, and $step: the step after which the run had resumed.
disturb() # WORKERS
{
    local processes code=0
    sleep "$(awk -v ms="$(random_below "$instants_ms")" 'BEGIN { print ms / 1000 }')"
    mapfile -t processes < <(pgrep -s "$session" -x "$(basename "$psring")")
    signal=KILL
    # A server outlives SIGTERM until its workers end.
    (($(random_below 2) == 0 || ${#processes[@]} < $1)) || signal=TERM
    if [[ $signal == TERM ]]; then
        kill -TERM "${processes[$(random_below "$1")]}" 2>/dev/null || true
    elif ((${#processes[@]} > 0)); then
        kill -KILL "${processes[$(random_below ${#processes[@]})]}" 2>/dev/null || true
    else # mpirun has not started psring yet
        kill -KILL -- "-$session" 2>/dev/null || true
    fi
    within is_over || fail "SIG$signal: the run continues:"
    wait "$session" && code=0 || code=$?
    session=0
    step=$(sed -n 's/^continues after step //p' "$folder/log")
    if ((code == 0)); then
        signal=none # the run had already ended
    elif [[ $signal == TERM ]] && ((code == EXIT_STOPPED)); then
        saved=$((saved + 1))
    fi
}

check() # WHAT
{
    weights=$(sed -n 's/^weights sha256 //p' "$folder/log")
    [[ $weights == "$whole" ]] || fail "$1: weights $weights, expected $whole; seed $seed:"
}

trial() # RANKS WORKERS OPTION...
{
    local ranks=$1 workers=$2 options=("${@:3}") done=0 terms=0 whole saved=0 ended=0 round signal step steps=()
    local begun=$EPOCHREALTIME instants_ms
    local command=("$lib/$starter" "$ranks" "$psring" train --model lenet "${work[@]}" --steps "$STEPS" --bucket-mb 0.05
        --data "$data" "${options[@]}")
    "${command[@]}" >"$folder/log" 2>&1 || fail "${options[*]}, undisturbed:"
    instants_ms=$(awk -v from="$begun" -v to="$EPOCHREALTIME" 'BEGIN { print int(600 * (to - from)) }')
    whole=$(sed -n 's/^weights sha256 //p' "$folder/log")
    [[ $whole =~ ^[0-9a-f]{64}$ ]] || fail "${options[*]}: no sum of the weights in:"
    rm -rf "$folder/checkpoint"
    command+=(--checkpoint "$folder/checkpoint" --checkpoint-steps 9 --resume)
    for ((round = 0; done < kills; round++)); do
        ((round < ROUNDS_MOST)) || fail "${options[*]}: ended $ended times before the signal:"
        launch "${command[@]}"
        disturb "$workers"
        if [[ $signal == none ]]; then
            check "${options[*]}, resumed $round times"
            ended=$((ended + 1))
            instants_ms=$((instants_ms / 2 + 1)) # the machine is less busy than in the first run
            rm -rf "$folder/checkpoint"
        else
            done=$((done + 1))
            [[ $signal != TERM ]] || terms=$((terms + 1))
            [[ ! $step ]] || steps+=("$step")
        fi
    done
    "${command[@]}" >"$folder/log" 2>&1 || fail "${options[*]}, the last run failed:"
    step=$(sed -n 's/^continues after step //p' "$folder/log")
    [[ ! $step ]] || steps+=("$step")
    ! grep -q 'not to the same bits' "$folder/log" || fail "${options[*]}: the resumed run is not bit-identical:"
    check "${options[*]}, killed $kills times"
    printf '%s,%d,%d,%d,%d,%s,%s\n' "${options[*]}" "$((done - terms))" "$terms" "$saved" "$ended" \
        "${steps[*]:-from the start}" "${whole:0:12}"
}

echo "seed $seed, $STEPS steps; signals within 60% of the time that the undisturbed run took, from the launch on"
echo options,sigkill,sigterm,saved,ended,continued_after,weights
for compress in "${compressions[@]}"; do
    # shellcheck disable=SC2086 # several words, or none
    {
        trial 2 2 --backend ring $compress
        trial 3 2 --backend ps $compress
        trial 2 2 --backend ps --servers 2 --placement colocated $compress
    }
done
