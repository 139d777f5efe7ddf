#!/usr/bin/env bash
# test_train.sh [--short]: psring train, except the equality of backends (test_equality.sh). The result does not
# depend on virtual workers, on threads or on a break. The net learns. The rows have the documented columns.
#
# --short: one of several sets of options that take the same path.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
common=(--model lenet --batch 50)

column() # NAME: the values of this column of $folder/train.csv, one for each row
{
    awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i; next }
                          { print $at }' "$folder/train.csv" | tr '\n' ' '
}
expect() # NAME VALUES
{
    [[ $(column "$1") == "$2 " ]] || fail "$1 is '$(column "$1")', expected '$2 ' in train.csv"
}

# One virtual worker equals one worker. Threads change no bit. Another seed changes the weights.
train 0 "${common[@]}" --backend none --steps 30
plain=$weights
! grep -q 'communication' "$folder/log" || fail "one process reports communication:"
train 0 "${common[@]}" --backend none --steps 30 --virtual-workers 1
[[ $weights == "$plain" ]] || fail "one virtual worker gave $weights, a plain run $plain"
train 0 "${common[@]}" --backend none --steps 30 --threads 2
[[ $weights == "$plain" ]] || fail "two threads gave $weights, one thread $plain"
train 0 "${common[@]}" --backend none --steps 30 --seed 2
[[ $weights != "$plain" ]] || fail "another seed gave the same weights"

# A run that is killed and continued gives the weights of an unbroken run. With several ranks only the first one reads
# and writes checkpoints.
start_and_kill() # RANKS OPTION...: kills all processes once there is a checkpoint
{
    local ranks=$1 try
    shift
    local command=("$lib/ranks.sh" "$ranks")
    ((ranks > 0)) || command=()
    for try in 1 2 3 4 5; do # on a busy machine the run may end before it is killed
        rm -rf "$folder/checkpoint"
        launch "${command[@]}" "$psring" train --data "$data" "$@"
        within has_checkpoint || fail "psring train $*, try $try:"
        pkill -KILL -s "$session" || true
        wait "$session" 2>/dev/null || true
        session=0
        compgen -G "$folder/checkpoint/lenet.step-*.checkpoint" >/dev/null || fail "psring train $* wrote no checkpoint:"
        ! grep -q '^weights' "$folder/log" || continue
        return 0
    done
    fail "psring train $* ended before it could be killed:"
}

ways=('0 --optimizer sgd --nesterov --weight-decay 1e-4' '0 --optimizer adadelta'
    '0 --optimizer adam --lr-schedule cosine' '2 --backend ring --optimizer lars --bucket-mb 0.05')
for options in "${ways[@]:short * 3}"; do
    read -ra options <<<"$options"
    ranks=${options[0]}
    options=("${common[@]}" "${options[@]:1}" --steps 80)
    train "$ranks" "${options[@]}"
    whole=$weights
    start_and_kill "$ranks" "${options[@]}" --checkpoint "$folder/checkpoint"
    train "$ranks" "${options[@]}" --checkpoint "$folder/checkpoint" --resume
    grep -q '^continues after step' "$folder/log" || fail "${options[*]}: does not continue from the checkpoint:"
    [[ $weights == "$whole" ]] || fail "${options[*]}, continued: $weights, expected $whole"
    # Resumed at its end: no step is left, so the row has the result but no step time.
    rm -f "$folder/train.csv"
    train "$ranks" "${options[@]}" --checkpoint "$folder/checkpoint" --resume \
        --metrics "$folder/train.csv"
    for field in images_per_s step_ms_median compute_ms_median comm_ms_median; do
        expect $field ''
    done
    awk -v s="$(column seconds)" 'BEGIN { exit !(s > 0) }' ||
        fail "${options[*]}, at its end: the time of its steps is '$(column seconds)' s"
    [[ $weights == "$whole" ]] || fail "${options[*]}, at its end: $weights, expected $whole"
done

# Another device or backend may continue. psring warns that the bits differ.
train 2 "${common[@]}" --backend rhd --epochs 1 --checkpoint "$folder/backends"
train 2 "${common[@]}" --backend ring --epochs 1 --checkpoint "$folder/backends" --resume
grep -q 'backend is rhd there and ring here: the run continues, but not to the same bits' "$folder/log" ||
    fail "no warning about the other backend in:"

