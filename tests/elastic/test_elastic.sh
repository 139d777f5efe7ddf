#!/usr/bin/env bash
# test_elastic.sh: workers (psring train --join) join a job of psring serve, leave it, and are killed. The weights equal
# those of a run under mpirun. No gradient is lost or applied twice.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
# shellcheck source-path=SCRIPTDIR source=../lib/elastic_lib.sh
. "$lib/elastic_lib.sh"

# rows_rise NAME...: these columns count since the job began, so they never decrease in the metrics.
rows_rise()
{
    local column
    for column in "$@"; do
        awk -F, -v name="$column" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
            $at[name] + 0 < last { exit 1 } { last = $at[name] + 0 }' "$folder/metrics" ||
            fail "column $column decreases: $(cat "$folder/metrics")"
    done
}

# Workers that stay get the weights of a run under mpirun, with one server and with two.
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

# One worker leaves at a step, another joins at a later one. Each assigned image is in the weights once: rank 0's total,
# by position in the data, equals the sum of the workers' own counts.
serve --workers 3
worker --epochs 4
worker --epochs 4 --leave-after 50
worker --epochs 4 --join-after 100 # before the job begins, so it is not late
worker --epochs 4 --data-threads 2
for number in 0 1 2 3; do
    ends 0 $number
done
served 0
grep -q '^left after step 50;' "$folder/worker.1" ||
    fail "worker 1 did not leave after step 50: $(cat "$folder/worker.1")"
for line in 'generation 1: 3 workers, after step 0' 'generation 2: 2 workers, after step 50' \
    'generation 3: 3 workers, after step 100'; do
    grep -q "$line" "$folder/serve" || fail "no '$line': $(cat "$folder/serve")"
done
[[ $(account) == "$(column images)" ]] ||
    fail "rank 0 counts $(column images) images, the workers $(account): $(cat "$folder"/worker.*)"
grep -q "the weights contain $(account) images" "$folder/serve" ||
    fail "the server counts other images than the workers: $(cat "$folder/serve")"
# An epoch has 2,000 images. An incomplete last step of at most 24 images may be left out.
images=$(column images)
((images <= 8000 && images > 8000 - 4 * 24)) || fail "$images images in 4 epochs, expected 7,905 to 8,000"

# A worker is killed at a random moment. The other workers print the step after which they continue. Their weights equal
# those of a run where the worker leaves after that step: its gradients are in all steps before, and in none after.
for _ in 1 2 3; do
    serve --workers 3
    for number in 0 1 2; do
        worker --steps 400 --log-steps 1 --compute real:5
    done
    within steps_done 100 || fail "no 100 steps: $(cat "$folder"/worker.*)"
    kill_worker KILL 1
    ends 0 0
    ends 137 1
    ends 0 2
    served 0
    rows_rise step images seconds
    killed=$(weights_of) dealt=$(column images) counted=$(account)
    step=$(sed -nE 's/^continues after step ([0-9]+).*/\1/p' "$folder/worker.0")
    # If only worker 2 had all answers of the last step, it becomes rank 0 and the order of addition changes: try again.
    [[ ! $step ]] || break
done
((dealt - counted == step * 8)) || fail "killed after step $step: $dealt images in all, $counted of the other workers"
serve --workers 3
worker --steps 400 --log-steps 1
worker --steps 400 --log-steps 1 --leave-after "$step"
worker --steps 400 --log-steps 1
for number in 0 1 2; do
    ends 0 $number
done
served 0
[[ $(weights_of) == "$killed" ]] ||
    fail "killed after step $step: weights $killed, expected $(weights_of) as with --leave-after"

# A job refuses strangers and workers with other options, and continues. A signal ends one worker. After rank 0 has
# left, the other workers continue. All workers end when the server has ended.
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
code=0
(ulimit -n 22 && exec timeout --kill-after=5 300 "$psring" train --data "$data" "${common[@]}" --join "$address" \
    --timeout 20 --steps 1000000 --log-steps 20) >"$folder/log" 2>&1 || code=$?
((code == 1)) || fail "few descriptors: exit $code, expected 1:"
grep -q 'needs about .* file descriptors' "$folder/log" || fail "few descriptors: another reason:"
worker --steps 1000000 --log-steps 20
kill_worker TERM 0
ends 0 0
grep -q '^left after step' "$folder/worker.0" || fail "SIGTERM: $(cat "$folder/worker.0")"
within grep -q '^epoch' "$folder/worker.1" ||
    fail "worker 1 does not continue after rank 0 has left: $(cat "$folder"/worker.*)"
kill -KILL "$(pgrep -P "$server")"
wait "$server" 2>/dev/null || true
for number in 1 3; do
    ends 1 $number
    grep -q "the server at $address, .* has ended" "$folder/worker.$number" ||
        fail "the server was killed: $(cat "$folder/worker.$number")"
