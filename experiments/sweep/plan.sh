# shellcheck shell=bash disable=SC2154
# plan.sh: what run_scaling.sh measures, which loads it.

# A configuration is one word: ring, rhd, mpi-ALGORITHM, or ps-PLACEMENT-K: K servers of their own
# (dedicated), K inside workers (colocated), or one in each worker and K of their own (mixed). +mpi after it:
# over the MPI transport; +fp16: compressed to that.

MPI_ALGORITHMS=(default ring segmented rabenseifner)

# configurations WORKERS: all that so many workers are measured with.
configurations()
{
    local workers=$1 servers algorithm
    # 1, 2, W/2, W, each once.
    for servers in $(printf '%d\n' 1 2 $((workers / 2)) "$workers" | sort -nu); do
        ((servers >= 1 && servers <= workers)) || continue
        echo "ps-dedicated-$servers"
        echo "ps-colocated-$servers"
    done
    ((workers < 2)) || echo "ps-mixed-$((workers / 2))"
    printf '%s\n' ring rhd
    for algorithm in "${MPI_ALGORITHMS[@]}"; do
        echo "mpi-$algorithm"
    done
}

# variants WORKERS: further transports and compression, once there is a plain measurement to compare with. The
# quick sweep has time for {ps, ring} x {zmq, mpi} only.
variants()
{
    printf '%s\n' ps-dedicated-1+mpi ring+mpi
    [[ $mode != quick ]] || return 0
    printf '%s\n' "ps-colocated-$1+mpi" rhd+mpi ps-dedicated-1+fp16 ring+fp16
}

# overlapped CONFIGURATION WORKERS: is it measured beside a computation as well?
overlapped()
{
    [[ $mode != quick ]] && (($2 == max_workers)) && case $1 in
    ps-dedicated-1 | "ps-colocated-$2" | ring) true ;;
    *) false ;;
    esac
}

# trained_configurations WORKERS: those that training is measured with.
trained_configurations()
{
    printf '%s\n' ps-dedicated-1 "ps-dedicated-$1" "ps-colocated-$1" ring mpi-default | awk '!seen[$0]++'
}

backend_arguments()
{
    local placement servers
    case $1 in
    *+mpi) echo "$(backend_arguments "${1%+mpi}") --transport mpi" ;;
    *+fp16) echo "$(backend_arguments "${1%+fp16}") --compress fp16" ;;
    ps-*)
        IFS=- read -r _ placement servers <<<"$1"
        echo --backend ps --servers "$servers" --placement "$placement"
        ;;
    mpi-default) echo --backend mpi ;;
    mpi-*) echo --backend mpi --mpi-algorithm "${1#mpi-}" ;;
    *) echo --backend "$1" ;;
    esac
}

# What that asks of the machines: a server of its own is one rank more.
ranks_of()
{
    local plain=${1%+*}
    case $plain in
    ps-dedicated-* | ps-mixed-*) echo $(($2 + ${plain##*-})) ;;
    *) echo "$2" ;;
    esac
}

# The sweep as lines: bench|paced|train CONFIGURATION WORKERS SIZES.
list_points()
{
    local workers configuration list
    for workers in "${workers_list[@]}"; do
        # The quick sweep has time for all sizes with the most workers only.
        list=$(IFS=, && echo "${sizes[*]}")
        [[ $mode != quick ]] || ((workers == max_workers)) || list=$quick_size
        # One worker has nothing to average.
        for configuration in $( ((workers < 2)) || configurations "$workers"); do
            echo bench "$configuration" "$workers" "$list"
        done
        for configuration in $( ((workers < 2 || workers < max_workers)) || variants "$workers"); do
            echo bench "$configuration" "$workers" "$list"
        done
        for configuration in $(trained_configurations "$workers"); do
            echo paced "$configuration" "$workers" 0
        done
    done
    if [[ $train ]]; then
        echo train ps-dedicated-1 "$train_workers" 0
        echo train ring "$train_workers" 0
    fi
}