# psring refuses another run's checkpoint and names the difference.
if train_ranks 2 "${common[@]}" --batch 25 --steps 80 --checkpoint "$folder/checkpoint" --resume; then
    fail "two workers with another batch continued the run:"
fi
grep -q 'batch is 50 there and 25 here.*give --batch 50' "$folder/log" || fail "no error about the batch in:"

# More steps. If the learning rate does not depend on their number, the bits equal those of the longer run. Otherwise
# psring needs --resume=extend.
longer=(--model lenet --batch 50 --optimizer sgd --backend none --checkpoint "$folder/longer")
constant=(--lr-schedule constant --warmup-epochs 0.25)
train 0 "${longer[@]}" "${constant[@]}" --steps 30
expected=$weights
rm -r "$folder/longer"
train 0 "${longer[@]}" "${constant[@]}" --steps 20
train 0 "${longer[@]}" "${constant[@]}" --steps 30 --resume
grep -q 'steps is 20 there and 30 here: the run continues' "$folder/log" || fail "no warning about more steps in:"
[[ $weights == "$expected" ]] || fail "20 steps and 10 more: $weights, expected $expected:"
rm -r "$folder/longer"
train 0 "${longer[@]}" --steps 20
if train_ranks 0 "${longer[@]}" --steps 30 --resume; then
    fail "continued beyond the steps of its learning-rate schedule:"
fi
grep -q 'steps is 20 there and 30 here, .*--resume=extend' "$folder/log" || fail "no advice of --resume=extend in:"
! grep -q 'warmup is' "$folder/log" || fail "a message about --warmup-epochs, which was not given:"
train 0 "${longer[@]}" --steps 30 --resume=extend
grep -q '^continues after step 20$' "$folder/log" || fail "--resume=extend:"
status=0
train_ranks 0 "${longer[@]}" --steps 10 --resume=extend || status=$?
((status == 2)) || fail "fewer steps than are done: exit $status:"
grep -q 'steps is 30 there and 10 here, expected at least 30; this many are done' "$folder/log" || fail "fewer steps than are done:"

# Another number of workers continues at the same image. 15 steps of 2 x 50 have used 1,500 of the 2,000 images. That is
# step 30 of 1 x 50, and step 18 of 4 x 20 (whole steps).
train 2 "${common[@]}" --steps 15 --checkpoint "$folder/worlds"
for world in '0 50 30 --backend none' '4 20 18'; do
    read -ra world <<<"$world"
    rm -rf "$folder/other"
    cp -r "$folder/worlds" "$folder/other"
    train "${world[0]}" "${common[@]}" --batch "${world[1]}" --epochs 2 --checkpoint "$folder/other" --resume \
        "${world[@]:3}"
    grep -q 'workers is 2 there and [14] here: the run continues, but not to the same bits' "$folder/log" ||
        fail "no warning about the number of workers in:"
    grep -q "^continues after step ${world[2]}\$" "$folder/log" || fail "expected to continue after step ${world[2]}:"
done

if "$psring" train --data "$data" "${common[@]}" --backend none --optimizer adam --lr-schedule step \
    --steps 80 --checkpoint "$folder/checkpoint" --resume >"$folder/log" 2>&1; then
    fail "a run of lars was continued by adam:"
fi
for word in 'optimizer is lars there and adam here' 'lr-schedule is linear there and step here' \
    'optimizer-options is momentum=0.9 trust=0.02 there'; do
    grep -q "$word" "$folder/log" || fail "expected '$word' in:"
done

# A run that reaches --target-accuracy saves and ends at that test. When it is resumed, no step is left.
target=(--epochs 20 --log-steps 5 --target-accuracy 60 --metrics "$folder/train.csv")
good_enough() # WHAT
{
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        { rows++; last = $at["test_accuracy"]; early += last >= 0.6; on += $at["target_reached"] }
        END { exit !(rows > 0 && last >= 0.6 && early == 1 && on == 1 && $at["step"] < 260 &&
            $at["target_accuracy"] == 0.6) }' "$folder/train.csv" || fail "$1 ended with $(tail -n 1 "$folder/train.csv")"
    grep -q "^target accuracy 60% reached after step $(column step | awk '{ print $NF }')," "$folder/log" ||
        fail "$1: no message about the target in:"
}
ways=('2 --backend ring' '0 --backend none --virtual-workers 2' '4 --backend ps --backup-workers 1'
    '3 --backend ps --sync ssp:2')
