# Sourced by ../parts.sh: several ranks on one GPU. The results must be right. Times are not shown, because
# the ranks share the GPU by time-slicing.
# shellcheck shell=bash disable=SC2154

launch() # RANKS COMMAND...
{
    local ranks=$1 root=()
    shift
    [[ $(id -u) != 0 ]] || root=(--allow-run-as-root)
    mpirun "${root[@]}" --oversubscribe --bind-to none --mca btl self,tcp --mca btl_tcp_if_include lo \
        --mca oob_tcp_if_include lo -n "$ranks" "$@"
}

bench_exact() # RANKS
{
    local algorithm file=$out/nccl-$1
    rm -f "$file.csv"
    launch "$1" "$build/psring" bench --backend nccl --device cuda --share-gpu -b 4 -e 4m -f 16 -n 5 -w 1 \
        --csv "$file.csv" --json "$file.json" || return 1
    algorithm=$(sed -n 's/.*"nccl_algorithm":[[:space:]]*"\([^"]*\)".*/\1/p' "$file.json" | sort -u | paste -sd' ')
    echo "detail every element exact; algorithm by NCCL's own log: ${algorithm:-not known}"
    [[ $algorithm == ring/simple ]]
}

# agree RANKS [fp16]: compares weights. A server, and one process as all workers, add in the ring's order: their weights
# are equal. nccl and mpi add in other orders, and are compared after the first step. Rounding grows with the steps:
# after five, mpi was once 1.1e-6 apart.
agree()
{
    local ranks=$1 folder=$work rc=0 said='' name names=(ring nccl mpi ps one)
    local -A options=(
        [ring]='--backend ring --reduce-order ring'
        [nccl]='--backend nccl'
        [mpi]='--backend mpi'
        [ps]='--backend ps --servers 1 --placement colocated --reduce-order ring'
        [one]="--backend none --virtual-workers $ranks --reduce-order ring"
        [fp16]='--backend ring --compress fp16'
    )
    [[ ! ${2:-} ]] || names+=("$2")
    for name in "${names[@]}"; do
        local share=(--share-gpu) processes=$ranks
        [[ $name != one ]] || { share=() && processes=1; }
        # shellcheck disable=SC2086  # words
        launch "$processes" "$build/psring" train ${options[$name]} --device cuda "${share[@]}" --model keras-cnn \
            --batch 32 --steps 5 --warmup-epochs 0 --checkpoint-steps 1 --keep-checkpoints 5 --data "$data" \
            --checkpoint "$folder/$name" || { echo "detail $name: the run failed" && return 1; }
    done
    apart nccl 0 1e-7 "$folder/ring" "$folder/nccl" oldest || rc=1
    apart mpi 0 1e-7 "$folder/ring" "$folder/mpi" oldest || rc=1
    apart ps 0 0 "$folder/ring" "$folder/ps" || rc=1
    apart "one process" 0 0 "$folder/ring" "$folder/one" || rc=1
    # Ten bits of mantissa: the weights must differ from those without compression, but only a little.
    [[ ! ${2:-} ]] || apart "$2" 1e-9 1e-3 "$folder/ring" "$folder/$2" || rc=1
    echo "detail apart from ring: ${said#, } (wanted 1e-7, 1e-7, 0, 0${2:+, up to 1e-3 but not 0})"
    return "$rc"
}

# --- a peer that is gone -----------------------------------------------------------------------------

# free_port: prints a free port of 127.0.0.1, below the range from which the system assigns ports.
free_port()
{
    local port
    for _ in {1..50}; do
        port=$((20000 + RANDOM % 12000))
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port" && return; }
    done
    return 1
}

PEER_TIMEOUT_S=5 # psring's own
PEER_START_S=20  # until both jobs take steps; the sum with the next is below the part's limit, so the part names the failure
PEER_LIMIT_S=15  # a peer that still runs after this has failed

# job NAME: starts three ranks that train without end, without a launcher that would end them. Adds to $pids.
job()
{
    local rank port
    port=$(free_port) || return 1
    rm -f "$out/$1".*
    for rank in 2 1 0; do
        "$build/psring" train --backend nccl --device cuda --share-gpu --model lenet --batch 8 --steps 1000000000 --log-steps 2 \
            --timeout $PEER_TIMEOUT_S --data "$data" --metrics "$out/$1.csv" --rendezvous "tcp://127.0.0.1:$port" --rank $rank \
            --world-size 3 >"$out/$1.$rank.log" 2>&1 &
        pids+=($!)
    done
}

# in_time DEADLINE COMMAND...: whether the command succeeds before $EPOCHSECONDS reaches DEADLINE.
in_time()
{
    until "${@:2}"; do
        ((EPOCHSECONDS < $1)) || return 1
        sleep 0.05
    done
}

trains() # NAME
{
    [[ -s $out/$1.csv ]] && (($(wc -l <"$out/$1.csv") > 2))
}

is_gone() # PROCESS
{
    ! kill -0 "$1" 2>/dev/null
}

# ended NAME PROCESS-OF-RANK-1 PROCESS-OF-RANK-0: whether both have failed in time, and one of them prints why.
ended()
{
    local name=$1 rank=1 process code
    shift
    for process; do
        in_time $((${since%.*} + PEER_LIMIT_S)) is_gone "$process" || { said+=", $name: rank $rank still runs after $PEER_LIMIT_S s" && return 1; }
        code=0
        wait "$process" || code=$?
        ((code != 0)) || { said+=", $name: rank $rank ended well" && return 1; }
        rank=$((rank - 1))
    done
    said+=", $name: the others ended within $(awk -v a="$since" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }') s"
    echo "$name:"
    grep -h 'error' "$out/$name".[01].log || { said+=", and said nothing" && return 1; }
}

# Runs two jobs at once. It kills a rank of one, and stops a rank of the other, whose connections stay open. NCCL's
# kernels of the other ranks then wait forever.
peer_gone()
{
    local said='' rc=0 name since pids=() deadline=$((EPOCHSECONDS + PEER_START_S))
    if ! job killed || ! job stopped; then
        echo "detail no free port" && return 1
    fi
    for name in killed stopped; do
        in_time $deadline trains $name ||
            { cat "$out/$name".?.log && echo "detail $name: no step within $PEER_START_S s" && return 1; }
    done
    kill -KILL "${pids[0]}"
    kill -STOP "${pids[3]}"
    since=$EPOCHREALTIME
    ended killed "${pids[1]}" "${pids[2]}" || rc=1
    ended stopped "${pids[4]}" "${pids[5]}" || rc=1
    echo "detail ${said#, }"
    return "$rc"
}
