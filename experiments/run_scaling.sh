#!/usr/bin/env bash
# run_scaling.sh [OPTION...]: measures parameter server and ring all-reduce, and needs nothing else.
#
# Installs missing packages, builds psring, gets MNIST, builds the virtual cluster, measures, plots and prints a
# summary. Removes the cluster at the end, also when interrupted. It needs no root: see vcluster.sh --help. If the
# system forbids network namespaces to this user, it prints the reason and measures on loopback, where links have no
# limit. With GPUs and NCCL, it also measures between GPUs.
#
#   --quick | --full    a sweep of about 5 minutes, or of hours (default: half an hour)
#   --out DIR           folder of the results (default: results-DATE-TIME); replaces an earlier run's
#   --hosts LIST        numbers of workers, e.g. 1,2,4,8; or real machines that mpirun reaches and that have this folder
#                       at the same path: a,b,c,d, or @FILE (a hostfile), or slurm (this Slurm allocation). The script
#                       checks them first. PSRING_BIND_SUBNET=10.0.0.0/24 names their network.
#   --switch-host NAME  with real machines: a further one that has all their rate, where their links meet. Also measures
#                       a server there. The virtual cluster measures it in its switch.
#   --rate RATE         rate of each host's link (default: 200mbit); with real machines, the nominal rate
#   --shape SHAPE       shape of the virtual cluster: racks with a limited link between them, hosts with other rates;
#                       see vcluster.sh --help (default: flat)
#   --latency MS        round trip between two hosts of the virtual cluster in milliseconds (default: none added)
#   --sizes LIST        bytes of the all-reduces, e.g. 65536,1048576 (default: from 4 KB to 25 MB, but the default sweep
#                       leaves out a size whose iterations would need more than 45 s on the links)
#   --no-train          no real training: needs no data, measures no accuracy
#   --steps N           end the real training after N steps (default: 60; --quick: 8; --full: all of its epochs)
#   --data DIR          folder with the four files of MNIST (default: see get_mnist.sh)
#   --psring PROGRAM    measure this program instead of building one
#   --limit SECONDS     time limit of a measurement; a longer one is ended and counts as failed (default: several
#                       times the time of its bytes)
#
# DIR gets bench.csv, train.csv, summary.txt, report.html, provenance.json and log.txt, and each figure as .svg, .png
# and .pdf. If there are enough rows, model.json, predict.csv, predict.txt and winner_map.csv have the fitted model of
# cost and its predictions. For the report's replay, trace-ring.json and trace-ps.json have three steps of training. The
# exit status is 0 if every measurement that memory and time allow was made and was right.
set -euo pipefail
export LC_ALL=C # decimal points and English messages in every locale

PACED_MS=100        # timed wait of a paced step instead of computation
PACED_BATCH=64
WORKERS_MAX=100     # the virtual cluster has a host for each worker and each server, 200 at most

unset CDPATH # cd prints a folder that it finds there
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")

# shellcheck source-path=SCRIPTDIR source=sweep/constants.sh
. "$here/sweep/constants.sh"
# shellcheck source-path=SCRIPTDIR source=sweep/plan.sh
. "$here/sweep/plan.sh"
# shellcheck source-path=SCRIPTDIR source=sweep/provenance.sh
. "$here/sweep/provenance.sh"
# shellcheck source-path=SCRIPTDIR source=sweep/machines.sh
. "$here/sweep/machines.sh"
# shellcheck source-path=SCRIPTDIR source=sweep/script.sh
. "$here/sweep/script.sh"
# shellcheck source-path=SCRIPTDIR source=sweep/launch.sh
. "$here/sweep/launch.sh"
# shellcheck source-path=SCRIPTDIR source=sweep/gpus.sh
. "$here/sweep/gpus.sh"

heed_interrupts "$@"

# --- options ----------------------------------------------------------------------------------------

