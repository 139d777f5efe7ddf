# shellcheck shell=bash disable=SC2154
# plan.sh: the plan of run_scaling.sh.

# A configuration is one word.
#   ring, rhd, rhd-radix-R, tree, nccl, nccl-tree, mpi-ALGORITHM
#   ps-dedicated-K   K servers on separate hosts
#   ps-colocated-K   K servers inside workers
#   ps-mixed-K       a server in each worker, and K on separate hosts
#   ps-switch-K      K servers where the links of the hosts meet
#   hierarchical     on hosts with several slots; also ring-apart, the ring with neighbours on different hosts
# A suffix +zmq, +mpi or +tcp chooses the transport (default: the backend's own). +fp16 compresses.

WITHOUT_SERVERS=(ring rhd tree)
MPI_ALGORITHMS=(default ring segmented rabenseifner)
SLOTS=2 # of each host, in the part of the sweep with several workers a host
SLOT_HOSTS=4
PUBLISHED_WORKERS=4 # largest number of workers that exchange a published model's gradients

# configurations WORKERS: prints the configurations with this number of workers. Unless the sweep is full, only the
# largest number has more than one and W servers, ring, rhd and MPI. Real machines may be too few for the largest
# number, so there every number has more. The quick sweep has fewer.
configurations()
{
    local workers=$1 servers algorithm quick=''
    [[ ${mode:-} != quick ]] || quick=yes
    if [[ ${mode:-} != full && ! ${real_hosts:-} ]] && ((workers < max_workers)); then
        printf '%s\n' ps-dedicated-1 "ps-dedicated-$workers" "ps-colocated-$workers" ring rhd mpi-default | awk '!seen[$0]++'
        return
    fi
    # 1, W/2 and W servers, each once, and 2 in the full sweep. The quick sweep has 1 and W on further machines, and W in
    # the workers.
    for servers in $(printf '%d\n' 1 $((workers / 2)) "$workers" "$([[ ${mode:-} == full ]] && echo 2 || echo 1)" | sort -nu); do
        ((servers >= 1 && servers <= workers)) || continue
        [[ $quick ]] && ((servers > 1 && servers < workers)) || echo "ps-dedicated-$servers"
        [[ $quick ]] && ((servers < workers)) || echo "ps-colocated-$servers"
    done
    ((workers < 2)) || echo "ps-mixed-$((workers / 2))"
    [[ ! ${has_switch:-} ]] || ((workers < 2)) || echo ps-switch-1
    printf '%s\n' "${WITHOUT_SERVERS[@]}" | awk -v quick="$quick" 'quick == "" || $0 != "tree"'
    # If W is prime, rhd itself has two steps.
    [[ $quick ]] || (($(factor "$workers" | wc -w) < 3)) || echo "rhd-radix-$workers"
    for algorithm in "${MPI_ALGORITHMS[@]}"; do
        [[ $quick && $algorithm != default ]] || echo "mpi-$algorithm"
    done
}

# second_starts: prints a second start for each point of `plan` that the answer compares. Starts of one configuration
# differ more than its iterations (psring report --help), so a verdict needs two. Second starts come at the end of the
# plan, minutes after the first ones, when all other configurations have been measured. The answer compares one server
# and the ring at all its sizes, and everything else at the size of the tables.
second_starts()
{
    local line kind configuration workers list
    for line in "${plan[@]}"; do
        read -r kind configuration workers list <<<"$line"
        [[ $kind != bench ]] || printf '%s %s %s\n' "$configuration" "$workers" "$list"
    done | awk -v focus="$quick_size" -v plain=" ${WITHOUT_SERVERS[*]} " '
        # The role of a configuration in the answer. W and W/2 servers have one role for all W.
        function role(name, workers, part) {
            split(name, part, "-")
            if (index(plain, " " name " ") || name ~ /^mpi-[a-z]+$/ || name ~ /^ps-(dedicated|colocated|switch)-1$/)
                return name
            if (name ~ /^(ps-(dedicated|colocated)|rhd-radix)-[0-9]+$/ && part[3] == workers)
                return part[2] "-W"
            return name ~ /^ps-mixed-[0-9]+$/ && part[3] == int(workers / 2) ? "mixed" : ""
        }
        $2 > 1 && role($1, $2) != "" {
            list[$1, $2] = $3
            sizes = "," $3 ","
            if ($1 == "ring" || index(sizes, "," focus ",") == 0)
                next
            which = role($1, $2)
            if (!(which in most))
                order[++count] = which
            if (!(which in most) || $2 > most[which]) {
                most[which] = $2
                name[which] = $1
            }
        }
        END {
            for (i = 1; i <= count; i++) {
                which = order[i]
                workers = most[which]
                if (!(("ring", workers) in list))
                    continue
                by_size = which == "ps-dedicated-1"
                print "second", name[which], workers, by_size ? list[name[which], workers] : focus
                if (!(workers in ring))
                    rings[++ring_count] = workers
                if (by_size || !(workers in ring))
                    ring[workers] = by_size ? list[name[which], workers] : focus
            }
            for (i = 1; i <= ring_count; i++)
                print "second ring", rings[i], ring[rings[i]]
        }'
}

