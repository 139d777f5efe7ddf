#!/usr/bin/env bash
# test_stalls.sh [--short]: a warning names the rank that blocks others, and its last activity. The warning comes before
# --timeout. If the rank continues, a line reports this and the training completes. --short stops only rank 0 of the
# ring and the parameter server.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
# shellcheck source-path=SCRIPTDIR source=../lib/ranks_lib.sh
. "$(dirname "$0")/../lib/ranks_lib.sh" # free_port
export OMPI_MCA_orte_execute_quiet=1 # else mpirun's text would follow psring's last line

# start_ranks RANKS COMMAND...: start the command and wait until it works. Its ranks are ${ranks[@]}.
start_ranks()
{
    local count=$1
    shift
    rm -f "$folder/rows.csv"
    launch "$lib/ranks.sh" "$count" "$@"
    within at_work || fail "$*: no step and no end:"
    mapfile -t ranks < <(pgrep -s "$session" -x psring)
    ((${#ranks[@]} == count)) || fail "$*: ${#ranks[@]} processes, expected $count:"
}

# True when a training has done some steps, or a sweep its first size.
at_work()
{
    grep -q '^epoch' "$folder/log" || { [[ -f $folder/rows.csv ]] && (($(wc -l <"$folder/rows.csv") > 1)); } || is_over
}

# stall RANK: stop this rank until one warning names it, then let it continue.
stall()
{
    kill -STOP "${ranks[$1]}"
    wait_for "rank $1 stopped" "warning: rank $1 on [^ ]* .*sign of life for .*last seen [a-z]"
    kill -CONT "${ranks[$1]}"
    wait_for "rank $1 continued" "rank $1 on [^ ]* continued after [1-9][0-9]* s"
}

warned_once() # WHAT RANK: one warning names it; a busy machine may have starved another rank
{
    (($(grep -c "warning: rank $2 " "$folder/log") == 1)) || fail "$1: expected one warning about rank $2:"
}

# A paced step leaves time to stop a rank, and leaves the processors to other tests.
training=("$psring" train --data "$data" --model lenet --batch 4 --steps 250 --log-steps 5 --compute real:16)

weights_in() # FILE
{
    grep '^weights sha256' "$1"
}

# goes_on RANKS RANK OPTION...: stall the rank. The weights equal those of the training in "$folder/undisturbed".
goes_on()
{
    local count=$1 rank=$2
    shift 2
    start_ranks "$count" "${training[@]}" --stall-warning 3 --timeout 120 "$@"
    stall "$rank"
    expect_end "$*, rank $rank" 0 '^weights sha256'
    warned_once "$*, rank $rank" "$rank"
    [[ $(weights_in "$folder/log") == "$(weights_in "$folder/undisturbed")" ]] ||
        fail "$*, rank $rank: other weights than the undisturbed training:"
    echo "$*: $(grep -o 'rank .* on .*last seen .*' "$folder/log" | head -n 1)"
}

train 3 --model lenet --batch 4 --steps 250 --backend ring
cp "$folder/log" "$folder/undisturbed"
! grep "warning: rank" "$folder/log" || fail "a warning without a stall:"
((short)) || goes_on 3 1 --backend ring
goes_on 3 0 --backend ring # another rank warns about rank 0
train 4 --model lenet --batch 4 --steps 250 --backend ps
cp "$folder/log" "$folder/undisturbed"
((short)) || goes_on 4 1 --backend ps
goes_on 4 3 --backend ps # the server

# With ssp:3 the others may be three steps ahead, and then wait. Their weights have no fixed order of updates.
start_ranks 4 "${training[@]}" --stall-warning 3 --timeout 120 --backend ps --sync ssp:3
stall 1
expect_end "ssp:3" 0 '^weights sha256'
warned_once "ssp:3" 1

# A rank that lives but is late: the warning names what the others wait for, and what the rank does.
launch "$lib/ranks.sh" 3 "$psring" train --model lenet --backend ring --compute paced:500 --straggler 2:24 --steps 1 \
    --stall-warning 3
expect_end "a slow rank" 0 'warning: rank 2 on .* has not sent bucket 0 of step 0 .*rank 2 has been computing step 0 for'
grep -q 'rank 2 on .* continued after' "$folder/log" || fail "a slow rank: does not continue:"

start_ranks 3 "$psring" bench --backend ring -b 4 -e 1k -f 4 --iters 1000 --csv "$folder/rows.csv" --stall-warning 3 --timeout 120
stall 1
expect_end "bench" 0 'every element equals the exact sum'

# An elastic job: the first server warns about a silent worker, and each worker about what it waits for.
elastic=("${training[@]}" --backend ps --lr 0.02)
train 3 --model lenet --batch 4 --lr 0.02 --steps 250 --backend ps
port=$(free_port)
address=tcp://127.0.0.1:$port
launch "$psring" serve --listen "$address" --workers 2 --stall-warning 3 --timeout 120
workers=()
end_workers()
{
    ((!${#workers[@]})) || kill -KILL "${workers[@]}" || true # one may be stopped
}
at_end end_workers
wait_for "psring serve" '^listens'
for worker in 0 1; do
    "${elastic[@]}" --join "$address" --stall-warning 3 --timeout 120 >"$folder/worker.$worker" 2>&1 &
    workers+=($!)
done
trained() { grep -q '^epoch' "$folder"/worker.?; }
within trained || fail "an elastic job:"
kill -STOP "${workers[1]}"
wait_for "an elastic worker stopped" 'warning: worker [01] on .* has not given a sign of life for'
# It is in a step, or in the barrier before the first step after a report.
reports_its_wait()
{
    grep -qE 'warning: no (progress for .* waiting for server 0|message for .* waiting for rank [0-2].* in a barrier)' \
        "$folder/worker.0"
}
within reports_its_wait || {
    cat "$folder/worker.0" >&2
    fail "the other worker of an elastic job does not report what it waits for:"
}
kill -CONT "${workers[1]}"
wait_for "an elastic worker continued" 'worker [01] on .* continued after [1-9][0-9]* s'
for worker in 0 1; do
    wait "${workers[worker]}" || fail "worker $worker of an elastic job ended with $?: $(cat "$folder/worker.$worker")"
done
workers=()
expect_end "an elastic job" 0 'training has ended'
[[ $(cat "$folder"/worker.? | sed -n 's/^weights sha256 //p') == "$weights" ]] ||
    fail "an elastic job: other weights than an undisturbed training on as many ranks"

# A rank that stays stopped: first a warning, then the end.
start_ranks 3 "${training[@]}" --steps 100000000 --backend ring --stall-warning 1 --timeout 8
kill -STOP "${ranks[1]}"
expect_end "a rank that hangs" failure 'error: rank 1 on .* a sign of life for [0-9]* s'
grep -q 'warning: rank 1 on .* a sign of life .* --timeout ends the run after 8 s' "$folder/log" ||
    fail "a rank that hangs: no warning before the end:"
if ((!short)); then
    start_ranks 3 "${training[@]}" --steps 100000000 --backend ring --stall-warning 0 --timeout 4
    kill -STOP "${ranks[1]}"
    expect_end "a rank that hangs, no warnings" failure 'error: rank 1 on .* a sign of life for [0-9]* s'
    ! grep -q 'warning: ' "$folder/log" || fail "a warning despite --stall-warning 0:"
fi

launch "${training[@]}" --stall-warning 9 --timeout 9
expect_end "a warning that never comes" 2 '--stall-warning 9: --timeout ends the run after 9 s'
