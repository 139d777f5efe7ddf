#!/usr/bin/env bash
# run_scaling.sh [OPTION...]: parameter server against ring all-reduce, measured; nothing else needed.
#
# Installs what is missing, builds, gets MNIST, raises the virtual cluster, sweeps, plots, prints a
# summary and takes the cluster down again, also when interrupted. Without root, or off Linux, it
# measures on loopback, where a node has no limit of its own, and says so.
#
#   --quick | --full    a sweep of under 5 minutes; one of hours (default: by estimate half an hour)
#   --out DIR           where results go (default: results-DATE-TIME); an earlier run's are replaced
#   --hosts LIST        workers to sweep, e.g. 1,2,4,8; or the names of real machines, e.g. a,b,c,d,
#                       that mpirun reaches and that have this folder at the same path
#   --rate RATE         of each host's link (default: 200mbit); with real machines, what theirs is
#   --sizes LIST        bytes of the all-reduces, e.g. 65536,1048576
#   --no-train          no real training: no data needed, no accuracy measured
#   --steps N           the real training ends after N steps
#   --data DIR          folder with the four files of MNIST (default: see get_mnist.sh)
#   --psring PROGRAM    measure this program instead of building one
#
# DIR gets bench.csv, train.csv, summary.txt, provenance.json, log.txt, and each figure as .svg and
# .png. The exit status is 0 only if every measurement was made and was right.
set -euo pipefail

MODEL_BYTES=4799528 # the gradient of keras-cnn: 1,199,882 float32
PACED_MS=100        # computation that a paced step waits for
PACED_BATCH=64

here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")

usage()
{
    sed -n '2,22s/^# \{0,1\}//p' "$0"
}

die()
{
    echo "run_scaling.sh: $*" >&2
    exit 1
}

say()
{
    echo "run_scaling.sh: $*" >&2
}

# As in vcluster.sh: a shell started in the background ignores SIGINT and could not clean up on it.
if (($(sed -n 's/^SigIgn:\t*/0x/p' /proc/self/status 2>/dev/null || echo 0) & 2)); then
    exec env --default-signal=INT "$BASH" "$0" "$@"
fi

# --- what to do -------------------------------------------------------------------------------------

parse_arguments()
{
    mode=default out='' host_list='' rate=200mbit sizes='' train=yes steps='' data='' psring=''
    command_line="$0 $*"
    while (($# > 0)); do
        case $1 in
        --quick | --full)
            mode=${1#--}
            shift
            ;;
        --no-train)
            train=''
            shift
            ;;
        -h | --help)
            usage
            exit 0
            ;;
        --out | --hosts | --rate | --sizes | --steps | --data | --psring)
            (($# >= 2)) || { say "$1 needs a value; see run_scaling.sh --help" && exit 2; }
            case $1 in
            --out) out=$2 ;;
            --hosts) host_list=$2 ;;
            --rate) rate=$2 ;;
            --sizes) sizes=$2 ;;
            --steps) steps=$2 ;;
            --data) data=$2 ;;
            --psring) psring=$2 ;;
            esac
            shift 2
            ;;
        *)
            say "unknown argument '$1'; see run_scaling.sh --help"
            exit 2
            ;;
        esac
    done
    link_bits=$("$here/vcluster.sh" rate "$rate") || exit 2
    [[ -z $steps || $steps =~ ^[1-9][0-9]*$ ]] || { say "--steps '$steps': expected a number" && exit 2; }
    [[ -z $sizes || $sizes =~ ^[1-9][0-9]*(,[1-9][0-9]*)*$ ]] ||
        { say "--sizes '$sizes': expected numbers of bytes, e.g. 65536,1048576" && exit 2; }
}

