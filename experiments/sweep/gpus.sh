# shellcheck shell=bash disable=SC2154,SC2034
# gpus.sh: what run_scaling.sh, which loads it, measures on GPUs where it finds two or more: a worker a GPU, beside
# each other NCCL, which averages where the gradients are, and the backends that do it through the host's memory.

# They would keep NCCL's log from psring, and by which algorithm a row was made would not be known.
unset NCCL_DEBUG NCCL_DEBUG_SUBSYS NCCL_DEBUG_FILE

SHARING=2 # ranks on one GPU, where that is all there is

# gpu_options KIND: adds to the caller's `arguments`, and to `on_gpus` for launch.
gpu_options()
{
    on_gpus=yes
    arguments+=(--device cuda)
    [[ $1 != gpu-shared ]] || arguments+=(--share-gpu)
}

# gpu_words KIND WORKERS: what a measurement runs on.
gpu_words()
{
    case $1 in
    gpu-shared) echo "$2 ranks on one GPU, which does them in turns" ;;
    *) counted "$2" GPU ;;
    esac
}

# Of `psring info` on standard input: the GPUs that this program can use, and NCCL average between.
count_gpus()
{
    awk '/^ *\[X\] nccl / { nccl = 1 } /^ *\[X\] cuda +ready/ { cuda = 1 } /^ +gpu [0-9]+ / { count++ }
        END { print nccl && cuda ? count + 0 : 0 }'
}

# Sets `gpus`: of each machine, as many as the one with the fewest has; and `gpu_machines`.
find_gpus()
{
    local host count
    gpu_machines=1
    if [[ ! $real_hosts ]]; then
        gpus=$({ "$psring" info 2>/dev/null || true; } | count_gpus)
    else
        gpu_machines=${#machines[@]} gpus=''
        for host in "${machines[@]}"; do
            count=$({ on_machine "$host" "$psring" info 2>>"$out/log.txt" || true; } | count_gpus)
            [[ $gpus ]] && ((gpus <= count)) || gpus=$count
        done
    fi
    ((gpus * gpu_machines != 1)) ||
        say "one GPU, which has none to average with: $SHARING ranks that share it show that sums are right, and no times"
}

# 2, 4, ... GPUs of one machine, all of it, and all machines; in the quick sweep all only.
gpu_counts()
{
    awk -v gpus="$gpus" -v machines="$gpu_machines" -v mode="$mode" 'BEGIN {
        for (count = 2; count < gpus && mode != "quick"; count *= 2)
            print count
        if (gpus > 1 && mode != "quick" && machines > 1)
            print gpus
        if (gpus * machines > 1)
            print gpus * machines
    }'
}

# shared_points: on one GPU. What psring says of the network, time-slicing, keeps the rows out of every comparison.
shared_points()
{
    local configuration list
    list=$(IFS=, && echo "${sizes[*]}")
    for configuration in nccl nccl-tree ring "ps-colocated-$SHARING" mpi-default; do
        echo gpu-shared "$configuration" $SHARING "$list"
    done
}

gpu_points()
{
    local workers configuration list
    list=$(IFS=, && echo "${sizes[*]}")
    workers=0 # afterwards the most
    ((gpus * gpu_machines != 1)) || shared_points
    for workers in $(gpu_counts); do
        for configuration in nccl nccl-tree ring "ps-colocated-$workers" ps-dedicated-1 mpi-default \
            $( ((workers <= gpus)) || echo hierarchical); do
            echo gpu "$configuration" "$workers" "$list"
        done
    done
    [[ $train ]] && ((workers > 0)) || return 0
    for configuration in nccl ring "ps-colocated-$workers"; do
        echo gpu-train "$configuration" "$workers" 0
    done
}
