#!/usr/bin/env bash
# test_stop.sh [--short]: a signal ends a training run early, with a complete checkpoint. --short: fewer signals and
# backends.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
common=(--model lenet --batch 10 --data "$data")

# stop RANKS VICTIM SIGNAL OPTION...: trains until there is a checkpoint, sends the signal to that rank, and expects
# that all ranks save and end. A busy machine can disturb this: the run may end before the signal, or the second
# signal may come so late that it means an immediate end. Then it tries again.
stop()
{
    local ranks=$1 victim=$2 signal=$3 try code processes first_us between_us
    shift 3
    local command=("$lib/ranks.sh" "$ranks")
    [[ "$*" != *'--backend mpi'* ]] || command=("$lib/mpirun.sh" "$ranks")
    ((ranks > 0)) || command=()
    for try in 1 2 3 4 5; do
        rm -rf "$folder/checkpoint"
        launch "${command[@]}" "$psring" train "$@" --checkpoint "$folder/checkpoint" --resume
        within has_checkpoint || fail "$*, try $try:"
        mapfile -t processes < <(pgrep -s "$session" -x "$(basename "$psring")")
        first_us=${EPOCHREALTIME/./}
        for _ in 1 2; do # a launcher and a scheduler may both forward one signal
            kill "-$signal" "${processes[victim]}" 2>/dev/null || true
            between_us=$((${EPOCHREALTIME/./} - first_us))
            sleep 0.02
        done
        within has_ended || fail "SIG$signal, $*: still runs:"
        wait "$session" && code=0 || code=$?
        session=0
        ((code == 0 || (code != 75 && between_us > 400000))) || break
    done
    ((code == 75)) || fail "SIG$signal, $*: exit code $code, expected 75:"
    grep -q 'there yet, starts from step 0' "$folder/log" || fail "does not report that it starts from step 0:"
    grep -q "^stopped by SIG$signal after step [0-9]* of" "$folder/log" || fail "no 'stopped by' in:"
}

# All ranks end after the same step, no matter which one got the signal. A stopped and continued run gives the weights
# of an unbroken one.
trials=('2 1 USR1 --backend ring' '2 1 USR1 --backend mpi --bucket-mb 0.05' '0 0 USR1 --optimizer sgd'
    '2 0 TERM --backend ring --bucket-mb 0.05' '3 0 INT --backend ps --servers 1')
for trial in "${trials[@]:short * 2}"; do
    read -ra trial <<<"$trial"
    options=("${common[@]}" "${trial[@]:3}" --steps 190)
    train "${trial[0]}" "${options[@]}"
    whole=$weights
    # Longer steps leave time for the signal, and leave the processors to other tests.
    stop "${trial[@]:0:3}" "${options[@]}" --checkpoint-steps 20 --compute real:4
    train "${trial[0]}" "${options[@]}" --checkpoint "$folder/checkpoint" --resume=must
    grep -q '^continues after step' "$folder/log" || fail "${trial[*]}: does not continue from the checkpoint:"
    [[ $weights == "$whole" ]] || fail "${trial[*]}, continued: $weights, expected $whole"
done

# Without common steps (ssp) workers stop where all meet. psring prints that at the start and at the signal. An epoch
# takes about a second here.
late=(--model lenet --batch 50 --data "$data" --backend ps --sync ssp:3 --compute real:50 --epochs 60)
stop 3 0 USR1 "${late[@]}"
grep -q 'warning: --checkpoint: .* only every 20 steps' "$folder/log" || fail "no warning at the start:"
grep -q 'worker 0: SIGUSR1: saves and ends where all workers meet next, after step [0-9]*0 .*--log-steps N' \
    "$folder/log" || fail "no message at the signal:"
stop 3 0 USR1 "${late[@]}" --log-steps 10
! grep -q 'only every' "$folder/log" || fail "an unnecessary warning with --log-steps:"

# If the signal comes after the last step of an epoch, the epoch is still tested. Here each epoch has one step.
stop 0 0 TERM "${common[@]}" --batch 2000 --epochs 300 --metrics "$folder/rows.csv"
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } NR > 1 && $at["test_accuracy"] == "" { exit 1 }' "$folder/rows.csv" ||
    fail "an epoch without a test: $(tail -n 1 "$folder/rows.csv")"

# Without --checkpoint SIGUSR1 does not end the run.
launch "$psring" train "${common[@]}" --batch 50 --backend none --steps 400 --log-steps 1
wait_for "training" '^epoch'
kill -USR1 "$session"
expect_end "SIGUSR1 without --checkpoint" 0 'SIGUSR1: nothing can be saved without --checkpoint DIR; training continues'