# What each mode measures, and for how long.
choose_sweep()
{
    real_hosts=''
    local counts
    case $mode in
    quick)
        counts=1,2,4
        sizes=${sizes:-65536,1048576,$MODEL_BYTES,26214400}
        seconds_a_point=2 min_iterations=3 max_iterations=10 paced_steps=5
        train_arguments=(--epochs 1 --batch 128) train_steps=40
        ;;
    default)
        counts=1,2,4,8
        sizes=${sizes:-16384,65536,262144,1048576,$MODEL_BYTES,26214400}
        seconds_a_point=8 min_iterations=5 max_iterations=50 paced_steps=20
        train_arguments=(--epochs 2 --batch 64) train_steps=0
        ;;
    full)
        counts=1,2,4,8
        sizes=${sizes:-4096,16384,65536,262144,1048576,$MODEL_BYTES,16777216,26214400,67108864}
        seconds_a_point=20 min_iterations=10 max_iterations=200 paced_steps=50
        train_arguments=(--epochs 12 --batch 64) train_steps=0
        ;;
    esac
    train_arguments+=(--steps "${steps:-$train_steps}") # 0: the epochs decide
    if [[ $host_list =~ ^[1-9][0-9]{0,2}(,[1-9][0-9]{0,2})*$ ]]; then
        counts=$host_list
    elif [[ $host_list =~ ^[0-9,]*$ && $host_list ]]; then
        say "--hosts '$host_list': expected numbers of workers from 1 to 999, e.g. 2,4, or names of machines"
        exit 2
    elif [[ $host_list ]]; then
        real_hosts=$host_list
        counts=$(awk -v list="$counts" -v hosts="$(tr -cd , <<<"$real_hosts" | wc -c)" 'BEGIN {
            count = split(list, workers, ",")
            for (i = 1; i <= count; i++)
                if (workers[i] <= hosts + 1)
                    printf "%s%d", (i > 1 ? "," : ""), workers[i]
        }')
    fi
    mapfile -t workers_list < <(tr ',' '\n' <<<"$counts" | sort -nu)
    mapfile -t sizes < <(tr ',' '\n' <<<"$sizes" | sort -nu)
    max_workers=${workers_list[-1]}
    # The real training runs on four workers, or the most there are.
    train_workers=$((max_workers < 4 ? max_workers : 4))
}

# --- what is needed ---------------------------------------------------------------------------------

build()
{
    "$here/setup.sh" || say "going on with what is installed"
    if [[ $psring ]]; then
        [[ -x $psring ]] || die "--psring '$psring' is not a program"
        psring=$(cd "$(dirname "$psring")" && pwd)/$(basename "$psring")
        return
    fi
    say "building"
    if ! (cd "$root" && cmake --preset release && cmake --build --preset release) >>"$out/log.txt" 2>&1; then
        tail -n 20 "$out/log.txt" >&2
        die "the build failed; all its messages are in $out/log.txt"
    fi
    psring=$root/build/psring
}

get_data()
{
    [[ $train ]] || return 0
    if data=$("$here/get_mnist.sh" ${data:+--data "$data"}); then
        data_arguments=(--data "$data")
    else
        say "no data, so no real training; --data DIR names a folder that has it"
        train=''
        failures=$((failures + 1))
    fi
}

raise_network()
{
    cluster=''
    if [[ $real_hosts ]]; then
        network=hosts:$rate
    elif [[ $(uname -s) == Linux ]] && ((EUID == 0)) && unshare --net true 2>/dev/null; then
        cluster=scaling-$$
        network=vcluster:$rate
        # One host more than workers: the dedicated server's. --owner covers even a SIGKILL.
        "$here/vcluster.sh" up --name "$cluster" --hosts $((max_workers + 1)) --rate "$rate" --owner $$
    else
        network=loopback
        link_bits=0
        say "no root or no network namespaces: network=loopback: no per-node limit, topology effects do not show"
    fi
}

# launch RANKS COMMAND...: one rank a host of whichever network there is. Runs in the background and
# waits, because bash acts on a signal only between foreground commands.
launch()
{
    # TCP for every backend: Open MPI would otherwise use shared memory within a machine, and only it.
    local ranks=$1 mpi=(mpirun -n "$1" --bind-to none --oversubscribe --mca pml ob1
        --mca btl "self,tcp")
    shift
    ((EUID != 0)) || mpi+=(--allow-run-as-root)
    ((ranks <= cores)) || [[ $real_hosts ]] || mpi+=(--mca mpi_yield_when_idle 1)
    if [[ $cluster ]]; then
        mpi=("$here/vcluster.sh" run --name "$cluster" -n "$ranks" --)
    elif [[ $real_hosts ]]; then
        mpi+=(--host "$real_hosts" --map-by node -x "PSRING_NETWORK=$network"
            -x "PSRING_LINK_BITS=$link_bits")
        [[ -z ${PSRING_BIND_SUBNET:-} ]] || mpi+=(-x PSRING_BIND_SUBNET)
    else
        mpi+=(-x PSRING_NETWORK=loopback --mca btl_tcp_if_include lo --mca oob_tcp_if_include lo)
    fi
    "${mpi[@]}" "$@" </dev/null &
    child=$!
    local status=0
    wait $child || status=$?
    child=''
    return $status
}