# variants WORKERS: prints further transports and compression, which follow the plain measurements that they are
# compared with. The quick sweep has time for {ps, ring} x {zmq, mpi, tcp} only.
variants()
{
    printf '%s\n' ps-dedicated-1+mpi ring+mpi ps-dedicated-1+tcp ring+zmq
    [[ $mode != quick ]] || return 0
    printf '%s\n' "ps-colocated-$1+mpi" rhd+mpi ps-dedicated-1+fp16 ring+fp16
}

# overlapped CONFIGURATION WORKERS: whether it is also measured during a computation.
overlapped()
{
    [[ $mode != quick ]] && (($2 == max_workers)) && case $1 in
    ps-dedicated-1 | "ps-colocated-$2" | ring) true ;;
    *) false ;;
    esac
}

# trained_configurations WORKERS: prints the configurations of training.
trained_configurations()
{
    [[ $mode != quick ]] || (($1 > 1)) || { printf '%s\n' ps-dedicated-1 ring && return; } # one worker averages nothing
    printf '%s\n' ps-dedicated-1 "ps-dedicated-$1" "ps-colocated-$1" ring mpi-default | awk '!seen[$0]++'
}

backend_arguments()
{
    local placement servers
    case $1 in
    *+zmq | *+mpi | *+tcp) echo "$(backend_arguments "${1%+*}") --transport ${1##*+}" ;;
    *+fp16) echo "$(backend_arguments "${1%+fp16}") --compress fp16" ;;
    ps-*)
        IFS=- read -r _ placement servers <<<"$1"
        echo --backend ps --servers "$servers" --placement "$placement"
        ;;
    mpi-default) echo --backend mpi ;;
    nccl-tree) echo --backend nccl --nccl-algo tree ;;
    mpi-*) echo --backend mpi --mpi-algorithm "${1#mpi-}" ;;
    rhd-radix-*) echo --backend rhd --radix "${1#rhd-radix-}" ;;
    *) echo --backend "${1%-apart}" ;;
    esac
}

# placing_of KIND CONFIGURATION: prints options of vcluster.sh run that place the ranks.
placing_of()
{
    local plain=${2%+*}
    [[ $plain != ps-switch-* ]] || { echo --in-switch "${plain##*-}" && return; }
    [[ $1 == slots ]] || { echo && return; }
    echo --ranks-per-host "$SLOTS" "$([[ $2 != *-apart ]] || echo "--map-by node")"
}

# ranks_of CONFIGURATION WORKERS: prints the number of ranks. A dedicated server is an additional rank.
ranks_of()
{
    local plain=${1%+*}
    case $plain in
    ps-dedicated-* | ps-mixed-* | ps-switch-*) echo $(($2 + ${plain##*-})) ;;
    *) echo "$2" ;;
    esac
}

# counts_on MACHINES LIST: prints the numbers of workers of the sweep. These are the numbers of LIST that fit, all
# machines, all but one (which leaves a machine for a server), and the powers of two below.
counts_on()
{
    awk -v machines="$1" -v list="$2" 'BEGIN {
        count = split(list "," machines "," (machines > 1 ? machines - 1 : 1), workers, ",")
        for (power = 1; power < machines; power *= 2)
            workers[++count] = power
        for (i = 1; i <= count; i++)
            if (workers[i] <= machines && !seen[workers[i]]++)
                printf "%s%d", (i > 1 ? "," : ""), workers[i]
    }'
}

# recorded CONFIGURATION WORKERS: whether steps are recorded. The report replays a step of the ring and of one server.
# On real machines nothing is recorded, because rank 0 would leave the file there.
recorded()
{
    [[ ! $real_hosts && $(trace_of "$1") ]] && (($2 == train_workers && $2 > 1))
}

