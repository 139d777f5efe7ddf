#!/usr/bin/env bash
# test_failures.sh [--short]: an error that ends a run ends it on all ranks. The message contains a remedy, the exit
# code is that of the contract, and no process is left.
#
# --short: only some of the options on which ranks differ, and some of the ends for each backend.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"

# Checks the last line of the run that has just ended.
expect_last() # WHAT WORDS
{
    last_line "$folder/log" | grep -q -e "$2" || fail "$1: the last line has no '$2':"
}

# An error that ends the command. psring's message must come once, not once for each rank.
refused() # WHAT EXIT-CODE WORDS COMMAND...
{
    local what=$1 expected=$2 words=$3
    shift 3
    launch "$@"
    expect_end "$what" "$expected" "$words"
    (($(grep -c -e "$words" "$folder/log") == 1)) || fail "$what: expected the message once:"
    ! grep -q -e 'asked to end' -e 'bad usage' "$folder/log" || fail "$what: more messages than the error:"
}

mpi=("$lib/mpirun.sh")
met=("$lib/ranks.sh") # without a launcher: for errors after the ranks have met
training=("$psring" train --data "$data" --model mlp)

# --- errors at the start ------------------------------------------------------------------------------

refused "no server" 2 'give --servers 1 or more' "${training[@]}" --backend ps --servers 0
refused "no server, 3 ranks" 2 'give --servers 1 or more' "${mpi[@]}" 3 "${training[@]}" \
    --backend ps --servers 0
refused "a dedicated server alone" 2 'start 2 (1 worker + 1)' "${training[@]}" --backend ps
refused "nothing that averages" 2 'averages nothing, and 2 processes' "${mpi[@]}" 2 \
    "${training[@]}" --backend none
refused "a process that plays all, twice" 2 'without mpirun' "${mpi[@]}" 2 "${training[@]}" \
    --backend none --virtual-workers 2
refused "no such command" 2 'no such command (did you mean train?)' "${mpi[@]}" 2 "$psring" trian
refused "no such option" 2 '--fast: no such option' "${mpi[@]}" 2 "${training[@]}" --fast
refused "a straggler that is not there, -v" 2 '4:4: there are 2 workers' "${met[@]}" 2 "${training[@]}" \
    --straggler 4:4 -v
refused "a batch larger than the data" 2 'lower --batch' "${met[@]}" 2 "${training[@]}" --batch 60000
refused "no data named" 2 'give --data DIR' env -u PSRING_DATA "${mpi[@]}" 2 "$psring" train
refused "no data named, before rank 1 has come" 2 'give --data DIR' env -u PSRING_DATA "${mpi[@]}" 1 "$psring" train : \
    -n 1 sleep 60
refused "no such folder of data" 1 'run experiments/get_mnist.sh' "${met[@]}" 2 "$psring" train \
    --data "$folder/nowhere"
refused "metrics that cannot be written" 1 'nowhere/train.csv' "${met[@]}" 2 "${training[@]}" \
    --metrics "$folder/nowhere/train.csv"
refused "no checkpoint to continue" 1 'no checkpoint of mlp in .*empty' "${met[@]}" 2 "${training[@]}" \
    --checkpoint "$folder/empty" --resume=must
for backend in ring ps; do # with ps a rank is a server, which reads no checkpoint
    options=(--backend "$backend" --checkpoint "$folder/kept-$backend" --steps 4)
    "${met[@]}" 3 "${training[@]}" "${options[@]}" >"$folder/log" 2>&1 || fail "4 steps, $backend:"
    refused "another run's checkpoint, $backend" 2 'reduce-order is any there and ring here' \
        "${met[@]}" 3 "${training[@]}" "${options[@]}" --reduce-order ring --resume
done
launch "${mpi[@]}" 2 "${training[@]}" --transport zmq --subnet 203.0.113.0/24
expect_end "a network that is not here" 1 'no IPv4 address in 203.0.113.0/24'
launch "${mpi[@]}" 2 --hostfile "$folder/nohosts" "${training[@]}"
expect_end "no such hostfile" failure "$folder/nohosts"