# shellcheck disable=SC2317  # called by a trap
clean_up()
{
    trap '' INT TERM HUP
    if [[ $child ]]; then
        kill -TERM "$child" 2>/dev/null || true
        wait "$child" 2>/dev/null || true
    fi
    [[ -z $cluster ]] || "$here/vcluster.sh" down --name "$cluster"
}

# --- measuring --------------------------------------------------------------------------------------

# A configuration is a name and what psring is told: ps with a server of its own, and so on.
CONFIGURATIONS=(ps ps-colocated ring mpi)

backend_arguments()
{
    case $1 in
    ps) echo --backend ps --servers 1 --placement dedicated ;;
    ps-colocated) echo --backend ps --servers 1 --placement colocated ;;
    *) echo --backend "$1" ;;
    esac
}

# What that asks of the machines: a dedicated server is one rank more.
ranks_of()
{
    if [[ $1 == ps ]]; then
        echo $(($2 + 1))
    else
        echo "$2"
    fi
}

# iterations WORKERS BYTES: as many as fit in the time for a point, by the slowest backend's model.
iterations()
{
    awk -v workers="$1" -v bytes="$2" -v bits="$link_bits" -v seconds="$seconds_a_point" \
        -v least="$min_iterations" -v most="$max_iterations" 'BEGIN {
            rate = bits > 0 ? bits / 8 : 1e9
            count = int(seconds / (workers * bytes / rate + 0.001))
            print (count < least ? least : (count > most ? most : count))
        }'
}

# timed_iterations WORKERS BYTES: the quick sweep leaves the number to bench, which goes by the times it
# measures, but for operations so long that even bench's least number would take too much of its minutes.
timed_iterations()
{
    if [[ $mode == quick ]] && ((link_bits == 0 || $1 * $2 * 8 <= link_bits)); then
        echo 0
    else
        iterations "$1" "$2"
    fi
}

# measure WHAT RANKS COMMAND...: into the log; a failure is counted and the sweep goes on.
measure()
{
    local what=$1 ranks=$2
    shift 2
    done_points=$((done_points + 1))
    say "$(printf '[%d/%d, %d s] %s' $done_points "$points" $((SECONDS - started)) "$what")"
    commands+=("$what: $(printf '%q ' "$@")")
    local status=0
    launch "$ranks" "$@" >"$out/last.txt" 2>&1 || status=$?
    { echo "== $what: $*" && cat "$out/last.txt"; } >>"$out/log.txt"
    if ((status != 0)); then
        failures=$((failures + 1))
        say "failed: $what; more in $out/log.txt"
        { grep -m 3 'error:' "$out/last.txt" || tail -n 5 "$out/last.txt"; } >&2
    fi
    rm -f "$out/last.txt"
}


# The sweep as lines: bench|paced|train CONFIGURATION WORKERS BYTES.
list_points()
{
    local workers bytes configuration
    for workers in "${workers_list[@]}"; do
        for bytes in "${sizes[@]}"; do
            # One worker has nothing to average, and the quick sweep no time for large messages.
            ((workers > 1)) || continue
            [[ $mode != quick ]] || ((bytes <= 8388608 || workers == train_workers)) || continue
            for configuration in "${CONFIGURATIONS[@]}"; do
                echo bench "$configuration" "$workers" "$bytes"
            done
        done
        for configuration in "${CONFIGURATIONS[@]}"; do
            echo paced "$configuration" "$workers" 0
        done
    done
    if [[ $train ]]; then
        echo train ps "$train_workers" 0
        echo train ring "$train_workers" 0
    fi
}

sweep()
{
    local plan kind configuration workers bytes count arguments
    mapfile -t plan < <(list_points)
    points=${#plan[@]}
    for line in "${plan[@]}"; do
        read -r kind configuration workers bytes <<<"$line"
        read -ra arguments < <(backend_arguments "$configuration")
        ranks=$(ranks_of "$configuration" "$workers")
        if [[ $real_hosts ]] && ((ranks > $(awk -F, '{ print NF }' <<<"$real_hosts"))); then
            say "left out: $configuration with $workers workers needs $ranks machines"
            continue
        fi
        case $kind in
        bench)
            count=$(iterations "$workers" "$bytes")
            measure "$configuration, $workers workers, all-reduce of $bytes bytes" "$ranks" \
                "$psring" bench "${arguments[@]}" -b "$bytes" -e "$bytes" -f 2 \
                -n "$(timed_iterations "$workers" "$bytes")" \
                -w $((count / 4 < 1 ? 1 : count / 4 > 5 ? 5 : count / 4)) --csv "$out/bench.csv"
            ;;
        paced)
            measure "$configuration, $workers workers, training with $PACED_MS ms of computation" "$ranks" \
                "$psring" train "${arguments[@]}" --model keras-cnn --compute "paced:$PACED_MS" \
                --batch $PACED_BATCH --steps "$paced_steps" --metrics "$out/train.csv"
            ;;
        train)
            measure "$configuration, $workers workers, real training" "$ranks" \
                "$psring" train "${arguments[@]}" --model keras-cnn --compute real --reduce-order ring \
                "${train_arguments[@]}" "${data_arguments[@]}" --metrics "$out/train.csv"
            ;;
        esac
    done
}

