#!/usr/bin/env bash
# test_elastic.sh: workers of psring train --join that join a job of psring serve and leave it,
# and are killed: the same weights as under mpirun, and no gradient lost or applied twice.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
# shellcheck source-path=SCRIPTDIR source=../lib/ranks_lib.sh
. "$lib/ranks_lib.sh"
unset RANK WORLD_SIZE MASTER_ADDR MASTER_PORT
common=(--backend ps --model lenet --batch 8)

# serve OPTION...: a server at a free port, $address; its process is $server, what it says in $folder/serve.
serve()
{
    address=tcp://127.0.0.1:$(free_port)
    rm -f "$folder"/worker.* "$folder/metrics"
    : >"$folder/serve" # now, not once the server has been started
    workers=()
    timeout --kill-after=5 300 "$psring" serve --listen "$address" --timeout 20 "$@" >"$folder/serve" 2>&1 &
    server=$!
    within grep -q listens "$folder/serve" || fail "no server: $(cat "$folder/serve")"
}

# worker OPTION...: the next one; it has joined when this returns.
worker()
{
    local number=${#workers[@]}
    timeout --kill-after=5 300 "$psring" train --data "$data" "${common[@]}" --join "$address" --timeout 20 \
        --metrics "$folder/metrics" "$@" >"$folder/worker.$number" 2>&1 &
    workers+=($!)
    within grep -q . "$folder/worker.$number" || fail "worker $number says nothing: $(cat "$folder/serve")"
}

# ends CODE NUMBER: that worker's exit code.
ends()
{
    local code=0
    wait "${workers[$2]}" 2>/dev/null || code=$?
    ((code == $1)) || fail "worker $2: exit $code, expected $1: $(cat "$folder/worker.$2" "$folder/serve")"
}

# served CODE: the server has ended with that exit code.
served()
{
    local code=0
    wait "$server" || code=$?
    ((code == $1)) || fail "the server: exit $code, expected $1: $(cat "$folder/serve" "$folder"/worker.*)"
}

# kill_worker SIGNAL NUMBER: that psring, of which timeout is the parent.
kill_worker()
{
    kill "-$1" "$(pgrep -P "${workers[$2]}")"
}

# column NAME: of the last row of the metrics.
column()
{
    awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } END { print $at[name] }' "$folder/metrics"
}

weights_of()
{
    cat "$folder"/worker.* | sed -n 's/^weights sha256 //p'
}

# rows_rise NAME...: what these columns of the metrics count since the job began never falls.
rows_rise()
{
    local column
    for column in "$@"; do
        awk -F, -v name="$column" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
            $at[name] + 0 < last { exit 1 } { last = $at[name] + 0 }' "$folder/metrics" ||
            fail "column $column falls: $(cat "$folder/metrics")"
    done
}

# The images that workers say are of them in the weights.
account()
{
    cat "$folder"/worker.* | sed -nE 's/.*contain ([0-9]+) images of this worker.*/\1/p' | awk '{ sum += $1 } END { print sum }'
}

# steps_done N: worker 0 has done so many.
steps_done()
{
    awk -v steps="$1" '/^epoch/ { for (i = 1; i < NF; i++) if ($i == "step" && $(i + 1) >= steps) found = 1 }
                       END { exit !found }' "$folder/worker.0"
}

# Workers that stay are as under mpirun, with one server and with two.
for servers in 1 2; do
    train $((2 + servers)) "${common[@]}" --steps 40 --servers $servers
    serve --workers 2
    list=()
    if ((servers == 2)); then
        first=$address second=tcp://localhost:$(free_port)
        timeout --kill-after=5 300 "$psring" serve --listen "$second" >"$folder/second" 2>&1 &
        other=$!
        list=(--join "$first,$second")
    fi
    worker --steps 40 "${list[@]}"
    worker --steps 40 "${list[@]}"
    ends 0 0
    ends 0 1
    served 0
    if ((servers == 2)); then
        wait "$other" || fail "the second server: $(cat "$folder/second")"
    fi
    [[ $(weights_of) == "$weights" ]] || fail "$servers servers: weights $(weights_of), under mpirun $weights"
