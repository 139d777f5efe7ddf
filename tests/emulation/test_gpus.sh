#!/usr/bin/env bash
# test_gpus.sh: which GPU each rank takes, and the error if a rank has none. The emulated run-time sees the GPUs that
# $EMULATED_GPUS names, and logs the GPU that a rank takes.
set -euo pipefail
test_images=100
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
export EMULATED_LOG=$folder/gpu psring
a=0000:3b:00.0 b=0000:5e:00.0 c=0000:86:00.0

# run RANKS GPUS OPTION...: GPUS has a word for each rank, or one for all: the GPUs that the rank sees.
run()
{
    local ranks=$1 rc=0
    export GPUS=$2
    shift 2
    rm -f "$folder"/gpu.*
    # shellcheck disable=SC2016  # expanded in each rank
    "$lib/mpirun.sh" "$ranks" bash -c '
        gpus=($GPUS)
        EMULATED_GPUS=${gpus[OMPI_COMM_WORLD_RANK % ${#gpus[@]}]} exec "$psring" "$@"' rank \
        train --device cuda --model lenet --batch 8 --steps 1 --data "$data" "$@" \
        >"$folder/log" 2>&1 || rc=$?
    return "$rc"
}

# takes WHAT EXPECTED RANKS GPUS OPTION...: EXPECTED has the GPU of each rank, by rank.
takes()
{
    local what=$1 expected=$2 found
    shift 2
    run "$@" || fail "$what: failed:"
    found=$(cat "$folder"/gpu.* | paste -sd' ')
    [[ $found == "$expected" ]] || fail "$what: took $found, expected $expected"
    echo "$what: $found"
}

# refused WHAT WORDS RANKS GPUS OPTION...: all ranks refuse, and the words are printed once.
refused()
{
    local what=$1 words=$2
    shift 2
    ! run "$@" || fail "$what: was not refused:"
    (($(grep -c -e "$words" "$folder/log") == 1)) || fail "$what: expected '$words' once:"
    [[ ! $(compgen -G "$folder/gpu.*") ]] || fail "$what: a GPU was taken:"
    echo "$what: $words"
}

takes "all see all" "$a $b" 2 "$a,$b,$c" --backend ring
takes "one a task, bound by the launcher" "$a $b" 2 "$a $b" --backend ring
takes "bound in another order" "$b $a" 2 "$b,$a" --backend ring
takes "a server needs none" "$a $b" 3 "$a,$b" --backend ps --servers 1
takes "shared" "$a $a" 2 "$a" --backend ring --share-gpu
refused "too few" "rank 1 on $(hostname) has no GPU of its own: it sees 1 ($a), and 2 ranks" 2 "$a" --backend ring
refused "a system that is not ready" 'no GPU can be used (cudaErrorSystemNotReady)' 1 error --backend none

# In an elastic job the worker without a GPU ends, and the other workers continue.
# shellcheck source-path=SCRIPTDIR source=../lib/ranks_lib.sh
. "$lib/ranks_lib.sh"
address=tcp://127.0.0.1:$(free_port)
timeout 120 "$psring" serve --listen "$address" --workers 2 >"$folder/serve" 2>&1 &
server=$! workers=()
for number in 0 1; do
    EMULATED_GPUS=$a timeout 120 "$psring" train --backend ps --join "$address" --device cuda --model lenet --batch 8 \
        --steps 5 --data "$data" >"$folder/worker.$number" 2>&1 &
    workers+=($!)
    within grep -q . "$folder/worker.$number" || fail "worker $number prints nothing: $(cat "$folder/serve")"
done
! wait "${workers[1]}" || fail "a worker without a GPU ends well: $(cat "$folder/worker.1")"
grep -q 'no GPU is left for this worker' "$folder/worker.1" || fail "the error does not name the missing GPU: $(cat "$folder/worker.1")"
wait "${workers[0]}" || fail "the other worker does not continue: $(cat "$folder/worker.0")"
wait "$server" || fail "the server: $(cat "$folder/serve")"
echo "elastic: the other worker continues"
