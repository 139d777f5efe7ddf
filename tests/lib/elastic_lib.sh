# shellcheck shell=bash
# elastic_lib.sh: shared by the tests of elastic jobs, which source train_lib.sh first. psring serve and psring train
# --join over loopback.
# shellcheck disable=SC2154
# shellcheck source-path=SCRIPTDIR source=../lib/ranks_lib.sh
. "$lib/ranks_lib.sh"
unset RANK WORLD_SIZE MASTER_ADDR MASTER_PORT
common=(--backend ps --model lenet --batch 8)
serve_timeout=20

# serve OPTION...: starts a server at a free port of $host, $address. Its process is $server, its output is in $folder/serve.
host=127.0.0.1
serve()
{
    address=tcp://$host:$(free_port)
    rm -f "$folder"/worker.* "$folder/metrics"
    : >"$folder/serve" # exists before the server has started
    workers=()
    serve_options=("$@")
    serve_again
}

# serve_again: starts the server with the same command. Its output follows that of the earlier process.
serve_again()
{
    local before
    before=$(grep -c listens "$folder/serve" || true)
    timeout --kill-after=5 300 "$psring" serve --listen "$address" --timeout "$serve_timeout" "${serve_options[@]}" \
        >>"$folder/serve" 2>&1 &
    server=$!
    within has_lines "$((before + 1))" listens || fail "no server: $(cat "$folder/serve")"
}

# has_lines COUNT WORDS: whether the server has printed so many lines with the words.
has_lines()
{
    (($(grep -c "$2" "$folder/serve") >= $1))
}

# worker OPTION...: starts the next worker, and returns when it has joined.
worker()
{
    local number=${#workers[@]}
    timeout --kill-after=5 300 "$psring" train --data "$data" "${common[@]}" --join "$address" --timeout 20 \
        --metrics "$folder/metrics" "$@" >"$folder/worker.$number" 2>&1 &
    workers+=($!)
    within grep -q . "$folder/worker.$number" || fail "worker $number prints nothing: $(cat "$folder/serve")"
}

# ends CODE NUMBER: waits for that worker and checks its exit code.
ends()
{
    local code=0
    wait "${workers[$2]}" 2>/dev/null || code=$?
    ((code == $1)) || fail "worker $2: exit $code, expected $1: $(cat "$folder/worker.$2" "$folder/serve")"
}

# served CODE: waits for the server and checks its exit code.
served()
{
    local code=0
    wait "$server" || code=$?
    ((code == $1)) || fail "the server: exit $code, expected $1: $(cat "$folder/serve" "$folder"/worker.*)"
}

# kill_worker SIGNAL NUMBER: signals the worker's psring, a child of timeout.
kill_worker()
{
    kill "-$1" "$(pgrep -P "${workers[$2]}")"
}

# column NAME: prints the cell in the last row of the metrics.
column()
{
    awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } END { print $at[name] }' "$folder/metrics"
}

# Prints the sum of the final weights; several lines if the workers differ.
weights_of()
{
    cat "$folder"/worker.* | sed -n 's/^weights sha256 //p' | sort -u
}

# Prints the sum of the images in the weights that each worker reports for itself.
account()
{
    cat "$folder"/worker.* | sed -nE 's/.*contain ([0-9]+) images of this worker.*/\1/p' | awk '{ sum += $1 } END { print sum }'
}

# steps_done N: whether worker 0 has reported step N or a later one.
steps_done()
{
    awk -v steps="$1" '/^epoch/ { for (i = 1; i < NF; i++) if ($i == "step" && $(i + 1) >= steps) found = 1 }
                       END { exit !found }' "$folder/worker.0"
}