done

# One leaves at a step, another joins at a later one. Each image that was dealt is in the weights once: rank 0's
# account of all, by position, is the sum of what each worker counts of its own.
serve --workers 3
worker --epochs 4
worker --epochs 4 --leave-after 50
worker --epochs 4 --data-threads 2
worker --epochs 4 --join-after 100
for number in 0 1 2 3; do
    ends 0 $number
done
served 0
grep -q '^left after step 50;' "$folder/worker.1" || fail "left at another step: $(cat "$folder/worker.1")"
for line in 'generation 1: 3 workers, after step 0' 'generation 2: 2 workers, after step 50' \
    'generation 3: 3 workers, after step 100'; do
    grep -q "$line" "$folder/serve" || fail "no '$line': $(cat "$folder/serve")"
done
[[ $(account) == "$(column images)" ]] ||
    fail "$(column images) images were dealt, the workers count $(account): $(cat "$folder"/worker.*)"
grep -q "the weights contain $(account) images" "$folder/serve" || fail "the server's account: $(cat "$folder/serve")"
# 2,000 images an epoch, of which a last step of 24 that is not whole may be left out.
images=$(column images)
((images <= 8000 && images > 8000 - 4 * 24)) || fail "$images images in 4 epochs of 2000"

# A worker is killed in the middle of whatever it does. What the others have then is what they would have if it had
# left after the step that they say: so its gradients are in all steps before, and in none after.
for _ in 1 2 3; do
    serve --workers 3
    for number in 0 1 2; do
        worker --steps 400 --log-steps 1
    done
    within steps_done 100 || fail "no 100 steps: $(cat "$folder"/worker.*)"
    kill_worker KILL 1
    ends 0 0
    ends 137 1
    ends 0 2
    served 0
    rows_rise step images seconds
    killed=$(weights_of) dealt=$(column images) counted=$(account)
    step=$(sed -n 's/^continues after step //p' "$folder/worker.0")
    # Worker 2 comes first if it alone had all answers of the last step; the sums are then of another order.
    [[ ! $step ]] || break
done
((dealt - counted == step * 8)) || fail "killed after step $step: $dealt images dealt, $counted by the others"
serve --workers 3
worker --steps 400 --log-steps 1
worker --steps 400 --log-steps 1 --leave-after "$step"
worker --steps 400 --log-steps 1
for number in 0 1 2; do
    ends 0 $number
done
served 0
[[ $(weights_of) == "$killed" ]] || fail "killed after step $step: weights $killed, of one that left then $(weights_of)"

# While a job runs: strangers and workers with other options are kept out, and disturb nobody; a signal ends one
# worker, and rank 0's leave the others to go on; without its server no worker does.
serve --workers 2
worker --steps 1000000 --log-steps 20
worker --steps 1000000 --log-steps 20
within steps_done 20 || fail "no 20 steps: $(cat "$folder"/worker.*)"
exec 3<>"/dev/tcp/127.0.0.1/${address##*:}"
echo 'GET / HTTP/1.0' >&3
exec 3>&-
worker --steps 1000000 --batch 16
ends 2 2
grep -q 'started with --batch=16, the job with --batch=8' "$folder/worker.2" ||
    fail "another --batch: $(cat "$folder/worker.2")"
worker --steps 1000000 --log-steps 20
kill_worker TERM 0
ends 0 0
grep -q '^left after step' "$folder/worker.0" || fail "SIGTERM: $(cat "$folder/worker.0")"
within grep -q '^epoch' "$folder/worker.1" || fail "nobody goes on where rank 0 has left: $(cat "$folder"/worker.*)"
kill -KILL "$(pgrep -P "$server")"
wait "$server" 2>/dev/null || true
for number in 1 3; do
    ends 1 $number
    grep -q "the server at $address, .* has ended" "$folder/worker.$number" ||
        fail "the server was killed: $(cat "$folder/worker.$number")"
done

