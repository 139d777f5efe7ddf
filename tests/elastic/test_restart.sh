#!/usr/bin/env bash
# test_restart.sh: servers with --checkpoint are killed and started again. The weights equal those of an undisturbed
# run, and no image is counted twice.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
# shellcheck source-path=SCRIPTDIR source=../lib/elastic_lib.sh
. "$lib/elastic_lib.sh"
STEPS=100 # at this batch the weights still change in each step
job=$folder/job
options=(--steps "$STEPS" --log-steps 1 --compute real:15)

kill_server()
{
    kill -KILL "$(pgrep -P "$server")"
    wait "$server" 2>/dev/null || true
}

all()
{
    tail -n 8 "$folder"/serve* "$folder"/worker.*
}

# generations_rise: no number of a generation occurs twice.
generations_rise()
{
    sed -nE 's/.*generation ([0-9]+): .*/\1/p' "$folder/serve" | sort -nuc ||
        fail "a generation's number occurs twice: $(cat "$folder/serve")"
}

# ends_like SUM: both workers end, with these weights; the images are counted once, and the job's files are removed.
ends_like()
{
    ends 0 $((${#workers[@]} - 2))
    ends 0 $((${#workers[@]} - 1))
    served 0
    [[ $(weights_of) == "$1" ]] || fail "weights $(weights_of), undisturbed $1: $(all)"
    (($(column images) == STEPS * 16)) || fail "$(column images) images, expected $((STEPS * 16)): $(all)"
    grep -q "the weights contain $((STEPS * 16)) images" "$folder/serve" || fail "other images: $(all)"
    generations_rise
    [[ -z $(ls -A "$job") ]] || fail "files of a job that has ended: $(ls "$job")"
}

both_wait()
{
    (($(cat "$folder"/worker.* | grep -c 'waits until it is started again') >= $1))
}

train 3 "${common[@]}" --steps $STEPS --servers 1
undisturbed=$weights

# The only server is killed at a random moment, twice.
for trial in 1 2; do
    serve --workers 2 --checkpoint "$job" --checkpoint-steps 40
    worker "${options[@]}"
    worker "${options[@]}"
    within steps_done $((5 + RANDOM % 30)) || fail "no step: $(all)"
    for count in 2 4; do
        kill_server
        within both_wait $count || fail "trial $trial: the workers do not wait: $(all)"
        serve_again
        within has_lines $count 'generation .*: 2 workers' || fail "trial $trial: no generation: $(all)"
    done
    ends_like "$undisturbed"
    [[ $(account) == $((STEPS * 16)) ]] || fail "trial $trial: the workers count $(account) images: $(all)"
done

# The only server dies, and one worker dies with it. The other one continues.
serve_timeout=10
serve --workers 2 --checkpoint "$job"
worker "${options[@]}"
worker "${options[@]}"
within steps_done 10 || fail "no step: $(all)"
kill_server
kill_worker KILL 1
serve_again
ends 0 0
ends 137 1
served 0
grep -q 'generation 2: 1 worker,' "$folder/serve" || fail "one worker does not continue: $(all)"

# Everything is killed. New workers continue from the file, and the last steps are repeated. In between, the folder
# refuses what does not belong to the job.
serve --workers 2 --checkpoint "$job" --checkpoint-steps 20
worker "${options[@]}"
worker "${options[@]}"
within test -s "$job/weights.checkpoint" || fail "no weights: $(all)"
kill_server
kill_worker KILL 0
kill_worker KILL 1
ends 137 0
ends 137 1

refused()
{
    local code=0
    timeout --kill-after=5 60 "$psring" serve --listen "$address" --checkpoint "$job" "${@:3}" >"$folder/log" 2>&1 || code=$?
    ((code == $1)) || fail "psring serve ${*:3}: exit $code, expected $1:"
    grep -qF -- "$2" "$folder/log" || fail "psring serve ${*:3}: no '$2' in:"
    (($(grep -c error "$folder/log") == 1)) || fail "psring serve ${*:3}: expected one message:"
}

refused 2 'the job there has another token' --token another
for file in job weights; do
    cp "$job/$file.checkpoint" "$folder/good"
    truncate -s -1 "$job/$file.checkpoint"
    refused 1 "$file.checkpoint: "
    printf x >>"$job/$file.checkpoint"
    refused 1 "$file.checkpoint: its SHA-256"
    cp "$folder/good" "$job/$file.checkpoint"
done
mv "$folder/metrics" "$folder/before"
serve_again
refused 2 'another server uses it'
worker "${options[@]}" --batch 16
ends 2 2
grep -q 'started with --batch=16, the job with --batch=8' "$folder/worker.2" || fail "another --batch: $(all)"
worker "${options[@]}"
worker "${options[@]}"
ends_like "$undisturbed"
grep -qE 'generation [3-9]: 2 workers, after step (20|40|60|80)' "$folder/serve" || fail "not from the file: $(all)"
serve_timeout=20

# One of two servers is killed, then the other one.
train 4 "${common[@]}" --steps $STEPS --servers 2
second=tcp://127.0.0.1:$(free_port)
serve_second()
{
    timeout --kill-after=5 300 "$psring" serve --listen "$second" --checkpoint "$folder/${1-job.2}" >>"$folder/serve.2" 2>&1 &
    other=$!
}
two_servers()
{
    serve --workers 2 --checkpoint "$job"
    serve_second
    worker "${options[@]}" --join "$address,$second"
    worker "${options[@]}" --join "$address,$second"
}

both_end()
{
    ends_like "$weights"
    wait "$other" || fail "the second server: $(all)"
    [[ -z $(ls -A "$folder/job.2") ]] || fail "files of the second server: $(ls "$folder/job.2")"
}

two_servers
within steps_done 5 || fail "no step: $(all)"
kill_second()
{
    kill -KILL "$(pgrep -P "$other")"
    wait "$other" 2>/dev/null || true
}

cp -r "$folder/job.2" "$folder/job.3" # as if the folder's lock did not work
earlier=$other
serve_second job.3
within has_lines 1 'generation 2: 2 workers' || fail "two processes as second server: $(all)"
code=0
wait "$earlier" || code=$?
((code == 2)) || fail "the earlier process: exit $code, expected 2: $(all)"
(($(grep -c "another process has this server's number" "$folder/serve.2") == 1)) || fail "not one message: $(all)"
kill_second
serve_second
within has_lines 1 'generation 3: 2 workers' || fail "the second server does not return: $(all)"
kill_second
rm "$folder/job.2/job.checkpoint" # as if it had died before it wrote this file
serve_second
within has_lines 1 'generation 4: 2 workers' || fail "the second server is not summoned again: $(all)"
grep -q 'summoned server 1' "$folder/serve" || fail "no line about the summons: $(all)"
kill_server
serve_again
within has_lines 1 'generation 5: 2 workers' || fail "the first server does not return: $(all)"
both_end

# The second server is killed at the end. It is started again if it has not heard of the end.
two_servers
within steps_done "$STEPS" || fail "no last step: $(all)"
kill -KILL "$(pgrep -P "$other")" 2>/dev/null || true
if ! wait "$other" 2>/dev/null && [[ -e $folder/job.2/job.checkpoint ]]; then
    serve_second
    both_end
else
    ends_like "$weights"
fi

# Nobody starts the server again.
options=(--steps "$STEPS" --log-steps 1 --compute real:15 --startup-timeout 10)
serve --workers 2 --checkpoint "$job"
worker "${options[@]}"
worker "${options[@]}"
within steps_done 5 || fail "no step: $(all)"
kill_server
ends 1 0
ends 1 1
grep -q "found no server there within .* start it on that host" "$folder/worker.0" || fail "no reason: $(all)"
echo "restart: workers continue when servers are started again, with the bits of an undisturbed run"