parse_arguments()
{
    mode=default out='' host_list='' switch_host='' rate='' shape=flat latency='' limit='' sizes='' train=yes steps='' data='' psring=''
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
        --out | --hosts | --switch-host | --rate | --shape | --latency | --limit | --sizes | --steps | --data | --psring)
            (($# >= 2)) || { say "$1 needs a value; see run_scaling.sh --help" && exit 2; }
            case $1 in
            --out) out=$2 ;;
            --hosts) host_list=$2 ;;
            --switch-host) switch_host=$2 ;;
            --rate) rate=$2 ;;
            --shape) shape=$2 ;;
            --latency) latency=$2 ;;
            --limit) limit=$2 ;;
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
    link_bits=$("$here/vcluster.sh" rate "${rate:-200mbit}" 2>&1) || { say "--rate: ${link_bits#vcluster.sh: }" && exit 2; }
    shared_bits=$("$here/vcluster.sh" shape "${rate:-200mbit}" "$shape" | cut -d , -f 1) || exit 2
    [[ ! $latency ]] || latency=$("$here/vcluster.sh" distance "$latency" "$shape") || exit 2
    [[ -z $limit || $limit =~ ^[1-9][0-9]{0,6}$ ]] || { say "--limit '$limit': expected seconds" && exit 2; }
    [[ -z $steps || $steps =~ ^[1-9][0-9]*$ ]] || { say "--steps '$steps': expected a number" && exit 2; }
    [[ -z $sizes || $sizes =~ ^[1-9][0-9]*(,[1-9][0-9]*)*$ ]] ||
        { say "--sizes '$sizes': expected numbers of bytes, e.g. 65536,1048576" && exit 2; }
}