# What is left of an epoch is no whole step for those who are there then: it is tested all the same.
serve --workers 1
worker --epochs 2 --join-after 249 # of 250 steps that one worker needs
worker --epochs 2
ends 0 0
ends 0 1
served 0
grep -q 'generation 2: 2 workers, after step 249' "$folder/serve" || fail "joined elsewhere: $(cat "$folder/serve")"
for epoch in 1 2; do
    (($(grep -c "^epoch $epoch/2 .*accuracy" "$folder/worker.1") == 1)) ||
        fail "epoch $epoch is not tested once: $(cat "$folder/worker.1")"
done

# What worker 0 alone cannot open ends it alone.
serve --workers 3
worker --steps 200 --metrics "$folder/none/metrics"
worker --steps 200
worker --steps 200
ends 1 0
ends 0 1
ends 0 2
served 0
grep -q 'none/metrics: cannot be opened' "$folder/worker.0" || fail "does not say what: $(cat "$folder/worker.0")"
grep -q 'generation 2: 2 workers' "$folder/serve" || fail "the others do not go on: $(cat "$folder/serve")"

# With fewer than --min-workers the job waits, for so long as was said; the last one takes the weights along.
serve --workers 2 --min-workers 2
worker --steps 1000000 --log-steps 20 --startup-timeout 8
worker --steps 1000000 --log-steps 20 --leave-after 30 --startup-timeout 8
ends 0 1
ends 1 0
grep -q 'waits: 1 of 2 workers are there' "$folder/worker.0" || fail "does not wait: $(cat "$folder/worker.0")"
served 1
grep -q 'no worker is left' "$folder/serve" || fail "no word of the end: $(cat "$folder/serve")"

# A signal ends the search for a server that is not there.
handles_usr1() # psring has a handler for SIGTERM earlier, and this shell for both until it has become psring
{
    [[ $(cat "/proc/$1/comm") == "$(basename "$psring")" ]] && ((0x$(awk '/^SigCgt/ { print $2 }' "/proc/$1/status") >> 9 & 1))
}
"$psring" train --data "$data" "${common[@]}" --join "tcp://127.0.0.1:$(free_port)" --startup-timeout 60 >"$folder/log" 2>&1 &
searcher=$!
workers=("$searcher") # for clean_up
within handles_usr1 "$searcher" || fail "the search for a server handles no signal:"
kill -TERM "$searcher"
wait "$searcher" || fail "SIGTERM in the search for a server: exit $?, expected 0:"

# What cannot be.
refused()
{
    local words=$1 code=0
    shift
    "$psring" "$@" >"$folder/log" 2>&1 || code=$?
    ((code == 2)) || fail "psring $*: exit $code, expected 2:"
    grep -qF -- "$words" "$folder/log" || fail "psring $*: no '$words' in:"
}

elastic=(train --join tcp://127.0.0.1:1)
refused 'only --backend ps has servers' "${elastic[@]}" --backend ring
refused 'leave --placement out' "${elastic[@]}" --backend ps --placement colocated
refused "but MPI's ranks cannot" "${elastic[@]}" --backend ps --transport mpi
refused 'leave --straggler out' "${elastic[@]}" --backend ps --straggler 1:4
refused 'leave --checkpoint out' "${elastic[@]}" --backend ps --checkpoint "$folder/checkpoint"
refused 'the server numbers the workers' "${elastic[@]}" --backend ps --rendezvous tcp://a:1 --rank 0 --world-size 2
refused '--servers 3: --join names 1' "${elastic[@]}" --backend ps --servers 3
refused "--join: found 'tcp://a'" train --backend ps --join tcp://127.0.0.1:1,tcp://a
refused '--leave-after 3: applies only to a worker' train --leave-after 3
refused "--listen: found 'here'" serve --listen here
OMPI_COMM_WORLD_RANK=0 refused 'without mpirun or srun' "${elastic[@]}" --backend ps
echo "elastic: the same weights as under mpirun; joining, leaving and dying lose no gradient and apply none twice"

# SIGTERM ends a server that waits for its first worker, with a line.
serve
kill -TERM "$(pgrep -P "$server")"
served 143
grep -q '^psring: ended by a signal' "$folder/serve" || fail "a server that is told to end: $(cat "$folder/serve")"
