#!/usr/bin/env bash
# fault_trials.sh [--short | --only REGEX]: kills, stops or isolates one rank of a training in a virtual cluster. It
# tries every backend and transport, at launch, in a step and in a checkpoint. Or it isolates a host before mpirun begins.
#
# Each trial must end, mpirun included, within the time-out + 10 s. The exit code must not be 0. The last line must name
# the rank and its host. No process, file or namespace may be left. At launch no rank knows the others yet. Then
# vcluster.sh names the rank, or the line reports what the ranks waited for.
#
#   --short       some of the trials, with a minute instead of the 10 s, for busy machines. test_failures.sh and
#                 test_hierarchical.sh kill other ranks, and test_failures.sh stops one of the backend mpi.
#   --only REGEX  the trials whose row matches, such as '^ring .* launch'
#
# Prints a table. named: seconds until a line names the rank. seconds: until all processes have ended. fault_trials.csv
# has a run on a busy machine. One mpirun did not end there after rank 0 was killed at launch. Exits with 77 without
# namespaces.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
needs_namespaces
which=${1:-} only=${2:-.}
if [[ -n $which && $which != --short && ($which != --only || $# != 2) ]]; then
    echo "fault_trials.sh: found '$*', expected nothing, --short or --only REGEX" >&2
    exit 2
fi
vcluster=$root/experiments/vcluster.sh
name=faults-$$
TIMEOUT_S=${PSRING_TRIAL_TIMEOUT:-5} STARTUP_S=10 GRACE_S=10
MOMENT_S=90 # limit of the wait for the moment: only ends a test that hangs
HOSTS=5
[[ $which != --short ]] || TIMEOUT_S=8 STARTUP_S=60 GRACE_S=60
failed=0 trials=0 run_pid=''

end_run()
{
    [[ -z $run_pid ]] || kill -TERM "$run_pid" 2>/dev/null || true
    [[ -z $run_pid ]] || wait "$run_pid" 2>/dev/null || true
    run_pid=''
}
trap 'end_run; "$vcluster" down --name $name; rm -rf "$folder"' EXIT

# The host of a rank in the trial's configuration.
host_of() # RANK
{
    echo $(($1 / per_host))
}

# The id of the rank's psring process, if there is one.
process_of() # RANK
{
    local pid program
    for pid in $(ip netns pids "psring-$name-$(host_of "$1")" 2>/dev/null); do
        { read -r program <"/proc/$pid/comm"; } 2>/dev/null || continue # the process has ended
        [[ $program != psring ]] || ! grep -qszx "OMPI_COMM_WORLD_RANK=$1" "/proc/$pid/environ" || echo "$pid"
    done
}

processes()
{
    local host
    for ((host = 0; host < HOSTS; host++)); do
        ip netns pids "psring-$name-$host" 2>/dev/null
    done
}

# until_within SECONDS COMMAND...: repeat the command until it succeeds, for at most this time.
until_within()
{
    local deadline=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < deadline)) || return 1
        pause 0.05
    done
}

exists()
{
    [[ $(process_of "$1") ]]
}

trains()
{
    grep -q '^epoch' "$folder/log"
}

# Rank 0 opens a pipe without a reader instead of a new checkpoint. It stays in the checkpoint for the whole trial, and
# all other ranks wait for it.
blocked_in_open()
{
    local pid
    pid=$(process_of 0)
    [[ $pid ]] && grep -qs 'wait_for_partner\|fifo_open' "/proc/$pid/wchan" "/proc/$pid/stack"
}

wait_for_moment() # MOMENT VICTIM
{
    case $1 in
    before) ;;
    launch) until_within $MOMENT_S exists "$2" ;;
    step) until_within $MOMENT_S trains ;;
    # Only a short wait: after the time-out, rank 0 would be the rank that blocks the others.
    checkpoint) until_within $MOMENT_S blocked_in_open && sleep 0.2 ;;
    esac
}

inflict() # FAULT VICTIM
{
    local pid
    pid=$(process_of "$2")
    case $1 in
    killed) kill -KILL "$pid" ;;
    stopped) kill -STOP "$pid" ;;
    cut) ip -n "psring-$name-switch" link set "port$(host_of "$2")" down ;;
    esac
}

is_whole()
{
    "$vcluster" status --name "$name" >/dev/null
}

# Wait until the link is up. Without a link, mpirun's daemon on the host ends before it has called back.
mend() # VICTIM
{
    ip -n "psring-$name-switch" link set "port$(host_of "$1")" up
    until_within $MOMENT_S is_whole
}

run_ended()
{
    ! kill -0 "$run_pid" 2>/dev/null
}

no_process_left()
{
    [[ -z $(processes) ]]
}

# The files that the run has left in its folders (start, temporary files, checkpoints) and in vcluster.sh's.
files()
{
    find "$folder/here" "$folder/tmp" -mindepth 1
    find "$folder/kept" -mindepth 1 ! -name 'mlp.*.checkpoint.tmp' # the trial's pipe
    compgen -G "/run/psring-vcluster/$name/run.*" || true
}

# Whether the last line names the rank, or what the ranks waited for at launch.
is_named()
{
    last=$(last_line "$folder/log" || true)
    [[ $last =~ $names ]] || [[ $moment == launch && $last =~ meeting\ the\ other\ ranks ]]
}

