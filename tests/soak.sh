#!/usr/bin/env bash
# soak.sh MINUTES [SEED]: runs a random mixture for this time, one after the other: trainings, benches, elastic jobs,
# programs of libpsring, and faults. It builds the programs in build-asan/. After each run nothing may be left: no
# process, no file in the temporary folder or in /dev/shm, and no network namespace. A run that is not disturbed ends with
# 0 and its usual weights. A run of which a rank is killed ends with another code, and an elastic job continues.
#
# Prints a line for each kind with the number of runs, and ends with 1 at the first fault. A seed gives the same mixture.
# shellcheck disable=SC2016,SC2154 # inner shells expand their arguments; lib.sh sets its variables
set -euo pipefail
unset CDPATH # cd prints a folder that it finds there
root=$(cd "$(dirname "$0")/.." && pwd)
[[ ${1:-} =~ ^[1-9][0-9]{0,3}$ && ${2:-1} =~ ^[0-9]+$ ]] || {
    sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
minutes=$1 seed=${2:-1}
if [[ ! ${PSRING:-} ]]; then
    cmake --preset asan -S "$root" >/dev/null
    cmake --build "$root/build-asan" --target psring make_dataset psring_calls psring_shrink
    export PSRING=$root/build-asan/psring MAKE_DATASET=$root/build-asan/tests/make_dataset
fi
programs=$(dirname "$PSRING")/tests
set -- # lib.sh reads the arguments
# shellcheck source-path=SCRIPTDIR source=lib/train_lib.sh
. "$root/tests/lib/train_lib.sh"
# shellcheck source-path=SCRIPTDIR source=lib/ranks_lib.sh
. "$lib/ranks_lib.sh"
RANDOM=$((seed % 32768))
export TMPDIR=$folder/tmp
mkdir "$TMPDIR"
common=(--model lenet --batch 8 --reduce-order ring)
declare -A runs=() expected=()

# pick WORD...: sets $picked. A subshell would have another RANDOM.
pick()
{
    shift $((RANDOM % $#))
    picked=$1
}

# left: names what psring has left, if anything.
left()
{
    find "$TMPDIR" -mindepth 1
    find /dev/shm -newer "$folder/begun" -name 'psring*' 2>/dev/null
    ip netns list 2>/dev/null | grep "^psring-$cluster_name-" || true
}

# ended WHAT: the session is over, and nothing is left.
ended()
{
    local found
    within is_over || fail "$1: these processes still run: $(pgrep -s "$session" -l | tr '\n' ' '):"
    session=0
    found=$(left)
    [[ ! $found ]] || fail "$1: left behind: $found:"
    ! grep -qE 'AddressSanitizer|runtime error|LeakSanitizer' "$folder/log" || fail "$1: a sanitizer reports:"
}

usual_weights()
{
    local key=$1 steps=$2
    if [[ ! ${expected[$key $steps]:-} ]]; then
        train 0 "${common[@]}" --steps "$steps" --backend none --virtual-workers "$key"
        expected[$key $steps]=$weights
    fi
    weights=${expected[$key $steps]}
}

a_training()
{
    local backend transport workers ranks steps
    pick ring ps && backend=$picked
    pick tcp zmq && transport=$picked
    pick 2 3 4 && workers=$picked
    pick 5 20 60 && steps=$picked
    ranks=$workers
    [[ $backend != ps ]] || ranks=$((workers + 1))
    usual_weights "$workers" "$steps"
    launch "$lib/ranks.sh" "$ranks" "$psring" train --data "$data" "${common[@]}" --backend "$backend" \
        --transport "$transport" --steps "$steps"
    wait "$session" || fail "$backend, $transport, $workers workers: exit $?:"
    ended "$backend, $transport, $workers workers"
    grep -q "^weights sha256 $weights" "$folder/log" || fail "$backend, $transport, $workers workers: other weights:"
}

a_bench()
{
    local backend transport
    pick ring ps rhd tree && backend=$picked
    pick tcp zmq && transport=$picked
    launch "$lib/ranks.sh" 3 "$psring" bench --backend "$backend" --transport "$transport" --sizes 4096,1048576 -n 5 -w 1
    wait "$session" || fail "bench $backend, $transport: exit $?:"
    ended "bench $backend, $transport"
}

# A rank is killed at a random moment: the others end, and say why.
a_fault()
{
    local backend victim code=0
    pick ring ps && backend=$picked
    pick 0 1 2 && victim=$picked
    launch "$lib/ranks.sh" 3 "$psring" train --data "$data" "${common[@]}" --backend "$backend" --steps 100000
    pick 0.1 0.5 1 2 && pause "$picked"
    within has_ranks 3 || fail "fault $backend: no ranks:"
    kill -KILL "${found[victim]}"
    wait "$session" || code=$?
    ((code != 0)) || fail "fault $backend: rank $victim was killed, and the exit code is 0:"
    ended "fault $backend, rank $victim"
}

# has_ranks N: sets $found to the session's processes of psring.
# shellcheck disable=SC2317 # called by within
has_ranks()
{
    mapfile -t found < <(pgrep -s "$session" -x "$(basename "$psring" | cut -c1-15)")
    ((${#found[@]} == $1))
}

# Two workers and a server; sometimes a worker is killed, and the other one continues.
an_elastic_job()
{
    local address kills
    pick 0 1 && kills=$picked
    address=tcp://127.0.0.1:$(free_port)
    launch bash -c '
        kills=$1 address=$2 psring=$3
        shift 3
        "$psring" serve --listen "$address" --workers 2 --timeout 20 & server=$!
        "$psring" train --backend ps --join "$address" "$@" & first=$!
        "$psring" train --backend ps --join "$address" "$@" --steps 40 & second=$!
        if ((kills)); then
            sleep 1.5
            kill -KILL $second
        fi
        wait $first && wait $server && { wait $second || ((kills)); }' _ "$kills" "$address" "$psring" \
        --data "$data" "${common[@]}" --steps 40
    wait "$session" || fail "elastic, $kills killed: exit $?:"
    ended "elastic, $kills killed"
}

a_program()
{
    pick psring_calls psring_shrink
    launch "$programs/$picked" --color=never --jobs 2
    wait "$session" || fail "$picked: exit $?:"
    ended "$picked"
}

a_cluster()
{
    ! namespaces_refused || return 0
    launch bash -c '"$1" up --name "$2" --hosts 2 --rate 1gbit --owner $$ && "$1" run --name "$2" -n 2 -- "${@:3}" &&
        "$1" down --name "$2"' _ "$vcluster" "$cluster_name" "$psring" bench --backend ring --sizes 65536 -n 3 -w 1
    wait "$session" || fail "a virtual cluster: exit $?:"
    ended "a virtual cluster"
}

cluster_name=soak-$$
at_end "$vcluster" down --name "$cluster_name"
: >"$folder/begun"
while ((SECONDS < 60 * minutes)); do
    pick a_training a_training a_bench a_fault an_elastic_job a_program a_cluster
    kind=$picked
    $kind
    runs[$kind]=$((${runs[$kind]:-0} + 1))
done
for kind in "${!runs[@]}"; do
    echo "soak: ${runs[$kind]} x ${kind//_/ }"
done
echo "soak: nothing left"