for options in "${ways[@]:short * 3}"; do
    read -ra options <<<"$options"
    rm -rf "$folder/train.csv" "$folder/target"
    train "${options[0]}" "${common[@]}" "${options[@]:1}" "${target[@]}" --checkpoint "$folder/target"
    good_enough "--target-accuracy, ${options[*]}"
    reached=$weights
    rm -f "$folder/train.csv"
    train "${options[0]}" "${common[@]}" "${options[@]:1}" "${target[@]}" --checkpoint "$folder/target" --resume
    good_enough "--target-accuracy --resume, ${options[*]}"
    [[ $weights == "$reached" ]] || fail "--target-accuracy, continued: weights $weights, expected $reached"
done

# Tests during training do not change the weights. psring reports a target that is not reached.
train 0 "${common[@]}" --backend none --steps 12
whole=$weights
rm -f "$folder/train.csv"
train 0 "${common[@]}" --backend none --steps 12 --log-steps 5 --target-accuracy 100 --metrics "$folder/train.csv"
[[ $weights == "$whole" ]] || fail "with tests during training: $weights, expected $whole"
expect target_reached '0 0 0'
grep -q '^target accuracy 100% not reached after step 12,' "$folder/log" || fail "no message about the target in:"

# Rows of two epochs with an interval inside each: names of the columns, their values, and the accuracy of a trained
# net.
rm -f "$folder/train.csv"
train 2 "${common[@]}" --epochs 2 --log-steps 15 --metrics "$folder/train.csv"
expected_header=backend,transport,device,network,compute,workers,servers,placement,sync,model,dataset
expected_header+=,epoch,step,images,seconds,images_per_s,step_ms_median,compute_ms_median
expected_header+=,comm_ms_median,exposed_comm_ms_median,train_loss,test_loss,test_accuracy
expected_header+=,weights_sha256,batch,optimizer,lr,seed,reduce_order,bucket_mb,threads,compress
expected_header+=,error_feedback,gpu_memory_bytes,gpu_utilization
expected_header+=,recipe,optimizer_options,lr_schedule,lr_warmup_steps
expected_header+=,data_ms_median,bottleneck,bottleneck_rank,bottleneck_ms,improved_step_ms,straggler,backup_workers
expected_header+=,staleness_mean,staleness_max,steps_skipped,steps_dropped
expected_header+=,target_accuracy,target_reached
expected_header+=,gpu_utilization_mean,gpu_idle_share
expected_header+=,augment,data_threads,prefetch_batches,judged_step_ms,nominal_link_bytes_per_s,settings_sha256
[[ $(head -1 "$folder/train.csv") == "$expected_header" ]] ||
    fail "train.csv begins with $(head -1 "$folder/train.csv")"