named_or_ended()
{
    is_named || run_ended
}

seconds_since() # TIME
{
    awk -v from="$1" -v to="$EPOCHREALTIME" 'BEGIN { printf "%.1f", to - from }'
}

# Sets $problem if the trial went wrong, and $named, $seconds and $last.
judge() # VICTIM STARTED
{
    local victim=$1 started=$2 limit=$((TIMEOUT_S + GRACE_S)) rc=0 lost=$1 names
    [[ $fault != cut ]] || lost='[0-9]+' # any rank of the host
    names="rank $lost on host$(host_of "$victim")"
    [[ $moment != launch && $moment != before ]] || limit=$((STARTUP_S + GRACE_S))
    until_within $((limit + 5)) named_or_ended || true
    named=$(seconds_since "$started")
    until_within $((limit + 5)) run_ended || true
    seconds=$(seconds_since "$started")
    if ! run_ended; then
        problem="did not end within $((limit + 5)) s"
        end_run
    else
        wait "$run_pid" || rc=$?
        run_pid=''
        ((rc != 0)) || problem='exit code 0'
        awk -v s="$seconds" -v limit=$limit 'BEGIN { exit !(s > limit) }' && problem="took more than $limit s"
    fi
    is_named || problem=${problem:-'does not name the rank'}
    mend "$victim"
    until_within $GRACE_S no_process_left || problem=${problem:-'processes are left'}
    [[ -z $(files) ]] || problem=${problem:-"left $(files | tr '\n' ' ')"}
}

trial() # CONFIGURATION FAULT MOMENT VICTIM
{
    local configuration=$1 fault=$2 moment=$3 victim=$4 ranks=4 per_host=1 options named=- seconds=- last='' problem=''
    [[ "$configuration $moment $fault $victim" =~ $only ]] || return 0
    read -ra options <<<"$configuration"
    [[ $configuration != *dedicated* ]] || ranks=5
    [[ $configuration != hierarchical* ]] || per_host=2
    rm -rf "$folder"/{here,tmp,kept}
    mkdir "$folder"/{here,tmp,kept}
    if [[ $moment == checkpoint ]]; then
        mkfifo "$folder/kept/mlp.step-00000020.checkpoint.tmp" # the end of an epoch of 2,000 images
        options+=(--checkpoint "$folder/kept")
    fi
    trials=$((trials + 1))
    [[ $moment != before ]] || inflict "$fault" "$victim"
    : >"$folder/log"
    local started=$EPOCHREALTIME
    (cd "$folder/here" && TMPDIR=$folder/tmp exec "$vcluster" run --name "$name" -n $ranks --ranks-per-host $per_host \
        --launch-timeout $STARTUP_S -- "$psring" train --model mlp --data "$data" --backend "${options[@]}" --batch 25 \
        --steps 1000000 --timeout "$TIMEOUT_S" --startup-timeout $STARTUP_S --log-steps 1 </dev/null >"$folder/log" 2>&1) &
    run_pid=$!
    if wait_for_moment "$moment" "$victim"; then
        if [[ $moment != before ]]; then
            started=$EPOCHREALTIME
            inflict "$fault" "$victim"
        fi
        judge "$victim" "$started"
    else
        problem='did not reach the moment'
        end_run
    fi
    printf '%s,%s,%s,%d,%s,%s,%s\n' "$configuration" "$moment" "$fault" "$victim" "$named" "$seconds" "$problem"
    if [[ $problem ]]; then
        failed=$((failed + 1))
        tail -n 20 "$folder/log" | cut -c1-400 | sed 's/^/    /' >&2
    fi
}

all=()
for transport in zmq mpi tcp; do
    for backend in ring rhd hierarchical 'ps --servers 1 --placement dedicated' 'ps --servers 1 --placement colocated'; do
        all+=("$backend --transport $transport")
    done
done
all+=(mpi)

"$vcluster" up --name "$name" --hosts $HOSTS --rate 200mbit --owner $$
echo 'backend,moment,fault,rank,named,seconds,problem'
if [[ $which == --short ]]; then
    trial 'ps --servers 1 --placement colocated --transport zmq' stopped step 2
    trial 'mpi' killed checkpoint 2
    trial 'ps --servers 1 --placement dedicated --transport zmq' killed step 4
    trial 'ring --transport tcp' cut step 2
    trial 'hierarchical --transport tcp' cut step 2
else
    for victim in 2 0; do
        trial "${all[0]}" cut before $victim # any configuration: no rank begins
    done
    for configuration in "${all[@]}"; do
        victims=(2 0)
        [[ $configuration != *dedicated* ]] || victims+=(4) # the server
        for moment in launch step checkpoint; do
            for fault in killed stopped cut; do
                for victim in "${victims[@]}"; do
                    trial "$configuration" $fault $moment "$victim"
                done
            done
        done
    done
fi
"$vcluster" down --name "$name"
if [[ $(ip netns list) == *psring-$name-* || -e /run/psring-vcluster/$name ]]; then
    echo 'fault_trials: the cluster is down, but a namespace or its folder is left'
    failed=$((failed + 1))
fi
echo "fault_trials: $trials trials, $failed failed"
((trials > 0 && failed == 0))