mkdir "$folder/cut"
cp "$data"/* "$folder/cut"
truncate -s 100000 "$folder/cut/train-images-idx3-ubyte"
refused "a truncated file" 1 'train-images-idx3-ubyte.*truncated' "${met[@]}" 2 "$psring" train \
    --data "$folder/cut"

# An error of one rank, even of usage, ends all ranks. The last line names the rank.
export OMPI_MCA_orte_execute_quiet=1 # else mpirun's text would follow psring's last line
launch "${mpi[@]}" 1 "${training[@]}" --steps 2 : -n 1 "${training[@]}" --fast
expect_end "one rank's bad option" 2 'rank 1: error: --fast: no such option'
expect_last "one rank's bad option" 'rank 1 on .* ended with an error'
launch "${mpi[@]}" 1 "${training[@]}" --steps 2 : -n 1 "$psring" train --model mlp --steps 2 \
    --data "$folder/nowhere"
expect_end "no data on one rank" failure 'run experiments/get_mnist.sh'
expect_last "no data on one rank" 'rank 1 on .* ended with an error'
launch "${mpi[@]}" 1 "${training[@]}" --steps 2 : -n 1 env -u PSRING_DATA "$psring" train \
    --model mlp --steps 2
expect_end "no data named on one rank" 2 'give --data DIR'
expect_last "no data named on one rank" 'rank 1 on .* ended with an error'
launch "${mpi[@]}" 1 "${training[@]}" --backend ps --steps 2 : -n 1 env -u PSRING_DATA "$psring" train --model mlp \
    --backend ps --steps 2
expect_end "a server, which needs no data" 0 ''
mkdir "$folder/other"
"$make_dataset" "$folder/other" 2000 301 # the same number of steps, other images
launch "${mpi[@]}" 1 "${training[@]}" --steps 2 : -n 1 "$psring" train --model mlp --steps 2 \
    --data "$folder/other"
expect_end "other data on one rank" failure 'rank 1 has other files there than rank 0'
# Ranks differ in how a bucket is cut, in how much is measured, or in an option that no message and no sum of the
# weights would show. Some options make only one rank ask the others. Each case prints one line, and no rank waits.
other_option() # RANK-0's COMMAND... -- OPTION [VALUE]
{
    local command=()
    while [[ $1 != -- ]]; do
        command+=("$1")
        shift
    done
    shift
    refused "$* on one rank" 2 "$1 is .* on rank 1 and .* on rank 0" "${mpi[@]}" 1 "${command[@]}" : -n 1 \
        "${command[@]}" "$@"
}

unlike=('--segment-bytes 4000' '--iters 3' '--sizes 4,16' '--overlap' '--probe on' '--compress fp16' '--link-rate 1e8')
for option in "${unlike[@]:short * 5}"; do
    read -ra words <<<"$option"
    other_option "$psring" bench -e 64k -- "${words[@]}"
done
sizes=$(seq -s , 1000004 4 1000120) # thirty sizes: they differ after more than 200 characters
other_option "$psring" bench --sizes "$sizes" -- --sizes "$sizes,4"
other_option "$psring" bench --backend ps --servers 1 --placement colocated -e 64k -- --push-window 3
other_option "${training[@]}" --steps 2 -- --seed 2
other_option "${training[@]}" --steps 2 -- --checkpoint "$folder/one"
refused "another rate in one rank's environment" 2 'the same PSRING_LINK_BITS' "${mpi[@]}" 1 \
    env PSRING_LINK_BITS=1e8 "$psring" bench -e 64k : -n 1 "$psring" bench -e 64k
refused "another command on one rank" 2 'another command than rank 0' "${mpi[@]}" 1 "$psring" bench : -n 1 \
    "${training[@]}"

# A launcher numbers the ranks, but they meet by rendezvous.
refused "no such option, by rendezvous" 2 '--fast: no such option' env PMIX_RANK=1 \
    "${training[@]}" --rendezvous tcp://127.0.0.1:9 --rank 1 --world-size 2 --fast

# Rank 0, which reports for all, has not come: another rank reports.
launch "${mpi[@]}" 1 sleep 60 : -n 1 "${training[@]}" --startup-timeout 2
expect_end "the first rank does not come" failure 'rank 1 is still meeting the other ranks after 2 s'

# --- errors during the run ----------------------------------------------------------------------------

refused "divergence" 1 'smaller --lr' "${met[@]}" 2 "${training[@]}" --optimizer sgd --lr 1000

# Starts an endless run and waits until it trains. Its ranks are ${ranks[@]}.
start_training() # RANKS OPTION...
{
    local count=$1
    shift
    launch "${mpi[@]}" "$count" "${training[@]}" --batch 4 --steps 100000000 --log-steps 1 "$@"
    wait_for "psring train $*" '^epoch'
    mapfile -t ranks < <(pgrep -s "$session" -x psring)
    ((${#ranks[@]} == count)) || fail "psring train $*: ${#ranks[@]} processes, expected $count:"
}

interrupted() # BACKEND OPTION...
{
    start_training 3 --backend "$@"
    kill -INT "$(pgrep -s "$session" -x mpirun)"
    expect_end "Ctrl-C, $*" failure '' # mpirun drops its processes' output from then on
}

killed() # BACKEND OPTION...
{
    start_training 3 --backend "$@"
    kill -KILL "${ranks[1]}"
    expect_end "a killed worker, $*" failure ''
    expect_last "a killed worker, $*" 'rank 1 on .* has ended'
}

# A process that hangs looks like a lost host: only the time-out ends the run.
hangs() # BACKEND OPTION...
{
    start_training 3 --timeout 4 --backend "$@"
    kill -STOP "${ranks[1]}"
    expect_end "a worker that hangs, $*" failure 'rank 1 on .* no.* a sign of life for [0-9]* s'
    expect_last "a worker that hangs, $*" 'rank 1 on '
}

if ((short)); then # fault_trials.sh --short has other cases
    interrupted ring --transport tcp
    killed ring --transport zmq
    killed ps --transport tcp
    hangs mpi
else
    for backend in 'ring --transport mpi' 'ring --transport zmq' 'ring --transport tcp' 'ps --transport zmq' 'ps --transport tcp' mpi; do
        read -ra options <<<"$backend"
        interrupted "${options[@]}"
        killed "${options[@]}"
        hangs "${options[@]}"
    done
fi
# A job that is suspended as a whole for longer than the time-out continues: no rank is at fault.
start_training 3 --backend ring --timeout 6
kill -STOP "${ranks[@]}"
sleep 9
printed=$(wc -l <"$folder/log")
kill -CONT "${ranks[@]}"
prints_more() { (($(wc -l <"$folder/log") > printed + 50)) || is_over; }
within prints_more || fail "suspended and continued: does not continue:"
! is_over || fail "suspended and continued: has ended:"
kill -INT "$(pgrep -s "$session" -x mpirun)"
expect_end "suspended, continued and interrupted" failure ''
if ((!short)); then # fault_trials.sh --short has a killed server
    start_training 3 --backend ps
    kill -KILL "${ranks[2]}"
    expect_end "a killed server" failure ''
    expect_last "a killed server" 'rank 2 on .* has ended'
fi

launch "${training[@]}" --steps 100000000 --log-steps 1
wait_for "psring train" '^epoch'
kill -INT "$session"
expect_end "Ctrl-C, without mpirun" 130 'can be continued with --resume'