# The settings of each mode.
choose_sweep()
{
    real_hosts='' machines=() asked_sizes=$sizes
    local counts
    case $mode in
    quick)
        counts=1,2,4
        sizes=${sizes:-65536,1048576,$MODEL_BYTES}
        warmup=1 iterations=0 paced_steps=6 published_s=0
        train_epochs=1 train_batch=128 train_steps=8
        ;;
    default)
        counts=1,2,4,8
        sizes=${sizes:-4096,16384,65536,262144,1048576,$MODEL_BYTES,26214400}
        warmup=1 iterations=0 paced_steps=20 published_s=60
        train_epochs=1 train_batch=128 train_steps=60
        ;;
    full)
        counts=1,2,3,4,5,6,7,8
        sizes=${sizes:-4,4096,16384,65536,262144,1048576,$MODEL_BYTES,16777216,26214400,67108864}
        warmup=5 iterations=20 paced_steps=50 published_s=600
        train_epochs=12 train_batch=64 train_steps=0
        ;;
    esac
    train_steps=${steps:-$train_steps} # 0: the epochs decide
    train_arguments=(--epochs "$train_epochs" --batch "$train_batch" --steps "$train_steps")
    host_list=$(names_of "$host_list") || exit 2
    if [[ $host_list =~ ^[1-9][0-9]{0,2}(,[1-9][0-9]{0,2})*$ ]]; then
        counts=$host_list
        (($(tr ',' '\n' <<<"$counts" | sort -n | tail -n 1) <= WORKERS_MAX)) ||
            { say "--hosts '$host_list': expected at most $WORKERS_MAX workers" && exit 2; }
    elif [[ $host_list =~ ^[0-9,]*$ && $host_list ]]; then
        say "--hosts '$host_list': expected numbers of workers from 1 to $WORKERS_MAX, e.g. 2,4, or names of machines"
        exit 2
    elif [[ $host_list ]]; then
        [[ $host_list =~ ^[A-Za-z0-9._-]+(,[A-Za-z0-9._-]+)*$ ]] ||
            { say "--hosts '$host_list': expected names of machines with commas between" && exit 2; }
        [[ $shape == flat ]] || { say "--shape '$shape' is for the virtual cluster; machines have theirs" && exit 2; }
        [[ ! $latency ]] || { say "--latency '$latency' is for the virtual cluster; machines have theirs" && exit 2; }
        real_hosts=$host_list
        IFS=, read -ra machines <<<"$real_hosts"
        [[ -z $(printf '%s\n' "${machines[@]}" | sort | uniq -d) ]] ||
            { say "--hosts '$host_list': a machine is listed twice" && exit 2; }
        counts=$(counts_on ${#machines[@]} "$counts")
        [[ $rate ]] || link_bits=0 # not known
    fi
    [[ ! $switch_host ]] || { [[ $real_hosts && $switch_host =~ ^[A-Za-z0-9._-]+$ && ",$real_hosts," != *",$switch_host,"* ]]; } ||
        { say "--switch-host '$switch_host': expected the name of one further machine, with --hosts NAME,NAME,..." && exit 2; }
    rate=${rate:-$([[ $real_hosts ]] || echo 200mbit)}
    mapfile -t workers_list < <(tr ',' '\n' <<<"$counts" | sort -nu)
    mapfile -t sizes < <(tr ',' '\n' <<<"$sizes" | sort -nu)
    max_workers=${workers_list[-1]}
    # The size that the quick sweep measures with fewer workers: the model's gradient, else the largest.
    quick_size=${sizes[-1]}
    [[ " ${sizes[*]} " != *" $MODEL_BYTES "* ]] || quick_size=$MODEL_BYTES
    # The real training runs on four workers, or on all if there are fewer. On real machines, one is for the server.
    train_workers=$((max_workers < 4 ? max_workers : 4))
    ((${#machines[@]} != train_workers || train_workers == 1)) || train_workers=$((train_workers - 1))
}

# --- set-up -----------------------------------------------------------------------------------------

build()
{
    "$here/setup.sh" || say "continuing with the installed packages"
    if [[ $psring ]]; then
        [[ -x $psring ]] || die "--psring '$psring' is not a program"
        psring=$(cd "$(dirname "$psring")" && pwd)/$(basename "$psring")
        return
    fi
    say "building; the first time takes minutes, and $out/log.txt shows how far it is"
    if ! (cd "$root" && cmake --preset release && cmake --build --preset release --target psring ${latency:+psring_switch}) >>"$out/log.txt" 2>&1; then
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
        say "no data set found, so no real training; name its folder with --data DIR"
        train=''
        failures=$((failures + 1))
    fi
}

# shellcheck disable=SC2317  # called by a trap
clean_up()
{
    end_child
    forget_machines
    [[ -z $cluster ]] || "$here/vcluster.sh" down --name "$cluster"
}

# shellcheck disable=SC2317  # called by a trap
interrupted() # EXIT-CODE
{
    trap '' INT TERM HUP
    rm -f "$out/last.txt"
    say "interrupted: $out has the finished measurements and log.txt; $psring report $out makes a page of them"
    exit "$1"
}

# --- measuring --------------------------------------------------------------------------------------

# keep_training STATUS: appends the rows of a finished training to train.csv. Rows of a failed training would look like
# a whole one.
keep_training()
{
    if [[ -s $out/training.csv ]] && (($1 == 0)); then
        tail -n +"$([[ -s $out/train.csv ]] && echo 2 || echo 1)" "$out/training.csv" >>"$out/train.csv"
    fi
    rm -f "$out/training.csv"
}

# measure WHAT RANKS COMMAND...: runs a measurement, with its output in the log. Counts a failure; the sweep continues.
# A refusal of bench for lack of memory is not a failure; it sets $wanted_gb.
measure()
{
    local what=$1 ranks=$2
    shift 2
    done_points=$((done_points + 1))
    say "$(printf '[%d/%d, %d s] %s' $done_points "$points" $((SECONDS - started)) "$what")"
    commands+=("$what: $(printf '%q ' "$@")")
    local status=0 lost=0
    wanted_gb=''
    log_to=$out/last.txt launch "$ranks" "$@" || status=$?
    { echo "== $what: $*" && cat "$out/last.txt"; } >>"$out/log.txt"
    [[ ! $there || ${*: -1} != "$there"/* ]] || fetch_rows "${*: -1}" || lost=1 # a command ends with its file of rows
    keep_training $((status + lost))
    if ((status != 0)) && wanted_gb=$(memory_wanted "$out/last.txt"); then
        say "left out: $what: it needs $wanted_gb GB of memory"
        status=0 lost=0
    elif ((status + lost != 0)); then
        failures=$((failures + 1)) failed_measurements=$((failed_measurements + 1))
        say "failed: $what; more in $out/log.txt"
        ((status != 124 && status != 137)) || say "it was ended after $limit_s s, the limit of this measurement"
        ((status == 0)) || reason_of "$out/last.txt" >&2
    fi
    rm -f "$out/last.txt"
    limit_s=''
    return $((status ? status : lost))
}

sweep()
{
    local plan rows_of=() index before
    choose_points
    points=${#plan[@]}
    for index in "${!plan[@]}"; do
        before=$(count_rows)
        # A measurement that failed half-way is not repeated: its rows are too few to be replaced.
        if measure_point "${plan[index]}"; then
            rows_of[index]="$((before + 1)) $(count_rows)"
        else
            machines_are_there || return 0
        fi
    done
    measure_again
}

# measure_point LINE [FILE]: measures a line of the plan. Rows of bench go to FILE (default: bench.csv).
measure_point()
{
    local kind configuration workers list arguments ranks rows=$out/ placing on_gpus=''
    read -r kind configuration workers list <<<"$1"
    [[ ! $there ]] || rows=$there/$((done_points + 1)). # each measurement has its own files there
    read -ra arguments < <(backend_arguments "$configuration")
    read -ra placing < <(placing_of "$kind" "$configuration")
    [[ $kind != bench ]] || ! overlapped "$configuration" "$workers" || arguments+=(--overlap)
    [[ $kind != gpu* ]] || gpu_options "$kind"
    ranks=$(ranks_of "$configuration" "$workers")
    limit_s=${limit:-$(limit_of "$kind" "$workers" "$list")}
    case $kind in
    bench | slots | second)
        measure "$configuration, $(counted "$workers" worker)$([[ $kind != slots ]] || echo " on $((workers / SLOTS)) hosts"), all-reduces of $list bytes$([[ $kind != second ]] || echo ', second start')" "$ranks" \
            "$psring" bench "${arguments[@]}" --sizes "$list" -n "$iterations" -w "$warmup" \
            --csv "$rows${2:-bench.csv}"
        ;;
    gpu | gpu-shared)
        measure "$configuration, $(gpu_words "$kind" "$workers"), all-reduces of $list bytes" "$ranks" \
            "$psring" bench "${arguments[@]}" --sizes "$list" -n "$iterations" -w "$warmup" --csv "${rows}bench.csv"
        ;;
    published)
        read -ra list < <(published_arguments "$configuration" "$workers" "$list")
        measure "$configuration, $(counted "$workers" worker), gradients of ${list[1]}" "$ranks" \
            "$psring" bench "${arguments[@]}" "${list[@]}" --csv "${rows}bench.csv" || return
        [[ ! $wanted_gb ]] || too_long+="${too_long:+;}$configuration $workers ${list[1]} ${wanted_gb}GB"
        ;;
    paced)
        measure "$configuration, $(counted "$workers" worker), training with $PACED_MS ms of computation" "$ranks" \
            "$psring" train "${arguments[@]}" --model keras-cnn --compute "paced:$PACED_MS" \
            --batch $PACED_BATCH --steps "$paced_steps" --metrics "${rows}training.csv"
        ;;
    recorded) # for the report's replay; a separate run, because recording takes time
        measure "$configuration, $(counted "$workers" worker), the same, three steps recorded" "$ranks" \
            "$psring" train "${arguments[@]}" --model keras-cnn --compute "paced:$PACED_MS" --batch $PACED_BATCH --steps 5 \
            --timeline-steps 2:4 --timeline "$out/$(trace_of "$configuration")" ||
            { rm -f "$out/$(trace_of "$configuration")" && return 1; }
        ;;
    train)
        measure "$configuration, $(counted "$workers" worker), real training" "$ranks" \
            "$psring" train "${arguments[@]}" --model keras-cnn --compute real --reduce-order ring \
            "${train_arguments[@]}" "${data_arguments[@]}" --metrics "${rows}training.csv"
        ;;
    gpu-train) # NCCL adds in another order
        measure "$configuration, $(counted "$workers" GPU), real training" "$ranks" \
            "$psring" train "${arguments[@]}" --model keras-cnn "${train_arguments[@]}" "${data_arguments[@]}" \
            --metrics "${rows}training.csv"
        ;;
    esac
}

# After a failure on real machines: ends the sweep if one is gone. All other measurements would fail at their limits.
machines_are_there()
{
    [[ $real_hosts ]] || return 0
    ask_machines true && return
    failures=$((failures + points - done_points)) failed_measurements=$((failed_measurements + points - done_points))
    say "the sweep ends here: $(counted $((points - done_points)) measurement) not made"
    return 1
}

# --- measuring again --------------------------------------------------------------------------------

# At the end of the sweep: repeats disturbed measurements (psring report --unsteady lists them), but only the first few,
# so that the sweep stays bounded.
AGAIN_MOST=3

measure_again()
{
    local configuration workers number reason index line again=() listed=' '
    while read -r line; do
        read -r configuration workers number _ <<<"$line"
        index=$(index_of_line "$number")
        [[ $index && $listed != *" $index "* ]] || continue # another row of a listed one
        again+=("$index $line") listed+="$index "
        ((${#again[@]} < AGAIN_MOST)) || break
    done < <("$psring" report --unsteady "$out" 2>>"$out/log.txt")
    points=$((points + ${#again[@]}))
    for line in "${again[@]}"; do
        read -r index configuration workers _ reason <<<"$line"
        say "not steady: $configuration, $(counted "$workers" worker): $reason; once more"
        rm -f "$out/again.csv" # of a measurement that failed half-way
        measure_point "${plan[index]}" again.csv || machines_are_there || break
        replace_rows "${rows_of[index]}" "$out/bench.csv" "$out/again.csv"
    done
    rm -f "$out/again.csv"
}

# Prints the number of lines of bench.csv. Without the file it is 1, as with a header alone.
count_rows()
{
    wc -l 2>/dev/null <"$out/bench.csv" || echo 1
}

# index_of_line NUMBER: prints the index of the point of the plan that wrote this line of bench.csv.
index_of_line()
{
    local index first last
    for index in "${!rows_of[@]}"; do
        read -r first last <<<"${rows_of[index]}"
        ((first > $1 || $1 > last)) || { echo "$index" && return; }
    done
}

# replace_rows "FIRST LAST" FILE NEW: replaces these lines of FILE by the rows of NEW. Keeps them if their numbers differ,
# as after a measurement that failed half-way.
replace_rows()
{
    local first last
    read -r first last <<<"$1"
    if [[ ! -s $3 ]] || (($(wc -l <"$3") - 1 != last - first + 1)); then
        say "the earlier rows stay, because the measurement has other rows now"
        return
    fi
    { head -n $((first - 1)) "$2" && tail -n +2 "$3" && tail -n +$((last + 1)) "$2"; } >"$2.part"
    mv "$2.part" "$2"
    rm -f "$3"
}

# --- results ----------------------------------------------------------------------------------------

plot()
{
    "$root/plots/draw.sh" --psring "$psring" "$out" >"$out/last.txt" 2>&1 || { failures=$((failures + 1)) && cat "$out/last.txt" >&2; }
    cat "$out/last.txt" >>"$out/log.txt"
    rm -f "$out/last.txt"
}

# A run that is too short for a fit is not a failure.
fit_model()
{
    local steps=()
    [[ -s $out/bench.csv ]] || return 0
    [[ ! -s $out/train.csv ]] || steps=(--train "$out/train.csv")
    "$psring" predict --fit "$out/bench.csv" --cost-model "$out/model.json" --csv "$out/predict.csv" \
        --map "$out/winner_map.csv" "${steps[@]}" >"$out/predict.txt" 2>"$out/last.txt" || {
        rm -f "$out"/{model.json,predict.csv,predict.txt,winner_map.csv}
        grep -q 'rows of a fit' "$out/last.txt" || failures=$((failures + 1))
        say "no model was fitted, so there is no model.json: $(sed 's/^psring: error: //' "$out/last.txt")"
    }
    cat "$out/last.txt" >>"$out/log.txt"
    rm -f "$out/last.txt"
}

# Writes the facts about the whole run for psring report.
note_facts()
{
    provenance_facts=$(
        printf '  "failed_measurements": %d,\n  "machine_count": %d,\n' "$failed_measurements" ${#machines[@]}
        json_member left_out "$left_out"
        json_member too_long "$too_long"
    )$'\n'
}

# psring report fails if a sum is wrong, because every time of the run is then worthless.
summarise()
{
    "$psring" report --text "$out" >"$out/summary.txt" 2>>"$out/log.txt" || failures=$((failures + 1))
    cat "$out/summary.txt"
    "$psring" report "$out" >>"$out/log.txt" 2>&1 || failures=$((failures + 1))
}

parse_arguments "$@"
choose_sweep
started=$SECONDS failures=0 failed_measurements=0 done_points=0 points=0 child='' cluster='' commands=() data_arguments=()
limit_s='' placing=() there='' answers='' left_out='' too_long='' wanted_gb='' machines_table='' probed_bits=0
cores=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)
take_folder "${out:-results-$(date +%Y%m%d-%H%M%S)}"
files=({bench,train,predict,winner_map}.csv {summary,predict,log}.txt report.html {provenance,model,trace-ring,trace-ps}.json
    last.txt {training,again,part}.csv info.json) # those of the second line are gone at the end
for figure in $("$root/plots/draw.sh" --list); do
    files+=("$figure".{svg,png,pdf})
done
replace_files "${files[@]}"
begin_log "$command_line"
build
get_data
started=$SECONDS # the time promised by --quick does not contain the set-up
end_with clean_up interrupted
raise_network
[[ ! $real_hosts ]] || check_machines
find_gpus
sweep
[[ -s $out/bench.csv || -s $out/train.csv ]] || die "nothing was measured; see $out/log.txt"
note_facts
write_provenance
fit_model
plot
summarise
say "done in $((SECONDS - started)) s; results are in $out"
((failures == 0)) || die "$(counted "$failures" step) (measurements, data, figures, sums) failed; $out/log.txt has their messages"