expect backend 'ring ring ring ring'
expect reduce_order 'any any any any'
expect bucket_mb '4 4 4 4'
expect threads '1 1 1 1'
expect network 'loopback loopback loopback loopback'
expect compress 'none none none none'
expect error_feedback 'none none none none'
expect gpu_memory_bytes '   ' # a CPU has none
expect gpu_utilization '   '
expect gpu_utilization_mean '   '
expect gpu_idle_share '   '
expect recipe 'none none none none'
expect optimizer_options 'momentum=0.9 momentum=0.9 momentum=0.9 momentum=0.9'
expect lr_schedule 'linear linear linear linear'
expect lr_warmup_steps '8 8 8 8'
expect straggler 'none none none none'
expect backup_workers '0 0 0 0'
expect staleness_max '   ' # all workers have the same parameters
expect epoch '1 1 2 2'
expect step '15 20 30 40'
expect images '1500 2000 3000 4000'
read -ra accuracies <<<"$(column test_accuracy)"
((${#accuracies[@]} == 2)) || fail "test_accuracy is given ${#accuracies[@]} times, expected 2"
awk -v accuracy="${accuracies[1]}" 'BEGIN { exit !(accuracy > 0.9 && accuracy <= 1) }' ||
    fail "test accuracy ${accuracies[1]} after 2 epochs, expected more than 0.9"
[[ $(column weights_sha256) == *"$weights " ]] || fail "the last row's sum is not $weights"

# Training with compressed gradients reaches the same accuracy.
ways=('--compress fp16' '--compress bf16 --backend ps --placement colocated'
    '--compress fp16 --backend tree' '--compress bf16 --backend rhd --error-feedback off')
for options in "${ways[@]:short * 2}"; do
    rm -f "$folder/train.csv"
    # shellcheck disable=SC2086 # options are several words
    train 2 "${common[@]}" --epochs 2 --metrics "$folder/train.csv" $options
    read -r _ accuracy <<<"$(column test_accuracy)"
    awk -v accuracy="$accuracy" 'BEGIN { exit !(accuracy > 0.9 && accuracy <= 1) }' ||
        fail "test accuracy $accuracy after 2 epochs with $options, expected more than 0.9"
    read -ra words <<<"$options"
    expect compress "${words[1]} ${words[1]}"
done
expect error_feedback 'off off'

# A checkpoint contains the residuals of error feedback. With the same averaging, a continued run gives the same bits.
ways=('2 --backend ring' '2 --backend rhd' '3 --backend tree' '3 --backend ps' '3 --backend ps --placement colocated --servers 2')
for options in "${ways[@]:short * 4}"; do
    read -ra options <<<"$options"
    ranks=${options[0]}
    options=("${common[@]}" "${options[@]:1}" --compress bf16 --bucket-mb 0.05 --epochs 2)
    rm -rf "$folder/compressed"
    train "$ranks" "${options[@]}"
    whole=$weights
    train "$ranks" "${options[@]}" --checkpoint "$folder/compressed"
    [[ $weights == "$whole" ]] || fail "${options[*]}, saved: $weights, expected $whole"
    newest=$(printf '%s\n' "$folder"/compressed/*.checkpoint | tail -n 1)
    rm "$newest" # of two epochs, the second one
    train "$ranks" "${options[@]}" --checkpoint "$folder/compressed" --resume
    grep -q '^continues after step' "$folder/log" || fail "${options[*]}: does not continue from the checkpoint:"
    ! grep -q 'same bits' "$folder/log" || fail "${options[*]}: a warning about other bits:"
    [[ $weights == "$whole" ]] || fail "${options[*]}, continued: $weights, expected $whole"
done
train 3 "${common[@]}" --backend ring --compress bf16 --bucket-mb 0.05 --epochs 2 --checkpoint "$folder/compressed" --resume
grep -q "residuals is ps's, 3 workers, 2 colocated servers there and ring's, 3 workers here" "$folder/log" ||
    fail "no message about the residuals in:"

# --compute paced:15: no data, no test, and a step takes at least 15 ms.
"$lib/mpirun.sh" 2 "$psring" train --model lenet --compute paced:15 --steps 8 \
    --metrics "$folder/paced.csv" >"$folder/log" 2>&1 || fail "a paced run failed:"
mv "$folder/paced.csv" "$folder/train.csv"
expect compute paced:15
expect test_accuracy ''
expect weights_sha256 ''
awk -v ms="$(column step_ms_median)" 'BEGIN { exit !(ms >= 15) }' ||
    fail "a paced step took $(column step_ms_median) ms, expected at least 15"

# --compute real:40 computes, then waits until 40 ms are over: the same weights. The straggler takes three times that.
train 2 "${common[@]}" --steps 12
whole=$weights
rm -f "$folder/train.csv"
train 2 "${common[@]}" --steps 12 --compute real:40 --straggler 1:3 --metrics "$folder/train.csv"
[[ $weights == "$whole" ]] || fail "--compute real:40 gave $weights, expected $whole"
expect compute real:40
awk -v ms="$(column step_ms_median)" 'BEGIN { exit !(ms >= 120) }' ||
    fail "a step took $(column step_ms_median) ms, expected at least 3 x 40"

# psring reports that a run has learned nothing.
train 0 "${common[@]}" --backend none --steps 50 --lr 1e-9
grep -q '^no better than guessing: the test loss is 2\.' "$folder/log" ||
    fail "learned nothing, but does not report it:"
train 0 "${common[@]}" --backend none --steps 60
! grep -q 'no better than guessing' "$folder/log" || fail "has learned, but reports that it guesses:"