# trace_of CONFIGURATION: prints the name of the file with its recorded steps.
trace_of()
{
    case $1 in
    ring) echo trace-ring.json ;;
    ps-dedicated-1) echo trace-ps.json ;;
    esac
}

# Divides the lines of list_points, with semicolons between the entries of strings:
#   plan (array)   points for which there are enough machines
#   left_out       the others: CONFIGURATION WORKERS MACHINES
#   too_long       points without time: CONFIGURATION WORKERS MODEL SECONDS. A point that later turns out to need too much
#                  memory is added as CONFIGURATION WORKERS MODEL NUMBERGB
choose_points()
{
    local line configuration workers ranks needed
    plan=() left_out='' too_long=''
    while read -r line; do
        read -r _ configuration workers _ <<<"$line"
        ranks=$(ranks_of "$configuration" "$workers") needed=$ranks
        [[ $configuration != ps-switch-* ]] || needed=$workers # --switch-host is a further machine
        if [[ $line == too-long* ]]; then
            too_long+="${too_long:+;}${line#too-long }"
        elif [[ ! $real_hosts || $line == gpu* ]] || ((needed <= ${#machines[@]})); then
            plan+=("$line")
        elif [[ ";$left_out;" != *";$configuration $workers $ranks;"* ]]; then
            left_out+="${left_out:+;}$configuration $workers $ranks"
        fi
    done < <(list_points)
    mapfile -t -O ${#plan[@]} plan < <(second_starts)
}

# limit_of KIND WORKERS SIZES: prints the time limit of a measurement in seconds. The limit allows for the start. It
# also allows for several times the time of the bytes, sent by one machine, and of the ring's steps over the latency.
limit_of()
{
    local bits=$link_bits steps=0 step_ms=$PACED_MS
    ((shared_bits == 0 || (bits > 0 && bits <= shared_bits))) || bits=$shared_bits
    ((probed_bits == 0)) || bits=$probed_bits
    ((bits > 0)) || bits=1000000000
    [[ $1 != paced && $1 != recorded ]] || steps=$paced_steps
    if [[ $1 == train || $1 == gpu-train ]]; then
        step_ms=10000 # computing time of a slow machine
        steps=$((train_steps > 0 ? train_steps : train_epochs * 60000 / (train_batch * $2)))
    elif [[ $1 == published ]]; then
        echo $((120 + 4 * published_s)) && return
    fi
    awk -v workers="$2" -v list="$3" -v bits="$bits" -v steps="$steps" -v step_ms="$step_ms" \
        -v iterations=$((warmup + (iterations > 10 ? iterations : 10))) -v model="$MODEL_BYTES" -v latency_ms="${latency:-0}" 'BEGIN {
        count = split(list, sizes, ",")
        ways = workers * latency_ms / 1e3 # 2 W messages, each half a round trip
        for (i = 1; i <= count; i++)
            seconds += 5 + 2 * iterations * (2 * workers * sizes[i] * 8 / bits + ways)
        seconds += steps * (step_ms / 1e3 + 2 * workers * model * 8 / bits + ways)
        printf "%d", 120 + 4 * seconds
    }'
}

# up_to_model LEAST: prints the sizes from LEAST up to the model's gradient.
up_to_model()
{
    printf '%s\n' "${sizes[@]}" | awk -v least="$1" -v most="$MODEL_BYTES" '$1 >= least && $1 <= most' | paste -s -d , -
}

# Prints points on hosts with several slots, in a virtual cluster only: in the quick sweep at one size, else from 64 KB
# to the model's gradient.
slot_points()
{
    local configuration list hosts=$((2 * max_workers < SLOT_HOSTS ? 2 * max_workers : SLOT_HOSTS))
    [[ $cluster ]] || return 0
    list=$(up_to_model 65536)
    [[ $mode != quick && $list ]] || list=$quick_size
    for configuration in hierarchical ring ring-apart; do
        echo slots $configuration $((hosts * SLOTS)) "$list"
    done
}

# bytes_seconds CONFIGURATION WORKERS BYTES: prints the seconds of one all-reduce on the links and over the latency.
bytes_seconds()
{
    awk -v configuration="$1" -v workers="$2" -v bytes="$3" -v bits=$((link_bits > 0 ? link_bits : 1000000000)) \
        -v latency_ms="${latency:-0}" 'BEGIN {
        ways["ps-dedicated-1"] = workers
        ways["ps-colocated-1"] = workers - 1
        print bytes * 8 / bits * (configuration in ways ? ways[configuration] : 2 * (workers - 1) / workers) + \
            latency_ms / 1e3 * (configuration == "ring" ? workers - 1 : 1)
    }'
}

# published_seconds CONFIGURATION WORKERS BYTES: prints "SECONDS TIMED BEFORE". SECONDS is the time of the exchange
# (steps, then the averaging alone). TIMED and BEFORE are the numbers of timed and of warm-up operations.
published_seconds()
{
    bytes_seconds "$@" | awk '{ print 8 * $1 <= 60 ? int(8 * $1) + 1 " 3 1" : int(3 * $1) + 1 " 1 0" }'
}

# in_time CONFIGURATION WORKERS LIST: prints the sizes of LIST. The default sweep leaves out a size if its iterations
# need more than SIZE_S seconds on the links. The size of the tables and sizes that the user chose stay.
in_time()
{
    local size kept=''
    for size in ${3//,/ }; do
        [[ $mode != default || $asked_sizes || $size == "$quick_size" ]] ||
            bytes_seconds "${1%%+*}" "$2" "$size" | awk -v most="$SIZE_S" '{ exit 8 * $1 > most }' || continue
        kept+=${kept:+,}$size
    done
    echo "$kept"
}

# published_arguments CONFIGURATION WORKERS MODEL: prints arguments of bench.
published_arguments()
{
    local bytes timed before
    bytes=$(xargs -n 2 <<<"$PUBLISHED_BYTES" | sed -n "s/^$3 //p")
    read -r _ timed before < <(published_seconds "$1" "$2" "$bytes")
    echo --model-gradients "$3" -n "$timed" -w "$before"
}

# memory_wanted FILE: prints the GB that bench needed when it refused a model's gradients, by its message. Fails if it
# did not refuse.
memory_wanted()
{
    sed -n 's/.*error: --model-gradients .* need about \([0-9.]*\) GB, and .* GB are free there.*/\1/p' "$1" | grep -m 1 .
}

# Prints a point for each published model that fits the time limit. Prints the other models as
# "too-long CONFIGURATION WORKERS MODEL SECONDS".
published_points()
{
    local model bytes configuration seconds workers=$((max_workers < PUBLISHED_WORKERS ? max_workers : PUBLISHED_WORKERS))
    [[ $mode != quick ]] && ((workers >= 2)) || return 0
    while read -r model bytes; do
        for configuration in ring "ps-colocated-$workers" ps-dedicated-1; do
            read -r seconds _ < <(published_seconds "$configuration" "$workers" "$bytes")
            if ((seconds <= published_s)); then
                echo published "$configuration" "$workers" "$model"
            else
                echo too-long "$configuration" "$workers" "$model" "$seconds"
            fi
        done
    done < <(xargs -n 2 <<<"$PUBLISHED_BYTES")
}

# Prints the sweep without second_starts, as lines KIND CONFIGURATION WORKERS SIZES (or MODEL). KIND is bench, paced,
# recorded, train, slots, published, too-long, gpu, gpu-shared or gpu-train.
list_points()
{
    local workers configuration list
    for workers in "${workers_list[@]}"; do
        # The quick sweep has time for all sizes with the most workers only.
        list=$(IFS=, && echo "${sizes[*]}")
        [[ $mode != quick ]] || ((workers == max_workers)) || list=$quick_size
        # One worker has nothing to average.
        for configuration in $( ((workers < 2)) || configurations "$workers"); do
            echo bench "$configuration" "$workers" "$(in_time "$configuration" "$workers" "$list")"
        done
        # Variants end at the model's gradient, unless the user chose sizes. Only the full sweep has time for more.
        [[ $mode != default || $asked_sizes ]] || list=$(up_to_model 0)
        for configuration in $( ((workers < 2 || workers < max_workers)) || variants "$workers"); do
            echo bench "$configuration" "$workers" "$(in_time "$configuration" "$workers" "$list")"
        done
        for configuration in $(trained_configurations "$workers"); do
            echo paced "$configuration" "$workers" 0
            ! recorded "$configuration" "$workers" || echo recorded "$configuration" "$workers" 0
        done
    done
    slot_points
    published_points
    gpu_points
    if [[ $train ]]; then
        echo train ps-dedicated-1 "$train_workers" 0
        echo train ring "$train_workers" 0
    fi
}