done

# The remainder of an epoch is too small for a step of all workers present. The epoch still ends with a test.
serve --workers 1
worker --epochs 2 --join-after 249 # of 250 steps that one worker needs
worker --epochs 2
ends 0 0
ends 0 1
served 0
grep -q 'generation 2: 2 workers, after step 249' "$folder/serve" ||
    fail "the second worker did not join after step 249: $(cat "$folder/serve")"
for epoch in 1 2; do
    (($(grep -c "^epoch $epoch/2 .*accuracy" "$folder/worker.1") == 1)) ||
        fail "epoch $epoch: expected one test: $(cat "$folder/worker.1")"
done

# A file that worker 0 cannot open ends only worker 0.
serve --workers 3
worker --steps 200 --metrics "$folder/none/metrics"
worker --steps 200
worker --steps 200
ends 1 0
ends 0 1
ends 0 2
served 0
grep -q 'none/metrics: cannot be opened' "$folder/worker.0" ||
    fail "worker 0 does not name the file: $(cat "$folder/worker.0")"
grep -q 'generation 2: 2 workers' "$folder/serve" || fail "the other workers do not continue: $(cat "$folder/serve")"

# With fewer workers than --min-workers the job waits, up to --startup-timeout. It ends when the last worker has left.
serve --workers 2 --min-workers 2
worker --steps 1000000 --log-steps 20 --startup-timeout 8
worker --steps 1000000 --log-steps 20 --leave-after 30 --startup-timeout 8
ends 0 1
ends 1 0
grep -q 'waits: 1 of 2 workers are there' "$folder/worker.0" || fail "worker 0 does not wait: $(cat "$folder/worker.0")"
served 1
grep -q 'no worker is left' "$folder/serve" || fail "the server does not print why it ended: $(cat "$folder/serve")"

# A signal ends the search for an absent server.
# handles_usr1 PID. psring handles SIGTERM earlier than SIGUSR1. Before exec of psring the shell handles both.
handles_usr1()
{
    [[ $(cat "/proc/$1/comm") == "$(basename "$psring")" ]] && ((0x$(awk '/^SigCgt/ { print $2 }' "/proc/$1/status") >> 9 & 1))
}
"$psring" train --data "$data" "${common[@]}" --join "tcp://127.0.0.1:$(free_port)" --startup-timeout 60 >"$folder/log" 2>&1 &
searcher=$!
workers=("$searcher") # for clean_up
within handles_usr1 "$searcher" || fail "the search for a server handles no signal:"
kill -TERM "$searcher"
wait "$searcher" || fail "SIGTERM in the search for a server: exit $?, expected 0:"

# Options that psring refuses.
refused()
{
    local words=$1 code=0
    shift
    "$psring" "$@" >"$folder/log" 2>&1 || code=$?
    ((code == 2)) || fail "psring $*: exit $code, expected 2:"
    grep -qF -- "$words" "$folder/log" || fail "psring $*: no '$words' in:"
}

elastic=(train --join tcp://127.0.0.1:1)
refused 'found --backend ring, expected ps' "${elastic[@]}" --backend ring
refused 'leave --placement out' "${elastic[@]}" --backend ps --placement colocated
refused "but MPI's ranks cannot" "${elastic[@]}" --backend ps --transport mpi
refused 'leave --straggler out' "${elastic[@]}" --backend ps --straggler 1:4
refused 'leave --checkpoint out' "${elastic[@]}" --backend ps --checkpoint "$folder/checkpoint"
refused 'the job numbers its workers' "${elastic[@]}" --backend ps --rendezvous tcp://a:1 --rank 0 --world-size 2
refused '--servers 3: --join names 1' "${elastic[@]}" --backend ps --servers 3
refused "--join: found 'tcp://a'" train --backend ps --join tcp://127.0.0.1:1,tcp://a
refused '--leave-after 3: applies only to a worker' train --leave-after 3
refused "--listen: found 'here'" serve --listen here
OMPI_COMM_WORLD_RANK=0 refused 'without mpirun or srun' "${elastic[@]}" --backend ps
echo "elastic: the weights equal those under mpirun; each gradient counts once, also when workers join, leave or die"

# SIGTERM ends a server that waits for its first worker. The server prints a line. It warns if other hosts can connect.
warnings=0
for host in 127.0.0.1 0.0.0.0; do
    serve
    kill -TERM "$(pgrep -P "$server")"
    served 143
    grep -q '^psring: ended by a signal' "$folder/serve" || fail "SIGTERM to a waiting server: $(cat "$folder/serve")"
    (($(grep -c 'other hosts can connect' "$folder/serve") == warnings++)) || fail "$host: $(cat "$folder/serve")"
done
