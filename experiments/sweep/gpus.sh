# shellcheck shell=bash disable=SC2154,SC2034
# gpus.sh: the GPU measurements of run_scaling.sh. With two GPUs or more, one worker runs per GPU. NCCL averages in the
# GPUs' memory; the other backends go through host memory. A single GPU is shared by ranks, and only their sums count.

# These variables would hide NCCL's log from psring, and then the algorithm of a row would be unknown.
unset NCCL_DEBUG NCCL_DEBUG_SUBSYS NCCL_DEBUG_FILE

SHARING=2 # ranks on a single GPU

# gpu_options KIND: adds to the caller's `arguments`, and to `on_gpus` for launch.
gpu_options()
{
    on_gpus=yes
    arguments+=(--device cuda)
    [[ $1 != gpu-shared ]] || arguments+=(--share-gpu)
}

# gpu_words KIND WORKERS: describes the GPUs of a measurement.
gpu_words()
{
    case $1 in
    gpu-shared) echo "$2 ranks on one GPU, which does them in turns" ;;
    *) counted "$2" GPU ;;
    esac
}

# Counts in `psring info` (standard input) the GPUs that both this program and NCCL can use.
count_gpus()
{
    awk '/^ *\[X\] nccl / { nccl = 1 } /^ *\[X\] cuda +ready/ { cuda = 1 } /^ +gpu [0-9]+ / { count++ }
        END { print nccl && cuda ? count + 0 : 0 }'
}

# Sets `gpus` (GPUs per machine: the smallest number on any machine) and `gpu_machines`.
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
        say "one GPU: $SHARING ranks share it; their sums are checked, their times are not shown"
}

# Prints 2, 4, ... GPUs of one machine, all of its GPUs, and all GPUs of all machines. The quick sweep uses only the
# last.
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

# shared_points: measurements on one shared GPU. psring labels the network time-slicing, so no comparison uses the rows.
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
    workers=0 # after the loop: the largest number
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