# --- what is left behind ------------------------------------------------------------------------------

json_string()
{
    printf '"%s"' "$(tr -d '\000-\010\013-\037' <<<"$1" | sed 's/\\/\\\\/g; s/"/\\"/g; s/\t/\\t/g')"
}

json_member()
{
    printf '  "%s": %s,\n' "$1" "$(json_string "$2")"
}

write_provenance()
{
    local commit zmq
    commit=$(git -C "$root" rev-parse HEAD 2>/dev/null || echo unknown)
    [[ -z $(git -C "$root" status --porcelain 2>/dev/null) ]] || commit+=", with changes"
    zmq=$(pkg-config --modversion libzmq 2>/dev/null || echo unknown)
    # On a host of the cluster, whose TCP has settings of its own.
    local on_host=(launch 1)
    [[ $cluster ]] || on_host=()
    "${on_host[@]}" "$psring" info --json "$out/info.json" >>"$out/log.txt" 2>&1 ||
        echo null >"$out/info.json"
    {
        echo "{"
        json_member date "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
        json_member command "$command_line"
        json_member commit "$commit"
        json_member system "$(sed -n 's/^PRETTY_NAME="\{0,1\}\([^"]*\).*/\1/p' /etc/os-release 2>/dev/null)"
        json_member kernel "$(uname -srm)"
        json_member cpu "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo 2>/dev/null | head -n 1)"
        printf '  "cores": %d,\n' "$cores"
        json_member network "$network"
        printf '  "link_bits_per_s": %d,\n' "$link_bits"
        json_member mpi "$(mpirun --version 2>/dev/null | head -n 1)"
        json_member zmq "$zmq"
        printf '  "seconds": %d,\n  "failures": %d,\n' $((SECONDS - started)) "$failures"
        echo '  "measurements": ['
        local index
        for ((index = 0; index < ${#commands[@]}; index++)); do
            printf '    %s%s\n' "$(json_string "${commands[index]}")" \
                "$( ((index + 1 == ${#commands[@]})) || echo ,)"
        done
        echo '  ],'
        printf '  "info": '
        cat "$out/info.json"
        echo "}"
    } >"$out/provenance.json"
    rm -f "$out/info.json"
}

plot()
{
    local script
    for script in throughput time_vs_size bytes_per_node; do
        if ! gnuplot -c "$root/plots/$script.gp" "$out" >>"$out/log.txt" 2>&1; then
            failures=$((failures + 1))
            say "the figure $script was not drawn; the end of $out/log.txt says why:"
            tail -n 5 "$out/log.txt" >&2
        fi
    done
}

summarise()
{
    local files=() file
    for file in bench.csv train.csv; do
        [[ ! -s $out/$file ]] || files+=("$out/$file")
    done
    ((${#files[@]} > 0)) || die "nothing was measured; see $out/log.txt"
    awk -v model_bytes=$MODEL_BYTES -v cores="$cores" -v failures="$failures" -v out="$out" \
        -f "$here/summary.awk" "${files[@]}" | tee "$out/summary.txt"
    # A wrong sum makes every time beside it worthless.
    ! grep -q 'WRONG' "$out/summary.txt" || failures=$((failures + 1))
}

parse_arguments "$@"
choose_sweep
started=$SECONDS failures=0 done_points=0 points=0 child='' cluster='' commands=() data_arguments=()
cores=$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)
out=${out:-results-$(date +%Y%m%d-%H%M%S)}
mkdir -p "$out" || die "cannot write to '$out'"
out=$(cd "$out" && pwd)
rm -f "$out"/{bench.csv,train.csv,summary.txt,provenance.json,log.txt} \
    "$out"/{throughput,time_vs_size,bytes_per_node}.{svg,png}
build
get_data
started=$SECONDS # the time that --quick promises is without the set-up
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP
raise_network
sweep
write_provenance
plot
summarise
say "done in $((SECONDS - started)) s; results are in $out"
((failures == 0)) || die "$failures steps (measurements, data, figures, sums) failed; $out/log.txt has their messages"
